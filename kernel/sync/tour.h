/* SPDX-License-Identifier: GPL-2.0 */
/* Walking all connections in the order in which another director needs them. */
#ifndef _L4LB_SYNC_TOUR_H
#define _L4LB_SYNC_TOUR_H

#include "conn/walk.h"

/**
 * struct l4lb_sync_tour - a place in the table
 * @walk: of the table; NULL: there is no tour
 * @pass: what is walked now
 * @over: all were walked
 */
struct l4lb_sync_tour {
	struct l4lb_conn_walk	*walk;
	u8			pass;
	bool			over;
};

/* Process context.  Without memory, there is no tour. */
void l4lb_sync_tour_begin(struct l4lb_sync_tour *tour, struct l4lb_net *ln);
/* If there is one. */
void l4lb_sync_tour_end(struct l4lb_sync_tour *tour);

/* Between l4lb_conn_walk_start() and l4lb_conn_walk_stop() of @tour->walk: */

/* The next connection, after at most @visits others, which are subtracted; NULL:
 * there was none among them, or @tour->over.
 */
struct l4lb_conn *l4lb_sync_tour_next(struct l4lb_sync_tour *tour,
				      unsigned int *visits);

#endif /* _L4LB_SYNC_TOUR_H */
