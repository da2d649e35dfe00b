// SPDX-License-Identifier: GPL-2.0
/*
 * The peers of a namespace: added, removed, and the settings for all of them.
 *
 * A change is made under @setup, and published under @lock for writing: then no
 * message is being looked at or sent.  Sockets are opened, and closed, outside of
 * @lock, because their threads take it.
 */
#include "sync/peer.h"

#include <linux/inet.h>
#include <linux/inetdevice.h>
#include <linux/netlink.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "sync/bulk.h"
#include "sync/hello.h"
#include "sync/join.h"
#include "sync/link.h"
#include "sync/verify.h"
#include "sync/walker.h"

/* ---- addresses ---- */

__be16 l4lb_sync_port(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ?
	       ((const struct sockaddr_in6 *)addr)->sin6_port :
	       ((const struct sockaddr_in *)addr)->sin_port;
}

static bool same_address(const struct sockaddr_storage *a,
			 const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return ipv6_addr_equal(&((struct sockaddr_in6 *)a)->sin6_addr,
				       &((struct sockaddr_in6 *)b)->sin6_addr);
	return ((struct sockaddr_in *)a)->sin_addr.s_addr ==
	       ((struct sockaddr_in *)b)->sin_addr.s_addr;
}

static bool is_usable(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)addr;
	int type;

	if (addr->ss_family == AF_INET6) {
		type = ipv6_addr_type(&((struct sockaddr_in6 *)addr)->sin6_addr);
		return type & IPV6_ADDR_UNICAST &&
		       !(type & (IPV6_ADDR_LOOPBACK | IPV6_ADDR_LINKLOCAL |
				 IPV6_ADDR_MAPPED));
	}
	return !ipv4_is_zeronet(ipv4->sin_addr.s_addr) &&
	       !ipv4_is_loopback(ipv4->sin_addr.s_addr) &&
	       !ipv4_is_multicast(ipv4->sin_addr.s_addr) &&
	       !ipv4_is_lbcast(ipv4->sin_addr.s_addr) &&
	       !ipv4_is_linklocal_169(ipv4->sin_addr.s_addr);
}

struct l4lb_sync_peer *
l4lb_sync_peer_find(const struct l4lb_sync_peers *peers,
		    const struct sockaddr_storage *addr)
{
	unsigned int i;

	lockdep_assert_held(&peers->lock);
	for (i = 0; i < peers->n; i++)
		if (same_address(&peers->peer[i]->addr, addr))
			return peers->peer[i];
	return NULL;
}

/* ---- states ---- */

static void publish_trailer(struct l4lb_sync_peers *peers)
{
	lockdep_assert_held_write(&peers->lock);
	WRITE_ONCE(peers->ln->sync_trailer, peers->n || peers->keys.on);
}

static void become_another(struct l4lb_sync_peers *peers)
{
	unsigned int i;

	lockdep_assert_held_write(&peers->lock);
	do
		peers->sender = get_random_u64();
	while (!peers->sender);
	for (i = 0; i < L4LB_SYNC_STREAMS; i++)
		l4lb_sync_ring_clear(&peers->rings[i]);
	spin_lock(&peers->state);
	for (i = 0; i < peers->n; i++) {
		l4lb_sync_bulk_stop(peers->peer[i]);
		l4lb_sync_verify_reset(peers->peer[i]);
	}
	spin_unlock(&peers->state);
}

void l4lb_sync_peers_restart(struct l4lb_sync_peers *peers, unsigned int n)
{
	down_write(&peers->lock);
	peers->n_streams = n;
	become_another(peers);
	if (peers->n) {
		peers->hello = jiffies - HZ;
		mod_delayed_work(l4lb_wq, &peers->tick, 0);
	}
	up_write(&peers->lock);
}

/* ---- adding and removing ---- */

static int check(const struct l4lb_sync_peers *peers,
		 const struct sockaddr_storage *addr,
		 struct netlink_ext_ack *extack)
{
	lockdep_assert_held(&peers->lock);
	if (!is_usable(addr)) {
		NL_SET_ERR_MSG(extack, "a peer has a unicast address that is not link-local");
		return -EINVAL;
	}
	if (l4lb_sync_peer_find(peers, addr)) {
		NL_SET_ERR_MSG(extack, "there is a peer with this address: delete it first");
		return -EEXIST;
	}
	if (peers->n == L4LB_PEERS_MAX) {
		NL_SET_ERR_MSG(extack, "a namespace has at most 8 peers: delete one first");
		return -E2BIG;
	}
	return 0;
}

