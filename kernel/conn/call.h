/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls: templates whose key has a Call-ID, too.
 *
 * A client has one for each of its calls.  The Call-ID is of any length, so it
 * is beside the template and freed with it.
 */
#ifndef _L4LB_CONN_CALL_H
#define _L4LB_CONN_CALL_H

#include "base/call_id.h"
#include "conn/conn.h"

/**
 * struct l4lb_call - the Call-ID of a template
 * @hash: of it, keyed
 * @len: its length, 1 to %L4LB_CALL_ID_MAX
 * @id: its bytes, none of them 0, white or a control character
 */
struct l4lb_call {
	u64	hash;
	u8	len;
	u8	id[];
};

/**
 * struct l4lb_call_key - what a call is found by
 * @flow: as of any template; its hash is of all that is here
 * @hash: of @id, set by l4lb_conn_find_call()
 * @len: length of @id
 * @id: Call-ID, in the packet or message that has it
 */
struct l4lb_call_key {
	struct l4lb_flow	flow;
	u64			hash;
	u8			len;
	const u8		*id;
};

/* The Call-ID of @conn, or NULL.  RCU. */
static inline const struct l4lb_call *
l4lb_conn_call(const struct l4lb_conn *conn)
{
	return l4lb_conn_has_use(conn, L4LB_USE_CALL) &&
	       l4lb_conn_test(conn, L4LB_CONN_TEMPLATE) ? conn->call : NULL;
}

/* Is it a template with the Call-ID of @key? */
static inline bool l4lb_call_is(const struct l4lb_conn *conn,
				const struct l4lb_call_key *key)
{
	const struct l4lb_call *call = l4lb_conn_call(conn);

	return call && call->hash == key->hash && call->len == key->len &&
	       !memcmp(call->id, key->id, key->len);
}

#endif /* _L4LB_CONN_CALL_H */
