/* SPDX-License-Identifier: GPL-2.0 */
/* Sums over connections, by which two directors compare what they have. */
#ifndef _L4LB_SYNC_DIGEST_H
#define _L4LB_SYNC_DIGEST_H

#include <linux/siphash.h>

#include "conn/conn.h"
#include "l4lb.h"

struct l4lb_conn_walk;

/**
 * struct l4lb_sync_digest - sums of all connections that all directors have
 * @key: of the hash: both sides have the same, and each comparison another one
 * @walk: how far it is; NULL: it is complete, or not begun
 * @n: connections and templates
 * @sums: of the hashes of each slice; a slice is the hash modulo their number
 */
struct l4lb_sync_digest {
	siphash_key_t		key;
	struct l4lb_conn_walk	*walk;
	u32			n;
	u64			sums[L4LB_DIGEST_SLICES];
};

/* Of client, VIP, real server and protocol; not of the state.  RCU. */
u64 l4lb_sync_digest_hash(const siphash_key_t *key,
			  const struct l4lb_conn *conn);

/* These may sleep. */

/* False: there is no memory. */
bool l4lb_sync_digest_begin(struct l4lb_sync_digest *digest,
			    struct l4lb_net *ln, const siphash_key_t *key);
/* Look at some thousand connections.  Return: it is complete. */
bool l4lb_sync_digest_run(struct l4lb_sync_digest *digest);
/* It is of no use any more. */
void l4lb_sync_digest_end(struct l4lb_sync_digest *digest);

#endif /* _L4LB_SYNC_DIGEST_H */
