/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* Netlink family L4LB: the range and the policy of a service, its shadow, and the
 * latency of its real servers.  Part of l4lb.h, which
 * includes it.
 */
#ifndef _L4LB_POLICY_ABI_H
#define _L4LB_POLICY_ABI_H

/* In SERVICE, instead of ADDR and PORT: all addresses with the prefix, all ports from PORT to
 * LAST_PORT.  The number is out of the way of IPVS_SVC_ATTR_*.
 */
#define L4LB_SVC_ATTR_RANGE	32	/* nest: enum l4lb_range_attr */

enum l4lb_range_attr {
	L4LB_RANGE_ATTR_UNSPEC,
	L4LB_RANGE_ATTR_ADDR,	/* address; the bits after the prefix are 0 */
	L4LB_RANGE_ATTR_PREFIX_LEN, /* u8: 1 to 32 (IPv4) or 128 (IPv6) */
	L4LB_RANGE_ATTR_PORT,	/* be16, not 0 */
	L4LB_RANGE_ATTR_LAST_PORT, /* be16 */

	__L4LB_RANGE_ATTR_MAX,
	L4LB_RANGE_ATTR_MAX = __L4LB_RANGE_ATTR_MAX - 1
};

/* When an established TCP connection or SCTP association expires. */
enum l4lb_on_idle {
	L4LB_IDLE_FORGET,	/* silently */
	L4LB_IDLE_RESET,	/* client and server get a RST or ABORT */

	__L4LB_IDLE_MAX,
	L4LB_IDLE_MAX = __L4LB_IDLE_MAX - 1
};

/* When a client sends to a real server that was removed. */
enum l4lb_on_loss {
	L4LB_LOSS_DEFAULT,	/* as sysctl expire_nodest_conn says */
	L4LB_LOSS_KEEP,		/* drop the packet: the server may come back */
	L4LB_LOSS_MOVE,		/* UDP goes to another server, others: RESET */
	L4LB_LOSS_RESET,	/* RST or ABORT to both, ICMP for UDP */

	__L4LB_LOSS_MAX,
	L4LB_LOSS_MAX = __L4LB_LOSS_MAX - 1
};

/* While a real server has weight 0. */
enum l4lb_on_drain {
	L4LB_DRAIN_DEFAULT,	/* as sysctl expire_quiescent_template says */
	L4LB_DRAIN_KEEP,	/* UDP flows and persistent clients stay */
	L4LB_DRAIN_MOVE,	/* they move to another one, if there is one */

	__L4LB_DRAIN_MAX,
	L4LB_DRAIN_MAX = __L4LB_DRAIN_MAX - 1
};

/* Packets from outside to the service's address that would open a TCP, UDP or
 * SCTP flow, but match no service.  If several services have this address, the
 * strictest setting applies.
 */
enum l4lb_guard {
	L4LB_GUARD_OFF,		/* they reach this host's programs */
	L4LB_GUARD_REJECT,	/* RST, port unreachable, ABORT */
	L4LB_GUARD_DROP,	/* dropped silently */

	__L4LB_GUARD_MAX,
	L4LB_GUARD_MAX = __L4LB_GUARD_MAX - 1
};

/* May packets of established flows be forwarded at their device's ingress,
 * where the rest of the stack does not see them?
 */
enum l4lb_fast_path {
	L4LB_FAST_PATH_DEFAULT,	/* as sysctl fast_path says */
	L4LB_FAST_PATH_OFF,
	L4LB_FAST_PATH_ON,
	L4LB_FAST_PATH_NEW,	/* first packets of flows, too */

	__L4LB_FAST_PATH_MAX,
	L4LB_FAST_PATH_MAX = __L4LB_FAST_PATH_MAX - 1
};

/* The band of replies through NAT, for a queueing discipline on their way out.
 * skb->priority is the band's number; the lowest is to be served first.
 */
enum l4lb_priority {
	L4LB_PRIORITY_NONE,	/* no band: priority as in forwarding */
	L4LB_PRIORITY_LAS,	/* least attained service: by the bytes of
				 * replies that their connection has had
				 */
	__L4LB_PRIORITY_MAX,
	L4LB_PRIORITY_MAX = __L4LB_PRIORITY_MAX - 1
};

