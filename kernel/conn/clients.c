// SPDX-License-Identifier: GPL-2.0
/*
 * Who is connected to a service?  A client counts as often as it has connections.
 */
#include "conn/clients.h"

#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/siphash.h>
#include <linux/slab.h>

#include "conn/walk.h"

#define VISITS	256	/* between two breaks */

/**
 * struct sample - connections of which each had the same chance to be chosen
 * @trial: has them
 * @most: so many, at most
 * @seen: connections so far
 */
struct sample {
	struct l4lb_trial	*trial;
	u32			most;
	u32			seen;
};

/* The service may be another one by now that has the same name. */
static bool belongs(const struct l4lb_conn *conn, const struct l4lb_svc_key *key)
{
	const struct l4lb_service *svc = rcu_dereference(conn->server->svc);

	return svc && !l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) &&
	       !memcmp(&svc->key, key, sizeof(*key));
}

/* The n-th replaces one of the sample with probability most/n: algorithm R in Vitter,
 * "Random sampling with a reservoir", ACM Transactions on Mathematical Software 11(1),
 * 1985.
 */
static void add(struct sample *sample, const struct l4lb_conn *conn)
{
	const siphash_key_t key = { { sample->trial->seed, L4LB_TRIAL_DRAWS_SAMPLE } };
	u32 at = sample->seen++;

	if (at < sample->most)
		sample->trial->n_live = sample->seen;
	else
		at = reciprocal_scale(siphash_1u64(at, &key), sample->seen);
	if (at < sample->most)
		sample->trial->live[at] = (struct l4lb_trial_client) {
			.addr	= l4lb_conn_client(conn),
			.vip	= l4lb_conn_vip(conn),
		};
}

/* Returns whether there are more. */
static bool visit(struct sample *sample, struct l4lb_conn_walk *walk)
{
	struct l4lb_conn *conn = NULL;
	unsigned int i;

	l4lb_conn_walk_start(walk);
	for (i = 0; i < VISITS; i++) {
		conn = l4lb_conn_walk_next(walk);
		if (!conn)
			break;
		if (belongs(conn, &sample->trial->key))
			add(sample, conn);
	}
	l4lb_conn_walk_stop(walk);
	return conn;
}

static int draw(struct sample *sample, struct l4lb_conn_walk *walk)
{
	struct l4lb_trial *trial = sample->trial;

	sample->most = clamp(l4lb_conn_walk_total(walk), 1U, L4LB_TRIAL_LIVE_MAX);
	trial->live = kvmalloc_array(sample->most, sizeof(*trial->live),
				     GFP_KERNEL_ACCOUNT);
	if (!trial->live)
		return -ENOMEM;
	while (visit(sample, walk)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

int l4lb_conn_clients(struct l4lb_net *ln, struct l4lb_trial *trial)
{
	struct sample sample = { .trial = trial };
	struct l4lb_conn_walk *walk;
	int err;

	might_sleep();
	walk = l4lb_conn_walk_open(ln);
	if (!walk)
		return -ENOMEM;
	err = draw(&sample, walk);
	l4lb_conn_walk_close(walk);
	return err;
}
