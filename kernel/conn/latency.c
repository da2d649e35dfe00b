// SPDX-License-Identifier: GPL-2.0
/*
 * Latency of real servers, as their connections show it.  Each gives two samples at
 * most: from its SYN (SCTP: INIT) to the answer, and from the client's first payload
 * to the first payload that comes back.  A lost SYN or request that the client sends
 * again is part of what the client waits for: only the first one counts.
 *
 *	OPENING --SYN-ACK--> SILENT --the client's payload--> ASKED --payload--> done
 *
 * A datagram is payload, so a UDP flow is ASKED from its first one.  What a real server
 * says unasked (a greeting) is no answer; one that goes on talking is not waited for.
 *
 * Packets that are waited for must not take the fast path, which would not see them:
 * a client's until it has asked, its real server's until the end.  Afterwards
 * the connection loses its use %L4LB_USE_LATENCY and is as any other.
 *
 * A reset in the place of an answer would make a real server that refuses
 * everything the fastest one, so it is counted by itself, and so is the answer that has
 * not come when the connection expires or its client opens another one with its port.
 */
#include "conn/latency.h"
#include "base/parse.h"
#include "conn/state.h"

#include <linux/math64.h>
#include <linux/timekeeping.h>

#include "service/latency.h"

/* The upper bits of struct l4lb_conn.uses: the phase, and how many packets with
 * payload have come unasked.
 */
enum {
	PHASE_SHIFT	= 30,
	UNASKED_SHIFT	= 27,
	UNASKED_MAX	= 7,
};

enum phase { OPENING, SILENT, ASKED };

static_assert(L4LB_USE_LATENCY < 1 << UNASKED_SHIFT);

static enum phase phase_of(u32 uses)
{
	return uses >> PHASE_SHIFT;
}

static u32 with_phase(u32 uses, enum phase phase)
{
	return (uses & ~(~0U << PHASE_SHIFT)) | (u32)phase << PHASE_SHIFT;
}

static u32 without_latency(u32 uses)
{
	return uses & ~(L4LB_USE_LATENCY | ~0U << UNASKED_SHIFT);
}

static u64 age_us(const struct l4lb_conn *conn)
{
	return div_u64(ktime_get_ns() - conn->began, NSEC_PER_USEC);
}

/* Packets of both directions may be at it: each step is taken by one of them.  One that
 * is not taken was overtaken, which costs a sample at most.
 */
static bool step(struct l4lb_conn *conn, u32 from, u32 to)
{
	return cmpxchg(&conn->uses, from, to) == from;
}

/* Ends the measurement.  Return: the uses before; without %L4LB_USE_LATENCY, another one
 * has ended it.
 */
static u32 stop(struct l4lb_conn *conn)
{
	u32 uses = READ_ONCE(conn->uses);

	while (uses & L4LB_USE_LATENCY &&
	       !try_cmpxchg(&conn->uses, &uses, without_latency(uses)))
		;
	return uses;
}

static void fail(struct l4lb_conn *conn, enum l4lb_latency_fate fate)
{
	u32 uses = stop(conn);

	if (!(uses & L4LB_USE_LATENCY))
		return;
	if (phase_of(uses) == ASKED)
		l4lb_latency_count_failed(conn->server, L4LB_LATENCY_ANSWER, fate);
	else if (phase_of(uses) == OPENING && conn->proto != IPPROTO_UDP)
		l4lb_latency_count_failed(conn->server, L4LB_LATENCY_HANDSHAKE, fate);
}

/* ---- payload ---- */

/* Control chunks precede DATA.  A sender bundles few of them. */
static bool chunks_have_data(const struct sk_buff *skb, const struct l4lb_pkt *pkt)
{
	unsigned int off = pkt->l4 + sizeof(struct sctphdr), i, len;
	const struct sctp_chunkhdr *chunk;
	struct sctp_chunkhdr _chunk;

	for (i = 0; i < 4; i++) {
		chunk = skb_header_pointer(skb, off, sizeof(_chunk), &_chunk);
		if (!chunk)
			return false;
		if (chunk->type == SCTP_CID_DATA || chunk->type == SCTP_CID_I_DATA)
			return true;
		len = ntohs(chunk->length);
		if (len < sizeof(_chunk))
			return false;
		off += ALIGN(len, 4);
	}
	return false;
}

