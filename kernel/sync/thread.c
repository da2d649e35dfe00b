// SPDX-License-Identifier: GPL-2.0
/*
 * Threads of a synchronisation daemon.  Each has a socket, which lives longer
 * than the thread.
 */
#include "sync/thread.h"

#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "sync/arrive.h"
#include "sync/counter.h"
#include "sync/outlet.h"
#include "sync/receive.h"
#include "sync/socket.h"

enum {
	FLUSH_MS	= 20,	/* a message waits for more records that long */
	ROOM_MS		= 100,	/* look again whether the socket has room */
};

/* ---- sending ---- */

static int send_once(struct socket *sock, struct l4lb_sync_message *message,
		     size_t len)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec bytes = { .iov_base = message->data, .iov_len = len };

	return kernel_sendmsg(sock, &msg, &bytes, 1, len);
}

/* Socket writers are woken only if they can be interrupted, which kernel
 * threads never are.
 */
static void wait_for_room(struct sock *sk)
{
	wait_event_interruptible_timeout(*sk_sleep(sk), sock_writeable(sk) ||
					 kthread_should_stop(),
					 msecs_to_jiffies(ROOM_MS));
}

static void send_group(struct l4lb_sync_thread *thread,
		       struct l4lb_sync_message *message, size_t len)
{
	const struct l4lb_net *ln = thread->daemon->ln;
	int sent = send_once(thread->sock, message, len);

	while (sent == -EAGAIN && !kthread_should_stop()) {
		wait_for_room(thread->sock->sk);
		sent = send_once(thread->sock, message, len);
	}
	if (sent < 0) {
		l4lb_sync_count(ln, L4LB_SYNC_N_SEND_ERRORS);
		pr_err_ratelimited("sync: a message to %s is lost, error %d\n",
				   thread->daemon->config.ifname, sent);
		return;
	}
	l4lb_sync_count(ln, L4LB_SYNC_N_MESSAGES_OUT);
	l4lb_sync_add(ln, L4LB_SYNC_N_BYTES_OUT, len);
	l4lb_sync_add(ln, L4LB_SYNC_N_RECORDS_OUT, message->buf.n);
}

static void send_message(struct l4lb_sync_thread *thread,
			 struct l4lb_sync_message *message)
{
	struct l4lb_sync_peers *peers = thread->daemon->ln->sync_peers;
	u8 stream = thread - thread->daemon->threads;
	size_t len = l4lb_sync_finish(&message->buf);

	message->backlog = READ_ONCE(thread->queue->n);
	if (l4lb_sync_seal(peers, message, stream, &len))
		send_group(thread, message, len);
	l4lb_sync_sealed(peers, message, stream);
}

/* Send what is queued, but not after @until.  Returns whether there was any. */
static bool drain(struct l4lb_sync_thread *thread, unsigned long until)
{
	struct l4lb_sync_message *message;
	bool any = false;

	do {
		message = l4lb_sync_queue_pop(thread->queue);
		if (!message)
			return any;
		send_message(thread, message);
		any = true;
		cond_resched();
	} while (time_before(jiffies, until));
	return true;
}

static void sleep_until_begun(struct l4lb_sync_queue *queue)
{
	WRITE_ONCE(queue->idle, true);
	/* Looks for messages after it has said so, see wake_idle(). */
	wait_event_idle(queue->wait, l4lb_sync_queue_busy(queue) ||
			kthread_should_stop());
	WRITE_ONCE(queue->idle, false);
}

static void sleep_until_due(struct l4lb_sync_queue *queue, unsigned long due)
{
	long left = due - jiffies;

	if (left > 0)
		wait_event_idle_timeout(queue->wait, READ_ONCE(queue->n) ||
					kthread_should_stop(), left);
}

static int send_thread(void *arg)
{
	const unsigned long period = msecs_to_jiffies(FLUSH_MS);
	struct l4lb_sync_thread *thread = arg;
	unsigned long due = jiffies;
	bool collect;

	complete(&thread->runs);
	while (!kthread_should_stop()) {
		collect = time_after_eq(jiffies, due);
		if (collect) {
			l4lb_sync_queue_collect(thread->queue);
			due = jiffies + period;
		}
		if (!drain(thread, due) && collect) {
			sleep_until_begun(thread->queue);
			due = jiffies + period;
		}
		sleep_until_due(thread->queue, due);
	}
	/* The last records; packets find the queue no more. */
	l4lb_sync_queue_collect(thread->queue);
	drain(thread, jiffies + period);
	return 0;
}

/* ---- receiving ---- */

static bool is_shut(const struct socket *sock)
{
	return READ_ONCE(sock->sk->sk_shutdown) & RCV_SHUTDOWN;
}

