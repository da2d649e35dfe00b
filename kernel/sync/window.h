/* SPDX-License-Identifier: GPL-2.0 */
/* Which messages of a stream have come. */
#ifndef _L4LB_SYNC_WINDOW_H
#define _L4LB_SYNC_WINDOW_H

#include <linux/limits.h>
#include <linux/types.h>

#define L4LB_SYNC_WINDOW	1024	/* messages */

/* Of any sequence number: no sender gets so far. */
#define L4LB_SYNC_SEQUENCE_MAX	((u64)S64_MAX)

/**
 * struct l4lb_sync_window - the newest messages of a stream
 * @base: all up to it have come, or are given up
 * @known: the newest that has been sent, as far as it is known; at most
 *	%L4LB_SYNC_WINDOW after @base
 * @came: of those after @base, by the sequence number modulo the window: set if
 *	it has come
 */
struct l4lb_sync_window {
	u64	base;
	u64	known;
	u64	came[L4LB_SYNC_WINDOW / 64];
};

enum l4lb_sync_arrival {
	L4LB_SYNC_NEW,		/* the newest */
	L4LB_SYNC_LATE,		/* it was missing */
	L4LB_SYNC_REPEATED,	/* it came before, or was given up */
};

/* Each takes a bounded time, whatever the numbers are. */

/* Nothing up to @newest is missing. */
void l4lb_sync_window_init(struct l4lb_sync_window *window, u64 newest);

/**
 * l4lb_sync_window_take() - a message arrives
 * @window: of its stream
 * @sequence: its number
 * @lost: add the number of missing messages that are given up
 *
 * Return: its kind; messages before a new one that have not come are missing.
 */
enum l4lb_sync_arrival l4lb_sync_window_take(struct l4lb_sync_window *window,
					     u64 sequence, u64 *lost);

/* Has message @sequence come, or was it given up? */
bool l4lb_sync_window_knows(const struct l4lb_sync_window *window,
			    u64 sequence);

/* @newest has been sent, so what has not come of it is missing.  Returns the
 * number of missing messages that are given up.
 */
u64 l4lb_sync_window_extend(struct l4lb_sync_window *window, u64 newest);

/* The first message from @from on, up to @last, that is missing; 0: none.  @end
 * is set to the last missing one without one between them that has come.
 */
u64 l4lb_sync_window_gap(const struct l4lb_sync_window *window, u64 from,
			 u64 last, u64 *end);

/* Missing messages before @oldest will not come.  Returns how many these are. */
u64 l4lb_sync_window_give_up(struct l4lb_sync_window *window, u64 oldest);

#endif /* _L4LB_SYNC_WINDOW_H */
