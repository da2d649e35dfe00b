/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Generic netlink family "L4LB": what family IPVS of <linux/ip_vs.h> has no
 * words for.  Every command needs CAP_NET_ADMIN in the initial user namespace
 * and is about the network namespace of its socket.
 *
 *	L4LB_CMD_GET_SCHEDULER
 *		do: SCHEDULER { NAME }.  One scheduler, loading its module if
 *		need be; ENOENT if there is none of that name.
 *		dump: without attributes.  Those that are registered.
 *		Reply: SCHEDULER { NAME, FLAGS, OPTIONS [ { NAME, MIN_VALUE,
 *		MAX_VALUE, DEFAULT, WHAT } ... ] }
 *
 *	L4LB_CMD_GET_OPTIONS
 *		SERVICE { AF, PROTOCOL, ADDR, PORT } or SERVICE { AF, FWMARK };
 *		ESRCH if there is no such service.
 *		Reply: SERVICE, SCHEDULER, as above with a VALUE in each
 *		option; DEFAULT is the namespace's, which a setting in
 *		net.ipv4.vs may have changed.  A service with scheduler "none" has no flags or
 *		options.
 *
 *	L4LB_CMD_SET_OPTIONS
 *		SERVICE, OPTIONS [ { NAME, VALUE } ... ].  Applied whole or not
 *		at all; options that are not named keep their value.  EINVAL
 *		for an option that the scheduler does not have or that is named
 *		twice, ERANGE for a value out of range.
 *
 *	L4LB_CMD_GET_POLICY
 *		do: SERVICE.
 *		dump: without attributes.  The services of which some value is
 *		not the default.
 *		Reply: SERVICE, POLICY with all values; with PRIORITY, BANDS.
 *
 *	L4LB_CMD_SET_POLICY
 *		SERVICE, POLICY { ... }.  Applied whole or not at all; values
 *		that are not named stay.  They are the service's own: they
 *		outlive IPVS_CMD_SET_SERVICE.  ERANGE for a value out of range,
 *		EINVAL for GUARD of a service by firewall mark.
 *
 *	L4LB_CMD_SET_SERVICES
 *		MODE (default MERGE), ENTRY { SERVICE { AF, PROTOCOL, ADDR, PORT or
 *		AF, FWMARK; SCHED_NAME, FLAGS, TIMEOUT, NETMASK }, OPTIONS [ { NAME,
 *		VALUE } ... ], POLICY { ... }, DESTS [ { ADDR, PORT, FWD_METHOD,
 *		WEIGHT, U_THRESH, L_THRESH, ... } ... ] } ENTRY { ... } ...
 *		Any number of services with their real servers, applied whole or
 *		not at all.  An entry has all settings of its service: options
 *		and values of the policy that it does not name get their default.
 *		An attribute ends at 64 KiB, which is some 600 real servers; an
 *		entry whose SERVICE has nothing but the name of the one before
 *		has more of its DESTS.
 *		Refusals point to the ENTRY or real server that is wrong or into
 *		it (NLMSGERR_ATTR_OFFS).  E2BIG for more than L4LB_SERVICES_MAX
 *		or L4LB_DESTS_MAX, EEXIST for what is named twice, EINTR when the
 *		sender is being killed; others as in family IPVS.
 *		The sender needs SO_SNDBUFFORCE for the size, and
 *		NETLINK_CAP_ACK, or the answer has all of the message in it.
 *
 *	L4LB_CMD_GET_SERVICES
 *		dump: SERVICE { some of its name } to see only services that have
 *		it; LIVE for counters and connections.
 *		Reply: ENTRY, as above; without LIVE it can be sent as it is.
 *		NLM_F_DUMP_INTR says that there was a change meanwhile.
 *
 *	L4LB_CMD_GET_CONNS
 *		dump: CONN { some of its attributes, AF to FLAGS } to see only
 *		connections and templates that have all of these.  EINVAL for
 *		what none can have.
 *		Reply: CONN, one a message.  What is there all the time is
 *		listed once, whatever comes and goes meanwhile.  Give recv() a
 *		buffer of 32 KiB, and so much comes with each call.
 *
 * Attributes are checked strictly: one that is unknown, or too long, or a nest
 * without NLA_F_NESTED, is refused.  Refusals carry a sentence (extended ACK).
 */
#ifndef _L4LB_UAPI_H
#define _L4LB_UAPI_H

#define L4LB_GENL_NAME		"L4LB"
#define L4LB_GENL_VERSION	1

#define L4LB_NAME_LEN		16	/* of a name, with the final NUL */
#define L4LB_WHAT_LEN		80	/* of WHAT, likewise */
#define L4LB_OPTIONS_MAX	16	/* options of one scheduler */
#define L4LB_SERVICES_MAX	65536	/* entries of one message */
#define L4LB_DESTS_MAX		1048576	/* real servers of one message */
#define L4LB_TIMEOUT_MAX	1209600	/* seconds: two weeks */

