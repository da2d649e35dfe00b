// SPDX-License-Identifier: GPL-2.0
/*
 * Senders, peers or not.  A signed group has at most 16 senders that are no
 * peers: another one takes the place of one that is silent for a minute.
 */
#include "sync/source.h"

#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "sync/peer.h"

#define SILENT		(60 * HZ)	/* it may be replaced */
#define REMEMBERED	(24 * 60 * 60)	/* seconds */

void l4lb_sync_source_init(struct l4lb_sync_source *source, u64 sender)
{
	memset(source, 0, sizeof(*source));
	source->sender = sender;
	source->heard = jiffies;
}

void l4lb_sync_source_changed(struct l4lb_sync_source *source,
			      unsigned int stream)
{
	const struct l4lb_sync_window *window = &source->streams[stream];

	if (window->base < window->known)
		source->gaps |= BIT_ULL(stream);
	else
		source->gaps &= ~BIT_ULL(stream);
}

/* The first message of a stream that was not known says nothing about those
 * before it.
 */
static void begin(struct l4lb_sync_window *window, u64 sequence)
{
	if (!window->known)
		l4lb_sync_window_init(window, sequence - 1);
}

static const struct l4lb_sync_window *
window_of(const struct l4lb_sync_source *source,
	  const struct l4lb_sync_trailer *trailer)
{
	return trailer->stream == L4LB_SYNC_STREAM_OTHER ? &source->control :
	       &source->streams[trailer->stream];
}

bool l4lb_sync_source_knows(const struct l4lb_sync_source *source,
			    const struct l4lb_sync_trailer *trailer)
{
	return l4lb_sync_window_knows(window_of(source, trailer),
				      trailer->sequence);
}

bool l4lb_sync_source_far(const struct l4lb_sync_source *source,
			  const struct l4lb_sync_trailer *trailer)
{
	const struct l4lb_sync_window *window = window_of(source, trailer);

	return trailer->sequence > window->known &&
	       trailer->sequence - window->known > L4LB_SYNC_WINDOW;
}

enum l4lb_sync_arrival
l4lb_sync_source_take(struct l4lb_sync_source *source,
		      const struct l4lb_sync_trailer *trailer, u64 *lost)
{
	bool other = trailer->stream == L4LB_SYNC_STREAM_OTHER;
	struct l4lb_sync_window *window;
	enum l4lb_sync_arrival kind;
	u64 ignored = 0;

	window = other ? &source->control : &source->streams[trailer->stream];
	if (other)
		begin(window, trailer->sequence);
	kind = l4lb_sync_window_take(window, trailer->sequence,
				     other ? &ignored : lost);
	if (!other)
		l4lb_sync_source_changed(source, trailer->stream);
	return kind;
}

/* ---- replaced ones ---- */

void l4lb_sync_retire(struct l4lb_sync_peers *peers, u64 sender)
{
	unsigned int at = peers->n_retired++ % L4LB_SYNC_RETIRED;

	lockdep_assert_held(&peers->state);
	peers->retired[at].sender = sender;
	peers->retired[at].since = ktime_get_boottime_seconds();
}

bool l4lb_sync_is_retired(const struct l4lb_sync_peers *peers, u64 sender)
{
	u64 now = ktime_get_boottime_seconds();
	unsigned int i;

	lockdep_assert_held(&peers->state);
	for (i = 0; i < L4LB_SYNC_RETIRED; i++)
		if (peers->retired[i].sender == sender &&
		    now - peers->retired[i].since < REMEMBERED)
			return true;
	return false;
}

/* ---- strangers ---- */

/* A free place, or that of a silent one; NULL: there is none. */
static struct l4lb_sync_source **place(struct l4lb_sync_peers *peers)
{
	unsigned int i;

	for (i = 0; i < L4LB_SYNC_STRANGERS; i++)
		if (!peers->stranger[i])
			return &peers->stranger[i];
	for (i = 0; i < L4LB_SYNC_STRANGERS; i++)
		if (time_after(jiffies, peers->stranger[i]->heard + SILENT))
			return &peers->stranger[i];
	return NULL;
}

static struct l4lb_sync_source *welcome(struct l4lb_sync_peers *peers,
					const struct l4lb_sync_trailer *trailer)
{
	struct l4lb_sync_source **source = place(peers);

	if (!source)
		return NULL;
	if (*source)
		l4lb_sync_retire(peers, (*source)->sender);
	else
		*source = kmalloc(sizeof(**source), GFP_ATOMIC | __GFP_NOWARN);
	if (*source)
		l4lb_sync_source_init(*source, trailer->sender);
	return *source;
}

/* The first message of each of its streams begins the window. */
struct l4lb_sync_source *
l4lb_sync_stranger(struct l4lb_sync_peers *peers,
		   const struct l4lb_sync_trailer *trailer)
{
	struct l4lb_sync_source *source;
	unsigned int i;

	lockdep_assert_held(&peers->state);
	for (i = 0; i < L4LB_SYNC_STRANGERS; i++) {
		source = peers->stranger[i];
		if (source && source->sender == trailer->sender)
			goto found;
	}
	if (l4lb_sync_is_retired(peers, trailer->sender))
		return NULL;
	source = welcome(peers, trailer);
	if (!source)
		return NULL;
found:
	if (trailer->stream < L4LB_SYNC_STREAMS)
		begin(&source->streams[trailer->stream], trailer->sequence);
	return source;
}

void l4lb_sync_stranger_forget(struct l4lb_sync_peers *peers, u64 sender)
{
	unsigned int i;

	lockdep_assert_held(&peers->state);
	for (i = 0; i < L4LB_SYNC_STRANGERS; i++)
		if (peers->stranger[i] &&
		    peers->stranger[i]->sender == sender) {
			kfree(peers->stranger[i]);
			peers->stranger[i] = NULL;
		}
}
