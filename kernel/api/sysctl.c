// SPDX-License-Identifier: GPL-2.0
/*
 * net.ipv4.vs.*, per network namespace: all names, defaults and range checks of
 * in-tree ip_vs in Linux 6.12, on every kernel, because programs and
 * sysctl.conf fail at a missing name.  A refused write changes nothing.
 *
 * Five names are our own:
 *
 *	conn_max		maximum of connections and persistence templates
 *				together, 0: no limit.  Default: as many as fit
 *				into an eighth of the memory; a namespace of an
 *				unprivileged user cannot change it
 *	fast_path		may packets of established flows bypass the
 *				stack (entry/)?  0: no; 1: yes, and first packets
 *				of a flow that nothing could refuse; 2: all first
 *				packets, which the firewall then does not see.
 *				A service may override it
 *	nonlocal_vip		1: a service also takes packets that this host
 *				forwards to its address, which need not be
 *				local.  Off by default: a standby director may
 *				be a router on the way to the active one
 *	services_max		maximum of services, 0: no limit
 *	servers_max		maximum of real servers of all services, 0: no limit;
 *				an unprivileged user cannot change either
 *
 * These have no effect here, and the log says so when one is set:
 *
 *	sync_retries		a record is not repeated; the next one makes up
 *				for a lost one (sync/send_rules.c)
 *	est_cpulist, est_nice	there are no threads to place: rates are
 *				computed by packets and readers
 *
 * A namespace of an unprivileged user has its own copy, which its root may
 * change: it affects only packets of that namespace.
 */
#include "api/sysctl.h"

#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/isolation.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/swap.h>
#include <linux/sysctl.h>

#include "config/estimation.h"
#include "conn/defence.h"
#include "entry/fast_device.h"

#define CONN_MEMORY_SHARE	8	/* of the memory, by default */
#define CONN_BYTES		128	/* of a connection, table included */
#define SERVICES_MAX		65536
#define SERVERS_MAX		262144

static int nice_min = -20, nice_max = 19;

/* In settings[], an .extra1 that fill_table() replaces with the namespace. */
static int namespace;

/* 0 to 3, see defence.c, which itself switches between 1 and 2. */
static int do_mode(l4lb_ctl_table *table, int write, void *buffer,
		   size_t *lenp, loff_t *ppos)
{
	struct l4lb_net *ln = table->extra1;
	struct ctl_table mode = {
		.data	= table->data,
		.maxlen	= sizeof(int),
		.extra1	= SYSCTL_ZERO,
		.extra2	= SYSCTL_THREE,
	};
	int err = proc_dointvec_minmax(&mode, write, buffer, lenp, ppos);

	if (!err && write)
		l4lb_defence_changed(ln);
	return err;
}

static int do_fast_path(l4lb_ctl_table *table, int write, void *buffer,
			size_t *lenp, loff_t *ppos)
{
	struct l4lb_net *ln = table->extra1;
	struct ctl_table value = {
		.data	= table->data,
		.maxlen	= sizeof(int),
		.extra1	= SYSCTL_ZERO,
		.extra2	= SYSCTL_TWO,
	};
	int err = proc_dointvec_minmax(&value, write, buffer, lenp, ppos);

	if (!err && write)
		l4lb_fast_changed(ln);
	return err;
}

static int do_backup_only(l4lb_ctl_table *table, int write, void *buffer,
			  size_t *lenp, loff_t *ppos)
{
	struct l4lb_net *ln = table->extra1;
	struct ctl_table value = { .data = table->data, .maxlen = sizeof(int) };
	int err = proc_dointvec(&value, write, buffer, lenp, ppos);

	if (!err && write)
		l4lb_fast_stand_by(ln);
	return err;
}

static int do_run_estimation(l4lb_ctl_table *table, int write, void *buffer,
			     size_t *lenp, loff_t *ppos)
{
	struct l4lb_net *ln = table->extra1;
	struct ctl_table value = { .data = table->data, .maxlen = sizeof(int) };
	int err = proc_dointvec(&value, write, buffer, lenp, ppos);

	if (err || !write)
		return err;
	mutex_lock(&ln->lock);
	l4lb_stats_freeze_all(ln, !READ_ONCE(ln->sysctl.run_estimation));
	mutex_unlock(&ln->lock);
	return 0;
}

/* A write is not refused, because files for sysctl.d that ip_vs takes would fail.  Who
 * is root of a user namespace only cannot fill the log of the machine.
 */
