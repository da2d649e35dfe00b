/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Generic netlink family "L4LB": what family IPVS of <linux/ip_vs.h> cannot
 * express.  Every command needs CAP_NET_ADMIN in the initial user namespace
 * and applies to the network namespace of its socket.
 *
 *	L4LB_CMD_GET_SCHEDULER
 *		do: SCHEDULER { NAME }.  One scheduler, loading its module if
 *		need be; ENOENT if there is none of that name.
 *		dump: without attributes.  All registered schedulers.
 *		Reply: SCHEDULER { NAME, FLAGS, OPTIONS [ { NAME, MIN_VALUE,
 *		MAX_VALUE, DEFAULT, WHAT; KEY if it is a secret } ... ] }
 *
 *	L4LB_CMD_GET_OPTIONS
 *		SERVICE { AF, PROTOCOL, ADDR, PORT } or SERVICE { AF, FWMARK };
 *		ESRCH if there is no such service.
 *		Reply: SERVICE, SCHEDULER as above, with a VALUE in each
 *		option; DEFAULT is the namespace's, which a sysctl in
 *		net.ipv4.vs may have changed.  Scheduler "none" has no flags
 *		and no options.
 *
 *	L4LB_CMD_SET_OPTIONS
 *		SERVICE, OPTIONS [ { NAME, VALUE or KEY } ... ].  All are applied or
 *		none; options that are not named keep their value.  EINVAL
 *		for an option that the scheduler does not have or that is named
 *		twice, ERANGE for a value out of range.
 *		An option that is a secret gets a KEY instead of a VALUE.  Its
 *		VALUE is the key's fingerprint, 0 without a key: setting that keeps
 *		the present key, 0 removes it; EINVAL for any other.
 *
 *	L4LB_CMD_GET_POLICY
 *		do: SERVICE.
 *		dump: without attributes.  The services with any value that is
 *		not the default.
 *		Reply: SERVICE, POLICY with all values; BANDS if the service
 *		has had a PRIORITY; LIMITED, the connections that were refused
 *		since the last ZERO, if it has had a limit; OWNER, PROTECTED and SHADOW if
 *		it has them.
 *
 *	L4LB_CMD_SET_POLICY
 *		SERVICE and any of POLICY { ... }, OWNER, PROTECTED, SHADOW.  OWNER is
 *		a name of letters, digits, '.', '_', '-' and '@', for programs
 *		that share a director; nothing is refused because of it.  A
 *		service with PROTECTED 1 is not removed: EBUSY for
 *		IPVS_CMD_DEL_SERVICE and for SET_SERVICES with REMOVE or MODE
 *		REPLACE; IPVS_CMD_FLUSH leaves it.  All values are applied or none;
 *		values that are not named stay.  IPVS_CMD_SET_SERVICE does not
 *		change them.  ERANGE for a value out of range, EINVAL for GUARD
 *		of a service by firewall mark or if LAS_BYTES_* do not increase.
 *		SHADOW is the name of a scheduler, or "none": ENOENT without one of
 *		that name.  The one that is the shadow already stays as it is, with
 *		its counters.  See GET_SHADOW.
 *
 *	L4LB_CMD_SET_SERVICES
 *		MODE (default MERGE), TIMEOUTS, ENTRY { SERVICE { AF, PROTOCOL, ADDR,
 *		PORT or AF, FWMARK; SCHED_NAME, FLAGS, TIMEOUT, NETMASK }, OPTIONS
 *		[ { NAME, VALUE or KEY } ... ], POLICY { ... }, OWNER, PROTECTED, SHADOW,
 *		DESTS [ { ADDR, PORT, FWD_METHOD, WEIGHT, ... } ... ] } ENTRY { ... } ...
 *		Any number of services with their real servers, and timeouts: all are
 *		applied or none.  An entry has all settings of its service: options,
 *		policy values, owner, protection and shadow that it does not name get
 *		their default.  With
 *		EXACT the service loses the real servers that the message does
 *		not name.  An entry with REMOVE has only the name of a service,
 *		which is removed; if it is not there, ESRCH in MODE CHANGE, and
 *		no error in MERGE; EINVAL in ADD and REPLACE.
 *		An attribute has at most 64 KiB, about 600 real servers.  More
 *		go into another entry, whose SERVICE has only the name of the
 *		service before (AF, PROTOCOL, ADDR, PORT or AF, FWMARK).
 *		An error points to the ENTRY or real server that is wrong, or to
 *		an attribute in it (NLMSGERR_ATTR_OFFS).  E2BIG for more than
 *		L4LB_SERVICES_MAX or L4LB_DESTS_MAX, EEXIST if one is named
 *		twice, ESRCH if MODE is CHANGE and one does not exist, EINTR
 *		when the sender is killed; others as in IPVS.
 *		REPLACE needs RANGES if it is to remove services with a RANGE:
 *		EOPNOTSUPP without.
 *		Large messages need SO_SNDBUFFORCE.  Without NETLINK_CAP_ACK an
 *		error has the whole message in it.
 *
 *	L4LB_CMD_GET_SERVICES
 *		dump: SERVICE { any of AF to FWMARK } to see only services that
 *		match; LIVE for counters and connections, and SHADOW_STATS { SCHEDULER
 *		to REFUSED } of those with a SHADOW.  RANGES to see services with a
 *		RANGE, too; an empty RANGE in SERVICE for these only.
 *		Reply: ENTRY, as above; without LIVE it can be sent as it is.
 *		NLM_F_DUMP_INTR: the configuration has changed meanwhile.
 *
 *	L4LB_CMD_GET_SYNC
 *		do: without attributes.  Settings and counters of this
 *		namespace's synchronisation.
 *		Reply: SYNC with all values; without KEY_ID if there is no key.
 *		dump: without attributes.  Reply: one PEER per message.
 *
 *	L4LB_CMD_SET_SYNC
 *		SYNC { RATE, MULTICAST, PORT, KEY, VERIFY }.  All are applied or none;
 *		what is not named stays.  The key before is accepted in received
 *		messages until KEY is sent again; KEY of 0 bytes: no key, and
 *		none is accepted.  EBUSY for another PORT while there are peers.
 *
 *	L4LB_CMD_NEW_PEER
 *		PEER { ADDR, PORT, HOPS }.  Another director: messages go to it
 *		and are taken from it.  EINVAL if ADDR cannot be another host's,
 *		EEXIST if there is a peer with it, E2BIG for more than
 *		L4LB_PEERS_MAX, EADDRINUSE if another program has the UDP port,
 *		EINVAL while a real server has another family than its service.
 *
 *	L4LB_CMD_DEL_PEER
 *		PEER { ADDR }.  ESRCH if there is no such peer.
 *
 *	L4LB_CMD_SYNC_RESYNC
 *		PEER { ADDR } or nothing: that peer, or all, are asked for all
 *		their connections; ESRCH if there is no such peer, or none at
 *		all.  With PUSH instead: all connections of this
 *		director are sent to the multicast group once, which backups of
 *		ip_vs understand; ESRCH if no sending daemon runs.  It returns
 *		before anything has come; see PEER's STATE.
 *
 *	L4LB_CMD_SYNC_VERIFY
 *		PEER { ADDR } or nothing: connections of that peer, or of all,
 *		are compared with those here, and what differs is sent again to
 *		here.  It returns at once, and the comparison comes a second
 *		later, or five after the one before: see PEER's VERIFIED,
 *		DIFFERENCE and COMPARED.  ESRCH if there is no such peer, or
 *		none at all.
 *
 *	L4LB_CMD_GET_CONNS
 *		dump: CONN { any of AF to FLAGS } to see only connections and
 *		templates that match all of these, and SERVICE for those of a
 *		service.  EINVAL for a value that none can have.
 *		Reply: one CONN per message.  A connection that exists all the
 *		time is listed once, even if others come and go meanwhile.  Up
 *		to 32 KiB come with each recv(), if its buffer is as large.
 *
 *	L4LB_CMD_KILL_CONNS
 *		CONN and SERVICE, as in GET_CONNS: the connections and
 *		templates that match all of these are over; with an empty CONN,
 *		all.  With RESET both ends of an established TCP connection or SCTP
 *		association are told, where ON_IDLE is L4LB_IDLE_RESET.  Connections
 *		that come meanwhile may stay.  It may take a while, and a fatal
 *		signal ends it: EINTR; those killed by then are gone.
 *		Reply: COUNT, the number of them.
 *
 *	L4LB_CMD_EXPORT_CONNS
 *		dump: without attributes.
 *		Reply: HANDOVER { RECORDS, LEFT_OUT, MESSAGE } with some of the
 *		connections and templates in each: all that are open or closed by
 *		one end only.  LEFT_OUT is the number of those that no MESSAGE can
 *		tell, because their real server was removed or has another family
 *		than the client.  MESSAGE is one of ip_vs's synchronisation, in
 *		version 1.
 *
 *	L4LB_CMD_IMPORT_CONNS
 *		HANDOVER { MESSAGE }, one of EXPORT_CONNS, of this director or of the
 *		module that was loaded before it.  Services and real servers must be
 *		there.  A connection that is in use here stays as it is.  EINVAL if
 *		MESSAGE is damaged: then nothing changes.
 *		Reply: HANDOVER { RECORDS, the number of those that are here now;
 *		NO_SERVER, FULL, UNSUPPORTED, the numbers of those that are not,
 *		because there is no such real server, no room, or because this
 *		director cannot have them }.
 *
 *	L4LB_CMD_LOG_CONNS
 *		do: without attributes.  Members of the group L4LB_GENL_LOG get what has
 *		been collected for them.
 *		Reply: SEQ, the number of this namespace's last record.
 *
 *	L4LB_CMD_GET_EVENT
 *		do: without attributes.
 *		Reply: SEQ, the number of this namespace's last event.
 *
 *	L4LB_CMD_SET_DRAIN
 *		SERVICE, DRAIN { ADDR, PORT, AF; SECONDS, THEN }.  The real server
 *		gets weight 0 and no new connections.  When it has neither
 *		connections nor templates, or after SECONDS, THEN is done.  Sent
 *		again, it replaces SECONDS and THEN; any weight ends the drain.
 *		With LAST_WEIGHT, which needs weight 0 before, that is what a
 *		GET_DRAIN tells from then on.  ESRCH: no such service; ENOENT: it
 *		has no such real server.
 *
 *	L4LB_CMD_GET_DRAIN
 *		dump: without attributes.  Real servers with weight 0 that had a
 *		weight before, and those that start slowly.
 *		Reply: SERVICE, DRAIN { ADDR, PORT, AF, LAST_WEIGHT; THEN and LEFT
 *		if there is a drain and it has a deadline; RAMP if its service's
 *		RAMP has begun, and is not over, for it }.
 *
 *	L4LB_CMD_SET_SERVER
 *		SERVICE, DESTS [ one ], MODE (MERGE, ADD or CHANGE) or REMOVE: one real
 *		server is added, changed or removed.  Errors as in IPVS.
 *
 *	L4LB_CMD_ZERO_SERVICE
 *		SERVICE.  Its counters and those of its real servers begin again.
 *
 *	L4LB_CMD_TRY_SCHEDULER
 *		dump: SERVICE, TRIAL { SCHEDULER, FLOWS; CLIENTS or LIVE, HOLD, SEED,
 *		WITHOUT }.
 *		What a scheduler would choose for FLOWS flows, with the weights
 *		and thresholds of the service's real servers but without their
 *		connections: each choice adds one (active, but with UDP; none with
 *		one-packet scheduling).  No packet, no service and no real server
 *		notices.  Persistence, RAMP and limits play no part.  Latencies stay
 *		what they are when it begins.
 *		The service's own scheduler has its options, others the defaults.
 *		EBUSY: another trial of the namespace is under way; ESRCH: no such
 *		service; ENOENT: no such scheduler; EADDRNOTAVAIL: WITHOUT is no
 *		real server of the service.
 *		Replies: TRIAL { SCHEDULER }; after the trial, which ends after 30
 *		seconds whatever is left, TRIAL { FLOWS that began, REFUSED,
 *		COST_50, COST_99; with LIVE, CLIENTS; with WITHOUT, LOST, and MOVED
 *		of schedulers that look only at flow and servers }; and TRIAL
 *		{ SERVER } for each.
 *		Clients that are LIVE are those of the service's connections, as
 *		often as they have some, of a sample of 65,536 if there are more;
 *		they are read before the 30 seconds begin.  Without connections no
 *		flow begins.
 *
 *	L4LB_CMD_GET_SHADOW
 *		dump: SERVICE.  What the service's SHADOW would have done: a second
 *		scheduler that is asked about each new connection, when the first has
 *		chosen, and has no effect.  It chooses from copies of the real servers,
 *		whose connections are those that it would have given them, and whose
 *		latencies are those of the real servers.  It has the options of the
 *		service's scheduler while it is the same one, otherwise those it had,
 *		at first the defaults.  It knows nothing of RAMP, of what a limit
 *		refuses, and of connections and templates that began before it or on
 *		another director.  It follows changes of the service; if it cannot,
 *		it ends, see L4LB_EVENT_SHADOW_LOST.
 *		IPVS_CMD_ZERO clears its counters.
 *		ESRCH: no such service; ENOENT: it has no shadow.
 *		Replies: SHADOW_STATS { SCHEDULER to REFUSED }, and SHADOW_STATS
 *		{ SERVER } for each real server.
 *
 *	L4LB_CMD_GET_LATENCY
 *		dump: SERVICE, or without attributes: the real servers of all services.
 *		Only those that were measured, while their service's LATENCY was on.
 *		Reply: SERVICE, LATENCY.
 *		ESRCH: no such service.
 *
 * Members of the multicast group L4LB_GENL_LOG (CAP_NET_ADMIN) get, for
 * connections that begin while their service's LOG is on, once each and at most a
 * tenth of a second after they have ended,
 *
 *	L4LB_CMD_LOG_CONNS
 *		CONN { AF to STATE, FLAGS, FWD_METHOD, WHY to IDLE }, repeated;
 *		COUNT, the number of them; SEQ, the number of the last.
 *
 * SEQ counts records, whether they could be sent or not: what COUNT does not
 * explain was lost (ENOBUFS).  There is no record of templates, of connections of one
 * packet or without a real server, and of what ends with its namespace or the module.
 *
 * Members of the multicast group L4LB_GENL_EVENTS (CAP_NET_ADMIN) get a message
 * L4LB_CMD_GET_SYNC with a PEER when the peer's STATE has changed, at most once a
 * second for each peer; and for each other event, in order,
 *
 *	L4LB_CMD_GET_EVENT
 *		EVENT, SEQ, and what it is about: SERVICE { AF to FWMARK } and, if
 *		it was not removed, its SCHED_NAME; for a real server also DESTS
 *		with one, with its ACTIVE_CONNS, INACT_CONNS and PERSIST_CONNS;
 *		COUNT as said at enum l4lb_event.
 *
 * SEQ grows by one with each event, whether it could be sent or not: a gap is
 * the number of those lost (ENOBUFS).  A removed service takes its real servers
 * with it without events of theirs.
 *
 * Attributes are checked strictly: unknown or overlong ones, and nests without
 * NLA_F_NESTED, are refused.  Errors come with a message (extended ACK).
 */
