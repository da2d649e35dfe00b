// SPDX-License-Identifier: GPL-2.0
/*
 * What two directors have is compared by sums (digest.c), and what differs is sent
 * again:
 *
 *	here	DIGEST_ASK, with a random number	->	there
 *		<-	DIGEST, several messages with all sums
 *	here	SLICES, those that differ		->	there
 *		<-	their connections, BULK_END with their number
 *
 * The same question again makes the peer repeat its sums, some of which may have
 * been lost; if something else was, the next comparison finds the same.  A peer
 * that never answers is asked less and less often.
 * Connections that came or went between the two walks differ, too; sending them
 * again does no harm.
 */
#include "sync/verify.h"

#include <linux/bitmap.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "sync/bulk.h"
#include "sync/counter.h"
#include "sync/digest.h"
#include "sync/hello.h"
#include "sync/join.h"
#include "sync/outlet.h"
#include "sync/walker.h"

#define PERIOD	(5 * HZ)	/* at least, between two comparisons */
#define MINIMUM	(4 * HZ)	/* likewise, for a peer that asks */
#define SILENT	(10 * HZ)	/* a comparison or a repair is given up */
#define AGAIN	HZ		/* the same question is asked again */
#define PARTS	(L4LB_DIGEST_SLICES / L4LB_SYNC_SUMS_MAX)

static_assert(PARTS == 32);

enum {
	REPEATS	= 3,	/* answers to the same question, after the first */
	DOUBLINGS = 4,	/* of @PERIOD, after as many failures */
	/* Connections a second, at least, that a peer looks at three times. */
	PEER_SPEED = 50000,
};

/**
 * enum verify_step - what goes on
 * @IDLE: nothing
 * @COUNT: the peer was asked; the sums here are not complete
 * @WAIT: they are, the peer's are not
 * @REPAIR: the peer sends what differs
 */
enum verify_step {
	IDLE,
	COUNT,
	WAIT,
	REPAIR,
};

/**
 * struct l4lb_sync_verify - comparisons with a peer
 * @due: compare
 * @step: what goes on
 * @was_asked: @asked is valid
 * @failures: comparisons and repairs in a row that were given up
 * @asked: jiffies when the last one began
 * @said: jiffies when its question was last sent
 * @heard: jiffies when something of it last happened
 * @nonce: its number
 * @parts: bit for each message of @theirs that has come
 * @came: records of the repair
 * @last: result
 * @was_answered: @answered is valid
 * @answered: jiffies of the last question of the peer
 * @answer: it is to be answered
 * @repeats: how often it may still come again
 * @their_nonce: its number
 * @theirs: sums of the peer
 * @mine: sums of this director, for itself
 * @reply: the same for the peer
 *
 * Protected by @peers->state, but for the last two, which are the walker's.
 */
struct l4lb_sync_verify {
	bool				due;
	u8				step;
	bool				was_asked;
	u8				failures;
	unsigned long			asked;
	unsigned long			said;
	unsigned long			heard;
	u64				nonce;
	u32				parts;
	u32				came;
	struct l4lb_sync_verified	last;
	bool				was_answered;
	unsigned long			answered;
	bool				answer;
	u8				repeats;
	u64				their_nonce;
	u64				theirs[L4LB_DIGEST_SLICES];
	struct l4lb_sync_digest		mine;
	struct l4lb_sync_digest		reply;
};

struct l4lb_sync_verify *l4lb_sync_verify_new(void)
{
	return kvzalloc(sizeof(struct l4lb_sync_verify), GFP_KERNEL);
}

void l4lb_sync_verify_free(struct l4lb_sync_verify *verify)
{
	if (!verify)
		return;
	l4lb_sync_digest_end(&verify->mine);
	l4lb_sync_digest_end(&verify->reply);
	kvfree(verify);
}

void l4lb_sync_verify_due(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_verify *verify = peer->verify;

	lockdep_assert_held(&peer->peers->state);
	/* Its result would be of connections as they were before. */
	if (verify->step == COUNT || verify->step == WAIT)
		verify->step = IDLE;
	verify->due = true;
	verify->failures = 0;
	l4lb_sync_tick_soon(peer->peers);
}

