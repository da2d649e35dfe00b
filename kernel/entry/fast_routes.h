/* SPDX-License-Identifier: GPL-2.0 */
/* Address checks for first packets. */
#ifndef _L4LB_FAST_ROUTES_H
#define _L4LB_FAST_ROUTES_H

#include "entry/fast.h"

void l4lb_fast_routes_start(struct l4lb_fast *fast);
void l4lb_fast_routes_stop(struct l4lb_fast *fast);
void l4lb_fast_routes_free(struct l4lb_fast *fast);
bool l4lb_fast_source_ok(const struct l4lb_fast *fast, __be32 addr);
bool l4lb_fast_generation(const struct l4lb_fast *fast, u32 *generation);

#endif /* _L4LB_FAST_ROUTES_H */
