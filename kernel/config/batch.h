/* SPDX-License-Identifier: GPL-2.0 */
/* Many services and their real servers, all at once or not at all. */
#ifndef _L4LB_BATCH_H
#define _L4LB_BATCH_H

#include "service/option.h"
#include "service/server.h"
#include "l4lb.h"

/**
 * struct l4lb_batch_server - one real server of a batch
 * @cfg: all its settings
 * @where: the attribute it was read from
 * @server: the real server, once prepared
 * @old: the settings of @server before @cfg was tried
 * @old_last: likewise, its last weight
 * @is_new: @server was created for this batch
 * @joins: it starts slowly, because it joins others
 */
struct l4lb_batch_server {
	struct l4lb_server_config	cfg;
	const struct nlattr	*where;
	struct l4lb_server	*server;
	struct l4lb_server_config	old;
	int			old_last;
	bool			is_new;
	bool			joins;
};

/**
 * struct l4lb_batch_service - one service of a batch
 * @key: its identity
 * @cfg: all its settings, but only the flags in @mask
 * @mask: flags that it sets or clears
 * @ops: its scheduler, with a reference; NULL for "none"
 * @policy: all of its policy
 * @claim: its owner and protection
 * @shadow_ops: the scheduler of its shadow, with a reference; NULL: none
 * @values: of the scheduler's options that are in @set
 * @set: bits of the options it sets; the others get their default
 * @where: the attribute it was read from
 * @first: its first real server in l4lb_batch.servers
 * @n: how many it has
 * @exact: its real servers that the batch does not name are removed
 * @remove: the service is removed; nothing else is set
 * @svc: the service, once prepared; NULL if it is to be removed and not there
 * @inst: the scheduler instance that @svc will have
 * @pool: the pool that @svc will have
 * @shadow: a new one, if @shadow_ops is not that of the present one
 * @is_new: @svc was created for this batch
 * @differs: the present instance has other values of options
 * @swapped: @inst has those of @values that build() reads, and the reverse
 * @tried: number of real servers whose settings were tried
 */
struct l4lb_batch_service {
	struct l4lb_svc_key		key;
	struct l4lb_svc_config		cfg;
	u32				mask;
	const struct l4lb_sched_ops	*ops;
	struct l4lb_policy		policy;
	struct l4lb_claim		claim;
	const struct l4lb_sched_ops	*shadow_ops;
	struct l4lb_sched_values	values;
	unsigned long			set;
	const struct nlattr		*where;
	unsigned int			first, n;
	bool				exact, remove;

	struct l4lb_service		*svc;
	struct l4lb_sched_inst		*inst;
	struct l4lb_pool		*pool;
	struct l4lb_shadow		*shadow;
	bool				is_new, differs, swapped;
	unsigned int			tried;
};

/**
 * struct l4lb_batch - a requested configuration
 * @services: the services
 * @servers: their real servers, those of a service next to each other
 * @n_services: number of @services
 * @n_servers: number of @servers
 * @timeouts: of the namespace; 0: that one stays
 * @mode: L4LB_SET_*: how existing services and real servers are treated
 * @knows_ranges: REPLACE may remove services with a range
 * @at_service: index of the service being checked, for error messages; @n_services:
 *	one that the batch does not name
 * @at_server: index of its real server being checked, or -1
 */
struct l4lb_batch {
	struct l4lb_batch_service	*services;
	struct l4lb_batch_server		*servers;
	unsigned int			n_services, n_servers;
	struct l4lb_timeouts		timeouts;
	u32				mode;
	bool				knows_ranges;
	unsigned int			at_service;
	int				at_server;
};

/* May sleep.  Return: 0, or -ENOMEM with an empty batch. */
int l4lb_batch_alloc(struct l4lb_batch *b, unsigned int n_services,
		     unsigned int n_servers);
void l4lb_batch_free(struct l4lb_batch *b);

int l4lb_batch_apply(struct l4lb_net *ln, struct l4lb_batch *b,
		     struct netlink_ext_ack *extack);

#endif /* _L4LB_BATCH_H */
