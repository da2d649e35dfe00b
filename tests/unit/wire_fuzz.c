// SPDX-License-Identifier: GPL-2.0
/*
 * What must hold for any bytes that arrive, and for any records that are written.
 * An entry for libFuzzer ("make fuzz-sync"); wire.c calls it, too.  The first byte
 * of an input says how the others are used.
 */
#include "wire.h"

#include <assert.h>
#include <stdlib.h>

#define MANY		4096
#define ROOM_MOST	12000	/* more than 255 records of IPv4 need */

enum {
	MEND_SIZE	= 1,	/* the size field becomes the length */
	MEND_V1		= 2,	/* and the header one of version 1 */
	ANY_ID		= 4,	/* the backup takes all messages */
	ARE_RECORDS	= 8,	/* records to be written, not a message */
	WRITE_V1	= 16,	/* in which version */
};

/* Call-IDs of records, whose messages are gone. */
typedef u8 call_ids[L4LB_SYNC_RECORDS_MAX][255];

struct seen {
	struct l4lb_sync_record *records;
	call_ids *calls;
	u32	n, errors;
	enum l4lb_sync_error last;
};

/* The rest of a message is dropped, or there is no rest. */
static bool ends(enum l4lb_sync_error error)
{
	return error >= L4LB_SYNC_SHORT && error <= L4LB_SYNC_RECORD;
}

static void on_error(void *arg, enum l4lb_sync_error error)
{
	struct seen *seen = arg;

	assert(error > L4LB_SYNC_OK && error < L4LB_SYNC_UNSUPPORTED);
	assert(!ends(seen->last));
	seen->last = error;
	seen->errors++;
}

static void on_record(void *arg, const struct l4lb_sync_record *record)
{
	struct seen *seen = arg;
	bool template = record->flags & L4LB_SYNC_F_TEMPLATE;

	assert(!ends(seen->last));
	assert(record->af == AF_INET || record->af == AF_INET6);
	assert(record->state < (template ? 2 : 14));
	assert(!(record->flags & L4LB_SYNC_F_ONE_PACKET));
	assert(!template || !(record->flags & L4LB_SYNC_F_NO_CPORT));
	assert(seen->n < L4LB_SYNC_RECORDS_MAX);
	seen->records[seen->n] = *record;
	if (record->call_len) {
		memcpy((*seen->calls)[seen->n], record->call, record->call_len);
		seen->records[seen->n].call = (*seen->calls)[seen->n];
	}
	seen->n++;
}

/* Reads a copy that ends where the message does, for the sanitizer. */
static void read_message(struct seen *seen, const u8 *data, size_t len, u8 id)
{
	const struct l4lb_sync_reader reader = { on_record, on_error, seen };
	u8 *copy = malloc(len);

	memcpy(copy, data, len);
	seen->n = 0;
	seen->errors = 0;
	seen->last = L4LB_SYNC_OK;
	l4lb_sync_read(&reader, copy, len, id);
	free(copy);
	assert(seen->n + seen->errors <= L4LB_SYNC_RECORDS_MAX + 1);
}

static bool same(const struct l4lb_sync_record *a, const struct l4lb_sync_record *b)
{
	return a->af == b->af && a->proto == b->proto && a->state == b->state &&
	       a->flags == b->flags && a->cport == b->cport && a->vport == b->vport &&
	       a->dport == b->dport && a->fwmark == b->fwmark && a->timeout == b->timeout &&
	       !memcmp(&a->caddr, &b->caddr, sizeof(a->caddr)) &&
	       !memcmp(&a->vaddr, &b->vaddr, sizeof(a->vaddr)) &&
	       !memcmp(&a->daddr, &b->daddr, sizeof(a->daddr)) &&
	       !memcmp(&a->in, &b->in, sizeof(a->in)) &&
	       !memcmp(&a->out, &b->out, sizeof(a->out)) && a->has_pe == b->has_pe &&
	       a->call_len == b->call_len && a->gone == b->gone &&
	       (!a->call_len || !memcmp(a->call, b->call, a->call_len));
}

/* What is left of a record when it has been sent. */
static struct l4lb_sync_record as_sent(const struct l4lb_sync_record *record, u8 version)
{
	struct l4lb_sync_record sent = *record;

	sent.flags &= 0xffff & ~L4LB_SYNC_F_HASHED;
	sent.has_pe = version && sent.call_len;
	if (!(sent.flags & L4LB_SYNC_F_SEQ)) {
		memset(&sent.in, 0, sizeof(sent.in));
		memset(&sent.out, 0, sizeof(sent.out));
	}
	if (!version) {
		sent.fwmark = 0;
		sent.timeout = 0;
		sent.gone = false;
	}
	return sent;
}

/* Writes as many of @n records as there is room for in @size bytes, and reads them
 * again: they are equal.  Returns their number.
 */
