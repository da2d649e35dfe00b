/* SPDX-License-Identifier: GPL-2.0 */
/* Ranges of ports, of which one is in another one or they have no port in common. */
#ifndef _L4LB_RANGE_SEARCH_H
#define _L4LB_RANGE_SEARCH_H

#include <linux/types.h>

struct l4lb_service;

/**
 * struct l4lb_range - ports of a service
 * @first: the first port, host order
 * @last: the last one
 * @outer: index of the smallest range around it, or -1
 * @svc: its service; NULL: removed
 */
struct l4lb_range {
	u16			first, last;
	int			outer;
	struct l4lb_service __rcu *svc;
};

/* Packets go from the smallest range of a port outwards, so this bounds their steps. */
#define L4LB_RANGE_DEPTH	8

enum l4lb_range_order {
	L4LB_RANGE_FINE,
	L4LB_RANGE_CROSSES,	/* two have ports in common, and each has others */
	L4LB_RANGE_DEEP,	/* more than L4LB_RANGE_DEPTH around one another */
};

/* By first port; of those with the same, the one with more ports comes first. */
static inline int l4lb_range_cmp(const struct l4lb_range *a, const struct l4lb_range *b)
{
	return a->first != b->first ? (int)a->first - (int)b->first :
				      (int)b->last - (int)a->last;
}

/* Sets @outer in @n ranges that are in order.  Otherwise *@at is the one that is wrong. */
static inline enum l4lb_range_order
l4lb_range_nest(struct l4lb_range *r, unsigned int n, unsigned int *at)
{
	unsigned int i, depth = 0;
	int outer = -1;

	for (i = 0; i < n; i++) {
		while (outer >= 0 && r[outer].last < r[i].first) {
			outer = r[outer].outer;
			depth--;
		}
		r[i].outer = outer;
		*at = i;
		if (outer >= 0 && r[outer].last < r[i].last)
			return L4LB_RANGE_CROSSES;
		if (++depth > L4LB_RANGE_DEPTH)
			return L4LB_RANGE_DEEP;
		outer = (int)i;
	}
	return L4LB_RANGE_FINE;
}

/* The index of the smallest of @n ranges that has @port, or -1. */
static inline int l4lb_range_search(const struct l4lb_range *r, unsigned int n, u16 port)
{
	unsigned int low = 0, high = n, mid;
	int i;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (r[mid].first <= port)
			low = mid + 1;
		else
			high = mid;
	}
	/* Any that has @port and begins before this one is around it. */
	i = (int)low - 1;
	while (i >= 0 && r[i].last < port)
		i = r[i].outer;
	return i;
}

#endif /* _L4LB_RANGE_SEARCH_H */
