// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "doctor_pair.h"
#include "exam.h"
#include "kern_peer.h"
#include "report.h"

/* A peer says something each second. */
enum { SILENT_MS = 10000 };

static const struct net_link *device(const struct exam *e, const char *name)
{
	size_t i;

	for (i = 0; i < e->net.nlinks; i++)
		if (!strcmp(e->net.links[i].name, name))
			return &e->net.links[i];
	return NULL;
}

void check_sync(const struct exam *e, struct report *r)
{
	int i;

	if (e->list.n && !e->ndaemons && exam_is_paired(e)) {
		report_add(r, SEVERITY_WARNING, NULL,
			   "VRRP runs here, but connections are not shared: a takeover ends them");
		report_cure(r, "ipvsctl sync start both dev DEVICE, on both directors");
	}
	for (i = 0; i < e->ndaemons; i++) {
		const struct net_link *dev = device(e, e->daemons[i].dev);

		if (dev && (dev->flags & IFF_UP) && (dev->flags & IFF_RUNNING))
			continue;
		report_add(r, SEVERITY_ERROR, e->daemons[i].dev,
			   "connections cannot be shared: the device is %s",
			   !dev ? "not there" : dev->flags & IFF_UP ?
			   "without carrier" : "down");
		report_cure(r, "ip link set %s up; see to its cable",
			    e->daemons[i].dev);
		return;
	}
}

void check_peer(const struct exam *e, struct report *r)
{
	struct sync_peer peers[L4LB_PEERS_MAX];
	int i, n = e->module ? kern_peers(peers) : 0;

	for (i = 0; i < n; i++) {
		const struct sync_peer *p = &peers[i];

		if (p->heard && p->heard_ms < SILENT_MS)
			continue;
		if (p->heard)
			report_add(r, SEVERITY_WARNING, ip_text(p->af, &p->addr),
				   "the other director has not been heard for %llu s",
				   (unsigned long long)p->heard_ms / 1000);
		else
			report_add(r, SEVERITY_WARNING, ip_text(p->af, &p->addr),
				   "the other director has not been heard yet");
		report_cure(r, "on it: ipvsctl sync show; the firewall must let UDP port %u in",
			    p->port);
	}
}
