// SPDX-License-Identifier: GPL-2.0
/* Services and real servers in messages. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <linux/ip_vs.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include "kern_msg.h"
#include "model.h"

static uint64_t get_count(struct nlattr *attr)
{
	if (!attr)
		return 0;
	return nla_len(attr) >= 8 ? nla_get_u64(attr) : nla_get_u32(attr);
}

static void get_counters(struct nlattr *nest64, struct nlattr *nest32,
			 struct counters *c)
{
	struct nlattr *tb[IPVS_STATS_ATTR_MAX + 1];
	struct nlattr *nest = nest64 ? nest64 : nest32;

	if (!nest || nla_parse_nested(tb, IPVS_STATS_ATTR_MAX, nest, NULL) < 0)
		return;
	c->conns = get_count(tb[IPVS_STATS_ATTR_CONNS]);
	c->inpkts = get_count(tb[IPVS_STATS_ATTR_INPKTS]);
	c->outpkts = get_count(tb[IPVS_STATS_ATTR_OUTPKTS]);
	c->inbytes = get_count(tb[IPVS_STATS_ATTR_INBYTES]);
	c->outbytes = get_count(tb[IPVS_STATS_ATTR_OUTBYTES]);
	c->cps = get_count(tb[IPVS_STATS_ATTR_CPS]);
	c->inpps = get_count(tb[IPVS_STATS_ATTR_INPPS]);
	c->outpps = get_count(tb[IPVS_STATS_ATTR_OUTPPS]);
	c->inbps = get_count(tb[IPVS_STATS_ATTR_INBPS]);
	c->outbps = get_count(tb[IPVS_STATS_ATTR_OUTBPS]);
}

static void get_ip(struct nlattr *attr, uint16_t af, struct ip *ip)
{
	int want = af == AF_INET6 ? 16 : 4;

	memset(ip, 0, sizeof(*ip));
	if (attr)
		memcpy(ip->b, nla_data(attr),
		       nla_len(attr) < want ? nla_len(attr) : want);
}

uint32_t kern_get_u32(struct nlattr *attr)
{
	return attr && nla_len(attr) >= 4 ? nla_get_u32(attr) : 0;
}

uint16_t kern_get_u16(struct nlattr *attr)
{
	return attr && nla_len(attr) >= 2 ? nla_get_u16(attr) : 0;
}

void kern_get_string(struct nlattr *attr, char *out, size_t size)
{
	out[0] = '\0';
	if (attr)
		snprintf(out, size, "%.*s", nla_len(attr),
			 (const char *)nla_data(attr));
}

static void get_range(struct nlattr *nest, struct svc_id *id)
{
	struct nlattr *tb[L4LB_RANGE_ATTR_MAX + 1];

	if (nla_parse_nested(tb, L4LB_RANGE_ATTR_MAX, nest, NULL) < 0)
		return;
	get_ip(tb[L4LB_RANGE_ATTR_ADDR], id->af, &id->addr);
	if (tb[L4LB_RANGE_ATTR_PREFIX_LEN])
		id->prefix_len = nla_get_u8(tb[L4LB_RANGE_ATTR_PREFIX_LEN]);
	id->port = ntohs(kern_get_u16(tb[L4LB_RANGE_ATTR_PORT]));
	id->last_port = ntohs(kern_get_u16(tb[L4LB_RANGE_ATTR_LAST_PORT]));
}

static void get_ident(struct nlattr **tb, struct svc_id *id)
{
	memset(id, 0, sizeof(*id));
	id->af = kern_get_u16(tb[IPVS_SVC_ATTR_AF]);
	id->fwmark = kern_get_u32(tb[IPVS_SVC_ATTR_FWMARK]);
	if (id->fwmark)
		return;
	id->proto = kern_get_u16(tb[IPVS_SVC_ATTR_PROTOCOL]);
	if (tb[L4LB_SVC_ATTR_RANGE]) {
		get_range(tb[L4LB_SVC_ATTR_RANGE], id);
		return;
	}
	get_ip(tb[IPVS_SVC_ATTR_ADDR], id->af, &id->addr);
	id->port = ntohs(kern_get_u16(tb[IPVS_SVC_ATTR_PORT]));
}

void kern_get_service(struct nlattr **tb, struct service *svc)
{
	get_ident(tb, &svc->id);
	kern_get_string(tb[IPVS_SVC_ATTR_SCHED_NAME], svc->scheduler,
			sizeof(svc->scheduler));
	kern_get_string(tb[IPVS_SVC_ATTR_PE_NAME], svc->pe, sizeof(svc->pe));
	if (tb[IPVS_SVC_ATTR_FLAGS] && nla_len(tb[IPVS_SVC_ATTR_FLAGS]) >= 8)
		memcpy(&svc->flags, nla_data(tb[IPVS_SVC_ATTR_FLAGS]), 4);
	svc->timeout = kern_get_u32(tb[IPVS_SVC_ATTR_TIMEOUT]);
	svc->netmask = kern_get_u32(tb[IPVS_SVC_ATTR_NETMASK]);
	get_counters(tb[IPVS_SVC_ATTR_STATS64], tb[IPVS_SVC_ATTR_STATS],
		     &svc->stats);
}

void kern_get_server(struct nlattr **tb, const struct service *svc,
		     struct server *srv)
{
	srv->af = kern_get_u16(tb[IPVS_DEST_ATTR_ADDR_FAMILY]);
	if (!srv->af)
		srv->af = svc->id.af;
	get_ip(tb[IPVS_DEST_ATTR_ADDR], srv->af, &srv->addr);
	srv->port = ntohs(kern_get_u16(tb[IPVS_DEST_ATTR_PORT]));
	srv->forward = kern_get_u32(tb[IPVS_DEST_ATTR_FWD_METHOD]);
	srv->weight = kern_get_u32(tb[IPVS_DEST_ATTR_WEIGHT]);
	srv->max_conns = kern_get_u32(tb[IPVS_DEST_ATTR_U_THRESH]);
	srv->min_conns = kern_get_u32(tb[IPVS_DEST_ATTR_L_THRESH]);
	srv->active = kern_get_u32(tb[IPVS_DEST_ATTR_ACTIVE_CONNS]);
	srv->inactive = kern_get_u32(tb[IPVS_DEST_ATTR_INACT_CONNS]);
	srv->persistent = kern_get_u32(tb[IPVS_DEST_ATTR_PERSIST_CONNS]);
	if (tb[IPVS_DEST_ATTR_TUN_TYPE])
		srv->tun_type = nla_get_u8(tb[IPVS_DEST_ATTR_TUN_TYPE]);
	srv->tun_port = ntohs(kern_get_u16(tb[IPVS_DEST_ATTR_TUN_PORT]));
	srv->tun_flags = kern_get_u16(tb[IPVS_DEST_ATTR_TUN_FLAGS]);
	get_counters(tb[IPVS_DEST_ATTR_STATS64], tb[IPVS_DEST_ATTR_STATS],
		     &srv->stats);
}

void kern_put_ident(struct nl_msg *msg, const struct svc_id *id)
{
	struct nlattr *nest;

	nla_put_u16(msg, IPVS_SVC_ATTR_AF, id->af);
	if (id->fwmark) {
		nla_put_u32(msg, IPVS_SVC_ATTR_FWMARK, id->fwmark);
		return;
	}
	nla_put_u16(msg, IPVS_SVC_ATTR_PROTOCOL, id->proto);
	if (svc_is_range(id)) {
		nest = nla_nest_start(msg, L4LB_SVC_ATTR_RANGE | NLA_F_NESTED);
		nla_put(msg, L4LB_RANGE_ATTR_ADDR, sizeof(id->addr), &id->addr);
		nla_put_u8(msg, L4LB_RANGE_ATTR_PREFIX_LEN, id->prefix_len);
		nla_put_u16(msg, L4LB_RANGE_ATTR_PORT, htons(id->port));
		nla_put_u16(msg, L4LB_RANGE_ATTR_LAST_PORT, htons(id->last_port));
		nla_nest_end(msg, nest);
		return;
	}
	nla_put(msg, IPVS_SVC_ATTR_ADDR, sizeof(id->addr), &id->addr);
	nla_put_u16(msg, IPVS_SVC_ATTR_PORT, htons(id->port));
}
