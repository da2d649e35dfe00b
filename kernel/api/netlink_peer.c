// SPDX-License-Identifier: GPL-2.0
/*
 * Commands of family L4LB about synchronisation with other directors.  None of
 * them holds the configuration mutex while peers change: see sync/daemon.c.
 */
#include "api/netlink_peer.h"

#include <linux/in.h>
#include <linux/in6.h>

#include "api/netlink_l4lb.h"
#include "api/netlink_parse.h"
#include "api/netlink_refuse.h"
#include "api/netlink_sync.h"
#include "sync/bulk.h"
#include "sync/counter.h"
#include "sync/daemon.h"
#include "sync/hello.h"
#include "sync/join.h"
#include "sync/verify.h"
#include "sync/walker.h"

enum {
	SYNC_ATTR_MAX	= L4LB_SYNC_ATTR_VERIFY,
	PEER_ATTR_MAX	= L4LB_PEER_ATTR_HOPS,
};

/* Records per second. */
static struct netlink_range_validation rates = { .max = 1 << 20 };
/* Seconds. */
static struct netlink_range_validation periods = { .max = 24 * 60 * 60 };

const struct nla_policy l4lb_nl_sync_policy[SYNC_ATTR_MAX + 1] = {
	[L4LB_SYNC_ATTR_RATE]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&rates),
	[L4LB_SYNC_ATTR_MULTICAST] = NLA_POLICY_MAX(NLA_U8, 1),
	[L4LB_SYNC_ATTR_PORT]	= { .type = NLA_U16 },
	[L4LB_SYNC_ATTR_KEY]	= { .type = NLA_BINARY,
				    .len = L4LB_SYNC_KEY_LEN },
	[L4LB_SYNC_ATTR_VERIFY]	= NLA_POLICY_FULL_RANGE(NLA_U32,
							&periods),
};

const struct nla_policy l4lb_nl_peer_policy[PEER_ATTR_MAX + 1] = {
	[L4LB_PEER_ATTR_ADDR]	= NLA_POLICY_RANGE(NLA_BINARY,
						   sizeof(struct in_addr),
						   sizeof(struct in6_addr)),
	[L4LB_PEER_ATTR_PORT]	= { .type = NLA_U16 },
	[L4LB_PEER_ATTR_HOPS]	= { .type = NLA_FLAG },
};

/* Are there counters and peers?  Pairs with create() in sync/daemon.c. */
static bool has_sync(const struct l4lb_net *ln)
{
	return smp_load_acquire(&ln->sync);	/* see above */
}

/* ---- settings ---- */

static int parse_port(const __be16 **port, const struct nlattr *attr,
		      struct genl_info *info)
{
	if (!attr)
		return 0;
	*port = nla_data(attr);
	return **port ? 0 : l4lb_nl_refuse(info->extack, attr, "the port must not be 0");
}

static int parse_settings(struct l4lb_sync_settings *settings,
			  struct nlattr **tb, struct genl_info *info)
{
	const struct nlattr *key = tb[L4LB_SYNC_ATTR_KEY];

	if (tb[L4LB_SYNC_ATTR_RATE])
		settings->rate = nla_data(tb[L4LB_SYNC_ATTR_RATE]);
	if (tb[L4LB_SYNC_ATTR_VERIFY])
		settings->verify = nla_data(tb[L4LB_SYNC_ATTR_VERIFY]);
	if (tb[L4LB_SYNC_ATTR_MULTICAST])
		settings->multicast = nla_data(tb[L4LB_SYNC_ATTR_MULTICAST]);
	settings->has_key = key;
	if (key && nla_len(key)) {
		if (nla_len(key) != L4LB_SYNC_KEY_LEN)
			return l4lb_nl_refuse(info->extack, key,
					      "a key has 32 bytes; none: no key");
		settings->key = nla_data(key);
	}
	return parse_port(&settings->port, tb[L4LB_SYNC_ATTR_PORT], info);
}

