/* SPDX-License-Identifier: GPL-2.0 */
/* Asks a link who has an address, by ARP or neighbour solicitation. Nobody learns
 * anything from it: an ARP request has no sender's address, as before an address is
 * taken (RFC 5227).
 */
#ifndef IPVSCTL_PROBE_H
#define IPVSCTL_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ident.h"

struct net;

struct probe {
	int link;
	uint16_t af;
	struct ip addr;
	bool answered;		/* by another machine */
	uint8_t mac[6];		/* of the first one */
};

enum { PROBES_MAX = 1024, PROBE_WAIT_MS = 300 };

/* Asks for each of @v, at most PROBES_MAX; sorts them. Waits PROBE_WAIT_MS, or with
 * @all twice as long, for those that have not answered, and asks again in between.
 * Returns 0 or -errno.
 */
int probe_links(const struct net *net, struct probe *v, size_t n, bool all);

#endif
