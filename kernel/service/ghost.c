// SPDX-License-Identifier: GPL-2.0
/*
 * Ghosts: copies of real servers.
 *
 * A scheduler that is to choose without effect needs real servers that have the weights
 * and thresholds of the originals, but loads which are the result of its own choices.
 * They are whole real servers, because schedulers with an affinity cache hold references
 * on them.
 */
#include "service/ghost.h"

#include <linux/slab.h>

#include "service/pool.h"

void l4lb_ghost_copy(struct l4lb_server *ghost, const struct l4lb_server *server)
{
	lockdep_assert_held(&server->ln->lock);
	ghost->ln = server->ln;
	ghost->available = true;
	ghost->method = server->method;
	ghost->sched.addr = server->sched.addr;
	ghost->sched.port = server->sched.port;
	ghost->sched.af = server->sched.af;
	ghost->sched.weight = server->sched.weight;
	ghost->sched.last_weight = server->sched.last_weight;
	ghost->sched.latency = READ_ONCE(server->sched.latency);
	ghost->u_thresh = server->u_thresh;
	ghost->l_thresh = server->l_thresh;
	/* Listeners are not told of it. */
	set_bit(0, &ghost->watch.noted);
	refcount_set(&ghost->refs, 1);
}

struct l4lb_server *l4lb_ghost_create(const struct l4lb_server *server)
{
	struct l4lb_server *ghost = kzalloc(sizeof(*ghost), GFP_KERNEL_ACCOUNT);

	if (!ghost)
		return NULL;
	if (l4lb_stats_init_late(&ghost->stats, false)) {
		kfree(ghost);
		return NULL;
	}
	l4lb_ghost_copy(ghost, server);
	return ghost;
}

/* Two keys may have one fingerprint. */
static bool differ(const struct l4lb_sched_inst *a, const struct l4lb_sched_inst *b)
{
	return memcmp(a->option, b->option, a->ops->n_options * sizeof(*a->option)) ||
	       memcmp(&a->key, &b->key, sizeof(a->key));
}

void l4lb_ghost_options(struct l4lb_sched_inst *inst,
			const struct l4lb_sched_inst *own)
{
	unsigned int i;

	if (!own || own->ops != inst->ops || !differ(inst, own))
		return;
	for (i = 0; i < own->ops->n_options; i++)
		WRITE_ONCE(inst->option[i], own->option[i]);
	inst->key = own->key;
	l4lb_file_put(inst->file);
	inst->file = l4lb_file_get(own->file);
	if (inst->ops->changed)
		inst->ops->changed(inst->state);
}
