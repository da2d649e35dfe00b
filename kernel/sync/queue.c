// SPDX-License-Identifier: GPL-2.0
/*
 * Packets write their records into the message of a slot.  A full message goes
 * to the queue of the slot's thread; one that is not full is collected by the
 * thread every 20 ms.
 *
 * A full queue refuses messages, so a full message stays in its slot and the
 * slot refuses records: the callers try again later, nothing is lost, and the
 * memory is bounded by sync_qlen_max messages for each thread and one for each
 * slot.
 */
#include "sync/queue.h"

#include <linux/log2.h>
#include <linux/slab.h>

#include "sync/counter.h"
#include "sync/trailer.h"

static bool is_full(const struct l4lb_sync_queue *queue)
{
	return queue->n >= max(READ_ONCE(queue->ln->sysctl.sync_qlen_max), 1UL);
}

/* Move the slot's message to the queue.  False: the queue is full. */
static bool enqueue(struct l4lb_sync_queue *queue, struct l4lb_sync_slot *slot)
{
	struct l4lb_sync_message *message = slot->message;

	lockdep_assert_held(&slot->lock);
	if (!message->buf.n) {
		kfree(message);
		slot->message = NULL;
		return true;
	}
	spin_lock(&queue->lock);
	if (is_full(queue)) {
		spin_unlock(&queue->lock);
		return false;
	}
	list_add_tail(&message->node, &queue->messages);
	WRITE_ONCE(queue->n, queue->n + 1);
	spin_unlock(&queue->lock);
	WRITE_ONCE(slot->message, NULL);
	return true;
}

/* Bytes for records.  A message that was begun before there were peers, or a key,
 * gets its trailer beyond them.
 */
static size_t room_of(const struct l4lb_sync_queues *queues)
{
	if (!READ_ONCE(queues->queue[0].ln->sync_trailer))
		return queues->maxlen;
	return queues->maxlen < L4LB_SYNC_TRAILER ? 0 :
	       ALIGN_DOWN(queues->maxlen - L4LB_SYNC_TRAILER, L4LB_SYNC_ALIGN);
}

static struct l4lb_sync_message *begin(const struct l4lb_sync_queues *queues,
				       u8 version,
				       const struct l4lb_sync_record *record)
{
	size_t size = max_t(size_t, room_of(queues), L4LB_SYNC_HEADER_V1 +
			    l4lb_sync_record_size(record, version));
	struct l4lb_sync_message *message;

	message = kmalloc(struct_size(message, data,
				      l4lb_sync_with_trailer(size)),
			  GFP_ATOMIC | __GFP_NOWARN);
	if (!message)
		return NULL;
	message->sequence = 0;
	message->backlog = 0;
	message->buf = (struct l4lb_sync_buffer){
		.data = message->data,
		.size = size,
	};
	l4lb_sync_begin(&message->buf, version, queues->id);
	return message;
}

/* Pairs with the thread, which sets @idle and then looks for messages. */
static void wake_idle(struct l4lb_sync_queue *queue)
{
	smp_mb();	/* the message before @idle */
	if (READ_ONCE(queue->idle))
		wake_up(&queue->wait);
}

static bool put(const struct l4lb_sync_queues *queues,
		struct l4lb_sync_queue *queue, struct l4lb_sync_slot *slot,
		const struct l4lb_sync_record *record)
{
	u8 version = READ_ONCE(queue->ln->sysctl.sync_version);
	struct l4lb_sync_message *message = slot->message;

	lockdep_assert_held(&slot->lock);
	if (message && message->buf.version == version &&
	    l4lb_sync_append(&message->buf, record))
		return true;
	if (message) {
		if (!enqueue(queue, slot))
			return false;
		wake_up(&queue->wait);
	}
	message = begin(queues, version, record);
	if (!message)
		return false;
	l4lb_sync_append(&message->buf, record);
	WRITE_ONCE(slot->message, message);
	wake_idle(queue);
	return true;
}