int l4lb_nl_set_sync(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *nest = info->attrs[L4LB_ATTR_SYNC];
	struct nlattr *tb[SYNC_ATTR_MAX + 1];
	struct l4lb_sync_settings settings = { };
	struct l4lb_net *ln = info->user_ptr[0];
	int err;

	if (!nest) {
		NL_SET_ERR_MSG(info->extack, "attribute SYNC is missing");
		return -EINVAL;
	}
	err = nla_parse_nested(tb, SYNC_ATTR_MAX, nest, l4lb_nl_sync_policy,
			       info->extack);
	if (err)
		return err;
	err = parse_settings(&settings, tb, info) ?: l4lb_sync_prepare(ln);
	if (!err)
		err = l4lb_sync_peers_set(ln->sync_peers, &settings);
	/* An error is reported with a copy of the message. */
	if (settings.key)
		memzero_explicit(nla_data(tb[L4LB_SYNC_ATTR_KEY]),
				 L4LB_SYNC_KEY_LEN);
	if (err == -EBUSY)
		NL_SET_ERR_MSG_ATTR(info->extack, tb[L4LB_SYNC_ATTR_PORT],
				    "the port changes only while there are no peers: delete them first");
	return err;
}

static int fill_counters(struct sk_buff *skb, const struct l4lb_net *ln)
{
	struct nlattr *all = nla_nest_start(skb, L4LB_SYNC_ATTR_COUNTERS);
	struct nlattr *nest;
	unsigned int i;

	if (!all)
		return -EMSGSIZE;
	for (i = 0; i < L4LB_SYNC_COUNTERS; i++) {
		nest = nla_nest_start(skb, 1);
		if (!nest ||
		    nla_put_string(skb, L4LB_COUNTER_ATTR_NAME,
				   l4lb_sync_counter_name(i)) ||
		    nla_put_u64_64bit(skb, L4LB_COUNTER_ATTR_VALUE,
				      l4lb_sync_counter_read(ln, i),
				      L4LB_COUNTER_ATTR_PAD))
			return -EMSGSIZE;
		nla_nest_end(skb, nest);
	}
	nla_nest_end(skb, all);
	return 0;
}

static u64 kept(struct l4lb_sync_peers *peers)
{
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < L4LB_SYNC_STREAMS; i++)
		sum += READ_ONCE(peers->rings[i].bytes);
	return sum;
}

static int fill_settings(struct sk_buff *skb, struct l4lb_sync_peers *peers)
{
	int err;

	down_read(&peers->lock);
	err = nla_put_u32(skb, L4LB_SYNC_ATTR_RATE, peers->rate) ?:
	      nla_put_u8(skb, L4LB_SYNC_ATTR_MULTICAST, peers->multicast) ?:
	      nla_put_be16(skb, L4LB_SYNC_ATTR_PORT, peers->port) ?:
	      nla_put_u64_64bit(skb, L4LB_SYNC_ATTR_SENDER, peers->sender,
				L4LB_SYNC_ATTR_PAD) ?:
	      nla_put_u64_64bit(skb, L4LB_SYNC_ATTR_KEPT, kept(peers),
				L4LB_SYNC_ATTR_PAD) ?:
	      nla_put_u32(skb, L4LB_SYNC_ATTR_VERIFY, peers->verify);
	if (!err && peers->keys.on)
		err = nla_put_u32(skb, L4LB_SYNC_ATTR_KEY_ID,
				  l4lb_sync_key_id(&peers->keys));
	up_read(&peers->lock);
	return err;
}