#ifndef _L4LB_UAPI_H
#define _L4LB_UAPI_H

#include "l4lb_policy.h"

#define L4LB_GENL_NAME		"L4LB"
#define L4LB_GENL_VERSION	1
#define L4LB_GENL_EVENTS	"events"	/* multicast group */
#define L4LB_GENL_LOG		"log"		/* multicast group */

#define L4LB_NAME_LEN		16	/* bytes of a name with its NUL */
#define L4LB_OWNER_LEN		16	/* of OWNER, likewise */
#define L4LB_WHAT_LEN		80	/* of WHAT, likewise */
#define L4LB_OPTIONS_MAX	16	/* options of one scheduler */
#define L4LB_KEY_LEN		16	/* bytes of a scheduler's secret */
#define L4LB_PATH_LEN		128	/* of PATH, with its NUL */
#define L4LB_SERVICES_MAX	65536	/* entries of one message */
#define L4LB_DESTS_MAX		1048576	/* real servers of one message */
#define L4LB_TIMEOUT_MAX	1209600	/* seconds: two weeks */
#define L4LB_PEERS_MAX		8	/* of one namespace */
#define L4LB_PEER_PORT		8912	/* default UDP port */
#define L4LB_SYNC_KEY_LEN	32	/* bytes */
#define L4LB_SYNC_RATE		20000	/* default */
#define L4LB_SYNC_VERIFY	60	/* seconds, default */
#define L4LB_HANDOVER_LEN	4096	/* bytes of a MESSAGE at most */
#define L4LB_TRIAL_FLOWS_MAX	4194304

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
	L4LB_CMD_GET_SYNC,
	L4LB_CMD_SET_SYNC,
	L4LB_CMD_NEW_PEER,
	L4LB_CMD_DEL_PEER,
	L4LB_CMD_SYNC_RESYNC,
	L4LB_CMD_SYNC_VERIFY,
	L4LB_CMD_GET_EVENT,
	L4LB_CMD_SET_DRAIN,
	L4LB_CMD_GET_DRAIN,
	L4LB_CMD_KILL_CONNS,
	L4LB_CMD_EXPORT_CONNS,
	L4LB_CMD_IMPORT_CONNS,
	L4LB_CMD_LOG_CONNS,
	L4LB_CMD_TRY_SCHEDULER,
	L4LB_CMD_GET_SHADOW,
	L4LB_CMD_GET_LATENCY,
	L4LB_CMD_SET_SERVER,
	L4LB_CMD_ZERO_SERVICE,

	__L4LB_CMD_MAX,
	L4LB_CMD_MAX = __L4LB_CMD_MAX - 1
};