void l4lb_sync_verify_reset(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_verify *verify = peer->verify;

	lockdep_assert_held(&peer->peers->state);
	verify->due = false;
	verify->step = IDLE;
	verify->failures = 0;
	verify->answer = false;
	verify->repeats = 0;
}

bool l4lb_sync_verify_busy(const struct l4lb_sync_peer *peer)
{
	const struct l4lb_sync_verify *verify = peer->verify;

	lockdep_assert_held(&peer->peers->state);
	return verify->answer || verify->step == COUNT;
}

const struct l4lb_sync_verified *
l4lb_sync_verified(const struct l4lb_sync_peer *peer)
{
	lockdep_assert_held(&peer->peers->state);
	return &peer->verify->last;
}

/* The same on both sides: @nonce is the asker's. */
static siphash_key_t key_of(const struct l4lb_sync_peer *peer, u64 nonce)
{
	return (siphash_key_t){ {
		nonce, peer->peers->sender + peer->source.sender,
	} };
}

/* ---- asking ---- */

static bool is_time(const struct l4lb_sync_peer *peer)
{
	const struct l4lb_sync_verify *verify = peer->verify;
	unsigned long period = READ_ONCE(peer->peers->verify) * HZ;

	if (!verify->was_asked)
		return verify->due || period;
	if (verify->due)
		return time_after_eq(jiffies, verify->asked +
				     (PERIOD << verify->failures));
	return period && time_after_eq(jiffies, verify->asked + period);
}

/* A large table takes the peer some time. */
static bool is_silent(const struct l4lb_sync_verify *verify)
{
	return time_after_eq(jiffies, verify->heard + SILENT +
			     verify->mine.n / PEER_SPEED * HZ);
}

static void fail(struct l4lb_sync_verify *verify)
{
	verify->step = IDLE;
	verify->due = true;
	verify->failures = min(verify->failures + 1, DOUBLINGS);
}

static void begin(struct l4lb_sync_verify *verify)
{
	verify->due = false;
	verify->step = COUNT;
	verify->was_asked = true;
	verify->asked = jiffies;
	verify->parts = 0;
	get_random_bytes(&verify->nonce, sizeof(verify->nonce));
}

static bool is_to_ask(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_verify *verify = peer->verify;

	lockdep_assert_held(&peer->peers->state);
	if (!l4lb_sync_peer_present(peer) || peer->join->asked ||
	    peer->join->due)
		return false;
	if (verify->step > COUNT && is_silent(verify))
		fail(verify);
	if (verify->step == IDLE && is_time(peer))
		begin(verify);
	else if (verify->step != WAIT ||
		 time_before(jiffies, verify->said + AGAIN))
		return false;
	verify->said = jiffies;
	return true;
}

void l4lb_sync_verify_tick(struct l4lb_sync_peer *peer)
{
	u8 data[L4LB_SYNC_CONTROL_MAX];
	size_t len = 0;

	spin_lock(&peer->peers->state);
	if (is_to_ask(peer))
		len = l4lb_sync_nonce_put(data + L4LB_SYNC_BODY_AT,
					  peer->verify->nonce);
	spin_unlock(&peer->peers->state);
	if (!len)
		return;
	l4lb_sync_peer_send(peer, L4LB_SYNC_DIGEST_ASK, data, len);
	l4lb_sync_walker_wake(peer->peers);
}

/* ---- comparing ---- */

static void find_differences(struct l4lb_sync_verify *verify,
			     unsigned long *slices)
{
	unsigned int i;

	for (i = 0; i < L4LB_DIGEST_SLICES; i++)
		if (verify->mine.sums[i] != verify->theirs[i])
			__set_bit(i, slices);
}

static noinline_for_stack void
ask_for(struct l4lb_sync_peer *peer, u64 nonce, const unsigned long *slices)
{
	u8 data[L4LB_SYNC_CONTROL_MAX];
	size_t len = l4lb_sync_slices_put(data + L4LB_SYNC_BODY_AT, nonce,
					  slices);

	l4lb_sync_peer_send(peer, L4LB_SYNC_SLICES, data, len);
}

