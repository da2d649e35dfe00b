/* SPDX-License-Identifier: GPL-2.0 */
/* Peers: directors that this one knows, by their unicast addresses. */
#ifndef _L4LB_SYNC_PEER_H
#define _L4LB_SYNC_PEER_H

#include <linux/rwsem.h>
#include <linux/workqueue.h>

#include "base/net.h"
#include "sync/bucket.h"
#include "sync/control.h"
#include "sync/key.h"
#include "sync/ring.h"
#include "sync/source.h"

struct netlink_ext_ack;

/**
 * struct l4lb_sync_peer - a director
 * @peers: all of the namespace
 * @addr: its address and UDP port
 * @hops: there may be routers between here and there
 * @was_heard: @source.heard is valid
 * @told: enum l4lb_peer_state that user space was told last
 * @source: its messages
 * @nonce: random number that it has to send back before it is believed
 * @echo: its nonce
 * @due: of each stream, the newest message that was known at the last tick
 * @counted: of each stream, the newest that was looked at for @n_gaps
 * @backlog: messages it had to send when it sent the last
 * @nacked: jiffies of the last NACK
 * @records_in: limits its records
 * @control_in: limits its control messages but for HELLO
 * @hellos_in: limits its HELLOs
 * @unproven_in: limits those that may be recorded ones
 * @again_out: limits what is sent to it again
 * @n_gaps: messages that did not come at first
 * @n_repaired: those of them that came later
 * @n_lost: those that will not come
 * @n_resent: messages sent to it again
 * @join: all its connections are asked for, and come
 * @bulk: what is sent to it besides messages of threads
 * @verify: comparisons
 *
 * Made and freed under @peers->lock for writing; from @source on protected by
 * @peers->state.
 */
struct l4lb_sync_peer {
	struct l4lb_sync_peers		*peers;
	struct sockaddr_storage		addr;
	bool				hops;

	bool				was_heard;
	u8				told;
	struct l4lb_sync_source		source;
	u64				nonce;
	u64				echo;
	u64				due[L4LB_SYNC_STREAMS];
	u64				counted[L4LB_SYNC_STREAMS];
	u32				backlog;
	unsigned long			nacked;
	struct l4lb_sync_bucket		records_in;
	struct l4lb_sync_bucket		control_in;
	struct l4lb_sync_bucket		hellos_in;
	struct l4lb_sync_bucket		unproven_in;
	struct l4lb_sync_bucket		again_out;
	u64				n_gaps;
	u64				n_repaired;
	u64				n_lost;
	u64				n_resent;
	struct l4lb_sync_join		*join;
	struct l4lb_sync_bulk		*bulk;
	struct l4lb_sync_verify		*verify;
};

/**
 * struct l4lb_sync_peers - what a namespace knows of other directors
 * @ln: the namespace
 * @setup: peers and keys change; taken before RTNL, never with the configuration
 *	mutex
 * @lock: protects the configuration from here to @rings: for reading while a
 *	message is sent or looked at; taken after @setup
 * @keys: with which messages are signed
 * @multicast: messages go to the group, too
 * @rate: records per second of a resync; 0: no limit
 * @verify: seconds between comparisons; 0: none but those that are asked for
 * @port: of this director
 * @sender: random number that its messages have
 * @n: number of peers
 * @peer: the peers
 * @link: sockets; [0] IPv4, [1] IPv6; NULL: there is no such peer
 * @n_streams: threads that send
 * @rings: what each of them sent
 * @sequence: number of the last control message
 * @state: protects what messages change: of peers, and the rest here
 * @stranger: senders of signed multicast messages that are no peers
 * @retired: senders that peers and strangers had before
 * @n_retired: number of them that were ever put there
 * @tick: looks at gaps, and says hello
 * @hello: jiffies of the last hello
 * @walker: sends connections, and compares
 */
struct l4lb_sync_peers {
	struct l4lb_net			*ln;
	struct mutex			setup;
	struct rw_semaphore		lock;
	struct l4lb_sync_keys		keys;
	bool				multicast;
	u32				rate;
	u32				verify;
	__be16				port;
	u64				sender;
	unsigned int			n;
	struct l4lb_sync_peer		*peer[L4LB_PEERS_MAX];
	struct l4lb_sync_link		*link[2];
	unsigned int			n_streams;
	struct l4lb_sync_ring		rings[L4LB_SYNC_STREAMS];
	atomic64_t			sequence;

	spinlock_t			state;
	struct l4lb_sync_source		*stranger[L4LB_SYNC_STRANGERS];
	struct {
		u64	sender, since;
	}				retired[L4LB_SYNC_RETIRED];
	unsigned int			n_retired;
	struct delayed_work		tick;
	unsigned long			hello;
	struct l4lb_sync_walker		*walker;
};

/* May sleep, no lock held. */
struct l4lb_sync_peers *l4lb_sync_peers_create(struct l4lb_net *ln);
/* No peer, daemon or reader is left. */
void l4lb_sync_peers_destroy(struct l4lb_sync_peers *peers);
/* Remove all peers.  Returns how many there were. */
unsigned int l4lb_sync_peers_stop(struct l4lb_sync_peers *peers);

/* A sending daemon with @n threads starts; 0: it has stopped.  From now on this
 * director is another sender.
 */
void l4lb_sync_peers_restart(struct l4lb_sync_peers *peers, unsigned int n);

/* -EINVAL, -EEXIST, -E2BIG, -ENOMEM, or an error of the socket. */
int l4lb_sync_peer_add(struct l4lb_sync_peers *peers,
		       const struct sockaddr_storage *addr, bool hops,
		       struct netlink_ext_ack *extack);
/* -ESRCH: there is none with the address; the port does not count. */
int l4lb_sync_peer_del(struct l4lb_sync_peers *peers,
		       const struct sockaddr_storage *addr);

/**
 * struct l4lb_sync_settings - what SET_SYNC changes
 * @rate: or NULL: as it is, like the others
 * @verify: seconds
 * @multicast: 0 or 1
 * @port: of this director
 * @key: of %L4LB_SYNC_KEY_LEN bytes, if @has_key
 * @has_key: @key is to be set; NULL then: none
 */
struct l4lb_sync_settings {
	const u32	*rate;
	const u32	*verify;
	const u8	*multicast;
	const __be16	*port;
	const u8	*key;
	bool		has_key;
};

/* -EBUSY: another port, while there are peers. */
int l4lb_sync_peers_set(struct l4lb_sync_peers *peers,
			const struct l4lb_sync_settings *settings);

/* The peer with this address, or NULL; @peers->lock held. */
struct l4lb_sync_peer *
l4lb_sync_peer_find(const struct l4lb_sync_peers *peers,
		    const struct sockaddr_storage *addr);

__be16 l4lb_sync_port(const struct sockaddr_storage *addr);

#endif /* _L4LB_SYNC_PEER_H */