/* What other directors are told about, see GET_SYNC.  Exceptions: connections that
 * the scheduler would not give to their real server now, if it is one that hashes,
 * and templates.
 */
enum l4lb_service_sync {
	L4LB_SERVICE_SYNC_ALL,	/* connections and templates */
	L4LB_SERVICE_SYNC_OFF,
	L4LB_SERVICE_SYNC_TEMPLATES,
	L4LB_SERVICE_SYNC_EXCEPTIONS,

	__L4LB_SERVICE_SYNC_MAX,
	L4LB_SERVICE_SYNC_MAX = __L4LB_SERVICE_SYNC_MAX - 1
};

/* Do connections that begin now have a record when they end, see LOG_CONNS? */
enum l4lb_service_log {
	L4LB_SERVICE_LOG_OFF,
	L4LB_SERVICE_LOG_ON,

	__L4LB_SERVICE_LOG_MAX,
	L4LB_SERVICE_LOG_MAX = __L4LB_SERVICE_LOG_MAX - 1
};

/* Is it measured how long real servers take, see GET_LATENCY?  For connections that
 * begin from now on, of those with NAT.
 */
enum l4lb_service_latency {
	L4LB_SERVICE_LATENCY_OFF,
	L4LB_SERVICE_LATENCY_ON,

	__L4LB_SERVICE_LATENCY_MAX,
	L4LB_SERVICE_LATENCY_MAX = __L4LB_SERVICE_LATENCY_MAX - 1
};

/* When does a connection of TCP or SCTP get its entry in the table?  LAZY has no effect for
 * a flow while its service is persistent, has a scheduler that does not hash, or has a real
 * server with an upper threshold; while sysctl conntrack is on; if its client is this host,
 * or its real server starts slowly; and, with NAT, while another service has its real
 * server's address and port, too.
 */
enum l4lb_service_state {
	L4LB_SERVICE_STATE_EAGER,	/* with its first packet */
	L4LB_SERVICE_STATE_LAZY,	/* with the first packet that follows its handshake:
					 * NAT: of its real server, others: of its client
					 */
	__L4LB_SERVICE_STATE_MAX,
	L4LB_SERVICE_STATE_MAX = __L4LB_SERVICE_STATE_MAX - 1
};

/* What the client of a new connection beyond LIMIT_RATE or LIMIT_CONNS gets. */
enum l4lb_limit_reply {
	L4LB_LIMIT_DROP,	/* nothing: it tries again */
	L4LB_LIMIT_RESET,	/* RST, port unreachable, ABORT */

	__L4LB_LIMIT_REPLY_MAX,
	L4LB_LIMIT_REPLY_MAX = __L4LB_LIMIT_REPLY_MAX - 1
};

/* Of a connection with NAT, what its real server sees as its client: one of these
 * addresses of this host, and a port from 1024 on that is not in sysctl
 * ip_local_reserved_ports.  For connections that begin from now on.
 */
enum l4lb_snat_attr {
	L4LB_SNAT_ATTR_UNSPEC,
	L4LB_SNAT_ATTR_FIRST,	/* address of the service's family */
	L4LB_SNAT_ATTR_LAST,	/* likewise; L4LB_SNAT_MAX addresses in all */

	__L4LB_SNAT_ATTR_MAX,
	L4LB_SNAT_ATTR_MAX = __L4LB_SNAT_ATTR_MAX - 1
};

#define L4LB_SNAT_MAX		256
#define L4LB_RAMP_MAX		86400
#define L4LB_LIMIT_RATE_MAX	10000000
#define L4LB_BANDS	4

/* Default ends of the LAS bands, in bytes. */
#define L4LB_LAS_BYTES	{ 16 << 10, 128 << 10, 1 << 20 }

/* All u32, but for SNAT; 0 is the default.  Timeouts: seconds that a connection lives without
 * packets; 0: the namespace's timeout (IPVS_CMD_SET_CONFIG; SCTP: 900).
 * LAS_BYTES_*: ends of bands 0 to 2, increasing; 0: that band has no end;
 * all three 0: L4LB_LAS_BYTES.
 */