/* Returns whether something differs. */
static bool take_result(struct l4lb_sync_peer *peer, unsigned int difference)
{
	struct l4lb_sync_verify *verify = peer->verify;

	verify->step = difference ? REPAIR : IDLE;
	verify->came = 0;
	verify->heard = jiffies;
	verify->last.n++;
	verify->last.difference = difference;
	verify->last.compared = verify->mine.n;
	if (!difference) {
		verify->failures = 0;
		l4lb_sync_join_equal(peer);
	}
	return difference;
}

/* Are both sides' sums there? */
static noinline_for_stack void compare(struct l4lb_sync_peer *peer)
{
	DECLARE_BITMAP(slices, L4LB_DIGEST_SLICES) = { };
	struct l4lb_sync_verify *verify = peer->verify;
	bool differs = false;
	u64 nonce;

	spin_lock(&peer->peers->state);
	nonce = verify->nonce;
	if (verify->step == WAIT && verify->parts == ~0U) {
		find_differences(verify, slices);
		differs = take_result(peer, bitmap_weight(slices,
							  L4LB_DIGEST_SLICES));
	}
	spin_unlock(&peer->peers->state);
	if (differs)
		ask_for(peer, nonce, slices);
}

void l4lb_sync_digest_take(struct l4lb_sync_peer *peer, const u8 *body,
			   size_t len)
{
	struct l4lb_sync_verify *verify = peer->verify;
	struct l4lb_sync_sums sums;

	if (!l4lb_sync_sums_read(&sums, body, len)) {
		l4lb_sync_count(peer->peers->ln, L4LB_SYNC_N_CONTROL);
		return;
	}
	spin_lock(&peer->peers->state);
	if ((verify->step == COUNT || verify->step == WAIT) &&
	    sums.nonce == verify->nonce) {
		memcpy(verify->theirs + sums.first, sums.sum, sizeof(sums.sum));
		verify->parts |= BIT(sums.first / L4LB_SYNC_SUMS_MAX);
		verify->heard = jiffies;
	}
	spin_unlock(&peer->peers->state);
	compare(peer);
}

/* ---- repair ---- */

void l4lb_sync_verify_records(struct l4lb_sync_peer *peer, unsigned int n)
{
	lockdep_assert_held(&peer->peers->state);
	if (peer->verify->step != REPAIR)
		return;
	peer->verify->came += n;
	peer->verify->heard = jiffies;
}

void l4lb_sync_verify_end(struct l4lb_sync_peer *peer, u64 nonce, u32 records)
{
	struct l4lb_sync_verify *verify = peer->verify;

	lockdep_assert_held(&peer->peers->state);
	if (verify->step != REPAIR || nonce != verify->nonce)
		return;
	verify->step = IDLE;
	verify->failures = 0;
	if (verify->came >= records)
		l4lb_sync_join_equal(peer);
	else
		verify->due = true;
}

/* ---- answering ---- */

static void send_sums(struct l4lb_sync_peer *peer, u64 nonce)
{
	const struct l4lb_sync_digest *digest = &peer->verify->reply;
	u8 data[L4LB_SYNC_CONTROL_MAX];
	unsigned int i;
	size_t len;

	for (i = 0; i < L4LB_DIGEST_SLICES; i += L4LB_SYNC_SUMS_MAX) {
		len = l4lb_sync_sums_put(data + L4LB_SYNC_BODY_AT, nonce, i,
					 digest->sums + i);
		l4lb_sync_peer_send(peer, L4LB_SYNC_DIGEST, data, len);
	}
}

/* Returns false if the peer asks too often, or another question while one is being
 * answered.  @repeat: the sums are there.
 */
