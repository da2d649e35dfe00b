// SPDX-License-Identifier: GPL-2.0
/* Counters of a namespace's synchronisation, by name. */
#include "sync/counter.h"

#include "base/stats.h"

#define ERROR(error)	(L4LB_SYNC_N_ERROR + (error) - 1)

static const char *const names[] = {
	[L4LB_SYNC_N_MESSAGES_OUT]	= "sync_messages_out",
	[L4LB_SYNC_N_BYTES_OUT]		= "sync_bytes_out",
	[L4LB_SYNC_N_RECORDS_OUT]	= "sync_records_out",
	[L4LB_SYNC_N_OVERFLOW]		= "sync_overflow",
	[L4LB_SYNC_N_SEND_ERRORS]	= "sync_send_errors",
	[L4LB_SYNC_N_MESSAGES_IN]	= "sync_messages_in",
	[L4LB_SYNC_N_BYTES_IN]		= "sync_bytes_in",
	[L4LB_SYNC_N_RECORDS_IN]	= "sync_records_in",
	[L4LB_SYNC_N_RECEIVE_ERRORS]	= "sync_receive_errors",
	[L4LB_SYNC_N_NO_SERVER]		= "sync_no_server",
	[L4LB_SYNC_N_FULL]		= "sync_full",
	[L4LB_SYNC_N_CONFLICT]		= "sync_conflict",
	[L4LB_SYNC_N_PLACEHOLDER]	= "sync_placeholder",
	[L4LB_SYNC_N_PEER_OUT]		= "sync_peer_out",
	[L4LB_SYNC_N_PEER_ERRORS]	= "sync_peer_errors",
	[L4LB_SYNC_N_PEER_IN]		= "sync_peer_in",
	[L4LB_SYNC_N_SOURCE]		= "sync_source",
	[L4LB_SYNC_N_MAC]		= "sync_mac",
	[L4LB_SYNC_N_REPLAY]		= "sync_replay",
	[L4LB_SYNC_N_REPEATED]		= "sync_repeated",
	[L4LB_SYNC_N_RATE_LIMITED]	= "sync_rate_limited",
	[L4LB_SYNC_N_CONTROL]		= "sync_control",
	[L4LB_SYNC_N_BULK_OUT]		= "sync_bulk_out",
	[L4LB_SYNC_N_BULK_IN]		= "sync_bulk_in",
	[ERROR(L4LB_SYNC_SHORT)]		= "sync_short",
	[ERROR(L4LB_SYNC_SIZE)]		= "sync_size",
	[ERROR(L4LB_SYNC_ID)]		= "sync_id",
	[ERROR(L4LB_SYNC_VERSION)]	= "sync_version",
	[ERROR(L4LB_SYNC_TRAILING)]	= "sync_trailing",
	[ERROR(L4LB_SYNC_RECORD)]		= "sync_record",
	[ERROR(L4LB_SYNC_OPTION)]		= "sync_option",
	[ERROR(L4LB_SYNC_FLAGS)]		= "sync_flags",
	[ERROR(L4LB_SYNC_STATE)]		= "sync_state",
	[ERROR(L4LB_SYNC_PROTOCOL)]	= "sync_protocol",
	[ERROR(L4LB_SYNC_UNSUPPORTED)]	= "sync_unsupported",
};

static_assert(ARRAY_SIZE(names) == L4LB_SYNC_COUNTERS);

const char *l4lb_sync_counter_name(unsigned int counter)
{
	return names[counter];
}

u64 l4lb_sync_counter_read(const struct l4lb_net *ln, unsigned int counter)
{
	return l4lb_percpu_sum(ln->sync_counts, counter);
}