static void say_without_effect(const char *name)
{
	if (capable(CAP_NET_ADMIN))
		pr_info("net.ipv4.vs.%s is set, but has no effect: see l4lb(7)\n",
			name);
}

static int do_unused(l4lb_ctl_table *table, int write, void *buffer,
		     size_t *lenp, loff_t *ppos)
{
	int err = proc_dointvec_minmax(table, write, buffer, lenp, ppos);

	if (!err && write && READ_ONCE(*(int *)table->data))
		say_without_effect(table->procname);
	return err;
}

/* Before the first write: the CPUs that kernel threads may run on. */
static int show_cpulist(const struct l4lb_sysctl *sysctl, void *buffer,
			size_t *lenp, loff_t *ppos)
{
	const struct cpumask *cpus = READ_ONCE(sysctl->est_cpulist_set) ?
				     sysctl->est_cpulist :
				     housekeeping_cpumask(HK_TYPE_KTHREAD);
	struct ctl_table text = { .maxlen = PAGE_SIZE };
	int err;

	text.data = kasprintf(GFP_KERNEL, "%*pbl", cpumask_pr_args(cpus));
	if (!text.data)
		return -ENOMEM;
	err = proc_dostring(&text, 0, buffer, lenp, ppos);
	kfree(text.data);
	return err;
}

static int do_est_cpulist(l4lb_ctl_table *table, int write, void *buffer,
			  size_t *lenp, loff_t *ppos)
{
	struct l4lb_sysctl *sysctl = container_of(table->data,
						  struct l4lb_sysctl,
						  est_cpulist);
	cpumask_var_t new;
	int err;

	if (!write)
		return show_cpulist(sysctl, buffer, lenp, ppos);
	if (!zalloc_cpumask_var(&new, GFP_KERNEL))
		return -ENOMEM;
	err = cpulist_parse(buffer, new);
	if (!err) {
		cpumask_copy(sysctl->est_cpulist, new);
		WRITE_ONCE(sysctl->est_cpulist_set, true);
		say_without_effect(table->procname);
	}
	free_cpumask_var(new);
	return err;
}

/* A power of two. */
static int do_sync_ports(l4lb_ctl_table *table, int write, void *buffer,
			 size_t *lenp, loff_t *ppos)
{
	int *value = table->data, new = READ_ONCE(*value);
	struct ctl_table one = { .data = &new, .maxlen = sizeof(new) };
	int err = proc_dointvec(&one, write, buffer, lenp, ppos);

	if (err || !write)
		return err;
	if (new < 1 || !is_power_of_2(new))
		return -EINVAL;
	WRITE_ONCE(*value, new);
	return 0;
}

/* "THRESHOLD PERIOD": the threshold is less than the period, unless that is 0. */
static int do_sync_threshold(l4lb_ctl_table *table, int write, void *buffer,
			     size_t *lenp, loff_t *ppos)
{
	int *value = table->data;
	int new[2] = { READ_ONCE(value[0]), READ_ONCE(value[1]) };
	struct ctl_table both = { .data = new, .maxlen = sizeof(new) };
	int err = proc_dointvec(&both, write, buffer, lenp, ppos);

	if (err || !write)
		return err;
	if (new[0] < 0 || new[1] < 0 ||
	    (new[0] >= new[1] && new[1]))
		return -EINVAL;
	WRITE_ONCE(value[0], new[0]);
	WRITE_ONCE(value[1], new[1]);
	return 0;
}

#define SETTING(name, size, handler, ...)				\
	{								\
		.procname	= #name,				\
		.data		= (void *)offsetof(struct l4lb_sysctl, name), \
		.maxlen		= size,					\
		.mode		= 0644,					\
		.proc_handler	= handler,				\
		__VA_ARGS__						\
	}
#define INT(name)							\
	SETTING(name, sizeof(int), proc_dointvec)
#define RANGE(name, min, max)						\
	SETTING(name, sizeof(int), proc_dointvec_minmax,		\
		.extra1 = min, .extra2 = max)
#define UNUSED(name, min, max)						\
	SETTING(name, sizeof(int), do_unused, .extra1 = min, .extra2 = max)
#define OWN(name, handler)						\
	SETTING(name, sizeof(int), handler, .extra1 = &namespace)