enum l4lb_cmd {
	L4LB_CMD_UNSPEC,
	L4LB_CMD_GET_SCHEDULER,
	L4LB_CMD_GET_OPTIONS,
	L4LB_CMD_SET_OPTIONS,
	L4LB_CMD_GET_POLICY,
	L4LB_CMD_SET_POLICY,
	L4LB_CMD_SET_SERVICES,
	L4LB_CMD_GET_SERVICES,
	L4LB_CMD_GET_CONNS,

	__L4LB_CMD_MAX,
	L4LB_CMD_MAX = __L4LB_CMD_MAX - 1
};

enum l4lb_attr {
	L4LB_ATTR_UNSPEC,
	L4LB_ATTR_SERVICE,	/* nest: IPVS_SVC_ATTR_AF to _FWMARK; in ENTRY
				 * to _NETMASK, and with LIVE _STATS64
				 */
	L4LB_ATTR_SCHEDULER,	/* nest: enum l4lb_sched_attr */
	L4LB_ATTR_OPTIONS,	/* array of nests: enum l4lb_option_attr */
	L4LB_ATTR_POLICY,	/* nest: enum l4lb_policy_attr */
	L4LB_ATTR_DESTS,	/* array of nests: IPVS_DEST_ATTR_* */
	L4LB_ATTR_ENTRY,	/* nest: the above without SCHEDULER; repeated */
	L4LB_ATTR_MODE,		/* u32: enum l4lb_set_mode */
	L4LB_ATTR_LIVE,		/* flag */
	L4LB_ATTR_CONN,		/* nest: enum l4lb_conn_attr */
	L4LB_ATTR_BANDS,	/* array of nests: enum l4lb_band_attr */

	__L4LB_ATTR_MAX,
	L4LB_ATTR_MAX = __L4LB_ATTR_MAX - 1
};

enum l4lb_sched_attr {
	L4LB_SCHED_ATTR_UNSPEC,
	L4LB_SCHED_ATTR_NAME,	/* string */
	L4LB_SCHED_ATTR_FLAGS,	/* u32: IP_VS_SVC_F_SCHED1.. it understands */
	L4LB_SCHED_ATTR_OPTIONS, /* array of nests: enum l4lb_option_attr */

	__L4LB_SCHED_ATTR_MAX,
	L4LB_SCHED_ATTR_MAX = __L4LB_SCHED_ATTR_MAX - 1
};

enum l4lb_option_attr {
	L4LB_OPTION_ATTR_UNSPEC,
	L4LB_OPTION_ATTR_NAME,	/* string */
	L4LB_OPTION_ATTR_VALUE,	/* u32 */
	L4LB_OPTION_ATTR_MIN_VALUE, /* u32 */
	L4LB_OPTION_ATTR_MAX_VALUE, /* u32 */
	L4LB_OPTION_ATTR_DEFAULT, /* u32 */
	L4LB_OPTION_ATTR_WHAT,	/* string: unit and meaning, for people */

	__L4LB_OPTION_ATTR_MAX,
	L4LB_OPTION_ATTR_MAX = __L4LB_OPTION_ATTR_MAX - 1
};

/* What becomes of services and real servers that are there. */
enum l4lb_set_mode {
	L4LB_SET_MERGE,		/* those named are changed, others stay */
	L4LB_SET_ADD,		/* a service that is named must not exist */
	L4LB_SET_REPLACE,	/* those not named are removed */

	__L4LB_SET_MODE_MAX,
	L4LB_SET_MODE_MAX = __L4LB_SET_MODE_MAX - 1
};

/* An established TCP connection or SCTP association expires. */
enum l4lb_on_idle {
	L4LB_IDLE_FORGET,	/* silently */
	L4LB_IDLE_RESET,	/* client and server get a RST or ABORT */

	__L4LB_IDLE_MAX,
	L4LB_IDLE_MAX = __L4LB_IDLE_MAX - 1
};

/* A real server was removed, and a client of a connection to it sends on. */
enum l4lb_on_loss {
	L4LB_LOSS_DEFAULT,	/* as sysctl expire_nodest_conn says */
	L4LB_LOSS_KEEP,		/* drop it: the server may be added again */
	L4LB_LOSS_MOVE,		/* UDP goes to another server, others: RESET */
	L4LB_LOSS_RESET,	/* RST or ABORT to both, ICMP for UDP */

	__L4LB_LOSS_MAX,
	L4LB_LOSS_MAX = __L4LB_LOSS_MAX - 1
};

/* A real server has weight 0. */
enum l4lb_on_drain {
	L4LB_DRAIN_DEFAULT,	/* as sysctl expire_quiescent_template says */
	L4LB_DRAIN_KEEP,	/* UDP flows and persistent clients stay */
	L4LB_DRAIN_MOVE,	/* they go on with another one, if there is one */

	__L4LB_DRAIN_MAX,
	L4LB_DRAIN_MAX = __L4LB_DRAIN_MAX - 1
};

