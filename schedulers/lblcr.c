// SPDX-License-Identifier: GPL-2.0
/*
 * Locality-based least connection with replication: like lblc, but an address
 * has a set of real servers, of which the least loaded one serves it.
 *
 * When that one is saturated while another server is half idle, the least
 * loaded of all (wlc) joins the set; when the set has not changed for a while,
 * its most loaded member leaves.  So replication follows demand up and down.
 *
 * Source: "Scheduling techniques in a Linux cluster web server"; saturation and
 * the time until a set shrinks (a day) as in IPVS.
 *
 *	expire, entries	as for lblc
 *	shrink		seconds without a change until a set loses a server
 *
 * Meant for many caches, and for addresses too popular for a single cache.
 * Wrong tool for a single VIP: it is wlc with a memory.
 */
#include "service/affinity.h"

enum { LBLCR_SHRINK = L4LB_AFFINITY_OWN };

/* A new set: the known one with a change. */
struct lblcr_draft {
	unsigned int		n;
	struct l4lb_sched_server	*server[L4LB_AFFINITY_SERVERS];
};

static struct l4lb_sched_server *set_least(const struct l4lb_affinity_set *set)
{
	struct l4lb_sched_server *best = NULL;
	unsigned int i;

	for (i = 0; i < set->n; i++) {
		struct l4lb_sched_server *d = set->server[i];

		if (l4lb_server_usable(d) && (!best || l4lb_server_less(d,
									best)))
			best = d;
	}
	return best;
}

/* The most loaded member with a weight above 0, or NULL. */
static struct l4lb_sched_server *set_most(const struct l4lb_affinity_set *set)
{
	struct l4lb_sched_server *most = NULL;
	unsigned int i;

	for (i = 0; i < set->n; i++) {
		struct l4lb_sched_server *d = set->server[i];

		if (READ_ONCE(d->weight) > 0 &&
		    (!most || l4lb_server_less(most, d)))
			most = d;
	}
	return most;
}

static void draft_add(struct lblcr_draft *draft, struct l4lb_sched_server *d)
{
	if (draft->n < ARRAY_SIZE(draft->server))
		draft->server[draft->n++] = d;
}

/* Stores @first (may be NULL or @leaves) and the known set without @leaves. */
static void store(const struct l4lb_pool *pool, const struct l4lb_flow *flow,
		  const struct l4lb_affinity_set *known,
		  struct l4lb_sched_server *first,
		  const struct l4lb_sched_server *leaves)
{
	struct lblcr_draft draft = { .n = 0 };
	unsigned int i;

	if (first)
		draft_add(&draft, first);
	for (i = 0; known && i < known->n; i++)
		if (known->server[i] != leaves)
			draft_add(&draft, known->server[i]);
	l4lb_affinity_store(pool->state, &flow->daddr, draft.server, draft.n);
}

static bool set_has(const struct l4lb_affinity_set *set,
		    const struct l4lb_sched_server *d,
		    const struct l4lb_sched_server *leaves)
{
	unsigned int i;

	for (i = 0; set && i < set->n; i++)
		if (set->server[i] == d && d != leaves)
			return true;
	return false;
}

static struct l4lb_sched_server *lblcr_pick(const struct l4lb_pool *pool,
					    const struct l4lb_flow *flow)
{
	struct l4lb_sched_server *d = NULL, *leaves = NULL;
	const struct l4lb_affinity_set *known;

	known = l4lb_affinity_find(pool->state, &flow->daddr);
	if (known) {
		d = set_least(known);
		if (known->n > 1 &&
		    l4lb_affinity_due(known, l4lb_option(pool, LBLCR_SHRINK)))
			leaves = set_most(known);
	}
	if (d && !l4lb_affinity_saturated(pool, d)) {
		if (leaves)
			store(pool, flow, known, NULL, leaves);
		return d;
	}

	d = l4lb_pool_least(pool);
	if (d && !set_has(known, d, leaves))
		store(pool, flow, known, d, leaves);
	else if (leaves)
		store(pool, flow, known, NULL, leaves);
	return d;
}

static const struct l4lb_sched_option lblcr_options[] = {
	L4LB_AFFINITY_OPTIONS,
	[LBLCR_SHRINK] = {
		.name = "shrink", L4LB_AFFINITY_TIME,
		.what = "seconds without a change until a set loses a server",
	},
};

static struct l4lb_sched_ops lblcr_sched = {
	.name		= "lblcr",
	.sysctl		= "lblcr_expiration",
	.owner		= THIS_MODULE,
	.pick		= lblcr_pick,
	.rank		= L4LB_AFFINITY_RANKS,
	.greedy		= L4LB_GREEDY_WEIGHTED,
	.init		= l4lb_affinity_create,
	.exit		= l4lb_affinity_destroy,
	.changed	= l4lb_affinity_changed,
	.options	= lblcr_options,
	.n_options	= ARRAY_SIZE(lblcr_options),
};
module_l4lb_sched(lblcr_sched);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb locality-based least connection with replication");
MODULE_VERSION("0.1.0");