enum l4lb_policy_attr {
	L4LB_POLICY_ATTR_UNSPEC,
	L4LB_POLICY_ATTR_TIMEOUT_TCP,	/* ESTABLISHED */
	L4LB_POLICY_ATTR_TIMEOUT_TCP_FIN, /* FIN_WAIT */
	L4LB_POLICY_ATTR_TIMEOUT_UDP,
	L4LB_POLICY_ATTR_TIMEOUT_SCTP,	/* ESTABLISHED */
	L4LB_POLICY_ATTR_ON_IDLE,	/* enum l4lb_on_idle */
	L4LB_POLICY_ATTR_ON_LOSS,	/* enum l4lb_on_loss */
	L4LB_POLICY_ATTR_ON_DRAIN,	/* enum l4lb_on_drain */
	L4LB_POLICY_ATTR_GUARD,		/* enum l4lb_guard */
	L4LB_POLICY_ATTR_FAST_PATH,	/* enum l4lb_fast_path */
	L4LB_POLICY_ATTR_PRIORITY,	/* enum l4lb_priority */
	L4LB_POLICY_ATTR_LAS_BYTES_0,
	L4LB_POLICY_ATTR_LAS_BYTES_1,
	L4LB_POLICY_ATTR_LAS_BYTES_2,
	L4LB_POLICY_ATTR_SYNC,		/* enum l4lb_service_sync */
	L4LB_POLICY_ATTR_LOG,		/* enum l4lb_service_log */
	L4LB_POLICY_ATTR_RAMP,		/* seconds, to L4LB_RAMP_MAX */
	L4LB_POLICY_ATTR_LIMIT_RATE,	/* a second, to L4LB_LIMIT_RATE_MAX */
	L4LB_POLICY_ATTR_LIMIT_BURST,	/* likewise; 0: a tenth of the rate */
	L4LB_POLICY_ATTR_LIMIT_CONNS,	/* to 2^31-1 */
	L4LB_POLICY_ATTR_LIMIT_REPLY,	/* enum l4lb_limit_reply */
	L4LB_POLICY_ATTR_LATENCY,	/* enum l4lb_service_latency */
	L4LB_POLICY_ATTR_CONN_STATE,	/* enum l4lb_service_state; LAZY excludes LATENCY,
					 * LIMIT_RATE, LIMIT_CONNS and SNAT
					 */
	L4LB_POLICY_ATTR_SNAT,		/* nest: enum l4lb_snat_attr; empty: none */

	__L4LB_POLICY_ATTR_MAX,
	L4LB_POLICY_ATTR_MAX = __L4LB_POLICY_ATTR_MAX - 1
};

/* Of the namespace, as in IPVS_CMD_SET_CONFIG.  All u32: seconds; 0: stays as it is. */
enum l4lb_timeouts_attr {
	L4LB_TIMEOUTS_ATTR_UNSPEC,
	L4LB_TIMEOUTS_ATTR_TCP,		/* ESTABLISHED */
	L4LB_TIMEOUTS_ATTR_TCP_FIN,	/* FIN_WAIT */
	L4LB_TIMEOUTS_ATTR_UDP,

	__L4LB_TIMEOUTS_ATTR_MAX,
	L4LB_TIMEOUTS_ATTR_MAX = __L4LB_TIMEOUTS_ATTR_MAX - 1
};

/* Counters since it began or the last ZERO. */
enum l4lb_shadow_attr {
	L4LB_SHADOW_ATTR_UNSPEC,
	L4LB_SHADOW_ATTR_SCHEDULER, /* string: its name */
	L4LB_SHADOW_ATTR_AGE,	/* u64: milliseconds since then */
	L4LB_SHADOW_ATTR_SEEN,	/* u64: choices, of connections, templates and
				 * packets of a one-packet service
				 */
	L4LB_SHADOW_ATTR_AGREED, /* u64: those in which it chose the same */
	L4LB_SHADOW_ATTR_REFUSED, /* u64: those in which it found no server */
	L4LB_SHADOW_ATTR_SERVER, /* nest: enum l4lb_shadow_server_attr */
	L4LB_SHADOW_ATTR_PAD,
	/* Once for each option of its scheduler that is a count: NAME, VALUE, WHAT, COUNT. */
	L4LB_SHADOW_ATTR_OPTION, /* nest: enum l4lb_option_attr */

