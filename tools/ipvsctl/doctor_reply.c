// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <linux/ip_vs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_reply.h"
#include "exam.h"
#include "kern_conn.h"
#include "proc.h"
#include "report.h"
#include "snat.h"
#include "wire.h"

enum {
	/* A reply to the only packet of a server may still be on its way. */
	PACKETS_ENOUGH = 2,
	/* So many servers are looked at, and so many connections of each. */
	SUSPECTS_MAX = 16,
};

/* Replies of a server to NAT come in by a device; NULL for a server that is this
 * machine or cannot be reached, or answers to an address of this machine (snat).
 */
static const struct net_link *reply_device(const struct exam *e,
					   const struct service *svc,
					   const struct server *srv)
{
	const struct net_route *route = exam_route(e, srv);

	if ((srv->forward & IP_VS_CONN_F_FWD_MASK) != IP_VS_CONN_F_MASQ ||
	    snat_size(&svc->policy) || route->kind != ROUTE_UNICAST)
		return NULL;
	return net_link(&e->net, route->link);
}

static bool is_off(const char *dir, const char *name, const char *setting)
{
	uint64_t value;
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/%s%s%s", dir, name, setting);
	return exam_number(path, &value) && !value;
}

/* The sysctl that keeps this server's replies from being forwarded, or NULL. In
 * IPv4 the device where they arrive decides, which ip_forward sets for all.
 */
static const char *closed(const struct server *srv, const struct net_link *dev)
{
	static char name[80];

	if (srv->af == AF_INET6)
		return is_off("ipv6/conf/", "all", "/forwarding") ?
		       "net.ipv6.conf.all.forwarding" : NULL;
	if (is_off("ipv4/", "ip_forward", ""))
		return "net.ipv4.ip_forward";
	snprintf(name, sizeof(name), "net.ipv4.conf.%s.forwarding", dev->name);
	return is_off("ipv4/conf/", dev->name, "/forwarding") ? name : NULL;
}

void check_forwarding(const struct exam *e, struct report *r)
{
	char said[80] = "", said6[80] = "";
	size_t i, j;

	for (i = 0; i < e->list.n; i++)
		for (j = 0; j < e->list.v[i].nservers; j++) {
			const struct server *srv = &e->list.v[i].servers[j];
			const struct net_link *dev = reply_device(e, &e->list.v[i], srv);
			char *before = srv->af == AF_INET ? said : said6;
			const char *name = dev ? closed(srv, dev) : NULL;

			if (!name || !strcmp(name, before))
				continue;
			strcpy(before, name);
			report_add(r, SEVERITY_ERROR,
				   svc_text(&e->list.v[i].id),
				   "%s is 0: replies of NAT servers end here",
				   name);
			report_cure(r, "sysctl -w %s=1", name);
		}
}

struct near {
	const struct exam *e;
	const struct net_route *server;
	unsigned int seen;
	bool found;
	uint16_t af;
	struct ip client;
};

/* A client on the server's link hears from the server itself. */
static bool look_at_client(const struct conn *c, void *arg)
{
	struct near *near = arg;
	struct net_route route;

	net_route(&near->e->net, c->af, &c->client, &route);
	near->found = route.kind == ROUTE_UNICAST && !route.gateway &&
		      !near->server->gateway &&
		      route.link == near->server->link;
	near->af = c->af;
	near->client = c->client;
	return !near->found && ++near->seen < SUSPECTS_MAX;
}

static bool is_translated(void)
{
	uint64_t value;

	return proc_setting("conntrack", &value) && value;
}

static bool client_is_near(const struct exam *e, const struct server *srv,
			   struct near *near)
{
	struct conn_filter f = {
		.by_server = true,
		.server = { .af = srv->af, .port = srv->port, .has_port = true,
			    .addr = srv->addr },
	};

	*near = (struct near){ .e = e, .server = exam_route(e, srv) };
	/* The rest of a long answer is not read: the next command needs a socket. */
	return !kern_conns(&f, look_at_client, near) && !wire_open() && near->found;
}

