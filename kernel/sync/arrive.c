// SPDX-License-Identifier: GPL-2.0
/*
 * Which messages are believed.  A datagram for the socket of peers counts if its
 * address and hop limit are a peer's, its MAC is right, its sender is the peer's
 * and its number is new; the cheap checks come first.
 *
 * A peer that starts is another sender.  It is believed when it sends back the
 * random number of our last HELLO, so that nothing recorded earlier can take its
 * place; its messages before that are dropped.  In the multicast group nothing
 * can be sent back: there, the first signed message of a sender is believed.
 */
#include "sync/arrive.h"

#include "sync/bulk.h"
#include "sync/counter.h"
#include "sync/hello.h"
#include "sync/join.h"
#include "sync/nack.h"
#include "sync/receive.h"
#include "sync/source.h"
#include "sync/verify.h"

enum {
	RECORDS_RATE	= 200000,	/* per second and peer */
	CONTROL_RATE	= 200,		/* likewise, messages */
};

/* ---- control messages ---- */

/* Called with @peer->peers->lock held.  The body has any length and content. */
typedef void control_fn(struct l4lb_sync_peer *peer, const u8 *body,
			size_t len);

/* HELLO is none of them: it decides who is believed. */
static control_fn *const controls[L4LB_SYNC_CONTROL_TYPES] = {
	[L4LB_SYNC_NACK]	= l4lb_sync_nack_take,
	[L4LB_SYNC_RESYNC]	= l4lb_sync_resync_take,
	[L4LB_SYNC_BULK_BEGIN]	= l4lb_sync_bulk_begin_take,
	[L4LB_SYNC_BULK_END]	= l4lb_sync_bulk_end_take,
	[L4LB_SYNC_DIGEST_ASK]	= l4lb_sync_digest_ask_take,
	[L4LB_SYNC_DIGEST]	= l4lb_sync_digest_take,
	[L4LB_SYNC_SLICES]	= l4lb_sync_slices_take,
};

static void control(struct l4lb_sync_peer *peer, const u8 *data, size_t len)
{
	const u8 *body;
	size_t n;
	u8 type;

	body = l4lb_sync_control_read(data, len, &type, &n);
	if (!body) {
		l4lb_sync_count(peer->peers->ln, L4LB_SYNC_N_CONTROL);
		return;
	}
	if (type < L4LB_SYNC_CONTROL_TYPES && controls[type])
		controls[type](peer, body, n);
}

/* ---- numbers ---- */

/* Records of a message, as it says. */
static unsigned int number_of(const u8 *data)
{
	return data[0] ?: data[4];
}

/* Before the number is taken: what is refused may be sent again. */
static bool is_slow_enough(struct l4lb_sync_peer *peer, const u8 *data,
			   const struct l4lb_sync_trailer *trailer)
{
	if (trailer->flags & L4LB_SYNC_T_CONTROL)
		return l4lb_sync_bucket_take(&peer->control_in, CONTROL_RATE,
					     1);
	return l4lb_sync_bucket_take(&peer->records_in, RECORDS_RATE,
				     number_of(data));
}

/* The peer's own message: is its number new?  @how: gets bits of enum
 * l4lb_sync_how.
 */
static bool is_news(struct l4lb_sync_peer *peer,
		    const struct l4lb_sync_trailer *trailer, unsigned int *how)
{
	struct l4lb_sync_source *source = &peer->source;
	enum l4lb_sync_arrival kind;
	u64 lost = 0;

	lockdep_assert_held(&peer->peers->state);
	kind = l4lb_sync_source_take(source, trailer, &lost);
	l4lb_sync_peer_lost(peer, lost);
	if (source->gaps)
		l4lb_sync_tick_soon(peer->peers);
	if (kind == L4LB_SYNC_REPEATED)
		return false;
	/* What is sent again is old, even if nothing later has come yet. */
	if (kind == L4LB_SYNC_LATE || trailer->flags & L4LB_SYNC_T_AGAIN)
		*how |= L4LB_SYNC_LATE_MESSAGE;
	if (peer->join->done)
		*how |= L4LB_SYNC_IN_STEP;
	if (trailer->sender < peer->peers->sender)
		*how |= L4LB_SYNC_LOWER_SENDER;
	if (kind == L4LB_SYNC_LATE && trailer->flags & L4LB_SYNC_T_AGAIN)
		peer->n_repaired++;
	if (trailer->stream != L4LB_SYNC_STREAM_OTHER)
		peer->backlog = trailer->backlog;
	source->heard = jiffies;
	peer->was_heard = true;
	return true;
}