int l4lb_nl_get_sync(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];
	struct nlattr *nest;
	struct sk_buff *msg;
	void *hdr;
	int err;

	err = l4lb_sync_prepare(ln);
	if (err)
		return err;
	msg = l4lb_nl_reply_new(info, &hdr);
	if (!msg)
		return -ENOMEM;
	nest = nla_nest_start(msg, L4LB_ATTR_SYNC);
	err = nest ? fill_settings(msg, ln->sync_peers) ?:
		     fill_counters(msg, ln) : -EMSGSIZE;
	if (!err)
		nla_nest_end(msg, nest);
	return l4lb_nl_reply_send(info, msg, hdr, err);
}

/* ---- peers ---- */

static int parse_addr(struct sockaddr_storage *addr, const struct nlattr *attr,
		      struct genl_info *info)
{
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)addr;

	if (!attr)
		return l4lb_nl_refuse(info->extack, info->attrs[L4LB_ATTR_PEER],
				      "peer: attribute ADDR is missing");
	if (nla_len(attr) == sizeof(struct in_addr)) {
		ipv4->sin_family = AF_INET;
		ipv4->sin_addr.s_addr = nla_get_in_addr(attr);
	} else if (nla_len(attr) == sizeof(struct in6_addr)) {
		ipv6->sin6_family = AF_INET6;
		ipv6->sin6_addr = nla_get_in6_addr(attr);
	} else {
		return l4lb_nl_refuse(info->extack, attr,
				      "peer: the address must have 4 bytes, or 16");
	}
	return 0;
}

static int parse_peer(struct sockaddr_storage *addr, struct nlattr **tb,
		      struct genl_info *info)
{
	const struct nlattr *nest = info->attrs[L4LB_ATTR_PEER];
	__be16 port = htons(L4LB_PEER_PORT);
	const __be16 *given = &port;
	int err;

	memset(addr, 0, sizeof(*addr));
	if (!nest) {
		NL_SET_ERR_MSG(info->extack, "attribute PEER is missing");
		return -EINVAL;
	}
	err = nla_parse_nested(tb, PEER_ATTR_MAX, nest, l4lb_nl_peer_policy,
			       info->extack) ?:
	      parse_addr(addr, tb[L4LB_PEER_ATTR_ADDR], info) ?:
	      parse_port(&given, tb[L4LB_PEER_ATTR_PORT], info);
	if (err)
		return err;
	if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = *given;
	else
		((struct sockaddr_in *)addr)->sin_port = *given;
	return 0;
}

int l4lb_nl_new_peer(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[PEER_ATTR_MAX + 1];
	struct l4lb_net *ln = info->user_ptr[0];
	struct sockaddr_storage addr;
	int err;

	err = parse_peer(&addr, tb, info) ?:
	      l4lb_nl_prepare_receiver(ln, info) ?:
	      l4lb_sync_claim(ln, info->extack);
	if (err)
		return err;
	err = l4lb_sync_peer_add(ln->sync_peers, &addr,
				 nla_get_flag(tb[L4LB_PEER_ATTR_HOPS]),
				 info->extack);
	if (err)
		l4lb_sync_unclaim(ln);
	return err;
}

int l4lb_nl_del_peer(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *tb[PEER_ATTR_MAX + 1];
	struct l4lb_net *ln = info->user_ptr[0];
	struct sockaddr_storage addr;
	int err;

	err = parse_peer(&addr, tb, info);
	if (err)
		return err;
	err = has_sync(ln) ?
	      l4lb_sync_peer_del(ln->sync_peers, &addr) : -ESRCH;
	if (err)
		NL_SET_ERR_MSG_ATTR(info->extack, tb[L4LB_PEER_ATTR_ADDR],
				    "there is no peer with this address");
	else
		l4lb_sync_unclaim(ln);
	return err;
}

static int fill_addr(struct sk_buff *skb, const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		return nla_put_in6_addr(skb, L4LB_PEER_ATTR_ADDR,
					&((struct sockaddr_in6 *)addr)->sin6_addr);
	return nla_put_in_addr(skb, L4LB_PEER_ATTR_ADDR,
			       ((struct sockaddr_in *)addr)->sin_addr.s_addr);
}

