// SPDX-License-Identifier: GPL-2.0
/* The messages of kernel/l4lb.h about other directors. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "kern.h"
#include "kern_msg.h"
#include "kern_peer.h"
#include "wire.h"

static struct nla_policy peer_policy[L4LB_PEER_ATTR_MAX + 1] = {
	[L4LB_PEER_ATTR_PORT]		= { .type = NLA_U16 },
	[L4LB_PEER_ATTR_STATE]		= { .type = NLA_U32 },
	[L4LB_PEER_ATTR_HEARD]		= { .type = NLA_U64 },
	[L4LB_PEER_ATTR_GAPS]		= { .type = NLA_U64 },
	[L4LB_PEER_ATTR_REPAIRED]	= { .type = NLA_U64 },
	[L4LB_PEER_ATTR_LOST]		= { .type = NLA_U64 },
	[L4LB_PEER_ATTR_RESENT]		= { .type = NLA_U64 },
	[L4LB_PEER_ATTR_BACKLOG]	= { .type = NLA_U32 },
	[L4LB_PEER_ATTR_BULK_IN]	= { .type = NLA_U64 },
	[L4LB_PEER_ATTR_BULK_OUT]	= { .type = NLA_U64 },
	[L4LB_PEER_ATTR_BULK_EXPECTED]	= { .type = NLA_U64 },
	[L4LB_PEER_ATTR_RESYNCS]	= { .type = NLA_U32 },
	[L4LB_PEER_ATTR_VERIFIED]	= { .type = NLA_U32 },
	[L4LB_PEER_ATTR_DIFFERENCE]	= { .type = NLA_U32 },
	[L4LB_PEER_ATTR_COMPARED]	= { .type = NLA_U32 },
};

static struct nla_policy sync_policy[L4LB_SYNC_ATTR_MAX + 1] = {
	[L4LB_SYNC_ATTR_RATE]		= { .type = NLA_U32 },
	[L4LB_SYNC_ATTR_MULTICAST]	= { .type = NLA_U8 },
	[L4LB_SYNC_ATTR_PORT]		= { .type = NLA_U16 },
	[L4LB_SYNC_ATTR_KEY_ID]		= { .type = NLA_U32 },
	[L4LB_SYNC_ATTR_KEPT]		= { .type = NLA_U64 },
	[L4LB_SYNC_ATTR_VERIFY]		= { .type = NLA_U32 },
};

struct found {
	struct sync_peer *list;
	int n;
};

static uint64_t get_u64(struct nlattr *attr)
{
	return attr ? nla_get_u64(attr) : 0;
}

static void get_address(struct nlattr *attr, struct sync_peer *peer)
{
	if (!attr)
		return;
	peer->af = nla_len(attr) == 4 ? AF_INET : AF_INET6;
	memcpy(peer->addr.b, nla_data(attr), nla_len(attr) == 4 ? 4 : 16);
}

static void get_counts(struct nlattr **tb, struct sync_peer *peer)
{
	peer->gaps = get_u64(tb[L4LB_PEER_ATTR_GAPS]);
	peer->repaired = get_u64(tb[L4LB_PEER_ATTR_REPAIRED]);
	peer->lost = get_u64(tb[L4LB_PEER_ATTR_LOST]);
	peer->resent = get_u64(tb[L4LB_PEER_ATTR_RESENT]);
	peer->backlog = kern_get_u32(tb[L4LB_PEER_ATTR_BACKLOG]);
	peer->bulk_in = get_u64(tb[L4LB_PEER_ATTR_BULK_IN]);
	peer->bulk_out = get_u64(tb[L4LB_PEER_ATTR_BULK_OUT]);
	peer->bulk_expected = get_u64(tb[L4LB_PEER_ATTR_BULK_EXPECTED]);
	peer->resyncs = kern_get_u32(tb[L4LB_PEER_ATTR_RESYNCS]);
	peer->verified = kern_get_u32(tb[L4LB_PEER_ATTR_VERIFIED]);
	peer->difference = kern_get_u32(tb[L4LB_PEER_ATTR_DIFFERENCE]);
	peer->compared = kern_get_u32(tb[L4LB_PEER_ATTR_COMPARED]);
}

static void take_peer(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1], *tb[L4LB_PEER_ATTR_MAX + 1];
	struct found *found = arg;
	struct sync_peer *peer;

	if (found->n == L4LB_PEERS_MAX ||
	    genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) < 0 ||
	    !top[L4LB_ATTR_PEER] ||
	    nla_parse_nested(tb, L4LB_PEER_ATTR_MAX, top[L4LB_ATTR_PEER],
			     peer_policy) < 0)
		return;
	peer = &found->list[found->n++];
	memset(peer, 0, sizeof(*peer));
	get_address(tb[L4LB_PEER_ATTR_ADDR], peer);
	peer->port = ntohs(kern_get_u16(tb[L4LB_PEER_ATTR_PORT]));
	peer->hops = tb[L4LB_PEER_ATTR_HOPS];
	peer->state = kern_get_u32(tb[L4LB_PEER_ATTR_STATE]);
	peer->heard = tb[L4LB_PEER_ATTR_HEARD];
	peer->heard_ms = get_u64(tb[L4LB_PEER_ATTR_HEARD]);
	get_counts(tb, peer);
}

int kern_peers(struct sync_peer list[L4LB_PEERS_MAX])
{
	struct found found = { .list = list };
	struct nl_msg *msg;
	int err;

	if (!wire_has_own())
		return -EOPNOTSUPP;
	msg = wire_own_request(L4LB_CMD_GET_SYNC, NLM_F_DUMP);
	err = msg ? wire_call(msg, take_peer, &found) : -ENOMEM;
	return err ? err : found.n;
}

static void take_settings(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1], *tb[L4LB_SYNC_ATTR_MAX + 1];
	struct sync_settings *settings = arg;

	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) < 0 ||
	    !top[L4LB_ATTR_SYNC] ||
	    nla_parse_nested(tb, L4LB_SYNC_ATTR_MAX, top[L4LB_ATTR_SYNC],
			     sync_policy) < 0)
		return;
	settings->rate = kern_get_u32(tb[L4LB_SYNC_ATTR_RATE]);
	if (tb[L4LB_SYNC_ATTR_MULTICAST])
		settings->multicast = nla_get_u8(tb[L4LB_SYNC_ATTR_MULTICAST]);
	settings->port = ntohs(kern_get_u16(tb[L4LB_SYNC_ATTR_PORT]));
	settings->verify = kern_get_u32(tb[L4LB_SYNC_ATTR_VERIFY]);
	settings->kept = get_u64(tb[L4LB_SYNC_ATTR_KEPT]);
	settings->keyed = tb[L4LB_SYNC_ATTR_KEY_ID];
	settings->key_id = kern_get_u32(tb[L4LB_SYNC_ATTR_KEY_ID]);
}

int kern_sync_settings(struct sync_settings *settings)
{
	struct nl_msg *msg;

	memset(settings, 0, sizeof(*settings));
	if (!wire_has_own())
		return -EOPNOTSUPP;
	msg = wire_own_request(L4LB_CMD_GET_SYNC, 0);
	return msg ? wire_call(msg, take_settings, settings) : -ENOMEM;
}

/* @whole: with what NEW_PEER takes. */
static void put_peer(struct nl_msg *msg, const struct sync_peer *peer,
		     bool whole)
{
	struct nlattr *nest = nla_nest_start(msg, L4LB_ATTR_PEER);

	nla_put(msg, L4LB_PEER_ATTR_ADDR, peer->af == AF_INET ? 4 : 16,
		&peer->addr);
	if (whole && peer->port)
		nla_put_u16(msg, L4LB_PEER_ATTR_PORT, htons(peer->port));
	if (whole && peer->hops)
		nla_put_flag(msg, L4LB_PEER_ATTR_HOPS);
	nla_nest_end(msg, nest);
}

