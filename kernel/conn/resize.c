// SPDX-License-Identifier: GPL-2.0
/*
 * The size of the connection table: on average, between half a slot and four of
 * a bucket's six are in use, and about two after a resize.
 *
 * Nothing waits for a resize.  A work item does it, one bucket at a time, each
 * under its stripe's lock only; meanwhile readers look in both arrays.  Without
 * memory the table keeps its size, with longer chains; it tries again with an
 * eighth more slots in use, and from the sweep every quarter of a second.
 */
#include "conn/resize.h"

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "conn/bucket.h"

#define BITS_MAX	24		/* 1 GiB; 64 million slots in use */
#define SLOTS_MOST	4		/* slots in use per bucket, at most */
#define SLOTS_USUAL	3		/* likewise, after a resize */
#define SLOTS_LEAST	2		/* buckets per slot in use, at most */
#define RETRY		(HZ / 4)

static unsigned int array_bits(const struct l4lb_conn_array *array)
{
	return 64 - array->shift;
}

/* A larger array only saves time.  It must not make the kernel kill a process
 * for lack of memory, so it takes at most half of the available memory.
 */
static bool affordable(const struct l4lb_conn_table *table, unsigned int bits)
{
	u64 size = (u64)sizeof(struct l4lb_conn_bucket) << bits;

	return bits <= table->bits_min ||
	       size >> PAGE_SHIFT <= si_mem_available() / 2;
}

static struct l4lb_conn_array *array_alloc(unsigned int bits)
{
	struct l4lb_conn_array *array;

	array = kzalloc(sizeof(*array), GFP_KERNEL | __GFP_NOWARN);
	if (!array)
		return NULL;
	array->shift = 64 - bits;
	array->buckets = kvzalloc(sizeof(*array->buckets) << bits, GFP_KERNEL |
				  __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
	if (!array->buckets) {
		kfree(array);
		return NULL;
	}
	return array;
}

/* No reader is left. */
static void array_free(struct l4lb_conn_array *array)
{
	u64 i;

	for (i = 0; array->chained && i < 1ULL << array_bits(array); i++)
		l4lb_conn_bucket_free_chain(&array->buckets[i]);
	kvfree(array->buckets);
	kfree(array);
}

static unsigned int slots_in_use(const struct l4lb_conn_table *table)
{
	return atomic_read(&table->n) + atomic_read(&table->n_out);
}

static unsigned int bits_wanted(const struct l4lb_conn_table *table,
				unsigned int bits)
{
	unsigned int slots = slots_in_use(table);
	u64 size = 1ULL << bits;

	if (slots <= size * SLOTS_MOST && slots >= size / SLOTS_LEAST)
		return bits;
	slots = DIV_ROUND_UP(slots, SLOTS_USUAL);
	bits = order_base_2(max_t(unsigned int, slots, 1));
	return clamp_t(unsigned int, bits, table->bits_min, BITS_MAX);
}

static void set_threshold(struct l4lb_conn_table *table, unsigned int bits)
{
	WRITE_ONCE(table->resize_at, bits < BITS_MAX ?
		   SLOTS_MOST << bits : UINT_MAX);
}

void l4lb_conn_resize_check(struct l4lb_conn_table *table)
{
	const struct l4lb_conn_array *array = rcu_dereference(table->array);
	unsigned int bits = array_bits(array);

	if (rcu_access_pointer(array->next) ||
	    bits_wanted(table, bits) != bits)
		mod_delayed_work(system_unbound_wq, &table->resize, 0);
}

/* Return: false if some entries could not be moved. */
static bool move_all(struct l4lb_conn_table *table,
		     struct l4lb_conn_array *array)
{
	spinlock_t *lock;
	bool all = true;
	u64 i;

	for (i = 0; i < 1ULL << array_bits(array); i++) {
		lock = l4lb_conn_bucket_lock(table, array, i);
		spin_lock_bh(lock);
		all &= l4lb_conn_bucket_move(table, array, i);
		spin_unlock_bh(lock);
		cond_resched();
	}
	return all;
}

/* Only the resize work writes table->array and array->next. */
static struct l4lb_conn_array *array_current(const struct l4lb_conn_table *table)
{
	return rcu_dereference_protected(table->array, true);
}

static void resize_work(struct work_struct *work)
{
	struct l4lb_conn_table *table = container_of(to_delayed_work(work),
						     struct l4lb_conn_table,
						     resize);
	struct l4lb_conn_array *array = array_current(table), *next;
	unsigned int bits = array_bits(array), wanted;

	next = rcu_dereference_protected(array->next, true);
	if (!next) {
		wanted = bits_wanted(table, bits);
		if (wanted == bits)
			return;
		next = affordable(table, wanted) ? array_alloc(wanted) : NULL;
		if (!next) {
			WRITE_ONCE(table->resize_at, slots_in_use(table) / 8 * 9);
			return;
		}
		set_threshold(table, wanted);
		rcu_assign_pointer(array->next, next);
	}
	if (!move_all(table, array)) {
		queue_delayed_work(system_unbound_wq, &table->resize, RETRY);
		return;
	}
	rcu_assign_pointer(table->array, next);
	/* Readers of the old array may still follow its next pointer. */
	synchronize_rcu();
	array_free(array);
	/* Many connections may have been added meanwhile. */
	if (bits_wanted(table, array_bits(next)) != array_bits(next))
		queue_delayed_work(system_unbound_wq, &table->resize, 0);
}

/* Process context.  Return: 0 or -ENOMEM. */
int l4lb_conn_resize_init(struct l4lb_conn_table *table)
{
	struct l4lb_conn_array *array = array_alloc(table->bits_min);

	if (!array)
		return -ENOMEM;
	RCU_INIT_POINTER(table->array, array);
	set_threshold(table, table->bits_min);
	INIT_DELAYED_WORK(&table->resize, resize_work);
	return 0;
}

void l4lb_conn_resize_exit(struct l4lb_conn_table *table)
{
	struct l4lb_conn_array *array, *next;

	cancel_delayed_work_sync(&table->resize);
	for (array = array_current(table); array; array = next) {
		next = rcu_dereference_protected(array->next, true);
		array_free(array);
	}
}
