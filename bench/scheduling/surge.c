// SPDX-License-Identifier: GPL-2.0
/*
 * User equivalents, after SURGE (Barford and Crovella 1998): each requests a
 * document, waits for all of it, is idle for a while, and requests the next.
 * So users that wait longer send fewer requests.
 *
 *   surge RECORDS USERS SECONDS SEED DOCUMENTS ZIPF IDLE_LEAST IDLE_ALPHA \
 *         IDLE_MOST CLIENTS ADDRESSES VIP PORT GIVE_UP
 *
 * RECORDS: output, a struct visit (trace.h) for each document, in the order in
 * which they ended.  Document i of DOCUMENTS is requested in proportion to
 * 1/(i + 1)^ZIPF; idle times are Pareto distributed from IDLE_LEAST ms on, cut
 * at IDLE_MOST ms.  All users begin within 5 * IDLE_LEAST ms.  CLIENTS: the
 * first of the ADDRESSES addresses that users share.  After SECONDS no user
 * sends a new request, but those in progress are waited for.  GIVE_UP: seconds
 * after which a document has failed.  Prints a line a (virtual) second:
 * seconds, answered, failed.
 */
#include <arpa/inet.h>
#include <math.h>

#include "fetch.h"

#define SPREAD	5
#define TWO_TO_MINUS_53	(1.0 / (1ULL << 53))

struct user {
	struct fetch	fetch;
	uint64_t	random;		/* state of its random numbers */
	uint64_t	next;		/* when it sends a request, if idle */
	bool		busy;
};

static struct {
	unsigned long	least, most;	/* ms */
	double		alpha;
} idle;

static struct user *users;
static size_t nusers, ndocs, answered, failed;
static double *shares;			/* running sums of popularity */
static uint32_t clients, addresses, used_ports[65536];
static struct sockaddr_in vip;
static uint64_t start;
static FILE *records;

/* splitmix64 (Steele, Lea, Flood 2014): a number in [0, 1). */
static double chance(struct user *u)
{
	uint64_t z = u->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return ((z ^ z >> 31) >> 11) * TWO_TO_MINUS_53;
}

static uint64_t idle_ns(struct user *u)
{
	double ms = idle.least / pow(1 - chance(u), 1 / idle.alpha);

	return (ms < idle.most ? ms : idle.most) * (NSEC_PER_SEC / 1000);
}

static uint32_t choose(struct user *u)
{
	double at = chance(u) * shares[ndocs - 1];
	size_t low = 0, high = ndocs - 1;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (shares[middle] > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void note(struct fetch *f, uint64_t now, enum fault fault)
{
	struct user *u = (struct user *)f;
	struct visit v = {
		.at = f->begun - start, .took = now - f->begun, .bytes = f->length,
		.document = f->document, .user = u - users, .fault = fault,
	};

	if (fwrite(&v, sizeof(v), 1, records) != 1)
		err(1, "writing");
	if (fault)
		failed++;
	else
		answered++;
	u->busy = false;
	u->next = now + idle_ns(u);
}

static void ask(struct user *u, uint64_t now)
{
	uint32_t address = (u - users) % addresses, used = used_ports[address]++;
	struct sockaddr_in from = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(clients + address),
		.sin_port = htons(FIRST_PORT + used % PORTS),
	};

	if (used >= PORTS)
		errx(1, "a client address has no unused port left: give more addresses");
	u->busy = true;
	fetch_begin(&u->fetch, choose(u), &from, &vip, now);
}

static void run(uint64_t length, uint64_t give_up)
{
	uint64_t next_line = NSEC_PER_SEC;
	size_t i;

	for (;;) {
		uint64_t now = now_ns(), wake = start + next_line;
		bool over = now - start >= length;

		for (i = 0; i < nusers && !over; i++) {
			struct user *u = &users[i];

			if (!u->busy && u->next <= now)
				ask(u, now);
			if (!u->busy && u->next < wake)
				wake = u->next;
		}
		if (over && !fetch_any())
			return;
		if (now - start >= next_line) {
			printf("%llu %zu %zu\n", (unsigned long long)(next_line / NSEC_PER_SEC),
			       answered, failed);
			fflush(stdout);
			next_line += NSEC_PER_SEC;
		}
		fetch_go_on(wake, give_up);
	}
}

static double parse_real(const char *text)
{
	char *end;
	double x = strtod(text, &end);

	if (end == text || *end || !(x > 0))
		errx(2, "'%s' is no number above 0", text);
	return x;
}

static uint32_t parse_address(const char *text)
{
	struct in_addr a;

	if (inet_pton(AF_INET, text, &a) != 1)
		errx(2, "'%s' is not an IPv4 address", text);
	return ntohl(a.s_addr);
}

int main(int argc, char **argv)
{
	uint64_t length, give_up, seed;
	double zipf, sum = 0;
	size_t i;

	if (argc != 15)
		errx(2, "14 arguments are needed, see the top of surge.c");
	nusers = parse_number(argv[2], 100000);
	length = parse_number(argv[3], 86400) * NSEC_PER_SEC;
	seed = parse_number(argv[4], 1000000000);
	ndocs = parse_number(argv[5], 10000000);
	zipf = parse_real(argv[6]);
	idle.least = parse_number(argv[7], 3600000);
	idle.alpha = parse_real(argv[8]);
	idle.most = parse_number(argv[9], 3600000);
	clients = parse_address(argv[10]);
	addresses = parse_number(argv[11], 65536);
	vip = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(parse_address(argv[12])),
		.sin_port = htons(parse_number(argv[13], 65535)),
	};
	give_up = parse_number(argv[14], 3600) * NSEC_PER_SEC;
	if (!nusers || !ndocs || !addresses || !idle.least || idle.most < idle.least)
		errx(2, "there must be users, documents, addresses and idle times");
	users = calloc(nusers, sizeof(*users));
	shares = calloc(ndocs, sizeof(*shares));
	records = fopen(argv[1], "wb");
	if (!users || !shares || !records)
		err(1, "setting up");
	for (i = 0; i < ndocs; i++)
		shares[i] = sum += pow(i + 1, -zipf);
	fetch_setup(note);
	start = fetch_start();
	for (i = 0; i < nusers; i++) {
		users[i].random = seed * 1000003 + i;
		users[i].next = start + chance(&users[i]) * SPREAD * idle.least *
				(NSEC_PER_SEC / 1000);
	}
	run(length, give_up);
	if (fclose(records))
		err(1, "%s", argv[1]);
}
