/* SPDX-License-Identifier: GPL-2.0 */
/* Services for a range of addresses and ports: see range.c. */
#ifndef _L4LB_RANGE_H
#define _L4LB_RANGE_H

#include "service/service.h"

static inline bool l4lb_key_is_range(const struct l4lb_svc_key *key)
{
	return key->prefix_len;
}

/* Has it more than one VIP? */
static inline bool l4lb_key_has_vips(const struct l4lb_svc_key *key)
{
	return key->prefix_len && key->prefix_len != (key->af == AF_INET ? 32 : 128);
}

bool l4lb_key_has_vip(const struct l4lb_svc_key *key, u8 af,
		      const union nf_inet_addr *addr);

/* Packet path: RCU. */
struct l4lb_service *l4lb_range_lookup(struct l4lb_net *ln,
				       const struct l4lb_flow *flow);
struct l4lb_service *l4lb_range_of_template(struct l4lb_net *ln,
					    const struct l4lb_flow *flow);

/* Configuration mutex held. */
struct l4lb_service *l4lb_range_find(struct l4lb_net *ln,
				     const struct l4lb_svc_key *key);
int l4lb_range_add(struct l4lb_service *svc, struct netlink_ext_ack *extack);
void l4lb_range_del(struct l4lb_service *svc);

/* Those that were added since the last of these are shown to packets, in two steps, or
 * are not.
 */
int l4lb_ranges_prepare(struct l4lb_net *ln,
			bool (*stays)(const struct l4lb_service *svc),
			struct l4lb_service **refused,
			struct netlink_ext_ack *extack);
void l4lb_ranges_publish(struct l4lb_net *ln);
void l4lb_ranges_cancel(struct l4lb_net *ln);

/* No reader and no service is left. */
void l4lb_ranges_free(struct l4lb_net *ln);

#endif /* _L4LB_RANGE_H */