/* .data: offset in struct l4lb_sysctl; fill_table() makes it a pointer */
static const struct ctl_table settings[] = {
	INT(am_droprate),
	INT(amemthresh),
	OWN(backup_only, do_backup_only),
	INT(cache_bypass),
	RANGE(conn_max, SYSCTL_ZERO, SYSCTL_INT_MAX),
	INT(conn_reuse_mode),
	INT(conntrack),
	OWN(drop_entry, do_mode),
	OWN(drop_packet, do_mode),
	OWN(est_cpulist, do_est_cpulist),
	UNUSED(est_nice, &nice_min, &nice_max),
	INT(expire_nodest_conn),
	INT(expire_quiescent_template),
	OWN(fast_path, do_fast_path),
	INT(ignore_tunneled),
	INT(nat_icmp_send),
	INT(nonlocal_vip),
	INT(pmtu_disc),
	OWN(run_estimation, do_run_estimation),
	INT(schedule_icmp),
	OWN(secure_tcp, do_mode),
	RANGE(servers_max, SYSCTL_ZERO, SYSCTL_INT_MAX),
	RANGE(services_max, SYSCTL_ZERO, SYSCTL_INT_MAX),
	INT(sloppy_sctp),
	INT(sloppy_tcp),
	INT(snat_reroute),
	INT(sync_persist_mode),
	OWN(sync_ports, do_sync_ports),
	SETTING(sync_qlen_max, sizeof(long), proc_doulongvec_minmax),
	SETTING(sync_refresh_period, sizeof(int), proc_dointvec_jiffies),
	UNUSED(sync_retries, SYSCTL_ZERO, SYSCTL_THREE),
	INT(sync_sock_size),
	OWN(sync_threshold, do_sync_threshold),
	RANGE(sync_version, SYSCTL_ZERO, SYSCTL_ONE),
};

#undef OWN
#undef UNUSED
#undef RANGE
#undef INT
#undef SETTING

/* Settings that concern the whole machine: read-only in a namespace of an
 * unprivileged user, as with ip_vs.
 */
static bool is_privileged(const struct ctl_table *entry)
{
	static const char *const names[] = {
		"conn_max", "est_cpulist", "est_nice", "run_estimation",
		"servers_max", "services_max", "sync_qlen_max",
		"sync_sock_size",
	};

	return match_string(names, ARRAY_SIZE(names), entry->procname) >= 0;
}

void l4lb_sysctl_defaults(struct l4lb_sysctl *sysctl)
{
	*sysctl = (struct l4lb_sysctl){
		.am_droprate = 10,
		.amemthresh = 1024,
		.conn_max = min_t(u64, (u64)totalram_pages() * PAGE_SIZE /
				  CONN_MEMORY_SHARE / CONN_BYTES, INT_MAX),
		.conn_reuse_mode = 1,
		.fast_path = 1,
		.pmtu_disc = 1,
		.run_estimation = 1,
		.servers_max = SERVERS_MAX,
		.services_max = SERVICES_MAX,
		.snat_reroute = 1,
		.sync_ports = 1,
		.sync_qlen_max = nr_free_buffer_pages() / 32,
		.sync_threshold = { 3, 50 },
		.sync_version = 1,
	};
}

/* Copy settings[] for @ln. */
static void fill_table(struct ctl_table *table, struct l4lb_net *ln)
{
	bool owned = ln->net->user_ns != &init_user_ns;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		table[i] = settings[i];
		table[i].data = (void *)&ln->sysctl +
				(uintptr_t)settings[i].data;
		if (table[i].extra1 == &namespace)
			table[i].extra1 = ln;
		if (owned && is_privileged(&table[i]))
			table[i].mode = 0444;
	}
}

int l4lb_sysctl_net_init(struct l4lb_net *ln)
{
	struct ctl_table *table;

	if (!zalloc_cpumask_var(&ln->sysctl.est_cpulist, GFP_KERNEL))
		return -ENOMEM;
	/* Kernels before 6.6 need an empty entry at the end. */
	table = kcalloc(ARRAY_SIZE(settings) + 1, sizeof(*table), GFP_KERNEL);
	if (!table)
		goto err_free_cpulist;
	fill_table(table, ln);
	ln->sysctl_header = register_net_sysctl_sz(ln->net, "net/ipv4/vs",
						   table,
						   ARRAY_SIZE(settings));
	if (!ln->sysctl_header)
		goto err_free_table;
	return 0;

err_free_table:
	kfree(table);
err_free_cpulist:
	free_cpumask_var(ln->sysctl.est_cpulist);
	return -ENOMEM;
}

void l4lb_sysctl_net_exit(struct l4lb_net *ln)
{
	const struct ctl_table *table = ln->sysctl_header->ctl_table_arg;

	unregister_net_sysctl_table(ln->sysctl_header);
	kfree(table);
	free_cpumask_var(ln->sysctl.est_cpulist);
}
