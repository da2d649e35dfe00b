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
 *		option.  A service with scheduler "none" has no flags or
 *		options.
 *
 *	L4LB_CMD_SET_OPTIONS
 *		SERVICE, OPTIONS [ { NAME, VALUE } ... ].  Applied whole or not
 *		at all; options that are not named keep their value.  EINVAL
 *		for an option that the scheduler does not have or that is named
 *		twice, ERANGE for a value out of range.
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

enum l4lb_cmd {
	L4LB_CMD_UNSPEC,
	L4LB_CMD_GET_SCHEDULER,
	L4LB_CMD_GET_OPTIONS,
	L4LB_CMD_SET_OPTIONS,

	__L4LB_CMD_MAX,
	L4LB_CMD_MAX = __L4LB_CMD_MAX - 1
};

enum l4lb_attr {
	L4LB_ATTR_UNSPEC,
	L4LB_ATTR_SERVICE,	/* nest: IPVS_SVC_ATTR_AF to _FWMARK */
	L4LB_ATTR_SCHEDULER,	/* nest: enum l4lb_sched_attr */
	L4LB_ATTR_OPTIONS,	/* array of nests: enum l4lb_option_attr */

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

#endif /* _L4LB_UAPI_H */
