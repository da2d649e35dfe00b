// SPDX-License-Identifier: GPL-2.0
/*
 * A service with one scheduler, driven by commands on standard input:
 *
 *	add ID WEIGHT [UPPER LOWER]	prints ok or a negative errno
 *	edit ID WEIGHT [UPPER LOWER]	likewise
 *	patch ID WEIGHT [UPPER LOWER]	likewise, without a new pool
 *	del ID				likewise
 *	addr ID ADDRESS [PORT]		sets its address, before it is added
 *	service 4|6 FLAGS		family and flags of the service
 *	pick tcp|udp [N]		new connections; prints "ID ID ...", - for none
 *	flow tcp|udp SRC PORT DST PORT	likewise, one connection
 *	load ID ACTIVE TOTAL		set its counters
 *	over ID 0|1			set its overload flag
 *	memory 0|1			make allocations fail, or not
 *	wait SECONDS			advances the clock and does due work; may be 0.5
 *	refs ID				prints the number of references to it
 *	turns T				sets the rotation's counter
 *	option NAME VALUE		sets an option of the scheduler
 *	key WORD WORD			sets its secret, and "option key 1"
 *	options				prints "NAME=VALUE,MIN,MAX,DEFAULT ..."
 *	race THREADS N			concurrent picks, of addresses 1 to N;
 *					prints "ID=COUNT ..."
 *	churn THREADS N BURSTS SEED	bursts of N random picks, ends and edits by each thread,
 *					and some new pools meanwhile; prints how many picks
 *					between two bursts were not those of a scan
 *	halfway ID			a processor that marks ID's change stops after the
 *					first match
 *	tournament			prints 1 if the pool has one, otherwise 0
 *	cost				prints the most field reads of one pick so far
 *	reads				prints the field reads of all picks since the
 *					last time
 *	registry			tries kernel/service/registry.c; prints its answers
 *
 * Like kernel/service/pool.c it builds a new pool for every change, and a server
 * that is deleted and added again keeps its counters.
 */
#include "service/registry.h"

#include <pthread.h>

#define MAX_DEST	4096

__thread unsigned long shim_reads;
bool shim_no_memory;
bool shim_threads;
__thread u32 shim_pauses;
char shim_requested[64];
struct workqueue_struct *l4lb_wq;
unsigned long jiffies = -300 * HZ;	/* wraps soon, as in the kernel */

struct server {
	struct l4lb_sched_server	sched;
	struct l4lb_server	server;
	u32			upper, lower;
	u32			raced;
};

static struct server servers[MAX_DEST];
static struct l4lb_sched_server *order[MAX_DEST];
static unsigned int n_order;
static const struct l4lb_sched_ops *ops;
static struct l4lb_pool *pool;
static u8 service_af = AF_INET;
static u32 service_flags;
static u32 option[L4LB_SCHED_OPTIONS_MAX];
static siphash_key_t key;
static void *state;
static unsigned long worst, all_reads;

static int id_of(const struct l4lb_sched_server *d)
{
	return container_of(d, struct server, sched) - servers;
}

struct l4lb_server *l4lb_server_of(const struct l4lb_sched_server *d)
{
	return &container_of(d, struct server, sched)->server;
}

/* Never called, because there are no namespaces. */
static const struct l4lb_sched_listener listener;

static __attribute__((constructor(101))) void listen_to_all(void)
{
	l4lb_sched_listen(&listener);
}

/* ---- time ---- */

static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rcu_head *late_rcu;
static struct delayed_work *late_work;

void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	pthread_mutex_lock(&late_lock);
	head->func = func;
	head->next = late_rcu;
	late_rcu = head;
	pthread_mutex_unlock(&late_lock);
}

static void end_grace_period(void)
{
	struct rcu_head *head;

	while ((head = late_rcu)) {
		late_rcu = head->next;
		head->func(head);
	}
}

/* There is at most one work item: that of the only service. */
void queue_delayed_work(void *wq, struct delayed_work *work, unsigned long delay)
{
	pthread_mutex_lock(&late_lock);
	if (!work->pending) {
		work->pending = true;
		work->due = jiffies + delay;
		late_work = work;
	}
	pthread_mutex_unlock(&late_lock);
}

