// SPDX-License-Identifier: GPL-2.0
/*
 * Real servers by address: whose packet is it that belongs to no connection?
 * A real server of several services is there several times, the one that was
 * added last first.
 *
 * And by name, for whoever configures: there each is once, in a service or in
 * the trash.
 */
#include <linux/rhashtable.h>

#include "service/server.h"

static const struct rhashtable_params real_params = {
	.key_len	= sizeof(struct l4lb_real_key),
	.key_offset	= offsetof(struct l4lb_real, key),
	.head_offset	= offsetof(struct l4lb_real, by_key.rhead),
	.nelem_hint	= 1,
	.automatic_shrinking = true,
};

static const struct rhashtable_params name_params = {
	.key_len	= sizeof(struct l4lb_real_name),
	.key_offset	= offsetof(struct l4lb_real, name),
	.head_offset	= offsetof(struct l4lb_real, by_name),
	.nelem_hint	= 1,
	.automatic_shrinking = true,
};

/* The keys are hashed and compared as bytes: they must not have holes. */
static_assert(sizeof(struct l4lb_real_name) ==
	      sizeof(struct l4lb_svc_key) + sizeof(union nf_inet_addr) +
	      sizeof(__be16) + sizeof(u16));
static_assert(sizeof(struct l4lb_real_key) ==
	      sizeof(union nf_inet_addr) + sizeof(__be16) + 2 * sizeof(u8));

/* Configuration mutex held.  May sleep: one that was removed a moment ago comes
 * back a grace period later.
 */
int l4lb_real_table_add(struct l4lb_real *real)
{
	const struct l4lb_svc_key *svc = &real->name.svc;

	lockdep_assert_held(&real->ln->lock);
	/* A packet that still stands on it would go on in another chain. */
	if (real->unlisted)
		cond_synchronize_rcu(real->unlisted);
	real->key = (struct l4lb_real_key) {
		.addr	= real->dest.addr,
		.port	= real->dest.port ?: svc->port,
		.af	= real->dest.af,
		.proto	= svc->protocol,
	};
	return rhltable_insert(&real->ln->reals, &real->by_key, real_params);
}

/* Configuration mutex held. */
void l4lb_real_table_del(struct l4lb_real *real)
{
	lockdep_assert_held(&real->ln->lock);
	rhltable_remove(&real->ln->reals, &real->by_key, real_params);
	real->unlisted = get_state_synchronize_rcu();
}

/**
 * l4lb_real_by_source() - the NATed real server that a packet comes from
 * @ln: namespace
 * @flow: of the packet, real server to client
 * @one_packet: it must be of a service with one-packet scheduling
 *
 * Services by firewall mark are left out: they have no protocol and no port.
 *
 * Context: RCU.
 * Return: the one that was added last, or NULL.
 */
struct l4lb_real *l4lb_real_by_source(struct l4lb_net *ln,
				      const struct l4lb_flow *flow,
				      bool one_packet)
{
	struct l4lb_real_key key = {
		.addr	= flow->saddr,
		.port	= flow->sport,
		.af	= flow->af,
		.proto	= flow->proto,
	};
	const struct l4lb_service *svc;
	struct rhlist_head *list, *pos;
	struct l4lb_real *real;

	list = rhltable_lookup(&ln->reals, &key, real_params);
	rhl_for_each_entry_rcu(real, pos, list, by_key) {
		svc = rcu_dereference(real->svc);
		if (svc && READ_ONCE(real->method) == IP_VS_CONN_F_MASQ &&
		    (!one_packet ||
		     READ_ONCE(svc->flags) & IP_VS_SVC_F_ONEPACKET))
			return real;
	}
	return NULL;
}

/* Configuration mutex held.  A name is taken once: look first. */
int l4lb_real_name_add(struct l4lb_real *real)
{
	lockdep_assert_held(&real->ln->lock);
	return rhashtable_insert_fast(&real->ln->real_names, &real->by_name,
				      name_params);
}

/* Configuration mutex held. */
void l4lb_real_name_del(struct l4lb_real *real)
{
	lockdep_assert_held(&real->ln->lock);
	rhashtable_remove_fast(&real->ln->real_names, &real->by_name,
			       name_params);
}

/* Configuration mutex held. */
struct l4lb_real *l4lb_real_by_name(struct l4lb_net *ln,
				    const struct l4lb_real_name *name)
{
	lockdep_assert_held(&ln->lock);
	return rhashtable_lookup_fast(&ln->real_names, name, name_params);
}

int l4lb_real_table_init(struct l4lb_net *ln)
{
	int err = rhltable_init(&ln->reals, &real_params);

	if (err)
		return err;
	err = rhashtable_init(&ln->real_names, &name_params);
	if (err)
		rhltable_destroy(&ln->reals);
	return err;
}

void l4lb_real_table_exit(struct l4lb_net *ln)
{
	rhashtable_destroy(&ln->real_names);
	rhltable_destroy(&ln->reals);
}
