// SPDX-License-Identifier: GPL-2.0
/*
 * Trials of schedulers.
 *
 * A scheduler of its own chooses from copies of a service's real servers, which have
 * the weights and thresholds of the originals, and no connections.  Each choice
 * adds a connection to a copy, and connections end in the order in which they
 * began, so that schedulers which look at loads are judged by what they have done
 * themselves.  No packet and no lock of the service is involved.
 *
 * The copies are ghosts, see ghost.c, and none is freed by itself: its side has a
 * reference.
 */
#include "service/trial.h"

#include <linux/mm.h>
#include <linux/netlink.h>
#include <linux/sched/signal.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "service/ghost.h"
#include "service/pool.h"

#define CHUNK		1024		/* choices without a breath, at most */
#define CHUNK_NS	(NSEC_PER_MSEC / 2)	/* likewise, their time */
#define COST_BITS	4		/* a cost is known to one part in 2^4 */

/**
 * struct l4lb_trial_side - a scheduler at work on copies of real servers
 * @inst: the scheduler
 * @pool: of @server
 * @n: real servers
 * @server: the copies
 * @open: ring of the connections' servers, in the order in which they began
 * @cost: histogram of its choices, or NULL
 */
struct l4lb_trial_side {
	struct l4lb_sched_inst	*inst;
	struct l4lb_pool	*pool;
	unsigned int		n;
	struct l4lb_server	*server;
	u32			*open;
	u32			*cost;
};

/* ---- copies ---- */

static struct l4lb_trial_side *side_new(const struct l4lb_service *svc,
					u32 hold)
{
	struct l4lb_trial_side *side = kzalloc(sizeof(*side), GFP_KERNEL_ACCOUNT);

	if (!side)
		return NULL;
	side->server = kvcalloc(svc->n_servers, sizeof(*side->server),
				GFP_KERNEL_ACCOUNT);
	if (hold)
		side->open = kvmalloc_array(hold, sizeof(*side->open),
					    GFP_KERNEL_ACCOUNT);
	if (side->server && (side->open || !hold))
		return side;
	kvfree(side->server);
	kvfree(side->open);
	kfree(side);
	return NULL;
}

/* All of @svc, or all but @but. */
static void copy_servers(struct l4lb_trial_side *side,
			 const struct l4lb_service *svc,
			 const struct l4lb_server *but)
{
	const struct l4lb_server *server;

	list_for_each_entry(server, &svc->servers, node) {
		if (server != but)
			l4lb_ghost_copy(&side->server[side->n++], server);
		if (side->n % 256 == 0)
			cond_resched();
	}
}

static void list_servers(struct l4lb_trial *trial, const struct l4lb_service *svc,
			 const struct l4lb_server *without)
{
	struct l4lb_trial_server *listed = trial->server;
	const struct l4lb_server *server;

	list_for_each_entry(server, &svc->servers, node) {
		if (server == without)
			trial->lacking = listed - trial->server;
		*listed++ = (struct l4lb_trial_server) {
			.addr	= server->sched.addr,
			.port	= server->sched.port,
			.af	= server->sched.af,
			.weight	= server->sched.weight,
		};
		if ((listed - trial->server) % 256 == 0)
			cond_resched();
	}
}

static int side_build(struct l4lb_trial_side *side,
		      const struct l4lb_service *svc,
		      const struct l4lb_sched_ops *ops)
{
	struct l4lb_pool *pool;
	unsigned int i;
	int err;

	side->inst = l4lb_inst_create(svc->ln, ops);
	if (IS_ERR(side->inst)) {
		err = PTR_ERR(side->inst);
		side->inst = NULL;
		return err;
	}
	l4lb_ghost_options(side->inst, svc->inst);
	pool = l4lb_pool_new(svc, side->n);
	if (!pool)
		return -ENOMEM;
	for (i = 0; i < side->n; i++)
		l4lb_pool_put(pool, i, &side->server[i]);
	err = l4lb_pool_build(svc, pool, side->inst, svc->flags);
	if (err)
		return err;
	l4lb_tournament_begin(pool);
	side->pool = pool;
	return 0;
}

static void side_retire(struct l4lb_trial_side *side)
{
	if (!side)
		return;
	if (side->pool)
		l4lb_pool_free(side->pool);
	l4lb_inst_put(side->inst);
	side->pool = NULL;
	side->inst = NULL;
}

static void side_free(struct l4lb_trial_side *side)
{
	if (!side)
		return;
	kvfree(side->server);
	kvfree(side->open);
	kfree(side);
}

