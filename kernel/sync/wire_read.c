// SPDX-License-Identifier: GPL-2.0
/*
 * Reading messages of connection synchronisation.  Anyone on the segment may
 * send them: no length is trusted, and nothing is read beyond what has arrived.
 *
 * A message of version 1:
 *
 *	 0  0		 1  sync id	 2  size of the datagram (16 bits)
 *	 4  records	 5  1		 6  0 (16 bits)
 *
 * and each of its records, at a multiple of 4 from the start of the message:
 *
 *	 0  bit 0: IPv6	 1  protocol	 2  0 (4 bits), length (12 bits)
 *	 4  flags (32 bits)		 8  state (16 bits)
 *	10  client's port, the VIP's, the real server's (16 bits each)
 *	16  firewall mark, timeout in seconds (32 bits each)
 *	24  addresses of client, VIP and real server (4 or 16 bytes each)
 *	36 or 72  options
 *
 * A message of version 0:
 *
 *	 0  records	 1  sync id	 2  size of the datagram (16 bits)
 *
 * and each of its records:
 *
 *	 0  unused	 1  protocol
 *	 2  client's port, the VIP's, the real server's (16 bits each)
 *	 8  addresses of client, VIP and real server (4 bytes each)
 *	20  flags, state (16 bits each)
 *	24  sequence data, if the flags say so, in the sender's byte order
 */
#include "sync/wire_read.h"

#include <linux/bits.h>
#include <linux/in.h>
#include <linux/kernel.h>
#include <linux/socket.h>
#include <linux/string.h>

#define PE_NAME_MAX	16
#define LENGTH_MAX	0xfff	/* of a record; above are 4 bits of version */

static u16 n_states(u8 proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return 11;
	case IPPROTO_SCTP:
		return 14;
	case IPPROTO_UDP:
	case IPPROTO_AH:
	case IPPROTO_ESP:
		return 1;
	default:
		return 0;
	}
}

/* What both versions demand of a record that is well-formed. */
static enum l4lb_sync_error check(const struct l4lb_sync_record *record)
{
	bool template = record->flags & L4LB_SYNC_F_TEMPLATE;
	u16 states = template ? 2 : n_states(record->proto);

	if (record->flags & L4LB_SYNC_F_ONE_PACKET ||
	    (template && record->flags & L4LB_SYNC_F_NO_CPORT))
		return L4LB_SYNC_FLAGS;
	if (!states)
		return L4LB_SYNC_PROTOCOL;
	return record->state < states ? L4LB_SYNC_OK : L4LB_SYNC_STATE;
}

static void read_ports(struct l4lb_sync_record *record, const u8 *p)
{
	memcpy(&record->cport, p, 2);
	memcpy(&record->vport, p + 2, 2);
	memcpy(&record->dport, p + 4, 2);
}

static void read_addresses(struct l4lb_sync_record *record, const u8 *p,
			   size_t size)
{
	memcpy(&record->caddr, p, size);
	memcpy(&record->vaddr, p + size, size);
	memcpy(&record->daddr, p + 2 * size, size);
}

static struct l4lb_sync_seq read_seq(const u8 *p)
{
	return (struct l4lb_sync_seq) {
		.init		= get_unaligned_be32(p),
		.delta		= get_unaligned_be32(p + 4),
		.previous	= get_unaligned_be32(p + 8),
	};
}

/* Each version reads a record at @p, of which at most @left bytes have arrived.
 * @used is set to its length, unless nobody can tell where the next one begins.
 */

/* ---- version 0 ---- */

