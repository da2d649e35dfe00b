/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Just enough of the kernel to compile kernel/sync/wire_{read,write,state}.c,
 * unchanged, as a user-space program.  Included on the command line; the kernel
 * headers that they include are empty files.
 */
#ifndef _L4LB_UNIT_WIRE_SHIM_H
#define _L4LB_UNIT_WIRE_SHIM_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef u16 __be16;
typedef u32 __be32;

union nf_inet_addr {
	u32		all[4];
	__be32		ip;
	__be32		ip6[4];
	struct in6_addr	in6;
};

#define BIT(n)			(1UL << (n))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define ALIGN(x, a)		(((x) + (a) - 1) / (a) * (a))
#define min_t(type, a, b)	((type)(a) < (type)(b) ? (type)(a) : (type)(b))

static inline u16 get_unaligned_be16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static inline u32 get_unaligned_be32(const u8 *p)
{
	return (u32)get_unaligned_be16(p) << 16 | get_unaligned_be16(p + 2);
}

static inline void put_unaligned_be16(u16 value, u8 *p)
{
	p[0] = value >> 8;
	p[1] = value;
}

static inline void put_unaligned_be32(u32 value, u8 *p)
{
	put_unaligned_be16(value >> 16, p);
	put_unaligned_be16(value, p + 2);
}

/* These replace kernel/conn/conn.h: of connections, only states matter. */
#define _L4LB_CONN_H
struct l4lb_conn;
struct l4lb_pkt;
struct l4lb_timeouts;

#endif /* _L4LB_UNIT_WIRE_SHIM_H */
