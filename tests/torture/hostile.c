// SPDX-License-Identifier: GPL-2.0
/*
 * hostile: sends damaged packets or netlink messages as fast as the kernel takes them.
 *
 *	hostile packets BASES DEVICE [-s SEED] [-f FIRST] [-n COUNT] [-t SECONDS] [-o FILE]
 *	hostile messages BASES [the same options]
 *
 * BASES has whole inputs, each after its length (two bytes, little endian): Ethernet
 * frames, or generic netlink messages.  Input number n is one of them with damage that
 * depends on SEED and n only: the same seed always gives the same bytes, and one input can
 * be sent again with -f n -n 1.  With -o inputs go to FILE, in the form of BASES.
 *
 * It ends after COUNT inputs or SECONDS, on SIGTERM, or when the device is gone, and
 * prints the counts as JSON.  Every ten seconds it says on stderr how much time is left.
 * tests/torture/hostile.py makes BASES.
 *
 * The numbers are xorshift64* (Vigna, "An experimental exploration of Marsaglia's
 * xorshift generators, scrambled", 2016), its state from SplitMix64.
 */
#define _GNU_SOURCE
#include "hostile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PROGRESS = 10 };		/* seconds */

struct options {
	bool		packets;
	const char	*bases, *device, *out;
	uint64_t	seed, first, count, seconds;
};

static struct input *bases;
static size_t base_count;
static volatile sig_atomic_t stopped;
static uint64_t state;

__attribute__((format(printf, 1, 2), noreturn))
static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("hostile: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

/* -- random numbers */

static uint64_t splitmix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

void begin(uint64_t seed, uint64_t number)
{
	state = splitmix(splitmix(seed) ^ number) | 1;
}

uint32_t below(uint32_t n)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1d >> 32) % n;
}

bool one_in(uint32_t n)
{
	return !below(n);
}

void flip_bit(struct input *in, size_t from)
{
	if (in->len > from)
		in->data[from + below(in->len - from)] ^= 1 << below(8);
}

void any_byte(struct input *in, size_t from)
{
	if (in->len > from)
		in->data[from + below(in->len - from)] = below(256);
}

/* -- inputs */

static void read_bases(const char *path, size_t least)
{
	FILE *file = fopen(path, "rb");
	uint8_t size[2];

	if (!file)
		fail("%s: %s", path, strerror(errno));
	while (fread(size, 1, 2, file) == 2) {
		struct input *in;

		bases = realloc(bases, (base_count + 1) * sizeof(*bases));
		if (!bases)
			fail("no memory");
		in = &bases[base_count++];
		in->len = size[0] | size[1] << 8;
		if (in->len < least || in->len > ROOM || fread(in->data, 1, in->len, file) != in->len)
			fail("%s: input %zu has a wrong length or is cut off", path, base_count);
	}
	fclose(file);
	if (!base_count)
		fail("%s is empty", path);
}

static void make(const struct options *o, uint64_t number, struct input *in)
{
	const struct input *base;

	begin(o->seed, number);
	base = &bases[below(base_count)];
	in->len = base->len;
	memcpy(in->data, base->data, base->len);
	if (o->packets)
		damage_packet(in);
	else
		damage_message(in);
}

/* -- sending */

static int open_device(const char *name)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(name),
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0 || !to.sll_ifindex || bind(fd, (struct sockaddr *)&to, sizeof(to)))
		fail("%s: %s", name, strerror(errno));
	return fd;
}

static int open_netlink(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC), on = 1, room = 1 << 20;

	if (fd < 0)
		fail("netlink: %s", strerror(errno));
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	return fd;
}

static bool is_gone(int error)
{
	return error == ENETDOWN || error == ENXIO || error == ENODEV;
}

static void send_packets(int fd, struct input *in, int n, struct counts *counts)
{
	static struct mmsghdr messages[BATCH];
	static struct iovec parts[BATCH];
	int i, done, tries = 0;

	for (i = 0; i < n; i++) {
		parts[i] = (struct iovec) { in[i].data, in[i].len };
		messages[i].msg_hdr = (struct msghdr) { .msg_iov = &parts[i], .msg_iovlen = 1 };
	}
	for (i = 0; i < n && !counts->gone; ) {
		done = sendmmsg(fd, messages + i, n - i, 0);
		if (done > 0) {
			counts->sent += done;
			i += done;
		} else if ((errno == ENOBUFS || errno == EAGAIN || errno == EINTR) && tries++ < 1000) {
			usleep(100);
		} else {
			counts->gone = is_gone(errno);
			counts->refused++;
			i++;
		}
	}
}

