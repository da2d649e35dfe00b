/* SPDX-License-Identifier: GPL-2.0 */
/* Trailers of messages between directors that know each other. */
#ifndef _L4LB_SYNC_TRAILER_H
#define _L4LB_SYNC_TRAILER_H

#include <linux/align.h>

#include "sync/window.h"
#include "sync/wire.h"

/* Bytes of a trailer, and of the MAC at its end. */
enum {
	L4LB_SYNC_TRAILER	= 64,
	L4LB_SYNC_MAC		= 32,
};

enum l4lb_sync_trailer_flags {
	L4LB_SYNC_T_KEYED	= 1 << 0,	/* it has a MAC */
	L4LB_SYNC_T_BULK	= 1 << 1,	/* of a resync */
	L4LB_SYNC_T_AGAIN	= 1 << 2,	/* asked for by a NACK */
	L4LB_SYNC_T_CONTROL	= 1 << 3,	/* not records, see control.c */
};

enum {
	L4LB_SYNC_STREAMS	= 64,	/* one for each thread that sends */
	L4LB_SYNC_STREAM_OTHER	= 255,	/* of control messages and resyncs */
};

/**
 * struct l4lb_sync_trailer - what a trailer says
 * @sender: random number of the sender, new whenever it starts; not 0
 * @sequence: counts messages of a stream, from 1 to %L4LB_SYNC_SEQUENCE_MAX
 * @backlog: messages that wait to be sent
 * @flags: L4LB_SYNC_T_*
 * @stream: 0 to 63: number of the thread; %L4LB_SYNC_STREAM_OTHER
 */
struct l4lb_sync_trailer {
	u64	sender;
	u64	sequence;
	u32	backlog;
	u16	flags;
	u8	stream;
};

/* Each may be called in any context. */

/* Bytes of a message of @len bytes with its trailer. */
static inline size_t l4lb_sync_with_trailer(size_t len)
{
	return ALIGN(len, L4LB_SYNC_ALIGN) + L4LB_SYNC_TRAILER;
}

/**
 * l4lb_sync_trailer_put() - put a trailer, with a MAC of 0, behind a message
 * @data: the message, with room for l4lb_sync_with_trailer(@len) bytes
 * @len: its bytes; its size field says so, and is changed
 * @trailer: what to write
 *
 * Return: the bytes that the message has now.
 */
size_t l4lb_sync_trailer_put(u8 *data, size_t len,
			     const struct l4lb_sync_trailer *trailer);

/* Write @trailer over the one of a message of @len bytes, with a MAC of 0. */
void l4lb_sync_trailer_renew(u8 *data, size_t len,
			     const struct l4lb_sync_trailer *trailer);

/* Bytes of the trailer of a message of @len bytes: %L4LB_SYNC_TRAILER, or 0 if
 * it has no valid one, and then @trailer is undefined.
 */
size_t l4lb_sync_trailer_read(struct l4lb_sync_trailer *trailer, const u8 *data,
			      size_t len);

#endif /* _L4LB_SYNC_TRAILER_H */
