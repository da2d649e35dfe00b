/* SPDX-License-Identifier: GPL-2.0 */
/* Messages on their way from packets to the sending daemon's threads. */
#ifndef _L4LB_SYNC_QUEUE_H
#define _L4LB_SYNC_QUEUE_H

#include <linux/cache.h>
#include <linux/wait.h>

#include "base/net.h"
#include "conn/conn.h"
#include "sync/wire_write.h"

enum {
	L4LB_SYNC_THREADS_MAX	= 64,
	L4LB_SYNC_SLOTS_MAX	= 16,
};

/**
 * struct l4lb_sync_message - a message that is being written, or is to be sent
 * @node: in a queue
 * @sequence: its number, if it has a trailer; 0: it has none
 * @backlog: messages that waited behind it when it was sent
 * @buf: its records; the bytes are in @data
 * @data: room for @buf
 */
struct l4lb_sync_message {
	struct list_head	node;
	u64			sequence;
	unsigned int		backlog;
	struct l4lb_sync_buffer	buf;
	u8			data[] __aligned(4);
};

/**
 * struct l4lb_sync_slot - where a share of a thread's connections write
 * @lock: protects the rest; taken before the queue's lock
 * @message: the message that is being written, or NULL
 */
struct l4lb_sync_slot {
	spinlock_t			lock;
	struct l4lb_sync_message	*message;
} ____cacheline_aligned_in_smp;

/**
 * struct l4lb_sync_queue - what one thread sends
 * @ln: the namespace
 * @lock: protects @messages and @n; innermost
 * @messages: to be sent, oldest first; at most sync_qlen_max
 * @n: their number
 * @idle: the thread sleeps until a message is begun
 * @wait: where the thread sleeps
 * @slots: all records of a connection go to the same, so they stay in order
 */
struct l4lb_sync_queue {
	struct l4lb_net		*ln;
	spinlock_t		lock;
	struct list_head	messages;
	unsigned int		n;
	bool			idle;
	wait_queue_head_t	wait;
	struct l4lb_sync_slot	slots[L4LB_SYNC_SLOTS_MAX];
};

/**
 * struct l4lb_sync_queues - queues of a sending daemon
 * @work: frees them after a grace period
 * @maxlen: bytes of a message, without UDP and IP
 * @id: sync id that messages have
 * @slot_mask: number of slots in use, minus 1
 * @n: number of queues, a power of two
 * @queue: one for each thread
 */
struct l4lb_sync_queues {
	struct rcu_work		work;
	u16			maxlen;
	u8			id;
	unsigned int		slot_mask;
	unsigned int		n;
	struct l4lb_sync_queue	queue[];
};

/* Does a sending daemon run in @ln?  Any context. */
static inline bool l4lb_sync_sends(const struct l4lb_net *ln)
{
	return rcu_access_pointer(ln->sync_queues);
}

/**
 * l4lb_sync_put() - announces a connection
 * @ln: the namespace
 * @conn: the connection, which decides about the slot
 * @record: what is sent about it
 *
 * It leaves with its message within about 20 ms.
 * Context: RCU, BH off.
 * Return: false: there is no sending daemon, or (counted as overflow) the queue
 * is full or there is no memory.  Nothing of @record was kept.
 */
bool l4lb_sync_put(struct l4lb_net *ln, const struct l4lb_conn *conn,
		   const struct l4lb_sync_record *record);

/* For the daemon.  Context: may sleep, but for l4lb_sync_queue_busy(). */

struct l4lb_sync_queues *l4lb_sync_queues_create(struct l4lb_net *ln,
						 unsigned int n, u16 maxlen,
						 u8 id);
/* Frees them after a grace period: no packet may find them any more. */
void l4lb_sync_queues_free(struct l4lb_sync_queues *queues);

/* Is there a message, complete or not? */
bool l4lb_sync_queue_busy(const struct l4lb_sync_queue *queue);
/* Moves messages that are being written to the queue. */
void l4lb_sync_queue_collect(struct l4lb_sync_queue *queue);
/* Takes the oldest message, or NULL; kfree() it. */
struct l4lb_sync_message *l4lb_sync_queue_pop(struct l4lb_sync_queue *queue);

#endif /* _L4LB_SYNC_QUEUE_H */