static int add_side(struct l4lb_trial *trial, unsigned int i,
		    const struct l4lb_service *svc, const struct l4lb_server *but)
{
	trial->side[i] = side_new(svc, trial->hold);
	if (!trial->side[i])
		return -ENOMEM;
	copy_servers(trial->side[i], svc, but);
	return side_build(trial->side[i], svc, trial->ops);
}

static int add_sides(struct l4lb_trial *trial, const struct l4lb_service *svc,
		     const struct l4lb_server *without)
{
	int err;

	trial->server = kvcalloc(trial->n, sizeof(*trial->server),
				 GFP_KERNEL_ACCOUNT);
	if (!trial->server)
		return -ENOMEM;
	list_servers(trial, svc, without);
	err = add_side(trial, 0, svc, NULL);
	if (!err && without)
		err = add_side(trial, 1, svc, without);
	if (!err)
		trial->side[0]->cost = trial->cost;
	return err;
}

int l4lb_trial_prepare(struct l4lb_trial *trial, struct l4lb_service *svc,
		       struct netlink_ext_ack *extack)
{
	const struct l4lb_server *without = NULL;
	int err;

	lockdep_assert_held(&svc->ln->lock);
	if (!svc->n_servers) {
		NL_SET_ERR_MSG(extack, "trial: the service has no real servers");
		return -EINVAL;
	}
	if (trial->lacks)
		without = l4lb_server_find(svc, &trial->without);
	if (trial->lacks && !without) {
		NL_SET_ERR_MSG(extack,
			       "trial: WITHOUT is no real server of the service");
		return -EADDRNOTAVAIL;
	}
	if (trial->ops && trial->ops->open &&
	    (l4lb_inst_ops(svc->inst) != trial->ops || !svc->inst->file)) {
		NL_SET_ERR_MSG(extack,
			       "trial: the service lacks this scheduler or its file: give it both first");
		return -ENODATA;
	}
	trial->key = svc->key;
	trial->active = svc->key.protocol != IPPROTO_UDP;
	trial->once = svc->flags & IP_VS_SVC_F_ONEPACKET && !trial->active;
	trial->hold = trial->once ? 0 : min(trial->hold, trial->flows);
	trial->n = svc->n_servers;
	err = add_sides(trial, svc, without);
	if (err == -ENOMEM)
		NL_SET_ERR_MSG(extack, "trial: no memory for copies of the real servers");
	else if (err)
		NL_SET_ERR_MSG(extack,
			       "trial: the scheduler cannot use these real servers");
	return err;
}

void l4lb_trial_end(struct l4lb_trial *trial)
{
	unsigned int i;

	kvfree(trial->live);
	trial->live = NULL;
	if (!trial->side[0])
		return;
	for (i = 0; i < ARRAY_SIZE(trial->side); i++)
		side_retire(trial->side[i]);
	/* What affinity caches have forgotten refers to the copies until then. */
	rcu_barrier();
	for (i = 0; i < ARRAY_SIZE(trial->side); i++) {
		side_free(trial->side[i]);
		trial->side[i] = NULL;
	}
}

void l4lb_trial_free(struct l4lb_trial *trial)
{
	kvfree(trial->server);
}

/* ---- flows ---- */

/* What a seed decides: each has numbers of its own. */
enum {
	DRAW_PORT,
	DRAW_CLIENT,
	DRAW_VIP,
};

static u64 hash(const struct l4lb_trial *trial, u32 what, u32 i)
{
	siphash_key_t key = { { trial->seed, what } };

	return siphash_1u64(i, &key);
}

/* Clients of a service by firewall mark ask for many addresses. */
static void invent_addresses(const struct l4lb_trial *trial, u32 i, u64 client,
			     struct l4lb_flow *flow)
{
	u64 vip = trial->key.fwmark ? hash(trial, DRAW_VIP, i) : 0;

	if (flow->af == AF_INET) {
		flow->saddr.ip = htonl((u32)client);
		if (vip)
			flow->daddr.ip = htonl((u32)vip);
		return;
	}
	flow->saddr.ip6[0] = htonl(0x20010db8);		/* RFC 3849 */
	flow->saddr.ip6[2] = htonl(client >> 32);
	flow->saddr.ip6[3] = htonl((u32)client);
	if (!vip)
		return;
	flow->daddr.ip6[0] = htonl(0x20010db8);
	flow->daddr.ip6[2] = htonl(vip >> 32);
	flow->daddr.ip6[3] = htonl((u32)vip);
}

/* The @i-th flow. */
static void make_flow(const struct l4lb_trial *trial, u32 i,
		      struct l4lb_flow *flow)
{
	u64 port = hash(trial, DRAW_PORT, i);
	u32 one = i;

