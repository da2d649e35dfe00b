// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that has just been heard, or of which messages were lost, is asked for
 * all its connections:
 *
 *	here	RESYNC, with a random number	->	there
 *		<-	BULK_BEGIN, records, BULK_END with their number
 *
 * Any of these may be lost.  The same question again makes the peer repeat
 * BULK_BEGIN or BULK_END; only another number makes it begin anew.  If records are
 * missing at the end, the two sides are compared (verify.c), and what differs is
 * sent again: messages of a resync are not kept for NACKs.
 */
#include "sync/join.h"

#include <linux/random.h>

#include "sync/counter.h"
#include "sync/hello.h"
#include "sync/outlet.h"
#include "sync/verify.h"

#define SILENT	(3 * HZ / 2)	/* ask the same again */

void l4lb_sync_join_reset(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_join *join = peer->join;

	lockdep_assert_held(&peer->peers->state);
	*join = (struct l4lb_sync_join){ .due = true, .n = join->n };
	l4lb_sync_tick_soon(peer->peers);
}

void l4lb_sync_join_ask(struct l4lb_sync_peer *peer)
{
	lockdep_assert_held(&peer->peers->state);
	if (peer->join->asked)
		return;
	peer->join->done = false;
	peer->join->due = true;
	l4lb_sync_tick_soon(peer->peers);
}

void l4lb_sync_join_lost(struct l4lb_sync_peer *peer)
{
	lockdep_assert_held(&peer->peers->state);
	peer->join->done = false;
	peer->join->due = true;
}

void l4lb_sync_join_records(struct l4lb_sync_peer *peer, unsigned int n)
{
	struct l4lb_sync_join *join = peer->join;

	lockdep_assert_held(&peer->peers->state);
	if (!join->began)
		return;
	join->came += n;
	join->heard = jiffies;
}

void l4lb_sync_join_equal(struct l4lb_sync_peer *peer)
{
	lockdep_assert_held(&peer->peers->state);
	if (!peer->join->asked && !peer->join->due)
		peer->join->done = true;
}

/* ---- asking ---- */

static bool is_to_ask(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_join *join = peer->join;

	lockdep_assert_held(&peer->peers->state);
	if (!l4lb_sync_peer_present(peer))
		return false;
	if (join->asked)
		return time_after_eq(jiffies, join->heard + SILENT);
	if (!join->due)
		return false;
	join->due = false;
	join->asked = true;
	join->began = false;
	join->came = 0;
	join->expected = 0;
	get_random_bytes(&join->nonce, sizeof(join->nonce));
	return true;
}

void l4lb_sync_join_tick(struct l4lb_sync_peer *peer)
{
	u8 data[L4LB_SYNC_CONTROL_MAX];
	size_t len = 0;

	spin_lock(&peer->peers->state);
	if (is_to_ask(peer)) {
		peer->join->heard = jiffies;
		len = l4lb_sync_nonce_put(data + L4LB_SYNC_BODY_AT,
					  peer->join->nonce);
	}
	spin_unlock(&peer->peers->state);
	if (len)
		l4lb_sync_peer_send(peer, L4LB_SYNC_RESYNC, data, len);
}

/* ---- answers ---- */

/* Does an answer belong to the present question? */
static bool is_answer(struct l4lb_sync_peer *peer, u64 nonce)
{
	lockdep_assert_held(&peer->peers->state);
	if (!peer->join->asked || nonce != peer->join->nonce)
		return false;
	peer->join->heard = jiffies;
	return true;
}

static void ended(struct l4lb_sync_peer *peer, u32 records)
{
	struct l4lb_sync_join *join = peer->join;

	join->asked = false;
	join->began = false;
	join->expected = records;
	join->n++;
	if (join->came >= records)
		l4lb_sync_join_equal(peer);
	else
		l4lb_sync_verify_due(peer);
}

static bool read(const struct l4lb_sync_peer *peer, const u8 *body, size_t len,
		 u64 *nonce, u32 *records)
{
	bool valid = l4lb_sync_bulk_read(body, len, nonce, records);

	if (!valid)
		l4lb_sync_count(peer->peers->ln, L4LB_SYNC_N_CONTROL);
	return valid;
}

void l4lb_sync_bulk_begin_take(struct l4lb_sync_peer *peer, const u8 *body,
			       size_t len)
{
	u32 records;
	u64 nonce;

	if (!read(peer, body, len, &nonce, &records))
		return;
	spin_lock(&peer->peers->state);
	if (is_answer(peer, nonce) && !peer->join->began) {
		peer->join->began = true;
		peer->join->expected = records;
	}
	spin_unlock(&peer->peers->state);
}

void l4lb_sync_bulk_end_take(struct l4lb_sync_peer *peer, const u8 *body,
			     size_t len)
{
	u32 records;
	u64 nonce;

	if (!read(peer, body, len, &nonce, &records))
		return;
	spin_lock(&peer->peers->state);
	if (is_answer(peer, nonce))
		ended(peer, records);
	else
		l4lb_sync_verify_end(peer, nonce, records);
	spin_unlock(&peer->peers->state);
}
