/* SPDX-License-Identifier: GPL-2.0 */
/* Threads of a synchronisation daemon. */
#ifndef _L4LB_SYNC_THREAD_H
#define _L4LB_SYNC_THREAD_H

#include <linux/completion.h>

#include "sync/daemon.h"
#include "sync/queue.h"

/**
 * struct l4lb_sync_thread - a thread and its socket
 * @daemon: the daemon
 * @task: the thread, or NULL: not started
 * @runs: it sends, and has begun
 * @sock: its socket
 * @queue: what it sends; NULL in a receiving daemon
 * @data: room for a message of the daemon's maxlen; NULL in a sending daemon
 */
struct l4lb_sync_thread {
	const struct l4lb_sync_daemon	*daemon;
	struct task_struct		*task;
	struct completion		runs;
	struct socket			*sock;
	struct l4lb_sync_queue		*queue;
	u8				*data;
};

/**
 * struct l4lb_sync_daemon - a running daemon
 * @ln: its namespace
 * @config: what it was started with, defaults filled in
 * @ifindex: the device
 * @queues: what it sends; NULL: it receives
 * @n: number of threads, a power of two, at most %L4LB_SYNC_THREADS_MAX
 * @threads: its threads
 */
struct l4lb_sync_daemon {
	struct l4lb_net			*ln;
	struct l4lb_sync_config		config;
	int				ifindex;
	struct l4lb_sync_queues		*queues;
	unsigned int			n;
	struct l4lb_sync_thread		threads[];
};

/**
 * l4lb_sync_threads_start() - open the sockets of a daemon and run its threads
 * @daemon: the daemon: @ln, @config, @queues and @n are set
 * @dev: device of the group
 * @space: number of the namespace, for the names of threads
 *
 * Return: 0, or a negative errno after which l4lb_sync_threads_stop() is due.
 */
int l4lb_sync_threads_start(struct l4lb_sync_daemon *daemon,
			    const struct net_device *dev, unsigned int space);
/* Returns when they are over; messages that can be sent at once, are. */
void l4lb_sync_threads_stop(struct l4lb_sync_daemon *daemon);

#endif /* _L4LB_SYNC_THREAD_H */
