// SPDX-License-Identifier: GPL-2.0
/*
 * A scheduler that the registry must refuse: the parameter "defect" selects what
 * is wrong with it.  Without a defect it is accepted.  Its name is "defect".
 */
#include "sched.h"

static char *defect = "";
module_param(defect, charp, 0444);
MODULE_PARM_DESC(defect, "what is wrong, see defects[]");

static struct l4lb_sched_server *defect_pick(const struct l4lb_pool *pool,
					     const struct l4lb_flow *flow)
{
	return l4lb_pool_least(pool);
}

static int defect_build(struct l4lb_pool *pool, const struct l4lb_pool *old)
{
	return 0;
}

static void defect_free(struct l4lb_pool *pool)
{
}

static void *defect_init(const u32 *option)
{
	return NULL;
}

static void defect_exit(void *state)
{
}

static struct l4lb_sched_ops defect_sched = {
	.name	= "defect",
	.owner	= THIS_MODULE,
	.pick	= defect_pick,
	.build	= defect_build,
	.free	= defect_free,
	.init	= defect_init,
	.exit	= defect_exit,
};

static void no_pick(void)
{
	defect_sched.pick = NULL;
}

static void no_build(void)
{
	defect_sched.build = NULL;
}

static void no_free(void)
{
	defect_sched.free = NULL;
}

static void no_init(void)
{
	defect_sched.init = NULL;
}

static void no_exit(void)
{
	defect_sched.exit = NULL;
}

static void no_owner(void)
{
	defect_sched.owner = NULL;
}

static const struct l4lb_sched_option bad_default[] = {
	{ .name = "low", .min = 2, .max = 3, .def = 1, .what = "below its range" },
};

static void bad_option(void)
{
	defect_sched.options = bad_default;
	defect_sched.n_options = ARRAY_SIZE(bad_default);
}

static const struct l4lb_sched_option twin_options[] = {
	{ .name = "twin", .max = 3, .what = "one of two" },
	{ .name = "twin", .max = 5, .what = "the other one" },
};

static void same_options(void)
{
	defect_sched.options = twin_options;
	defect_sched.n_options = ARRAY_SIZE(twin_options);
}

static void bad_flags(void)
{
	defect_sched.flags = IP_VS_SVC_F_PERSISTENT;
}

static void set_name(const char *name)
{
	memset(defect_sched.name, 0, sizeof(defect_sched.name));
	memcpy(defect_sched.name, name,
	       min(strlen(name), sizeof(defect_sched.name)));
}

static void no_name(void)
{
	set_name("");
}

/* It leaves no room for the NUL. */
static void long_name(void)
{
	set_name("sixteen-letters-");
}

static void bad_name(void)
{
	set_name("De fect/..");
}

/* User space has this name for a service without a scheduler. */
static void none_name(void)
{
	set_name("none");
}

static void taken_name(void)
{
	set_name("rr");
}

static const struct {
	const char	*name;
	void		(*apply)(void);
} defects[] = {
	{ "no-pick", no_pick },
	{ "no-build", no_build },
	{ "no-free", no_free },
	{ "no-init", no_init },
	{ "no-exit", no_exit },
	{ "no-owner", no_owner },
	{ "bad-option", bad_option },
	{ "same-options", same_options },
	{ "bad-flags", bad_flags },
	{ "no-name", no_name },
	{ "long-name", long_name },
	{ "bad-name", bad_name },
	{ "none-name", none_name },
	{ "taken-name", taken_name },
};

static int __init defect_module_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(defects); i++)
		if (!strcmp(defect, defects[i].name))
			defects[i].apply();
	return l4lb_sched_register(&defect_sched);
}

static void __exit defect_module_exit(void)
{
	l4lb_sched_unregister(&defect_sched);
}

module_init(defect_module_init);
module_exit(defect_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb test: a scheduler with a defect");
