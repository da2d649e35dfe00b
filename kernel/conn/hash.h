/* SPDX-License-Identifier: GPL-2.0 */
/* The keyed hash of a packet's header, inline for each family. */
#ifndef _L4LB_CONN_HASH_H
#define _L4LB_CONN_HASH_H

#include <linux/siphash.h>

#include "base/flow.h"
#include "conn/table.h"

/* What hash_header() begins with, from the key. */
static inline struct l4lb_hash_state hash_start(const siphash_key_t *key)
{
	return (struct l4lb_hash_state){
		.v0 = SIPHASH_CONST_0 ^ key->key[0],
		.v1 = SIPHASH_CONST_1 ^ key->key[1],
		.v2 = SIPHASH_CONST_2 ^ key->key[0],
		.v3 = SIPHASH_CONST_3 ^ key->key[1],
	};
}

static __always_inline void hash_word(struct l4lb_hash_state *s, u64 word)
{
	s->v3 ^= word;
	SIPHASH_PERMUTATION(s->v0, s->v1, s->v2, s->v3);
	s->v0 ^= word;
}

/* The lowest byte is the tag of a slot, and 0 is the tag of a free one. */
static __always_inline u64 hash_with_tag(u64 hash)
{
	return hash | ((u8)hash == 0);
}

static __always_inline u64 hash_end(struct l4lb_hash_state *s)
{
	s->v2 ^= 0xff;
	SIPHASH_PERMUTATION(s->v0, s->v1, s->v2, s->v3);
	SIPHASH_PERMUTATION(s->v0, s->v1, s->v2, s->v3);
	SIPHASH_PERMUTATION(s->v0, s->v1, s->v2, s->v3);
	return hash_with_tag(s->v0 ^ s->v1 ^ s->v2 ^ s->v3);
}

static __always_inline u64 two(u32 high, u32 low)
{
	return (u64)high << 32 | low;
}

/* The hashed part of a header; @from and @to have one word, or four with IPv6.
 * A request and a reply with equal headers have the same hash, so that one
 * lookup can find either.
 */
struct hash_input {
	const __be32	*from;
	const __be32	*to;
	__be16		sport;
	__be16		dport;
	u8		proto;
	bool		template;
};

/* SipHash-1-3.  The length is not hashed: the number of words follows from the
 * family, which is in the first word.
 */
static __always_inline u64 hash_header(const struct l4lb_hash_state *start, u8 af,
				       const struct hash_input *in)
{
	struct l4lb_hash_state s = *start;

	/* In this order one load can take both ports of a struct l4lb_flow. */
	hash_word(&s, two((__force u32)in->dport << 16 | (__force u32)in->sport,
			  af << 16 | in->template << 8 | in->proto));
	if (af == AF_INET) {
		hash_word(&s, two((__force u32)in->from[0], (__force u32)in->to[0]));
		return hash_end(&s);
	}
	hash_word(&s, two((__force u32)in->from[0], (__force u32)in->from[1]));
	hash_word(&s, two((__force u32)in->from[2], (__force u32)in->from[3]));
	hash_word(&s, two((__force u32)in->to[0], (__force u32)in->to[1]));
	hash_word(&s, two((__force u32)in->to[2], (__force u32)in->to[3]));
	return hash_end(&s);
}

/* Of a template with a Call-ID.  Hashing both hashes together keeps a client from
 * choosing the result by a Call-ID that looks like a header.
 */
static inline u64 hash_call(const siphash_key_t *key, u64 header, u64 id)
{
	return hash_with_tag(siphash_2u64(header, id, key));
}

static __always_inline u64 hash_flow(const struct l4lb_hash_state *start,
				     const struct l4lb_flow *flow, u8 af,
				     bool template)
{
	const struct hash_input in = {
		.from = flow->saddr.ip6, .to = flow->daddr.ip6,
		.sport = flow->sport, .dport = flow->dport,
		.proto = flow->proto, .template = template,
	};

	return hash_header(start, af, &in);
}

#endif /* _L4LB_CONN_HASH_H */
