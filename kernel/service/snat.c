// SPDX-License-Identifier: GPL-2.0
/*
 * Full NAT: a service's range of source addresses.
 *
 * Each address has 64,512 ports, for each address and port of a real server anew.  Those
 * of sysctl ip_local_reserved_ports are left alone.  Sockets of this host are not looked
 * at: a socket may begin at any time, so the addresses have to be for this alone.
 */
#include "service/snat.h"

#include <linux/bitops.h>
#include <linux/netlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/route.h>

/* ---- packet path ---- */

/* @addr becomes the @n-th address after it. */
static void advance(union nf_inet_addr *addr, u8 af, u32 n)
{
	__be32 *last = af == AF_INET ? &addr->ip : &addr->ip6[3];

	*last = htonl(ntohl(*last) + n);
}

/* One of the ports that are not reserved; 0: all are.  Each is as likely as any other,
 * however few there are.
 */
static unsigned int choose_unreserved(const unsigned long *reserved, u32 random)
{
	const unsigned int end = 65536 / BITS_PER_LONG;
	unsigned int i, n = 0, here;
	unsigned long left;

	for (i = L4LB_SNAT_PORT_MIN / BITS_PER_LONG; i < end; i++)
		n += BITS_PER_LONG - hweight_long(reserved[i]);
	if (!n)
		return 0;
	n = reciprocal_scale(random, n);
	for (i = L4LB_SNAT_PORT_MIN / BITS_PER_LONG; i < end; i++, n -= here) {
		here = BITS_PER_LONG - hweight_long(reserved[i]);
		if (n < here)
			break;
	}
	for (left = ~reserved[i]; n; n--)
		left &= left - 1;
	return i * BITS_PER_LONG + __ffs(left);
}

static unsigned int choose_port(const struct net *net, u64 random)
{
	const unsigned long *reserved = net->ipv4.sysctl_local_reserved_ports;
	unsigned int port = L4LB_SNAT_PORT_MIN + reciprocal_scale(random, L4LB_SNAT_PORTS);

	if (likely(!test_bit(port, reserved)))
		return port;
	return choose_unreserved(reserved, random >> 16);
}

bool l4lb_snat_choose(const struct l4lb_service *svc, u64 random,
		      union nf_inet_addr *addr, __be16 *port)
{
	struct l4lb_snat *snat = READ_ONCE(svc->snat);
	unsigned int seq, number;
	u32 n;

	if (!snat)
		return false;
	do {
		seq = read_seqbegin(&snat->lock);
		*addr = snat->first;
		n = snat->n;
	} while (read_seqretry(&snat->lock, seq));
	if (!n)
		return false;
	advance(addr, svc->key.af, reciprocal_scale(random >> 32, n));
	number = choose_port(svc->ln->net, random);
	*port = htons(number);
	return number;
}

/* ---- control path ---- */

/* How many addresses follow the first; of IPv6 all but the last word has to be equal. */
static s64 length_of(const struct l4lb_snat_range *range)
{
	const __be32 *first = range->first.ip6, *last = range->last.ip6;
	unsigned int end = range->af == AF_INET ? 0 : 3;
	int order = memcmp(first, last, end * sizeof(*first));

	if (order)
		return order > 0 ? -1 : U32_MAX;
	return (s64)ntohl(last[end]) - ntohl(first[end]);
}

int l4lb_snat_check(const struct l4lb_snat_range *range,
		    struct netlink_ext_ack *extack)
{
	s64 length = length_of(range);

	if (length < 0)
		NL_SET_ERR_MSG(extack, "policy: SNAT: the last address comes before the first");
	else if (length >= L4LB_SNAT_MAX)
		NL_SET_ERR_MSG(extack, "policy: SNAT: 256 addresses at most");
	else
		return 0;
	return -ERANGE;
}

static bool is_local(struct net *net, u8 af, const union nf_inet_addr *addr)
{
	if (af == AF_INET)
		return !ipv4_is_loopback(addr->ip) &&
		       inet_addr_type(net, addr->ip) == RTN_LOCAL;
	return !(ipv6_addr_type(&addr->in6) & (IPV6_ADDR_LOOPBACK | IPV6_ADDR_LINKLOCAL)) &&
	       ipv6_chk_addr(net, &addr->in6, NULL, 0);
}

/* What is set already may stay, whatever addresses this host has now. */
static int check(const struct l4lb_service *svc, const struct l4lb_snat_range *range,
		 struct netlink_ext_ack *extack)
{
	union nf_inet_addr addr = range->first;
	s64 i, length = length_of(range);

	if (!memcmp(range, &svc->policy.snat, sizeof(*range)))
		return 0;
	for (i = 0; i <= length; i++, advance(&addr, range->af, 1)) {
		if (is_local(svc->ln->net, range->af, &addr))
			continue;
		NL_SET_ERR_MSG(extack,
			       "policy: SNAT: each address must be one of this host, not loopback or link-local");
		return -EADDRNOTAVAIL;
	}
	return 0;
}

/* It lives as long as the service: packets may be using it. */
int l4lb_snat_reserve(struct l4lb_service *svc, const struct l4lb_policy *policy,
		      struct netlink_ext_ack *extack)
{
	struct l4lb_snat *snat;
	int err;

	lockdep_assert_held(&svc->ln->lock);
	if (!policy->snat.af)
		return 0;
	err = check(svc, &policy->snat, extack);
	if (err || svc->snat)
		return err;
	snat = kzalloc(sizeof(*snat), GFP_KERNEL_ACCOUNT);
	if (!snat) {
		NL_SET_ERR_MSG(extack, "no memory for the addresses of SNAT");
		return -ENOMEM;
	}
	seqlock_init(&snat->lock);
	smp_store_release(&svc->snat, snat);	/* packets find it whole */
	return 0;
}

/* For connections that begin from now on; the caller changes svc->uses afterwards. */
void l4lb_snat_set(struct l4lb_service *svc, const struct l4lb_policy *policy)
{
	const struct l4lb_snat_range *range = &policy->snat;
	struct l4lb_snat *snat = svc->snat;

	lockdep_assert_held(&svc->ln->lock);
	if (!snat || !memcmp(range, &svc->policy.snat, sizeof(*range)))
		return;
	svc->policy.snat = *range;
	write_seqlock_bh(&snat->lock);
	snat->first = range->first;
	snat->n = range->af ? length_of(range) + 1 : 0;
	write_sequnlock_bh(&snat->lock);
	/* Replies to a local end are looked for from now on, see hook.c. */
	if (range->af)
		WRITE_ONCE(svc->ln->snat, 1);
}

void l4lb_snat_free(struct l4lb_service *svc)
{
	kfree(svc->snat);
}