enum l4lb_attr {
	L4LB_ATTR_UNSPEC,
	L4LB_ATTR_SERVICE,	/* nest: IPVS_SVC_ATTR_AF to _FWMARK, or RANGE; in
				 * ENTRY to _NETMASK, and with LIVE _STATS64
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
	L4LB_ATTR_SYNC,		/* nest: enum l4lb_sync_attr */
	L4LB_ATTR_PEER,		/* nest: enum l4lb_peer_attr */
	L4LB_ATTR_PUSH,		/* flag */
	L4LB_ATTR_EVENT,	/* u32: enum l4lb_event */
	L4LB_ATTR_SEQ,		/* u64 */
	L4LB_ATTR_COUNT,	/* u64 */
	L4LB_ATTR_PAD,
	L4LB_ATTR_DRAIN,	/* nest: enum l4lb_drain_attr */
	L4LB_ATTR_RESET,	/* flag */
	L4LB_ATTR_EXACT,	/* flag, in ENTRY */
	L4LB_ATTR_REMOVE,	/* flag, in ENTRY */
	L4LB_ATTR_HANDOVER,	/* nest: enum l4lb_handover_attr */
	L4LB_ATTR_OWNER,	/* string, "" for none; in ENTRY, too */
	L4LB_ATTR_PROTECTED,	/* u8: 0 or 1; in ENTRY, too */
	L4LB_ATTR_LIMITED,	/* u64 */
	L4LB_ATTR_TRIAL,	/* nest: enum l4lb_trial_attr */
	L4LB_ATTR_SHADOW,	/* string, "none" for none; in ENTRY, too */
	L4LB_ATTR_SHADOW_STATS,	/* nest: enum l4lb_shadow_attr */
	L4LB_ATTR_LATENCY,	/* nest: enum l4lb_latency_attr */
	L4LB_ATTR_RANGES,	/* flag: the sender knows services with a RANGE */
	L4LB_ATTR_TIMEOUTS,	/* nest: enum l4lb_timeouts_attr */

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
	L4LB_OPTION_ATTR_KEY,	/* L4LB_KEY_LEN bytes; in replies empty */
	L4LB_OPTION_ATTR_FD,	/* s32, request: a file that the sender has open */
	L4LB_OPTION_ATTR_PATH,	/* string: of the file; in replies empty without one */
	L4LB_OPTION_ATTR_COUNT,	/* flag, replies: nobody sets it, and save leaves it out */

