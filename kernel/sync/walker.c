// SPDX-License-Identifier: GPL-2.0
/*
 * One work item of a namespace sends connections to peers and to the group, and
 * compares them with those of peers.  It runs each jiffy while there is something
 * to do, and sends as many records as the rate allows: a burst would overflow the
 * receiver's socket.
 */
#include "sync/walker.h"

#include <linux/slab.h>

#include "sync/bulk.h"
#include "sync/queue.h"
#include "sync/send.h"
#include "sync/tour.h"
#include "sync/verify.h"

enum {
	RATE_MAX	= 150000,	/* a receiver takes 200,000 */
	VISITS_MAX	= 4096,		/* connections of a push in one run */
};

/**
 * struct l4lb_sync_walker - the work of a namespace
 * @peers: its peers
 * @work: sends, and compares
 * @filled: jiffies when @credit was renewed
 * @credit: records that may be sent, times HZ
 * @push: begin to announce all connections to the group
 * @tour: how far that is
 *
 * Only the work uses what follows @work.
 */
struct l4lb_sync_walker {
	struct l4lb_sync_peers	*peers;
	struct delayed_work	work;
	unsigned long		filled;
	u64			credit;
	bool			push;
	struct l4lb_sync_tour	tour;
};

/* ---- rate ---- */

/* How many records may be sent now?  At most those of a twentieth second. */
static unsigned int refill(struct l4lb_sync_walker *walker)
{
	u32 rate = READ_ONCE(walker->peers->rate) ?: RATE_MAX;
	u64 most = max_t(u64, (u64)min_t(u32, rate, RATE_MAX) * HZ / 20, HZ);
	unsigned long past = min_t(unsigned long, jiffies - walker->filled, HZ);

	walker->filled = jiffies;
	walker->credit = min(walker->credit + (u64)past * rate, most);
	return div_u64(walker->credit, HZ);
}

/* ---- the group ---- */

static bool has_message_room(const struct l4lb_net *ln)
{
	struct l4lb_sync_queues *queues;
	bool room;

	rcu_read_lock();
	queues = rcu_dereference(ln->sync_queues);
	room = queues && READ_ONCE(queues->queue[0].n) <
			 READ_ONCE(ln->sysctl.sync_qlen_max) / 2;
	rcu_read_unlock();
	return room;
}

/* Announces up to @n connections; returns how many. */
static unsigned int announce(struct l4lb_sync_walker *walker, unsigned int n)
{
	unsigned int visits = VISITS_MAX, done = 0;
	struct l4lb_conn *conn;

	l4lb_conn_walk_start(walker->tour.walk);
	while (done < n) {
		conn = l4lb_sync_tour_next(&walker->tour, &visits);
		if (!conn)
			break;
		if (!l4lb_sync_announce(conn)) {
			l4lb_conn_walk_back(walker->tour.walk);
			break;
		}
		done++;
	}
	l4lb_conn_walk_stop(walker->tour.walk);
	return done;
}

static unsigned int push(struct l4lb_sync_walker *walker, unsigned int n)
{
	struct l4lb_net *ln = walker->peers->ln;
	unsigned int done = 0;

	if (xchg(&walker->push, false)) {
		l4lb_sync_tour_end(&walker->tour);
		l4lb_sync_tour_begin(&walker->tour, ln);
	}
	if (!walker->tour.walk)
		return 0;
	if (n && has_message_room(ln))
		done = announce(walker, n);
	if (walker->tour.over || !l4lb_sync_sends(ln))
		l4lb_sync_tour_end(&walker->tour);
	return done;
}

int l4lb_sync_push(struct l4lb_sync_peers *peers)
{
	if (!l4lb_sync_sends(peers->ln))
		return -ESRCH;
	WRITE_ONCE(peers->walker->push, true);
	l4lb_sync_walker_wake(peers);
	return 0;
}

/* ---- peers ---- */

static unsigned int count_busy(struct l4lb_sync_peers *peers)
{
	unsigned int i, n = 0;

	spin_lock(&peers->state);
	for (i = 0; i < peers->n; i++)
		n += l4lb_sync_bulk_busy(peers->peer[i]);
	spin_unlock(&peers->state);
	return n;
}

static bool is_any_busy(struct l4lb_sync_peers *peers)
{
	bool busy = false;
	unsigned int i;

	spin_lock(&peers->state);
	for (i = 0; i < peers->n; i++)
		busy |= l4lb_sync_bulk_busy(peers->peer[i]) ||
			l4lb_sync_verify_busy(peers->peer[i]);
	spin_unlock(&peers->state);
	return busy;
}

static void run(struct work_struct *work)
{
	struct l4lb_sync_walker *walker =
		container_of(to_delayed_work(work), struct l4lb_sync_walker,
			     work);
	struct l4lb_sync_peers *peers = walker->peers;
	unsigned int i, n, share, spent = 0;
	bool busy;

	down_read(&peers->lock);
	n = refill(walker);
	share = n / max(count_busy(peers), 1U) ?: n;
	for (i = 0; i < peers->n; i++) {
		spent += l4lb_sync_bulk_run(peers->peer[i],
					    min(share, n - spent));
		l4lb_sync_verify_run(peers->peer[i]);
	}
	busy = is_any_busy(peers);
	up_read(&peers->lock);
	spent += push(walker, n - spent);
	walker->credit -= (u64)spent * HZ;
	if (busy || walker->tour.walk)
		queue_delayed_work(l4lb_wq, &walker->work, 1);
}

void l4lb_sync_walker_wake(struct l4lb_sync_peers *peers)
{
	mod_delayed_work(l4lb_wq, &peers->walker->work, 0);
}

/* ---- namespaces ---- */

struct l4lb_sync_walker *l4lb_sync_walker_new(struct l4lb_sync_peers *peers)
{
	struct l4lb_sync_walker *walker = kzalloc(sizeof(*walker), GFP_KERNEL);

	if (!walker)
		return NULL;
	walker->peers = peers;
	walker->filled = jiffies;
	INIT_DELAYED_WORK(&walker->work, run);
	return walker;
}

void l4lb_sync_walker_stop(struct l4lb_sync_walker *walker)
{
	cancel_delayed_work_sync(&walker->work);
	l4lb_sync_tour_end(&walker->tour);
}

void l4lb_sync_walker_free(struct l4lb_sync_walker *walker)
{
	if (!walker)
		return;
	l4lb_sync_walker_stop(walker);
	kfree(walker);
}
