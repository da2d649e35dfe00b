/* SPDX-License-Identifier: GPL-2.0 */
/* Writing messages of connection synchronisation. */
#ifndef _L4LB_SYNC_WIRE_WRITE_H
#define _L4LB_SYNC_WIRE_WRITE_H

#include "sync/wire.h"

/**
 * struct l4lb_sync_buffer - a message that is being written
 * @data: room for @size bytes
 * @size: room, 8 to 65,507 bytes
 * @len: bytes used; 0: no message was begun
 * @n: records
 * @version: 0 or 1
 */
struct l4lb_sync_buffer {
	u8		*data;
	u16		size;
	u16		len;
	u8		n;
	u8		version;
};

/* Each may be called in any context; one caller at a time for a buffer. */

/* Begins a message of @version; what the buffer had is gone. */
void l4lb_sync_begin(struct l4lb_sync_buffer *buf, u8 version, u8 id);

/**
 * l4lb_sync_append() - writes a record behind those of the message
 * @buf: a begun message
 * @record: what to write; of data of a persistence engine, only @record->call is written
 *
 * Version 0 has no IPv6: such a record is left out.
 * Return: false if there is no room for it (bytes, or 255 records): finish the
 * message and begin another.
 */
bool l4lb_sync_append(struct l4lb_sync_buffer *buf,
		      const struct l4lb_sync_record *record);

/* Writes size and count into a begun message.  Returns its length in bytes. */
size_t l4lb_sync_finish(struct l4lb_sync_buffer *buf);

/* Bytes that the record needs at most, with padding before it; 0: none. */
size_t l4lb_sync_record_size(const struct l4lb_sync_record *record, u8 version);

#endif /* _L4LB_SYNC_WIRE_WRITE_H */