static void no_reply(const struct exam *e, struct report *r,
		     const struct service *svc, const struct server *srv)
{
	const struct net_route *route = exam_route(e, srv);
	const char *what = exam_server_text(svc, srv);
	struct near near;

	if (client_is_near(e, srv, &near) && !is_translated()) {
		report_add(r, SEVERITY_ERROR, what,
			   "it answers client %s, in its network, directly",
			   ip_text(near.af, &near.client));
		report_cure(r, "direct routing (dr) for such clients");
		return;
	}
	report_add(r, SEVERITY_ERROR, what,
		   "%llu packets went there, no reply came back here",
		   (unsigned long long)srv->stats.inpkts);
	report_cure(r, "on the server: ip route replace default via %s",
		    ip_text(srv->af, &route->source));
}

/* An established connection is seen by its replies; without one, the number of
 * active connections is that of half-open ones.
 */
void check_replies(const struct exam *e, struct report *r)
{
	size_t i, j, suspects = 0;

	for (i = 0; i < e->list.n; i++) {
		const struct service *svc = &e->list.v[i];

		for (j = 0; j < svc->nservers && suspects < SUSPECTS_MAX; j++) {
			const struct server *srv = &svc->servers[j];
			const struct net_neigh *neigh;
			const struct net_link *dev = reply_device(e, svc, srv);
			const struct net_route *route = exam_route(e, srv);

			if (!dev || !(dev->flags & IFF_RUNNING) ||
			    (svc->id.proto != IPPROTO_TCP && !svc->id.fwmark) ||
			    !srv->active || srv->stats.outpkts ||
			    srv->stats.inpkts < PACKETS_ENOUGH)
				continue;
			/* Who cannot be reached does not answer, as another check says. */
			neigh = net_neigh(&e->net, route->link, route->next_af,
					  &route->next);
			if (net_link_resolves(dev) && (!neigh || !neigh->has_mac))
				continue;
			suspects++;
			no_reply(e, r, svc, srv);
		}
	}
}

/* A counter of /proc/net/netstat: a line of names, then one of numbers. */
static uint64_t counted(const char *name)
{
	static const char between[] = { ' ', '\n', 0 };
	char *names = NULL, *numbers = NULL, *n, *v, *at, *at2;
	size_t size = 0, size2 = 0;
	uint64_t value = 0;
	FILE *f = fopen("/proc/net/netstat", "re");

	while (f && getline(&names, &size, f) > 0 &&
	       getline(&numbers, &size2, f) > 0) {
		n = strtok_r(names, between, &at);
		v = strtok_r(numbers, between, &at2);
		while (n && v && strcmp(n, name)) {
			n = strtok_r(NULL, between, &at);
			v = strtok_r(NULL, between, &at2);
		}
		if (n && v)
			value = strtoull(v, NULL, 10);
	}
	if (f)
		fclose(f);
	free(names);
	free(numbers);
	return value;
}

static bool is_strict(const char *device)
{
	uint64_t all = 0, own = 0;
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/rp_filter", device);
	exam_number("/proc/sys/net/ipv4/conf/all/rp_filter", &all);
	exam_number(path, &own);
	return (own > all ? own : all) == 1;
}

/* Strict filters are common and mostly right. This one is wrong if the way to
 * clients, for whom a far address stands, begins at another device, and packets were
 * in fact dropped.
 */
void check_rp_filter(const struct exam *e, struct report *r)
{
	/* 198.18.0.1, of a network that is nowhere */
	const struct ip far = { .b = { 198, 18, 0, 1 } };
	uint64_t dropped = counted("IPReversePathFilter");
	const struct net_link *dev;
	struct net_route route;
	int said = 0;
	size_t i;

	if (!dropped)
		return;
	net_route(&e->net, AF_INET, &far, &route);
	for (i = 0; i < e->vips.n; i++) {
		const struct net_addr *vip = net_addr(&e->net, e->vips.v[i].af,
						      &e->vips.v[i].addr);

		dev = vip && vip->af == AF_INET ? net_link(&e->net, vip->link) : NULL;
		if (!dev || (dev->flags & IFF_LOOPBACK) || dev->index == said ||
		    dev->index == route.link || !is_strict(dev->name))
			continue;
		said = dev->index;
		report_add(r, SEVERITY_WARNING, svc_text(&e->vips.v[i].svc->id),
			   "strict rp_filter on %s, which has no default route, dropped packets (%llu)",
			   dev->name, (unsigned long long)dropped);
		report_cure(r, "ip route add CLIENTS/LEN via GATEWAY dev %s",
			    dev->name);
	}
}
