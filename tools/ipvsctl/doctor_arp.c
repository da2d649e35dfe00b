// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/ip_vs.h>
#include <linux/neighbour.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_arp.h"
#include "exam.h"
#include "probe.h"
#include "report.h"

struct probes {
	struct probe *v;
	size_t n, max;
};

static void add(struct probes *p, int link, uint16_t af, const struct ip *addr)
{
	struct probe *q;
	size_t i;

	/* Many servers may be behind one router; those are neighbours in the list. */
	for (i = p->n > 8 ? p->n - 8 : 0; i < p->n; i++)
		if (p->v[i].link == link && p->v[i].af == af &&
		    ip_equal(&p->v[i].addr, addr))
			return;
	if (p->n == p->max)
		return;
	q = &p->v[p->n++];
	*q = (struct probe){ .link = link, .af = af, .addr = *addr };
}

static bool start(struct probes *p, struct report *r)
{
	*p = (struct probes){ .max = PROBES_MAX };
	p->v = calloc(p->max, sizeof(*p->v));
	if (!p->v)
		report_unknown(r, "out of memory");
	return p->v;
}

static bool ask(struct probes *p, const struct exam *e, struct report *r,
		bool all)
{
	int err;

	if (!p->n)
		return false;
	err = probe_links(&e->net, p->v, p->n, all);
	if (err)
		report_unknown(r, "a link cannot be asked: %s%s", strerror(-err),
			       err == -EPERM ? " (it needs CAP_NET_RAW)" : "");
	else if (p->n == p->max)
		report_unknown(r, "only the first %zu addresses were asked for", p->max);
	return !err;
}

/* The kernel has seen an answer, not long ago or by a person's word. */
static bool is_known(const struct net_neigh *neigh)
{
	return neigh && !(neigh->state & (NUD_FAILED | NUD_INCOMPLETE)) &&
	       neigh->state != NUD_NONE;
}

static const struct exam_place *behind(const struct exam *e,
				       const struct probe *q)
{
	size_t i;

	for (i = 0; i < e->servers.n; i++) {
		const struct net_route *way = &e->servers.v[i].route;

		if (way->kind == ROUTE_UNICAST && way->link == q->link &&
		    way->next_af == q->af && ip_equal(&way->next, &q->addr))
			return &e->servers.v[i];
	}
	return NULL;
}

static void is_silent(const struct exam *e, struct report *r,
		      const struct probe *q)
{
	const struct exam_place *to = behind(e, q);
	const struct net_link *link = net_link(&e->net, q->link);

	if (!to || !link)
		return;
	report_add(r, SEVERITY_ERROR, exam_server_text(to->svc, to->srv),
		   "%s%s does not answer %s on %s",
		   to->route.gateway ? "the router " : "it",
		   to->route.gateway ? ip_text(q->af, &q->addr) : "",
		   q->af == AF_INET ? "ARP" : "NDP", link->name);
	report_cure(r, "see that it is on, and on the link of %s", link->name);
}

void check_neighbour(const struct exam *e, struct report *r)
{
	struct probes p;
	size_t i;
	bool asked;

	if (!start(&p, r))
		return;
	for (i = 0; i < e->servers.n; i++) {
		const struct net_route *way = &e->servers.v[i].route;
		const struct net_link *link = net_link(&e->net, way->link);

		if (way->kind == ROUTE_UNICAST && net_link_resolves(link) &&
		    (link->flags & IFF_RUNNING) &&
		    !is_known(net_neigh(&e->net, way->link, way->next_af,
					&way->next)))
			add(&p, way->link, way->next_af, &way->next);
	}
	asked = ask(&p, e, r, true);
	for (i = 0; i < p.n; i++) {
		/* Who cannot ask has the kernel's word, if it has tried. */
		if (asked ? !p.v[i].answered :
		    !!net_neigh(&e->net, p.v[i].link, p.v[i].af, &p.v[i].addr))
			is_silent(e, r, &p.v[i]);
	}
	free(p.v);
}

/* The links from which clients or servers ask for the VIP: that of its device. */
static void add_vip(struct probes *p, const struct exam *e,
		    const struct exam_place *vip)
{
	const struct net_addr *addr = net_addr(&e->net, vip->af, &vip->addr);
	const struct net_link *link = addr ? net_link(&e->net, addr->link) : NULL;
	size_t i;

	if (!link || (addr->flags & IFA_F_DADFAILED))
		return;
	if (net_link_resolves(link)) {
		add(p, addr->link, vip->af, &vip->addr);
		return;
	}
	for (i = 0; i < e->servers.n; i++) {
		const struct net_route *way = &e->servers.v[i].route;

		if (way->kind == ROUTE_UNICAST &&
		    net_link_resolves(net_link(&e->net, way->link)))
			add(p, way->link, vip->af, &vip->addr);
	}
}

static const struct exam_place *vip_of(const struct exam *e,
				       const struct probe *q)
{
	size_t i;

	for (i = 0; i < e->vips.n; i++)
		if (e->vips.v[i].af == q->af &&
		    ip_equal(&e->vips.v[i].addr, &q->addr))
			return &e->vips.v[i];
	return NULL;
}

/* The name by which its owner knows it, if it is a server that was asked before. */
static const char *name_of(const struct exam *e, const struct probe *q)
{
	const struct net_neigh *neigh;
	size_t i;

	for (i = 0; i < e->servers.n; i++) {
		const struct exam_place *to = &e->servers.v[i];

		if (to->route.kind != ROUTE_UNICAST || to->route.gateway ||
		    to->route.link != q->link)
			continue;
		neigh = net_neigh(&e->net, q->link, to->af, &to->addr);
		if (neigh && neigh->has_mac && !memcmp(neigh->mac, q->mac, 6))
			return ip_text(to->af, &to->addr);
	}
	neigh = net_neigh_by_mac(&e->net, q->link, q->af, q->mac);
	return neigh ? ip_text(neigh->af, &neigh->addr) : NULL;
}

static const char not_for_vips[] =
	"net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2";

static void another_answers(const struct exam *e, struct report *r,
			    const struct probe *q)
{
	const struct net_link *link = net_link(&e->net, q->link);
	const struct exam_place *vip = vip_of(e, q);
	const char *who = name_of(e, q);

	if (!vip || !link)
		return;
	report_add(r, SEVERITY_ERROR, svc_text(&vip->svc->id),
		   "%s%s%02x:%02x:%02x:%02x:%02x:%02x%s answers for the VIP, too, on %s",
		   who ? who : "", who ? " (" : "", q->mac[0], q->mac[1], q->mac[2],
		   q->mac[3], q->mac[4], q->mac[5], who ? ")" : "", link->name);
	if (q->af == AF_INET)
		report_cure(r, "on %s: sysctl -w %s", who ? who : "that machine",
			    not_for_vips);
	else
		report_cure(r, "on %s: the VIP on lo only (ip addr add %s/128 dev lo)",
			    who ? who : "that machine", ip_text(q->af, &q->addr));
}

void check_vip_answer(const struct exam *e, struct report *r)
{
	struct probes p;
	size_t i;

	if (!start(&p, r))
		return;
	for (i = 0; i < e->vips.n; i++)
		if (e->vips.v[i].route.kind == ROUTE_LOCAL)
			add_vip(&p, e, &e->vips.v[i]);
	if (ask(&p, e, r, false))
		for (i = 0; i < p.n; i++)
			if (p.v[i].answered)
				another_answers(e, r, &p.v[i]);
	free(p.v);
}