	__L4LB_OPTION_ATTR_MAX,
	L4LB_OPTION_ATTR_MAX = __L4LB_OPTION_ATTR_MAX - 1
};

/* Treatment of services and real servers that exist already. */
enum l4lb_set_mode {
	L4LB_SET_MERGE,		/* those named are changed, others stay */
	L4LB_SET_ADD,		/* a service that is named must not exist */
	L4LB_SET_REPLACE,	/* those not named are removed */
	L4LB_SET_CHANGE,	/* a service that is named must exist */

	__L4LB_SET_MODE_MAX,
	L4LB_SET_MODE_MAX = __L4LB_SET_MODE_MAX - 1
};

/* Packets sent in a band since the last ZERO. */
enum l4lb_band_attr {
	L4LB_BAND_ATTR_UNSPEC,
	L4LB_BAND_ATTR_PACKETS,	/* u64 */
	L4LB_BAND_ATTR_BYTES,	/* u64: of IP packets */
	L4LB_BAND_ATTR_PAD,

	__L4LB_BAND_ATTR_MAX,
	L4LB_BAND_ATTR_MAX = __L4LB_BAND_ATTR_MAX - 1
};

/* A connection, or a template, which binds a persistent client to a server.
 * Addresses have 4 bytes (IPv4) or 16 (IPv6); IPv4 in a request may have 16.
 * A template of a service by firewall mark has no PROTOCOL, VIP and VPORT: it
 * is for all of them.
 */
