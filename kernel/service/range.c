// SPDX-License-Identifier: GPL-2.0
/*
 * Services for a range of addresses (a prefix) and of ports.
 *
 * Packets come here if no other service takes them.  The longest prefix wins, and in it
 * the smallest range of ports:
 *
 *	lengths		a bitmap of the lengths of all prefixes of a family and protocol,
 *			LENGTHS_MAX at most: each costs a packet a look into the hash table
 *	prefixes	a hash table by masked address, length and protocol
 *	set		the ranges of ports of a prefix: an array for a binary search, see
 *			range_search.h
 *
 * A set is never changed for packets, but for the pointer to a service that goes: removal
 * needs no memory.  New ranges wait until all of a batch are known.  Then each prefix that
 * gets some has a new set, without the services that the batch removes, and packets see it
 * at once.
 */
#include "service/range.h"

#include <linux/bitmap.h>
#include <linux/inetdevice.h>
#include <linux/mm.h>
#include <linux/netlink.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <net/ipv6.h>

#include "service/range_search.h"

#define LENGTHS_MAX	8
#define LENGTHS		129	/* 0 is none */
#define NOWHERE		UINT_MAX

/**
 * struct l4lb_range_set - all ranges of ports of a prefix
 * @rcu: to free it
 * @n: their number
 * @r: in the order of l4lb_range_cmp()
 */
struct l4lb_range_set {
	struct rcu_head		rcu;
	unsigned int		n;
	struct l4lb_range	r[];
};

/**
 * struct l4lb_prefix - a prefix that has ranges of a protocol
 * @node: in l4lb_ranges.prefixes
 * @key: address, family, length and protocol
 * @set: for packets; NULL: none yet (RCU)
 * @next: to be published
 * @joining: services that are not in @set, by .joining
 * @n_joining: their number
 * @n: services, those in @set and in @joining
 * @dirty: in l4lb_ranges.dirty, if @joining is not empty
 * @rcu: to free it
 */
struct l4lb_prefix {
	struct rhash_head		node;
	struct l4lb_svc_key		key;
	struct l4lb_range_set __rcu	*set;
	struct l4lb_range_set		*next;
	struct list_head		joining;
	unsigned int			n_joining;
	unsigned int			n;
	struct list_head		dirty;
	struct rcu_head			rcu;
};

/**
 * struct lengths - of all prefixes of a family and protocol
 * @used: which there are; read by packets
 * @n: prefixes of each length
 */
struct lengths {
	DECLARE_BITMAP(used, LENGTHS);
	unsigned int		n[LENGTHS];
};

/**
 * struct l4lb_ranges - the ranges of a namespace, from the first to its end
 * @services: by key (configuration mutex)
 * @prefixes: struct l4lb_prefix by the key's part before the port (RCU readers)
 * @lengths: by family and protocol
 * @dirty: prefixes with services that packets do not see yet
 */
struct l4lb_ranges {
	struct rhashtable	services;
	struct rhashtable	prefixes;
	struct lengths		lengths[2][3];
	struct list_head	dirty;
};

static const struct rhashtable_params service_params = {
	.key_len	= sizeof(struct l4lb_svc_key),
	.key_offset	= offsetof(struct l4lb_service, key),
	.head_offset	= offsetof(struct l4lb_service, node),
	.nelem_hint	= 1,
	.automatic_shrinking = true,
};

static const struct rhashtable_params prefix_params = {
	.key_len	= offsetof(struct l4lb_svc_key, port),
	.key_offset	= offsetof(struct l4lb_prefix, key),
	.head_offset	= offsetof(struct l4lb_prefix, node),
	.nelem_hint	= 1,
	.automatic_shrinking = true,
};

/* It is hashed and compared as bytes: it must not have holes. */
static_assert(sizeof(struct l4lb_svc_key) ==
	      sizeof(union nf_inet_addr) + sizeof(u32) + 2 * sizeof(u8) +
	      sizeof(u16) + 2 * sizeof(__be16));

static void mask(union nf_inet_addr *to, u8 af, const union nf_inet_addr *from,
		 unsigned int len)
{
	if (af == AF_INET)
		to->ip = from->ip & inet_make_mask(len);
	else
		ipv6_addr_prefix(&to->in6, &from->in6, len);
}

