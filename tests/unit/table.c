// SPDX-License-Identifier: GPL-2.0
/*
 * The connection table as a user-space program:
 *
 *	table SEED STEPS	connections come and go at random, two walks
 *				proceed meanwhile, allocations sometimes fail
 *	table race SECONDS	readers look for connections that stay, while
 *				others come and go and the table is resized
 *	table sweep N		what expires in a table that takes itself for one
 *				of N connections; prints in how many slices
 *	table poor N		N connections, and no memory for a larger table;
 *				then there is
 *	table sizes N		N connections come and go, each before the
 *				table is looked at
 *	table equals N		N connections whose replies all have the same
 *				header; prints what a thousand insertions take
 *
 * Exits by an assertion when something is wrong.
 */
#include "table.h"

#include <sched.h>
#include <time.h>

#include "conn/hash.h"
#include "conn/lookup.h"
#include "conn/missed.h"
#include "conn/walk.h"

#define STEADY	400
#define RACING	4000

pthread_rwlock_t shim_rcu;
int shim_memory = -1;
long shim_available = LONG_MAX;
unsigned long jiffies = -100;

struct l4lb_net ln;
struct l4lb_conn_table table;
static struct l4lb_server servers[8];
struct l4lb_conn *conns[MANY];
static bool stop, queued;
bool no_interludes;
static __thread bool moving;

bool sweep_queued;

/* Only the table has such memory. */
void *shim_this_cpu(void)
{
	static __thread struct l4lb_conn_missed missed;

	return &missed;
}

void shim_queue(struct delayed_work *work)
{
	WRITE_ONCE(*(work == &table.sweep ? &sweep_queued : &queued), true);
}

void shim_pause(void)
{
	static __thread unsigned int n;

	if (moving && n++ % 31 == 0)
		sched_yield();
}

/* How often the sweep killed each connection, and how often one expired. */
unsigned int swept[MANY], n_reset;

void l4lb_conn_end_early(struct l4lb_conn *conn, enum l4lb_end why)
{
	l4lb_conn_kill(conn, why);
}

/* None of them has full NAT. */
struct l4lb_conn *l4lb_conn_local_insert(struct l4lb_conn_table *t,
					 struct l4lb_conn *conn, u64 hash)
{
	return NULL;
}

void l4lb_conn_kill(struct l4lb_conn *conn, enum l4lb_end why)
{
	swept[conn->cport * 4 + conn->vport - 1]++;
}

bool l4lb_conn_alarm_look(struct l4lb_conn_table *table)
{
	return false;
}

void l4lb_conn_table_idle(struct l4lb_conn_table *table)
{
}

static void expired(struct l4lb_conn *conn)
{
	n_reset++;
}

static const struct l4lb_conn_events events = { .expired = expired };
const bool l4lb_conn_watched;

unsigned int n_asked;

bool l4lb_defence_drops_entry(const struct l4lb_conn *conn)
{
	n_asked++;
	return conn->vport == 1;
}

void l4lb_victim_offer(struct l4lb_victim *victim, struct l4lb_conn *conn)
{
	victim->conn = conn;
}

static u64 random_state = 1;

u32 chance(u32 below)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (random_state >> 33) % below;
}

/* Number @i: groups of four share the client and the reply's key. */
struct l4lb_conn *conn_new(unsigned int i)
{
	struct l4lb_conn *conn = aligned_alloc(64, 128);
	struct l4lb_server *server = &servers[i / 4 % 8];

	memset(conn, 0, 128);
	conn->af = i / 4 % 2 ? AF_INET6 : AF_INET;
	conn->proto = 17;
	conn->method = i % 8 < 6 ? IP_VS_CONN_F_MASQ : IP_VS_CONN_F_DROUTE;
	conn->cport = i / 4;
	conn->vport = 1 + i % 4;
	conn->dport = 80;
	conn->server = server;
	conn->last = jiffies;
	conn->timeout = 1000;
	if (conn->af == AF_INET) {
		conn->v4.caddr = 7;
		conn->v4.vaddr = 9;
		conn->v4.daddr = server->sched.addr.ip;
	} else {
		memset(&conn->v6.caddr, 7, 16);
		memset(&conn->v6.vaddr, 9, 16);
		conn->v6.daddr = server->sched.addr.in6;
	}
	if (i % 101 == 100)
		l4lb_conn_set(conn, L4LB_CONN_TEMPLATE);
	return conn;
}

