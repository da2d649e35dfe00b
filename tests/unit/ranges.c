// SPDX-License-Identifier: GPL-2.0
/*
 * Ranges of ports (kernel/service/range_search.h), compared with a search through all.
 *
 *	ranges SEED ROUNDS	at random: prints how many ports were found, how many were
 *				not, and how many sets were refused, by reason
 *	ranges N		N ranges side by side: each port is looked up; prints the
 *				processor time of that, in microseconds
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint16_t u16;
#define __rcu
#include "service/range_search.h"

static unsigned long found, missed, crosses, deep;

static int cmp(const void *a, const void *b)
{
	return l4lb_range_cmp(a, b);
}

/* The smallest that has @port; by looking at each. */
static int by_hand(const struct l4lb_range *r, int n, u16 port)
{
	int best = -1, i;

	for (i = 0; i < n; i++)
		if (r[i].first <= port && port <= r[i].last &&
		    (best < 0 || r[i].last - r[i].first < r[best].last - r[best].first))
			best = i;
	return best;
}

static enum l4lb_range_order order_by_hand(const struct l4lb_range *r, int n)
{
	int i, j, around;

	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++)
			if (r[i].first < r[j].first && r[j].first <= r[i].last &&
			    r[i].last < r[j].last)
				return L4LB_RANGE_CROSSES;
	for (i = 0; i < n; i++) {
		for (around = j = 0; j < n; j++)
			around += r[j].first <= r[i].first && r[i].last <= r[j].last;
		if (around > L4LB_RANGE_DEPTH)
			return L4LB_RANGE_DEEP;
	}
	return L4LB_RANGE_FINE;
}

/* A range that is in one of the others, or beside all: mostly in order. */
static void draw(struct l4lb_range *r, int n, int span)
{
	const struct l4lb_range *in = n ? &r[rand() % n] : NULL;
	int first = 1 + rand() % span, len = rand() % (span / 4 + 1);

	if (in && rand() % 10 < 7) {
		first = in->first + rand() % (in->last - in->first + 1);
		len = rand() % (in->last - first + 1);
	}
	r[n].first = (u16)first;
	r[n].last = (u16)(first + len > 65535 ? 65535 : first + len);
	r[n].outer = 12345;
}

static int is_double(const struct l4lb_range *r, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (r[i].first == r[n].first && r[i].last == r[n].last)
			return 1;
	return 0;
}

static void round_of(void)
{
	int span = rand() % 2 ? 60 : 65535, most = 1 + rand() % 24, n = 0, i, tries;
	/* Of its exact size, so that the sanitizer sees each step beyond. */
	struct l4lb_range all[32], *r;
	enum l4lb_range_order order;
	unsigned int at = 0;
	u16 port;

	for (tries = 0; n < most && tries < 100; tries++) {
		draw(all, n, span);
		if (is_double(all, n))
			continue;
		/* Some sets stay in order, some do not. */
		if (order_by_hand(all, n + 1) == L4LB_RANGE_FINE || rand() % 40 == 0)
			n++;
	}
	r = malloc((size_t)n * sizeof(*r));
	memcpy(r, all, (size_t)n * sizeof(*r));
	qsort(r, (size_t)n, sizeof(*r), cmp);
	order = l4lb_range_nest(r, (unsigned int)n, &at);
	/* Of several faults it may name any. */
	assert((order == L4LB_RANGE_FINE) == (order_by_hand(r, n) == L4LB_RANGE_FINE));
	assert(order == L4LB_RANGE_FINE || at < (unsigned int)n);
	crosses += order == L4LB_RANGE_CROSSES;
	deep += order == L4LB_RANGE_DEEP;
	for (i = 0; i < 200 && order == L4LB_RANGE_FINE; i++) {
		port = (u16)(rand() % 3 ? rand() % (span + 2) : i % 2 ? r[rand() % n].first
			     : r[rand() % n].last + rand() % 2);
		tries = l4lb_range_search(r, (unsigned int)n, port);
		assert(tries == by_hand(r, n, port));
		found += tries >= 0;
		missed += tries < 0;
	}
	free(r);
}

/* Side by side, from port 1, two ports each. */
static void all_ports(int n)
{
	struct l4lb_range *r = malloc((size_t)n * sizeof(*r));
	clock_t began;
	unsigned int at;
	int i, port;

	for (i = 0; i < n; i++)
		r[i] = (struct l4lb_range){ .first = (u16)(2 * i + 1), .last = (u16)(2 * i + 2) };
	assert(l4lb_range_nest(r, (unsigned int)n, &at) == L4LB_RANGE_FINE);
	began = clock();
	for (port = 0; port <= 65535; port++)
		assert(l4lb_range_search(r, (unsigned int)n, (u16)port) ==
		       (port && port <= 2 * n ? (port - 1) / 2 : -1));
	printf("%ld\n", (long)((clock() - began) * 1000000 / CLOCKS_PER_SEC));
	free(r);
}

int main(int argc, char **argv)
{
	int i;

	if (argc == 2) {
		all_ports(atoi(argv[1]));
		return 0;
	}
	if (argc != 3)
		return 2;
	srand((unsigned int)atoi(argv[1]));
	for (i = atoi(argv[2]); i; i--)
		round_of();
	printf("%lu found, %lu not, %lu cross, %lu deep\n", found, missed, crosses, deep);
	return 0;
}
