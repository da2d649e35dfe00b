// SPDX-License-Identifier: GPL-2.0
/* table sweep, poor, sizes, equals: see table.c. */
#include "table.h"

#include <time.h>

#include "conn/lookup.h"

#define SECONDS	20		/* of an attack */

/* ---- the sweep ---- */

/* The number of slices until @expected connections were killed, each once. */
static unsigned int sweep_pass(unsigned int expected)
{
	unsigned int i, gone = 0, slices = 0, before;

	memset(swept, 0, sizeof(swept));
	while (gone < expected) {
		before = gone;
		sweep_queued = false;
		table.sweep.fn(&table.sweep.work);
		assert(sweep_queued);
		slices++;
		for (i = 0, gone = 0; i < MANY; i++) {
			assert(swept[i] <= 1);
			gone += swept[i];
		}
		assert(gone > before);
	}
	assert(!table.sweep_at);
	return slices;
}

void sweep(unsigned int n)
{
	unsigned int i, slices, victims = 0;

	no_interludes = true;
	for (i = 0; i < MANY; i++)
		assert(add(i));
	assert(sweep_queued);
	atomic_set(&table.n, n);

	/* A held template stays, however old, and its idle time does not wrap. */
	atomic_set(&conns[100]->n_holders, 1);
	jiffies += 1001;
	slices = sweep_pass(MANY - 1);
	assert(n_reset == MANY - 1 && !swept[100]);
	jiffies += L4LB_CONN_TIMEOUT_MAX;
	sweep_pass(MANY - 1);
	assert(l4lb_conn_idle(conns[100]) == L4LB_CONN_TIMEOUT_MAX);
	atomic_set(&conns[100]->n_holders, 0);
	for (i = 0; i < MANY; i++)
		conns[i]->last = jiffies;

	/* Nothing is over.  Under attack a 32nd is looked at each second,
	 * whatever the size, and what may be dropped goes.
	 */
	sweep_queued = false;
	table.sweep.fn(&table.sweep.work);
	assert(sweep_queued && !n_asked);
	ln.sysctl.drop_entry = L4LB_DEFENCE_ALWAYS;
	memset(swept, 0, sizeof(swept));
	for (i = 0; i < SECONDS * 4; i++)
		table.sweep.fn(&table.sweep.work);
	assert(n_asked > SECONDS * MANY / 32 / 2 &&
	       n_asked < SECONDS * MANY / 32 * 2);
	for (i = 0; i < MANY; i++) {
		assert(!swept[i] || conns[i]->vport == 1);
		victims += swept[i] > 0;
	}
	assert(ln.dropped > n_asked / 8 && ln.dropped < n_asked / 2);
	/* Not the same ones all the time. */
	assert(victims > ln.dropped / 2);
	ln.sysctl.drop_entry = L4LB_DEFENCE_READY;

	/* The sweep stops while the table is empty. */
	atomic_set(&table.n, 0);
	sweep_queued = false;
	table.sweep.fn(&table.sweep.work);
	assert(!sweep_queued);
	l4lb_conn_sweep_kick(&table);
	assert(sweep_queued);
	sweep_queued = false;
	l4lb_conn_sweep_kick(&table);
	assert(!sweep_queued);

	atomic_set(&table.n, MANY);
	for (i = 0; i < MANY; i++)
		del(i);
	printf("%u slices\n", slices);
}

/* ---- a host without memory ---- */

static void look_again(void)
{
	rcu_read_lock();
	l4lb_conn_resize_check(&table);
	rcu_read_unlock();
	do_work();
}

void poor(unsigned int n)
{
	unsigned int i, wanted;
	long pages;

	no_interludes = true;
	shim_available = 0;
	for (i = 0; i < n; i++) {
		assert(add(i));
		do_work();
	}
	assert(bits() == 8);
	for (i = 0; i < n; i++)
		check(i);

	/* Half of the available memory may be taken. */
	for (wanted = 8; 3U << wanted < atomic_read(&table.n) + atomic_read(&table.n_out);)
		wanted++;
	pages = (sizeof(struct l4lb_conn_bucket) << wanted) >> PAGE_SHIFT;
	shim_available = 2 * pages - 1;
	look_again();
	assert(bits() == 8);
	shim_available = 2 * pages;
	look_again();
	assert(bits() == wanted);

	/* A table of the smallest size is always allowed. */
	shim_available = 0;
	for (i = 0; i < n; i++)
		del(i);
	look_again();
	assert(bits() == 8);
}

/* ---- its size ---- */

static unsigned int in_use(void)
{
	return atomic_read(&table.n) + atomic_read(&table.n_out);
}

