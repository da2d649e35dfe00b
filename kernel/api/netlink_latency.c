// SPDX-License-Identifier: GPL-2.0
/* L4LB_CMD_GET_LATENCY: how long real servers take to answer. */
#include "api/netlink_latency.h"

#include <net/netlink.h>

#include "api/netlink_servers.h"
#include "service/latency.h"

static bool is_measured(const struct l4lb_server *server)
{
	return READ_ONCE(server->latency);
}

static int put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, L4LB_LATENCY_KIND_ATTR_PAD);
}

/* Adds nothing if nothing was counted. */
static int fill_kind(struct sk_buff *skb, int attr,
		     const struct l4lb_latency_count *count)
{
	struct nlattr *nest;

	if (!memchr_inv(count->n, 0, sizeof(count->n)))
		return 0;
	nest = nla_nest_start(skb, attr);
	if (!nest ||
	    nla_put_64bit(skb, L4LB_LATENCY_KIND_ATTR_BUCKETS,
			  L4LB_LATENCY_BUCKETS * sizeof(count->n[0]), count->n,
			  L4LB_LATENCY_KIND_ATTR_PAD) ||
	    put_u64(skb, L4LB_LATENCY_KIND_ATTR_SUM, count->sum) ||
	    put_u64(skb, L4LB_LATENCY_KIND_ATTR_REFUSED,
		    count->n[L4LB_LATENCY_REFUSED]) ||
	    put_u64(skb, L4LB_LATENCY_KIND_ATTR_UNANSWERED,
		    count->n[L4LB_LATENCY_UNANSWERED]))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int fill_latency(struct sk_buff *skb, const struct l4lb_server *server)
{
	struct l4lb_latency_count count[L4LB_LATENCY_KINDS] = { };
	const struct l4lb_sched_server *dest = &server->sched;
	struct nlattr *nest = nla_nest_start(skb, L4LB_ATTR_LATENCY);

	l4lb_latency_read(server, count);
	if (!nest ||
	    nla_put(skb, L4LB_LATENCY_ATTR_ADDR, sizeof(dest->addr),
		    &dest->addr) ||
	    nla_put_be16(skb, L4LB_LATENCY_ATTR_PORT, dest->port) ||
	    nla_put_u16(skb, L4LB_LATENCY_ATTR_AF, dest->af) ||
	    fill_kind(skb, L4LB_LATENCY_ATTR_HANDSHAKE,
		      &count[L4LB_LATENCY_HANDSHAKE]) ||
	    fill_kind(skb, L4LB_LATENCY_ATTR_ANSWER, &count[L4LB_LATENCY_ANSWER]))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

int l4lb_nl_dump_latency(struct sk_buff *skb, struct netlink_callback *cb)
{
	static const struct l4lb_nl_server_dump dump = {
		.cmd	= L4LB_CMD_GET_LATENCY,
		.lists	= is_measured,
		.fill	= fill_latency,
	};

	return l4lb_nl_dump_servers(skb, cb, &dump);
}
