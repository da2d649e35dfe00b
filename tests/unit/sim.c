// SPDX-License-Identifier: GPL-2.0
/*
 * A service with one scheduler, driven by commands on standard input:
 *
 *	add ID WEIGHT [UPPER LOWER]	prints ok or a negative errno
 *	edit ID WEIGHT [UPPER LOWER]	likewise
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
 *	options				prints "NAME=VALUE,MIN,MAX,DEFAULT ..."
 *	race THREADS N			concurrent picks, of addresses 1 to N;
 *					prints "ID=COUNT ..."
 *	cost				prints the most field reads of one pick so far
 *	registry			tries kernel/service/registry.c; prints its answers
 *
 * Like kernel/service/service.c it builds a new pool for every change, and a server
 * that is deleted and added again keeps its counters.
 */
#include "service/registry.h"

#include <pthread.h>

#define MAX_DEST	4096

__thread unsigned long shim_reads;
bool shim_no_memory;
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
static void *state;
static unsigned long worst;

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

static int rebuild(void)
{
	struct l4lb_pool *next, *old = pool;
	int err;

	next = calloc(1, struct_size(next, server, n_order));
	next->ops = ops;
	next->state = state;
	next->option = option;
	next->af = service_af;
	next->flags = service_flags;
	next->n = n_order;
	memcpy(next->server, order, n_order * sizeof(*order));
	err = ops->build ? ops->build(next, old) : 0;
	if (err) {
		free(next);
		return err;
	}
	if (old && ops->free)
		ops->free(old);
	free(old);
	pool = next;
	return 0;
}

/* ---- counters and thresholds ---- */

static u32 lower_of(const struct server *s)
{
	return s->lower ? s->lower : s->upper - s->upper / 4;
}

static void connected(struct server *s, bool active)
{
	if (active)
		s->sched.active.counter++;
	s->sched.total.counter++;
	if (s->upper && (u32)s->sched.total.counter == s->upper)
		s->sched.overloaded = true;
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
}

/* ---- commands ---- */

static int cmd_add(struct server *s, char **arg)
{
	int err;

	configure(s, arg);
	order[n_order++] = &s->sched;
	s->server.available = true;
	err = rebuild();
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
	err = rebuild();
	if (err)
		*s = old;
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
	return rebuild();
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

		flow.daddr.ip = htonl(i);
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

static void cmd_option(const char *name, u32 value)
{
	unsigned int i;

	for (i = 0; i < ops->n_options; i++)
		if (!strcmp(ops->options[i].name, name))
			break;
	if (i == ops->n_options)
		abort();
	WRITE_ONCE(option[i], value);
	if (ops->changed)
		ops->changed(state);
}

static void cmd_options(void)
{
	unsigned int i;

	for (i = 0; i < ops->n_options; i++) {
		const struct l4lb_sched_option *o = &ops->options[i];

		printf("%s=%u,%u,%u,%u ", o->name, l4lb_option(pool, i),
		       o->min, o->max, o->def);
	}
	putchar('\n');
}

/* ---- the registry ---- */

static struct l4lb_sched_server *null_pick(const struct l4lb_pool *p,
					   const struct l4lb_flow *flow)
{
	return NULL;
}

static int null_build(struct l4lb_pool *p, const struct l4lb_pool *old)
{
	return 0;
}

static void null_free(struct l4lb_pool *p)
{
}

static void *null_init(const u32 *o)
{
	return NULL;
}

static void null_exit(void *s)
{
}

static void try_register(const char *what, struct l4lb_sched_ops ops)
{
	static struct l4lb_sched_ops tried[32];
	static unsigned int n;

	tried[n] = ops;
	printf("%s:%d ", what, l4lb_sched_register(&tried[n]));
	n++;
}

/* Tables of options: good ones with one mistake each, then one that is good. */
static void try_options(void)
{
	static const struct l4lb_sched_option good = {
		.name = "a-1", .min = 1, .max = 3, .def = 3, .what = "unit",
	};
	static struct l4lb_sched_option table[16][L4LB_SCHED_OPTIONS_MAX + 1];
	struct l4lb_sched_ops ops = {
		.name = "o", .pick = null_pick, .owner = THIS_MODULE
	};
	static char longest[L4LB_SCHED_WHAT_MAX + 1];
	unsigned int n = 0;

#define TRY(what, count, ...) do { \
		struct l4lb_sched_option *o = table[n++]; \
		for (unsigned int i = 0; i < ARRAY_SIZE(table[0]); i++) { \
			o[i] = good; \
			o[i].name[0] = 'a' + i; \
		} \
		__VA_ARGS__; \
		ops.options = o; \
		ops.n_options = count; \
		try_register(what, ops); \
	} while (0)
	memset(longest, 'x', L4LB_SCHED_WHAT_MAX);
	TRY("opt-name", 2, strcpy(o[1].name, "A"));
	TRY("opt-long", 2, memset(o[1].name, 'x', sizeof(o[1].name)));
	TRY("opt-noname", 2, o[1].name[0] = 0);
	TRY("opt-twice", 2, o[1].name[0] = 'a');
	TRY("opt-low", 2, o[1].def = 0);
	TRY("opt-high", 2, o[1].def = 4);
	TRY("opt-what", 2, o[1].what = NULL);
	TRY("opt-whatlong", 2, o[1].what = longest);
	TRY("opt-many", L4LB_SCHED_OPTIONS_MAX + 1);
	TRY("opt-count", 0);
	ops.options = NULL;
	ops.n_options = 1;
	try_register("opt-table", ops);
	ops.n_options = 0;
	ops.flags = 1;
	try_register("flags", ops);
	ops.flags = 0;
	ops.changed = null_exit;
	try_register("changed", ops);
	ops.changed = NULL;
	longest[L4LB_SCHED_WHAT_MAX - 1] = 0;
	ops.flags = L4LB_SCHED_FLAGS;
	TRY("good-options", L4LB_SCHED_OPTIONS_MAX, o[1].what = longest);
#undef TRY
}

