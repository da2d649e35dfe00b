// SPDX-License-Identifier: GPL-2.0
/* Does a batch name a service or a real server twice? */
#include "config/batch_check.h"

#include <linux/mm.h>
#include <linux/netlink.h>
#include <linux/slab.h>
#include <linux/sort.h>

static int cmp_services(const void *a, const void *b)
{
	const struct l4lb_batch_service *x = *(struct l4lb_batch_service **)a;
	const struct l4lb_batch_service *y = *(struct l4lb_batch_service **)b;
	int d = memcmp(&x->key, &y->key, sizeof(x->key));

	return d ?: x < y ? -1 : x > y;
}

static int cmp_names(const struct l4lb_batch_server *x,
		     const struct l4lb_batch_server *y)
{
	return memcmp(&x->cfg.addr, &y->cfg.addr, sizeof(x->cfg.addr)) ?:
	       (int)ntohs(x->cfg.port) - (int)ntohs(y->cfg.port) ?:
	       (int)x->cfg.af - (int)y->cfg.af;
}

static int cmp_servers(const void *a, const void *b)
{
	const struct l4lb_batch_server *x = *(struct l4lb_batch_server **)a;
	const struct l4lb_batch_server *y = *(struct l4lb_batch_server **)b;
	int d = cmp_names(x, y);

	return d ?: x < y ? -1 : x > y;
}

static int check_services(struct l4lb_batch *b, void **list,
			  struct netlink_ext_ack *extack)
{
	struct l4lb_batch_service *svc, *before;
	unsigned int i;

	for (i = 0; i < b->n_services; i++)
		list[i] = &b->services[i];
	sort(list, b->n_services, sizeof(*list), cmp_services, NULL);
	for (i = 1; i < b->n_services; i++) {
		before = list[i - 1];
		svc = list[i];
		if (memcmp(&svc->key, &before->key, sizeof(svc->key)))
			continue;
		b->at_service = svc - b->services;
		NL_SET_ERR_MSG(extack, "the service is named twice");
		return -EEXIST;
	}
	return 0;
}

static int check_servers(struct l4lb_batch *b,
			 const struct l4lb_batch_service *svc, void **list,
			 struct netlink_ext_ack *extack)
{
	struct l4lb_batch_server *server, *before;
	unsigned int i;

	for (i = 0; i < svc->n; i++)
		list[i] = &b->servers[svc->first + i];
	sort(list, svc->n, sizeof(*list), cmp_servers, NULL);
	for (i = 1; i < svc->n; i++) {
		before = list[i - 1];
		server = list[i];
		if (cmp_names(server, before))
			continue;
		b->at_service = svc - b->services;
		b->at_server = server - b->servers - svc->first;
		NL_SET_ERR_MSG(extack, "the real server is named twice");
		return -EEXIST;
	}
	return 0;
}

/**
 * l4lb_batch_check() - does a batch name a service or a real server twice?
 * @b: the batch, complete
 * @extack: gets a sentence
 *
 * Context: may sleep.
 * Return: 0, -EEXIST with @b->at_service and @b->at_server set, or -ENOMEM.
 */
int l4lb_batch_check(struct l4lb_batch *b, struct netlink_ext_ack *extack)
{
	void **list;
	unsigned int i;
	int err;

	list = kvcalloc(max3(b->n_services, b->n_servers, 1U), sizeof(*list),
			GFP_KERNEL);
	if (!list) {
		NL_SET_ERR_MSG(extack, "no memory for the batch");
		return -ENOMEM;
	}
	b->at_server = -1;
	err = check_services(b, list, extack);
	for (i = 0; i < b->n_services && !err; i++) {
		err = check_servers(b, &b->services[i], list, extack);
		cond_resched();
	}
	kvfree(list);
	return err;
}