void mod_delayed_work(void *wq, struct delayed_work *work, unsigned long delay)
{
	work->pending = false;
	queue_delayed_work(wq, work, delay);
}

static void cmd_wait(double seconds)
{
	unsigned long end = jiffies + (unsigned long)(seconds * HZ);

	while (late_work && late_work->pending && !time_after(late_work->due, end)) {
		jiffies = late_work->due;
		late_work->pending = false;
		late_work->work.func(&late_work->work);
		end_grace_period();
	}
	jiffies = end;
}

static struct server *server_of(const char *id)
{
	int i = atoi(id);

	if (i < 0 || i >= MAX_DEST)
		abort();
	return &servers[i];
}

/* Pools whose readers may not be done yet. */
static struct l4lb_pool *retired[1024];
static unsigned int n_retired;

static void free_retired(void)
{
	struct l4lb_pool *old;

	while (n_retired) {
		old = retired[--n_retired];
		if (ops->free)
			ops->free(old);
		l4lb_tournament_put(old->tournament);
		free(old);
	}
}

/* One server was ADDED, or is GONE; or neither. */
static int rebuild(struct server *added, struct server *gone)
{
	struct l4lb_pool *next, *old = pool;
	int err;

	next = calloc(1, struct_size(next, server, n_order));
	next->ops = ops;
	next->state = state;
	next->option = option;
	next->key = &key;
	next->file = shim_file(ops, option);
	next->af = service_af;
	next->flags = service_flags;
	next->n = n_order;
	memcpy(next->server, order, n_order * sizeof(*order));
	if (old && (added || gone))
		next->tournament = l4lb_tournament_share(old, n_order);
	if (!next->tournament)
		next->tournament = l4lb_tournament_create(next);
	err = ops->build ? ops->build(next, old) : 0;
	if (err) {
		l4lb_tournament_put(next->tournament);
		free(next);
		return err;
	}
	rcu_assign_pointer(pool, next);
	if (old) {
		if (old->tournament != next->tournament)
			l4lb_tournament_leave(old->tournament);
		retired[n_retired++] = old;
	}
	l4lb_tournament_begin(next);
	if (added)
		l4lb_tournament_join(next->tournament, &added->sched);
	if (gone)
		l4lb_tournament_quit(next->tournament, &gone->sched);
	return 0;
}

/* ---- counters and thresholds ---- */

static u32 lower_of(const struct server *s)
{
	return s->lower ? s->lower : s->upper - s->upper / 4;
}

static void changed(struct server *s)
{
	struct l4lb_match *match;

	smp_mb();
	match = rcu_dereference(s->sched.match);
	if (match)
		l4lb_tournament_mark(match);
}

static void connected(struct server *s, bool active)
{
	if (active)
		atomic_inc(&s->sched.active);
	atomic_inc(&s->sched.total);
	if (s->upper && (u32)s->sched.total.counter == s->upper)
		s->sched.overloaded = true;
	changed(s);
}

static void configure(struct server *s, char **arg)
{
	u32 total = s->sched.total.counter;

	s->sched.weight = atoi(arg[0]);
	if (s->sched.weight)
		s->sched.last_weight = s->sched.weight;
	s->upper = arg[1] ? atoi(arg[1]) : 0;
	s->lower = arg[1] && arg[2] ? atoi(arg[2]) : 0;
	if (s->upper && total >= s->upper)
		s->sched.overloaded = true;
	else if (!s->upper || total < lower_of(s))
		s->sched.overloaded = false;
	changed(s);
}

/* ---- commands ---- */

static int cmd_add(struct server *s, char **arg)
{
	int err;

	configure(s, arg);
	order[n_order++] = &s->sched;
	s->server.available = true;
	err = rebuild(s, NULL);
	if (err) {
		n_order--;
		s->server.available = false;
	}
	return err;
}

static int cmd_edit(struct server *s, char **arg)
{
	struct server old = *s;
	int err;

	configure(s, arg);
	err = rebuild(NULL, NULL);
	if (err) {
		*s = old;
		changed(s);
	}
	return err;
}

static int cmd_del(struct server *s)
{
	unsigned int i, n = 0;

	for (i = 0; i < n_order; i++)
		if (order[i] != &s->sched)
			order[n++] = order[i];
	if (n == n_order)
		return -ENOENT;
	n_order = n;
	s->server.available = false;
	s->sched.weight = 0;
	changed(s);
	return rebuild(NULL, s);
}