static u32 round_trip(const struct l4lb_sync_record *records, u32 n, u16 size, u8 version)
{
	static call_ids calls;
	struct l4lb_sync_record again[L4LB_SYNC_RECORDS_MAX];
	struct l4lb_sync_buffer buf = { .data = malloc(size), .size = size };
	struct seen seen = { again, &calls };
	u32 i, at = 0;
	size_t len;

	memset(buf.data, 0xa5, size);
	l4lb_sync_begin(&buf, version, 7);
	for (i = 0; i < n; i++) {
		size_t most = l4lb_sync_record_size(&records[i], version);
		u16 before = buf.len;

		if (!l4lb_sync_append(&buf, &records[i])) {
			assert(before + most > size || buf.n == L4LB_SYNC_RECORDS_MAX);
			assert(buf.len == before);
			break;
		}
		assert(buf.len <= before + most);
	}
	n = i;
	len = l4lb_sync_finish(&buf);
	assert(len <= size && len == buf.len);
	read_message(&seen, buf.data, len, 7);
	assert(!seen.errors && seen.n == buf.n);
	for (i = 0; i < n; i++) {
		struct l4lb_sync_record sent = as_sent(&records[i], version);

		if (version || (sent.af == AF_INET && !sent.call_len))
			assert(same(&again[at++], &sent));
	}
	assert(at == seen.n);
	free(buf.data);
	return n;
}

/* Bytes for all the records, in either version. */
static u16 room(const struct l4lb_sync_record *records, u32 n)
{
	size_t size = L4LB_SYNC_HEADER_V1;

	while (n--)
		size += l4lb_sync_record_size(&records[n], 1);
	return size;
}

static u32 take(const u8 **data, size_t *size)
{
	u32 value = 0;
	size_t n = *size < sizeof(value) ? *size : sizeof(value);

	memcpy(&value, *data, n);
	*data += n;
	*size -= n;
	return value;
}

/* A valid record of any bytes. */
static void make(struct l4lb_sync_record *record, const u8 **data, size_t *size)
{
	static const u8 protocols[] = { IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP, IPPROTO_ESP };
	static const u8 states[] = { 11, 1, 14, 1 };
	static const char call[256] = "a84b4c76e66710@pc33.example.com";
	u32 word = take(data, size), width, i;

	memset(record, 0, sizeof(*record));
	record->af = word & 1 ? AF_INET6 : AF_INET;
	record->proto = protocols[word >> 1 & 3];
	record->state = (word >> 3 & 15) % states[word >> 1 & 3];
	record->flags = word >> 8 & ~L4LB_SYNC_F_ONE_PACKET;
	if (record->flags & L4LB_SYNC_F_TEMPLATE) {
		record->flags &= ~L4LB_SYNC_F_NO_CPORT;
		record->state %= 2;
	}
	word = take(data, size);
	record->cport = word;
	record->vport = word >> 16;
	record->dport = take(data, size);
	record->fwmark = take(data, size);
	record->timeout = take(data, size);
	width = record->af == AF_INET6 ? 4 : 1;
	for (i = 0; i < width; i++) {
		record->caddr.all[i] = take(data, size);
		record->vaddr.all[i] = take(data, size);
		record->daddr.all[i] = take(data, size);
	}
	record->call_len = take(data, size);
	record->call = (const u8 *)call;
	record->in = (struct l4lb_sync_seq){ take(data, size), take(data, size), 1 };
	record->out = (struct l4lb_sync_seq){ take(data, size), 2, take(data, size) };
}

static void write_records(const u8 *data, size_t size, u8 version)
{
	static struct l4lb_sync_record records[MANY];
	u16 size_max = take(&data, &size) % ROOM_MOST + L4LB_SYNC_HEADER_V1;
	u32 n = 0, done = 0, written;

	while (size && n < MANY)
		make(&records[n++], &data, &size);
	do {
		written = round_trip(records + done, n - done, size_max, version);
		done += written;
	} while (written && done < n);
}

static void read_any(const u8 *data, size_t size, u8 how)
{
	static struct l4lb_sync_record records[L4LB_SYNC_RECORDS_MAX];
	static call_ids calls;
	struct seen seen = { records, &calls };
	u8 *copy = malloc(size);

	memcpy(copy, data, size);
	if (how & MEND_SIZE && size >= L4LB_SYNC_HEADER_V0)
		put_unaligned_be16(size, copy + 2);
	if (how & MEND_V1 && size >= L4LB_SYNC_HEADER_V1) {
		copy[0] = 0;
		memcpy(copy + 5, (u8[]){ 1, 0, 0 }, 3);
	}
	read_message(&seen, copy, size, how & ANY_ID ? 0 : 5);
	free(copy);
	round_trip(records, seen.n, room(records, seen.n), 0);
	round_trip(records, seen.n, room(records, seen.n), 1);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] & ARE_RECORDS)
		write_records(data + 1, size - 1, !!(data[0] & WRITE_V1));
	else
		read_any(data + 1, size - 1, data[0]);
	return 0;
}
