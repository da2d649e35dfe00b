// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <netinet/icmp6.h>
#include <netinet/if_ether.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "kern_net.h"
#include "probe.h"

struct prober {
	const struct net *net;
	struct probe *v;
	size_t n, left;
	int arp, icmp;		/* sockets, or -1 */
};

static int cmp_probe(const void *a, const void *b)
{
	const struct probe *x = a, *y = b;

	if (x->link != y->link)
		return x->link < y->link ? -1 : 1;
	if (x->af != y->af)
		return x->af < y->af ? -1 : 1;
	return memcmp(x->addr.b, y->addr.b, sizeof(x->addr.b));
}

/* One of our devices may answer for another one. */
static bool is_ours(const struct net *net, const uint8_t mac[6])
{
	size_t i;

	for (i = 0; i < net->nlinks; i++)
		if (!memcmp(net->links[i].mac, mac, 6))
			return true;
	return false;
}

static void take(struct prober *p, const struct probe *answer)
{
	struct probe *found = bsearch(answer, p->v, p->n, sizeof(*answer),
				      cmp_probe);

	if (!found || found->answered || is_ours(p->net, answer->mac))
		return;
	found->answered = true;
	memcpy(found->mac, answer->mac, 6);
	p->left--;
}

static void take_arp(struct prober *p)
{
	struct probe answer = { .af = AF_INET };
	struct sockaddr_ll from = { 0 };
	socklen_t len = sizeof(from);
	struct ether_arp arp;

	if (recvfrom(p->arp, &arp, sizeof(arp), MSG_DONTWAIT,
		     (struct sockaddr *)&from, &len) < (ssize_t)sizeof(arp) ||
	    arp.arp_op != htons(ARPOP_REPLY))
		return;
	answer.link = from.sll_ifindex;
	memcpy(answer.addr.b, arp.arp_spa, 4);
	memcpy(answer.mac, arp.arp_sha, 6);
	take(p, &answer);
}

static int device_of(struct msghdr *msg)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO)
			return (int)((struct in6_pktinfo *)CMSG_DATA(c))->ipi6_ifindex;
	return 0;
}

static void take_icmp(struct prober *p)
{
	struct { struct nd_neighbor_advert na; uint8_t options[256]; } packet;
	char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct iovec io = { &packet, sizeof(packet) };
	struct msghdr msg = { .msg_iov = &io, .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct probe answer = { .af = AF_INET6 };
	ssize_t n = recvmsg(p->icmp, &msg, MSG_DONTWAIT);

	/* The option comes first: type, length in units of 8 bytes, address. */
	if (n < (ssize_t)sizeof(packet.na) + 8 ||
	    packet.options[0] != ND_OPT_TARGET_LINKADDR ||
	    packet.options[1] != 1)
		return;
	answer.link = device_of(&msg);
	memcpy(answer.addr.b, &packet.na.nd_na_target, 16);
	memcpy(answer.mac, packet.options + 2, 6);
	take(p, &answer);
}

static void ask_arp(const struct prober *p, const struct probe *q,
		    const struct net_link *link)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ARP),
		.sll_ifindex = q->link, .sll_halen = 6,
	};
	struct ether_arp arp = {
		.ea_hdr = { htons(ARPHRD_ETHER), htons(ETH_P_IP), 6, 4,
			    htons(ARPOP_REQUEST) },
	};

	memset(to.sll_addr, 0xff, 6);
	memcpy(arp.arp_sha, link->mac, 6);
	memcpy(arp.arp_tpa, q->addr.b, 4);
	sendto(p->arp, &arp, sizeof(arp), 0, (struct sockaddr *)&to, sizeof(to));
}

static void ask_icmp(const struct prober *p, const struct probe *q,
		     const struct net_link *link)
{
	struct { struct nd_neighbor_solicit ns; uint8_t option[8]; } packet = {
		.ns.nd_ns_type = ND_NEIGHBOR_SOLICIT,
		.option = { ND_OPT_SOURCE_LINKADDR, 1 },
	};
	struct sockaddr_in6 to = {
		.sin6_family = AF_INET6, .sin6_scope_id = (uint32_t)q->link,
		.sin6_addr.s6_addr = { 0xff, 2, [11] = 1, 0xff },
	};

	memcpy(packet.option + 2, link->mac, 6);
	memcpy(&packet.ns.nd_ns_target, q->addr.b, 16);
	memcpy(to.sin6_addr.s6_addr + 13, q->addr.b + 13, 3);
	sendto(p->icmp, &packet, sizeof(packet), 0, (struct sockaddr *)&to,
	       sizeof(to));
}

static void ask(struct prober *p)
{
	size_t i;

	for (i = 0; i < p->n; i++) {
		const struct net_link *link = net_link(p->net, p->v[i].link);

		if (p->v[i].answered || !link)
			continue;
		if (p->v[i].af == AF_INET)
			ask_arp(p, &p->v[i], link);
		else
			ask_icmp(p, &p->v[i], link);
	}
}

static void listen_for(struct prober *p)
{
	struct pollfd fds[] = { { .fd = p->arp, .events = POLLIN },
				{ .fd = p->icmp, .events = POLLIN } };
	int64_t end = clock_ms(CLOCK_MONOTONIC) + PROBE_WAIT_MS, left;

	while (p->left && (left = end - clock_ms(CLOCK_MONOTONIC)) > 0) {
		if (poll(fds, 2, (int)left) <= 0)
			return;
		if (fds[0].revents)
			take_arp(p);
		if (fds[1].revents)
			take_icmp(p);
	}
}

static int open_sockets(struct prober *p)
{
	int on = 1, hops = 255, loop = 0;
	struct icmp6_filter filter;

	p->arp = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ARP));
	if (p->arp < 0)
		return -errno;
	/* Without IPv6 there are no such probes. */
	p->icmp = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6);
	if (p->icmp < 0)
		return 0;
	ICMP6_FILTER_SETBLOCKALL(&filter);
	ICMP6_FILTER_SETPASS(ND_NEIGHBOR_ADVERT, &filter);
	setsockopt(p->icmp, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof(filter));
	setsockopt(p->icmp, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops));
	setsockopt(p->icmp, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &loop, sizeof(loop));
	setsockopt(p->icmp, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
	return 0;
}

int probe_links(const struct net *net, struct probe *v, size_t n, bool all)
{
	struct prober p = { .net = net, .v = v, .n = n, .left = n,
			    .arp = -1, .icmp = -1 };
	int err = open_sockets(&p);

	qsort(v, n, sizeof(*v), cmp_probe);
	if (!err) {
		ask(&p);
		listen_for(&p);
	}
	if (!err && all && p.left) {
		ask(&p);
		listen_for(&p);
	}
	if (p.arp >= 0)
		close(p.arp);
	if (p.icmp >= 0)
		close(p.icmp);
	return err;
}
