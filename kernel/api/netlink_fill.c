// SPDX-License-Identifier: GPL-2.0
/*
 * Replies of the IPVS family: objects to attributes.
 *
 * Order and sizes are what clients expect: addresses always have 16 bytes,
 * nests do not carry NLA_F_NESTED, the mask of a service's flags is ~0.
 */
#include "api/netlink_fill.h"

#include <net/netlink.h>

#include "api/netlink_range.h"
#include "conn/table.h"
#include "service/range.h"

enum {
	FLAGS_MASK = ~0,
};

/* STATS: counters and rates wrap at 32 bits, bytes do not. */
static int fill_stats(struct sk_buff *skb, int type,
		      const struct l4lb_stats_view *view)
{
	const struct l4lb_counters *count = &view->count;
	const struct l4lb_counters *rate = &view->rate;
	struct nlattr *nest;

	nest = nla_nest_start_noflag(skb, type);
	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u32(skb, IPVS_STATS_ATTR_CONNS, count->conns) ||
	    nla_put_u32(skb, IPVS_STATS_ATTR_INPKTS, count->inpkts) ||
	    nla_put_u32(skb, IPVS_STATS_ATTR_OUTPKTS, count->outpkts) ||
	    nla_put_u64_64bit(skb, IPVS_STATS_ATTR_INBYTES, count->inbytes,
			      IPVS_STATS_ATTR_PAD) ||
	    nla_put_u64_64bit(skb, IPVS_STATS_ATTR_OUTBYTES, count->outbytes,
			      IPVS_STATS_ATTR_PAD) ||
	    nla_put_u32(skb, IPVS_STATS_ATTR_CPS, rate->conns) ||
	    nla_put_u32(skb, IPVS_STATS_ATTR_INPPS, rate->inpkts) ||
	    nla_put_u32(skb, IPVS_STATS_ATTR_OUTPPS, rate->outpkts) ||
	    nla_put_u32(skb, IPVS_STATS_ATTR_INBPS, rate->inbytes) ||
	    nla_put_u32(skb, IPVS_STATS_ATTR_OUTBPS, rate->outbytes))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_counters64(struct sk_buff *skb, int first,
			  const struct l4lb_counters *c)
{
	const u64 value[] = {
		c->conns, c->inpkts, c->outpkts, c->inbytes, c->outbytes,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(value); i++) {
		if (nla_put_u64_64bit(skb, first + i, value[i],
				      IPVS_STATS_ATTR_PAD))
			return -EMSGSIZE;
	}
	return 0;
}

