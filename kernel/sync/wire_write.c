// SPDX-License-Identifier: GPL-2.0
/*
 * Writing messages of connection synchronisation; wire_read.c shows their form.
 *
 * A record is padded only when another one follows, and its length is without the
 * padding.
 */
#include "sync/wire_write.h"

#include <linux/align.h>
#include <linux/socket.h>
#include <linux/string.h>

#define SEQ_OPTION	(L4LB_SYNC_OPT_HEADER + L4LB_SYNC_SEQ_SIZE)
#define LEFT_OPTION	(L4LB_SYNC_OPT_HEADER + L4LB_SYNC_LEFT_SIZE)
#define GONE_OPTION	(L4LB_SYNC_OPT_HEADER + L4LB_SYNC_GONE_SIZE)
#define SIP_OPTION	(L4LB_SYNC_OPT_HEADER + sizeof(L4LB_SYNC_SIP) - 1)

void l4lb_sync_begin(struct l4lb_sync_buffer *buf, u8 version, u8 id)
{
	buf->version = version;
	buf->n = 0;
	buf->len = version ? L4LB_SYNC_HEADER_V1 : L4LB_SYNC_HEADER_V0;
	memset(buf->data, 0, buf->len);
	buf->data[1] = id;
	if (version)
		buf->data[5] = 1;
}

/* The length of a record without padding; 0: the version does not have it. */
static size_t record_len(const struct l4lb_sync_record *record, u8 version)
{
	bool ipv6 = record->af == AF_INET6;
	size_t len;

	if (!version && (ipv6 || record->call_len))
		return 0;
	if (!version)
		len = L4LB_SYNC_IPV4_V0;
	else
		len = ipv6 ? L4LB_SYNC_IPV6_V1 : L4LB_SYNC_IPV4_V1;
	if (record->flags & L4LB_SYNC_F_SEQ)
		len += version ? SEQ_OPTION : L4LB_SYNC_SEQ_SIZE;
	if (version && record->left)
		len += LEFT_OPTION;
	if (version && record->gone)
		len += GONE_OPTION;
	if (record->call_len)
		len += L4LB_SYNC_OPT_HEADER + record->call_len + SIP_OPTION;
	return len;
}

size_t l4lb_sync_record_size(const struct l4lb_sync_record *record, u8 version)
{
	size_t len = record_len(record, version);

	return len ? len + L4LB_SYNC_ALIGN - 1 : 0;
}

static void write_ports(u8 *p, const struct l4lb_sync_record *record)
{
	memcpy(p, &record->cport, 2);
	memcpy(p + 2, &record->vport, 2);
	memcpy(p + 4, &record->dport, 2);
}

/* Inlined with a @size that the compiler knows: three moves instead of three calls. */
static __always_inline void
write_addresses(u8 *p, const struct l4lb_sync_record *record, size_t size)
{
	memcpy(p, &record->caddr, size);
	memcpy(p + size, &record->vaddr, size);
	memcpy(p + 2 * size, &record->daddr, size);
}

static void write_seq(u8 *p, const struct l4lb_sync_seq *seq)
{
	put_unaligned_be32(seq->init, p);
	put_unaligned_be32(seq->delta, p + 4);
	put_unaligned_be32(seq->previous, p + 8);
}

/* Only the low 16 flags are of the protocol. */
static u16 sent_flags(const struct l4lb_sync_record *record)
{
	return record->flags & ~L4LB_SYNC_F_HASHED;
}

static void write_v0(u8 *p, const struct l4lb_sync_record *record)
{
	p[0] = 0;
	p[1] = record->proto;
	write_ports(p + 2, record);
	write_addresses(p + 8, record, sizeof(record->caddr.ip));
	put_unaligned_be16(sent_flags(record), p + 20);
	put_unaligned_be16(record->state, p + 22);
	if (record->flags & L4LB_SYNC_F_SEQ) {
		memcpy(p + 24, &record->in, sizeof(record->in));
		memcpy(p + 36, &record->out, sizeof(record->out));
	}
}

/* Up to @end.  Return: where it begins. */
static u8 *write_call(u8 *end, const struct l4lb_sync_record *record)
{
	end -= SIP_OPTION;
	end[0] = L4LB_SYNC_OPT_PE_NAME;
	end[1] = SIP_OPTION - L4LB_SYNC_OPT_HEADER;
	memcpy(end + 2, L4LB_SYNC_SIP, SIP_OPTION - L4LB_SYNC_OPT_HEADER);
	end -= L4LB_SYNC_OPT_HEADER + record->call_len;
	end[0] = L4LB_SYNC_OPT_PE_DATA;
	end[1] = record->call_len;
	memcpy(end + 2, record->call, record->call_len);
	return end;
}

/* Behind the fixed part, up to @end. */
static void write_options(u8 *end, const struct l4lb_sync_record *record)
{
	u8 *p;

	if (record->flags & L4LB_SYNC_F_SEQ) {
		end -= SEQ_OPTION;
		end[0] = L4LB_SYNC_OPT_SEQ;
		end[1] = L4LB_SYNC_SEQ_SIZE;
		write_seq(end + 2, &record->in);
		write_seq(end + 14, &record->out);
	}
	if (record->gone) {
		end -= GONE_OPTION;
		end[0] = L4LB_SYNC_OPT_GONE;
		end[1] = L4LB_SYNC_GONE_SIZE;
		end[2] = 0;
	}
	if (record->call_len)
		end = write_call(end, record);
	if (record->left) {
		p = end - LEFT_OPTION;
		p[0] = L4LB_SYNC_OPT_LEFT | L4LB_SYNC_OPT_OPTIONAL;
		p[1] = L4LB_SYNC_LEFT_SIZE;
		put_unaligned_be32(record->left, p + 2);
	}
}

static void write_v1(u8 *p, const struct l4lb_sync_record *record, size_t len)
{
	bool ipv6 = record->af == AF_INET6;

	p[0] = ipv6;
	p[1] = record->proto;
	put_unaligned_be16(len, p + 2);
	put_unaligned_be32(sent_flags(record), p + 4);
	put_unaligned_be16(record->state, p + 8);
	write_ports(p + 10, record);
	put_unaligned_be32(record->fwmark, p + 16);
	put_unaligned_be32(record->timeout, p + 20);
	if (ipv6)
		write_addresses(p + 24, record, sizeof(record->caddr.in6));
	else
		write_addresses(p + 24, record, sizeof(record->caddr.ip));
	write_options(p + len, record);
}

bool l4lb_sync_append(struct l4lb_sync_buffer *buf,
		      const struct l4lb_sync_record *record)
{
	size_t len = record_len(record, buf->version);
	size_t at = ALIGN(buf->len, L4LB_SYNC_ALIGN);

	if (!len)
		return true;
	if (at + len > buf->size || buf->n == L4LB_SYNC_RECORDS_MAX)
		return false;
	if (at != buf->len)
		memset(buf->data + buf->len, 0, at - buf->len);
	if (buf->version)
		write_v1(buf->data + at, record, len);
	else
		write_v0(buf->data + at, record);
	buf->len = at + len;
	buf->n++;
	return true;
}

size_t l4lb_sync_finish(struct l4lb_sync_buffer *buf)
{
	put_unaligned_be16(buf->len, buf->data + 2);
	buf->data[buf->version ? 4 : 0] = buf->n;
	return buf->len;
}
