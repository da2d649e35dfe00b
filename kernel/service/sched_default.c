// SPDX-License-Identifier: GPL-2.0
/*
 * Per-namespace defaults of schedulers' options, in seconds.  As with ip_vs any
 * value may be written; one outside the option's range counts as the nearest
 * value in it.
 */
#include "service/sched_default.h"

#include "service/pool.h"
#include "service/shadow.h"

/**
 * l4lb_sched_default() - an option's default in a namespace
 * @ln: the namespace
 * @ops: the scheduler
 * @i: index of the option
 *
 * Context: configuration mutex held.
 */
u32 l4lb_sched_default(struct l4lb_net *ln, const struct l4lb_sched_ops *ops,
		       unsigned int i)
{
	const struct l4lb_sched_option *o = &ops->options[i];
	const struct l4lb_sched_default *d;
	u32 value = o->def;

	lockdep_assert_held(&ln->lock);
	if (!o->sysctl)
		return o->def;
	spin_lock(&ln->defaults_lock);
	list_for_each_entry(d, &ln->sched_defaults, node)
		if (d->ops == ops)
			value = clamp_t(u32, max(READ_ONCE(d->value), 0) / HZ,
					o->min, o->max);
	spin_unlock(&ln->defaults_lock);
	return value;
}

static void take_default(struct l4lb_net *ln, struct l4lb_sched_inst *inst,
			 const struct l4lb_sched_ops *ops)
{
	unsigned int i;

	if (l4lb_inst_ops(inst) != ops)
		return;
	for (i = 0; i < ops->n_options; i++)
		if (!(inst->set & BIT(i)))
			WRITE_ONCE(inst->option[i], l4lb_sched_default(ln, ops, i));
	if (ops->changed)
		ops->changed(inst->state);
}

/* Services that do not set the options themselves get the new default, and so do
 * shadows.
 */
void l4lb_sched_default_changed(struct l4lb_net *ln,
				const struct l4lb_sched_ops *ops)
{
	struct l4lb_service *svc;

	lockdep_assert_held(&ln->lock);
	list_for_each_entry(svc, &ln->services, list) {
		take_default(ln, svc->inst, ops);
		take_default(ln, l4lb_shadow_inst(svc), ops);
		/* A shadow of the same scheduler has what the service sets itself. */
		l4lb_shadow_options(svc);
	}
}