static void peer_free(struct l4lb_sync_peer *peer)
{
	if (!peer)
		return;
	kfree(peer->join);
	l4lb_sync_bulk_free(peer->bulk);
	l4lb_sync_verify_free(peer->verify);
	kvfree(peer);
}

static struct l4lb_sync_peer *peer_new(struct l4lb_sync_peers *peers,
				       const struct sockaddr_storage *addr,
				       bool hops)
{
	struct l4lb_sync_peer *peer = kvzalloc(sizeof(*peer), GFP_KERNEL);

	if (!peer)
		return NULL;
	peer->join = kzalloc(sizeof(*peer->join), GFP_KERNEL);
	peer->bulk = l4lb_sync_bulk_new();
	peer->verify = l4lb_sync_verify_new();
	if (!peer->join || !peer->bulk || !peer->verify) {
		peer_free(peer);
		return NULL;
	}
	peer->peers = peers;
	peer->addr = *addr;
	peer->hops = hops;
	peer->nacked = jiffies;
	get_random_bytes(&peer->nonce, sizeof(peer->nonce));
	return peer;
}

static bool has_family(const struct l4lb_sync_peers *peers, sa_family_t family)
{
	unsigned int i;

	for (i = 0; i < peers->n; i++)
		if (peers->peer[i]->addr.ss_family == family)
			return true;
	return false;
}

/* Opens the socket of the peer's family, if it is the first. */
static int open_link(struct l4lb_sync_peers *peers, sa_family_t family,
		     struct netlink_ext_ack *extack)
{
	struct l4lb_sync_link *link;

	lockdep_assert_held(&peers->setup);
	if (has_family(peers, family))
		return 0;
	link = l4lb_sync_link_open(peers, family);
	if (IS_ERR(link)) {
		if (PTR_ERR(link) == -EADDRINUSE)
			NL_SET_ERR_MSG(extack, "another program has the UDP port: choose another");
		else
			NL_SET_ERR_MSG(extack, "the socket for peers could not be opened");
		return PTR_ERR(link);
	}
	down_write(&peers->lock);
	peers->link[family == AF_INET6] = link;
	up_write(&peers->lock);
	return 0;
}

static void publish(struct l4lb_sync_peers *peers, struct l4lb_sync_peer *peer)
{
	down_write(&peers->lock);
	peers->peer[peers->n++] = peer;
	publish_trailer(peers);
	peers->hello = jiffies - HZ;
	mod_delayed_work(l4lb_wq, &peers->tick, 0);
	up_write(&peers->lock);
}

int l4lb_sync_peer_add(struct l4lb_sync_peers *peers,
		       const struct sockaddr_storage *addr, bool hops,
		       struct netlink_ext_ack *extack)
{
	struct l4lb_sync_peer *peer;
	int err;

	mutex_lock(&peers->setup);
	down_read(&peers->lock);
	err = check(peers, addr, extack);
	up_read(&peers->lock);
	if (err)
		goto unlock;
	peer = peer_new(peers, addr, hops);
	err = peer ? open_link(peers, addr->ss_family, extack) : -ENOMEM;
	if (err)
		peer_free(peer);
	else
		publish(peers, peer);
unlock:
	mutex_unlock(&peers->setup);
	return err;
}

/* Takes the peer out, and the link that no peer needs any more. */
static struct l4lb_sync_link *take_out(struct l4lb_sync_peers *peers,
				       unsigned int at)
{
	sa_family_t family = peers->peer[at]->addr.ss_family;
	struct l4lb_sync_link *link = NULL;
	unsigned int i;

	lockdep_assert_held_write(&peers->lock);
	peer_free(peers->peer[at]);
	peers->peer[at] = peers->peer[--peers->n];
	publish_trailer(peers);
	if (!has_family(peers, family))
		swap(link, peers->link[family == AF_INET6]);
	/* There is nobody to send them to again. */
	if (!peers->n)
		for (i = 0; i < L4LB_SYNC_STREAMS; i++)
			l4lb_sync_ring_empty(&peers->rings[i]);
	return link;
}

