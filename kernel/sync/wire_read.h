/* SPDX-License-Identifier: GPL-2.0 */
/* Reading messages of connection synchronisation. */
#ifndef _L4LB_SYNC_WIRE_READ_H
#define _L4LB_SYNC_WIRE_READ_H

#include "sync/wire.h"

/**
 * struct l4lb_sync_reader - what to do with what a message has
 * @record: called for each valid record, in their order; the record is gone when
 *	it returns
 * @error: called exactly once for each defect; never with %L4LB_SYNC_OK
 * @arg: their first argument
 * @tail: bytes at the end of the message that are not looked at, at most those
 *	behind the header
 */
struct l4lb_sync_reader {
	void	(*record)(void *arg, const struct l4lb_sync_record *record);
	void	(*error)(void *arg, enum l4lb_sync_error error);
	void	*arg;
	size_t	tail;
};

/**
 * l4lb_sync_read() - reads a message as ip_vs's backup does
 * @reader: what to do with its records and defects
 * @data: the datagram
 * @len: bytes of it that have arrived
 * @id: sync id of the backup; 0: it takes every message
 *
 * Records before a defect stay used.  It allocates nothing and takes no lock.
 * Context: any; what the functions of @reader need.
 */
void l4lb_sync_read(const struct l4lb_sync_reader *reader, const u8 *data,
		    size_t len, u8 id);

#endif /* _L4LB_SYNC_WIRE_READ_H */
