/* SPDX-License-Identifier: GPL-2.0 */
/* Ghosts: copies of real servers, for schedulers that choose without effect: those of
 * trials and shadows.
 */
#ifndef _L4LB_GHOST_H
#define _L4LB_GHOST_H

#include "service/server.h"

struct l4lb_sched_inst;

/* Makes @ghost, which is all zeros, a copy of @server without its connections.
 * Configuration mutex held.
 */
void l4lb_ghost_copy(struct l4lb_server *ghost, const struct l4lb_server *server);
/* A copy with counters, and one reference on it; NULL without memory.  Likewise, and may
 * sleep.
 */
struct l4lb_server *l4lb_ghost_create(const struct l4lb_server *server);

/* The options of a ghosts' scheduler: those of @own, if it is at work in the service
 * itself; otherwise they stay.  Likewise.
 */
void l4lb_ghost_options(struct l4lb_sched_inst *inst,
			const struct l4lb_sched_inst *own);

#endif /* _L4LB_GHOST_H */