/* Announces "@verb sync peer ADDR" and sends @cmd; @peer: NULL for all. */
static int send_peer(int cmd, const char *verb, const struct sync_peer *peer)
{
	bool whole = cmd == L4LB_CMD_NEW_PEER;
	struct nl_msg *msg;
	char what[128], port[24] = "";

	if (whole && peer->port)
		snprintf(port, sizeof(port), " port %u", peer->port);
	snprintf(what, sizeof(what), "sync peer %s%s%s",
		 peer ? ip_text(peer->af, &peer->addr) : "all", port,
		 whole && peer->hops ? " hops" : "");
	if (!wire_has_own())
		return -EOPNOTSUPP;
	if (kern_announce(verb, what))
		return 0;
	msg = wire_own_request(cmd, 0);
	if (!msg)
		return -ENOMEM;
	if (peer)
		put_peer(msg, peer, whole);
	return wire_call(msg, NULL, NULL);
}

int kern_peer_add(const struct sync_peer *peer)
{
	return send_peer(L4LB_CMD_NEW_PEER, "add", peer);
}

int kern_peer_delete(const struct sync_peer *peer)
{
	return send_peer(L4LB_CMD_DEL_PEER, "delete", peer);
}

int kern_sync_resync(const struct sync_peer *peer)
{
	return send_peer(L4LB_CMD_SYNC_RESYNC, "ask", peer);
}

