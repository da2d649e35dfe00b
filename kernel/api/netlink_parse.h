/* SPDX-License-Identifier: GPL-2.0 */
/* Parsing messages: family IPVS, and parts shared with family L4LB. */
#ifndef _L4LB_NETLINK_PARSE_H
#define _L4LB_NETLINK_PARSE_H

#include "service/server.h"

#include <net/genetlink.h>

/**
 * struct l4lb_nl_service - the SERVICE attribute of a request
 * @key: key of the service
 * @cfg: requested settings; flags are not merged with the present ones yet
 * @mask: flags to be set or cleared
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

/* The namespace of a request.  NULL: not serving, answer -EAGAIN. */
struct l4lb_net *l4lb_nl_net(const struct sk_buff *skb,
			     struct netlink_ext_ack *extack);

int l4lb_nl_pre_doit(l4lb_genl_ops *ops, struct sk_buff *skb,
		     struct genl_info *info);

/* Parse the key of a service: attributes IPVS_SVC_ATTR_AF to _FWMARK in @tb,
 * checked against their policy.  The caller has zeroed @key.
 */
int l4lb_nl_parse_key(struct l4lb_svc_key *key, struct nlattr **tb,
		      const struct nlattr *nest,
		      struct netlink_ext_ack *extack);
/* @full: the request must hold a whole configuration, not just an identity.
 * Return: 0, or a negative errno with a sentence in @extack, if not NULL.
 */
int l4lb_nl_parse_service(struct l4lb_nl_service *svc,
			  const struct nlattr *nest, bool full,
			  struct netlink_ext_ack *extack);
/* Likewise, of a service whose @key is parsed already. */
int l4lb_nl_parse_settings(struct l4lb_nl_service *svc,
			   const struct l4lb_svc_key *key,
			   const struct nlattr *nest,
			   struct netlink_ext_ack *extack);
int l4lb_nl_parse_dest(struct l4lb_server_config *cfg, u16 svc_af,
		       const struct nlattr *nest, bool full,
		       struct netlink_ext_ack *extack);

/* The attributes that name a real server of a service; NULL: it is missing. */
struct l4lb_nl_server_name {
	const struct nlattr	*nest, *addr, *port, *af;
};

/* Sets address, port and family of @cfg.  Return: 0 or -EINVAL with a sentence. */
int l4lb_nl_parse_server_name(struct l4lb_server_config *cfg, u16 svc_af,
			      const struct l4lb_nl_server_name *name,
			      struct netlink_ext_ack *extack);

/* Seconds; 0, or no attribute: 0 in @t. */
int l4lb_nl_parse_timeouts(struct l4lb_timeouts *t, const struct nlattr *tcp,
			   const struct nlattr *tcp_fin, const struct nlattr *udp,
			   struct netlink_ext_ack *extack);

/* Find the scheduler of a service, and check its persistence engine and
 * netmask.  *ops gets a reference, or NULL for "none".  May sleep and load a
 * module: no lock may be held.
 */
int l4lb_nl_resolve(const struct l4lb_nl_service *svc,
		    const struct l4lb_sched_ops **ops,
		    struct netlink_ext_ack *extack);

#endif /* _L4LB_NETLINK_PARSE_H */
