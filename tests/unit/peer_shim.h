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
