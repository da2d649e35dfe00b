/* SPDX-License-Identifier: GPL-2.0 */
/* Netfilter attachment. */
#ifndef _L4LB_HOOK_H
#define _L4LB_HOOK_H

#include "base/net.h"

/* Register the hooks of a family in a namespace with its first service or real
 * server, unregister them with the last.  Configuration mutex held, may sleep.
 */
int l4lb_hook_register(struct l4lb_net *ln, u8 af);
void l4lb_hook_unregister(struct l4lb_net *ln, u8 af);

#endif /* _L4LB_HOOK_H */