static struct l4lb_conn *found(const struct l4lb_conn *conn)
{
	struct l4lb_flow flow = l4lb_conn_flow(conn);
	struct l4lb_conn *both;
	bool reply;

	if (l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return l4lb_conn_find_template(&ln, &flow);
	both = l4lb_conn_find_both(&ln, &flow, &reply);
	assert(!reply && both == l4lb_conn_find_in(&ln, &flow));
	/* Later ones take the hash from here, find_in() does not. */
	l4lb_conn_keep_missed(&ln, &flow);
	return both;
}

struct l4lb_conn *found_out(const struct l4lb_conn *conn)
{
	struct l4lb_flow flow = l4lb_conn_flow(conn);
	struct l4lb_conn *out, *both;
	bool reply;

	flow.daddr = conn->server->sched.addr;
	flow.dport = conn->dport;
	flow = l4lb_flow_inverse(&flow);
	out = l4lb_conn_find_out(&ln, &flow);
	both = l4lb_conn_find_both(&ln, &flow, &reply);
	assert(reply == !!out && !both == !out);
	return out;
}

/* The newest connection with @i's reply key, by the order in which add() made
 * them.
 */
static unsigned long made[MANY], clock_ticks;

static struct l4lb_conn *newest(unsigned int i)
{
	unsigned int j, best = MANY;

