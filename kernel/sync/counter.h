/* SPDX-License-Identifier: GPL-2.0 */
/* Counters of a namespace's synchronisation. */
#ifndef _L4LB_SYNC_COUNTER_H
#define _L4LB_SYNC_COUNTER_H

#include "base/net.h"
#include "sync/wire.h"

/**
 * enum l4lb_sync_counter - what is counted
 * @L4LB_SYNC_N_MESSAGES_OUT: messages sent
 * @L4LB_SYNC_N_BYTES_OUT: their bytes, without UDP and IP
 * @L4LB_SYNC_N_RECORDS_OUT: their records
 * @L4LB_SYNC_N_OVERFLOW: records refused: the queue was full, or no memory
 * @L4LB_SYNC_N_SEND_ERRORS: messages lost by an error of the socket
 * @L4LB_SYNC_N_MESSAGES_IN: datagrams received, whatever they hold
 * @L4LB_SYNC_N_BYTES_IN: their bytes
 * @L4LB_SYNC_N_RECORDS_IN: valid records received
 * @L4LB_SYNC_N_RECEIVE_ERRORS: errors of the receiving socket
 * @L4LB_SYNC_N_NO_SERVER: records skipped: real server unknown, no placeholder
 * @L4LB_SYNC_N_FULL: records skipped: no room for a connection
 * @L4LB_SYNC_N_CONFLICT: records that contradict a connection in use here
 * @L4LB_SYNC_N_PLACEHOLDER: placeholders made for unknown real servers
 * @L4LB_SYNC_N_PEER_OUT: messages sent to peers, one for each peer
 * @L4LB_SYNC_N_PEER_ERRORS: likewise, that could not be sent
 * @L4LB_SYNC_N_PEER_IN: datagrams received on the sockets for peers
 * @L4LB_SYNC_N_SOURCE: of those, with an address or hop limit that is no peer's
 * @L4LB_SYNC_N_MAC: messages without a trailer, or with a wrong MAC
 * @L4LB_SYNC_N_REPLAY: messages of a sender that is not believed
 * @L4LB_SYNC_N_REPEATED: messages that have come before
 * @L4LB_SYNC_N_RATE_LIMITED: messages of a peer that sends too many
 * @L4LB_SYNC_N_CONTROL: malformed control messages
 * @L4LB_SYNC_N_BULK_OUT: records of resyncs and repairs sent to peers
 * @L4LB_SYNC_N_BULK_IN: likewise, that have come
 * @L4LB_SYNC_N_ERROR: the first of %L4LB_SYNC_ERRORS - 1 counters of defects
 * @L4LB_SYNC_COUNTERS: their number
 */
enum l4lb_sync_counter {
	L4LB_SYNC_N_MESSAGES_OUT,
	L4LB_SYNC_N_BYTES_OUT,
	L4LB_SYNC_N_RECORDS_OUT,
	L4LB_SYNC_N_OVERFLOW,
	L4LB_SYNC_N_SEND_ERRORS,
	L4LB_SYNC_N_MESSAGES_IN,
	L4LB_SYNC_N_BYTES_IN,
	L4LB_SYNC_N_RECORDS_IN,
	L4LB_SYNC_N_RECEIVE_ERRORS,
	L4LB_SYNC_N_NO_SERVER,
	L4LB_SYNC_N_FULL,
	L4LB_SYNC_N_CONFLICT,
	L4LB_SYNC_N_PLACEHOLDER,
	L4LB_SYNC_N_PEER_OUT,
	L4LB_SYNC_N_PEER_ERRORS,
	L4LB_SYNC_N_PEER_IN,
	L4LB_SYNC_N_SOURCE,
	L4LB_SYNC_N_MAC,
	L4LB_SYNC_N_REPLAY,
	L4LB_SYNC_N_REPEATED,
	L4LB_SYNC_N_RATE_LIMITED,
	L4LB_SYNC_N_CONTROL,
	L4LB_SYNC_N_BULK_OUT,
	L4LB_SYNC_N_BULK_IN,
	L4LB_SYNC_N_ERROR,
	L4LB_SYNC_COUNTERS = L4LB_SYNC_N_ERROR + L4LB_SYNC_ERRORS - 1,
};

/* Counters exist from the first start of a daemon on.  Context: any. */

static inline void l4lb_sync_add(const struct l4lb_net *ln,
				 enum l4lb_sync_counter counter,
				 unsigned int n)
{
	this_cpu_add(ln->sync_counts[counter], n);
}

static inline void l4lb_sync_count(const struct l4lb_net *ln,
				   enum l4lb_sync_counter counter)
{
	l4lb_sync_add(ln, counter, 1);
}

/* @error: not %L4LB_SYNC_OK */
static inline void l4lb_sync_count_error(const struct l4lb_net *ln,
					 enum l4lb_sync_error error)
{
	l4lb_sync_add(ln, L4LB_SYNC_N_ERROR + error - 1, 1);
}

const char *l4lb_sync_counter_name(unsigned int counter);
/* The sum of all CPUs. */
u64 l4lb_sync_counter_read(const struct l4lb_net *ln, unsigned int counter);

#endif /* _L4LB_SYNC_COUNTER_H */
