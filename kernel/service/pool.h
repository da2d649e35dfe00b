/* SPDX-License-Identifier: GPL-2.0 */
/* Scheduler instances and pools: a service's real servers as packets see them.
 * Configuration mutex held throughout; functions that may sleep say so.
 */
#ifndef _L4LB_POOL_H
#define _L4LB_POOL_H

#include <linux/refcount.h>

#include "service/service.h"

struct l4lb_server;

/**
 * struct l4lb_sched_inst - a scheduler at work in a service
 * @ops: the scheduler
 * @state: its memory, from init() to exit()
 * @refs: held by the service and by each of its pools
 * @set: bits of the options that the service has set for itself
 * @key: secret of the option with .key, if that is not 0
 * @file: of the option with .file, if that is not 0
 * @option: values, as in ops->options
 */
struct l4lb_sched_inst {
	const struct l4lb_sched_ops	*ops;
	void				*state;
	refcount_t			refs;
	unsigned long			set;
	siphash_key_t			key;
	struct l4lb_sched_file		*file;
	u32				option[];
};

static inline const struct l4lb_sched_ops *
l4lb_inst_ops(const struct l4lb_sched_inst *inst)
{
	return inst ? inst->ops : NULL;
}

static inline struct l4lb_pool *l4lb_pool_current(const struct l4lb_service *svc)
{
	return rcu_dereference_protected(svc->pool,
					 lockdep_is_held(&svc->ln->lock));
}

/* Its option @i as people see it: a count, too.  Configuration mutex held. */
static inline u32 l4lb_inst_option(const struct l4lb_sched_inst *inst, unsigned int i)
{
	return inst->ops->options[i].count ? inst->ops->count(inst->state, i) :
					     inst->option[i];
}

/* Return: one reference; NULL for "none"; or an ERR_PTR().  May sleep. */
struct l4lb_sched_inst *l4lb_inst_create(struct l4lb_net *ln,
					 const struct l4lb_sched_ops *ops);
void l4lb_inst_put(struct l4lb_sched_inst *inst);

/* Another reference, or NULL of NULL. */
struct l4lb_sched_file *l4lb_file_get(struct l4lb_sched_file *file);
/* The last one closes the file.  May sleep. */
void l4lb_file_put(struct l4lb_sched_file *file);

/* A pool of @n places, each of which the caller fills with l4lb_pool_put()
 * before l4lb_pool_build(); NULL without memory.  May sleep.
 */
struct l4lb_pool *l4lb_pool_new(const struct l4lb_service *svc, unsigned int n);
void l4lb_pool_put(struct l4lb_pool *pool, unsigned int i,
		   struct l4lb_server *server);
/* Return: 0, or a negative errno with @pool freed.  May sleep. */
int l4lb_pool_build(const struct l4lb_service *svc, struct l4lb_pool *pool,
		    struct l4lb_sched_inst *inst, u32 flags);
/* The same for a pool of ghosts, see ghost.c, which continues from @old, if that is not
 * NULL.  Its flags are set.  Return: 0, or -errno: then @pool is still the caller's.
 */
int l4lb_pool_build_ghosts(struct l4lb_pool *pool, struct l4lb_sched_inst *inst,
			   const struct l4lb_pool *old);
/* The next pool of @svc, with all of its real servers, or ERR_PTR(). */
struct l4lb_pool *l4lb_pool_create(const struct l4lb_service *svc,
				   struct l4lb_sched_inst *inst, u32 flags);
void l4lb_pool_publish(struct l4lb_service *svc, struct l4lb_pool *pool);
/* Frees the last pool of a service, or one of ghosts, when its readers are done. */
void l4lb_pool_retire(struct l4lb_pool *pool);
/* Build and publish the next pool after a real server was added, was removed, or
 * got another weight, or after an option with .rebuild was set.  On failure the
 * old one stays; one that was to be removed from it is then stuck.
 */
int l4lb_service_grow(struct l4lb_service *svc);
int l4lb_service_shrink(struct l4lb_service *svc, struct l4lb_server *gone);
int l4lb_service_reweigh(struct l4lb_service *svc);
/* The same, whatever has changed. */
int l4lb_service_rebuild(struct l4lb_service *svc);
void l4lb_pool_free(struct l4lb_pool *pool);	/* never published */

#endif /* _L4LB_POOL_H */
