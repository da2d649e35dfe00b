// SPDX-License-Identifier: GPL-2.0
/*
 * The window of a stream remembers its 1,024 newest messages one by one.  Older
 * ones that have not come are lost.
 */
#include "sync/window.h"

#include <linux/minmax.h>
#include <linux/string.h>

static u64 *word(struct l4lb_sync_window *window, u64 sequence)
{
	return &window->came[sequence % L4LB_SYNC_WINDOW / 64];
}

static u64 mask(u64 sequence)
{
	return 1ULL << sequence % 64;
}

static bool has_come(const struct l4lb_sync_window *window, u64 sequence)
{
	return window->came[sequence % L4LB_SYNC_WINDOW / 64] & mask(sequence);
}

void l4lb_sync_window_init(struct l4lb_sync_window *window, u64 newest)
{
	*window = (struct l4lb_sync_window){ .base = newest, .known = newest };
}

/* Behind @base there is nothing to remember. */
static void settle(struct l4lb_sync_window *window)
{
	while (window->base < window->known &&
	       has_come(window, window->base + 1))
		window->base++;
}

u64 l4lb_sync_window_give_up(struct l4lb_sync_window *window, u64 oldest)
{
	u64 lost = 0;

	oldest = min(oldest, window->known + 1);
	while (window->base + 1 < oldest) {
		window->base++;
		lost += !has_come(window, window->base);
	}
	settle(window);
	return lost;
}

u64 l4lb_sync_window_extend(struct l4lb_sync_window *window, u64 newest)
{
	u64 lost = 0, base;

	if (newest <= window->known)
		return 0;
	if (newest - window->base > L4LB_SYNC_WINDOW) {
		base = newest - L4LB_SYNC_WINDOW;
		lost = l4lb_sync_window_give_up(window, base + 1);
		/* Those that nothing was known about. */
		if (base > window->base && window->base == window->known) {
			lost += base - window->base;
			window->base = base;
			window->known = base;
		}
	}
	while (window->known < newest) {
		window->known++;
		*word(window, window->known) &= ~mask(window->known);
	}
	return lost;
}

bool l4lb_sync_window_knows(const struct l4lb_sync_window *window,
			    u64 sequence)
{
	return sequence <= window->base ||
	       (sequence <= window->known && has_come(window, sequence));
}

enum l4lb_sync_arrival l4lb_sync_window_take(struct l4lb_sync_window *window,
					     u64 sequence, u64 *lost)
{
	enum l4lb_sync_arrival kind = L4LB_SYNC_LATE;

	if (l4lb_sync_window_knows(window, sequence))
		return L4LB_SYNC_REPEATED;
	if (sequence > window->known) {
		kind = L4LB_SYNC_NEW;
		*lost += l4lb_sync_window_extend(window, sequence);
	}
	*word(window, sequence) |= mask(sequence);
	settle(window);
	return kind;
}

u64 l4lb_sync_window_gap(const struct l4lb_sync_window *window, u64 from,
			 u64 last, u64 *end)
{
	u64 first = max(from, window->base + 1);

	last = min(last, window->known);
	while (first <= last && has_come(window, first))
		first++;
	if (first > last)
		return 0;
	*end = first;
	while (*end < last && !has_come(window, *end + 1))
		++*end;
	return first;
}
