// SPDX-License-Identifier: GPL-2.0
/*
 * net.ipv4.vs.*, per network namespace: the names, defaults and range checks
 * of the in-tree director (6.12's, on every kernel), all of them, because
 * programs and sysctl.conf stop at one that is missing.  A write that is
 * refused changes nothing.
 *
 * Three names are our own:
 *
 *	conn_max		connections and persistence templates there may
 *				be at once, 0: no limit.  By default what an
 *				eighth of the memory holds; a namespace of an
 *				unprivileged user cannot change it
 *	fast_path		may packets of established flows pass by the
 *				stack (entry/)?  0: no; 1: yes; 2: first packets
 *				of a flow, too, which the firewall then does not
 *				see.  A service may have it otherwise
 *	nonlocal_vip		1: a service also gets what is forwarded by this
 *				host to its address, which need not be local.
 *				Off by default: a director that stands by may be
 *				a router on the way to the one that has the VIP
 *
 * These have no effect here:
 *
 *	sync_*, backup_only	there is no state synchronisation yet; the
 *				values are checked as if there were
 *	est_cpulist, est_nice	there are no threads to place: rates are
 *				computed by packets and readers
 *
 * A namespace of an unprivileged user has its own copy, which its root may
 * change: it governs nothing but that namespace's packets.
 */
#include "api/sysctl.h"

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
#define CONN_BYTES		128	/* a connection's, table included */

static int nice_min = -20, nice_max = 19;

/* .extra1 of an entry whose handler finds its namespace there. */
static int namespace;

/* 0 to 3; defence.c defines them and changes 1 and 2 itself. */
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

/* "THRESHOLD PERIOD": one below the other, or both 0. */
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
	    (new[0] >= new[1] && (new[0] || new[1])))
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
#define OWN(name, handler)						\
	SETTING(name, sizeof(int), handler, .extra1 = &namespace)

/* .data: offset in struct l4lb_sysctl, until it is copied for a namespace */
static const struct ctl_table settings[] = {
	INT(am_droprate),
	INT(amemthresh),
	INT(backup_only),
	INT(cache_bypass),
	RANGE(conn_max, SYSCTL_ZERO, SYSCTL_INT_MAX),
	INT(conn_reuse_mode),
	INT(conntrack),
	OWN(drop_entry, do_mode),
	OWN(drop_packet, do_mode),
	OWN(est_cpulist, do_est_cpulist),
	RANGE(est_nice, &nice_min, &nice_max),
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
	INT(sloppy_sctp),
	INT(sloppy_tcp),
	INT(snat_reroute),
	INT(sync_persist_mode),
	OWN(sync_ports, do_sync_ports),
	SETTING(sync_qlen_max, sizeof(long), proc_doulongvec_minmax),
	SETTING(sync_refresh_period, sizeof(int), proc_dointvec_jiffies),
	RANGE(sync_retries, SYSCTL_ZERO, SYSCTL_THREE),
	INT(sync_sock_size),
	OWN(sync_threshold, do_sync_threshold),
	RANGE(sync_version, SYSCTL_ZERO, SYSCTL_ONE),
};

#undef OWN
#undef RANGE
#undef INT
#undef SETTING

/* Those that are the machine's business, as ip_vs has it: read-only in a
 * namespace of an unprivileged user.
 */
static bool is_privileged(const struct ctl_table *entry)
{
	static const char *const names[] = {
		"conn_max", "est_cpulist", "est_nice", "run_estimation", "sync_qlen_max",
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
		.snat_reroute = 1,
		.sync_ports = 1,
		.sync_qlen_max = nr_free_buffer_pages() / 32,
		.sync_threshold = { 3, 50 },
		.sync_version = 1,
	};
}

/* A copy of settings[] about @ln. */
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
	/* One more, all zero: kernels before 6.6 want it as the end. */
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
