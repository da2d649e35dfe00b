// SPDX-License-Identifier: GPL-2.0
#include <linux/ip_vs.h>

#include <string.h>

#include "doctor_offload.h"
#include "exam.h"
#include "kern_ethtool.h"
#include "kern_xdp.h"
#include "proc.h"
#include "report.h"

/* Forwarding by IP switches LRO off, and NAT needs it. The other methods work without. */
static bool has_other_than_nat(const struct exam *e)
{
	size_t i, j;

	for (i = 0; i < e->list.n; i++)
		for (j = 0; j < e->list.v[i].nservers; j++) {
			uint32_t method = e->list.v[i].servers[j].forward;

			if ((method & IP_VS_CONN_F_FWD_MASK) != IP_VS_CONN_F_MASQ)
				return true;
		}
	return false;
}

/* The fast path switches LRO off, too, on its devices. */
void check_lro(const struct exam *e, struct report *r)
{
	uint32_t flags;
	size_t i;

	if (!has_other_than_nat(e))
		return;
	for (i = 0; i < e->net.nlinks; i++) {
		const struct net_link *link = &e->net.links[i];

		if (!(link->flags & IFF_UP) ||
		    !ethtool_flags(link->name, &flags) || !(flags & ETH_FLAG_LRO))
			continue;
		report_add(r, SEVERITY_WARNING, link->name,
			   "LRO merges packets: they may be too large to forward");
		report_cure(r, "ethtool -K %s lro off", link->name);
	}
}

struct left_by_xdp {
	uint64_t offload, exit;
};

static void take_left(const struct proc_counter *c, void *arg)
{
	struct left_by_xdp *left = arg;

	if (!strcmp(c->name, "xdp_offload"))
		left->offload = c->value;
	else if (!strcmp(c->name, "xdp_exit"))
		left->exit = c->value;
}

/* The counters are of all devices since the module was loaded: as such no mistake. */
static void say_left(struct report *r, const struct left_by_xdp *left)
{
	if (left->offload)
		report_add(r, SEVERITY_NOTE, NULL,
			   "%llu packets went on without XDP, since a checksum or a tag may be hidden: see doc/xdp.md if it grows",
			   (unsigned long long)left->offload);
	if (left->exit)
		report_add(r, SEVERITY_NOTE, NULL,
			   "%llu packets went on without XDP, since the device on their way out took no frames: see doc/xdp.md if it grows",
			   (unsigned long long)left->exit);
}

/* Packets that XDP leaves to the stack because of how devices are set up. */
void check_xdp(const struct exam *e, struct report *r)
{
	struct left_by_xdp left = { 0 };
	struct xdp_programs programs;
	bool attached = false;
	size_t i;

	if (!e->module || proc_counters(take_left, &left))
		return;
	kern_xdp_programs(&programs);
	for (i = 0; programs.n && i < e->net.nlinks; i++) {
		const struct net_link *link = &e->net.links[i];
		uint32_t flags;

		if (xdp_state_of(&programs, link->index) != XDP_STATE_OURS)
			continue;
		attached = true;
		/* A veth takes no tags off: the flag means nothing there. */
		if (!ethtool_flags(link->name, &flags) || !(flags & ETH_FLAG_RXVLAN) ||
		    ethtool_is(link->name, "veth"))
			continue;
		report_add(r, SEVERITY_WARNING, link->name,
			   "it takes VLAN tags off: no packet is forwarded by XDP");
		report_cure(r, "ethtool -K %s rxvlan off", link->name);
	}
	xdp_programs_free(&programs);
	if (attached)
		say_left(r, &left);
}
