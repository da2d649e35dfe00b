/* SPDX-License-Identifier: GPL-2.0 */
/* Looks at what packets have changed, and tells listeners. */
#ifndef _L4LB_CONFIG_WATCH_H
#define _L4LB_CONFIG_WATCH_H

struct work_struct;

/* The work of struct l4lb_events. */
void l4lb_watch_look(struct work_struct *work);

#endif /* _L4LB_CONFIG_WATCH_H */
