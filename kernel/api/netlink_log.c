// SPDX-License-Identifier: GPL-2.0
/*
 * The log: one record for each logged connection that has ended.
 *
 *	connection ends -> message of its CPU -> full, or 0.1 s old -> listeners
 *
 * A CPU collects records in a message of its own, so CPUs meet only when one is full
 * or old.  While nobody on this host listens there is no message.  The memory is
 * bounded: one message a CPU, and what a listener's socket has room for.  Records
 * are numbered when they are sent, so a listener sees how many it has missed.
 */
#include "api/netlink_log.h"

#include <linux/slab.h>
#include <net/netlink.h>

#include "api/netlink_conn_fill.h"
#include "api/netlink_l4lb.h"
#include "conn/log.h"

#define LARGE_MESSAGE	SKB_WITH_OVERHEAD(16384)
#define SMALL_MESSAGE	SKB_WITH_OVERHEAD(4096)
#define RECORD_MAX	320	/* bytes, more than the largest has */
#define TAIL_MAX	64	/* COUNT and SEQ */
#define MAX_AGE		(HZ / 10)

/**
 * struct log_cpu - what a CPU has collected
 * @lock: taken with BH off; @msg may be sent by another CPU
 * @closed: nothing may be added: the family is about to go
 * @msg: the message, or NULL
 * @hdr: its head
 * @n: records in it
 */
struct log_cpu {
	spinlock_t	lock;
	bool		closed;
	struct sk_buff	*msg;
	void		*hdr;
	u32		n;
};

/**
 * struct l4lb_log - the log of a namespace
 * @ln: the namespace
 * @cpu: messages that are being filled
 * @work: sends those that are old
 * @lock: messages are numbered and sent in order; taken within a log_cpu's lock
 * @seq: number of the last record
 */
struct l4lb_log {
	struct l4lb_net			*ln;
	struct log_cpu __percpu		*cpu;
	struct delayed_work		work;
	spinlock_t			lock;
	u64				seq;
};

static bool ready;	/* the whole module is loaded */

static struct sk_buff *new_message(void)
{
	struct sk_buff *msg;

	/* Not from the reserves that packets need. */
	msg = nlmsg_new(LARGE_MESSAGE - NLMSG_HDRLEN,
			GFP_NOWAIT | __GFP_NOWARN);
	return msg ?: nlmsg_new(SMALL_MESSAGE - NLMSG_HDRLEN,
				GFP_NOWAIT | __GFP_NOWARN);
}

static void lose(struct l4lb_log *log, u32 n)
{
	spin_lock(&log->lock);
	log->seq += n;
	spin_unlock(&log->lock);
}

static int end_message(struct log_cpu *c, u64 seq)
{
	if (nla_put_u64_64bit(c->msg, L4LB_ATTR_COUNT, c->n, L4LB_ATTR_PAD) ||
	    nla_put_u64_64bit(c->msg, L4LB_ATTR_SEQ, seq, L4LB_ATTR_PAD))
		return -EMSGSIZE;
	genlmsg_end(c->msg, c->hdr);
	return 0;
}

/* BH off. */
static void send(struct l4lb_log *log, struct log_cpu *c)
{
	lockdep_assert_held(&c->lock);
	if (!c->msg)
		return;
	spin_lock(&log->lock);
	log->seq += c->n;
	if (WARN_ON_ONCE(end_message(c, log->seq)))
		nlmsg_free(c->msg);
	else
		genlmsg_multicast_netns(&l4lb_ext_family, log->ln->net, c->msg,
					0, L4LB_NL_LOG, GFP_ATOMIC);
	spin_unlock(&log->lock);
	c->msg = NULL;
}

static bool begin_message(struct l4lb_log *log, struct log_cpu *c)
{
	c->msg = new_message();
	if (!c->msg)
		return false;
	c->hdr = genlmsg_put(c->msg, 0, 0, &l4lb_ext_family, 0,
			     L4LB_CMD_LOG_CONNS);
	c->n = 0;
	queue_delayed_work(system_power_efficient_wq, &log->work, MAX_AGE);
	return true;
}