/* Records that a request of ours has brought. */
static void count_bulk(struct l4lb_sync_peer *peer, unsigned int n)
{
	lockdep_assert_held(&peer->peers->state);
	l4lb_sync_add(peer->peers->ln, L4LB_SYNC_N_BULK_IN, n);
	l4lb_sync_join_records(peer, n);
	l4lb_sync_verify_records(peer, n);
}

/* What is repeated uses up no tokens, so nobody can keep new messages out with
 * recorded ones.
 */
static enum l4lb_sync_counter
check_number(struct l4lb_sync_peer *peer, const u8 *data,
	     const struct l4lb_sync_trailer *trailer, unsigned int *how)
{
	lockdep_assert_held(&peer->peers->state);
	if (trailer->sender != peer->source.sender)
		return L4LB_SYNC_N_REPLAY;
	if (l4lb_sync_source_knows(&peer->source, trailer))
		return L4LB_SYNC_N_REPEATED;
	if (!is_slow_enough(peer, data, trailer))
		return L4LB_SYNC_N_RATE_LIMITED;
	if (!is_news(peer, trailer, how))
		return L4LB_SYNC_N_REPEATED;
	if (trailer->flags & L4LB_SYNC_T_BULK) {
		count_bulk(peer, number_of(data));
		*how |= L4LB_SYNC_ANSWER;
	}
	return L4LB_SYNC_COUNTERS;
}

/* ---- unicast ---- */

/* Is it a HELLO that answers ours?  Then the sender's number and the windows are
 * what it says.
 */
static bool is_hello(struct l4lb_sync_peer *peer, const u8 *data, size_t len,
		     const struct l4lb_sync_trailer *trailer)
{
	const u8 *body;
	size_t n;
	u8 type;

	if (!(trailer->flags & L4LB_SYNC_T_CONTROL))
		return false;
	body = l4lb_sync_control_read(data, len, &type, &n);
	if (!body || type != L4LB_SYNC_HELLO)
		return false;
	l4lb_sync_hello_take(peer, trailer, body, n);
	return true;
}

/* Return: its records are to be applied. */
static bool from_peer(struct l4lb_sync_peer *peer, u8 *data, size_t len,
		      unsigned int *how)
{
	struct l4lb_sync_peers *peers = peer->peers;
	const struct l4lb_net *ln = peers->ln;
	struct l4lb_sync_trailer trailer;
	enum l4lb_sync_counter why;

	if (!l4lb_sync_trailer_read(&trailer, data, len) ||
	    !l4lb_sync_verify(&peers->keys, data, len, &trailer)) {
		l4lb_sync_count(ln, L4LB_SYNC_N_MAC);
		return false;
	}
	if (trailer.sender == peers->sender) {
		l4lb_sync_count(ln, L4LB_SYNC_N_REPLAY);
		return false;
	}
	if (is_hello(peer, data, len, &trailer))
		return false;
	spin_lock(&peers->state);
	why = check_number(peer, data, &trailer, how);
	spin_unlock(&peers->state);
	if (why != L4LB_SYNC_COUNTERS) {
		l4lb_sync_count(ln, why);
		return false;
	}
	if (!(trailer.flags & L4LB_SYNC_T_CONTROL))
		return true;
	control(peer, data, len);
	return false;
}

/* A record may wait for the configuration mutex, so it is applied without
 * @peers->lock: commands about peers need not wait, too.
 */
