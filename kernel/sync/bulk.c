// SPDX-License-Identifier: GPL-2.0
/*
 * The connections are walked for a peer.  Whatever changes meanwhile is announced
 * as usual, and overtakes: a record of a walk changes nothing that was seen later
 * (apply.c), and it leaves at once after it was written.
 *
 * Messages of the peer order a walk under @peers->state; only the walker
 * (walker.c) walks, with @peers->lock held, which keeps the peer.
 */
#include "sync/bulk.h"

#include <linux/bitmap.h>
#include <linux/slab.h>

#include "sync/counter.h"
#include "sync/digest.h"
#include "sync/hello.h"
#include "sync/outlet.h"
#include "sync/send.h"
#include "sync/tour.h"
#include "sync/walker.h"
#include "sync/wire_write.h"

enum {
	MESSAGE_MAX	= 1388,	/* fits an MTU of 1,500 with all else */
	VISITS_PER_RECORD = 16,	/* that cost as much */
	VISITS_MAX	= 512,	/* between two breaks */
};

/**
 * struct l4lb_sync_bulk - what is sent to a peer
 * @start: begin a walk
 * @stop: end the present one
 * @repeat: tell again where it is
 * @running: there is a walk
 * @all: it is of all connections; otherwise of @slices
 * @begun: jiffies of the last walk of all; valid if @was_begun
 * @was_begun: there was one
 * @wanted: number of the last request
 * @finished: number of the last request that was fulfilled
 * @n_finished: records that it took
 * @key: of @slices
 * @slices: bit for each slice
 * @n: records of the walk
 * @tour: the walk
 * @nonce: number of its request
 * @buf: message that is being written
 * @data: its bytes
 *
 * Up to @n protected by @peers->state; the rest is the walker's.
 */
struct l4lb_sync_bulk {
	bool			start;
	bool			stop;
	bool			repeat;
	bool			running;
	bool			all;
	bool			was_begun;
	unsigned long		begun;
	u64			wanted;
	u64			finished;
	u32			n_finished;
	siphash_key_t		key;
	DECLARE_BITMAP(slices, L4LB_DIGEST_SLICES);
	u32			n;

	struct l4lb_sync_tour	tour;
	u64			nonce;
	struct l4lb_sync_buffer	buf;
	u8			data[MESSAGE_MAX + L4LB_SYNC_TRAILER];
};

struct l4lb_sync_bulk *l4lb_sync_bulk_new(void)
{
	return kvzalloc(sizeof(struct l4lb_sync_bulk), GFP_KERNEL);
}

void l4lb_sync_bulk_free(struct l4lb_sync_bulk *bulk)
{
	if (!bulk)
		return;
	l4lb_sync_tour_end(&bulk->tour);
	kvfree(bulk);
}

/* ---- orders ---- */

/* Returns false if the peer asks too often. */
static bool order(struct l4lb_sync_peer *peer, u64 nonce)
{
	struct l4lb_sync_bulk *bulk = peer->bulk;

	lockdep_assert_held(&peer->peers->state);
	if (bulk->was_begun &&
	    (nonce == bulk->finished ||
	     (nonce == bulk->wanted && (bulk->start || bulk->running)))) {
		bulk->repeat = true;
		return true;
	}
	if (bulk->was_begun && time_before(jiffies, bulk->begun + HZ))
		return false;
	bulk->was_begun = true;
	bulk->begun = jiffies;
	bulk->wanted = nonce;
	bulk->start = true;
	bulk->all = true;
	return true;
}

void l4lb_sync_resync_take(struct l4lb_sync_peer *peer, const u8 *body,
			   size_t len)
{
	struct l4lb_sync_peers *peers = peer->peers;
	bool taken;
	u64 nonce;

	if (!l4lb_sync_nonce_read(body, len, &nonce)) {
		l4lb_sync_count(peers->ln, L4LB_SYNC_N_CONTROL);
		return;
	}
	spin_lock(&peers->state);
	taken = order(peer, nonce);
	spin_unlock(&peers->state);
	if (taken)
		l4lb_sync_walker_wake(peers);
	else
		l4lb_sync_count(peers->ln, L4LB_SYNC_N_RATE_LIMITED);
}

void l4lb_sync_bulk_slices(struct l4lb_sync_peer *peer, u64 nonce,
			   const siphash_key_t *key,
			   const unsigned long *slices)
{
	struct l4lb_sync_bulk *bulk = peer->bulk;

	lockdep_assert_held(&peer->peers->state);
	if (bulk->running || (bulk->start && bulk->all))
		return;
	bitmap_copy(bulk->slices, slices, L4LB_DIGEST_SLICES);
	bulk->start = true;
	bulk->all = false;
	bulk->key = *key;
	bulk->wanted = nonce;
	l4lb_sync_walker_wake(peer->peers);
}

void l4lb_sync_bulk_stop(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_bulk *bulk = peer->bulk;

	lockdep_assert_held(&peer->peers->state);
	bulk->start = false;
	bulk->repeat = false;
	bulk->stop = true;
	bulk->was_begun = false;
}

bool l4lb_sync_bulk_busy(const struct l4lb_sync_peer *peer)
{
	lockdep_assert_held(&peer->peers->state);
	return peer->bulk->start || peer->bulk->repeat || peer->bulk->running;
}

u32 l4lb_sync_bulk_sent(const struct l4lb_sync_peer *peer)
{
	lockdep_assert_held(&peer->peers->state);
	return peer->bulk->n;
}