static void try_get(const char *name)
{
	const struct l4lb_sched_ops *found;

	shim_requested[0] = 0;
	found = l4lb_sched_get(name);
	printf("get(%s):%s,%s ", name, found ? found->name : "-",
	       shim_requested[0] ? shim_requested : "-");
}

static void cmd_registry(void)
{
	struct l4lb_sched_ops good = {
		.name = "good", .pick = null_pick, .owner = THIS_MODULE
	};
	struct l4lb_sched_ops bad = good;

	try_register("good", good);
	try_register("again", good);
	bad.pick = NULL;
	try_register("pick", bad);
	bad = good;
	strcpy(bad.name, "b");
	bad.owner = NULL;
	try_register("owner", bad);
	bad.owner = THIS_MODULE;
	bad.build = null_build;
	try_register("build", bad);
	bad.build = NULL;
	bad.free = null_free;
	try_register("free", bad);
	bad.free = NULL;
	bad.init = null_init;
	try_register("init", bad);
	bad.init = NULL;
	bad.exit = null_exit;
	try_register("exit", bad);
	bad.exit = NULL;
	memset(bad.name, 'x', sizeof(bad.name));
	try_register("long", bad);
	strcpy(bad.name, "a b");
	try_register("space", bad);
	strcpy(bad.name, "none");
	try_register("none", bad);
	bad.name[0] = 0;
	try_register("empty", bad);
	try_options();

	try_get("good");
	try_get("absent");
	try_get("");
	try_get("../evil");
	try_get("Absent");
	try_get("sixteen-letters-");
	putchar('\n');
}

static void run(char **word)
{
	const char *cmd = word[0];
	int err = 0;

	if (!strcmp(cmd, "pick"))
		return cmd_pick(!strcmp(word[1], "tcp"),
				word[2] ? atoi(word[2]) : 1);
	if (!strcmp(cmd, "flow"))
		return cmd_flow(word + 1);
	if (!strcmp(cmd, "race"))
		return cmd_race(atoi(word[1]), atol(word[2]));
	if (!strcmp(cmd, "registry"))
		return cmd_registry();
	if (!strcmp(cmd, "options"))
		return cmd_options();
	if (!strcmp(cmd, "refs")) {
		printf("refs %d\n", server_of(word[1])->server.refs.counter);
		return;
	}
	if (!strcmp(cmd, "cost")) {
		printf("%lu\n", worst);
		return;
	}

	if (!strcmp(cmd, "add"))
		err = cmd_add(server_of(word[1]), word + 2);
	else if (!strcmp(cmd, "edit"))
		err = cmd_edit(server_of(word[1]), word + 2);
	else if (!strcmp(cmd, "del"))
		err = cmd_del(server_of(word[1]));
	else if (!strcmp(cmd, "addr"))
		cmd_addr(server_of(word[1]), word + 2);
	else if (!strcmp(cmd, "service")) {
		service_af = atoi(word[1]) == 6 ? AF_INET6 : AF_INET;
		service_flags = strtoul(word[2], NULL, 0);
		err = rebuild();
	} else if (!strcmp(cmd, "over"))
		server_of(word[1])->sched.overloaded = atoi(word[2]);
	else if (!strcmp(cmd, "wait"))
		cmd_wait(atof(word[1]));
	else if (!strcmp(cmd, "option"))
		cmd_option(word[1], strtoul(word[2], NULL, 0));
	else if (!strcmp(cmd, "memory"))
		shim_no_memory = !atoi(word[1]);
	else if (!strcmp(cmd, "turns"))
		*(u64 *)pool->table = strtoull(word[1], NULL, 0);
	else if (!strcmp(cmd, "load"))
		server_of(word[1])->sched.active.counter = atoi(word[2]),
		server_of(word[1])->sched.total.counter = atoi(word[3]);
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
	if (rebuild())
		return 2;
	while (fgets(line, sizeof(line), stdin)) {
		char *word[8] = { strtok(line, " \n") };
		unsigned int i;

		for (i = 0; word[i] && i + 1 < ARRAY_SIZE(word); i++)
			word[i + 1] = strtok(NULL, " \n");
		if (word[0])
			run(word);
		end_grace_period();
	}
	if (ops->free)
		ops->free(pool);
	free(pool);
	if (ops->exit)
		ops->exit(state);
	end_grace_period();
	for (unsigned int i = 0; i < MAX_DEST; i++)
		if (servers[i].server.refs.counter)
			return 3;
	return 0;
}
