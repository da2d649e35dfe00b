/* SPDX-License-Identifier: GPL-2.0 */
/* Many services and their real servers, all at once or not at all. */
#ifndef _L4LB_BATCH_H
#define _L4LB_BATCH_H

#include "service/server.h"
#include "l4lb.h"

/**
 * struct l4lb_batch_server - one real server of a batch
 * @cfg: all its settings
 * @where: the attribute it was read from
 * @server: what it is in the kernel, once prepared
 * @old: the settings that @server had before they were tried
 * @old_last: likewise, its last weight
 */
struct l4lb_batch_server {
	struct l4lb_server_config	cfg;
	const struct nlattr	*where;
	struct l4lb_server	*server;
	struct l4lb_server_config	old;
	int			old_last;
};

/**
 * struct l4lb_batch_service - one service of a batch
 * @key: its identity
 * @cfg: all its settings; of the flags those in @mask
 * @mask: which flags it means
 * @ops: its scheduler, of which it holds a reference; NULL for "none"
 * @policy: all of its policy
 * @option: values of the scheduler's options that are in @set
 * @set: bits of the options it sets; others get their default
 * @where: the attribute it was read from
 * @first: its first real server in l4lb_batch.servers
 * @n: how many it has
 * @svc: what it is in the kernel, once prepared
 * @inst: the scheduler instance that @svc will have
 * @pool: the pool that @svc will have
 * @is_new: @svc was made for it
 * @tried: real servers whose settings were tried
 */
struct l4lb_batch_service {
	struct l4lb_svc_key		key;
	struct l4lb_svc_config		cfg;
	u32				mask;
	const struct l4lb_sched_ops	*ops;
	struct l4lb_policy		policy;
	u32				option[L4LB_SCHED_OPTIONS_MAX];
	unsigned long			set;
	const struct nlattr		*where;
	unsigned int			first, n;

	struct l4lb_service		*svc;
	struct l4lb_sched_inst		*inst;
	struct l4lb_pool		*pool;
	bool				is_new;
	unsigned int			tried;
};

/**
 * struct l4lb_batch - what is to be
 * @services: the services
 * @servers: their real servers, those of a service next to each other
 * @n_services: their number
 * @n_servers: their number
 * @mode: L4LB_SET_*: what becomes of that which is there
 * @at_service: the service being checked, for error messages
 * @at_server: which of its real servers, or -1
 */
struct l4lb_batch {
	struct l4lb_batch_service	*services;
	struct l4lb_batch_server		*servers;
	unsigned int			n_services, n_servers;
	u32				mode;
	unsigned int			at_service;
	int				at_server;
};

/* May sleep; -ENOMEM, and the batch is empty. */
int l4lb_batch_alloc(struct l4lb_batch *b, unsigned int n_services,
		     unsigned int n_servers);
void l4lb_batch_free(struct l4lb_batch *b);

/* Is anything named twice?  No lock needed. */
int l4lb_batch_check(struct l4lb_batch *b, struct netlink_ext_ack *extack);
int l4lb_batch_apply(struct l4lb_net *ln, struct l4lb_batch *b,
		     struct netlink_ext_ack *extack);

#endif /* _L4LB_BATCH_H */
