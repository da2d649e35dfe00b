// SPDX-License-Identifier: GPL-2.0
/*
 * Virtual services.
 *
 * Everything the packet path reads of a service is either a single word or
 * the pool: an immutable generation of its real servers, see pool.c.
 */
#include "service/service.h"

#include "service/find.h"
#include "service/guard.h"
#include "service/las.h"
#include "service/latency.h"
#include "service/limit.h"
#include "service/pool.h"
#include "service/range.h"
#include "service/server.h"
#include "service/server_table.h"
#include "service/shadow.h"
#include "service/snat.h"

#include <linux/bitops.h>
#include <linux/jhash.h>
#include <linux/netlink.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/ipv6.h>

/* Only the administrator adds to this table, so no client can fill one of its
 * chains: a quick hash of a few words will do.
 */
static __always_inline u32 key_hash(const void *data, u32 len, u32 seed)
{
	const struct l4lb_svc_key *key = data;
	const union nf_inet_addr *addr = &key->addr;
	u32 first = addr->all[0];

	/* Not a plain sum or XOR: addresses are often numbered by a plan, the
	 * same number in two words.
	 */
	if (key->af == AF_INET6)
		first += ror32(addr->all[1] * 0x9e3779b1, 9) +
			 ror32(addr->all[2] * 0x85ebca6b, 18) +
			 addr->all[3] * 0xc2b2ae3d;
	return jhash_3words(first, key->fwmark,
			    (u32)key->protocol << 16 | (__force u16)key->port,
			    seed);
}

static __always_inline u32 service_hash(const void *data, u32 len, u32 seed)
{
	const struct l4lb_service *svc = data;

	return key_hash(&svc->key, len, seed);
}

static __always_inline bool keys_differ(const struct l4lb_svc_key *a,
					const struct l4lb_svc_key *b)
{
	return a->port != b->port || a->protocol != b->protocol ||
	       a->af != b->af || a->fwmark != b->fwmark ||
	       !ipv6_addr_equal(&a->addr.in6, &b->addr.in6);
}

static __always_inline int service_differs(struct rhashtable_compare_arg *arg,
					   const void *obj)
{
	const struct l4lb_service *svc = obj;

	return keys_differ(arg->key, &svc->key);
}

static const struct rhashtable_params svc_params = {
	.key_len	= sizeof(struct l4lb_svc_key),
	.key_offset	= offsetof(struct l4lb_service, key),
	.head_offset	= offsetof(struct l4lb_service, node),
	.hashfn		= key_hash,
	.obj_hashfn	= service_hash,
	.obj_cmpfn	= service_differs,
	.nelem_hint	= 1,
	.automatic_shrinking = true,
};

/* ---- packet path ---- */

static struct l4lb_service __rcu **near_key(struct l4lb_net *ln,
					    const struct l4lb_svc_key *key)
{
	return l4lb_service_place(ln, &key->addr, key->fwmark, key->protocol, key->port);
}

static struct l4lb_service *lookup_live(struct l4lb_net *ln,
					const struct l4lb_svc_key *key)
{
	struct l4lb_service *svc = rcu_dereference(*near_key(ln, key));

	if (!svc || keys_differ(key, &svc->key))
		svc = rhashtable_lookup(&ln->svc_table, key, svc_params);
	return svc && l4lb_service_is_live(svc) ? svc : NULL;
}

struct l4lb_service *l4lb_service_of_mark(struct l4lb_net *ln, u32 fwmark, u8 af)
{
	const struct l4lb_svc_key key = { .fwmark = fwmark, .af = af };

	return lookup_live(ln, &key);
}

struct l4lb_service *l4lb_service_far(struct l4lb_net *ln, const struct l4lb_flow *flow)
{
	struct l4lb_svc_key key = {
		.addr		= flow->daddr,
		.af		= flow->af,
		.protocol	= flow->proto,
		.port		= flow->dport,
	};
	struct l4lb_service *svc = rhashtable_lookup(&ln->svc_table, &key, svc_params);

	if (svc && l4lb_service_is_live(svc))
		return svc;
	if (!READ_ONCE(ln->n_any_port))
		return NULL;
	key.port = 0;
	svc = lookup_live(ln, &key);
	if (svc || !READ_ONCE(ln->ranges))
		return svc;
	return l4lb_range_lookup(ln, flow);
}

