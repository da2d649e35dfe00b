// SPDX-License-Identifier: GPL-2.0
/*
 * Settings in net.ipv4.vs of schedulers: lblc_expiration, lblcr_expiration.
 *
 * Each is there while its scheduler is registered, once in every namespace, and
 * is what that namespace's services have that do not set the option themselves.
 * In seconds, and taken as ip_vs takes them: what is out of the option's range
 * counts as its nearest end.
 */
#include <linux/slab.h>
#include <linux/sysctl.h>

#include "api/control.h"
#include "service/service.h"

/**
 * struct l4lb_sched_setting - a scheduler's setting in a namespace
 * @node: in l4lb_net.sched_settings (configuration mutex)
 * @ln: the namespace
 * @ops: the scheduler
 * @value: jiffies
 * @header: of the file
 * @table: it, and the end that kernels before 6.6 want
 */
struct l4lb_sched_setting {
	struct list_head		node;
	struct l4lb_net			*ln;
	const struct l4lb_sched_ops	*ops;
	int				value;
	struct ctl_table_header		*header;
	struct ctl_table		table[2];
};

static int do_setting(l4lb_ctl_table *table, int write, void *buffer,
		      size_t *lenp, loff_t *ppos)
{
	struct l4lb_sched_setting *setting =
		container_of(table->data, struct l4lb_sched_setting, value);
	int err = proc_dointvec_jiffies(table, write, buffer, lenp, ppos);

	if (err || !write)
		return err;
	mutex_lock(&setting->ln->lock);
	l4lb_service_default_changed(setting->ln, setting->ops);
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

/**
 * l4lb_sysctl_sched_value() - what a service has that does not set an option
 * @ln: its namespace
 * @ops: its scheduler
 * @i: index of the option
 *
 * Context: configuration mutex held.
 */
u32 l4lb_sysctl_sched_value(const struct l4lb_net *ln,
			    const struct l4lb_sched_ops *ops, unsigned int i)
{
	const struct l4lb_sched_option *o = &ops->options[i];
	const struct l4lb_sched_setting *setting;

	lockdep_assert_held(&ln->lock);
	if (!o->sysctl)
		return o->def;
	list_for_each_entry(setting, &ln->sched_settings, node)
		if (setting->ops == ops)
			return clamp_t(u32, max(READ_ONCE(setting->value), 0) / HZ,
				       o->min, o->max);
	return o->def;
}

/* Configuration mutex not held.  A namespace of an unprivileged user has none,
 * as with ip_vs.
 */
int l4lb_sysctl_sched_add(struct l4lb_net *ln, const struct l4lb_sched_ops *ops)
{
	struct l4lb_sched_setting *setting;

	if (!ops->sysctl || ln->net->user_ns != &init_user_ns)
		return 0;
	setting = kzalloc(sizeof(*setting), GFP_KERNEL);
	if (!setting)
		return -ENOMEM;
	setting->ln = ln;
	setting->ops = ops;
	setting->value = default_of(ops) * HZ;
	setting->table[0] = (struct ctl_table) {
		.procname	= ops->sysctl,
		.data		= &setting->value,
		.maxlen		= sizeof(setting->value),
		.mode		= 0644,
		.proc_handler	= do_setting,
	};
	setting->header = register_net_sysctl_sz(ln->net, "net/ipv4/vs",
						 setting->table, 1);
	if (!setting->header) {
		kfree(setting);
		return -ENOMEM;
	}
	mutex_lock(&ln->lock);
	list_add(&setting->node, &ln->sched_settings);
	mutex_unlock(&ln->lock);
	return 0;
}

/* Configuration mutex not held: who is writing holds it. */
void l4lb_sysctl_sched_del(struct l4lb_net *ln, const struct l4lb_sched_ops *ops)
{
	struct l4lb_sched_setting *setting, *next, *found = NULL;

	mutex_lock(&ln->lock);
	list_for_each_entry_safe(setting, next, &ln->sched_settings, node) {
		if (setting->ops != ops)
			continue;
		list_del(&setting->node);
		found = setting;
	}
	mutex_unlock(&ln->lock);
	if (!found)
		return;
	unregister_net_sysctl_table(found->header);
	kfree(found);
}
