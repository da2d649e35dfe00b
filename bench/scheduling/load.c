// SPDX-License-Identifier: GPL-2.0
/*
 * An open-loop web client: sends each request of a trace at its time, whether or
 * not earlier ones have been answered, and records how long each took.
 *
 *   load TRACE OUTCOMES CLIENTS VIPS PORT GIVE_UP
 *
 * TRACE and OUTCOMES: see trace.h. CLIENTS and VIPS: the first address of
 * each, from which the trace's indices count. GIVE_UP: seconds after which a
 * request has failed. Every request has its own connection, from a port that
 * its address has not used before. Prints a line a (virtual) second: seconds,
 * answered, failed.
 */
#include <arpa/inet.h>

#include "fetch.h"

struct request {
	struct fetch	fetch;
	size_t		index;		/* in the trace */
};

static const struct arrival *trace;
static struct outcome *outcomes;
static size_t total, answered, failed;
static uint32_t clients, vips, used_ports[65536];
static uint16_t port;

static void note(struct fetch *f, uint64_t now, enum fault fault)
{
	struct request *r = (struct request *)f;

	outcomes[r->index] = (struct outcome){
		.took = now - f->begun, .bytes = f->length, .server = f->server,
		.hit = f->hit, .fault = fault,
	};
	if (fault)
		failed++;
	else
		answered++;
	free(r);
}

static struct sockaddr_in address_of(uint32_t base, uint16_t index, uint16_t at)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(at),
				     .sin_addr.s_addr = htonl(base + index) };
}

static void begin(size_t index, uint64_t now)
{
	const struct arrival *a = &trace[index];
	uint32_t used = used_ports[a->client]++;
	struct sockaddr_in from = address_of(clients, a->client, FIRST_PORT + used % PORTS);
	struct sockaddr_in to = address_of(vips, a->vip, port);
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		err(1, "calloc");
	if (used >= PORTS)
		errx(1, "a client address has no unused port left: give it fewer requests");
	r->index = index;
	fetch_begin(&r->fetch, a->document, &from, &to, now);
}

static void replay(uint64_t give_up)
{
	uint64_t start = fetch_start(), next_line = NSEC_PER_SEC;
	size_t begun = 0;

	while (begun < total || fetch_any()) {
		uint64_t now = now_ns(), wake = start + next_line;

		for (; begun < total && trace[begun].at <= now - start; begun++)
			begin(begun, now);
		if (now - start >= next_line) {
			printf("%llu %zu %zu\n", (unsigned long long)(next_line / NSEC_PER_SEC),
			       answered, failed);
			fflush(stdout);
			next_line += NSEC_PER_SEC;
			wake += NSEC_PER_SEC;
		}
		if (begun < total && start + trace[begun].at < wake)
			wake = start + trace[begun].at;
		fetch_go_on(wake, give_up);
	}
}

int main(int argc, char **argv)
{
	struct in_addr a, v;
	FILE *out;
	size_t i;

	if (argc != 7)
		errx(2, "6 arguments are needed, see the top of load.c");
	trace = read_entries(argv[1], sizeof(*trace), &total);
	if (inet_pton(AF_INET, argv[3], &a) != 1 || inet_pton(AF_INET, argv[4], &v) != 1)
		errx(2, "'%s' or '%s' is not an IPv4 address", argv[3], argv[4]);
	clients = ntohl(a.s_addr);
	vips = ntohl(v.s_addr);
	port = parse_number(argv[5], 65535);
	for (i = 1; i < total; i++)
		if (trace[i].at < trace[i - 1].at)
			errx(1, "%s: entry %zu is earlier than the one before", argv[1], i);
	outcomes = calloc(total, sizeof(*outcomes));
	if (!outcomes)
		err(1, "calloc");
	fetch_setup(note);
	replay(parse_number(argv[6], 3600) * NSEC_PER_SEC);
	out = fopen(argv[2], "wb");
	if (!out || fwrite(outcomes, sizeof(*outcomes), total, out) != total || fclose(out))
		err(1, "%s", argv[2]);
}
