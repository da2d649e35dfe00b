// SPDX-License-Identifier: GPL-2.0
/*
 * The trailer of a message is inside the message's size and behind its records,
 * where ip_vs and directors without peers do not look.
 *
 *	 0  "l4lb"	 4  u8 version, 1	 5  u8 bytes, 64
 *	 6  be16 flags	 8  be64 sender		16  be64 sequence
 *	24  u8 stream	25  0			28  be32 backlog
 *	32  MAC
 *
 * It begins at a multiple of 4.  The last record of a message could look like
 * it: its state, at least, would be one that no protocol has.
 */
#include "sync/trailer.h"

#include <linux/string.h>

#define MAGIC	"l4lb"

enum {
	VERSION	= 1,
	FLAGS	= L4LB_SYNC_T_KEYED | L4LB_SYNC_T_BULK | L4LB_SYNC_T_AGAIN |
		  L4LB_SYNC_T_CONTROL,
};

static void write(u8 *p, const struct l4lb_sync_trailer *trailer)
{
	memset(p, 0, L4LB_SYNC_TRAILER);
	memcpy(p, MAGIC, 4);
	p[4] = VERSION;
	p[5] = L4LB_SYNC_TRAILER;
	put_unaligned_be16(trailer->flags, p + 6);
	put_unaligned_be64(trailer->sender, p + 8);
	put_unaligned_be64(trailer->sequence, p + 16);
	p[24] = trailer->stream;
	put_unaligned_be32(trailer->backlog, p + 28);
}

size_t l4lb_sync_trailer_put(u8 *data, size_t len,
			     const struct l4lb_sync_trailer *trailer)
{
	size_t at = ALIGN(len, L4LB_SYNC_ALIGN);

	memset(data + len, 0, at - len);
	write(data + at, trailer);
	put_unaligned_be16(at + L4LB_SYNC_TRAILER, data + 2);
	return at + L4LB_SYNC_TRAILER;
}

void l4lb_sync_trailer_renew(u8 *data, size_t len,
			     const struct l4lb_sync_trailer *trailer)
{
	write(data + len - L4LB_SYNC_TRAILER, trailer);
}

/* Does the stream carry messages with these flags? */
static bool is_consistent(const struct l4lb_sync_trailer *trailer)
{
	u16 other = trailer->flags & (L4LB_SYNC_T_BULK | L4LB_SYNC_T_CONTROL);

	if (trailer->flags & ~FLAGS)
		return false;
	if (trailer->stream < L4LB_SYNC_STREAMS)
		return !other;
	return trailer->stream == L4LB_SYNC_STREAM_OTHER &&
	       !(trailer->flags & L4LB_SYNC_T_AGAIN) &&
	       (other == L4LB_SYNC_T_BULK || other == L4LB_SYNC_T_CONTROL);
}

size_t l4lb_sync_trailer_read(struct l4lb_sync_trailer *trailer, const u8 *data,
			      size_t len)
{
	const u8 *p = data + len - L4LB_SYNC_TRAILER;

	if (len < L4LB_SYNC_HEADER_V0 + L4LB_SYNC_TRAILER ||
	    len % L4LB_SYNC_ALIGN || memcmp(p, MAGIC, 4) || p[4] != VERSION ||
	    p[5] != L4LB_SYNC_TRAILER || p[25] || p[26] || p[27])
		return 0;
	*trailer = (struct l4lb_sync_trailer){
		.sender		= get_unaligned_be64(p + 8),
		.sequence	= get_unaligned_be64(p + 16),
		.backlog	= get_unaligned_be32(p + 28),
		.flags		= get_unaligned_be16(p + 6),
		.stream		= p[24],
	};
	if (!trailer->sender || !trailer->sequence ||
	    trailer->sequence > L4LB_SYNC_SEQUENCE_MAX ||
	    !is_consistent(trailer))
		return 0;
	return L4LB_SYNC_TRAILER;
}