enum l4lb_conn_attr {
	L4LB_CONN_ATTR_UNSPEC,
	L4LB_CONN_ATTR_AF,	/* u16: AF_INET, AF_INET6 */
	L4LB_CONN_ATTR_PROTOCOL, /* u16: TCP, UDP or SCTP */
	L4LB_CONN_ATTR_CLIENT,	/* address; a template's is masked */
	L4LB_CONN_ATTR_CLIENT_PORT, /* be16; a template's is 0, or RANGE's LAST_PORT */
	L4LB_CONN_ATTR_CLIENT_LEN, /* u8, request: prefix length of CLIENT */
	L4LB_CONN_ATTR_VIP,	/* address */
	L4LB_CONN_ATTR_VPORT,	/* be16; 0: a template for all ports */
	L4LB_CONN_ATTR_FWMARK,	/* u32: of its service, if that is by mark */
	L4LB_CONN_ATTR_SERVER_AF, /* u16: if different from AF */
	L4LB_CONN_ATTR_SERVER,	/* address */
	L4LB_CONN_ATTR_SERVER_PORT, /* be16 */
	L4LB_CONN_ATTR_STATE,	/* string: as in /proc/net/ip_vs_conn */
	L4LB_CONN_ATTR_FLAGS,	/* u32: enum l4lb_conn_flags */
	/* Only in replies: */
	L4LB_CONN_ATTR_FWD_METHOD, /* u32: as IPVS_DEST_ATTR_FWD_METHOD */
	L4LB_CONN_ATTR_EXPIRES,	/* u64: milliseconds left without packets */
	L4LB_CONN_ATTR_HOLDERS,	/* u32: connections that hold a template */
	L4LB_CONN_ATTR_TEMPLATE, /* nest: its template's CLIENT and VPORT */
	L4LB_CONN_ATTR_PAD,
	/* Only in LOG_CONNS: */
	L4LB_CONN_ATTR_WHY,	/* u32: enum l4lb_end */
	L4LB_CONN_ATTR_ENDED,	/* u64: nanoseconds since 1970, UTC */
	L4LB_CONN_ATTR_LASTED,	/* u64: milliseconds that it was in the table, to a tick */
	L4LB_CONN_ATTR_IDLE,	/* u64: those since its last packet, within 250 */
	L4LB_CONN_ATTR_CALL_ID,	/* string, replies: of a template, with engine sip */
	L4LB_CONN_ATTR_LOCAL,	/* address, replies: what its server sees, with SNAT */
	L4LB_CONN_ATTR_LOCAL_PORT, /* be16, likewise */

