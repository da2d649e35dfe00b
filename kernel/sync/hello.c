// SPDX-License-Identifier: GPL-2.0
/*
 * Each second a peer gets a HELLO: what was sent, what of it is kept, and random
 * numbers that prove to each side that the other is there now.
 */
#include "sync/hello.h"

#include <linux/random.h>

#include "sync/bulk.h"
#include "sync/counter.h"
#include "sync/join.h"
#include "sync/nack.h"
#include "sync/outlet.h"
#include "sync/source.h"
#include "sync/verify.h"

#define HELLO_PERIOD	HZ
#define ABSENT		(3 * HZ)
#define GAP_PERIOD	msecs_to_jiffies(50)

enum {
	HELLO_RATE	= 20,	/* that are looked at, per second and peer */
};

/* ---- state ---- */

bool l4lb_sync_peer_present(const struct l4lb_sync_peer *peer)
{
	lockdep_assert_held(&peer->peers->state);
	return peer->was_heard &&
	       time_before(jiffies, peer->source.heard + ABSENT);
}

enum l4lb_peer_state l4lb_sync_peer_state(const struct l4lb_sync_peer *peer)
{
	if (!l4lb_sync_peer_present(peer))
		return L4LB_PEER_ABSENT;
	return peer->join->done && !peer->source.gaps ? L4LB_PEER_IN_STEP :
							L4LB_PEER_JOINING;
}

void l4lb_sync_peer_lost(struct l4lb_sync_peer *peer, u64 n)
{
	lockdep_assert_held(&peer->peers->state);
	if (!n)
		return;
	peer->n_lost += n;
	l4lb_sync_join_lost(peer);
}

/* ---- sending ---- */

void l4lb_sync_hello_send(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_peers *peers = peer->peers;
	struct l4lb_sync_hello hello = { .n = peers->n_streams };
	u8 data[L4LB_SYNC_CONTROL_MAX], *body = data + L4LB_SYNC_BODY_AT;
	struct l4lb_sync_ring *ring;
	unsigned int i;
	size_t len;

	lockdep_assert_held(&peers->lock);
	for (i = 0; i < hello.n; i++) {
		ring = &peers->rings[i];
		mutex_lock(&ring->lock);
		l4lb_sync_hello_put(body, i, ring->newest, ring->oldest);
		mutex_unlock(&ring->lock);
	}
	hello.generation = READ_ONCE(peers->ln->generation);
	spin_lock(&peers->state);
	hello.nonce = peer->nonce;
	hello.echo = peer->echo;
	hello.state = l4lb_sync_peer_state(peer);
	spin_unlock(&peers->state);
	len = l4lb_sync_hello_write(body, &hello);
	l4lb_sync_peer_send(peer, L4LB_SYNC_HELLO, data, len);
}

/* ---- receiving ---- */

/* A forged message of a group without a key has moved the window: what came since
 * was taken for repeated.
 */
static bool is_beyond(const struct l4lb_sync_window *window, u64 newest)
{
	return window->base > newest &&
	       window->base - newest > L4LB_SYNC_WINDOW;
}

/* What the peer has sent is known now; what it does not keep will not come. */
static void update(struct l4lb_sync_peer *peer,
		   const struct l4lb_sync_hello *hello, const u8 *body)
{
	struct l4lb_sync_source *source = &peer->source;
	u64 newest, oldest, lost = 0;
	unsigned int i;

	for (i = 0; i < hello->n; i++) {
		l4lb_sync_hello_stream(body, i, &newest, &oldest);
		if (is_beyond(&source->streams[i], newest)) {
			l4lb_sync_window_init(&source->streams[i], newest);
			lost++;
		}
		lost += l4lb_sync_window_give_up(&source->streams[i], oldest);
		lost += l4lb_sync_window_extend(&source->streams[i], newest);
		l4lb_sync_source_changed(source, i);
	}
	l4lb_sync_peer_lost(peer, lost);
	if (source->gaps)
		l4lb_sync_tick_soon(peer->peers);
}

/* A sender that is there now: its numbers begin where it says. */
static void adopt(struct l4lb_sync_peer *peer, u64 sender,
		  const struct l4lb_sync_hello *hello, const u8 *body)
{
	struct l4lb_sync_source *source = &peer->source;
	u64 newest, oldest;
	unsigned int i;

	if (source->sender && source->sender != sender)
		l4lb_sync_retire(peer->peers, source->sender);
	l4lb_sync_stranger_forget(peer->peers, sender);
	l4lb_sync_source_init(source, sender);
	for (i = 0; i < hello->n; i++) {
		l4lb_sync_hello_stream(body, i, &newest, &oldest);
		l4lb_sync_window_init(&source->streams[i], newest);
	}
	memset(peer->due, 0, sizeof(peer->due));
	memset(peer->counted, 0, sizeof(peer->counted));
	l4lb_sync_join_reset(peer);
	l4lb_sync_bulk_stop(peer);
	l4lb_sync_verify_reset(peer);
}

/* A number is used up by the HELLO that has it: nothing recorded has the next. */
static void renew(struct l4lb_sync_peer *peer)
{
	get_random_bytes(&peer->nonce, sizeof(peer->nonce));
}

