// SPDX-License-Identifier: GPL-2.0
#include <linux/if_addr.h>
#include <linux/ip_vs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "backend.h"
#include "doctor_path.h"
#include "exam.h"
#include "proc.h"
#include "report.h"

/* Outer headers: IP, and for GUE and GRE what follows it, without options. */
enum { IPV4_HEADER = 20, IPV6_HEADER = 40, GUE_HEADERS = 12, GRE_HEADER = 4 };

static bool forwards(const struct server *srv, uint32_t method)
{
	return (srv->forward & IP_VS_CONN_F_FWD_MASK) == method;
}

static const char *device_name(const struct exam *e, int index)
{
	const struct net_link *link = net_link(&e->net, index);

	return link ? link->name : "?";
}

static void vip_is_away(const struct exam *e, struct report *r,
			const struct exam_place *vip)
{
	const char *text = ip_text(vip->af, &vip->addr);
	uint64_t nonlocal = 0;

	if (exam_is_paired(e))
		return;		/* the other director has it now */
	if (vip->route.kind == ROUTE_UNICAST &&
	    proc_setting("nonlocal_vip", &nonlocal) && nonlocal)
		return;
	report_add(r, SEVERITY_ERROR, svc_text(&vip->svc->id),
		   "VIP %s is on no device of this machine", text);
	if (svc_is_range(&vip->svc->id)) {
		report_cure(r, "ip route add local %s/%u dev lo", text,
			    vip->svc->id.prefix_len);
		return;
	}
	report_cure(r, "ip addr add %s/%d dev DEVICE, or let keepalived do it", text,
		    vip->af == AF_INET ? 32 : 128);
}

/* Of an address that this machine has. */
static void vip_is_useless(const struct exam *e, struct report *r,
			   const struct exam_place *vip,
			   const struct net_addr *addr)
{
	const struct net_link *link = net_link(&e->net, addr->link);
	const char *text = ip_text(vip->af, &vip->addr);

	if (addr->flags & IFA_F_DADFAILED) {
		report_add(r, SEVERITY_ERROR, svc_text(&vip->svc->id),
			   "another machine on %s has VIP %s: it is not used here",
			   device_name(e, addr->link), text);
		report_cure(r, "on that machine: the VIP on lo only (ip addr add %s/128 dev lo)",
			    text);
	} else if (net_link_resolves(link) && !(link->flags & IFF_UP)) {
		report_add(r, SEVERITY_ERROR, svc_text(&vip->svc->id),
			   "VIP %s is on %s, which is down", text, link->name);
		report_cure(r, "ip link set %s up", link->name);
	}
}

void check_vip(const struct exam *e, struct report *r)
{
	size_t i;

	for (i = 0; i < e->vips.n; i++) {
		const struct exam_place *vip = &e->vips.v[i];
		const struct net_addr *addr = net_addr(&e->net, vip->af,
						       &vip->addr);

		if (addr)
			vip_is_useless(e, r, vip, addr);
		else if (vip->route.kind != ROUTE_LOCAL)
			vip_is_away(e, r, vip);
	}
}

/* A device whose cable is out, or whose other side is off. */
void check_device(const struct exam *e, struct report *r)
{
	size_t i, j;

	for (i = 0; i < e->net.nlinks; i++) {
		const struct net_link *link = &e->net.links[i];
		const struct exam_place *user = NULL;

		if (!(link->flags & IFF_UP) || (link->flags & IFF_RUNNING))
			continue;
		for (j = 0; j < e->servers.n && !user; j++)
			if (e->servers.v[j].route.link == link->index)
				user = &e->servers.v[j];
		if (!user)
			continue;
		report_add(r, SEVERITY_ERROR, link->name,
			   "the device has no carrier, and the way to server %s leads through it",
			   ip_text(user->af, &user->addr));
		report_cure(r, "ip link show %s; see to its cable and the switch's port",
			    link->name);
	}
}

void check_route(const struct exam *e, struct report *r)
{
	size_t i;

	for (i = 0; i < e->servers.n; i++) {
		const struct exam_place *to = &e->servers.v[i];

		if (to->route.kind != ROUTE_NONE)
			continue;
		report_add(r, SEVERITY_ERROR,
			   exam_server_text(to->svc, to->srv),
			   "no route to %s", ip_text(to->af, &to->addr));
		report_cure(r, "ip route add %s via GATEWAY",
			    ip_text(to->af, &to->addr));
	}
}

static void each_server(const struct exam *e, struct report *r,
			void (*fn)(const struct exam *e, struct report *r,
				   const struct service *svc,
				   const struct server *srv))
{
	size_t i, j;

	for (i = 0; i < e->list.n; i++)
		for (j = 0; j < e->list.v[i].nservers; j++)
			fn(e, r, &e->list.v[i], &e->list.v[i].servers[j]);
}

static void direct_to(const struct exam *e, struct report *r,
		      const struct service *svc, const struct server *srv)
{
	const struct net_route *route = exam_route(e, srv);

	if (!forwards(srv, IP_VS_CONN_F_DROUTE) ||
	    route->kind != ROUTE_UNICAST || !route->gateway)
		return;
	report_add(r, SEVERITY_ERROR, exam_server_text(svc, srv),
		   "direct routing does not pass the router %s",
		   ip_text(route->next_af, &route->next));
	report_cure(r, "tun, and a tunnel device on the server");
}

/* The router gets a packet for the VIP, and sends it back here. */
void check_direct(const struct exam *e, struct report *r)
{
	each_server(e, r, direct_to);
}

static void local_to(const struct exam *e, struct report *r,
		     const struct service *svc, const struct server *srv)
{
	if (exam_route(e, srv)->kind != ROUTE_LOCAL ||
	    forwards(srv, IP_VS_CONN_F_MASQ))
		return;
	report_add(r, SEVERITY_NOTE, exam_server_text(svc, srv),
		   "the server is this machine: a program here answers for the VIP");
}

void check_local(const struct exam *e, struct report *r)
{
	each_server(e, r, local_to);
}

static uint32_t overhead(const struct server *srv)
{
	uint32_t bytes = srv->af == AF_INET ? IPV4_HEADER : IPV6_HEADER;

	if (srv->tun_type == IP_VS_CONN_F_TUNNEL_TYPE_GUE)
		bytes += GUE_HEADERS;
	else if (srv->tun_type == IP_VS_CONN_F_TUNNEL_TYPE_GRE)
		bytes += GRE_HEADER;
	return bytes;
}

/* A tunnel always takes some bytes, of which clients are told by ICMP. It is a
 * warning if the way is narrower than the device at its beginning: a firewall that
 * drops the ICMP error makes large requests hang.
 */
static void tunnel_to(const struct exam *e, struct report *r,
		      const struct service *svc, const struct server *srv)
{
	const struct net_route *route = exam_route(e, srv);
	const struct net_link *link = net_link(&e->net, route->link);
	uint32_t left;

	if (!forwards(srv, IP_VS_CONN_F_TUNNEL) || !link ||
	    route->kind != ROUTE_UNICAST || route->mtu >= link->mtu)
		return;
	left = route->mtu - overhead(srv);
	report_add(r, SEVERITY_WARNING, exam_server_text(svc, srv),
		   "requests above %u bytes need ICMP (MTU %u)",
		   left, route->mtu);
	report_cure(r, "on the server: ip route change default via GATEWAY advmss %u",
		    left - (svc->id.af == AF_INET ? 40 : 60));
}

void check_mtu(const struct exam *e, struct report *r)
{
	each_server(e, r, tunnel_to);
}