static int parse_address(union nf_inet_addr *addr, const char *text)
{
	*addr = (union nf_inet_addr){};
	if (inet_pton(AF_INET, text, &addr->ip) == 1)
		return AF_INET;
	if (inet_pton(AF_INET6, text, &addr->in6) != 1)
		abort();
	return AF_INET6;
}

static void cmd_addr(struct server *s, char **arg)
{
	s->sched.af = parse_address(&s->sched.addr, arg[0]);
	s->sched.port = htons(arg[1] ? atoi(arg[1]) : 0);
}

static void pick_one(const struct l4lb_flow *flow)
{
	struct l4lb_sched_server *d;

	shim_reads = 0;
	d = ops->pick(pool, flow);
	worst = max(worst, shim_reads);
	all_reads += shim_reads;
	if (!d) {
		putchar('-');
		return;
	}
	connected(container_of(d, struct server, sched), flow->proto == 6);
	printf("%d", id_of(d));
}

static void cmd_flow(char **arg)
{
	struct l4lb_flow flow = { .proto = strcmp(arg[0], "tcp") ? 17 : 6 };

	flow.af = parse_address(&flow.saddr, arg[1]);
	flow.sport = htons(atoi(arg[2]));
	parse_address(&flow.daddr, arg[3]);
	flow.dport = htons(atoi(arg[4]));
	pick_one(&flow);
	putchar('\n');
}

static void cmd_pick(bool tcp, unsigned int n)
{
	struct l4lb_flow flow = { .af = AF_INET, .proto = tcp ? 6 : 17 };
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (i)
			putchar(' ');
		pick_one(&flow);
	}
	putchar('\n');
}