bool l4lb_key_has_vip(const struct l4lb_svc_key *key, u8 af,
		      const union nf_inet_addr *addr)
{
	union nf_inet_addr masked = { };

	if (af != key->af)
		return false;
	mask(&masked, af, addr, key->prefix_len);
	return ipv6_addr_equal(&masked.in6, &key->addr.in6);
}

static struct lengths *lengths_of(struct l4lb_ranges *ranges, u8 af, u16 proto)
{
	struct lengths *all = ranges->lengths[af == AF_INET6];

	switch (proto) {
	case IPPROTO_TCP:
		return &all[0];
	case IPPROTO_UDP:
		return &all[1];
	default:
		return &all[2];		/* SCTP: no range has another one */
	}
}

/* ---- packet path ---- */

static bool is_live(const struct l4lb_service *svc)
{
	/* Pairs with l4lb_service_apply(): read the flags, then the pool. */
	return svc && smp_load_acquire(&svc->flags) & IP_VS_SVC_F_HASHED;
}

/* The smallest live range of @prefix that has @port. */
static struct l4lb_service *search(const struct l4lb_prefix *prefix, u16 port)
{
	const struct l4lb_range_set *set = rcu_dereference(prefix->set);
	struct l4lb_service *svc;
	int i;

	i = set ? l4lb_range_search(set->r, set->n, port) : -1;
	for (; i >= 0; i = set->r[i].outer) {
		svc = rcu_dereference(set->r[i].svc);
		if (is_live(svc))
			return svc;
	}
	return NULL;
}

/* The live range of @prefix that has just these ports. */
static struct l4lb_service *search_same(const struct l4lb_prefix *prefix,
					u16 first, u16 last)
{
	const struct l4lb_range_set *set = rcu_dereference(prefix->set);
	struct l4lb_service *svc;
	int i;

	i = set ? l4lb_range_search(set->r, set->n, first) : -1;
	for (; i >= 0 && set->r[i].last <= last; i = set->r[i].outer) {
		svc = rcu_dereference(set->r[i].svc);
		if (set->r[i].first == first && set->r[i].last == last &&
		    is_live(svc))
			return svc;
	}
	return NULL;
}

/* @same: of a template, whose ports are those of its service. */
static struct l4lb_service *lookup(struct l4lb_net *ln,
				   const struct l4lb_flow *flow, bool same)
{
	/* Pairs with ranges_get(). */
	struct l4lb_ranges *ranges = smp_load_acquire(&ln->ranges);
	struct l4lb_svc_key key = { .af = flow->af, .protocol = flow->proto };
	unsigned int len = LENGTHS, before;
	const struct l4lb_prefix *prefix;
	const unsigned long *used;
	struct l4lb_service *svc;

	if (!ranges)
		return NULL;
	used = lengths_of(ranges, flow->af, flow->proto)->used;
	for (;;) {
		before = len;
		len = find_last_bit(used, before);
		if (len >= before)
			return NULL;
		key.prefix_len = len;
		mask(&key.addr, flow->af, &flow->daddr, len);
		prefix = rhashtable_lookup(&ranges->prefixes, &key, prefix_params);
		if (!prefix)
			continue;
		svc = same ? search_same(prefix, ntohs(flow->dport), ntohs(flow->sport)) :
			     search(prefix, ntohs(flow->dport));
		if (svc)
			return svc;
	}
}

/**
 * l4lb_range_lookup() - the service with a range that a packet is for
 * @ln: namespace
 * @flow: of the packet, client to VIP
 *
 * No more than LENGTHS_MAX prefixes are looked up, with a binary search in each.
 *
 * Return: the service, valid in the caller's RCU section, or NULL.
 */
struct l4lb_service *l4lb_range_lookup(struct l4lb_net *ln,
				       const struct l4lb_flow *flow)
{
	return lookup(ln, flow, false);
}

/**
 * l4lb_range_of_template() - the service with a range that a template is of
 * @ln: namespace
 * @flow: the template's: VIP, first and last port as destination and source port
 *
 * Return: the service, valid in the caller's RCU section, or NULL.
 */
struct l4lb_service *l4lb_range_of_template(struct l4lb_net *ln,
					    const struct l4lb_flow *flow)
{
	return lookup(ln, flow, true);
}

/* ---- prefixes: configuration mutex ---- */

