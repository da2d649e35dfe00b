// SPDX-License-Identifier: GPL-2.0
/*
 * Control messages: a header of version 1 that announces no records, and
 *
 *	 8  u8 type	 9  0	10  be16 bytes of the body	12  body
 *
 * then padding to a multiple of 4, and a trailer.  Bodies:
 *
 *	HELLO		be64 nonce, be64 echo, be32 generation, u8 state,
 *			u8 streams, be16 0; for each stream be64 newest,
 *			be64 oldest that is kept
 *	NACK		for each range u8 stream, 3 bytes 0, be64 first,
 *			be64 last
 *	RESYNC		be64 nonce
 *	BULK_BEGIN, BULK_END	be64 nonce, be32 records
 *	DIGEST_ASK	be64 nonce
 *	DIGEST		be64 nonce, be16 first slice, be16 number, for each
 *			be64 sum
 *	SLICES		be64 nonce, a bit for each slice, the lowest first
 */
#include "sync/control.h"

#include <linux/bitmap.h>
#include <linux/minmax.h>
#include <linux/string.h>

enum {
	HELLO_HEAD	= 24,
	HELLO_STREAM	= 16,
	NACK_RANGE	= 20,
	BULK		= 12,
	SUMS_HEAD	= 12,
	SUMS		= SUMS_HEAD + L4LB_SYNC_SUMS_MAX * sizeof(u64),
	SLICES		= 8 + L4LB_DIGEST_SLICES / 8,
};

static_assert(HELLO_HEAD + L4LB_SYNC_STREAMS * HELLO_STREAM <=
	      L4LB_SYNC_BODY_MAX);
static_assert((int)SUMS <= (int)L4LB_SYNC_BODY_MAX);
static_assert((int)SLICES <= (int)L4LB_SYNC_BODY_MAX);
static_assert(L4LB_SYNC_RANGES_MAX * NACK_RANGE <= L4LB_SYNC_BODY_MAX);

size_t l4lb_sync_control_put(u8 *data, enum l4lb_sync_control_type type,
			     size_t len)
{
	memset(data, 0, L4LB_SYNC_BODY_AT);
	data[5] = 1;
	data[8] = type;
	put_unaligned_be16(len, data + 10);
	return L4LB_SYNC_BODY_AT + len;
}

const u8 *l4lb_sync_control_read(const u8 *data, size_t len, u8 *type,
				 size_t *body_len)
{
	size_t body;

	if (len < L4LB_SYNC_BODY_AT + L4LB_SYNC_TRAILER ||
	    get_unaligned_be16(data + 2) != len || data[0] || data[4] ||
	    data[5] != 1 || data[6] || data[7] || data[9])
		return NULL;
	body = get_unaligned_be16(data + 10);
	if (body > L4LB_SYNC_BODY_MAX ||
	    l4lb_sync_with_trailer(L4LB_SYNC_BODY_AT + body) != len)
		return NULL;
	*type = data[8];
	*body_len = body;
	return data + L4LB_SYNC_BODY_AT;
}

size_t l4lb_sync_hello_write(u8 *body, const struct l4lb_sync_hello *hello)
{
	put_unaligned_be64(hello->nonce, body);
	put_unaligned_be64(hello->echo, body + 8);
	put_unaligned_be32(hello->generation, body + 16);
	body[20] = hello->state;
	body[21] = hello->n;
	body[22] = 0;
	body[23] = 0;
	return HELLO_HEAD + hello->n * HELLO_STREAM;
}

void l4lb_sync_hello_put(u8 *body, unsigned int stream, u64 newest, u64 oldest)
{
	u8 *p = body + HELLO_HEAD + stream * HELLO_STREAM;

	put_unaligned_be64(newest, p);
	put_unaligned_be64(oldest, p + 8);
}

bool l4lb_sync_hello_read(struct l4lb_sync_hello *hello, const u8 *body,
			  size_t len)
{
	if (len < HELLO_HEAD)
		return false;
	*hello = (struct l4lb_sync_hello){
		.nonce		= get_unaligned_be64(body),
		.echo		= get_unaligned_be64(body + 8),
		.generation	= get_unaligned_be32(body + 16),
		.state		= body[20],
		.n		= body[21],
	};
	return hello->n <= L4LB_SYNC_STREAMS &&
	       len == HELLO_HEAD + hello->n * HELLO_STREAM;
}

