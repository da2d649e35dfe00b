// SPDX-License-Identifier: GPL-2.0
/*
 * net.ipv4.vs.*, per network namespace: the in-tree director's names,
 * defaults and (absent) range checks, for the settings that have an effect
 * here.  A name that does nothing is not offered: a write must not succeed
 * and then be ignored.
 *
 * A namespace of an unprivileged user has its own copy, which its root may
 * change: it governs nothing but that namespace's packets.
 */
#include <linux/slab.h>
#include <linux/sysctl.h>

#include "control.h"
#include "net.h"

#define SETTING(name)							\
	{								\
		.procname	= #name,				\
		.data		= (void *)offsetof(struct l4lb_sysctl, name), \
		.maxlen		= sizeof(int),				\
		.mode		= 0644,					\
		.proc_handler	= proc_dointvec,			\
	}

/* .data: offset in struct l4lb_sysctl, until it is copied for a namespace */
static const struct ctl_table settings[] = {
	SETTING(conn_reuse_mode),
	SETTING(expire_nodest_conn),
	SETTING(expire_quiescent_template),
	SETTING(nat_icmp_send),
	SETTING(pmtu_disc),
	SETTING(sloppy_sctp),
	SETTING(sloppy_tcp),
	SETTING(snat_reroute),
};

#undef SETTING

int l4lb_sysctl_net_init(struct l4lb_net *ln)
{
	struct ctl_table *table;
	size_t i;

	ln->sysctl = (struct l4lb_sysctl){
		.conn_reuse_mode = 1,
		.pmtu_disc = 1,
		.snat_reroute = 1,
	};

	/* One more, all zero: kernels before 6.6 want it as the end. */
	table = kcalloc(ARRAY_SIZE(settings) + 1, sizeof(*table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		table[i] = settings[i];
		table[i].data = (void *)&ln->sysctl +
				(uintptr_t)settings[i].data;
	}

	ln->sysctl_header = register_net_sysctl_sz(ln->net, "net/ipv4/vs",
						   table,
						   ARRAY_SIZE(settings));
	if (!ln->sysctl_header) {
		kfree(table);
		return -ENOMEM;
	}
	return 0;
}

void l4lb_sysctl_net_exit(struct l4lb_net *ln)
{
	const struct ctl_table *table = ln->sysctl_header->ctl_table_arg;

	unregister_net_sysctl_table(ln->sysctl_header);
	kfree(table);
}