static void *racer(void *n)
{
	struct l4lb_flow flow = { .af = 2, .proto = 17 };
	unsigned long i;

	for (i = 0; i < (unsigned long)n; i++) {
		struct l4lb_sched_server *d;

		flow.saddr.ip = flow.daddr.ip = htonl(i);
		d = ops->pick(pool, &flow);
		if (!d)
			return "a pick failed";
		__atomic_fetch_add(&container_of(d, struct server,
						 sched)->raced,
				   1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void cmd_race(unsigned int threads, unsigned long n)
{
	pthread_t thread[64];
	unsigned int i;

	if (threads > ARRAY_SIZE(thread))
		abort();
	shim_threads = true;
	for (i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, racer, (void *)n))
			abort();
	for (i = 0; i < threads; i++) {
		void *complaint;

		pthread_join(thread[i], &complaint);
		if (complaint)
			printf("%s ", (char *)complaint);
	}
	for (i = 0; i < MAX_DEST; i++)
		if (servers[i].raced)
			printf("%u=%u ", i, servers[i].raced);
	putchar('\n');
}

/* ---- random changes by several threads ---- */

static struct {
	pthread_barrier_t	edge;	/* of a burst */
	unsigned long		steps, bursts;
} churn;

/* A connection of @s ends, if it has any. */
static void disconnect(struct server *s, bool active)
{
	atomic_t *count = active ? &s->sched.active : &s->sched.total;
	int had = atomic_read(count);

	while (had > 0 && !__atomic_compare_exchange_n(&count->counter, &had, had - 1, false,
						       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	changed(s);
}

static void burst(u64 *seed)
{
	unsigned long i;
	u64 z = *seed;

	for (i = 0; i < churn.steps; i++) {
		struct l4lb_flow flow = { .af = AF_INET, .proto = 6 };
		struct l4lb_sched_server *d;
		struct server *s;

		z = z * 6364136223846793005ULL + 1442695040888963407ULL;
		s = container_of(order[(z >> 33) % n_order], struct server, sched);
		switch (z >> 29 & 15) {
		case 0:
			WRITE_ONCE(s->sched.weight, z >> 40 & 7);
			changed(s);
			break;
		case 1:
			WRITE_ONCE(s->sched.overloaded, z >> 40 & 1);
			changed(s);
			break;
		case 2: case 3: case 4: case 5: case 6: case 7:
			disconnect(s, z >> 40 & 1);
			break;
		default:
			flow.daddr.ip = z >> 40 & 31;
			d = ops->pick(rcu_dereference(pool), &flow);
			if (d)
				connected(container_of(d, struct server, sched), z >> 45 & 1);
		}
	}
	*seed = z;
}

static void *churner(void *seed)
{
	u64 z = (u64)(unsigned long)seed * 0x9e3779b97f4a7c15ULL;
	unsigned long i;

	shim_pauses = z >> 32;
	for (i = 0; i < churn.bursts; i++) {
		pthread_barrier_wait(&churn.edge);
		burst(&z);
		pthread_barrier_wait(&churn.edge);
	}
	return NULL;
}

/* Some of the lowest servers, each while those before it cannot be picked. */
static unsigned int count_wrong(void)
{
	struct l4lb_sched_server *hidden[6], *d;
	struct l4lb_flow flow = { .proto = 6 };
	unsigned int n, wrong = 0;

	/* Only where a pick depends on nothing else. */
	if (ops->init || !ops->rank[0])
		return 0;
	for (n = 0; n < ARRAY_SIZE(hidden); n++) {
		d = ops->pick(pool, &flow);
		wrong += d != l4lb_pool_scan(pool, ops->rank[0]);
		if (!d)
			break;
		hidden[n] = d;
		d->overloaded = true;
		changed(container_of(d, struct server, sched));
	}
	while (n--) {
		hidden[n]->overloaded = false;
		changed(container_of(hidden[n], struct server, sched));
	}
	return wrong;
}

/* In the middle of a burst: a server leaves and comes back as the newest, or the
 * pool is replaced.
 */
static void change_pool(unsigned long i)
{
	struct server *s = container_of(order[i % n_order], struct server, sched);
	char weight[] = "2", *arg[] = { weight, NULL, NULL };

	if (i % 16 == 0)
		rebuild(NULL, NULL);
	else if (i % 4 == 0 && (cmd_del(s) || cmd_add(s, arg)))
		abort();
}

static void cmd_churn(unsigned int threads, unsigned long seed)
{
	pthread_t thread[64];
	unsigned int i, wrong = 0;

	if (threads > ARRAY_SIZE(thread))
		abort();
	pthread_barrier_init(&churn.edge, NULL, threads + 1);
	shim_threads = true;
	for (i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, churner, (void *)(seed + i)))
			abort();
	for (i = 0; i < churn.bursts; i++) {
		pthread_barrier_wait(&churn.edge);
		change_pool(i);
		pthread_barrier_wait(&churn.edge);
		free_retired();
		wrong += count_wrong();
	}
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&churn.edge);
	shim_threads = false;
	printf("wrong %u\n", wrong);
}

static void cmd_halfway(struct server *s)
{
	struct l4lb_flow flow = { .proto = 6 };

	ops->pick(pool, &flow);		/* plays all matches */
	s->sched.match->stale.counter = 3;
}

static void cmd_option(const char *name, u32 value)
{
	unsigned int i;

	for (i = 0; i < ops->n_options; i++)
		if (!strcmp(ops->options[i].name, name))
			break;
	if (i == ops->n_options)
		abort();
	WRITE_ONCE(option[i], value);
	if (ops->options[i].rebuild && rebuild(NULL, NULL))
		abort();
	if (ops->changed)
		ops->changed(state);
}

static void cmd_key(char **arg)
{
	key.key[0] = strtoull(arg[0], NULL, 0);
	key.key[1] = strtoull(arg[1], NULL, 0);
	cmd_option("key", 1);
}

static void cmd_options(void)
{
	unsigned int i;

	for (i = 0; i < ops->n_options; i++) {
		const struct l4lb_sched_option *o = &ops->options[i];

		printf("%s=%u,%u,%u,%u ", o->name,
		       o->count ? ops->count(state, i) : l4lb_option(pool, i),
		       o->min, o->max, o->def);
	}
	putchar('\n');
}

void cmd_registry(void);		/* sim_registry.c */

static void cmd_churn_words(char **arg)
{
	churn.steps = atol(arg[1]);
	churn.bursts = atol(arg[2]);
	cmd_churn(atoi(arg[0]), atol(arg[3]));
}

/* Does a command that prints its own answer; false if it is none of these. */
static bool answer(char **word)
{
	const char *cmd = word[0];

	if (!strcmp(cmd, "pick"))
		cmd_pick(!strcmp(word[1], "tcp"), word[2] ? atoi(word[2]) : 1);
	else if (!strcmp(cmd, "flow"))
		cmd_flow(word + 1);
	else if (!strcmp(cmd, "race"))
		cmd_race(atoi(word[1]), atol(word[2]));
	else if (!strcmp(cmd, "churn"))
		cmd_churn_words(word + 1);
	else if (!strcmp(cmd, "tournament"))
		printf("%d\n", !!pool->tournament);
	else if (!strcmp(cmd, "registry"))
		cmd_registry();
	else if (!strcmp(cmd, "options"))
		cmd_options();
	else if (!strcmp(cmd, "refs"))
		printf("refs %d\n", server_of(word[1])->server.refs.counter);
	else if (!strcmp(cmd, "cost"))
		printf("%lu\n", worst);
	else if (!strcmp(cmd, "reads"))
		printf("%lu\n", all_reads), all_reads = 0;
	else
		return false;
	return true;
}

static void run(char **word)
{
	const char *cmd = word[0];
	int err = 0;

	if (answer(word))
		return;
	if (!strcmp(cmd, "add"))
		err = cmd_add(server_of(word[1]), word + 2);
	else if (!strcmp(cmd, "edit"))
		err = cmd_edit(server_of(word[1]), word + 2);
	else if (!strcmp(cmd, "patch"))
		configure(server_of(word[1]), word + 2);
	else if (!strcmp(cmd, "del"))
		err = cmd_del(server_of(word[1]));
	else if (!strcmp(cmd, "addr"))
		cmd_addr(server_of(word[1]), word + 2);
	else if (!strcmp(cmd, "service")) {
		service_af = atoi(word[1]) == 6 ? AF_INET6 : AF_INET;
		service_flags = strtoul(word[2], NULL, 0);
		err = rebuild(NULL, NULL);
	} else if (!strcmp(cmd, "over"))
		server_of(word[1])->sched.overloaded = atoi(word[2]),
		changed(server_of(word[1]));
	else if (!strcmp(cmd, "wait"))
		cmd_wait(atof(word[1]));
	else if (!strcmp(cmd, "option"))
		cmd_option(word[1], strtoul(word[2], NULL, 0));
	else if (!strcmp(cmd, "key"))
		cmd_key(word + 1);
	else if (!strcmp(cmd, "halfway"))
		cmd_halfway(server_of(word[1]));
	else if (!strcmp(cmd, "memory"))
		shim_no_memory = !atoi(word[1]);
	else if (!strcmp(cmd, "turns"))
		*(u64 *)pool->table = strtoull(word[1], NULL, 0);
	else if (!strcmp(cmd, "latency"))
		server_of(word[1])->sched.latency = (u16)atoi(word[2]);
	else if (!strcmp(cmd, "load"))
		server_of(word[1])->sched.active.counter = atoi(word[2]),
		server_of(word[1])->sched.total.counter = atoi(word[3]),
		changed(server_of(word[1]));
	else
		abort();
	if (err)
		printf("%d\n", err);
	else
		puts("ok");
}

int main(int argc, char **argv)
{
	char line[256];

	ops = argc == 2 ? l4lb_sched_get(argv[1]) : NULL;
	if (!ops)
		return 2;
	for (unsigned int i = 0; i < ops->n_options; i++)
		option[i] = ops->options[i].def;
	state = ops->init ? ops->init(option) : NULL;
	if (rebuild(NULL, NULL))
		return 2;
	while (fgets(line, sizeof(line), stdin)) {
		char *word[8] = { strtok(line, " \n") };
		unsigned int i;

		for (i = 0; word[i] && i + 1 < ARRAY_SIZE(word); i++)
			word[i + 1] = strtok(NULL, " \n");
		if (word[0])
			run(word);
		end_grace_period();
		free_retired();
	}
	retired[n_retired++] = pool;
	free_retired();
	if (ops->exit)
		ops->exit(state);
	end_grace_period();
	for (unsigned int i = 0; i < MAX_DEST; i++)
		if (servers[i].server.refs.counter)
			return 3;
	return 0;
}
