// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of other directors: their records are applied one after the other, so
 * a message costs what its at most 255 records do.
 */
#include "sync/receive.h"

#include "sync/apply.h"
#include "sync/counter.h"
#include "sync/trailer.h"
#include "sync/wire_read.h"

/* @how: of enum l4lb_sync_how */
struct message {
	struct l4lb_net	*ln;
	unsigned int	how;
};

static void record(void *arg, const struct l4lb_sync_record *record)
{
	const struct message *message = arg;

	l4lb_sync_count(message->ln, L4LB_SYNC_N_RECORDS_IN);
	l4lb_sync_apply(message->ln, record, message->how);
	cond_resched();
}

static void error(void *arg, enum l4lb_sync_error error)
{
	const struct message *message = arg;

	l4lb_sync_count_error(message->ln, error);
}

/**
 * l4lb_sync_receive() - use a datagram of another director
 * @ln: namespace; it has a connection table, and counters of synchronisation
 * @data: what has arrived
 * @len: bytes of it
 * @id: sync id of this director; 0: messages of all are taken
 * @how: how it came, of enum l4lb_sync_how
 *
 * Context: thread that receives messages; may sleep.
 */
void l4lb_sync_receive(struct l4lb_net *ln, const u8 *data, size_t len, u8 id,
		       unsigned int how)
{
	struct message message = { .ln = ln, .how = how };
	struct l4lb_sync_trailer trailer;
	const struct l4lb_sync_reader reader = {
		.record	= record,
		.error	= error,
		.arg	= &message,
		.tail	= l4lb_sync_trailer_read(&trailer, data, len),
	};

	l4lb_sync_read(&reader, data, len, id);
}
