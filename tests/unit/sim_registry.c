// SPDX-License-Identifier: GPL-2.0
/* The command "registry" of sim.c: tries kernel/service/registry.c. */
#include "service/registry.h"

void cmd_registry(void);

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
	static struct l4lb_sched_ops tried[80];
	static unsigned int n;

	tried[n] = ops;
	printf("%s:%d ", what, l4lb_sched_register(&tried[n]));
	n++;
}

static const struct l4lb_sched_option good = {
	.name = "a-1", .min = 1, .max = 3, .def = 3, .what = "unit",
};

static struct l4lb_sched_option *next_table(void)
{
	static struct l4lb_sched_option table[64][L4LB_SCHED_OPTIONS_MAX + 1];
	static unsigned int n;

	return table[n++];
}

/* @o: a table of good options; the rest makes a mistake in it. */
#define TRY(what, count, ...) do { \
		struct l4lb_sched_option *o = next_table(); \
		for (unsigned int i = 0; i < L4LB_SCHED_OPTIONS_MAX + 1; i++) { \
			o[i] = good; \
			o[i].name[0] = 'a' + i; \
		} \
		__VA_ARGS__; \
		ops.options = o; \
		ops.n_options = count; \
		try_register(what, ops); \
	} while (0)

/* Options that build() reads, and keys. */
static void try_keys(void)
{
	struct l4lb_sched_ops ops = {
		.name = "o", .pick = null_pick, .owner = THIS_MODULE
	};

	TRY("opt-rebuild", 2, o[1].rebuild = true);
	ops.build = null_build;
	ops.free = null_free;
#define KEY(o, ...) (o) = (struct l4lb_sched_option) { \
		.name = "key", .max = U32_MAX, .rebuild = true, .key = true, .what = "key", ##__VA_ARGS__ }
	TRY("opt-rebuild-sysctl", 2, o[1].rebuild = o[1].sysctl = true);
	TRY("key-late", 2, KEY(o[1], .rebuild = false));
	TRY("key-min", 2, KEY(o[1], .min = 1, .def = 1));
	TRY("key-max", 2, KEY(o[1], .max = 7));
	TRY("key-def", 2, KEY(o[1], .def = 7));
	TRY("key-named", 2, KEY(o[1], .name = "k"));
	TRY("key-number", 2, KEY(o[1], .key = false));
	strcpy(ops.name, "keyed");
	TRY("good-key", 2, KEY(o[1]));
#undef KEY
}

static void *null_open(int fd, u32 *id)
{
	return NULL;
}

static void null_close(void *data)
{
}

static u32 null_count(const void *state, unsigned int i)
{
	return 0;
}

/* Files, and what nobody sets. */
static void try_files(void)
{
	struct l4lb_sched_ops ops = {
		.name = "o", .pick = null_pick, .owner = THIS_MODULE,
		.build = null_build, .free = null_free,
	};

#define MADE(o, ...) (o) = (struct l4lb_sched_option) { .name = "made", .what = "made", ##__VA_ARGS__ }
#define FILED(o, ...) MADE(o, .max = U32_MAX, .rebuild = true, .file = true, ##__VA_ARGS__)
	TRY("file-closed", 2, FILED(o[1]));
	ops.open = null_open;
	TRY("file-open-only", 2, FILED(o[1]));
	ops.close = null_close;
	TRY("file-none", 2);
	TRY("file-late", 2, FILED(o[1], .rebuild = false));
	TRY("file-min", 2, FILED(o[1], .min = 1, .def = 1));
	TRY("file-max", 2, FILED(o[1], .max = 7));
	TRY("file-def", 2, FILED(o[1], .def = 7));
	TRY("file-two", 2, FILED(o[0]); FILED(o[1], .name = "b"));
	strcpy(ops.name, "filed");
	TRY("good-file", 2, FILED(o[1]));

	ops = (struct l4lb_sched_ops) {
		.name = "o", .pick = null_pick, .owner = THIS_MODULE,
		.build = null_build, .free = null_free,
	};
	TRY("count-none", 2, MADE(o[1], .count = true));
	ops.count = null_count;
	TRY("count-no-init", 2, MADE(o[1], .count = true));
	ops.init = null_init;
	ops.exit = null_exit;
	TRY("count-no-option", 2);
	TRY("count-rebuild", 2, MADE(o[1], .count = true, .rebuild = true));
	TRY("count-sysctl", 2, MADE(o[1], .count = true, .sysctl = true));
	strcpy(ops.name, "counted");
	TRY("good-count", 2, MADE(o[1], .count = true));
#undef FILED
#undef MADE
}

/* Tables of options: good ones with one mistake each, then one that is good. */
static void try_options(void)
{
	struct l4lb_sched_ops ops = {
		.name = "o", .pick = null_pick, .owner = THIS_MODULE
	};
	static char longest[L4LB_SCHED_WHAT_MAX + 1];

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
}

static void try_get(const char *name)
{
	const struct l4lb_sched_ops *found;

	shim_requested[0] = 0;
	found = l4lb_sched_get(name);
	printf("get(%s):%s,%s ", name, found ? found->name : "-",
	       shim_requested[0] ? shim_requested : "-");
}

/* Registers good and bad schedulers and asks for some by name. */
void cmd_registry(void)
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
	try_keys();
	try_files();

	try_get("good");
	try_get("absent");
	try_get("");
	try_get("../evil");
	try_get("Absent");
	try_get("sixteen-letters-");
	putchar('\n');
}
