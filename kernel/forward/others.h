/* SPDX-License-Identifier: GPL-2.0 */
/* Hooks of others in the IP stack. */
#ifndef _L4LB_OTHERS_H
#define _L4LB_OTHERS_H

#include <linux/netfilter.h>
#include <net/net_namespace.h>

/* Its address is the private data of the hooks in entry/hook.c. */
extern const char l4lb_hook_mark;

/* Hooks to which a packet that we forward is nothing, each NULL until it is known. */
enum { L4LB_DEFRAG_IPV6, L4LB_APPARMOR_IPV4, L4LB_APPARMOR_IPV6, L4LB_N_HARMLESS };
extern nf_hookfn *l4lb_harmless[L4LB_N_HARMLESS];

/* Learn which they are, from the hooks in @net.  Any context. */
void l4lb_others_learn(const struct net *net);

/* May it look at a packet that we forward? */
static inline bool l4lb_others_hook(const struct nf_hook_entry *hook, u8 af)
{
	if (hook->priv == &l4lb_hook_mark)
		return false;
	if (af == AF_INET)
		return hook->hook != READ_ONCE(l4lb_harmless[L4LB_APPARMOR_IPV4]);
	return hook->hook != READ_ONCE(l4lb_harmless[L4LB_DEFRAG_IPV6]) &&
	       hook->hook != READ_ONCE(l4lb_harmless[L4LB_APPARMOR_IPV6]);
}

/**
 * l4lb_others_look() - has anybody else a hook there?
 * @net: the namespace
 * @af: %AF_INET or %AF_INET6
 * @hook: %NF_INET_PRE_ROUTING to %NF_INET_POST_ROUTING
 *
 * Context: softirq or BH off, RCU.
 */
static inline bool l4lb_others_look(const struct net *net, u8 af,
				    unsigned int hook)
{
	struct nf_hook_entries __rcu *const *hooks =
		af == AF_INET ? net->nf.hooks_ipv4 : net->nf.hooks_ipv6;
	const struct nf_hook_entries *entries = rcu_dereference(hooks[hook]);
	unsigned int i;

	for (i = 0; entries && i < entries->num_hook_entries; i++)
		if (l4lb_others_hook(&entries->hooks[i], af))
			return true;
	return false;
}

#endif /* _L4LB_OTHERS_H */
