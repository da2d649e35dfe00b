// SPDX-License-Identifier: GPL-2.0
/*
 * IPv4 fragments that pass by: those of replies are reassembled, because only the first
 * one has ports.
 */
#include "forward/fragment.h"

#include <net/ip.h>

#include "base/drop.h"
#include "service/tunnel_table.h"

/* Can it come from a real server?  Replies have the VIP as their source if they
 * need no translation and the VIP is not an address of this host, or
 * accept_local is set.
 */
static bool from_server(struct l4lb_net *ln, const struct l4lb_flow *flow)
{
	return l4lb_tunnel_is_server(ln, &flow->saddr, AF_INET) ||
	       READ_ONCE(ln->n_fwmark) ||
	       inet_addr_type(ln->net, flow->saddr.ip) == RTN_LOCAL;
}

/* Can a fragment of IPv4 at FORWARD belong to a packet that a service has to do
 * with?  Its ports are not known yet.  Others pass as they are.
 */
bool l4lb_fragment_is_ours(struct l4lb_net *ln, const struct l4lb_flow *flow)
{
	bool nonlocal = READ_ONCE(ln->sysctl.nonlocal_vip);

	switch (flow->proto) {
	case IPPROTO_ICMP:
		return true;	/* errors come from any host */
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_SCTP:
		return nonlocal || from_server(ln, flow);
	case IPPROTO_AH:
	case IPPROTO_ESP:
		return nonlocal;	/* replies: each fragment for itself */
	default:
		return false;
	}
}

/* Reassemble a fragment that may belong to a reply.  0: @skb is complete now;
 * else ip_defrag() has queued or freed it.
 */
int l4lb_fragment_complete(struct sk_buff *skb, const struct l4lb_net *ln)
{
	int err = ip_defrag(ln->net, skb, IP_DEFRAG_VS_FWD);

	if (err && err != -EINPROGRESS)
		l4lb_drop(ln, L4LB_DROP_FRAGMENT);
	/* Even with DF it is fragmented again, to the sizes that it came in. */
	if (!err)
		skb->ignore_df = 1;
	return err;
}
