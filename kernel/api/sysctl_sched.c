// SPDX-License-Identifier: GPL-2.0
/*
 * Schedulers' settings in net.ipv4.vs: lblc_expiration, lblcr_expiration.
 *
 * Each namespace has them while their scheduler is registered.  A setting is
 * the default for services of the namespace that do not set the option.
 */
#include <linux/slab.h>
#include <linux/sysctl.h>

#include "api/sysctl_sched.h"
#include "service/registry.h"
#include "service/sched_default.h"

/**
 * struct l4lb_sched_setting - a scheduler's setting in a namespace
 * @def: the scheduler and the value
 * @ln: the namespace
 * @header: sysctl handle of the file
 * @table: the file's entry, and the empty one that kernels before 6.6 need
 */
struct l4lb_sched_setting {
	struct l4lb_sched_default	def;
	struct l4lb_net			*ln;
	struct ctl_table_header		*header;
	struct ctl_table		table[2];
};

static int do_setting(l4lb_ctl_table *table, int write, void *buffer,
		      size_t *lenp, loff_t *ppos)
{
	struct l4lb_sched_setting *setting =
		container_of(table->data, struct l4lb_sched_setting,
			     def.value);
	int err = proc_dointvec_jiffies(table, write, buffer, lenp, ppos);

	if (err || !write)
		return err;
	mutex_lock(&setting->ln->lock);
	l4lb_sched_default_changed(setting->ln, setting->def.ops);
	mutex_unlock(&setting->ln->lock);
	return 0;
}

static u32 default_of(const struct l4lb_sched_ops *ops)
{
	unsigned int i;

	for (i = 0; i < ops->n_options; i++)
		if (ops->options[i].sysctl)
			return ops->options[i].def;
	return 0;
}

/* Does not wait for the configuration mutex.  A namespace of an unprivileged user has no
 * such settings, as with ip_vs.
 */
static int setting_add(struct l4lb_net *ln, const struct l4lb_sched_ops *ops)
{
	struct l4lb_sched_setting *setting;

	if (!ops->sysctl || ln->net->user_ns != &init_user_ns)
		return 0;
	setting = kzalloc(sizeof(*setting), GFP_KERNEL);
	if (!setting)
		return -ENOMEM;
	setting->ln = ln;
	setting->def.ops = ops;
	setting->def.value = default_of(ops) * HZ;
	setting->table[0] = (struct ctl_table) {
		.procname	= ops->sysctl,
		.data		= &setting->def.value,
		.maxlen		= sizeof(setting->def.value),
		.mode		= 0644,
		.proc_handler	= do_setting,
	};
	setting->header = register_net_sysctl_sz(ln->net, "net/ipv4/vs",
						 setting->table, 1);
	if (!setting->header) {
		kfree(setting);
		return -ENOMEM;
	}
	spin_lock(&ln->defaults_lock);
	list_add(&setting->def.node, &ln->sched_defaults);
	spin_unlock(&ln->defaults_lock);
	return 0;
}

/* Configuration mutex not held: writers take it, and are waited for here; without
 * one of just this setting, nobody waits.
 */
static void setting_del(struct l4lb_net *ln, const struct l4lb_sched_ops *ops)
{
	struct l4lb_sched_setting *setting, *next, *found = NULL;

	spin_lock(&ln->defaults_lock);
	list_for_each_entry_safe(setting, next, &ln->sched_defaults, def.node) {
		if (setting->def.ops != ops)
			continue;
		list_del(&setting->def.node);
		found = setting;
	}
	spin_unlock(&ln->defaults_lock);
	if (!found)
		return;
	unregister_net_sysctl_table(found->header);
	kfree(found);
}

static const struct l4lb_sched_listener listener = {
	.added		= setting_add,
	.removed	= setting_del,
};

void __init l4lb_sysctl_sched_init(void)
{
	l4lb_sched_listen(&listener);
}
