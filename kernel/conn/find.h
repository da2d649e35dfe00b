/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The connection of a packet, inline.
 *
 * A packet finds its connection without a lock, in most cases with two cache
 * lines: its bucket's and the connection's.  The head of bucket.c tells why a
 * reader misses nothing while slots move.
 */
#ifndef _L4LB_CONN_FIND_H
#define _L4LB_CONN_FIND_H

#include "conn/bucket.h"
#include "conn/call.h"
#include "conn/hash.h"
#include "conn/missed.h"
#include "conn/slot.h"

/**
 * struct l4lb_wanted - what is looked for
 * @flow: the packet's
 * @hash: of @flow, and of @call
 * @kinds: of slots, as bits; a constant, like @af
 * @call: the Call-ID of a template; NULL: any template
 * @af: of @flow
 */
struct l4lb_wanted {
	const struct l4lb_flow	*flow;
	u64			hash;
	unsigned int		kinds;
	const struct l4lb_call_key *call;
	u8			af;
};

static __always_inline bool is_wanted(const struct l4lb_conn *conn,
				      const struct l4lb_wanted *w,
				      enum l4lb_conn_kind kind)
{
	if (w->kinds == BIT(L4LB_CONN_LOCAL))
		return same_local(conn, w->flow, w->af);
	return same_key(conn, w->flow, w->af, kind);
}

/* As l4lb_conn_alive(); only templates have holders. */
static __always_inline bool is_live(const struct l4lb_conn *conn, enum l4lb_conn_kind kind)
{
	if (kind == L4LB_CONN_TEMPLATE_IN || kind == L4LB_CONN_CALL_IN)
		return l4lb_conn_alive(conn);
	return !l4lb_conn_test(conn, L4LB_CONN_DEAD) && !l4lb_conn_expired(conn);
}

/*
 * The first live connection with a slot of one of these kinds for this flow.
 * If replies are wanted, they take precedence: in the namespace of a real
 * server that is also a client, a header may be both a reply and a request.
 */
static __always_inline struct l4lb_conn *
l4lb_look_up(const struct l4lb_conn_table *table, const struct l4lb_wanted *w,
	     bool *reply)
{
	const struct l4lb_conn_array *array = rcu_dereference(table->array);
	struct l4lb_conn *conn, *request = NULL;
	const struct l4lb_conn_bucket *bucket;
	enum l4lb_conn_kind kind;
	unsigned long slot;
	u64 equal;

	do {
		bucket = home_of(array, w->hash);
		do {
			/* Pairs with slot_set() and slot_clear(). */
			equal = tags_equal(smp_load_acquire(&bucket->tags),
					   tag_of(w->hash));
			for (; equal; equal &= equal - 1) {
				/* If it was moved, it is found further on. */
				slot = smp_load_acquire(&bucket->slot[first_slot(equal)]);
				conn = slot_conn(slot);
				kind = slot_kind(slot);
				if (!conn || !(w->kinds & BIT(kind)) ||
				    !is_wanted(conn, w, kind) ||
				    (w->call && !l4lb_call_is(conn, w->call)) ||
				    !is_live(conn, kind))
					continue;
				*reply = kind == L4LB_CONN_OUT;
				if (*reply || !(w->kinds & BIT(L4LB_CONN_OUT)))
					return conn;
				request = request ?: conn;
			}
			bucket = rcu_dereference(bucket->next);
		} while (unlikely(bucket));
		array = rcu_dereference(array->next);
	} while (unlikely(array));
	return request;
}

/* Looks up what @w wants; its hash is set, to 0 if there is no table yet.  @again: ingress
 * may have looked it up, in vain.  RCU, BH off.
 */
static __always_inline struct l4lb_conn *
l4lb_conn_find_wanted(struct l4lb_net *ln, struct l4lb_wanted *w, bool again, bool *reply)
{
	const struct l4lb_conn_table *table = rcu_dereference(ln->conns);

	*reply = false;
	w->hash = 0;
	if (unlikely(!table))
		return NULL;
	if (again)
		w->hash = l4lb_conn_missed_hash(table, w->flow, w->af);
	if (!w->hash)
		w->hash = hash_flow(&table->start, w->flow, w->af,
				    w->kinds == BIT(L4LB_CONN_TEMPLATE_IN));
	return l4lb_look_up(table, w, reply);
}

/**
 * l4lb_conn_find_here() - the connection of a packet from either side
 * @ln: namespace
 * @flow: of the packet; its hash is filled in for a new connection
 * @af: its family, as a constant
 * @again: ingress may have looked it up, as a constant
 * @reply: set if the packet is a reply to be translated
 *
 * As l4lb_conn_find_both(), for packets that are worth the code.
 *
 * Context: RCU, BH off.
 */
static __always_inline struct l4lb_conn *
l4lb_conn_find_here(struct l4lb_net *ln, struct l4lb_flow *flow, u8 af, bool again,
		    bool *reply)
{
	struct l4lb_wanted w = {
		.flow = flow, .af = af, .kinds = BIT(L4LB_CONN_IN) | BIT(L4LB_CONN_OUT),
	};
	struct l4lb_conn *conn = l4lb_conn_find_wanted(ln, &w, again, reply);

	flow->hash = w.hash;
	return conn;
}

#endif /* _L4LB_CONN_FIND_H */
