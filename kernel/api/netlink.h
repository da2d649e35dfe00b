/* SPDX-License-Identifier: GPL-2.0 */
/* Messages of the IPVS family to and from the objects they describe, and what
 * the family L4LB shares of that.
 */
#ifndef _L4LB_NETLINK_H
#define _L4LB_NETLINK_H

#include <net/genetlink.h>

#include "l4lb.h"
#include "service/service.h"

struct l4lb_dest_config;
struct l4lb_real;

/**
 * struct l4lb_nl_service - the SERVICE attribute of a request
 * @key: which service it means
 * @cfg: what it asks for; flags are not merged with the present ones yet
 * @mask: which of the flags it wants to set or clear
 * @sched: the scheduler's name, for error reports
 * @engine: name of a persistence engine, NULL if none or empty
 * @netmask: for error reports
 *
 * Only @key is valid if the request was parsed without its configuration.
 * The attributes live as long as the request.
 */
struct l4lb_nl_service {
	struct l4lb_svc_key	key;
	struct l4lb_svc_config	cfg;
	u32			mask;
	const struct nlattr	*sched;
	const struct nlattr	*engine;
	const struct nlattr	*netmask;
};

extern const struct nla_policy l4lb_nl_policy[IPVS_CMD_ATTR_MAX + 1];

/* The namespace a request is for.  NULL: not now, answer -EAGAIN. */
struct l4lb_net *l4lb_nl_net(const struct sk_buff *skb,
			     struct netlink_ext_ack *extack);

/* A service by its name: attributes IPVS_SVC_ATTR_AF to _FWMARK in @tb, of
 * which the policy has been checked; @key is zeroed.
 */
int l4lb_nl_parse_key(struct l4lb_svc_key *key, struct nlattr **tb,
		      const struct nlattr *nest,
		      struct netlink_ext_ack *extack);
int l4lb_nl_fill_key(struct sk_buff *skb, const struct l4lb_svc_key *key);

/* @full: the request must hold a whole configuration, not just an identity.
 * Negative errno, with a sentence in @extack (which may be NULL).
 */
int l4lb_nl_parse_service(struct l4lb_nl_service *svc,
			  const struct nlattr *nest, bool full,
			  struct netlink_ext_ack *extack);
int l4lb_nl_parse_dest(struct l4lb_dest_config *cfg, u16 svc_af,
		       const struct nlattr *nest, bool full,
		       struct netlink_ext_ack *extack);

/* Configuration mutex held.  -EMSGSIZE if there is no room, nothing added. */
int l4lb_nl_fill_service(struct sk_buff *skb, struct l4lb_service *svc);
int l4lb_nl_fill_dest(struct sk_buff *skb, struct l4lb_real *real);
int l4lb_nl_fill_config(struct sk_buff *skb, const struct l4lb_net *ln);
int l4lb_nl_fill_info(struct sk_buff *skb, struct l4lb_net *ln);

/* The nest POLICY of family L4LB.  parse: over what @policy has; it must be
 * there and is checked.  fill: all of it.
 */
int l4lb_nl_parse_policy(struct l4lb_policy *policy, const struct nlattr *nest,
			 struct netlink_ext_ack *extack);
int l4lb_nl_fill_policy(struct sk_buff *skb, const struct l4lb_policy *policy);
int l4lb_nl_fill_bands(struct sk_buff *skb, const struct l4lb_service *svc);

/* What a configuration names besides numbers.  *ops gets a reference, or NULL
 * for "none".  May sleep and load a module: no lock may be held.
 */
int l4lb_nl_resolve(const struct l4lb_nl_service *svc,
		    const struct l4lb_sched_ops **ops,
		    struct netlink_ext_ack *extack);

/* Parts of the above, without nests of their own; likewise. */
int l4lb_nl_fill_service_config(struct sk_buff *skb,
				const struct l4lb_service *svc);
int l4lb_nl_fill_service_stats64(struct sk_buff *skb,
				 struct l4lb_service *svc);
int l4lb_nl_fill_dest_config(struct sk_buff *skb, const struct l4lb_real *real);
int l4lb_nl_fill_dest_live(struct sk_buff *skb, struct l4lb_real *real);

/**
 * struct l4lb_nl_cursor - where a dump of the services goes on
 * @key: of the next service, spares counting through thousands of others
 * @index: its place in the list, in case it is gone
 */
struct l4lb_nl_cursor {
	struct l4lb_svc_key	key;
	unsigned int		index;
};

/* Configuration mutex held.  NULL: there are no more. */
struct l4lb_service *l4lb_nl_cursor_service(struct l4lb_net *ln,
					    const struct l4lb_nl_cursor *cursor);

/* The next call ends the dump. */
static inline void l4lb_nl_cursor_end(struct l4lb_nl_cursor *cursor)
{
	cursor->index = UINT_MAX;
}

/* Family L4LB (netlink_l4lb.c, netlink_batch.c, netlink_list.c,
 * netlink_conns.c).
 */
extern struct genl_family l4lb_own_family;
extern const struct nla_policy l4lb_nl_key_policy[IPVS_SVC_ATTR_FWMARK + 1];
extern const struct nla_policy l4lb_nl_conn_policy[L4LB_CONN_ATTR_FLAGS + 1];

/* l4lb_nl_parse_key(), and what the family is strict about. */
int l4lb_nl_parse_own_key(struct l4lb_svc_key *key, struct nlattr **tb,
			  const struct nlattr *nest,
			  struct netlink_ext_ack *extack);
/* One { NAME, VALUE } of the scheduler @ops, which may be NULL, into @value;
 * @seen has a bit for each that was named.
 */
int l4lb_nl_parse_option(const struct l4lb_sched_ops *ops, u32 *value,
			 unsigned long *seen, const struct nlattr *nest,
			 struct netlink_ext_ack *extack);
int l4lb_nl_set_services(struct sk_buff *skb, struct genl_info *info);
int l4lb_nl_dump_services(struct sk_buff *skb, struct netlink_callback *cb);
int l4lb_nl_start_conns(struct netlink_callback *cb);
int l4lb_nl_dump_conns(struct sk_buff *skb, struct netlink_callback *cb);
int l4lb_nl_done_conns(struct netlink_callback *cb);

#endif /* _L4LB_NETLINK_H */