void l4lb_sync_arrive(struct l4lb_sync_peers *peers, u8 *data, size_t len,
		      const struct sockaddr_storage *from, int hops)
{
	struct l4lb_sync_peer *peer;
	unsigned int how = 0;
	bool records = false;

	down_read(&peers->lock);
	peer = l4lb_sync_peer_find(peers, from);
	if (peer && l4lb_sync_port(&peer->addr) == l4lb_sync_port(from) &&
	    (peer->hops || hops == 255))
		records = from_peer(peer, data, len, &how);
	else
		l4lb_sync_count(peers->ln, L4LB_SYNC_N_SOURCE);
	up_read(&peers->lock);
	if (records)
		l4lb_sync_receive(peers->ln, data, len, 0, how);
}

/* ---- multicast ---- */

/* Without a key, a message of the group proves nothing: then it is used as one
 * of ip_vs, unless it comes from a peer's address and was used already.  One with
 * a number far ahead, which may be forged, moves no window.
 */
static bool is_unsigned_news(struct l4lb_sync_peers *peers,
			     const struct l4lb_sync_trailer *trailer,
			     const struct sockaddr_storage *from,
			     unsigned int *how)
{
	struct l4lb_sync_peer *peer = l4lb_sync_peer_find(peers, from);

	lockdep_assert_held(&peers->state);
	return !peer || peer->source.sender != trailer->sender ||
	       l4lb_sync_source_far(&peer->source, trailer) ||
	       is_news(peer, trailer, how);
}

static enum l4lb_sync_counter
check_signed(struct l4lb_sync_peers *peers,
	     const struct l4lb_sync_trailer *trailer, unsigned int *how)
{
	struct l4lb_sync_source *stranger;
	u64 lost = 0;
	unsigned int i;

	lockdep_assert_held(&peers->state);
	if (trailer->sender == peers->sender)
		return L4LB_SYNC_N_REPLAY;
	for (i = 0; i < peers->n; i++)
		if (peers->peer[i]->source.sender == trailer->sender)
			return is_news(peers->peer[i], trailer, how) ?
			       L4LB_SYNC_COUNTERS : L4LB_SYNC_N_REPEATED;
	stranger = l4lb_sync_stranger(peers, trailer);
	if (!stranger)
		return L4LB_SYNC_N_REPLAY;
	if (l4lb_sync_source_take(stranger, trailer, &lost) ==
	    L4LB_SYNC_REPEATED)
		return L4LB_SYNC_N_REPLAY;
	stranger->heard = jiffies;
	return L4LB_SYNC_COUNTERS;
}

static enum l4lb_sync_counter
check_group(struct l4lb_sync_peers *peers, u8 *data, size_t len,
	    const struct sockaddr_storage *from, unsigned int *how)
{
	struct l4lb_sync_trailer trailer;
	enum l4lb_sync_counter why;

	if (!l4lb_sync_trailer_read(&trailer, data, len))
		return peers->keys.on ? L4LB_SYNC_N_MAC : L4LB_SYNC_COUNTERS;
	if (peers->keys.on &&
	    !l4lb_sync_verify(&peers->keys, data, len, &trailer))
		return L4LB_SYNC_N_MAC;
	spin_lock(&peers->state);
	if (peers->keys.on)
		why = check_signed(peers, &trailer, how);
	else
		why = is_unsigned_news(peers, &trailer, from, how) ?
		      L4LB_SYNC_COUNTERS : L4LB_SYNC_N_REPEATED;
	spin_unlock(&peers->state);
	return why;
}

bool l4lb_sync_admit(struct l4lb_sync_peers *peers, u8 *data, size_t len,
		     const struct sockaddr_storage *from, unsigned int *how)
{
	enum l4lb_sync_counter why;

	*how = 0;
	down_read(&peers->lock);
	why = check_group(peers, data, len, from, how);
	up_read(&peers->lock);
	if (why == L4LB_SYNC_COUNTERS)
		return true;
	l4lb_sync_count(peers->ln, why);
	return false;
}
