// SPDX-License-Identifier: GPL-2.0
/*
 * Templates come first, because connections look for theirs, then active
 * connections, then those that are nearly over.  Each kind is a walk through the
 * whole table: nothing is remembered but a place in it.
 */
#include "sync/tour.h"

enum {
	TEMPLATES,
	ACTIVE,
	OTHERS,
	PASSES,
};

void l4lb_sync_tour_begin(struct l4lb_sync_tour *tour, struct l4lb_net *ln)
{
	*tour = (struct l4lb_sync_tour){ .walk = l4lb_conn_walk_open(ln) };
}

void l4lb_sync_tour_end(struct l4lb_sync_tour *tour)
{
	if (tour->walk)
		l4lb_conn_walk_close(tour->walk);
	tour->walk = NULL;
}

static u8 pass_of(const struct l4lb_conn *conn)
{
	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return TEMPLATES;
	return l4lb_conn_test(conn, L4LB_CONN_INACTIVE) ? OTHERS : ACTIVE;
}

struct l4lb_conn *l4lb_sync_tour_next(struct l4lb_sync_tour *tour,
				      unsigned int *visits)
{
	struct l4lb_conn *conn;

	while (*visits) {
		--*visits;
		conn = l4lb_conn_walk_next(tour->walk);
		if (conn && pass_of(conn) == tour->pass)
			return conn;
		if (conn)
			continue;
		if (++tour->pass == PASSES) {
			tour->over = true;
			return NULL;
		}
		l4lb_conn_walk_rewind(tour->walk);
	}
	return NULL;
}
