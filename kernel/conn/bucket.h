/* SPDX-License-Identifier: GPL-2.0 */
/* Connections in the buckets of their table. */
#ifndef _L4LB_CONN_BUCKET_H
#define _L4LB_CONN_BUCKET_H

#include "conn/table.h"

u64 l4lb_conn_table_hash(const struct l4lb_conn_table *table,
			 const struct l4lb_flow *flow, bool template);
u64 l4lb_conn_table_hash_of(const struct l4lb_conn_table *table,
			    const struct l4lb_conn *conn);
struct l4lb_conn *l4lb_conn_table_insert(struct l4lb_conn_table *table,
					 struct l4lb_conn *conn,
					 const struct l4lb_flow *flow);
struct l4lb_conn *l4lb_conn_table_insert_local(struct l4lb_conn_table *table,
					       struct l4lb_conn *conn);
struct l4lb_conn *l4lb_conn_equal_victim(struct l4lb_conn_table *table,
					 const struct l4lb_conn *conn);
void l4lb_conn_table_remove(struct l4lb_conn_table *table,
			    struct l4lb_conn *conn);

/* Visit connections and templates by hash, which no resize changes.
 * range_end(): the last hash in the same bucket as @first.
 * visit(): at least those from @first to @last; one that moves meanwhile may
 * be visited twice.  Return: how often @fn returned true.
 */
typedef bool l4lb_conn_visit_fn(struct l4lb_conn *conn, void *arg);

u64 l4lb_conn_table_range_end(const struct l4lb_conn_table *table, u64 first);
unsigned int l4lb_conn_table_visit(const struct l4lb_conn_table *table,
				   u64 first, u64 last, l4lb_conn_visit_fn *fn,
				   void *arg);

bool l4lb_conn_bucket_move(struct l4lb_conn_table *table,
			   struct l4lb_conn_array *from, u64 i);
spinlock_t *l4lb_conn_bucket_lock(struct l4lb_conn_table *table,
				  const struct l4lb_conn_array *array, u64 i);
void l4lb_conn_bucket_free_chain(struct l4lb_conn_bucket *bucket);

int l4lb_conn_bucket_init(void);
void l4lb_conn_bucket_exit(void);

#endif /* _L4LB_CONN_BUCKET_H */