	__L4LB_CONN_ATTR_MAX,
	L4LB_CONN_ATTR_MAX = __L4LB_CONN_ATTR_MAX - 1
};

enum l4lb_conn_flags {
	L4LB_CONN_F_TEMPLATE	= 1 << 0,
	L4LB_CONN_F_ACTIVE	= 1 << 1, /* as its real server counts it */
	L4LB_CONN_F_FAST_CLIENT	= 1 << 2, /* client packets use the fast path */
	L4LB_CONN_F_FAST_SERVER	= 1 << 3, /* likewise, server packets */
	L4LB_CONN_F_COPY	= 1 << 4, /* LOG_CONNS: it began elsewhere */
};

/* Why a connection has ended. */
enum l4lb_end {
	L4LB_END_UNSPEC,
	L4LB_END_EXPIRED,	/* no packets; STATE: was it closed before? */
	L4LB_END_REUSED,	/* its client opened another one with its port */
	L4LB_END_MOVED,		/* its client went to another real server */
	L4LB_END_LOST,		/* its real server was removed */
	L4LB_END_KILLED,	/* by KILL_CONNS */
	L4LB_END_EVICTED,	/* for another one, or by drop_entry */
	L4LB_END_REPLACED,	/* another director has a different one */

	__L4LB_END_MAX,
	L4LB_END_MAX = __L4LB_END_MAX - 1
};

/* Synchronisation beyond ip_vs's protocol. */
enum l4lb_sync_attr {
	L4LB_SYNC_ATTR_UNSPEC,
	L4LB_SYNC_ATTR_RATE,	/* u32: records per second of a resync; 0: as
				 * fast as it can; default L4LB_SYNC_RATE
				 */
	L4LB_SYNC_ATTR_MULTICAST, /* u8: 1 (default): messages also go to the
				   * sending daemon's group; 0: only to peers
				   */
	L4LB_SYNC_ATTR_PORT,	/* be16: UDP port of this director, to which
				 * peers send; default L4LB_PEER_PORT
				 */
	L4LB_SYNC_ATTR_KEY,	/* binary, request: L4LB_SYNC_KEY_LEN bytes, or
				 * none: messages are not signed
				 */
	/* Only in replies: */
	L4LB_SYNC_ATTR_KEY_ID,	/* u32: fingerprint of the key */
	L4LB_SYNC_ATTR_COUNTERS, /* array of nests: enum l4lb_counter_attr */
	L4LB_SYNC_ATTR_SENDER,	/* u64: number that this director's messages
				 * have now
				 */
	L4LB_SYNC_ATTR_KEPT,	/* u64: bytes of messages that are kept to be
				 * sent again
				 */
	L4LB_SYNC_ATTR_PAD,
	L4LB_SYNC_ATTR_VERIFY,	/* u32: seconds between comparisons with a peer,
				 * up to 86400; 0: only if asked for; default
				 * L4LB_SYNC_VERIFY; also in requests
				 */

	__L4LB_SYNC_ATTR_MAX,
	L4LB_SYNC_ATTR_MAX = __L4LB_SYNC_ATTR_MAX - 1
};

/* A counter since the first start of a daemon, first peer or first key. */
enum l4lb_counter_attr {
	L4LB_COUNTER_ATTR_UNSPEC,
	L4LB_COUNTER_ATTR_NAME,	/* string: as in /proc/net/l4lb */
	L4LB_COUNTER_ATTR_VALUE, /* u64 */
	L4LB_COUNTER_ATTR_PAD,

	__L4LB_COUNTER_ATTR_MAX,
	L4LB_COUNTER_ATTR_MAX = __L4LB_COUNTER_ATTR_MAX - 1
};

enum l4lb_peer_state {
	L4LB_PEER_ABSENT,	/* nothing was heard of it for 3 seconds */
	L4LB_PEER_JOINING,	/* not all of its connections have come yet */
	L4LB_PEER_IN_STEP,

	__L4LB_PEER_STATE_MAX,
	L4LB_PEER_STATE_MAX = __L4LB_PEER_STATE_MAX - 1
};

/* Another director.  ADDR has 4 bytes (IPv4) or 16 (IPv6); link-local ones
 * cannot be used.
 */