	__L4LB_SHADOW_ATTR_MAX,
	L4LB_SHADOW_ATTR_MAX = __L4LB_SHADOW_ATTR_MAX - 1
};

/* A real server: what it would have got, and what it has got meanwhile. */
enum l4lb_shadow_server_attr {
	L4LB_SHADOW_SERVER_ATTR_UNSPEC,
	L4LB_SHADOW_SERVER_ATTR_ADDR,	/* address */
	L4LB_SHADOW_SERVER_ATTR_PORT,	/* be16 */
	L4LB_SHADOW_SERVER_ATTR_AF,	/* u16 */
	L4LB_SHADOW_SERVER_ATTR_WEIGHT,	/* u32 */
	L4LB_SHADOW_SERVER_ATTR_CONNS,	/* u64: connections from the shadow */
	L4LB_SHADOW_SERVER_ATTR_ACTIVE_CONNS, /* u32: active ones of them now */
	L4LB_SHADOW_SERVER_ATTR_INACT_CONNS, /* u32: the others */
	L4LB_SHADOW_SERVER_ATTR_REAL_CONNS, /* u64: connections that it got, of
					     * those that the shadow was asked about
					     */
	L4LB_SHADOW_SERVER_ATTR_REAL_ACTIVE_CONNS, /* u32: all that it has now */
	L4LB_SHADOW_SERVER_ATTR_REAL_INACT_CONNS, /* u32 */
	L4LB_SHADOW_SERVER_ATTR_PAD,

	__L4LB_SHADOW_SERVER_ATTR_MAX,
	L4LB_SHADOW_SERVER_ATTR_MAX = __L4LB_SHADOW_SERVER_ATTR_MAX - 1
};

/* Bucket 0 is for durations below a microsecond, bucket N for those of 2^(N-1) to below
 * 2^N microseconds; the last has no end.
 */
#define L4LB_LATENCY_BUCKETS	28

/* A real server; either kind is absent if nothing of it was counted. */
enum l4lb_latency_attr {
	L4LB_LATENCY_ATTR_UNSPEC,
	L4LB_LATENCY_ATTR_ADDR,		/* address */
	L4LB_LATENCY_ATTR_PORT,		/* be16 */
	L4LB_LATENCY_ATTR_AF,		/* u16 */
	L4LB_LATENCY_ATTR_HANDSHAKE,	/* nest: enum l4lb_latency_kind_attr; from a
					 * SYN or INIT to its answer
					 */
	L4LB_LATENCY_ATTR_ANSWER,	/* likewise; from the client's first payload
					 * to the first that comes back
					 */

	__L4LB_LATENCY_ATTR_MAX,
	L4LB_LATENCY_ATTR_MAX = __L4LB_LATENCY_ATTR_MAX - 1
};

/* Since the first connection or the last ZERO. */
enum l4lb_latency_kind_attr {
	L4LB_LATENCY_KIND_ATTR_UNSPEC,
	L4LB_LATENCY_KIND_ATTR_BUCKETS,	/* binary: L4LB_LATENCY_BUCKETS u64, answers
					 * by their duration
					 */
	L4LB_LATENCY_KIND_ATTR_SUM,	/* u64: microseconds of all of them */
	L4LB_LATENCY_KIND_ATTR_REFUSED,	/* u64: a reset or an ICMP error came instead */
	L4LB_LATENCY_KIND_ATTR_UNANSWERED, /* u64: nothing came until the connection
					    * expired, or its client opened another one
					    * with its port
					    */
	L4LB_LATENCY_KIND_ATTR_PAD,

	__L4LB_LATENCY_KIND_ATTR_MAX,
	L4LB_LATENCY_KIND_ATTR_MAX = __L4LB_LATENCY_KIND_ATTR_MAX - 1
};

#endif /* _L4LB_POLICY_ABI_H */