static enum l4lb_sync_error
parse_v0(struct l4lb_sync_record *record, const u8 *p, size_t left,
	 size_t *used)
{
	size_t len = L4LB_SYNC_IPV4_V0;

	if (left < len)
		return L4LB_SYNC_RECORD;
	record->flags = get_unaligned_be16(p + 20);
	if (record->flags & L4LB_SYNC_F_SEQ) {
		len += L4LB_SYNC_SEQ_SIZE;
		if (left < len)
			return L4LB_SYNC_RECORD;
		memcpy(&record->in, p + 24, sizeof(record->in));
		memcpy(&record->out, p + 36, sizeof(record->out));
	}
	record->af = AF_INET;
	record->proto = p[1];
	read_ports(record, p + 2);
	read_addresses(record, p + 8, sizeof(record->caddr.ip));
	record->state = get_unaligned_be16(p + 22);
	*used = len;
	return check(record);
}

/* ---- version 1 ---- */

/* The types of a record's options, as bits; bit 0: one that is not known. */
#define UNKNOWN		BIT(0)
#define OF_SIP		BIT(7)	/* the engine's name is "sip" */

/* Reads an option of a known type: false if it is malformed. */
static bool read_option(struct l4lb_sync_record *record, const u8 *p, u8 *seen)
{
	u8 type = p[0] & ~L4LB_SYNC_OPT_OPTIONAL, len = p[1];

	if (*seen & BIT(type))
		return false;
	*seen |= BIT(type);
	p += L4LB_SYNC_OPT_HEADER;
	switch (type) {
	case L4LB_SYNC_OPT_SEQ:
		if (len != L4LB_SYNC_SEQ_SIZE)
			return false;
		record->in = read_seq(p);
		record->out = read_seq(p + 12);
		return true;
	case L4LB_SYNC_OPT_PE_DATA:
		record->call = p;
		record->call_len = len;
		return true;
	case L4LB_SYNC_OPT_PE_NAME:
		if (len == strlen(L4LB_SYNC_SIP) && !memcmp(p, L4LB_SYNC_SIP, len))
			*seen |= OF_SIP;
		return len <= PE_NAME_MAX;
	default:
		return true;
	}
}

/* Seconds left.  ip_vs skips it, so a wrong one is no error. */
static void read_left(struct l4lb_sync_record *record, const u8 *p)
{
	if (p[1] == L4LB_SYNC_LEFT_SIZE)
		record->left = get_unaligned_be32(p + L4LB_SYNC_OPT_HEADER);
}

/* Reads options, up to the first unknown one that is not optional.  Returns false
 * if one is malformed.
 */
static bool read_options(struct l4lb_sync_record *record, const u8 *p,
			 size_t left, u8 *seen)
{
	size_t len;
	u8 type;

	for (; left; p += len, left -= len) {
		if (left < L4LB_SYNC_OPT_HEADER)
			return false;
		type = p[0] & ~L4LB_SYNC_OPT_OPTIONAL;
		len = L4LB_SYNC_OPT_HEADER + p[1];
		if (!p[1] || len > left)
			return false;
		if (type >= L4LB_SYNC_OPT_SEQ && type <= L4LB_SYNC_OPT_PE_NAME) {
			if (!read_option(record, p, seen))
				return false;
		} else if (p[0] == L4LB_SYNC_OPT_GONE &&
			   p[1] == L4LB_SYNC_GONE_SIZE) {
			record->gone = true;
		} else if (!(p[0] & L4LB_SYNC_OPT_OPTIONAL)) {
			*seen |= UNKNOWN;
			return true;
		} else if (type == L4LB_SYNC_OPT_LEFT) {
			read_left(record, p);
		}
	}
	return true;
}

/* The length of the record's part before its options, or 0: no such type.  IPv6
 * is a bit: others beside it do not matter, without it they do.
 */
static size_t fixed_size(u8 type)
{
	if (type & 1)
		return L4LB_SYNC_IPV6_V1;
	return type ? 0 : L4LB_SYNC_IPV4_V1;
}

