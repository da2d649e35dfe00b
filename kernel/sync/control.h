/* SPDX-License-Identifier: GPL-2.0 */
/* Control messages between directors that know each other. */
#ifndef _L4LB_SYNC_CONTROL_H
#define _L4LB_SYNC_CONTROL_H

#include "l4lb.h"
#include "sync/trailer.h"

/* The number is on the wire.  control.c shows the bodies. */
enum l4lb_sync_control_type {
	L4LB_SYNC_HELLO		= 1,	/* I am here; what I have sent */
	L4LB_SYNC_NACK		= 2,	/* send these messages again */
	L4LB_SYNC_RESYNC	= 3,	/* send all connections */
	L4LB_SYNC_BULK_BEGIN	= 4,	/* they come now */
	L4LB_SYNC_BULK_END	= 5,	/* these were all */
	L4LB_SYNC_DIGEST_ASK	= 6,	/* send sums of all slices */
	L4LB_SYNC_DIGEST	= 7,	/* sums of some slices */
	L4LB_SYNC_SLICES	= 8,	/* send connections of these slices */
	L4LB_SYNC_CONTROL_TYPES,
};

/* Bytes. */
enum {
	L4LB_SYNC_BODY_AT	= L4LB_SYNC_HEADER_V1 + 4,
	L4LB_SYNC_BODY_MAX	= 1280,	/* fits an MTU of 1,500 with all else */
	L4LB_SYNC_CONTROL_MAX	= L4LB_SYNC_BODY_AT + L4LB_SYNC_BODY_MAX +
				  L4LB_SYNC_TRAILER,
};

#define L4LB_SYNC_RANGES_MAX	32	/* of a NACK */

/**
 * struct l4lb_sync_hello - what a HELLO says, but for streams
 * @nonce: random number of the sender, for the receiver to send back
 * @echo: the receiver's, which was in its last HELLO; 0: none has come
 * @generation: of the sender's configuration
 * @state: enum l4lb_peer_state of the receiver, as the sender sees it
 * @n: number of streams, at most %L4LB_SYNC_STREAMS
 */
struct l4lb_sync_hello {
	u64	nonce;
	u64	echo;
	u32	generation;
	u8	state;
	u8	n;
};

/**
 * struct l4lb_sync_range - messages of a stream
 * @first: sequence number
 * @last: likewise, of the last one of them
 * @stream: their stream
 */
struct l4lb_sync_range {
	u64	first;
	u64	last;
	u8	stream;
};

/* Each may be called in any context. */

/**
 * l4lb_sync_control_put() - write a control message, without trailer
 * @data: room for %L4LB_SYNC_CONTROL_MAX bytes; the body is there already, at
 *	%L4LB_SYNC_BODY_AT
 * @type: its type
 * @len: bytes of its body, at most %L4LB_SYNC_BODY_MAX
 *
 * Return: bytes written.
 */
size_t l4lb_sync_control_put(u8 *data, enum l4lb_sync_control_type type,
			     size_t len);

/**
 * l4lb_sync_control_read() - look at a control message
 * @data: message whose trailer has flag %L4LB_SYNC_T_CONTROL
 * @len: its bytes, with the trailer
 * @type: set to the type, which may be an unknown one
 * @body_len: set to the bytes of the body
 *
 * Return: the body, or NULL: it is malformed.
 */
const u8 *l4lb_sync_control_read(const u8 *data, size_t len, u8 *type,
				 size_t *body_len);

#define L4LB_SYNC_SUMS_MAX	128	/* of a DIGEST */

/* Bodies.  Those that write return the bytes that they have written, at most
 * %L4LB_SYNC_BODY_MAX; those that read return false, or 0, for a wrong length or
 * value.
 */

size_t l4lb_sync_hello_write(u8 *body, const struct l4lb_sync_hello *hello);
/* @newest and @oldest: of a stream, the last number and the first of those that
 * can be sent again, or @newest + 1.
 */
void l4lb_sync_hello_put(u8 *body, unsigned int stream, u64 newest, u64 oldest);
bool l4lb_sync_hello_read(struct l4lb_sync_hello *hello, const u8 *body,
			  size_t len);
/* @stream: less than what l4lb_sync_hello_read() has read as number. */
void l4lb_sync_hello_stream(const u8 *body, unsigned int stream, u64 *newest,
			    u64 *oldest);

/* Writes the range with number @i, from 0 on; returns the length up to it. */
size_t l4lb_sync_nack_put(u8 *body, unsigned int i,
			  const struct l4lb_sync_range *range);
/* Returns how many ranges, all valid, were read; at most the maximum. */
unsigned int l4lb_sync_nack_read(struct l4lb_sync_range *ranges,
				 const u8 *body, size_t len);

/* RESYNC and DIGEST_ASK. */
size_t l4lb_sync_nonce_put(u8 *body, u64 nonce);
bool l4lb_sync_nonce_read(const u8 *body, size_t len, u64 *nonce);

/* BULK_BEGIN and BULK_END. */
size_t l4lb_sync_bulk_put(u8 *body, u64 nonce, u32 records);
bool l4lb_sync_bulk_read(const u8 *body, size_t len, u64 *nonce, u32 *records);

/**
 * struct l4lb_sync_sums - a DIGEST
 * @nonce: of the question
 * @first: number of the first slice, a multiple of %L4LB_SYNC_SUMS_MAX
 * @sum: sums of as many slices
 */
struct l4lb_sync_sums {
	u64	nonce;
	u16	first;
	u64	sum[L4LB_SYNC_SUMS_MAX];
};

size_t l4lb_sync_sums_put(u8 *body, u64 nonce, u16 first, const u64 *sum);
bool l4lb_sync_sums_read(struct l4lb_sync_sums *sums, const u8 *body,
			 size_t len);

/* SLICES: @slices has a bit for each of %L4LB_DIGEST_SLICES. */
size_t l4lb_sync_slices_put(u8 *body, u64 nonce, const unsigned long *slices);
bool l4lb_sync_slices_read(unsigned long *slices, const u8 *body, size_t len,
			   u64 *nonce);

#endif /* _L4LB_SYNC_CONTROL_H */