static int put_u64(struct sk_buff *skb, int type, u64 value)
{
	return nla_put_u64_64bit(skb, type, value, L4LB_PEER_ATTR_PAD);
}

static int fill_heard(struct sk_buff *skb, const struct l4lb_sync_peer *peer)
{
	if (!peer->was_heard)
		return 0;
	return put_u64(skb, L4LB_PEER_ATTR_SENDER, peer->source.sender) ?:
	       put_u64(skb, L4LB_PEER_ATTR_HEARD,
		       jiffies_to_msecs(jiffies - peer->source.heard));
}

static int fill_resyncs(struct sk_buff *skb, const struct l4lb_sync_peer *peer)
{
	const struct l4lb_sync_join *join = peer->join;

	return put_u64(skb, L4LB_PEER_ATTR_BULK_IN, join->came) ?:
	       put_u64(skb, L4LB_PEER_ATTR_BULK_EXPECTED, join->expected) ?:
	       put_u64(skb, L4LB_PEER_ATTR_BULK_OUT,
		       l4lb_sync_bulk_sent(peer)) ?:
	       nla_put_u32(skb, L4LB_PEER_ATTR_RESYNCS, join->n);
}

static int fill_verified(struct sk_buff *skb, const struct l4lb_sync_peer *peer)
{
	const struct l4lb_sync_verified *last = l4lb_sync_verified(peer);
	int err;

	err = nla_put_u32(skb, L4LB_PEER_ATTR_VERIFIED, last->n);
	if (err || !last->n)
		return err;
	return nla_put_u32(skb, L4LB_PEER_ATTR_DIFFERENCE, last->difference) ?:
	       nla_put_u32(skb, L4LB_PEER_ATTR_COMPARED, last->compared);
}

static int fill_peer(struct sk_buff *skb, const struct l4lb_sync_peer *peer)
{
	struct nlattr *nest = nla_nest_start(skb, L4LB_ATTR_PEER);

	if (!nest || fill_addr(skb, &peer->addr) ||
	    nla_put_be16(skb, L4LB_PEER_ATTR_PORT,
			 l4lb_sync_port(&peer->addr)) ||
	    (peer->hops && nla_put_flag(skb, L4LB_PEER_ATTR_HOPS)) ||
	    nla_put_u32(skb, L4LB_PEER_ATTR_STATE,
			l4lb_sync_peer_state(peer)) ||
	    fill_heard(skb, peer) ||
	    put_u64(skb, L4LB_PEER_ATTR_GAPS, peer->n_gaps) ||
	    put_u64(skb, L4LB_PEER_ATTR_REPAIRED, peer->n_repaired) ||
	    put_u64(skb, L4LB_PEER_ATTR_LOST, peer->n_lost) ||
	    put_u64(skb, L4LB_PEER_ATTR_RESENT, peer->n_resent) ||
	    nla_put_u32(skb, L4LB_PEER_ATTR_BACKLOG, peer->backlog) ||
	    fill_resyncs(skb, peer) || fill_verified(skb, peer))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int dump_peer(struct sk_buff *skb, struct netlink_callback *cb,
		     struct l4lb_sync_peer *peer)
{
	void *hdr;
	int err;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &l4lb_ext_family, NLM_F_MULTI, L4LB_CMD_GET_SYNC);
	if (!hdr)
		return -EMSGSIZE;
	spin_lock(&peer->peers->state);
	err = fill_peer(skb, peer);
	spin_unlock(&peer->peers->state);
	if (err)
		genlmsg_cancel(skb, hdr);
	else
		genlmsg_end(skb, hdr);
	return err;
}