static void read_fixed(struct l4lb_sync_record *record, const u8 *p)
{
	bool ipv6 = p[0] & 1;

	record->af = ipv6 ? AF_INET6 : AF_INET;
	record->proto = p[1];
	record->flags = get_unaligned_be32(p + 4);
	record->state = get_unaligned_be16(p + 8);
	read_ports(record, p + 10);
	record->fwmark = get_unaligned_be32(p + 16);
	record->timeout = get_unaligned_be32(p + 20);
	read_addresses(record, p + 24, ipv6 ? sizeof(record->caddr.in6) :
		       sizeof(record->caddr.ip));
}

static enum l4lb_sync_error
parse_v1(struct l4lb_sync_record *record, const u8 *p, size_t left,
	 size_t *used)
{
	enum l4lb_sync_error error;
	size_t len, fixed;
	u8 seen = 0;

	if (left < L4LB_SYNC_IPV4_V1)
		return L4LB_SYNC_RECORD;
	len = get_unaligned_be16(p + 2);	/* and 4 bits that must be 0 */
	fixed = fixed_size(p[0]);
	if (len > left || len > LENGTH_MAX || !fixed || len < fixed)
		return L4LB_SYNC_RECORD;
	read_fixed(record, p);
	if (!read_options(record, p + fixed, len - fixed, &seen))
		return L4LB_SYNC_OPTION;
	*used = len;
	if (seen & UNKNOWN)
		return L4LB_SYNC_OPTION;
	error = check(record);
	if (error)
		return error;
	record->has_pe = seen & BIT(L4LB_SYNC_OPT_PE_DATA);
	if (record->has_pe && !(seen & BIT(L4LB_SYNC_OPT_PE_NAME)))
		return L4LB_SYNC_OPTION;
	if (!(seen & OF_SIP))
		record->call_len = 0;
	return L4LB_SYNC_OK;
}

/* ---- messages ---- */

static void read_records(const struct l4lb_sync_reader *reader, const u8 *data,
			 size_t len, u8 version)
{
	size_t at = version ? L4LB_SYNC_HEADER_V1 : L4LB_SYNC_HEADER_V0;
	u8 n = version ? data[4] : data[0];

	while (n--) {
		struct l4lb_sync_record record = { };
		enum l4lb_sync_error error;
		size_t used = 0;

		/* The padding before it may not have arrived. */
		at = min_t(size_t, ALIGN(at, L4LB_SYNC_ALIGN), len);
		error = version ?
			parse_v1(&record, data + at, len - at, &used) :
			parse_v0(&record, data + at, len - at, &used);
		if (error)
			reader->error(reader->arg, error);
		else
			reader->record(reader->arg, &record);
		if (!used)
			return;
		at += used;
	}
	/* A trailer begins at a multiple of 4. */
	if (reader->tail)
		at = ALIGN(at, L4LB_SYNC_ALIGN);
	if (at < len)
		reader->error(reader->arg, L4LB_SYNC_TRAILING);
}

/* A message of version 1 says 0 where version 0 has its number of records, so
 * that version 0 sees none.
 */
static bool is_v1(const u8 *data, size_t len)
{
	return len >= L4LB_SYNC_HEADER_V1 && !data[0] && data[5] == 1 &&
	       !data[6] && !data[7];
}

void l4lb_sync_read(const struct l4lb_sync_reader *reader, const u8 *data,
		    size_t len, u8 id)
{
	enum l4lb_sync_error error = L4LB_SYNC_OK;
	u8 version;

	if (len < L4LB_SYNC_HEADER_V0) {
		reader->error(reader->arg, L4LB_SYNC_SHORT);
		return;
	}
	version = is_v1(data, len);
	if (len != get_unaligned_be16(data + 2))
		error = L4LB_SYNC_SIZE;
	else if (id && data[1] != id)
		error = L4LB_SYNC_ID;
	else if (!version && !data[0] && len >= L4LB_SYNC_HEADER_V1)
		error = L4LB_SYNC_VERSION;
	if (error)
		reader->error(reader->arg, error);
	else
		read_records(reader, data, len - reader->tail, version);
}