static bool take_question(struct l4lb_sync_verify *verify, u64 nonce,
			  bool *repeat)
{
	bool same = verify->was_answered && nonce == verify->their_nonce;

	*repeat = same && !verify->answer && verify->repeats;
	if (*repeat) {
		verify->repeats--;
		return true;
	}
	if (verify->answer)
		return same;
	if (verify->was_answered &&
	    time_before(jiffies, verify->answered + MINIMUM))
		return false;
	verify->was_answered = true;
	verify->answered = jiffies;
	verify->answer = true;
	verify->repeats = REPEATS;
	verify->their_nonce = nonce;
	return true;
}

void l4lb_sync_digest_ask_take(struct l4lb_sync_peer *peer, const u8 *body,
			       size_t len)
{
	struct l4lb_sync_verify *verify = peer->verify;
	struct l4lb_sync_peers *peers = peer->peers;
	bool taken, repeat;
	u64 nonce;

	if (!l4lb_sync_nonce_read(body, len, &nonce)) {
		l4lb_sync_count(peers->ln, L4LB_SYNC_N_CONTROL);
		return;
	}
	spin_lock(&peers->state);
	taken = take_question(verify, nonce, &repeat);
	spin_unlock(&peers->state);
	if (repeat)
		send_sums(peer, nonce);
	else if (taken)
		l4lb_sync_walker_wake(peers);
	else
		l4lb_sync_count(peers->ln, L4LB_SYNC_N_RATE_LIMITED);
}

void l4lb_sync_slices_take(struct l4lb_sync_peer *peer, const u8 *body,
			   size_t len)
{
	DECLARE_BITMAP(slices, L4LB_DIGEST_SLICES);
	struct l4lb_sync_peers *peers = peer->peers;
	siphash_key_t key;
	u64 nonce;

	if (!l4lb_sync_slices_read(slices, body, len, &nonce)) {
		l4lb_sync_count(peers->ln, L4LB_SYNC_N_CONTROL);
		return;
	}
	spin_lock(&peers->state);
	if (peer->verify->was_answered && nonce == peer->verify->their_nonce) {
		key = key_of(peer, nonce);
		l4lb_sync_bulk_slices(peer, nonce, &key, slices);
	}
	spin_unlock(&peers->state);
}

/* ---- computing ---- */

/* Goes on with the sums for comparison @nonce; returns whether they are
 * complete.  Without memory they never are.
 */
static bool compute(struct l4lb_sync_peer *peer,
		    struct l4lb_sync_digest *digest, u64 nonce)
{
	siphash_key_t key;

	spin_lock(&peer->peers->state);
	key = key_of(peer, nonce);
	spin_unlock(&peer->peers->state);
	if ((!digest->walk || memcmp(&digest->key, &key, sizeof(key))) &&
	    !l4lb_sync_digest_begin(digest, peer->peers->ln, &key))
		return false;
	return l4lb_sync_digest_run(digest);
}

static void run_mine(struct l4lb_sync_peer *peer, u64 nonce)
{
	struct l4lb_sync_verify *verify = peer->verify;

	if (!compute(peer, &verify->mine, nonce))
		return;
	spin_lock(&peer->peers->state);
	if (verify->step == COUNT && nonce == verify->nonce) {
		verify->step = WAIT;
		verify->said = jiffies;
		verify->heard = jiffies;
	}
	spin_unlock(&peer->peers->state);
	compare(peer);
}

static void run_reply(struct l4lb_sync_peer *peer, u64 nonce)
{
	struct l4lb_sync_verify *verify = peer->verify;

	if (!compute(peer, &verify->reply, nonce))
		return;
	spin_lock(&peer->peers->state);
	if (nonce == verify->their_nonce)
		verify->answer = false;
	spin_unlock(&peer->peers->state);
	send_sums(peer, nonce);
}

void l4lb_sync_verify_run(struct l4lb_sync_peer *peer)
{
	struct l4lb_sync_verify *verify = peer->verify;
	bool mine, reply;
	u64 nonce, their_nonce;

	spin_lock(&peer->peers->state);
	mine = verify->step == COUNT;
	reply = verify->answer;
	nonce = verify->nonce;
	their_nonce = verify->their_nonce;
	spin_unlock(&peer->peers->state);
	if (mine)
		run_mine(peer, nonce);
	if (reply)
		run_reply(peer, their_nonce);
}
