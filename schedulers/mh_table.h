/* SPDX-License-Identifier: GPL-2.0 */
/* The table of mh: each place belongs to a real server. */
#ifndef _L4LB_MH_TABLE_H
#define _L4LB_MH_TABLE_H

#include <linux/siphash.h>

#include "sched.h"

#define MH_SIZE		4093	/* prime: every skip visits every place */

/**
 * struct mh_table - places of real servers
 * @key: secret of the hash, if @keyed
 * @keyed: without, the hash is public, as in IPVS
 * @place: each place's server; all NULL: no server has a weight
 */
struct mh_table {
	siphash_key_t			key;
	bool				keyed;
	struct l4lb_sched_server	*place[MH_SIZE];
};

/**
 * mh_table_new() - deal the places to the servers of a pool
 * @pool: pool that is being built; its servers' last weights count
 * @by_address: in the order of their addresses, not of their age
 * @keyed: by the secret of the pool
 *
 * Return: the table, or NULL without memory.
 * Context: may sleep.
 */
struct mh_table *mh_table_new(const struct l4lb_pool *pool, bool by_address,
			      bool keyed);
void mh_table_free(struct mh_table *t);

/* Place of a number by the public hash. */
static inline u32 mh_public(u32 value)
{
	static const hsiphash_key_t key = { { 2654435761UL, 2654435761UL } };

	return hsiphash_1u32(value, &key) % MH_SIZE;
}

/* Not folded: addresses that look alike before the hash would look alike after. */
static inline u64 mh_secret(const struct mh_table *t,
			    const union nf_inet_addr *addr, __be16 port)
{
	return siphash_3u64((u64)ntohl(addr->ip6[0]) << 32 | ntohl(addr->ip6[1]),
			    (u64)ntohl(addr->ip6[2]) << 32 | ntohl(addr->ip6[3]),
			    ntohs(port), &t->key);
}

#endif /* _L4LB_MH_TABLE_H */
