/* SPDX-License-Identifier: GPL-2.0 */
/* Full NAT: the addresses of this host that real servers see as their clients. */
#ifndef _L4LB_SNAT_H
#define _L4LB_SNAT_H

#include <linux/seqlock.h>

#include "service/service.h"

/* Ports that a connection may get; those below are for programs of this host. */
enum {
	L4LB_SNAT_PORT_MIN	= 1024,
	L4LB_SNAT_PORTS		= 65536 - L4LB_SNAT_PORT_MIN,
};

/**
 * struct l4lb_snat - the range of a service, once it has or had one
 * @lock: of the others
 * @first: address
 * @n: number of addresses; 0: the service has no range now
 */
struct l4lb_snat {
	seqlock_t		lock;
	union nf_inet_addr	first;
	u32			n;
};

/* Is @range, which is not empty, one that any host could have? */
int l4lb_snat_check(const struct l4lb_snat_range *range,
		    struct netlink_ext_ack *extack);

/* Configuration mutex held; reserve() may sleep. */
int l4lb_snat_reserve(struct l4lb_service *svc, const struct l4lb_policy *policy,
		      struct netlink_ext_ack *extack);
void l4lb_snat_set(struct l4lb_service *svc, const struct l4lb_policy *policy);
void l4lb_snat_free(struct l4lb_service *svc);	/* no reader is left */

/* Packet path, RCU, BH off.  An address and a port of the range of @svc, by a number at
 * random.  False: it has no range, or all ports are reserved.
 */
bool l4lb_snat_choose(const struct l4lb_service *svc, u64 random,
		      union nf_inet_addr *addr, __be16 *port);

#endif /* _L4LB_SNAT_H */
