// SPDX-License-Identifier: GPL-2.0
/*
 * Setting the options of a service's scheduler.
 *
 * Most options are read with each pick, and packets see a new value at once.
 * Those with .rebuild are read by build() only: they change together with the
 * pool, or not at all if there is no memory for the next one.
 *
 * A key can be written but not read: listings have its fingerprint.  A request
 * that has the fingerprint of the present key keeps it, so that a listing can be
 * sent back; any other fingerprint is refused, because a table without the key
 * would send each client elsewhere.
 *
 * A file is opened by the process that sends the request; the scheduler makes
 * something of it, and numbers that.  A listing has number and path.  As with a
 * key a request that has the present number keeps the file.
 */
#include "service/option.h"

#include <linux/netlink.h>
#include <linux/slab.h>

#include "service/event.h"
#include "service/pool.h"
#include "service/shadow.h"

/**
 * l4lb_key_fingerprint() - a number by which a key can be recognised
 * @key: the key
 *
 * Return: never 0, which means that there is no key.
 */
u32 l4lb_key_fingerprint(const siphash_key_t *key)
{
	return (u32)siphash_1u64(0, key) ?: 1;
}

struct l4lb_sched_file *l4lb_file_open(const struct l4lb_sched_ops *ops, int fd,
				       const char *path)
{
	struct l4lb_sched_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	int err;

	if (!file)
		return ERR_PTR(-ENOMEM);
	file->data = ops->open(fd, &file->id);
	if (IS_ERR(file->data)) {
		err = PTR_ERR(file->data);
		kfree(file);
		return ERR_PTR(err);
	}
	file->ops = ops;
	strscpy(file->path, path, sizeof(file->path));
	refcount_set(&file->refs, 1);
	return file;
}

void l4lb_values_release(struct l4lb_sched_values *values)
{
	l4lb_file_put(values->file);
	memzero_explicit(values, sizeof(*values));
}

static int settle_file(struct l4lb_sched_values *values, u32 id,
		       const struct l4lb_sched_inst *inst,
		       struct netlink_ext_ack *extack)
{
	if (values->file || !id)
		return 0;
	if (!inst->file || inst->file->id != id) {
		NL_SET_ERR_MSG(extack,
			       "the service has no file with this number: give its path");
		return -EINVAL;
	}
	values->file = l4lb_file_get(inst->file);
	return 0;
}

/**
 * l4lb_values_settle() - find the key of a fingerprint, and the file of a number
 * @values: of a request; gets key and file
 * @inst: the instance that is to have them; its scheduler has options
 * @extack: gets a sentence
 *
 * Return: 0, or -EINVAL if @inst does not have them.
 */
int l4lb_values_settle(struct l4lb_sched_values *values,
		       const struct l4lb_sched_inst *inst,
		       struct netlink_ext_ack *extack)
{
	const struct l4lb_sched_option *o = inst->ops->options;
	unsigned int i;
	int err;

	for (i = 0; i < inst->ops->n_options; i++) {
		err = o[i].file ? settle_file(values, values->option[i], inst, extack) : 0;
		if (err)
			return err;
		if (!o[i].key || values->keyed)
			continue;
		if (values->option[i] && values->option[i] != inst->option[i]) {
			NL_SET_ERR_MSG(extack,
				       "the service has no key with this fingerprint: give the key itself");
			return -EINVAL;
		}
		values->key = values->option[i] ? inst->key : (siphash_key_t){ };
	}
	return 0;
}

/**
 * l4lb_values_swap() - exchange the values that only build() reads
 * @values: settled; gets the present values
 * @inst: the instance; its scheduler has options
 *
 * To be followed by the building of the next pool.  A second call undoes it.
 *
 * Return: does any of them differ?
 */
bool l4lb_values_swap(struct l4lb_sched_values *values,
		      struct l4lb_sched_inst *inst)
{
	bool differs = false;
	unsigned int i;

	for (i = 0; i < inst->ops->n_options; i++) {
		if (!inst->ops->options[i].rebuild)
			continue;
		differs |= values->option[i] != inst->option[i];
		swap(values->option[i], inst->option[i]);
	}
	/* Two keys may have one fingerprint. */
	differs |= !!memcmp(&values->key, &inst->key, sizeof(inst->key));
	swap(values->key, inst->key);
	swap(values->file, inst->file);
	return differs;
}

/**
 * l4lb_values_commit() - set the values that pick() reads, and tell the scheduler
 * @values: after l4lb_values_swap()
 * @inst: the instance; its scheduler has options
 * @set: bits of the options that the service has set for itself
 *
 * Packets see the new values at once, though not all at the same moment.
 *
 * Context: may sleep.
 */
void l4lb_values_commit(const struct l4lb_sched_values *values,
			struct l4lb_sched_inst *inst, unsigned long set)
{
	unsigned int i;

	for (i = 0; i < inst->ops->n_options; i++)
		if (!inst->ops->options[i].rebuild)
			WRITE_ONCE(inst->option[i], values->option[i]);
	inst->set = set;
	if (inst->ops->changed)
		inst->ops->changed(inst->state);
}

/**
 * l4lb_service_set_options() - set options of a service's scheduler
 * @svc: the service; its scheduler has options
 * @values: the new values of all options, in range
 * @set: bits of the options that the service sets for itself from now on
 * @extack: gets a sentence
 *
 * Return: 0, -EINVAL for an unknown fingerprint, or an error of building the
 * table; then nothing has changed.
 */
int l4lb_service_set_options(struct l4lb_service *svc,
			     struct l4lb_sched_values *values, unsigned long set,
			     struct netlink_ext_ack *extack)
{
	struct l4lb_sched_inst *inst = svc->inst;
	int err;

	lockdep_assert_held(&svc->ln->lock);
	err = l4lb_values_settle(values, inst, extack);
	if (err)
		return err;
	if (l4lb_values_swap(values, inst)) {
		err = l4lb_service_reweigh(svc);
		if (err) {
			l4lb_values_swap(values, inst);
			l4lb_service_say_failed(err, extack);
			return err;
		}
	}
	svc->ln->generation++;
	l4lb_values_commit(values, inst, inst->set | set);
	l4lb_shadow_options(svc);
	l4lb_event_service(L4LB_EVENT_SERVICE_CHANGED, svc);
	return 0;
}