/* Is it the sender's next one, or does it answer ours?  Others have a bucket of
 * their own: nobody can keep new ones out with recorded ones.
 */
static bool is_slow_enough(struct l4lb_sync_peer *peer,
			   const struct l4lb_sync_trailer *trailer,
			   const struct l4lb_sync_hello *hello)
{
	const struct l4lb_sync_source *source = &peer->source;
	bool proven = hello->echo == peer->nonce ||
		      (trailer->sender == source->sender &&
		       !l4lb_sync_source_knows(source, trailer));

	return l4lb_sync_bucket_take(proven ? &peer->hellos_in :
				     &peer->unproven_in, HELLO_RATE, 1);
}

/* Returns the counter of a HELLO that is not believed.  @answer: the sender waits
 * for ours, with its number.
 */
static enum l4lb_sync_counter
believe(struct l4lb_sync_peer *peer, const struct l4lb_sync_trailer *trailer,
	const struct l4lb_sync_hello *hello, const u8 *body, bool *answer)
{
	struct l4lb_sync_source *source = &peer->source;
	u64 ignored = 0;

	lockdep_assert_held(&peer->peers->state);
	*answer = false;
	if (!is_slow_enough(peer, trailer, hello))
		return L4LB_SYNC_N_RATE_LIMITED;
	if (l4lb_sync_is_retired(peer->peers, trailer->sender))
		return L4LB_SYNC_N_REPLAY;
	peer->echo = hello->nonce;
	if (trailer->sender == source->sender &&
	    l4lb_sync_source_take(source, trailer, &ignored) !=
	    L4LB_SYNC_REPEATED) {
		update(peer, hello, body);
	} else if (hello->echo == peer->nonce) {
		adopt(peer, trailer->sender, hello, body);
		l4lb_sync_source_take(source, trailer, &ignored);
		*answer = true;
	} else {
		*answer = true;
		return L4LB_SYNC_N_REPLAY;
	}
	if (hello->echo == peer->nonce)
		renew(peer);
	source->heard = jiffies;
	peer->was_heard = true;
	return L4LB_SYNC_COUNTERS;
}

void l4lb_sync_hello_take(struct l4lb_sync_peer *peer,
			  const struct l4lb_sync_trailer *trailer,
			  const u8 *body, size_t len)
{
	struct l4lb_sync_peers *peers = peer->peers;
	enum l4lb_sync_counter why;
	struct l4lb_sync_hello hello;
	bool answer;

	if (!l4lb_sync_hello_read(&hello, body, len)) {
		l4lb_sync_count(peers->ln, L4LB_SYNC_N_CONTROL);
		return;
	}
	spin_lock(&peers->state);
	why = believe(peer, trailer, &hello, body, &answer);
	spin_unlock(&peers->state);
	if (why != L4LB_SYNC_COUNTERS)
		l4lb_sync_count(peers->ln, why);
	if (answer)
		l4lb_sync_hello_send(peer);
}

/* ---- each second ---- */

void l4lb_sync_tick_soon(struct l4lb_sync_peers *peers)
{
	unsigned long due = READ_ONCE(peers->tick.timer.expires);

	if (time_after(due, jiffies + GAP_PERIOD))
		mod_delayed_work(l4lb_wq, &peers->tick, GAP_PERIOD);
}

static void (*state_changed)(struct l4lb_sync_peer *peer);

void l4lb_sync_hello_listen(void (*changed)(struct l4lb_sync_peer *peer))
{
	state_changed = changed;
}

static void tell_state(struct l4lb_sync_peer *peer)
{
	enum l4lb_peer_state state;
	bool changed;

	spin_lock(&peer->peers->state);
	state = l4lb_sync_peer_state(peer);
	changed = state != peer->told;
	peer->told = state;
	spin_unlock(&peer->peers->state);
	if (changed)
		state_changed(peer);
}

/* Returns whether something is missing. */
static bool look_at(struct l4lb_sync_peer *peer, bool hello)
{
	if (hello) {
		l4lb_sync_hello_send(peer);
		tell_state(peer);
	}
	l4lb_sync_join_tick(peer);
	l4lb_sync_verify_tick(peer);
	return l4lb_sync_nack_send(peer);
}

/* Of the next tick: the next HELLO is not late, whatever comes between. */
static unsigned long delay(const struct l4lb_sync_peers *peers, bool gaps)
{
	unsigned long due = peers->hello + HELLO_PERIOD;
	unsigned long left = time_after(due, jiffies) ? due - jiffies : 0;

	return gaps ? min(left, GAP_PERIOD) : left;
}

void l4lb_sync_tick(struct work_struct *work)
{
	struct l4lb_sync_peers *peers = container_of(to_delayed_work(work),
						     struct l4lb_sync_peers,
						     tick);
	bool gaps = false, hello;
	unsigned int i;

	down_read(&peers->lock);
	hello = time_after_eq(jiffies, peers->hello + HELLO_PERIOD);
	if (hello)
		peers->hello = jiffies;
	for (i = 0; i < peers->n; i++)
		gaps |= look_at(peers->peer[i], hello);
	if (peers->n)
		mod_delayed_work(l4lb_wq, &peers->tick, delay(peers, gaps));
	up_read(&peers->lock);
}
