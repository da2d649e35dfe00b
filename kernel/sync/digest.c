// SPDX-License-Identifier: GPL-2.0
/*
 * Two directors have the same connections if the sums of all slices are equal.
 * Clients cannot make two connections' hashes cancel out: they do not know the
 * key.
 */
#include "sync/digest.h"

#include "conn/walk.h"
#include "sync/send_rules.h"

enum {
	VISITS	= 256,	/* between two breaks */
	BREAKS	= 16,	/* of a run */
};

/**
 * struct tuple - what is hashed
 * @addr: client, VIP, real server; IPv4: the first word
 * @port: likewise
 * @proto: protocol
 * @template: it is one
 */
struct tuple {
	union nf_inet_addr	addr[3];
	__be16			port[3];
	u8			proto;
	u8			template;
} __aligned(SIPHASH_ALIGNMENT);

static_assert(sizeof(struct tuple) == 56);

static void copy(union nf_inet_addr *to, union nf_inet_addr from, u8 af)
{
	if (af == AF_INET6)
		to->in6 = from.in6;
	else
		to->ip = from.ip;
}

u64 l4lb_sync_digest_hash(const siphash_key_t *key,
			  const struct l4lb_conn *conn)
{
	struct tuple tuple;

	memset(&tuple, 0, sizeof(tuple));
	copy(&tuple.addr[0], l4lb_conn_client(conn), conn->af);
	copy(&tuple.addr[1], l4lb_conn_vip(conn), conn->af);
	copy(&tuple.addr[2], l4lb_conn_server(conn), conn->server->sched.af);
	tuple.port[0] = conn->cport;
	tuple.port[1] = conn->vport;
	tuple.port[2] = conn->dport;
	tuple.proto = conn->proto;
	tuple.template = l4lb_conn_test(conn, L4LB_CONN_TEMPLATE);
	return siphash(&tuple, sizeof(tuple), key);
}

bool l4lb_sync_digest_begin(struct l4lb_sync_digest *digest,
			    struct l4lb_net *ln, const siphash_key_t *key)
{
	l4lb_sync_digest_end(digest);
	digest->walk = l4lb_conn_walk_open(ln);
	digest->key = *key;
	digest->n = 0;
	memset(digest->sums, 0, sizeof(digest->sums));
	return digest->walk;
}

static void add(struct l4lb_sync_digest *digest, const struct l4lb_conn *conn)
{
	u64 hash;

	if (!l4lb_send_shared(conn))
		return;
	hash = l4lb_sync_digest_hash(&digest->key, conn);
	digest->sums[hash % L4LB_DIGEST_SLICES] += hash;
	digest->n++;
}

/* Returns whether there are more. */
static bool visit(struct l4lb_sync_digest *digest)
{
	struct l4lb_conn *conn = NULL;
	unsigned int i;

	l4lb_conn_walk_start(digest->walk);
	for (i = 0; i < VISITS; i++) {
		conn = l4lb_conn_walk_next(digest->walk);
		if (!conn)
			break;
		add(digest, conn);
	}
	l4lb_conn_walk_stop(digest->walk);
	return conn;
}

bool l4lb_sync_digest_run(struct l4lb_sync_digest *digest)
{
	unsigned int i;

	for (i = 0; i < BREAKS; i++) {
		if (!visit(digest)) {
			l4lb_sync_digest_end(digest);
			return true;
		}
		cond_resched();
	}
	return false;
}

void l4lb_sync_digest_end(struct l4lb_sync_digest *digest)
{
	if (digest->walk)
		l4lb_conn_walk_close(digest->walk);
	digest->walk = NULL;
}