static void take(const struct l4lb_sync_thread *thread, size_t len,
		 const struct sockaddr_storage *from)
{
	const struct l4lb_sync_daemon *daemon = thread->daemon;
	unsigned int how;

	l4lb_sync_count(daemon->ln, L4LB_SYNC_N_MESSAGES_IN);
	l4lb_sync_add(daemon->ln, L4LB_SYNC_N_BYTES_IN, len);
	/* No message has such an id: it has 8 bits. */
	if (daemon->config.sync_id > U8_MAX)
		l4lb_sync_count_error(daemon->ln, L4LB_SYNC_ID);
	else if (l4lb_sync_admit(daemon->ln->sync_peers, thread->data, len,
				 from, &how))
		l4lb_sync_receive(daemon->ln, thread->data, len,
				  daemon->config.sync_id, how);
}

/* Once a second at most: the stack lacks memory. */
static void report(const struct l4lb_sync_thread *thread, int err)
{
	l4lb_sync_count(thread->daemon->ln, L4LB_SYNC_N_RECEIVE_ERRORS);
	pr_err_ratelimited("sync: cannot receive from %s, error %d\n",
			   thread->daemon->config.ifname, err);
	wait_event_idle_timeout(*sk_sleep(thread->sock->sk),
				kthread_should_stop(), HZ);
}

/* A longer datagram is cut off, and then its size field is wrong. */
static int receive_thread(void *arg)
{
	struct l4lb_sync_thread *thread = arg;
	struct sockaddr_storage from = { };
	struct msghdr msg = { .msg_name = &from };
	struct kvec bytes;
	int len;

	while (!kthread_should_stop()) {
		bytes = (struct kvec){
			.iov_base	= thread->data,
			.iov_len	= thread->daemon->config.maxlen,
		};
		len = kernel_recvmsg(thread->sock, &msg, &bytes, 1,
				     bytes.iov_len, 0);
		if (is_shut(thread->sock))
			break;
		if (len < 0)
			report(thread, len);
		else
			take(thread, len, &from);
		cond_resched();
	}
	wait_event_idle(*sk_sleep(thread->sock->sk), kthread_should_stop());
	return 0;
}

/* ---- start and stop ---- */

static int thread_start(struct l4lb_sync_daemon *daemon, unsigned int index,
			const struct net_device *dev, unsigned int space)
{
	struct l4lb_sync_thread *thread = &daemon->threads[index];
	bool sends = daemon->queues;
	struct task_struct *task;
	struct socket *sock;

	thread->daemon = daemon;
	init_completion(&thread->runs);
	if (sends) {
		thread->queue = &daemon->queues->queue[index];
	} else {
		thread->data = kvmalloc(daemon->config.maxlen, GFP_KERNEL);
		if (!thread->data)
			return -ENOMEM;
	}
	sock = l4lb_sync_socket(daemon->ln, &daemon->config, dev, index);
	if (IS_ERR(sock))
		return PTR_ERR(sock);
	thread->sock = sock;
	task = kthread_run(sends ? send_thread : receive_thread, thread,
			   "ipvs-%c:%u:%u", sends ? 'm' : 'b', space, index);
	if (IS_ERR(task))
		return PTR_ERR(task);
	thread->task = task;
	/* A thread that is stopped before it runs never does: the last records
	 * would stay.
	 */
	if (sends)
		wait_for_completion(&thread->runs);
	return 0;
}

int l4lb_sync_threads_start(struct l4lb_sync_daemon *daemon,
			    const struct net_device *dev, unsigned int space)
{
	const struct l4lb_sync_config *config = &daemon->config;
	unsigned int i;
	int err;

	for (i = 0; i < daemon->n; i++) {
		err = thread_start(daemon, i, dev, space);
		if (err)
			return err;
		pr_info("sync thread started: state = %s, mcast_ifn = %s, syncid = %u, id = %u\n",
			daemon->queues ? "MASTER" : "BACKUP", config->ifname,
			config->sync_id, i);
	}
	return 0;
}

static void thread_stop(struct l4lb_sync_thread *thread)
{
	if (thread->task) {
		pr_info("stopping %s sync thread %d ...\n",
			thread->queue ? "master" : "backup",
			task_pid_nr(thread->task));
		kthread_stop(thread->task);
	}
	if (thread->sock)
		sock_release(thread->sock);
	kvfree(thread->data);
}

void l4lb_sync_threads_stop(struct l4lb_sync_daemon *daemon)
{
	unsigned int i;

	/* All at once; a sender's last messages still leave. */
	for (i = 0; i < daemon->n; i++)
		if (daemon->threads[i].data && daemon->threads[i].sock)
			kernel_sock_shutdown(daemon->threads[i].sock,
					     SHUT_RDWR);
	for (i = 0; i < daemon->n; i++)
		thread_stop(&daemon->threads[i]);
}