struct l4lb_server *l4lb_service_maps(struct l4lb_service *svc,
				      const struct l4lb_flow *flow)
{
	const struct l4lb_pool *pool = rcu_dereference(svc->pool);
	struct l4lb_sched_server *d;

	/* Of a service that a batch is about to enlist, its real servers come first. */
	if (!pool || !pool->ops || !pool->ops->maps)
		return NULL;
	local_bh_disable();
	d = pool->ops->pick(pool, flow);
	local_bh_enable();
	/* Its clients come to a newcomer one by one, as time goes. */
	if (d && pool->ramp && READ_ONCE(l4lb_server_of(d)->ramp.phase))
		return NULL;
	return d ? l4lb_server_of(d) : NULL;
}

/* Is there any real server for a new flow?  RCU.
 *
 * Where one was found is remembered, and so is, until the next jiffy or change,
 * that there was none: clients choose how often it is asked.
 */
bool l4lb_service_usable(struct l4lb_service *svc)
{
	const struct l4lb_pool *pool = rcu_dereference(svc->pool);
	unsigned int i = READ_ONCE(svc->usable);
	unsigned long now = jiffies;

	if (!pool || !pool->ops)
		return false;
	if (i < pool->n && l4lb_server_usable(pool->server[i]))
		return true;
	if (READ_ONCE(svc->none_usable) == now)
		return false;
	for (i = 0; i < pool->n; i++) {
		if (l4lb_server_usable(pool->server[i])) {
			WRITE_ONCE(svc->usable, i);
			return true;
		}
	}
	WRITE_ONCE(svc->none_usable, now);
	return false;
}

/* ---- control path ---- */

struct l4lb_service *l4lb_service_find(struct l4lb_net *ln,
				       const struct l4lb_svc_key *key)
{
	lockdep_assert_held(&ln->lock);
	if (l4lb_key_is_range(key))
		return l4lb_range_find(ln, key);
	return rhashtable_lookup_fast(&ln->svc_table, key, svc_params);
}

/* "none" without a scheduler.  RCU or configuration mutex. */
const char *l4lb_service_sched_name(const struct l4lb_service *svc)
{
	const struct l4lb_pool *pool;

	pool = rcu_dereference_check(svc->pool,
				     lockdep_is_held(&svc->ln->lock));
	return pool->ops ? pool->ops->name : "none";
}

/* From here on packets find a new service: publish its pool before. */
void l4lb_service_apply(struct l4lb_service *svc,
			const struct l4lb_svc_config *cfg)
{
	u32 changed = svc->flags ^ cfg->flags;
	bool sip = l4lb_service_has_sip(svc);
	struct l4lb_server *server;

	lockdep_assert_held(&svc->ln->lock);
	WRITE_ONCE(svc->timeout, cfg->timeout);
	WRITE_ONCE(svc->netmask, cfg->netmask);
	WRITE_ONCE(svc->uses, (svc->uses & ~L4LB_USE_CALL) |
		   (cfg->sip ? L4LB_USE_CALL : 0));
	/* Pairs with lookup_live(). */
	smp_store_release(&svc->flags, cfg->flags | IP_VS_SVC_F_HASHED);
	if (sip == cfg->sip &&
	    !(changed & (IP_VS_SVC_F_ONEPACKET | IP_VS_SVC_F_PERSISTENT)))
		return;
	list_for_each_entry(server, &svc->servers, node) {
		l4lb_server_table_update(server);
		cond_resched();
	}
}

static void service_free(struct l4lb_service *svc)
{
	l4lb_las_free(svc);
	l4lb_limit_free(svc);
	l4lb_snat_free(svc);
	l4lb_stats_destroy(&svc->stats);
	kfree(svc);
}

static void service_free_work(struct work_struct *work)
{
	service_free(container_of(to_rcu_work(work), struct l4lb_service,
				  work));
}

/**
 * l4lb_service_create() - create a service without a pool, not in the table yet
 * @ln: namespace
 * @key: its identity
 * @ops: its scheduler, NULL for "none"
 *
 * Return: the service, for l4lb_service_discard() or, with a pool,
 * l4lb_service_enlist(); or an ERR_PTR().
 */
struct l4lb_service *l4lb_service_create(struct l4lb_net *ln,
					 const struct l4lb_svc_key *key,
					 const struct l4lb_sched_ops *ops)
{
	struct l4lb_service *svc;
	int err;

	svc = kzalloc(sizeof(*svc), GFP_KERNEL_ACCOUNT);
	if (!svc)
		return ERR_PTR(-ENOMEM);
	svc->key = *key;
	svc->ln = ln;
	svc->id = ++ln->last_id;
	svc->fresh = jiffies;
	l4lb_service_look(svc);
	INIT_LIST_HEAD(&svc->servers);
	INIT_LIST_HEAD(&svc->joining);
	INIT_RCU_WORK(&svc->work, service_free_work);
	err = l4lb_stats_init(&svc->stats,
			      !READ_ONCE(ln->sysctl.run_estimation));
	if (err)
		goto err_free;
	svc->inst = l4lb_inst_create(ln, ops);
	if (IS_ERR(svc->inst)) {
		err = PTR_ERR(svc->inst);
		goto err_stats;
	}
	return svc;

err_stats:
	l4lb_stats_destroy(&svc->stats);
err_free:
	kfree(svc);
	return ERR_PTR(err);
}

