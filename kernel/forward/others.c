// SPDX-License-Identifier: GPL-2.0
/*
 * Hooks of others: a packet that nobody else looks at needs not pass them.
 *
 * A hook is ours by its private data.  Two of the kernel's own are everywhere and let
 * pass whatever we forward: the one that reassembles IPv6 fragments, which ours need,
 * and AppArmor's, which asks for a socket of this host.  They have neither private data
 * nor names that are exported, so they are known by their priority, which no other of
 * the kernel's has there.  If several hooks have it, none is taken for them.
 */
#include "forward/others.h"

#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>

const char l4lb_hook_mark;

nf_hookfn *l4lb_harmless[L4LB_N_HARMLESS];

static nf_hookfn *hook_with(const struct nf_hook_entries *entries, int priority)
{
	struct nf_hook_ops **ops;
	nf_hookfn *found = NULL;
	unsigned int i;

	if (!entries)
		return NULL;
	ops = nf_hook_entries_get_hook_ops(entries);
	for (i = 0; i < entries->num_hook_entries; i++) {
		if (READ_ONCE(ops[i])->priority != priority)
			continue;
		if (found || entries->hooks[i].priv)
			return NULL;
		found = READ_ONCE(entries->hooks[i].hook);
	}
	return found;
}

static void learn(unsigned int which, const struct nf_hook_entries *entries,
		  int priority)
{
	nf_hookfn *hook = hook_with(entries, priority);

	if (hook)
		WRITE_ONCE(l4lb_harmless[which], hook);
}

void l4lb_others_learn(const struct net *net)
{
	const struct netns_nf *nf = &net->nf;

	rcu_read_lock();
	learn(L4LB_DEFRAG_IPV6,
	      rcu_dereference(nf->hooks_ipv6[NF_INET_PRE_ROUTING]),
	      NF_IP6_PRI_CONNTRACK_DEFRAG);
#ifdef CONFIG_SECURITY_APPARMOR
	/* SELinux comes last at POST_ROUTING, and Smack is not there. */
	learn(L4LB_APPARMOR_IPV4,
	      rcu_dereference(nf->hooks_ipv4[NF_INET_POST_ROUTING]),
	      NF_IP_PRI_SELINUX_FIRST);
	learn(L4LB_APPARMOR_IPV6,
	      rcu_dereference(nf->hooks_ipv6[NF_INET_POST_ROUTING]),
	      NF_IP6_PRI_SELINUX_FIRST);
#endif
	rcu_read_unlock();
}