int l4lb_sync_peer_del(struct l4lb_sync_peers *peers,
		       const struct sockaddr_storage *addr)
{
	struct l4lb_sync_link *link = NULL;
	struct l4lb_sync_peer *peer;
	unsigned int i;

	mutex_lock(&peers->setup);
	down_write(&peers->lock);
	peer = l4lb_sync_peer_find(peers, addr);
	for (i = 0; peer && peers->peer[i] != peer; i++)
		;
	if (peer)
		link = take_out(peers, i);
	up_write(&peers->lock);
	l4lb_sync_link_close(link);
	mutex_unlock(&peers->setup);
	return peer ? 0 : -ESRCH;
}

/* Returns how many there were. */
unsigned int l4lb_sync_peers_stop(struct l4lb_sync_peers *peers)
{
	struct l4lb_sync_link *links[L4LB_PEERS_MAX];
	unsigned int i, n;

	mutex_lock(&peers->setup);
	down_write(&peers->lock);
	for (n = 0; peers->n; n++)
		links[n] = take_out(peers, 0);
	up_write(&peers->lock);
	for (i = 0; i < n; i++)
		l4lb_sync_link_close(links[i]);
	cancel_delayed_work_sync(&peers->tick);
	l4lb_sync_walker_stop(peers->walker);
	mutex_unlock(&peers->setup);
	return n;
}

/* ---- settings ---- */

static int apply(struct l4lb_sync_peers *peers,
		 const struct l4lb_sync_settings *settings)
{
	lockdep_assert_held_write(&peers->lock);
	if (settings->port) {
		if (peers->n && *settings->port != peers->port)
			return -EBUSY;
		peers->port = *settings->port;
	}
	if (settings->rate)
		peers->rate = *settings->rate;
	if (settings->verify)
		WRITE_ONCE(peers->verify, *settings->verify);
	if (settings->multicast)
		peers->multicast = *settings->multicast;
	if (settings->has_key)
		l4lb_sync_keys_set(&peers->keys, settings->key);
	publish_trailer(peers);
	return 0;
}

int l4lb_sync_peers_set(struct l4lb_sync_peers *peers,
			const struct l4lb_sync_settings *settings)
{
	int err;

	mutex_lock(&peers->setup);
	down_write(&peers->lock);
	err = apply(peers, settings);
	up_write(&peers->lock);
	mutex_unlock(&peers->setup);
	return err;
}

/* ---- namespaces ---- */

struct l4lb_sync_peers *l4lb_sync_peers_create(struct l4lb_net *ln)
{
	struct l4lb_sync_peers *peers = kvzalloc(sizeof(*peers), GFP_KERNEL);
	unsigned int i;

	if (!peers)
		return NULL;
	peers->walker = l4lb_sync_walker_new(peers);
	if (!peers->walker) {
		kvfree(peers);
		return NULL;
	}
	peers->ln = ln;
	mutex_init(&peers->setup);
	init_rwsem(&peers->lock);
	spin_lock_init(&peers->state);
	for (i = 0; i < L4LB_SYNC_STREAMS; i++)
		l4lb_sync_ring_init(&peers->rings[i]);
	peers->multicast = true;
	peers->rate = L4LB_SYNC_RATE;
	peers->verify = L4LB_SYNC_VERIFY;
	peers->port = htons(L4LB_PEER_PORT);
	INIT_DELAYED_WORK(&peers->tick, l4lb_sync_tick);
	down_write(&peers->lock);
	become_another(peers);
	up_write(&peers->lock);
	return peers;
}

void l4lb_sync_peers_destroy(struct l4lb_sync_peers *peers)
{
	unsigned int i;

	for (i = 0; i < L4LB_SYNC_STREAMS; i++)
		l4lb_sync_ring_clear(&peers->rings[i]);
	for (i = 0; i < L4LB_SYNC_STRANGERS; i++)
		kfree(peers->stranger[i]);
	l4lb_sync_walker_free(peers->walker);
	kvfree_sensitive(peers, sizeof(*peers));
}
