/* SPDX-License-Identifier: GPL-2.0 */
/* Per-service overrides of namespace settings; see l4lb.h. */
#ifndef _L4LB_POLICY_H
#define _L4LB_POLICY_H

#include <linux/netfilter.h>
#include <linux/types.h>

#include "l4lb.h"

/**
 * struct l4lb_snat_range - addresses that real servers see as their clients
 * @first: address; the bytes after one of IPv4 are 0
 * @last: likewise, not before @first
 * @af: their family; 0: there are none, and all else is 0
 */
struct l4lb_snat_range {
	union nf_inet_addr	first;
	union nf_inet_addr	last;
	u32			af;
};

/**
 * struct l4lb_policy - settings of a service that family IPVS does not have
 * @tcp: seconds an established connection lives without packets
 * @tcp_fin: likewise, in FIN_WAIT
 * @udp: likewise, a UDP flow
 * @sctp: likewise, an established association
 * @on_idle: L4LB_IDLE_*: what happens when an established connection expires
 * @on_loss: L4LB_LOSS_*: what happens to connections of a removed real server
 * @on_drain: L4LB_DRAIN_*: what happens to UDP flows and persistent clients of
 *	a real server with weight 0
 * @guard: L4LB_GUARD_*: what happens to packets to its address that match no
 *	service
 * @fast_path: L4LB_FAST_PATH_*: may its packets bypass the stack
 * @priority: L4LB_PRIORITY_*: priority of replies
 * @sync: L4LB_SERVICE_SYNC_*: what other directors are told about
 * @log: L4LB_SERVICE_LOG_*: is the end of each connection told
 * @latency: L4LB_SERVICE_LATENCY_*: is it measured how long real servers take
 * @conn_state: L4LB_SERVICE_STATE_*: when does a connection get its entry
 * @ramp: seconds in which a new real server gets its share
 * @limit_rate: new connections a second at most
 * @limit_burst: of those that may come at once; 0: a tenth of a second's
 * @limit_conns: connections at most
 * @limit_reply: L4LB_LIMIT_*: what the client of one too many gets
 * @las_bytes: bytes at which bands end, see L4LB_LAS_BYTES
 * @snat: of NAT, the clients that real servers see, see snat.c
 *
 * 0 is the default of each: the namespace's setting, if there is one.  The
 * packet path uses READ_ONCE(); a change applies from the next packet.
 */
struct l4lb_policy {
	u32	tcp;
	u32	tcp_fin;
	u32	udp;
	u32	sctp;
	u32	on_idle;
	u32	on_loss;
	u32	on_drain;
	u32	guard;
	u32	fast_path;
	u32	priority;
	u32	sync;
	u32	log;
	u32	latency;
	u32	conn_state;
	u32	ramp;
	u32	limit_rate;
	u32	limit_burst;
	u32	limit_conns;
	u32	limit_reply;
	u32	las_bytes[L4LB_BANDS - 1];
	struct l4lb_snat_range snat;
};

/* What the connections of a service need more memory for. */
enum {
	L4LB_USE_SERVED	= 1 << 0,	/* priority: bytes of replies */
	L4LB_USE_LOGGED	= 1 << 1,	/* log: when it began */
	L4LB_USE_COPY	= 1 << 2,	/* of a connection: it began elsewhere */
	L4LB_USE_SHADOWED = 1 << 3,	/* shadow: where it would have gone */
	L4LB_USE_LATENCY = 1 << 4,	/* latency: what is waited for, and since when */
	L4LB_USE_CALL	= 1 << 5,	/* of templates: persistence engine sip */
	L4LB_USE_HELPER	= 1 << 6,	/* nothing; conntrack is held, see config/helper.c */
	L4LB_USE_SNAT	= 1 << 7,	/* snat: the address and port its server sees */
	L4LB_USE_CLOCK	= 1 << 8,	/* of a connection: it is known exactly when it began */
};

/**
 * struct l4lb_claim - whose a service is; packets do not care
 * @owner: a name of at most 15 bytes, padded with zeros; "": nobody's
 * @protected: it is not removed, but with its namespace
 *
 * Configuration mutex.
 */
struct l4lb_claim {
	char	owner[L4LB_OWNER_LEN];
	bool	protected;
};

#endif /* _L4LB_POLICY_H */
