/* SPDX-License-Identifier: GPL-2.0 */
/* Senders of messages: which numbers came, and who was replaced. */
#ifndef _L4LB_SYNC_SOURCE_H
#define _L4LB_SYNC_SOURCE_H

#include "sync/trailer.h"

struct l4lb_sync_peers;

enum {
	L4LB_SYNC_RETIRED	= 64,	/* senders that are remembered */
	L4LB_SYNC_STRANGERS	= 16,	/* senders that are no peers */
};

/**
 * struct l4lb_sync_source - messages of a sender
 * @sender: its number; 0: not known yet
 * @heard: jiffies of its last message
 * @control: of control messages and resyncs
 * @streams: of its threads
 * @gaps: bit for each of @streams from which something is missing
 */
struct l4lb_sync_source {
	u64			sender;
	unsigned long		heard;
	struct l4lb_sync_window	control;
	struct l4lb_sync_window	streams[L4LB_SYNC_STREAMS];
	u64			gaps;
};

/* All: @peers->state held. */

void l4lb_sync_source_init(struct l4lb_sync_source *source, u64 sender);

/* Has a message with this number come, or was it given up? */
bool l4lb_sync_source_knows(const struct l4lb_sync_source *source,
			    const struct l4lb_sync_trailer *trailer);
/* Would it move its window by more than the window's size? */
bool l4lb_sync_source_far(const struct l4lb_sync_source *source,
			  const struct l4lb_sync_trailer *trailer);

/* A message of the source: its kind.  @lost: as in l4lb_sync_window_take(). */
enum l4lb_sync_arrival
l4lb_sync_source_take(struct l4lb_sync_source *source,
		      const struct l4lb_sync_trailer *trailer, u64 *lost);
/* The window of @stream has changed. */
void l4lb_sync_source_changed(struct l4lb_sync_source *source,
			      unsigned int stream);

/* The sender of a signed message that is no peer; NULL: it was replaced, or there
 * is no room.
 */
struct l4lb_sync_source *
l4lb_sync_stranger(struct l4lb_sync_peers *peers,
		   const struct l4lb_sync_trailer *trailer);
/* It has become a peer. */
void l4lb_sync_stranger_forget(struct l4lb_sync_peers *peers, u64 sender);

/* @sender is not believed again for 24 hours, or as long as it is one of the last
 * 64.
 */
void l4lb_sync_retire(struct l4lb_sync_peers *peers, u64 sender);
bool l4lb_sync_is_retired(const struct l4lb_sync_peers *peers, u64 sender);

#endif /* _L4LB_SYNC_SOURCE_H */