bool l4lb_sync_put(struct l4lb_net *ln, const struct l4lb_conn *conn,
		   const struct l4lb_sync_record *record)
{
	struct l4lb_sync_queues *queues = rcu_dereference(ln->sync_queues);
	u32 hash = hash_ptr(conn, 32);
	struct l4lb_sync_queue *queue;
	struct l4lb_sync_slot *slot;
	bool done;

	if (!queues)
		return false;
	queue = &queues->queue[hash & (queues->n - 1)];
	slot = &queue->slots[hash / L4LB_SYNC_THREADS_MAX & queues->slot_mask];
	spin_lock(&slot->lock);
	done = put(queues, queue, slot, record);
	spin_unlock(&slot->lock);
	if (!done)
		l4lb_sync_count(ln, L4LB_SYNC_N_OVERFLOW);
	return done;
}

bool l4lb_sync_queue_busy(const struct l4lb_sync_queue *queue)
{
	unsigned int i;

	if (READ_ONCE(queue->n))
		return true;
	for (i = 0; i < L4LB_SYNC_SLOTS_MAX; i++)
		if (READ_ONCE(queue->slots[i].message))
			return true;
	return false;
}

void l4lb_sync_queue_collect(struct l4lb_sync_queue *queue)
{
	struct l4lb_sync_slot *slot;
	unsigned int i;

	for (i = 0; i < L4LB_SYNC_SLOTS_MAX; i++) {
		slot = &queue->slots[i];
		if (!READ_ONCE(slot->message))
			continue;
		spin_lock_bh(&slot->lock);
		if (slot->message)
			enqueue(queue, slot);
		spin_unlock_bh(&slot->lock);
	}
}

struct l4lb_sync_message *l4lb_sync_queue_pop(struct l4lb_sync_queue *queue)
{
	struct l4lb_sync_message *message;

	spin_lock_bh(&queue->lock);
	message = list_first_entry_or_null(&queue->messages,
					   struct l4lb_sync_message, node);
	if (message) {
		list_del(&message->node);
		WRITE_ONCE(queue->n, queue->n - 1);
	}
	spin_unlock_bh(&queue->lock);
	return message;
}

static void queue_init(struct l4lb_sync_queue *queue, struct l4lb_net *ln)
{
	unsigned int i;

	queue->ln = ln;
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->messages);
	init_waitqueue_head(&queue->wait);
	for (i = 0; i < L4LB_SYNC_SLOTS_MAX; i++)
		spin_lock_init(&queue->slots[i].lock);
}

static void queue_empty(struct l4lb_sync_queue *queue)
{
	struct l4lb_sync_message *message, *next;
	unsigned int i;

	list_for_each_entry_safe(message, next, &queue->messages, node)
		kfree(message);
	for (i = 0; i < L4LB_SYNC_SLOTS_MAX; i++)
		kfree(queue->slots[i].message);
}

static void free_work(struct work_struct *work)
{
	struct l4lb_sync_queues *queues = container_of(to_rcu_work(work),
						       struct l4lb_sync_queues,
						       work);
	unsigned int i;

	for (i = 0; i < queues->n; i++)
		queue_empty(&queues->queue[i]);
	kvfree(queues);
}

/* @n: a power of two, at most %L4LB_SYNC_THREADS_MAX.  NULL: no memory. */
struct l4lb_sync_queues *l4lb_sync_queues_create(struct l4lb_net *ln,
						 unsigned int n, u16 maxlen,
						 u8 id)
{
	unsigned int slots = min_t(unsigned int, L4LB_SYNC_SLOTS_MAX,
				   roundup_pow_of_two(num_online_cpus()));
	struct l4lb_sync_queues *queues;
	unsigned int i;

	queues = kvzalloc(struct_size(queues, queue, n), GFP_KERNEL);
	if (!queues)
		return NULL;
	INIT_RCU_WORK(&queues->work, free_work);
	queues->maxlen = maxlen;
	queues->id = id;
	queues->slot_mask = slots - 1;
	queues->n = n;
	for (i = 0; i < n; i++)
		queue_init(&queues->queue[i], ln);
	return queues;
}

void l4lb_sync_queues_free(struct l4lb_sync_queues *queues)
{
	queue_rcu_work(l4lb_wq, &queues->work);
}
