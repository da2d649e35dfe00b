/* SPDX-License-Identifier: GPL-2.0 */
/* Defence against floods: drop_entry, drop_packet, secure_tcp. */
#ifndef _L4LB_DEFENCE_H
#define _L4LB_DEFENCE_H

#include "base/net.h"

struct l4lb_conn;

/* Values of the three sysctls; READY and LOW change automatically. */
enum l4lb_defence_mode {
	L4LB_DEFENCE_OFF,
	L4LB_DEFENCE_READY,	/* automatic, there is memory */
	L4LB_DEFENCE_LOW,	/* automatic, memory is low */
	L4LB_DEFENCE_ALWAYS,
};

static inline bool l4lb_defence_works(const int *mode)
{
	return READ_ONCE(*mode) >= L4LB_DEFENCE_LOW;
}

/* Packet path: shall this attempt to schedule a new flow fail? */
bool l4lb_defence_drops_packet(struct l4lb_net *ln);

/* Sweep, while drop_entry is active: shall @conn be dropped? */
bool l4lb_defence_drops_entry(const struct l4lb_conn *conn);

/* In which order connections and templates are evicted for new ones.  Forged
 * addresses can make any number of the first two kinds, so those go before
 * connections that were answered.
 */
enum l4lb_victim_class {
	L4LB_VICTIM_USELESS,	/* expired; its real server was removed */
	L4LB_VICTIM_FIRST,	/* half-open; over; one datagram, no answer;
				 * a template that only such ones have used;
				 * a copy of what another director has
				 */
	L4LB_VICTIM_SECOND,	/* few packets, all of the client; a template
				 * that is not trusted
				 */
	L4LB_VICTIM_LAST,	/* few datagrams, answered; a trusted template
				 * that is not held
				 */
	L4LB_VICTIM_NEVER,
};

enum l4lb_victim_class l4lb_defence_victim(const struct l4lb_conn *conn);

/**
 * struct l4lb_victim - the best of those looked at
 * @conn: the one, or NULL
 * @class: of it
 */
struct l4lb_victim {
	struct l4lb_conn		*conn;
	enum l4lb_victim_class		class;
};

static inline void l4lb_victim_init(struct l4lb_victim *victim)
{
	victim->conn = NULL;
	victim->class = L4LB_VICTIM_NEVER;
}

/* Take @conn if it is not worse; of two of a class, the one that was idle for
 * longer is.
 */
void l4lb_victim_offer(struct l4lb_victim *victim, struct l4lb_conn *conn);

void l4lb_defence_init(struct l4lb_net *ln);
void l4lb_defence_exit(struct l4lb_net *ln);
/* Call it after setting a mode. */
void l4lb_defence_changed(struct l4lb_net *ln);
/* Call it after adding a service.  Configuration mutex held. */
void l4lb_defence_kick(struct l4lb_net *ln);

#endif /* _L4LB_DEFENCE_H */
