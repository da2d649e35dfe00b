/* SPDX-License-Identifier: GPL-2.0 */
/* The settings of a namespace, net.ipv4.vs.*. */
#ifndef _L4LB_SETTINGS_H
#define _L4LB_SETTINGS_H

#include <linux/cpumask.h>

/* Read on the packet path with READ_ONCE().  Defaults other
 * than 0, and the meaning of some values, are in api/sysctl.c.
 */
struct l4lb_sysctl {
	int		am_droprate;
	int		amemthresh;
	int		backup_only;
	int		cache_bypass;
	int		conn_max;
	int		conn_reuse_mode;
	int		conntrack;
	int		drop_entry;
	int		drop_packet;
	cpumask_var_t	est_cpulist;
	bool		est_cpulist_set;
	int		est_nice;
	int		expire_nodest_conn;
	int		expire_quiescent_template;
	int		fast_path;
	int		ignore_tunneled;
	int		nat_icmp_send;
	int		nonlocal_vip;
	int		pmtu_disc;
	int		run_estimation;
	int		schedule_icmp;
	int		secure_tcp;
	int		servers_max;
	int		services_max;
	int		sloppy_sctp;
	int		sloppy_tcp;
	int		snat_reroute;
	int		sync_persist_mode;
	int		sync_ports;
	int		sync_refresh_period;	/* jiffies */
	int		sync_retries;
	int		sync_sock_size;
	int		sync_threshold[2];
	int		sync_version;
	unsigned long	sync_qlen_max;
};

/* Would one more exceed @max?  0: there is no limit. */
static inline bool l4lb_at_limit(unsigned int n, const int *max)
{
	int limit = READ_ONCE(*max);

	return limit && n >= limit;
}

/* Timeouts user space may set, in jiffies.  The others are in state.c. */
struct l4lb_timeouts {
	unsigned int	tcp;		/* ESTABLISHED */
	unsigned int	tcp_fin;	/* FIN_WAIT */
	unsigned int	udp;
};

#endif /* _L4LB_SETTINGS_H */