/* It doubles and shrinks at the right loads; then about two are in a bucket. */
void sizes(unsigned int n)
{
	unsigned int i, before;

	no_interludes = true;
	for (i = 0; i < n; i++) {
		before = bits();
		assert(add(i));
		look_again();
		assert(bits() == before || bits() == before + 1);
		assert(bits() == before || in_use() > 4U << before);
		assert(in_use() <= 4U << bits());
	}
	assert(bits() > 10);
	while (i--) {
		before = bits();
		del(i);
		look_again();
		assert(bits() == before || in_use() * 2 < 1U << before);
		assert(bits() == before || in_use() <= 3U << bits());
		assert(bits() == 8 || in_use() * 2 >= 1U << bits());
	}
	assert(bits() == 8);
}

/* ---- replies with the same header ---- */

static u64 cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* One client socket, one real server and port; VIP number @i. */
static struct l4lb_conn *same_client(unsigned int i)
{
	struct l4lb_conn *conn = conn_new(0);

	conn->v4.vaddr = i + 1;
	return conn;
}

static struct l4lb_conn *put(struct l4lb_conn *conn)
{
	struct l4lb_flow flow = l4lb_conn_flow(conn);
	struct l4lb_conn *old;

	rcu_read_lock();
	atomic_inc(&table.n);
	old = l4lb_conn_table_insert(&table, conn, &flow);
	if (old)
		atomic_dec(&table.n);
	rcu_read_unlock();
	return old;
}

static void take_out(struct l4lb_conn *conn)
{
	rcu_read_lock();
	l4lb_conn_set(conn, L4LB_CONN_DEAD);
	l4lb_conn_table_remove(&table, conn);
	atomic_dec(&table.n);
	rcu_read_unlock();
	free(conn);
}

/* Nanoseconds for @n more, which are refused; @equal: else each has replies of
 * its own, and they are taken out again.
 */
static u64 cost(unsigned int first, unsigned int n, bool equal)
{
	struct l4lb_conn **more = calloc(n, sizeof(*more));
	unsigned int i;
	u64 began;

	for (i = 0; i < n; i++) {
		more[i] = same_client(first + i);
		if (!equal)
			more[i]->cport = 1 + first + i;
	}
	began = cpu_ns();
	for (i = 0; i < n; i++)
		assert(put(more[i]) == (equal ? ERR_PTR(-EMLINK) : NULL));
	began = cpu_ns() - began;
	for (i = 0; i < n; i++) {
		if (equal)
			free(more[i]);
		else
			take_out(more[i]);
	}
	free(more);
	return began;
}

void equals(unsigned int n)
{
	struct l4lb_conn *conn[L4LB_EQUAL_REPLIES + 1];
	unsigned int i, gone;
	u64 first, last = 0, other;

	no_interludes = true;
	for (i = 0; i < L4LB_EQUAL_REPLIES; i++) {
		conn[i] = same_client(i);
		assert(!put(conn[i]) && found_out(conn[0]) == conn[i]);
	}
	/* The oldest is last in the chain. */
	rcu_read_lock();
	assert(l4lb_conn_equal_victim(&table, conn[0]) == conn[0]);
	/* One that is being killed has a slot that is counted, and is no equal. */
	l4lb_conn_set(conn[3], L4LB_CONN_DEAD);
	rcu_read_unlock();
	conn[16] = same_client(16);
	assert(!put(conn[16]));
	take_out(conn[3]);
	assert(atomic_read(&table.n_out) == L4LB_EQUAL_REPLIES);
	for (i = 3; i < L4LB_EQUAL_REPLIES; i++)
		conn[i] = conn[i + 1];
	first = cost(i, 1000, true);
	for (; i + 1000 < n; i += 1000)
		last = cost(i, 1000, true);
	other = cost(0, 1000, false);
	assert(atomic_read(&table.n_out) == L4LB_EQUAL_REPLIES);

	/* Whichever goes, the newest of the others has the replies. */
	for (gone = 0; gone < 2000; gone++) {
		i = chance(L4LB_EQUAL_REPLIES);
		take_out(conn[i]);
		for (; i < L4LB_EQUAL_REPLIES - 1; i++)
			conn[i] = conn[i + 1];
		assert(found_out(conn[0]) == conn[i - 1]);
		conn[i] = same_client(100 + gone);
		assert(!put(conn[i]) && found_out(conn[0]) == conn[i]);
	}

	/* A resize keeps their order. */
	for (i = 0; i < MANY; i++)
		if (i / 4)
			assert(add(i));
	look_again();
	assert(bits() > 8);
	for (i = L4LB_EQUAL_REPLIES; i--;) {
		assert(found_out(conn[0]) == conn[i]);
		take_out(conn[i]);
	}
	for (i = 0; i < MANY; i++)
		if (conns[i])
			del(i);
	printf("first %llu last %llu other %llu\n", (unsigned long long)first,
	       (unsigned long long)last, (unsigned long long)other);
}
