/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What kernel/sync/{trailer,window,control}.c need beside wire_shim.h, to be
 * compiled as a user-space program.
 */
#ifndef _L4LB_UNIT_PEER_SHIM_H
#define _L4LB_UNIT_PEER_SHIM_H

#include "wire_shim.h"

#include <assert.h>

typedef uint64_t u64;

#define S64_MAX		INT64_MAX

#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))

#define BITS_PER_LONG	(8 * sizeof(long))

static inline void bitmap_zero(unsigned long *map, unsigned int n)
{
	memset(map, 0, n / 8);
}

static inline void __set_bit(unsigned int n, unsigned long *map)
{
	map[n / BITS_PER_LONG] |= 1UL << n % BITS_PER_LONG;
}

static inline int test_bit(unsigned int n, const unsigned long *map)
{
	return map[n / BITS_PER_LONG] >> n % BITS_PER_LONG & 1;
}

#define for_each_set_bit(n, map, size) \
	for ((n) = 0; (n) < (size); (n)++) \
		if (test_bit(n, map))

static inline u64 get_unaligned_be64(const u8 *p)
{
	return (u64)get_unaligned_be32(p) << 32 | get_unaligned_be32(p + 4);
}

static inline void put_unaligned_be64(u64 value, u8 *p)
{
	put_unaligned_be32(value >> 32, p);
	put_unaligned_be32(value, p + 4);
}

#endif /* _L4LB_UNIT_PEER_SHIM_H */
