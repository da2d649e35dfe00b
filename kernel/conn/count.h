/* SPDX-License-Identifier: GPL-2.0 */
/* The two numbers in a connection's byte @packets: packets of its client (the
 * high nibble, so that comparing them needs no mask) and, in the low nibble, when
 * other directors were last told about it.
 *
 * Several CPUs may write the byte at once, and one of the writes is lost then:
 * the count is one less, or the connection is announced once more.
 */
#ifndef _L4LB_CONN_COUNT_H
#define _L4LB_CONN_COUNT_H

#include "conn/conn.h"
#include "conn/watch.h"

enum {
	L4LB_CONN_PACKETS_MANY	= 9,	/* counted up to this */
	L4LB_CONN_PACKETS_SHIFT	= 4,
	L4LB_CONN_TOLD_MASK	= (1 << L4LB_CONN_PACKETS_SHIFT) - 1,
};

static_assert(L4LB_CONN_PACKETS_MANY << L4LB_CONN_PACKETS_SHIFT <= U8_MAX);

/* The packets from the client, up to %L4LB_CONN_PACKETS_MANY. */
static inline unsigned int l4lb_conn_packets(const struct l4lb_conn *conn)
{
	return READ_ONCE(conn->packets) >> L4LB_CONN_PACKETS_SHIFT;
}

/* @n: at most %L4LB_CONN_PACKETS_MANY. */
static inline void l4lb_conn_set_packets(struct l4lb_conn *conn, unsigned int n)
{
	WRITE_ONCE(conn->packets,
		   (READ_ONCE(conn->packets) & L4LB_CONN_TOLD_MASK) |
		   n << L4LB_CONN_PACKETS_SHIFT);
}

/* Counts a client's packet; no write to the shared line after a few.  True: it is
 * one of those few, and connections are watched.
 */
static __always_inline bool l4lb_conn_count_packet(struct l4lb_conn *conn)
{
	u8 packets = READ_ONCE(conn->packets);

	if (packets >= L4LB_CONN_PACKETS_MANY << L4LB_CONN_PACKETS_SHIFT)
		return false;
	WRITE_ONCE(conn->packets, packets + (1 << L4LB_CONN_PACKETS_SHIFT));
	return static_branch_unlikely(&l4lb_conn_watched);
}

/* When it was last announced, as a number of 4 bits; 0: never. */
static inline unsigned int l4lb_conn_told(const struct l4lb_conn *conn)
{
	return READ_ONCE(conn->packets) & L4LB_CONN_TOLD_MASK;
}

static inline void l4lb_conn_set_told(struct l4lb_conn *conn, unsigned int when)
{
	u8 packets = READ_ONCE(conn->packets);

	if ((packets & L4LB_CONN_TOLD_MASK) != when)
		WRITE_ONCE(conn->packets,
			   (packets & ~L4LB_CONN_TOLD_MASK) | when);
}

#endif /* _L4LB_CONN_COUNT_H */