/* The position is an index: eight peers fit into one message. */
int l4lb_nl_dump_peers(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct l4lb_net *ln = l4lb_nl_net(skb, cb->extack);
	struct l4lb_sync_peers *peers;

	if (!ln)
		return -EAGAIN;
	if (!has_sync(ln))
		return skb->len;
	peers = ln->sync_peers;
	down_read(&peers->lock);
	for (; cb->args[0] < peers->n; cb->args[0]++)
		if (dump_peer(skb, cb, peers->peer[cb->args[0]]))
			break;
	up_read(&peers->lock);
	return skb->len;
}

/* ---- events ---- */

void l4lb_nl_peer_event(struct l4lb_sync_peer *peer)
{
	struct net *net = peer->peers->ln->net;
	struct sk_buff *msg;
	void *hdr;
	int err;

	if (!genl_has_listeners(&l4lb_ext_family, net, L4LB_NL_EVENTS))
		return;
	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return;
	hdr = genlmsg_put(msg, 0, 0, &l4lb_ext_family, 0, L4LB_CMD_GET_SYNC);
	spin_lock(&peer->peers->state);
	err = hdr ? fill_peer(msg, peer) : -EMSGSIZE;
	spin_unlock(&peer->peers->state);
	if (err) {
		nlmsg_free(msg);
		return;
	}
	genlmsg_end(msg, hdr);
	genlmsg_multicast_netns(&l4lb_ext_family, net, msg, 0, L4LB_NL_EVENTS,
				GFP_KERNEL);
}

/* ---- orders ---- */

static bool is_same(const struct l4lb_sync_peer *peer,
		    const struct l4lb_sync_peer *one)
{
	return !one || peer == one;
}

/* Does @order for the peer that the request names, or for all. */
static int for_peers(struct l4lb_sync_peers *peers,
		     const struct sockaddr_storage *addr,
		     void (*order)(struct l4lb_sync_peer *peer))
{
	struct l4lb_sync_peer *one = NULL;
	unsigned int i;
	int err = 0;

	down_read(&peers->lock);
	if (addr)
		one = l4lb_sync_peer_find(peers, addr);
	if (!peers->n || (addr && !one))
		err = -ESRCH;
	spin_lock(&peers->state);
	for (i = 0; !err && i < peers->n; i++)
		if (is_same(peers->peer[i], one))
			order(peers->peer[i]);
	spin_unlock(&peers->state);
	up_read(&peers->lock);
	return err;
}

static int order_peers(struct genl_info *info,
		       void (*order)(struct l4lb_sync_peer *peer))
{
	bool named = info->attrs[L4LB_ATTR_PEER];
	struct nlattr *tb[PEER_ATTR_MAX + 1];
	struct l4lb_net *ln = info->user_ptr[0];
	struct sockaddr_storage addr;
	int err;

	err = named ? parse_peer(&addr, tb, info) : 0;
	if (err)
		return err;
	err = has_sync(ln) ?
	      for_peers(ln->sync_peers, named ? &addr : NULL, order) : -ESRCH;
	if (err && named)
		NL_SET_ERR_MSG(info->extack, "there is no peer with this address");
	else if (err)
		NL_SET_ERR_MSG(info->extack, "there is no peer: add one first");
	return err;
}

int l4lb_nl_sync_resync(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *push = info->attrs[L4LB_ATTR_PUSH];
	struct l4lb_net *ln = info->user_ptr[0];
	int err;

	if (!push)
		return order_peers(info, l4lb_sync_join_ask);
	if (info->attrs[L4LB_ATTR_PEER])
		return l4lb_nl_refuse(info->extack, push, "PEER and PUSH exclude each other");
	/* pairs with the release in sync/daemon.c, which shows it whole */
	err = smp_load_acquire(&ln->sync) ? l4lb_sync_push(ln->sync_peers) :
					    -ESRCH;
	if (err)
		NL_SET_ERR_MSG_ATTR(info->extack, push,
				    "no sending daemon runs: start one first");
	return err;
}

int l4lb_nl_sync_verify(struct sk_buff *skb, struct genl_info *info)
{
	return order_peers(info, l4lb_sync_verify_due);
}