static struct l4lb_ranges *ranges_get(struct l4lb_net *ln)
{
	struct l4lb_ranges *ranges = ln->ranges;

	lockdep_assert_held(&ln->lock);
	if (ranges)
		return ranges;
	ranges = kvzalloc(sizeof(*ranges), GFP_KERNEL_ACCOUNT);
	if (!ranges)
		return NULL;
	INIT_LIST_HEAD(&ranges->dirty);
	if (rhashtable_init(&ranges->services, &service_params))
		goto err_free;
	if (rhashtable_init(&ranges->prefixes, &prefix_params))
		goto err_services;
	/* Pairs with lookup(). */
	smp_store_release(&ln->ranges, ranges);
	return ranges;

err_services:
	rhashtable_destroy(&ranges->services);
err_free:
	kvfree(ranges);
	return NULL;
}

static struct l4lb_range_set *set_of(const struct l4lb_prefix *prefix,
				     const struct l4lb_net *ln)
{
	return rcu_dereference_protected(prefix->set, lockdep_is_held(&ln->lock));
}

static struct l4lb_service *service_of(const struct l4lb_range *range,
				       const struct l4lb_net *ln)
{
	return rcu_dereference_protected(range->svc, lockdep_is_held(&ln->lock));
}

static struct l4lb_prefix *prefix_new(struct l4lb_ranges *ranges,
				      const struct l4lb_svc_key *key)
{
	struct l4lb_prefix *prefix = kzalloc(sizeof(*prefix), GFP_KERNEL_ACCOUNT);
	int err;

	if (!prefix)
		return ERR_PTR(-ENOMEM);
	prefix->key = *key;
	prefix->key.port = 0;
	prefix->key.last_port = 0;
	INIT_LIST_HEAD(&prefix->joining);
	INIT_LIST_HEAD(&prefix->dirty);
	err = rhashtable_insert_fast(&ranges->prefixes, &prefix->node, prefix_params);
	if (err) {
		kfree(prefix);
		return ERR_PTR(err);
	}
	return prefix;
}

/* The prefix of @key, made when there is none; or an ERR_PTR(). */
static struct l4lb_prefix *prefix_get(struct l4lb_ranges *ranges,
				      const struct l4lb_svc_key *key,
				      struct netlink_ext_ack *extack)
{
	struct lengths *lengths = lengths_of(ranges, key->af, key->protocol);
	struct l4lb_prefix *prefix;

	prefix = rhashtable_lookup_fast(&ranges->prefixes, key, prefix_params);
	if (prefix)
		return prefix;
	if (!lengths->n[key->prefix_len] &&
	    bitmap_weight(lengths->used, LENGTHS) >= LENGTHS_MAX) {
		NL_SET_ERR_MSG(extack,
			       "ranges of a protocol have 8 different prefix lengths at most");
		return ERR_PTR(-E2BIG);
	}
	prefix = prefix_new(ranges, key);
	if (IS_ERR(prefix)) {
		NL_SET_ERR_MSG(extack, "no memory for the table of services");
		return prefix;
	}
	lengths->n[key->prefix_len]++;
	set_bit(key->prefix_len, lengths->used);
	return prefix;
}

static void set_free(struct l4lb_range_set *set)
{
	if (set)
		kvfree_rcu(set, rcu);
}

static void prefix_put(struct l4lb_net *ln, struct l4lb_prefix *prefix)
{
	struct l4lb_ranges *ranges = ln->ranges;
	struct lengths *lengths = lengths_of(ranges, prefix->key.af,
					     prefix->key.protocol);

	if (--prefix->n)
		return;
	WARN_ON_ONCE(prefix->next || !list_empty(&prefix->dirty));
	if (!--lengths->n[prefix->key.prefix_len])
		clear_bit(prefix->key.prefix_len, lengths->used);
	rhashtable_remove_fast(&ranges->prefixes, &prefix->node, prefix_params);
	set_free(set_of(prefix, ln));
	kfree_rcu(prefix, rcu);
}

/* ---- services: configuration mutex ---- */

struct l4lb_service *l4lb_range_find(struct l4lb_net *ln,
				     const struct l4lb_svc_key *key)
{
	lockdep_assert_held(&ln->lock);
	return ln->ranges ? rhashtable_lookup_fast(&ln->ranges->services, key,
						   service_params) : NULL;
}