int kern_sync_verify(const struct sync_peer *peer)
{
	return send_peer(L4LB_CMD_SYNC_VERIFY, "verify", peer);
}

int kern_sync_push(void)
{
	struct nl_msg *msg;

	if (!wire_has_own())
		return -EOPNOTSUPP;
	if (kern_announce("send", "all connections to the group"))
		return 0;
	msg = wire_own_request(L4LB_CMD_SYNC_RESYNC, 0);
	if (!msg)
		return -ENOMEM;
	nla_put_flag(msg, L4LB_ATTR_PUSH);
	return wire_call(msg, NULL, NULL);
}

static const char *describe(unsigned int what, const struct sync_settings *s,
			    const uint8_t *key)
{
	static char line[160];
	int n = snprintf(line, sizeof(line), "sync");

	if (what & SYNC_SET_RATE)
		n += snprintf(line + n, sizeof(line) - n, " rate %u", s->rate);
	if (what & SYNC_SET_MULTICAST)
		n += snprintf(line + n, sizeof(line) - n, " multicast %s",
			      s->multicast ? "on" : "off");
	if (what & SYNC_SET_PORT)
		n += snprintf(line + n, sizeof(line) - n, " port %u", s->port);
	if (what & SYNC_SET_VERIFY)
		n += snprintf(line + n, sizeof(line) - n, " verify %u",
			      s->verify);
	if (what & SYNC_SET_KEY)
		snprintf(line + n, sizeof(line) - n, " key %s",
			 key ? "(secret)" : "none");
	return line;
}

int kern_sync_set(unsigned int what, const struct sync_settings *settings,
		  const uint8_t *key)
{
	struct nlattr *nest;
	struct nl_msg *msg;

	if (!wire_has_own())
		return -EOPNOTSUPP;
	if (kern_announce("set", describe(what, settings, key)))
		return 0;
	msg = wire_own_request(L4LB_CMD_SET_SYNC, 0);
	if (!msg)
		return -ENOMEM;
	nest = nla_nest_start(msg, L4LB_ATTR_SYNC);
	if (what & SYNC_SET_RATE)
		nla_put_u32(msg, L4LB_SYNC_ATTR_RATE, settings->rate);
	if (what & SYNC_SET_MULTICAST)
		nla_put_u8(msg, L4LB_SYNC_ATTR_MULTICAST, settings->multicast);
	if (what & SYNC_SET_PORT)
		nla_put_u16(msg, L4LB_SYNC_ATTR_PORT, htons(settings->port));
	if (what & SYNC_SET_VERIFY)
		nla_put_u32(msg, L4LB_SYNC_ATTR_VERIFY, settings->verify);
	if (what & SYNC_SET_KEY)
		nla_put(msg, L4LB_SYNC_ATTR_KEY, key ? L4LB_SYNC_KEY_LEN : 0,
			key ? key : (const uint8_t *)"");
	nla_nest_end(msg, nest);
	return wire_call(msg, NULL, NULL);
}