enum l4lb_peer_attr {
	L4LB_PEER_ATTR_UNSPEC,
	L4LB_PEER_ATTR_ADDR,	/* address, from which its messages come */
	L4LB_PEER_ATTR_PORT,	/* be16: its UDP port; default L4LB_PEER_PORT */
	L4LB_PEER_ATTR_HOPS,	/* flag: there may be routers on the way */
	/* Only in replies: */
	L4LB_PEER_ATTR_STATE,	/* u32: enum l4lb_peer_state */
	L4LB_PEER_ATTR_SENDER,	/* u64: number of its messages, if known */
	L4LB_PEER_ATTR_HEARD,	/* u64: milliseconds since its last message;
				 * absent if there was none
				 */
	L4LB_PEER_ATTR_GAPS,	/* u64: messages that did not come at first */
	L4LB_PEER_ATTR_REPAIRED, /* u64: those of them that came later */
	L4LB_PEER_ATTR_LOST,	/* u64: those that never came */
	L4LB_PEER_ATTR_RESENT,	/* u64: messages sent to it again */
	L4LB_PEER_ATTR_BACKLOG,	/* u32: messages it had still to send */
	L4LB_PEER_ATTR_BULK_IN,	/* u64: records of the last resync from it, so
				 * far
				 */
	L4LB_PEER_ATTR_BULK_OUT, /* u64: likewise, sent to it */
	L4LB_PEER_ATTR_RESYNCS,	/* u32: resyncs from it that are complete */
	L4LB_PEER_ATTR_DIFFERENCE, /* u32: of L4LB_DIGEST_SLICES slices, those
				    * that differed in the last comparison,
				    * before they were sent again; absent if
				    * there was none
				    */
	L4LB_PEER_ATTR_VERIFIED, /* u32: comparisons that are complete */
	L4LB_PEER_ATTR_PAD,
	L4LB_PEER_ATTR_BULK_EXPECTED, /* u64: records of the last resync from
				       * it: about, until it is complete
				       */
	L4LB_PEER_ATTR_COMPARED, /* u32: connections and templates here that
				  * were compared; absent like DIFFERENCE
				  */

	__L4LB_PEER_ATTR_MAX,
	L4LB_PEER_ATTR_MAX = __L4LB_PEER_ATTR_MAX - 1
};

#define L4LB_DIGEST_SLICES	4096

/* What to do with a real server that is drained. */
enum l4lb_then {
	L4LB_THEN_STAY,		/* nothing: it keeps weight 0 */
	L4LB_THEN_DELETE,	/* remove it, as IPVS_CMD_DEL_DEST does */
	L4LB_THEN_RESET,	/* the same, with ON_LOSS as L4LB_LOSS_RESET */
	L4LB_THEN_MOVE,		/* the same, with ON_LOSS as L4LB_LOSS_MOVE */

	__L4LB_THEN_MAX,
	L4LB_THEN_MAX = __L4LB_THEN_MAX - 1
};

enum l4lb_drain_attr {
	L4LB_DRAIN_ATTR_UNSPEC,
	L4LB_DRAIN_ATTR_ADDR,	/* address of the real server */
	L4LB_DRAIN_ATTR_PORT,	/* be16 */
	L4LB_DRAIN_ATTR_AF,	/* u16: if different from its service's */
	L4LB_DRAIN_ATTR_SECONDS, /* u32, request: 1 to L4LB_DRAIN_SECONDS_MAX;
				  * absent: no deadline
				  */
	L4LB_DRAIN_ATTR_THEN,	/* u32: enum l4lb_then */
	L4LB_DRAIN_ATTR_LAST_WEIGHT, /* u32: before the present weight 0 */
	L4LB_DRAIN_ATTR_LEFT,	/* u64, reply: milliseconds to the deadline */
	L4LB_DRAIN_ATTR_PAD,
	L4LB_DRAIN_ATTR_RAMP,	/* u32, reply: percent of its RAMP; 100: it gets
				 * twice its share until it has its load
				 */

	__L4LB_DRAIN_ATTR_MAX,
	L4LB_DRAIN_ATTR_MAX = __L4LB_DRAIN_ATTR_MAX - 1
};

