/* SPDX-License-Identifier: GPL-2.0 */
/* Other directors, with which connections are shared: the family L4LB, which
 * in-tree ip_vs lacks.
 *
 * As in kern.h, functions return 0 or -errno and record no failure. Without the
 * family they return -EOPNOTSUPP.
 */
#ifndef IPVSCTL_KERN_PEER_H
#define IPVSCTL_KERN_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "../../kernel/l4lb.h"
#include "ident.h"

struct sync_peer {
	uint16_t af;
	struct ip addr;
	uint32_t port;
	bool hops;		/* there may be routers on the way */

	/* Of those that are read: */
	uint32_t state;		/* enum l4lb_peer_state */
	bool heard;
	uint64_t heard_ms;	/* since its last message, if @heard */
	uint64_t gaps, repaired, lost, resent;	/* messages */
	uint32_t backlog;			/* messages */
	uint64_t bulk_in, bulk_expected, bulk_out;	/* records */
	uint32_t resyncs;	/* from it, complete */
	uint32_t verified;	/* comparisons, complete */
	uint32_t difference;	/* slices, in the last one */
	uint32_t compared;	/* connections, in the last one */
};

struct sync_settings {
	uint32_t rate;		/* records per second; 0: no limit */
	uint32_t multicast;	/* 0 or 1 */
	uint32_t port;
	uint32_t verify;	/* seconds; 0: never */
	uint64_t kept;		/* bytes of messages that can be sent again */
	bool keyed;
	uint32_t key_id;	/* if @keyed */
};

/* Which of sync_settings, or the key, are to be changed. */
enum {
	SYNC_SET_RATE		= 1 << 0,
	SYNC_SET_MULTICAST	= 1 << 1,
	SYNC_SET_PORT		= 1 << 2,
	SYNC_SET_VERIFY		= 1 << 3,
	SYNC_SET_KEY		= 1 << 4,
};

/* Their number, at most %L4LB_PEERS_MAX, or -errno. */
int kern_peers(struct sync_peer list[L4LB_PEERS_MAX]);
int kern_sync_settings(struct sync_settings *settings);

/* With --dry-run these print the step and do nothing. */
int kern_peer_add(const struct sync_peer *peer);
int kern_peer_delete(const struct sync_peer *peer);
/* @what: SYNC_SET_*; @key: %L4LB_SYNC_KEY_LEN bytes, or NULL for none. */
int kern_sync_set(unsigned int what, const struct sync_settings *settings,
		  const uint8_t *key);
/* @peer: NULL for all. */
int kern_sync_resync(const struct sync_peer *peer);
int kern_sync_push(void);
int kern_sync_verify(const struct sync_peer *peer);

#endif
