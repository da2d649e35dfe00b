/* SPDX-License-Identifier: GPL-2.0 */
/* Events of the family L4LB, which in-tree ip_vs lacks. */
#ifndef IPVSCTL_KERN_EVENT_H
#define IPVSCTL_KERN_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "../../kernel/l4lb.h"
#include "model.h"

/* Beside those of enum l4lb_event: */
enum {
	EVENT_LOST	= 100,	/* .count events did not arrive */
	EVENT_PEER,		/* .peer is in .peer_state now */
};

struct event {
	uint32_t what;		/* enum l4lb_event, or the above */
	uint64_t count;
	bool has_service, has_server;
	struct service svc;	/* its name, and perhaps its scheduler */
	struct server srv;
	uint16_t peer_af;
	struct ip peer;
	uint32_t peer_state;	/* enum l4lb_peer_state */
};

/* These return 0 or -errno and record no failure; wire_open() comes first. */

/* Joins the group. -EOPNOTSUPP: the module has no events. */
int kern_event_open(void);
/* To be polled. */
int kern_event_fd(void);
/* Calls @fn for each event that has come, without waiting. */
int kern_event_read(void (*fn)(const struct event *e, void *arg), void *arg);
void kern_event_close(void);

#endif