static int fill_stats64(struct sk_buff *skb, int type,
			const struct l4lb_stats_view *view)
{
	struct nlattr *nest;

	nest = nla_nest_start_noflag(skb, type);
	if (!nest ||
	    put_counters64(skb, IPVS_STATS_ATTR_CONNS, &view->count) ||
	    put_counters64(skb, IPVS_STATS_ATTR_CPS, &view->rate))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

int l4lb_nl_fill_key(struct sk_buff *skb, const struct l4lb_svc_key *key)
{
	if (nla_put_u16(skb, IPVS_SVC_ATTR_AF, key->af))
		return -EMSGSIZE;
	if (key->fwmark)
		return nla_put_u32(skb, IPVS_SVC_ATTR_FWMARK, key->fwmark);
	if (nla_put_u16(skb, IPVS_SVC_ATTR_PROTOCOL, key->protocol))
		return -EMSGSIZE;
	if (l4lb_key_is_range(key))
		return l4lb_nl_fill_range(skb, key);
	if (nla_put(skb, IPVS_SVC_ATTR_ADDR, sizeof(key->addr), &key->addr) ||
	    nla_put_be16(skb, IPVS_SVC_ATTR_PORT, key->port))
		return -EMSGSIZE;
	return 0;
}

int l4lb_nl_fill_service_config(struct sk_buff *skb,
				const struct l4lb_service *svc)
{
	struct ip_vs_flags flags = {
		.flags = svc->flags,
		.mask = FLAGS_MASK,
	};

	if (nla_put_string(skb, IPVS_SVC_ATTR_SCHED_NAME,
			   l4lb_service_sched_name(svc)) ||
	    (l4lb_service_has_sip(svc) &&
	     nla_put_string(skb, IPVS_SVC_ATTR_PE_NAME, "sip")) ||
	    nla_put(skb, IPVS_SVC_ATTR_FLAGS, sizeof(flags), &flags) ||
	    nla_put_u32(skb, IPVS_SVC_ATTR_TIMEOUT, svc->timeout) ||
	    nla_put_u32(skb, IPVS_SVC_ATTR_NETMASK, svc->netmask))
		return -EMSGSIZE;
	return 0;
}

int l4lb_nl_fill_service_stats64(struct sk_buff *skb, struct l4lb_service *svc)
{
	struct l4lb_stats_view view;

	l4lb_stats_read(&svc->stats, &view);
	return fill_stats64(skb, IPVS_SVC_ATTR_STATS64, &view);
}

int l4lb_nl_fill_service(struct sk_buff *skb, struct l4lb_service *svc)
{
	struct l4lb_stats_view view;
	struct nlattr *nest;

	lockdep_assert_held(&svc->ln->lock);

	nest = nla_nest_start_noflag(skb, IPVS_CMD_ATTR_SERVICE);
	if (!nest)
		return -EMSGSIZE;
	l4lb_stats_read(&svc->stats, &view);
	if (l4lb_nl_fill_key(skb, &svc->key) ||
	    l4lb_nl_fill_service_config(skb, svc) ||
	    fill_stats(skb, IPVS_SVC_ATTR_STATS, &view) ||
	    fill_stats64(skb, IPVS_SVC_ATTR_STATS64, &view)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

static int fill_dest_config(struct sk_buff *skb,
			    const struct l4lb_server *server)
{
	const struct l4lb_sched_server *dest = &server->sched;

	if (nla_put(skb, IPVS_DEST_ATTR_ADDR, sizeof(dest->addr),
		    &dest->addr) ||
	    nla_put_be16(skb, IPVS_DEST_ATTR_PORT, dest->port) ||
	    nla_put_u32(skb, IPVS_DEST_ATTR_FWD_METHOD, server->method) ||
	    nla_put_u32(skb, IPVS_DEST_ATTR_WEIGHT, dest->weight) ||
	    nla_put_u8(skb, IPVS_DEST_ATTR_TUN_TYPE, server->tun.type) ||
	    nla_put_be16(skb, IPVS_DEST_ATTR_TUN_PORT, server->tun.port) ||
	    nla_put_u16(skb, IPVS_DEST_ATTR_TUN_FLAGS, server->tun.flags) ||
	    nla_put_u32(skb, IPVS_DEST_ATTR_U_THRESH, server->u_thresh) ||
	    nla_put_u32(skb, IPVS_DEST_ATTR_L_THRESH, server->l_thresh))
		return -EMSGSIZE;
	return 0;
}

int l4lb_nl_fill_dest_conns(struct sk_buff *skb,
			    const struct l4lb_server *server)
{
	int active = atomic_read(&server->sched.active);
	int total = atomic_read(&server->sched.total);

	/* Not read atomically: active may exceed total for a moment. */
	if (nla_put_u32(skb, IPVS_DEST_ATTR_ACTIVE_CONNS, active) ||
	    nla_put_u32(skb, IPVS_DEST_ATTR_INACT_CONNS,
			max(total - active, 0)) ||
	    nla_put_u32(skb, IPVS_DEST_ATTR_PERSIST_CONNS,
			atomic_read(&server->persist)))
		return -EMSGSIZE;
	return 0;
}

int l4lb_nl_fill_dest_config(struct sk_buff *skb,
			     const struct l4lb_server *server)
{
	return fill_dest_config(skb, server) ?:
	       nla_put_u16(skb, IPVS_DEST_ATTR_ADDR_FAMILY, server->sched.af);
}

int l4lb_nl_fill_dest_live(struct sk_buff *skb, struct l4lb_server *server)
{
	struct l4lb_stats_view view;

	if (l4lb_nl_fill_dest_conns(skb, server))
		return -EMSGSIZE;
	l4lb_stats_read(&server->stats, &view);
	return fill_stats64(skb, IPVS_DEST_ATTR_STATS64, &view);
}

int l4lb_nl_fill_dest(struct sk_buff *skb, struct l4lb_server *server)
{
	struct l4lb_stats_view view;
	struct nlattr *nest;

	lockdep_assert_held(&server->ln->lock);

	nest = nla_nest_start_noflag(skb, IPVS_CMD_ATTR_DEST);
	if (!nest)
		return -EMSGSIZE;
	l4lb_stats_read(&server->stats, &view);
	if (fill_dest_config(skb, server) ||
	    l4lb_nl_fill_dest_conns(skb, server) ||
	    nla_put_u16(skb, IPVS_DEST_ATTR_ADDR_FAMILY, server->sched.af) ||
	    fill_stats(skb, IPVS_DEST_ATTR_STATS, &view) ||
	    fill_stats64(skb, IPVS_DEST_ATTR_STATS64, &view)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

int l4lb_nl_fill_config(struct sk_buff *skb, const struct l4lb_net *ln)
{
	const struct l4lb_timeouts *t = &ln->timeouts;

	lockdep_assert_held(&ln->lock);

	if (nla_put_u32(skb, IPVS_CMD_ATTR_TIMEOUT_TCP, t->tcp / HZ) ||
	    nla_put_u32(skb, IPVS_CMD_ATTR_TIMEOUT_TCP_FIN, t->tcp_fin / HZ) ||
	    nla_put_u32(skb, IPVS_CMD_ATTR_TIMEOUT_UDP, t->udp / HZ))
		return -EMSGSIZE;
	return 0;
}

int l4lb_nl_fill_info(struct sk_buff *skb, struct l4lb_net *ln)
{
	if (nla_put_u32(skb, IPVS_INFO_ATTR_VERSION, IP_VS_VERSION_CODE) ||
	    nla_put_u32(skb, IPVS_INFO_ATTR_CONN_TAB_SIZE,
			l4lb_conn_table_size(ln)))
		return -EMSGSIZE;
	return 0;
}

struct l4lb_service *l4lb_nl_cursor_service(struct l4lb_net *ln,
					    const struct l4lb_nl_cursor *cursor)
{
	struct l4lb_service *service;
	unsigned int i = 0;

	if (cursor->index == UINT_MAX)
		return NULL;
	if (cursor->key.af) {
		service = l4lb_service_find(ln, &cursor->key);
		if (service)
			return service;
	}
	list_for_each_entry(service, &ln->services, list) {
		if (i++ == cursor->index)
			return service;
	}
	return NULL;
}
