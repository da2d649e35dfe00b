// SPDX-License-Identifier: GPL-2.0
/*
 * The clients of a service's connections, for trials: one counts as often as it has
 * connections.  A walk's order is that of a keyed hash, so its first ones are a sample.
 */
#include "conn/clients.h"

#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "conn/walk.h"

#define VISITS	256	/* between two breaks */

static bool belongs(const struct l4lb_conn *conn, const struct l4lb_svc_key *key)
{
	return !l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) &&
	       !memcmp(&conn->server->name.svc, key, sizeof(*key));
}

/* Returns whether there are more, and room for them: @most in all. */
static bool visit(struct l4lb_trial *trial, u32 most, struct l4lb_conn_walk *walk)
{
	struct l4lb_conn *conn = NULL;
	unsigned int i;

	l4lb_conn_walk_start(walk);
	for (i = 0; i < VISITS && trial->n_live < most; i++) {
		conn = l4lb_conn_walk_next(walk);
		if (!conn)
			break;
		if (!belongs(conn, &trial->key))
			continue;
		trial->live[trial->n_live++] = (struct l4lb_trial_client) {
			.addr	= l4lb_conn_client(conn),
			.vip	= l4lb_conn_vip(conn),
		};
	}
	l4lb_conn_walk_stop(walk);
	return conn && trial->n_live < most;
}

static int draw(struct l4lb_trial *trial, struct l4lb_conn_walk *walk)
{
	u32 most = clamp(l4lb_conn_walk_total(walk), 1U, L4LB_TRIAL_LIVE_MAX);

	trial->live = kvmalloc_array(most, sizeof(*trial->live), GFP_KERNEL_ACCOUNT);
	if (!trial->live)
		return -ENOMEM;
	while (visit(trial, most, walk)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

int l4lb_conn_clients(struct l4lb_net *ln, struct l4lb_trial *trial)
{
	struct l4lb_conn_walk *walk;
	int err;

	might_sleep();
	walk = l4lb_conn_walk_open(ln);
	if (!walk)
		return -ENOMEM;
	err = draw(trial, walk);
	l4lb_conn_walk_close(walk);
	return err;
}