/**
 * l4lb_range_add() - add a service with a range to the table
 * @svc: the service
 * @extack: gets a sentence on failure
 *
 * Packets do not see it before l4lb_ranges_publish().
 *
 * Return: 0, -ENOMEM, or -E2BIG for too many different lengths.
 */
int l4lb_range_add(struct l4lb_service *svc, struct netlink_ext_ack *extack)
{
	struct l4lb_ranges *ranges = ranges_get(svc->ln);
	struct l4lb_prefix *prefix;
	int err = -ENOMEM;

	if (ranges)
		err = rhashtable_insert_fast(&ranges->services, &svc->node, service_params);
	if (err) {
		NL_SET_ERR_MSG(extack, "no memory for the table of services");
		return err;
	}
	prefix = prefix_get(ranges, &svc->key, extack);
	if (IS_ERR(prefix)) {
		rhashtable_remove_fast(&ranges->services, &svc->node, service_params);
		return PTR_ERR(prefix);
	}
	svc->prefix = prefix;
	svc->range_at = NOWHERE;
	list_add_tail(&svc->joining, &prefix->joining);
	prefix->n_joining++;
	prefix->n++;
	if (list_empty(&prefix->dirty))
		list_add_tail(&prefix->dirty, &ranges->dirty);
	return 0;
}

/* Packets may find @svc for a grace period. */
void l4lb_range_del(struct l4lb_service *svc)
{
	struct l4lb_prefix *prefix = svc->prefix;
	struct l4lb_net *ln = svc->ln;

	lockdep_assert_held(&ln->lock);
	rhashtable_remove_fast(&ln->ranges->services, &svc->node, service_params);
	if (!list_empty(&svc->joining)) {
		list_del_init(&svc->joining);
		prefix->n_joining--;
	}
	if (svc->range_at != NOWHERE)
		RCU_INIT_POINTER(set_of(prefix, ln)->r[svc->range_at].svc, NULL);
	svc->prefix = NULL;
	prefix_put(ln, prefix);
}

/* ---- sets: configuration mutex ---- */

static int cmp(const void *a, const void *b)
{
	return l4lb_range_cmp(a, b);
}

static void swap_ranges(void *a, void *b, int size)
{
	swap(*(struct l4lb_range *)a, *(struct l4lb_range *)b);
}

/* Those that join, in order, at @to. */
static void fill_joining(const struct l4lb_prefix *prefix, struct l4lb_range *to)
{
	struct l4lb_service *svc;
	unsigned int n = 0;

	list_for_each_entry(svc, &prefix->joining, joining) {
		to[n].first = ntohs(svc->key.port);
		to[n].last = ntohs(svc->key.last_port);
		RCU_INIT_POINTER(to[n++].svc, svc);
	}
	sort(to, n, sizeof(*to), cmp, swap_ranges);
}

/* The ranges that @prefix is to have; @stays: which of the old ones, NULL: all.  The new
 * ones are put at the end of the array, and merged from there with the old ones: fewer
 * are written than were read, so nothing is overwritten.
 */
static struct l4lb_range_set *merge(const struct l4lb_prefix *prefix,
				    const struct l4lb_net *ln,
				    bool (*stays)(const struct l4lb_service *svc))
{
	const struct l4lb_range_set *old = set_of(prefix, ln);
	unsigned int n_old = old ? old->n : 0, i, next = n_old;
	unsigned int end = n_old + prefix->n_joining;
	struct l4lb_range_set *set;
	struct l4lb_service *svc;

	set = kvmalloc(struct_size(set, r, end), GFP_KERNEL_ACCOUNT);
	if (!set)
		return NULL;
	set->n = 0;
	fill_joining(prefix, set->r + n_old);
	for (i = 0; i < n_old; i++) {
		svc = service_of(&old->r[i], ln);
		if (!svc || (stays && !stays(svc)))
			continue;
		while (next < end && l4lb_range_cmp(&set->r[next], &old->r[i]) < 0)
			set->r[set->n++] = set->r[next++];
		set->r[set->n++] = old->r[i];
	}
	while (next < end)
		set->r[set->n++] = set->r[next++];
	return set;
}