	for (j = i / 4 * 4; j < i / 4 * 4 + 4; j++)
		if (conns[j] && l4lb_conn_has_out(conns[j]) &&
		    (best == MANY || made[j] > made[best]))
			best = j;
	return best == MANY ? NULL : conns[best];
}

bool add(unsigned int i)
{
	struct l4lb_conn *conn = conn_new(i), *old;
	struct l4lb_flow flow = l4lb_conn_flow(conn);
	bool reply;

	rcu_read_lock();
	/* A packet's flow was looked up before; others, like templates, were not. */
	if (clock_ticks % 2 && !l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		assert(!l4lb_conn_find_both(&ln, &flow, &reply));
	atomic_inc(&table.n);
	old = l4lb_conn_table_insert(&table, conn, &flow);
	rcu_read_unlock();
	if (!old) {
		conns[i] = conn;
		made[i] = ++clock_ticks;
		return true;
	}
	assert(old == ERR_PTR(-ENOMEM));
	atomic_dec(&table.n);
	synchronize_rcu();
	free(conn);
	return false;
}

/* Removed connections are freed together, as by call_rcu(). */
static struct l4lb_conn *limbo[256];
static unsigned int n_limbo;

static void free_limbo(void)
{
	synchronize_rcu();
	while (n_limbo)
		free(limbo[--n_limbo]);
}

void del(unsigned int i)
{
	rcu_read_lock();
	l4lb_conn_set(conns[i], L4LB_CONN_DEAD);
	l4lb_conn_table_remove(&table, conns[i]);
	atomic_dec(&table.n);
	rcu_read_unlock();
	if (n_limbo == ARRAY_SIZE(limbo))
		free_limbo();
	limbo[n_limbo++] = conns[i];
	conns[i] = NULL;
}

void do_work(void)
{
	if (!__atomic_exchange_n(&queued, false, __ATOMIC_SEQ_CST))
		return;
	table.resize.fn(&table.resize.work);
}

static void setup(void)
{
	pthread_rwlockattr_t attr;
	unsigned int i;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr,
				      PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&shim_rcu, &attr);
	for (i = 0; i < ARRAY_SIZE(servers); i++) {
		memset(&servers[i].sched.addr, 0,
		       sizeof(servers[i].sched.addr));
		servers[i].sched.addr.all[0] = i + 1;
		servers[i].ln = &ln;
	}
	table.key.key[0] = 1;
	table.key.key[1] = 2;
	table.start = hash_start(&table.key);
	table.bits_min = 8;
	for (i = 0; i < ARRAY_SIZE(table.locks); i++)
		spin_lock_init(&table.locks[i].lock);
	assert(!l4lb_conn_bucket_init() && !l4lb_conn_resize_init(&table));
	ln.conns = &table;
	table.ln = &ln;
	table.events = &events;
	l4lb_conn_sweep_init(&table);
}

unsigned int bits(void)
{
	return 64 - table.array->shift;
}

/* ---- one thread ---- */

/* A listing that goes on for a few rows at a time.  A connection that exists
 * from its beginning to its end is listed once, none is listed twice.
 */
struct listing {
	struct l4lb_conn_walk	*walk;
	unsigned long		began;
	unsigned int		seen[MANY];
	unsigned long		rounds;
};

static void listing_begin(struct listing *l)
{
	l->walk = l4lb_conn_walk_open(&ln);
	l->began = clock_ticks;
	memset(l->seen, 0, sizeof(l->seen));
}

static unsigned int number_of(const struct l4lb_conn *conn)
{
	return conn->cport * 4 + conn->vport - 1;
}

static void listing_go_on(struct listing *l)
{
	struct l4lb_conn *conn = NULL;
	unsigned int i, rows = 1 + chance(60);

	if (!l->walk)
		listing_begin(l);
	if (!l->walk)
		return;
	l4lb_conn_walk_start(l->walk);
	while (rows-- && (conn = l4lb_conn_walk_next(l->walk)))
		/* A later connection with the same key has the same number. */
		assert(!l->seen[number_of(conn)]++ ||
		       made[number_of(conn)] > l->began);
	l4lb_conn_walk_stop(l->walk);
	if (conn)
		return;
	for (i = 0; i < MANY; i++)
		assert(!conns[i] || made[i] > l->began || l->seen[i]);
	l4lb_conn_walk_close(l->walk);
	l->walk = NULL;
	l->rounds++;
}

void check(unsigned int i)
{
	struct l4lb_conn *conn = conns[i];

	rcu_read_lock();
	if (conn) {
		assert(found(conn) == conn);
		if (l4lb_conn_has_out(conn))
			assert(found_out(conn) == newest(i));
	}
	rcu_read_unlock();
}

static struct listing listings[2];
static unsigned int goal, refused, biggest;

static void step(void)
{
	unsigned int i = chance(MANY);

	if (!conns[i] && i < goal)
		refused += !add(i);
	else if (conns[i] && (i >= goal || chance(8) == 0))
		del(i);
	check(i);
	check(chance(MANY));
	if (chance(10) == 0)
		listing_go_on(&listings[chance(2)]);
	biggest = max_t(unsigned int, biggest, bits());
	jiffies += chance(2000) == 0;
	if (conns[i])
		conns[i]->last = jiffies;
}

/* Called by cond_resched(), while a resize is under way. */
void shim_interlude(void)
{
	if (!no_interludes && chance(3) == 0)
		step();
}

static void at_random(unsigned int steps)
{
	unsigned int i, n, smallest;

	for (n = 0; n < steps; n++) {
		if (n % 20000 == 0)
			goal = n / 20000 % 2 ? MANY / 60 : MANY;
		if (n % 1000 == 0)	/* after a while, sometimes none */
			shim_memory = n < 40000 || chance(2) ? -1 : (int)chance(6);
		step();
		/* No resize at first: that makes long chains. */
		if (n > 40000 && chance(300) == 0)
			do_work();
	}
	shim_memory = -1;
	for (i = 0; i < MANY; i++) {
		if (conns[i])
			conns[i]->last = jiffies;
		check(i);
	}
	for (i = 0; i < MANY; i++)
		if (conns[i])
			del(i);
	assert(!atomic_read(&table.n) && !atomic_read(&table.n_out));
	rcu_read_lock();
	l4lb_conn_resize_check(&table);
	rcu_read_unlock();
	goal = 0;
	for (i = 0; i < 3; i++)
		do_work();
	smallest = bits();
	printf("bits %u..%u refused %u listings %lu\n", smallest, biggest, refused,
	       listings[0].rounds + listings[1].rounds);
	for (i = 0; i < 2; i++)
		if (listings[i].walk)
			l4lb_conn_walk_close(listings[i].walk);
}

/* ---- threads ---- */

static unsigned long looks, moves;

static void *reader(void *arg)
{
	unsigned int i = (uintptr_t)arg;
	unsigned long n = 0;

	while (!READ_ONCE(stop)) {
		i = (i + 1) % STEADY;
		rcu_read_lock();
		assert(found(conns[i]) == conns[i]);
		if (l4lb_conn_has_out(conns[i]))
			assert(found_out(conns[i]));
		rcu_read_unlock();
		n++;
	}
	__atomic_fetch_add(&looks, n, __ATOMIC_RELAXED);
	return NULL;
}

static void *worker(void *arg)
{
	unsigned int before;

	moving = true;
	while (!READ_ONCE(stop)) {
		before = bits();
		do_work();
		moves += bits() != before;
		WRITE_ONCE(shim_memory, moves % 7 == 5 && shim_memory < 0 ? 3 : -1);
		usleep(100);
	}
	return NULL;
}

static void *lister(void *arg)
{
	struct l4lb_conn_walk *walk;
	struct l4lb_conn *conn;
	unsigned int n;

	while (!READ_ONCE(stop)) {
		walk = l4lb_conn_walk_open(&ln);
		if (!walk)
			continue;
		n = 0;
		do {
			unsigned int rows = 40;

			l4lb_conn_walk_start(walk);
			while (rows-- && (conn = l4lb_conn_walk_next(walk)))
				n += number_of(conn) < STEADY;
			l4lb_conn_walk_stop(walk);
		} while (conn);
		assert(n == STEADY);
		l4lb_conn_walk_close(walk);
	}
	return NULL;
}

static void race(unsigned int seconds)
{
	pthread_t threads[5];
	time_t end = time(NULL) + seconds;
	unsigned int i, turn = 0;

	no_interludes = true;
	for (i = 0; i < STEADY; i++)
		assert(add(i));
	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, reader, (void *)(uintptr_t)(i * 100));
	pthread_create(&threads[3], NULL, worker, NULL);
	pthread_create(&threads[4], NULL, lister, NULL);
	while (time(NULL) < end) {
		for (i = STEADY; i < RACING; i++) {
			if (turn % 2 && conns[i])
				del(i);
			else if (turn % 2 == 0 && !conns[i])
				add(i);
			if (i % 64 == 0) {
				rcu_read_lock();
				l4lb_conn_resize_check(&table);
				rcu_read_unlock();
			}
		}
		turn++;
	}
	WRITE_ONCE(stop, true);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < MANY; i++)
		if (conns[i])
			del(i);
	printf("looks %lu resizes %lu\n", looks, moves);
}

int main(int argc, char **argv)
{
	assert(argc == 3);
	setup();
	if (!strcmp(argv[1], "race")) {
		race(atoi(argv[2]));
	} else if (!strcmp(argv[1], "poor")) {
		poor(atoi(argv[2]));
	} else if (!strcmp(argv[1], "sizes")) {
		sizes(atoi(argv[2]));
	} else if (!strcmp(argv[1], "equals")) {
		equals(atoi(argv[2]));
	} else if (!strcmp(argv[1], "sweep")) {
		sweep(atoi(argv[2]));
	} else {
		random_state = atoi(argv[1]);
		at_random(atoi(argv[2]));
	}
	free_limbo();
	l4lb_conn_resize_exit(&table);
	return 0;
}
