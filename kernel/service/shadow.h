/* SPDX-License-Identifier: GPL-2.0 */
/* Shadows: a second scheduler of a service, whose choices have no effect. */
#ifndef _L4LB_SHADOW_H
#define _L4LB_SHADOW_H

#include "service/pool.h"
#include "service/server.h"

/* What a shadow has counted. */
enum l4lb_shadow_count {
	L4LB_SHADOW_SEEN,	/* choices */
	L4LB_SHADOW_AGREED,	/* in which it chose the same real server */
	L4LB_SHADOW_REFUSED,	/* in which it found none */

	L4LB_SHADOW_COUNTS
};

/**
 * struct l4lb_shadow - a second scheduler of a service
 * @ops: the scheduler, with a reference
 * @inst: its instance
 * @pool: of ghosts, in the order of the service's pool (RCU)
 * @counts: for each CPU, by enum l4lb_shadow_count
 * @zero: their sums at the last ZERO (configuration mutex)
 * @since: jiffies of that, or of its begin (likewise)
 * @id: no other shadow has or had this number; its ghosts have it in .service_id
 * @work: to free it
 */
struct l4lb_shadow {
	const struct l4lb_sched_ops	*ops;
	struct l4lb_sched_inst		*inst;
	struct l4lb_pool __rcu		*pool;
	u64 __percpu			*counts;
	u64				zero[L4LB_SHADOW_COUNTS];
	u64				since;
	u64				id;
	struct rcu_work			work;
};

static inline struct l4lb_shadow *l4lb_shadow_current(const struct l4lb_service *svc)
{
	return rcu_dereference_protected(svc->shadow,
					 lockdep_is_held(&svc->ln->lock));
}

/* Its scheduler, or NULL.  Configuration mutex held. */
static inline const struct l4lb_sched_ops *
l4lb_shadow_sched(const struct l4lb_service *svc)
{
	const struct l4lb_shadow *shadow = l4lb_shadow_current(svc);

	return shadow ? shadow->ops : NULL;
}

/* Packet path: RCU, BH off. */

/* @server was chosen for @flow: what does the shadow of its service choose?  Return: a
 * ghost with a reference; NULL: none, or there is no shadow.
 */
struct l4lb_server *l4lb_shadow_choose(const struct l4lb_server *server,
				       const struct l4lb_flow *flow);
/* @server has got a connection that would be one of @ghost, if that is not NULL. */
void l4lb_shadow_got(const struct l4lb_server *server, struct l4lb_server *ghost);
/* Both, for a packet that leaves no connection. */
void l4lb_shadow_pass(const struct l4lb_server *server, const struct l4lb_flow *flow);

/* Configuration mutex held, may sleep. */

/* A shadow for @svc with @ops, whose real servers are to be those of @servers.
 * Return: it, for set() or discard(); NULL without @ops; an ERR_PTR() with a sentence.
 */
struct l4lb_shadow *l4lb_shadow_create(const struct l4lb_service *svc,
				       const struct l4lb_sched_ops *ops,
				       const struct l4lb_pool *servers,
				       struct netlink_ext_ack *extack);
void l4lb_shadow_discard(struct l4lb_shadow *shadow);
/* Gives @svc, which has the pool of create(), the shadow; NULL: none.  Cannot fail.  The
 * caller's reference on the scheduler passes to the shadow.
 */
void l4lb_shadow_set(struct l4lb_service *svc, struct l4lb_shadow *shadow);
/* The pool of @svc has changed.  If the shadow cannot follow, it ends. */
void l4lb_shadow_follow(struct l4lb_service *svc);
/* A weight has changed, and the pool of @svc has not. */
void l4lb_shadow_reweigh(struct l4lb_service *svc);
/* Options of the service's scheduler have changed; reweigh() was called for those that
 * tables are made of.
 */
void l4lb_shadow_options(struct l4lb_service *svc);
/* Its instance, or NULL. */
struct l4lb_sched_inst *l4lb_shadow_inst(const struct l4lb_service *svc);
u64 l4lb_shadow_count(const struct l4lb_shadow *shadow, enum l4lb_shadow_count what);
void l4lb_shadow_zero(struct l4lb_service *svc);

#endif /* _L4LB_SHADOW_H */