void l4lb_sync_hello_stream(const u8 *body, unsigned int stream, u64 *newest,
			    u64 *oldest)
{
	const u8 *p = body + HELLO_HEAD + stream * HELLO_STREAM;

	*newest = min_t(u64, get_unaligned_be64(p), L4LB_SYNC_SEQUENCE_MAX);
	*oldest = min_t(u64, get_unaligned_be64(p + 8), *newest + 1);
}

size_t l4lb_sync_nack_put(u8 *body, unsigned int i,
			  const struct l4lb_sync_range *range)
{
	u8 *p = body + i * NACK_RANGE;

	memset(p, 0, 4);
	p[0] = range->stream;
	put_unaligned_be64(range->first, p + 4);
	put_unaligned_be64(range->last, p + 12);
	return (i + 1) * NACK_RANGE;
}

unsigned int l4lb_sync_nack_read(struct l4lb_sync_range *ranges,
				 const u8 *body, size_t len)
{
	unsigned int i, n = len / NACK_RANGE;

	if (len % NACK_RANGE || n > L4LB_SYNC_RANGES_MAX)
		return 0;
	for (i = 0; i < n; i++, body += NACK_RANGE) {
		ranges[i] = (struct l4lb_sync_range){
			.stream	= body[0],
			.first	= get_unaligned_be64(body + 4),
			.last	= get_unaligned_be64(body + 12),
		};
		if (ranges[i].stream >= L4LB_SYNC_STREAMS ||
		    !ranges[i].first || ranges[i].first > ranges[i].last)
			return 0;
	}
	return n;
}

size_t l4lb_sync_nonce_put(u8 *body, u64 nonce)
{
	put_unaligned_be64(nonce, body);
	return sizeof(nonce);
}

bool l4lb_sync_nonce_read(const u8 *body, size_t len, u64 *nonce)
{
	if (len != sizeof(*nonce))
		return false;
	*nonce = get_unaligned_be64(body);
	return true;
}

size_t l4lb_sync_bulk_put(u8 *body, u64 nonce, u32 records)
{
	put_unaligned_be64(nonce, body);
	put_unaligned_be32(records, body + 8);
	return BULK;
}

bool l4lb_sync_bulk_read(const u8 *body, size_t len, u64 *nonce, u32 *records)
{
	if (len != BULK)
		return false;
	*nonce = get_unaligned_be64(body);
	*records = get_unaligned_be32(body + 8);
	return true;
}

size_t l4lb_sync_sums_put(u8 *body, u64 nonce, u16 first, const u64 *sum)
{
	unsigned int i;

	put_unaligned_be64(nonce, body);
	put_unaligned_be16(first, body + 8);
	put_unaligned_be16(L4LB_SYNC_SUMS_MAX, body + 10);
	for (i = 0; i < L4LB_SYNC_SUMS_MAX; i++)
		put_unaligned_be64(sum[i], body + SUMS_HEAD + 8 * i);
	return SUMS;
}

bool l4lb_sync_sums_read(struct l4lb_sync_sums *sums, const u8 *body,
			 size_t len)
{
	unsigned int i;

	if (len != SUMS ||
	    get_unaligned_be16(body + 10) != L4LB_SYNC_SUMS_MAX)
		return false;
	sums->nonce = get_unaligned_be64(body);
	sums->first = get_unaligned_be16(body + 8);
	for (i = 0; i < L4LB_SYNC_SUMS_MAX; i++)
		sums->sum[i] = get_unaligned_be64(body + SUMS_HEAD + 8 * i);
	return sums->first < L4LB_DIGEST_SLICES &&
	       !(sums->first % L4LB_SYNC_SUMS_MAX);
}

size_t l4lb_sync_slices_put(u8 *body, u64 nonce, const unsigned long *slices)
{
	unsigned int slice;

	put_unaligned_be64(nonce, body);
	memset(body + 8, 0, SLICES - 8);
	for_each_set_bit(slice, slices, L4LB_DIGEST_SLICES)
		body[8 + slice / 8] |= BIT(slice % 8);
	return SLICES;
}

bool l4lb_sync_slices_read(unsigned long *slices, const u8 *body, size_t len,
			   u64 *nonce)
{
	unsigned int slice;

	if (len != SLICES)
		return false;
	*nonce = get_unaligned_be64(body);
	bitmap_zero(slices, L4LB_DIGEST_SLICES);
	for (slice = 0; slice < L4LB_DIGEST_SLICES; slice++)
		if (body[8 + slice / 8] & BIT(slice % 8))
			__set_bit(slice, slices);
	return true;
}