/* BH off. */
static void add(struct l4lb_log *log, struct log_cpu *c,
		const struct l4lb_conn *conn, enum l4lb_end why)
{
	struct nlattr *nest;

	lockdep_assert_held(&c->lock);
	if (!c->msg && !begin_message(log, c)) {
		lose(log, 1);
		return;
	}
	nest = nla_nest_start(c->msg, L4LB_ATTR_CONN);
	if (WARN_ON_ONCE(!nest || l4lb_nl_fill_ended(c->msg, conn, why))) {
		nla_nest_cancel(c->msg, nest);
		lose(log, 1);
		return;
	}
	nla_nest_end(c->msg, nest);
	c->n++;
	if (skb_tailroom(c->msg) < RECORD_MAX + TAIL_MAX)
		send(log, c);
}

static void ended(const struct l4lb_conn *conn, enum l4lb_end why)
{
	struct l4lb_net *ln = l4lb_conn_net(conn);
	/* pairs with the release in open_log() */
	struct l4lb_log *log = smp_load_acquire(&ln->log);
	struct log_cpu *c;

	if (!log || !genl_has_listeners(&l4lb_ext_family, ln->net, L4LB_NL_LOG))
		return;
	local_bh_disable();
	c = this_cpu_ptr(log->cpu);
	spin_lock(&c->lock);
	if (!c->closed)
		add(log, c, conn, why);
	spin_unlock(&c->lock);
	local_bh_enable();
}

static void send_all(struct l4lb_log *log, bool close)
{
	struct log_cpu *c;
	int cpu;

	for_each_possible_cpu(cpu) {
		c = per_cpu_ptr(log->cpu, cpu);
		spin_lock_bh(&c->lock);
		send(log, c);
		c->closed |= close;
		spin_unlock_bh(&c->lock);
	}
}

static void send_old(struct work_struct *work)
{
	send_all(container_of(to_delayed_work(work), struct l4lb_log, work),
		 false);
}

int l4lb_nl_get_log(struct sk_buff *skb, struct genl_info *info)
{
	struct l4lb_net *ln = info->user_ptr[0];
	/* pairs with the release in open_log() */
	struct l4lb_log *log = smp_load_acquire(&ln->log);
	struct sk_buff *msg;
	u64 seq = 0;
	void *hdr;

	msg = l4lb_nl_reply_new(info, &hdr);
	if (!msg)
		return -ENOMEM;
	if (log) {
		send_all(log, false);
		spin_lock_bh(&log->lock);
		seq = log->seq;
		spin_unlock_bh(&log->lock);
	}
	return l4lb_nl_reply_send(info, msg, hdr,
				  nla_put_u64_64bit(msg, L4LB_ATTR_SEQ, seq,
						    L4LB_ATTR_PAD));
}

static int open_log(struct l4lb_net *ln)
{
	struct l4lb_log *log;
	int cpu;

	lockdep_assert_held(&ln->lock);
	if (ln->log)
		return 0;
	if (!READ_ONCE(ready) || ln->exiting)
		return -EAGAIN;
	log = kzalloc(sizeof(*log), GFP_KERNEL_ACCOUNT);
	if (!log)
		return -ENOMEM;
	log->cpu = alloc_percpu(struct log_cpu);
	if (!log->cpu) {
		kfree(log);
		return -ENOMEM;
	}
	for_each_possible_cpu(cpu)
		spin_lock_init(&per_cpu_ptr(log->cpu, cpu)->lock);
	log->ln = ln;
	spin_lock_init(&log->lock);
	INIT_DELAYED_WORK(&log->work, send_old);
	smp_store_release(&ln->log, log);	/* packets find it whole */
	return 0;
}

void l4lb_nl_log_stop(struct l4lb_net *ln)
{
	struct l4lb_log *log;

	mutex_lock(&ln->lock);
	log = ln->log;
	mutex_unlock(&ln->lock);
	if (!log)
		return;
	send_all(log, true);
	cancel_delayed_work_sync(&log->work);
}

void l4lb_nl_log_destroy(struct l4lb_net *ln)
{
	if (!ln->log)
		return;
	free_percpu(ln->log->cpu);
	kfree(ln->log);
	ln->log = NULL;
}

void l4lb_nl_log_allow(bool allow)
{
	WRITE_ONCE(ready, allow);
}

static const struct l4lb_conn_logger logger = {
	.open	= open_log,
	.ended	= ended,
};

void __init l4lb_nl_log_init(void)
{
	l4lb_conn_log_listen(&logger);
}