enum l4lb_trial_attr {
	L4LB_TRIAL_ATTR_UNSPEC,
	L4LB_TRIAL_ATTR_SCHEDULER, /* string: its name */
	L4LB_TRIAL_ATTR_FLOWS,	/* u32: 1 to L4LB_TRIAL_FLOWS_MAX */
	L4LB_TRIAL_ATTR_CLIENTS,
				/* u32: of so many clients; 0: of one each; reply with
				 * LIVE: connections whose clients they are
				 */
	L4LB_TRIAL_ATTR_HOLD,	/* u32: so many connections are open at once, at
				 * most; 0: none ends
				 */
	L4LB_TRIAL_ATTR_SEED,	/* u64, of addresses and ports */
	L4LB_TRIAL_ATTR_WITHOUT, /* nest: ADDR, PORT, AF of a real server */
	L4LB_TRIAL_ATTR_REFUSED, /* u32: found no real server */
	L4LB_TRIAL_ATTR_LOST,	/* u32: chose WITHOUT */
	L4LB_TRIAL_ATTR_MOVED,	/* u32: others that choose another real server,
				 * or find none, when WITHOUT is not there
				 */
	L4LB_TRIAL_ATTR_COST_50, /* u32: nanoseconds of half of the choices, ... */
	L4LB_TRIAL_ATTR_COST_99, /* ... and of 99 in 100, at most */
	L4LB_TRIAL_ATTR_SERVER,	/* nest: enum l4lb_trial_server_attr */
	L4LB_TRIAL_ATTR_LIVE,	/* flag: of clients that have connections */

	__L4LB_TRIAL_ATTR_MAX,
	L4LB_TRIAL_ATTR_MAX = __L4LB_TRIAL_ATTR_MAX - 1
};

enum l4lb_trial_server_attr {
	L4LB_TRIAL_SERVER_ATTR_UNSPEC,
	L4LB_TRIAL_SERVER_ATTR_ADDR,	/* address of the real server */
	L4LB_TRIAL_SERVER_ATTR_PORT,	/* be16 */
	L4LB_TRIAL_SERVER_ATTR_AF,	/* u16; request: if not its service's */
	L4LB_TRIAL_SERVER_ATTR_WEIGHT,	/* u32 */
	L4LB_TRIAL_SERVER_ATTR_CHOSEN,	/* u32: so often */

	__L4LB_TRIAL_SERVER_ATTR_MAX,
	L4LB_TRIAL_SERVER_ATTR_MAX = __L4LB_TRIAL_SERVER_ATTR_MAX - 1
};

enum l4lb_handover_attr {
	L4LB_HANDOVER_ATTR_UNSPEC,
	L4LB_HANDOVER_ATTR_MESSAGE,	/* binary, 8 to L4LB_HANDOVER_LEN bytes */
	L4LB_HANDOVER_ATTR_RECORDS,	/* u32 */
	L4LB_HANDOVER_ATTR_LEFT_OUT,	/* u32 */
	L4LB_HANDOVER_ATTR_NO_SERVER,	/* u32 */
	L4LB_HANDOVER_ATTR_FULL,	/* u32 */
	L4LB_HANDOVER_ATTR_UNSUPPORTED,	/* u32 */

	__L4LB_HANDOVER_ATTR_MAX,
	L4LB_HANDOVER_ATTR_MAX = __L4LB_HANDOVER_ATTR_MAX - 1
};

#define L4LB_DRAIN_SECONDS_MAX	2678400	/* 31 days */

/* What has happened.  From OVERLOADED on, packets are the cause: then only a
 * state that lasts is told, and each at most four times a second.
 */
enum l4lb_event {
	L4LB_EVENT_UNSPEC,
	L4LB_EVENT_SERVICE_ADDED,
	L4LB_EVENT_SERVICE_CHANGED, /* settings, options or policy */
	L4LB_EVENT_SERVICE_DELETED,
	L4LB_EVENT_SCHEDULER,	/* a service has another one */
	L4LB_EVENT_SERVER_ADDED,
	L4LB_EVENT_SERVER_CHANGED, /* method, tunnel or thresholds */
	L4LB_EVENT_SERVER_DELETED,
	L4LB_EVENT_WEIGHT,	/* of a server, perhaps with the others;
				 * COUNT: its weight before
				 */
	L4LB_EVENT_OVERLOADED,	/* a server has reached its upper threshold */
	L4LB_EVENT_RELIEVED,	/* it has fewer than its lower one */
	L4LB_EVENT_DRAINED,	/* a server with weight 0 has no connection and
				 * no template, or its deadline has passed; once
				 * until it has a weight again.  COUNT: what it
				 * still has of both
				 */
	L4LB_EVENT_FULL,	/* the connection table has no room: conn_max,
				 * conn_max_all; COUNT: its entries
				 */
	L4LB_EVENT_ROOM,	/* it had room for two seconds */
	L4LB_EVENT_FLOOD,	/* half-open connections have reached their
				 * share, a quarter of conn_max; COUNT: of them
				 */
	L4LB_EVENT_FLOOD_OVER,	/* they had less than that for two seconds */
	L4LB_EVENT_SHADOW_LOST,	/* not by packets: a service's shadow has ended,
				 * since it could not follow a change
				 */

	__L4LB_EVENT_MAX,
	L4LB_EVENT_MAX = __L4LB_EVENT_MAX - 1
};

#endif /* _L4LB_UAPI_H */