static void read_answers(int fd, struct counts *counts)
{
	static char data[1 << 16] __attribute__((aligned(8)));
	ssize_t size;

	while ((size = recv(fd, data, sizeof(data), MSG_DONTWAIT)) > 0) {
		struct nlmsghdr *nlh = (struct nlmsghdr *)data;
		unsigned int left = size;

		for (; NLMSG_OK(nlh, left); nlh = NLMSG_NEXT(nlh, left)) {
			if (nlh->nlmsg_type != NLMSG_ERROR)
				continue;
			if (((struct nlmsgerr *)NLMSG_DATA(nlh))->error)
				counts->rejected++;
			else
				counts->accepted++;
		}
	}
}

static void send_messages(int fd, struct input *in, int n, struct counts *counts)
{
	int i;

	for (i = 0; i < n; i++) {
		if (send(fd, in[i].data, in[i].len, 0) < 0)
			counts->refused++;
		else
			counts->sent++;
		read_answers(fd, counts);
	}
}

static void write_inputs(FILE *file, struct input *in, int n, struct counts *counts)
{
	int i;

	for (i = 0; i < n; i++) {
		uint8_t size[2] = { in[i].len, in[i].len >> 8 };

		if (fwrite(size, 1, 2, file) != 2 || fwrite(in[i].data, 1, in[i].len, file) != in[i].len)
			fail("the inputs cannot be written: %s", strerror(errno));
		counts->sent++;
	}
}

/* -- the run */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void say(const struct options *o, uint64_t done, double seconds)
{
	double left = o->count ? (o->count - done) * seconds / done : 1e9;

	if (o->seconds && o->seconds - seconds < left)
		left = o->seconds - seconds;
	fprintf(stderr, "hostile: %" PRIu64 " %s, %.0f/s, ", done, o->packets ? "packets" : "messages",
		done / seconds);
	fprintf(stderr, left < 1e8 ? "about %.0f s left\n" : "until it is stopped\n", left);
}

static uint64_t run(const struct options *o, struct counts *counts)
{
	static struct input inputs[BATCH];
	FILE *file = o->out ? fopen(o->out, "wb") : NULL;
	int fd = file ? -1 : o->packets ? open_device(o->device) : open_netlink(), n;
	double started = now(), said = started, t = started;
	uint64_t done = 0;

	if (o->out && !file)
		fail("%s: %s", o->out, strerror(errno));
	while (!stopped && !counts->gone && (!o->count || done < o->count) &&
	       (!o->seconds || t - started < o->seconds)) {
		for (n = 0; n < BATCH && (!o->count || done + n < o->count); n++)
			make(o, o->first + done + n, &inputs[n]);
		if (file)
			write_inputs(file, inputs, n, counts);
		else if (o->packets)
			send_packets(fd, inputs, n, counts);
		else
			send_messages(fd, inputs, n, counts);
		done += n;
		t = now();
		if (t - said >= PROGRESS) {
			said = t;
			say(o, done, t - started);
		}
	}
	if (file && fclose(file))
		fail("%s: %s", o->out, strerror(errno));
	return o->first + done;
}

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	if (*end || !*text)
		fail("'%s' is not a number", text);
	return n;
}

static void parse(int argc, char **argv, struct options *o)
{
	int c;

	while ((c = getopt(argc, argv, "s:f:n:t:o:")) != -1) {
		switch (c) {
		case 's': o->seed = number(optarg); break;
		case 'f': o->first = number(optarg); break;
		case 'n': o->count = number(optarg); break;
		case 't': o->seconds = number(optarg); break;
		case 'o': o->out = optarg; break;
		default: exit(2);
		}
	}
	argv += optind;
	argc -= optind;
	o->packets = argc == 3 && !strcmp(argv[0], "packets");
	if (!o->packets && (argc != 2 || strcmp(argv[0], "messages")))
		fail("say 'packets BASES DEVICE' or 'messages BASES'");
	o->bases = argv[1];
	o->device = argv[2];
}

int main(int argc, char **argv)
{
	struct options options = { .seed = 1 };
	struct counts counts = { 0 };
	uint64_t next;
	double started = now();

	parse(argc, argv, &options);
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	read_bases(options.bases, options.packets ? 14 : 20);
	next = run(&options, &counts);
	printf("{\"sent\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"accepted\": %" PRIu64 ", "
	       "\"rejected\": %" PRIu64 ", \"gone\": %s, \"next\": %" PRIu64 ", \"seconds\": %.1f}\n",
	       counts.sent, counts.refused, counts.accepted, counts.rejected,
	       counts.gone ? "true" : "false", next, now() - started);
	return 0;
}