/* A scheduler may fail for other reasons than memory. */
void l4lb_service_say_failed(int err, struct netlink_ext_ack *extack)
{
	if (err == -ENOMEM)
		NL_SET_ERR_MSG(extack, "no memory for the service or its scheduler");
	else
		NL_SET_ERR_MSG(extack, "the scheduler cannot work for this service");
}

/**
 * l4lb_service_sched() - the scheduler a service is bound to
 * @svc: the service
 *
 * Context: configuration mutex held; valid as long as it is.
 * Return: the scheduler, NULL for "none".
 */
const struct l4lb_sched_ops *l4lb_service_sched(const struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	return l4lb_inst_ops(svc->inst);
}

/**
 * l4lb_service_options() - current values of a service's scheduler options
 * @svc: the service
 *
 * Context: configuration mutex held; valid as long as it is.
 * Return: the values, in the order of l4lb_sched_ops.options; NULL for "none".
 */
const u32 *l4lb_service_options(const struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	return svc->inst ? svc->inst->option : NULL;
}

/* One of them as people see it: a count, too.  Its scheduler is not "none". */
u32 l4lb_service_option(const struct l4lb_service *svc, unsigned int i)
{
	lockdep_assert_held(&svc->ln->lock);
	return l4lb_inst_option(svc->inst, i);
}

/* Of the scheduler's file; empty without one. */
const char *l4lb_service_path(const struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	return svc->inst && svc->inst->file ? svc->inst->file->path : "";
}

/* The counters of a service and of its real servers start again from 0. */
void l4lb_service_zero(struct l4lb_service *svc)
{
	struct l4lb_server *server;

	lockdep_assert_held(&svc->ln->lock);
	l4lb_stats_zero(&svc->stats);
	l4lb_las_zero(svc);
	l4lb_limit_zero(svc);
	l4lb_shadow_zero(svc);
	list_for_each_entry(server, &svc->servers, node) {
		l4lb_stats_zero(&server->stats);
		l4lb_latency_zero(server);
		cond_resched();
	}
}

/* Adds @svc to the table by identity: 0 or a negative errno.  Packets find it once its
 * flags are set, see l4lb_service_apply(), and one with a range once that is published.
 */
int l4lb_service_table_add(struct l4lb_service *svc, struct netlink_ext_ack *extack)
{
	struct l4lb_service __rcu **at = near_key(svc->ln, &svc->key);
	int err;

	lockdep_assert_held(&svc->ln->lock);
	if (l4lb_key_is_range(&svc->key))
		return l4lb_range_add(svc, extack);
	err = rhashtable_insert_fast(&svc->ln->svc_table, &svc->node,
				     svc_params);
	if (err)
		NL_SET_ERR_MSG(extack, "no memory for the table of services");
	/* It is not taken from another one, which would not get it back. */
	if (!err && !rcu_access_pointer(*at))
		rcu_assign_pointer(*at, svc);
	return err;
}

void l4lb_service_table_del(struct l4lb_service *svc)
{
	struct l4lb_service __rcu **at = near_key(svc->ln, &svc->key);

	lockdep_assert_held(&svc->ln->lock);
	if (l4lb_key_is_range(&svc->key)) {
		l4lb_range_del(svc);
		return;
	}
	if (rcu_access_pointer(*at) == svc)
		RCU_INIT_POINTER(*at, NULL);
	rhashtable_remove_fast(&svc->ln->svc_table, &svc->node, svc_params);
}

/* Tables of services and guards of a new namespace. */
int l4lb_service_net_init(struct l4lb_net *ln)
{
	int err;

	INIT_LIST_HEAD(&ln->services);
	err = rhashtable_init(&ln->svc_table, &svc_params);
	if (err)
		return err;
	err = l4lb_guard_net_init(ln);
	if (err)
		rhashtable_destroy(&ln->svc_table);
	return err;
}

/* No reader and no service is left. */
void l4lb_service_net_exit(struct l4lb_net *ln)
{
	l4lb_guard_net_exit(ln);
	l4lb_ranges_free(ln);
	rhashtable_destroy(&ln->svc_table);
}
