/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A conntrack helper for connections whose text announces other ones: control connections
 * and data connections.  It is a module of its own (l4lb_ftp); there is one at most.
 */
#ifndef _L4LB_CONN_HELPER_H
#define _L4LB_CONN_HELPER_H

#include <linux/jump_label.h>

#include "conn/conn.h"

struct nf_conn;
struct nf_conntrack_helper;
struct l4lb_svc_key;

#define L4LB_HELPER_PORTS	8
#define L4LB_HELPER_PORT_MIN	1024	/* of real servers, for clients to connect to */

/**
 * struct l4lb_helper - a helper
 * @ops: what conntrack calls for each packet of a control connection, after NAT
 * @joins: a new entry is of a control connection that another director had up to now
 * @n_ports: number of @ports
 * @ports: of control connections, as clients reach them; TCP
 *
 * The entry of a connection that it expects begins with the reply tuple that NAT makes.
 */
struct l4lb_helper {
	struct nf_conntrack_helper	*ops;
	void				(*joins)(struct nf_conn *ct);
	unsigned int			n_ports;
	__be16				ports[L4LB_HELPER_PORTS];
};

DECLARE_STATIC_KEY_FALSE(l4lb_helper_on);

static inline bool l4lb_helper_used(void)
{
	return IS_ENABLED(CONFIG_NF_CONNTRACK) &&
	       static_branch_unlikely(&l4lb_helper_on);
}

/* Is @conn, which is new, a control connection?  Only with l4lb_helper_used(), like all
 * that follow.  RCU.
 */
bool l4lb_helper_controls(const struct l4lb_conn *conn);
/* May clients of a service have control connections? */
bool l4lb_helper_serves(const struct l4lb_svc_key *key);
/* Gives the entry of @conn, which is not confirmed yet, the helper. */
void l4lb_helper_attach(struct nf_conn *ct, const struct l4lb_conn *conn);
/* The control connection of a data connection's entry, or NULL.  RCU, BH off. */
struct l4lb_conn *l4lb_helper_master(struct l4lb_net *ln, const struct nf_conn *ct);
/* The real server to which another director has the data connection @flow, at @port: it has
 * the address @addr.  @own: the service of @flow itself; NULL: there is none, as most often.
 * Return: NULL: no service here has such data connections.  RCU.
 */
struct l4lb_server *l4lb_helper_server(struct l4lb_net *ln, const struct l4lb_service *own,
				       const struct l4lb_flow *flow,
				       const union nf_inet_addr *addr, __be16 port);
/* A data connection's packet keeps its control connection, which is quiet meanwhile. */
void l4lb_helper_seen(const struct sk_buff *skb, struct l4lb_net *ln);

/* NULL: there is none any more. */
int l4lb_helper_set(const struct l4lb_helper *helper);

#endif /* _L4LB_CONN_HELPER_H */
