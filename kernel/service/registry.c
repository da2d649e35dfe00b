// SPDX-License-Identifier: GPL-2.0
/*
 * Registry of schedulers.
 *
 * A service holds a module reference on its scheduler only while it is bound
 * to it.  The old pools and instance that it leaves behind are torn down later,
 * from RCU callbacks and l4lb_wq.  Unregistering waits for that, so a scheduler
 * module can be removed as soon as no service names it.
 */
#include "service/registry.h"

#include <linux/kmod.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

/* Each user of a scheduler looks for it: nobody holds this for long. */
static DEFINE_MUTEX(sched_lock);	/* protects sched_list */
static LIST_HEAD(sched_list);
/* Held while namespaces are told; also for changes of sched_list.  Taken before
 * sched_lock.
 */
static DEFINE_MUTEX(nets_lock);
static LIST_HEAD(sched_nets);	/* all namespaces */
static const struct l4lb_sched_listener *listener;

void l4lb_sched_listen(const struct l4lb_sched_listener *new)
{
	listener = new;
}

static bool sched_name_valid(const char *name)
{
	size_t len = strnlen(name, L4LB_SCHED_NAME_MAX);

	return len && len < L4LB_SCHED_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

static struct l4lb_sched_ops *sched_find(const char *name)
{
	struct l4lb_sched_ops *ops;

	lockdep_assert_held(&sched_lock);
	list_for_each_entry(ops, &sched_list, list)
		if (!strcmp(ops->name, name))
			return ops;
	return NULL;
}

static bool is_any_number(const struct l4lb_sched_option *o)
{
	return o->rebuild && !o->min && !o->def && o->max == U32_MAX;
}

static const char *file_fault(const struct l4lb_sched_ops *ops)
{
	const struct l4lb_sched_option *o;
	unsigned int files = 0, counts = 0;

	for (o = ops->options; o < ops->options + ops->n_options; o++) {
		files += o->file;
		counts += o->count;
		if (o->file && !is_any_number(o))
			return "has a file without .rebuild, or not from 0 to U32_MAX";
		if (o->count && (o->rebuild || o->sysctl || o->key || o->file))
			return "has a count that can be set";
	}
	if (files > 1 || files != !!ops->open || !ops->open != !ops->close)
		return "has two options with .file, or one without open() and close()";
	if (!counts != !ops->count || (counts && !ops->init))
		return "has only one of count(), with init(), and an option with .count";
	return NULL;
}

static const char *key_fault(const struct l4lb_sched_ops *ops)
{
	const struct l4lb_sched_option *o;

	for (o = ops->options; o < ops->options + ops->n_options; o++) {
		if (o->rebuild && (!ops->build || o->sysctl))
			return "has an option with .rebuild, but no build(), or a sysctl for it";
		if (o->key != !strcmp(o->name, "key"))
			return "has a key of another name, or a \"key\" that is none";
		if (o->key && !is_any_number(o))
			return "has a key without .rebuild, or not from 0 to U32_MAX";
	}
	return NULL;
}

/* The fault in the options of @ops, or NULL. */
static const char *option_fault(const struct l4lb_sched_ops *ops)
{
	const struct l4lb_sched_option *o = ops->options, *other;
	unsigned int i;

	if (ops->n_options > L4LB_SCHED_OPTIONS_MAX || !ops->n_options != !o)
		return "has too many options, or a table without a count";
	for (i = 0; i < ops->n_options; i++, o++) {
		if (!sched_name_valid(o->name))
			return "has an option with a bad name: 1 to 15 of a-z 0-9 _ -";
		if (o->def < o->min || o->def > o->max)
			return "has an option whose default is out of its range";
		if (!o->what || strlen(o->what) >= L4LB_SCHED_WHAT_MAX)
			return "has an option without a line of up to 79 characters";
		for (other = ops->options; other < o; other++)
			if (!strcmp(other->name, o->name))
				return "has two options of one name";
	}
	return key_fault(ops) ?: file_fault(ops);
}

/* The fault in @ops, or NULL. */
static const char *sched_fault(const struct l4lb_sched_ops *ops)
{
	if (!sched_name_valid(ops->name) || !strcmp(ops->name, "none"))
		return "has a bad name: 1 to 15 of a-z 0-9 _ -, not \"none\"";
	if (!ops->pick)
		return "has no pick()";
	if (!ops->build != !ops->free)
		return "has only one of build() and free()";
	if (!ops->init != !ops->exit)
		return "has only one of init() and exit()";
	if (ops->changed && !ops->init)
		return "has changed() but no init()";
	if (ops->flags & ~(u32)L4LB_SCHED_FLAGS)
		return "has flags that are not a scheduler's";
	if (!ops->owner)
		return "has no owner: it must be THIS_MODULE";
	return option_fault(ops);
}

/* Names the module, too, since the scheduler's own name may be the fault. */
static void sched_refuse(const struct l4lb_sched_ops *ops, const char *why)
{
	pr_err("module %s: scheduler \"%.*s\" %s\n",
	       ops->owner ? module_name(ops->owner) : "(no owner)",
	       L4LB_SCHED_NAME_MAX, ops->name, why);
}

/* Waits for no configuration mutex, which a long batch may hold. */
static void tell_removed(const struct l4lb_sched_ops *ops)
{
	struct l4lb_net *ln;

	list_for_each_entry(ln, &sched_nets, sched_nets)
		listener->removed(ln, ops);
}

static int tell_added(const struct l4lb_sched_ops *ops)
{
	struct l4lb_net *ln;
	int err;

	list_for_each_entry(ln, &sched_nets, sched_nets) {
		err = listener->added(ln, ops);
		if (err) {
			tell_removed(ops);
			return err;
		}
	}
	return 0;
}

/* Tells the listener of all schedulers, for a new namespace. */
int l4lb_sched_net_init(struct l4lb_net *ln)
{
	const struct l4lb_sched_ops *ops;
	int err = 0;

	mutex_lock(&nets_lock);
	list_add_tail(&ln->sched_nets, &sched_nets);
	list_for_each_entry(ops, &sched_list, list) {
		err = listener->added(ln, ops);
		if (err)
			break;
	}
	mutex_unlock(&nets_lock);
	if (err)
		l4lb_sched_net_exit(ln);
	return err;
}

void l4lb_sched_net_exit(struct l4lb_net *ln)
{
	const struct l4lb_sched_ops *ops;

	mutex_lock(&nets_lock);
	list_del(&ln->sched_nets);
	list_for_each_entry(ops, &sched_list, list)
		listener->removed(ln, ops);
	mutex_unlock(&nets_lock);
}

/**
 * l4lb_sched_register() - make a scheduler known by its name
 * @ops: the scheduler; must stay until l4lb_sched_unregister()
 *
 * Return: 0, -EINVAL for incomplete @ops, -EEXIST if the name is taken, or
 * -ENOMEM.
 */
int l4lb_sched_register(struct l4lb_sched_ops *ops)
{
	const char *fault = sched_fault(ops);
	int err;

	if (fault) {
		sched_refuse(ops, fault);
		return -EINVAL;
	}

	mutex_lock(&nets_lock);
	mutex_lock(&sched_lock);
	err = sched_find(ops->name) ? -EEXIST : 0;
	mutex_unlock(&sched_lock);
	if (!err)
		err = tell_added(ops);
	if (!err) {
		mutex_lock(&sched_lock);
		list_add_tail(&ops->list, &sched_list);
		mutex_unlock(&sched_lock);
	}
	mutex_unlock(&nets_lock);
	if (err == -EEXIST)
		sched_refuse(ops, "is registered already");
	return err;
}
EXPORT_SYMBOL_GPL(l4lb_sched_register);

/**
 * l4lb_sched_unregister() - forget a scheduler
 * @ops: was registered; no service is bound to it
 *
 * When it returns, no function of @ops can run any more.
 */
void l4lb_sched_unregister(struct l4lb_sched_ops *ops)
{
	mutex_lock(&nets_lock);
	mutex_lock(&sched_lock);
	list_del(&ops->list);
	mutex_unlock(&sched_lock);
	tell_removed(ops);
	mutex_unlock(&nets_lock);

	synchronize_rcu();		/* ends pick() on old pools */
	rcu_barrier();			/* queues their rcu_work ... */
	flush_workqueue(l4lb_wq);	/* ... which runs free() and exit() */
}
EXPORT_SYMBOL_GPL(l4lb_sched_unregister);

static const struct l4lb_sched_ops *sched_try_get(const char *name)
{
	struct l4lb_sched_ops *ops;

	mutex_lock(&sched_lock);
	ops = sched_find(name);
	if (ops && !try_module_get(ops->owner))
		ops = NULL;
	mutex_unlock(&sched_lock);
	return ops;
}

/**
 * l4lb_sched_get() - find a scheduler, loading its module if need be
 * @name: as user space gave it
 *
 * Loading may take long, and the module's init takes the locks here: call it
 * without the configuration mutex.
 *
 * Return: the scheduler with a reference on its module, or NULL.
 */
const struct l4lb_sched_ops *l4lb_sched_get(const char *name)
{
	const struct l4lb_sched_ops *ops;

	if (!sched_name_valid(name))
		return NULL;
	ops = sched_try_get(name);
	if (ops)
		return ops;
	request_module("l4lb_%s", name);
	return sched_try_get(name);
}

/* Drops the reference of l4lb_sched_get(); NULL is scheduler "none". */
void l4lb_sched_put(const struct l4lb_sched_ops *ops)
{
	if (ops)
		module_put(ops->owner);
}

/**
 * l4lb_sched_each() - call a function for each registered scheduler
 * @first: how many to skip
 * @fn: called with each; a return value other than 0 ends the walk
 * @arg: for @fn
 *
 * Context: process; takes sched_lock, under which @fn is called.
 * Return: the last return value of @fn, 0 if it was not called.
 */
int l4lb_sched_each(unsigned int first,
		    int (*fn)(const struct l4lb_sched_ops *ops, void *arg),
		    void *arg)
{
	struct l4lb_sched_ops *ops;
	unsigned int i = 0;
	int err = 0;

	mutex_lock(&sched_lock);
	list_for_each_entry(ops, &sched_list, list) {
		if (i++ < first)
			continue;
		err = fn(ops, arg);
		if (err)
			break;
	}
	mutex_unlock(&sched_lock);
	return err;
}