/* What comes from outside to the address of the service, to open something by
 * TCP, UDP or SCTP, and no service takes.  Services of one address: the
 * strictest decides.
 */
enum l4lb_guard {
	L4LB_GUARD_OFF,		/* reaches this host's programs */
	L4LB_GUARD_REJECT,	/* RST, port unreachable, ABORT */
	L4LB_GUARD_DROP,	/* dropped without a word */

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
	L4LB_FAST_PATH_NEW,	/* and first packets, too */

	__L4LB_FAST_PATH_MAX,
	L4LB_FAST_PATH_MAX = __L4LB_FAST_PATH_MAX - 1
};

/* Which band do replies through NAT belong to, for a queueing discipline on
 * their way out?  skb->priority is its number, the lowest is to be served first.
 */
enum l4lb_priority {
	L4LB_PRIORITY_NONE,	/* as forwarding has it */
	L4LB_PRIORITY_LAS,	/* least attained service: by the bytes of
				 * replies that their connection has had
				 */
	__L4LB_PRIORITY_MAX,
	L4LB_PRIORITY_MAX = __L4LB_PRIORITY_MAX - 1
};

#define L4LB_BANDS	4

/* Where the bands of LAS end, in bytes, if the service does not say. */
#define L4LB_LAS_BYTES	{ 16 << 10, 128 << 10, 1 << 20 }

/* All u32; 0 is the default.  Timeouts: seconds that a connection lives without
 * packets; 0: as long as the namespace has it (IPVS_CMD_SET_CONFIG; SCTP: 900).
 * LAS_BYTES_*: where bands 0 to 2 end, growing; 0: that one has all the rest;
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

	__L4LB_POLICY_ATTR_MAX,
	L4LB_POLICY_ATTR_MAX = __L4LB_POLICY_ATTR_MAX - 1
};

/* What has left in a band since the last ZERO. */
enum l4lb_band_attr {
	L4LB_BAND_ATTR_UNSPEC,
	L4LB_BAND_ATTR_PACKETS,	/* u64 */
	L4LB_BAND_ATTR_BYTES,	/* u64: of IP packets */
	L4LB_BAND_ATTR_PAD,

	__L4LB_BAND_ATTR_MAX,
	L4LB_BAND_ATTR_MAX = __L4LB_BAND_ATTR_MAX - 1
};

/* A connection, or a template: what binds a persistent client to a real server.
 * Addresses have 4 or 16 bytes, as their family needs; in a request IPv4's may
 * have 16.  A template of a service by mark has no PROTOCOL, VIP and VPORT: it
 * is for all of them.
 */
enum l4lb_conn_attr {
	L4LB_CONN_ATTR_UNSPEC,
	L4LB_CONN_ATTR_AF,	/* u16: AF_INET, AF_INET6 */
	L4LB_CONN_ATTR_PROTOCOL, /* u16: TCP, UDP or SCTP */
	L4LB_CONN_ATTR_CLIENT,	/* address; a template's is masked */
	L4LB_CONN_ATTR_CLIENT_PORT, /* be16; a template's is 0 */
	L4LB_CONN_ATTR_CLIENT_LEN, /* u8, in a request: bits of CLIENT that count */
	L4LB_CONN_ATTR_VIP,	/* address */
	L4LB_CONN_ATTR_VPORT,	/* be16; 0: a template for all ports */
	L4LB_CONN_ATTR_FWMARK,	/* u32: of its service, if that is by mark */
	L4LB_CONN_ATTR_SERVER_AF, /* u16: if it is not AF */
	L4LB_CONN_ATTR_SERVER,	/* address */
	L4LB_CONN_ATTR_SERVER_PORT, /* be16 */
	L4LB_CONN_ATTR_STATE,	/* string: as in /proc/net/ip_vs_conn */
	L4LB_CONN_ATTR_FLAGS,	/* u32: enum l4lb_conn_flags */
	/* Only in replies: */
	L4LB_CONN_ATTR_FWD_METHOD, /* u32: as IPVS_DEST_ATTR_FWD_METHOD */
	L4LB_CONN_ATTR_EXPIRES,	/* u64: milliseconds left without packets */
	L4LB_CONN_ATTR_HOLDERS,	/* u32: connections that hold a template */
	L4LB_CONN_ATTR_TEMPLATE, /* nest: CLIENT and VPORT of that it was made by */
	L4LB_CONN_ATTR_PAD,

	__L4LB_CONN_ATTR_MAX,
	L4LB_CONN_ATTR_MAX = __L4LB_CONN_ATTR_MAX - 1
};

enum l4lb_conn_flags {
	L4LB_CONN_F_TEMPLATE	= 1 << 0,
	L4LB_CONN_F_ACTIVE	= 1 << 1, /* as its real server counts it */
	L4LB_CONN_F_FAST_CLIENT	= 1 << 2, /* its packets are on the fast path now */
	L4LB_CONN_F_FAST_SERVER	= 1 << 3, /* likewise */
};

#endif /* _L4LB_UAPI_H */