static bool has_payload(const struct sk_buff *skb, const struct l4lb_pkt *pkt)
{
	switch (pkt->flow.proto) {
	case IPPROTO_TCP:
		return l4lb_segment_has_payload(skb, pkt);
	case IPPROTO_SCTP:
		return chunks_have_data(skb, pkt);
	default:
		return true;
	}
}

/* ---- what comes in ---- */

bool l4lb_latency_has_asked(const struct l4lb_conn *conn)
{
	return phase_of(READ_ONCE(conn->uses)) == ASKED;
}

void l4lb_latency_note_request(struct l4lb_conn *conn, const struct sk_buff *skb,
			       const struct l4lb_pkt *pkt)
{
	u32 uses = READ_ONCE(conn->uses);
	u64 age;

	if (!(uses & L4LB_USE_LATENCY))
		return;		/* another CPU has just ended it */
	if (l4lb_pkt_opens(pkt)) {
		/* The entry has a new connection now: the old request is over. */
		if (phase_of(uses) == ASKED)
			fail(conn, L4LB_LATENCY_UNANSWERED);
		return;
	}
	if (phase_of(uses) == ASKED)
		return;
	if (!has_payload(skb, pkt)) {
		/* It began elsewhere, or its SYN-ACK took another way. */
		if (phase_of(uses) == OPENING)
			step(conn, uses, with_phase(uses, SILENT));
		return;
	}
	age = age_us(conn);
	if (age > U32_MAX) {
		step(conn, uses, without_latency(uses));
		return;
	}
	WRITE_ONCE(conn->asked, age);
	step(conn, uses, with_phase(uses, ASKED));	/* a full barrier: after @asked */
}

static bool answers_opening(const struct l4lb_pkt *pkt)
{
	if (pkt->flow.proto == IPPROTO_TCP)
		return pkt->tcp & L4LB_TCP_FLAG_SYN && pkt->tcp & L4LB_TCP_FLAG_ACK;
	return pkt->flow.proto == IPPROTO_SCTP && pkt->chunk == SCTP_CID_INIT_ACK;
}

static void note_unasked(struct l4lb_conn *conn, u32 uses)
{
	if ((uses >> UNASKED_SHIFT & UNASKED_MAX) == UNASKED_MAX)
		step(conn, uses, without_latency(uses));
	else
		step(conn, uses, uses + (1U << UNASKED_SHIFT));
}

void l4lb_latency_note_reply(struct l4lb_conn *conn, const struct sk_buff *skb,
			     const struct l4lb_pkt *pkt)
{
	u32 uses = READ_ONCE(conn->uses), asked;
	u64 age;

	if (l4lb_pkt_aborts(pkt)) {
		fail(conn, L4LB_LATENCY_REFUSED);
		return;
	}
	if (!(uses & L4LB_USE_LATENCY))
		return;		/* another CPU has just ended it */
	if (phase_of(uses) == OPENING && answers_opening(pkt)) {
		age = age_us(conn);
		if (step(conn, uses, with_phase(uses, SILENT)))
			l4lb_latency_count(conn->server, L4LB_LATENCY_HANDSHAKE, age);
		return;
	}
	if (!has_payload(skb, pkt))
		return;
	if (phase_of(uses) != ASKED) {
		note_unasked(conn, uses);
		return;
	}
	age = age_us(conn);
	/* Another packet of the client may just have written a later one. */
	asked = READ_ONCE(conn->asked);
	if (step(conn, uses, without_latency(uses)))
		l4lb_latency_count(conn->server, L4LB_LATENCY_ANSWER,
				   age > asked ? age - asked : 0);
}

void l4lb_latency_note_error(struct l4lb_conn *conn)
{
	fail(conn, L4LB_LATENCY_REFUSED);
}

/* Its client has reset it, or ended an SCTP association: a reset of the real server would
 * have been counted.
 */
static bool is_given_up(const struct l4lb_conn *conn)
{
	switch (READ_ONCE(conn->state)) {
	case L4LB_TCP_CLOSE:
	case L4LB_SCTP_REJECTED:
	case L4LB_SCTP_CLOSED:
		return true;
	default:
		return false;
	}
}

/* A connection that ends for another reason says nothing about its real server. */
void l4lb_latency_note_end(struct l4lb_conn *conn, enum l4lb_end why)
{
	if ((why != L4LB_END_EXPIRED && why != L4LB_END_REUSED) || is_given_up(conn))
		return;
	local_bh_disable();
	fail(conn, L4LB_LATENCY_UNANSWERED);
	local_bh_enable();
}
