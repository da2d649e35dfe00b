// SPDX-License-Identifier: GPL-2.0
/*
 * Conntrack for control connections: in a namespace without rules that need it, it is not
 * there.  Each service that may have control connections holds it for its family, from its
 * first real server with NAT until it is removed; if the helper's module is removed, too,
 * since conntrack goes on shifting the sequence numbers of connections that stay.
 */
#include "config/helper.h"

#include <net/net_namespace.h>
#include <net/netfilter/nf_conntrack.h>

#include "service/server.h"

static int hold(struct l4lb_service *svc)
{
	int err;

	lockdep_assert_held(&svc->ln->lock);
	if (svc->uses & L4LB_USE_HELPER || !l4lb_helper_serves(&svc->key))
		return 0;
	err = nf_ct_netns_get(svc->ln->net, svc->key.af);
	if (!err)
		WRITE_ONCE(svc->uses, svc->uses | L4LB_USE_HELPER);
	return err;
}

void l4lb_service_help(struct l4lb_service *svc)
{
	if (hold(svc))
		pr_warn("no memory for conntrack: data connections of a service cannot be helped\n");
}

void l4lb_service_unhelp(struct l4lb_service *svc)
{
	lockdep_assert_held(&svc->ln->lock);
	if (!(svc->uses & L4LB_USE_HELPER))
		return;
	WRITE_ONCE(svc->uses, svc->uses & ~L4LB_USE_HELPER);
	nf_ct_netns_put(svc->ln->net, svc->key.af);
}

static bool has_nat(const struct l4lb_service *svc)
{
	const struct l4lb_server *server;

	list_for_each_entry(server, &svc->servers, node) {
		if (server->method == IP_VS_CONN_F_MASQ)
			return true;
		cond_resched();
	}
	return false;
}

/* Services that are there before the helper. */
static int __net_init helper_net_init(struct net *net)
{
	struct l4lb_net *ln = l4lb_net(net);
	struct l4lb_service *svc;
	int err = 0;

	mutex_lock(&ln->lock);
	list_for_each_entry(svc, &ln->services, list) {
		if (l4lb_helper_serves(&svc->key) && has_nat(svc))
			err = hold(svc);
		if (err)
			break;
		cond_resched();
	}
	mutex_unlock(&ln->lock);
	return err;
}

static struct pernet_operations helper_net_ops = {
	.init	= helper_net_init,
};

/**
 * l4lb_helper_register() - help the control connections that begin from now on
 * @helper: the helper; its ops are registered with conntrack
 *
 * Context: process.  Return: 0; -EBUSY: there is one already; -ENOMEM.
 */
int l4lb_helper_register(const struct l4lb_helper *helper)
{
	int err = l4lb_helper_set(helper);

	if (err)
		return err;
	err = register_pernet_subsys(&helper_net_ops);
	if (err)
		l4lb_helper_set(NULL);
	return err;
}
EXPORT_SYMBOL_GPL(l4lb_helper_register);

/**
 * l4lb_helper_unregister() - the helper goes
 *
 * Nothing uses it any more but conntrack: unregister its ops then.  Connections stay.
 *
 * Context: process; waits for a grace period.
 */
void l4lb_helper_unregister(void)
{
	unregister_pernet_subsys(&helper_net_ops);
	l4lb_helper_set(NULL);
}
EXPORT_SYMBOL_GPL(l4lb_helper_unregister);
