/* SPDX-License-Identifier: GPL-2.0 */
/* Trials: what a scheduler would choose, without a packet. */
#ifndef _L4LB_TRIAL_H
#define _L4LB_TRIAL_H

#include "service/server.h"

struct l4lb_trial_side;

#define L4LB_TRIAL_COSTS	336	/* see cost_index() */
#define L4LB_TRIAL_TIME		(30 * HZ)
#define L4LB_TRIAL_LIVE_MAX	65536U

/**
 * struct l4lb_trial_server - a real server in a trial
 * @addr: its address
 * @port: its port, network order
 * @af: family of @addr
 * @weight: its weight
 * @chosen: how often it was chosen
 */
struct l4lb_trial_server {
	union nf_inet_addr	addr;
	__be16			port;
	u16			af;
	u32			weight;
	u32			chosen;
};

/**
 * struct l4lb_trial_client - a client that has a connection
 * @addr: its address
 * @vip: the address that it asked for
 */
struct l4lb_trial_client {
	union nf_inet_addr	addr;
	union nf_inet_addr	vip;
};

/**
 * struct l4lb_trial - a scheduler that chooses for flows that no client has
 * @key: of the service whose real servers it chooses from
 * @ops: the scheduler
 * @flows: how many flows begin, one after the other; after the trial, how many did
 *	within %L4LB_TRIAL_TIME
 * @clients: different clients among them; 0: each flow has its own
 * @lives: they are clients of connections, @live
 * @n_live: connections, see l4lb_conn_clients()
 * @live: their clients, each as often as it has connections
 * @hold: connections that are open at once, at most: the oldest ends before one
 *	more begins; 0: none ends
 * @seed: of the flows
 * @without: a real server, if @lacks; what the scheduler chooses with it is compared
 *	with what it chooses without it
 * @lacks: see @without
 * @lacking: its index
 * @active: connections are active, as those of TCP and SCTP
 * @once: connections do not last: one-packet scheduling
 * @n: real servers
 * @server: they
 * @refused: flows for which none was chosen
 * @lost: flows that chose @without
 * @moved: flows that did not, and that choose another one, or find none, if it is
 *	not there
 * @cost: histogram of the nanoseconds of a choice
 * @side: [0] with all real servers, [1] without @without
 */
struct l4lb_trial {
	struct l4lb_svc_key		key;
	const struct l4lb_sched_ops	*ops;
	u32				flows, clients, hold;
	bool				lives;
	u32				n_live;
	struct l4lb_trial_client	*live;
	u64				seed;
	struct l4lb_server_config	without;
	bool				lacks;
	unsigned int			lacking;
	bool				active, once;

	unsigned int			n;
	struct l4lb_trial_server	*server;
	u32				refused, lost, moved;
	u32				cost[L4LB_TRIAL_COSTS];
	struct l4lb_trial_side		*side[2];
};

/* Copies the real servers of @svc and makes the scheduler ready.  Configuration mutex
 * held, may sleep.  Return: 0 or -errno with a sentence.  Call end() and free() in any
 * case.
 */
int l4lb_trial_prepare(struct l4lb_trial *trial, struct l4lb_service *svc,
		       struct netlink_ext_ack *extack);
/* Lets it choose, for no flow if @lives and there are no such clients.  May sleep;
 * neither the mutex nor a lock of netlink that others wait for may be held: it takes
 * %L4LB_TRIAL_TIME.  Return: 0, or -EINTR: the caller is to die.
 */
int l4lb_trial_run(struct l4lb_trial *trial);
/* Frees the copies; what came of the trial stays.  May sleep; no lock held. */
void l4lb_trial_end(struct l4lb_trial *trial);
/* Nanoseconds that @percent of the choices took at most; those of the last step may have
 * taken longer.
 */
u32 l4lb_trial_cost(const struct l4lb_trial *trial, unsigned int percent);
/* Frees what came of it, after l4lb_trial_end(). */
void l4lb_trial_free(struct l4lb_trial *trial);

#endif /* _L4LB_TRIAL_H */