/* Of two ranges that are in each other's way, the service that is new. */
static struct l4lb_service *newer(const struct l4lb_range_set *set, unsigned int at,
				  const struct l4lb_net *ln)
{
	struct l4lb_service *svc = service_of(&set->r[at], ln);

	while (svc->range_at != NOWHERE && set->r[at].outer >= 0) {
		at = set->r[at].outer;
		svc = service_of(&set->r[at], ln);
	}
	return svc;
}

static int prepare(struct l4lb_prefix *prefix, struct l4lb_net *ln,
		   bool (*stays)(const struct l4lb_service *svc),
		   struct l4lb_service **refused, struct netlink_ext_ack *extack)
{
	struct l4lb_range_set *set = merge(prefix, ln, stays);
	unsigned int at;

	if (!set) {
		NL_SET_ERR_MSG(extack, "no memory for the table of services");
		return -ENOMEM;
	}
	prefix->next = set;
	switch (l4lb_range_nest(set->r, set->n, &at)) {
	case L4LB_RANGE_FINE:
		return 0;
	case L4LB_RANGE_CROSSES:
		*refused = newer(set, at, ln);
		NL_SET_ERR_MSG(extack,
			       "the range and another one of its prefix cross each other");
		return -EEXIST;
	default:
		*refused = newer(set, at, ln);
		NL_SET_ERR_MSG(extack,
			       "the range would be in eight others of its prefix: seven at most");
		return -E2BIG;
	}
}

/**
 * l4lb_ranges_prepare() - build what packets are to see
 * @ln: namespace
 * @stays: which of the services that packets see stay; NULL: all
 * @refused: gets the service that is in the way of another one
 * @extack: gets a sentence on failure
 *
 * Context: configuration mutex held, may sleep.
 * Return: 0; otherwise, call l4lb_ranges_cancel().
 */
int l4lb_ranges_prepare(struct l4lb_net *ln,
			bool (*stays)(const struct l4lb_service *svc),
			struct l4lb_service **refused,
			struct netlink_ext_ack *extack)
{
	struct l4lb_prefix *prefix;
	int err;

	lockdep_assert_held(&ln->lock);
	*refused = NULL;
	if (!ln->ranges)
		return 0;
	list_for_each_entry(prefix, &ln->ranges->dirty, dirty) {
		err = prepare(prefix, ln, stays, refused, extack);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

static void publish(struct l4lb_prefix *prefix, struct l4lb_net *ln)
{
	struct l4lb_range_set *old = set_of(prefix, ln), *set = prefix->next;
	struct l4lb_service *svc, *next;
	unsigned int i;

	for (i = 0; old && i < old->n; i++) {
		svc = service_of(&old->r[i], ln);
		if (svc)
			svc->range_at = NOWHERE;
	}
	for (i = 0; i < set->n; i++)
		service_of(&set->r[i], ln)->range_at = i;
	list_for_each_entry_safe(svc, next, &prefix->joining, joining)
		list_del_init(&svc->joining);
	prefix->n_joining = 0;
	prefix->next = NULL;
	rcu_assign_pointer(prefix->set, set);
	set_free(old);
}

/* Cannot fail.  Configuration mutex held. */
void l4lb_ranges_publish(struct l4lb_net *ln)
{
	struct l4lb_prefix *prefix, *next;

	lockdep_assert_held(&ln->lock);
	if (!ln->ranges)
		return;
	list_for_each_entry_safe(prefix, next, &ln->ranges->dirty, dirty) {
		list_del_init(&prefix->dirty);
		publish(prefix, ln);
		cond_resched();
	}
}

/* The services that were to join are removed after this.  Configuration mutex held. */
void l4lb_ranges_cancel(struct l4lb_net *ln)
{
	struct l4lb_prefix *prefix, *next;

	lockdep_assert_held(&ln->lock);
	if (!ln->ranges)
		return;
	list_for_each_entry_safe(prefix, next, &ln->ranges->dirty, dirty) {
		list_del_init(&prefix->dirty);
		kvfree(prefix->next);
		prefix->next = NULL;
	}
}

void l4lb_ranges_free(struct l4lb_net *ln)
{
	if (!ln->ranges)
		return;
	rhashtable_destroy(&ln->ranges->services);
	rhashtable_destroy(&ln->ranges->prefixes);
	kvfree(ln->ranges);
	ln->ranges = NULL;
}
