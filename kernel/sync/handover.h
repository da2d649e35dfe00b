/* SPDX-License-Identifier: GPL-2.0 */
/* Connections leave this director as messages, and come back into a later one. */
#ifndef _L4LB_SYNC_HANDOVER_H
#define _L4LB_SYNC_HANDOVER_H

#include "base/net.h"

struct l4lb_handover;

/* All may sleep. */

/* NULL: no memory. */
struct l4lb_handover *l4lb_handover_open(struct l4lb_net *ln);
void l4lb_handover_close(struct l4lb_handover *handover);

/**
 * struct l4lb_handover_message - a message of synchronisation, in version 1
 * @data: its bytes
 * @len: their number; 0: all connections were told
 * @records: connections and templates in it
 * @left_out: those before it that no message can tell
 */
struct l4lb_handover_message {
	const u8	*data;
	size_t		len;
	u32		records;
	u32		left_out;
};

/* The next message, until it is taken. */
struct l4lb_handover_message
l4lb_handover_peek(struct l4lb_handover *handover);
void l4lb_handover_take(struct l4lb_handover *handover);

/**
 * struct l4lb_handover_tally - what became of a message's records
 * @applied: the director has these connections
 * @no_server: their real server is not configured
 * @full: there was no room or memory
 * @unsupported: no director of this kind can have them
 */
struct l4lb_handover_tally {
	u32	applied;
	u32	no_server;
	u32	full;
	u32	unsupported;
};

/* Apply a message.  @ln has a connection table, and counters of synchronisation.
 * Return: 0; -EINVAL, it is damaged, and nothing was applied.
 */
int l4lb_handover_apply(struct l4lb_net *ln, const u8 *data, size_t len,
			struct l4lb_handover_tally *tally);

#endif /* _L4LB_SYNC_HANDOVER_H */