/* ---- messages ---- */

static void tell(struct l4lb_sync_peer *peer, enum l4lb_sync_control_type type,
		 u64 nonce, u32 records)
{
	u8 data[L4LB_SYNC_CONTROL_MAX];
	size_t len = l4lb_sync_bulk_put(data + L4LB_SYNC_BODY_AT, nonce,
					records);

	l4lb_sync_peer_send(peer, type, data, len);
}

static void begin_message(struct l4lb_sync_bulk *bulk)
{
	bulk->buf = (struct l4lb_sync_buffer){
		.data = bulk->data,
		.size = MESSAGE_MAX,
	};
	l4lb_sync_begin(&bulk->buf, 1, 0);
}

/* False: the socket has no room now. */
static bool flush(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_bulk *bulk = peer->bulk;
	size_t len;

	if (!bulk->buf.n)
		return true;
	len = l4lb_sync_finish(&bulk->buf);
	if (l4lb_sync_peer_send_bulk(peer, bulk->data, len) == -EAGAIN)
		return false;
	l4lb_sync_add(peer->peers->ln, L4LB_SYNC_N_BULK_OUT, bulk->buf.n);
	begin_message(bulk);
	return true;
}

/* ---- walking ---- */

static bool is_asked_for(const struct l4lb_sync_bulk *bulk,
			 const struct l4lb_conn *conn)
{
	return bulk->all ||
	       test_bit(l4lb_sync_digest_hash(&bulk->key, conn) %
			L4LB_DIGEST_SLICES, bulk->slices);
}

/* Writes up to @n records, at least 1, as long as the message has room. */
static void fill(struct l4lb_sync_bulk *bulk, unsigned int *n)
{
	unsigned int visits = VISITS_MAX, cost;
	struct l4lb_sync_record record = { };
	struct l4lb_conn *conn;

	l4lb_conn_walk_start(bulk->tour.walk);
	while (*n) {
		conn = l4lb_sync_tour_next(&bulk->tour, &visits);
		if (!conn)
			break;
		if (!is_asked_for(bulk, conn) ||
		    !l4lb_sync_describe(conn, bulk->all ? L4LB_SYNC_WORTH :
							  L4LB_SYNC_ALSO_OVER,
					&record))
			continue;
		if (!l4lb_sync_append(&bulk->buf, &record)) {
			l4lb_conn_walk_back(bulk->tour.walk);
			break;
		}
		WRITE_ONCE(bulk->n, bulk->n + 1);
		--*n;
	}
	l4lb_conn_walk_stop(bulk->tour.walk);
	cost = (VISITS_MAX - visits) / VISITS_PER_RECORD;
	*n -= min(*n, cost);
}

static void begin(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_bulk *bulk = peer->bulk;

	begin_message(bulk);
	l4lb_sync_tour_begin(&bulk->tour, peer->peers->ln);
	if (bulk->tour.walk && bulk->all)
		tell(peer, L4LB_SYNC_BULK_BEGIN, bulk->nonce,
		     l4lb_conn_walk_total(bulk->tour.walk));
}

/* All were walked, or there was no memory: then the peer asks again. */
static void finish(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_bulk *bulk = peer->bulk;
	bool over = bulk->tour.over;

	l4lb_sync_tour_end(&bulk->tour);
	spin_lock(&peer->peers->state);
	bulk->running = false;
	if (over && bulk->all) {
		bulk->finished = bulk->nonce;
		bulk->n_finished = bulk->n;
	}
	spin_unlock(&peer->peers->state);
	if (over)
		tell(peer, L4LB_SYNC_BULK_END, bulk->nonce, bulk->n);
}

/* Takes orders.  Returns whether the peer is there. */
static bool obey(struct l4lb_sync_peer *peer, bool *start, bool *repeat)
{
	struct l4lb_sync_bulk *bulk = peer->bulk;
	bool present;

	spin_lock(&peer->peers->state);
	present = l4lb_sync_peer_present(peer);
	*start = present && bulk->start;
	*repeat = present && bulk->repeat && !*start;
	if (bulk->stop || *start || !present) {
		l4lb_sync_tour_end(&bulk->tour);
		bulk->running = *start;
	}
	if (*start) {
		bulk->n = 0;
		bulk->nonce = bulk->wanted;
	}
	if (*start || !present)
		bulk->start = false;
	bulk->stop = false;
	bulk->repeat = false;
	spin_unlock(&peer->peers->state);
	return present;
}

static void answer(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_bulk *bulk = peer->bulk;

	if (bulk->tour.walk && bulk->all)
		tell(peer, L4LB_SYNC_BULK_BEGIN, bulk->nonce,
		     l4lb_conn_walk_total(bulk->tour.walk));
	else
		tell(peer, L4LB_SYNC_BULK_END, bulk->finished,
		     bulk->n_finished);
}

unsigned int l4lb_sync_bulk_run(struct l4lb_sync_peer *peer, unsigned int n)
{
	struct l4lb_sync_bulk *bulk = peer->bulk;
	unsigned int before = n;
	bool start, repeat;

	if (!obey(peer, &start, &repeat))
		return 0;
	if (start)
		begin(peer);
	if (repeat)
		answer(peer);
	/* A message may be left from the last time. */
	while (READ_ONCE(bulk->running) && flush(peer)) {
		if (!bulk->tour.walk || bulk->tour.over)
			finish(peer);
		else if (n)
			fill(bulk, &n);
		else
			break;
		cond_resched();
	}
	return before - n;
}
