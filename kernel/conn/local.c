// SPDX-License-Identifier: GPL-2.0
/*
 * Full NAT: choosing the local end of a connection.
 *
 * A keyed hash of the flow says where to look, so a client cannot choose the port, and
 * others cannot tell one client's by another's.  An end that is taken for the same real
 * server and port is passed over.  If all are, the best victim loses its own: otherwise
 * forged SYNs would take all ports.
 *
 * A port rests, because the real server may remember its last connection.  Of TCP it has
 * it in TIME-WAIT for a minute if it closed first, and then takes a SYN only with later
 * sequence numbers or timestamps than those before; another client's are not.  The entry
 * here stays for longer than that, in TIME_WAIT, and keeps the port; after a while another
 * connection may take it over.
 */
#include "conn/local.h"

#include <linux/siphash.h>

#include "conn/bucket.h"
#include "conn/defence.h"
#include "conn/state.h"
#include "service/snat.h"

#define TRIES	16
/* Longer than TIME-WAIT of Linux: 60 s, which may end an eighth later. */
#define REST	(70 * HZ)

static bool is_closed(const struct l4lb_conn *conn)
{
	return READ_ONCE(conn->state) == L4LB_TCP_TIME_WAIT;
}

/* May another connection have its local end? */
static bool is_over(const struct l4lb_conn *conn)
{
	return !l4lb_conn_alive(conn) ||
	       (is_closed(conn) && l4lb_conn_idle(conn) >= REST);
}

/* Inserts @conn with the end that it has now.  Return: as l4lb_conn_table_insert_local(). */
static struct l4lb_conn *try_end(struct l4lb_conn_table *table, struct l4lb_conn *conn,
				 struct l4lb_victim *victim)
{
	struct l4lb_conn *old = l4lb_conn_table_insert_local(table, conn);

	/* Others have the packets' header by chance. */
	if (IS_ERR_OR_NULL(old) || old->method != L4LB_FULL_NAT)
		return old;
	if (is_over(old)) {
		l4lb_conn_kill(old, L4LB_END_EXPIRED);
		return l4lb_conn_table_insert_local(table, conn);
	}
	if (!is_closed(old))
		l4lb_victim_offer(victim, old);
	return old;
}

struct l4lb_conn *l4lb_conn_local_insert(struct l4lb_conn_table *table,
					 struct l4lb_conn *conn, u64 hash)
{
	const struct l4lb_service *svc = rcu_dereference(conn->server->svc);
	struct l4lb_local *local = &conn->local;
	struct l4lb_victim victim;
	struct l4lb_conn *old;
	u64 i;

	l4lb_victim_init(&victim);
	for (i = 0; svc && i < TRIES; i++) {
		if (!l4lb_snat_choose(svc, siphash_2u64(hash, i, &table->key),
				      &local->addr, &local->port))
			break;
		old = try_end(table, conn, &victim);
		if (IS_ERR_OR_NULL(old))
			return old;
	}
	if (victim.conn) {
		*local = victim.conn->local;
		l4lb_conn_table_give_up(table, victim.conn);
		old = l4lb_conn_table_insert_local(table, conn);
		if (IS_ERR_OR_NULL(old))
			return old;
	}
	return ERR_PTR(-EADDRINUSE);
}
