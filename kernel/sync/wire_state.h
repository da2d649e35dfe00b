/* SPDX-License-Identifier: GPL-2.0 */
/* Connection states as numbers of ip_vs, which messages have. */
#ifndef _L4LB_SYNC_WIRE_STATE_H
#define _L4LB_SYNC_WIRE_STATE_H

#include <linux/types.h>

/* Not for templates: 1 says that a template is assured. */

/* The enum l4lb_state that is @wire in messages; -1 if @proto has none. */
int l4lb_sync_state_of(u8 proto, u16 wire);
/* The number of @state, which is one of @proto; 0 for any other. */
u16 l4lb_sync_state_to(u8 proto, u8 state);

#endif /* _L4LB_SYNC_WIRE_STATE_H */