	if (trial->lives)
		one = reciprocal_scale(port >> 32, trial->n_live);
	else if (trial->clients)
		one = reciprocal_scale(port >> 32, trial->clients);
	*flow = (struct l4lb_flow) {
		.daddr	= trial->key.addr,
		.sport	= htons(1024 + (u16)port % (65536 - 1024)),
		.dport	= trial->key.port,
		.af	= trial->key.af,
		.proto	= trial->key.protocol ?: IPPROTO_TCP,
	};
	if (trial->lives) {
		flow->saddr = trial->live[one].addr;
		flow->daddr = trial->live[one].vip;
		return;
	}
	invent_addresses(trial, i, hash(trial, DRAW_CLIENT, one), flow);
}

/* ---- choices ---- */

/* Index of a histogram that is exact below 2^COST_BITS, and then has 2^COST_BITS
 * steps to each power of 2; the last has all that is longer than 16 ms.
 */
static unsigned int cost_index(u64 ns)
{
	unsigned int shift;

	if (ns < 1 << COST_BITS)
		return ns;
	shift = fls64(ns) - COST_BITS - 1;
	return min_t(u64, (shift << COST_BITS) + (ns >> shift),
		     L4LB_TRIAL_COSTS - 1);
}

/* The least cost of an index. */
static u32 cost_from(unsigned int i)
{
	unsigned int shift = i >> COST_BITS;

	if (shift)
		shift--;
	return (i - (shift << COST_BITS)) << shift;
}

u32 l4lb_trial_cost(const struct l4lb_trial *trial, unsigned int percent)
{
	u64 want = DIV_ROUND_UP_ULL((u64)trial->flows * percent, 100), sum = 0;
	unsigned int i;

	for (i = 0; i < L4LB_TRIAL_COSTS - 1; i++) {
		sum += trial->cost[i];
		if (sum >= want)
			break;
	}
	return cost_from(i + 1) - 1;
}

/* The @i-th flow begins.  Return: index of its server's copy, or -1. */
static int begin(const struct l4lb_trial *trial, struct l4lb_trial_side *side,
		 const struct l4lb_flow *flow, u32 i)
{
	u32 *open = trial->hold ? &side->open[i % trial->hold] : NULL;
	struct l4lb_sched_server *d;
	struct l4lb_server *server;
	u64 begun;

	if (open && i >= trial->hold && *open != U32_MAX)
		l4lb_server_unbind(&side->server[*open], false, trial->active);
	begun = ktime_get_mono_fast_ns();
	d = side->pool->ops->pick(side->pool, flow);
	if (side->cost)
		side->cost[cost_index(ktime_get_mono_fast_ns() - begun)]++;
	if (open)
		*open = U32_MAX;
	if (!d)
		return -1;
	server = l4lb_server_of(d);
	if (!trial->once) {
		refcount_inc(&server->refs);
		l4lb_server_bind(server, false, trial->active);
	}
	if (open)
		*open = server - side->server;
	return server - side->server;
}

static void choose(struct l4lb_trial *trial, u32 i)
{
	struct l4lb_flow flow;
	int with, without;

	make_flow(trial, i, &flow);
	with = begin(trial, trial->side[0], &flow, i);
	if (with < 0)
		trial->refused++;
	else
		trial->server[with].chosen++;
	if (!trial->lacks)
		return;
	without = begin(trial, trial->side[1], &flow, i);
	if (without >= (int)trial->lacking)
		without++;	/* as the other side counts them */
	if (with == (int)trial->lacking)
		trial->lost++;
	else if (with >= 0 && with != without)
		trial->moved++;
}

/* Return: the first flow of the next chunk. */
static u32 choose_some(struct l4lb_trial *trial, u32 i)
{
	u64 end = ktime_get_mono_fast_ns() + CHUNK_NS;
	u32 last = min(i + CHUNK, trial->flows);

	local_bh_disable();
	rcu_read_lock();
	do {
		choose(trial, i++);
	} while (i < last && ktime_get_mono_fast_ns() < end);
	rcu_read_unlock();
	local_bh_enable();
	return i;
}

int l4lb_trial_run(struct l4lb_trial *trial)
{
	unsigned long end = jiffies + L4LB_TRIAL_TIME;
	u32 i = 0;

	might_sleep();
	if (trial->lives && !trial->n_live)
		trial->flows = 0;
	while (i < trial->flows && time_before(jiffies, end)) {
		i = choose_some(trial, i);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	trial->flows = i;
	return 0;
}
