// SPDX-License-Identifier: GPL-2.0
/* Options of schedulers in messages of family L4LB. */
#include "api/netlink_option.h"

const struct nla_policy l4lb_nl_option_policy[] = {
	[L4LB_OPTION_ATTR_NAME]	= { .type = NLA_NUL_STRING,
				    .len = L4LB_NAME_LEN - 1 },
	[L4LB_OPTION_ATTR_VALUE] = { .type = NLA_U32 },
	[L4LB_OPTION_ATTR_KEY]	= NLA_POLICY_EXACT_LEN(L4LB_KEY_LEN),
	[L4LB_OPTION_ATTR_FD]	= { .type = NLA_S32 },
	[L4LB_OPTION_ATTR_PATH]	= { .type = NLA_NUL_STRING,
				    .len = L4LB_SCHED_PATH_MAX - 1 },
};

/* The message lists the options of @ops, as many as fit. */
int l4lb_nl_unknown_option(const struct l4lb_sched_ops *ops,
			   const struct nlattr *name,
			   struct netlink_ext_ack *extack)
{
	char list[40] = "";
	unsigned int i;

	if (!ops || !ops->n_options) {
		l4lb_err_attr_fmt(extack, name,
				  "scheduler %s has no options: leave them out",
				  ops ? ops->name : "none");
		return -EINVAL;
	}
	for (i = 0; i < ops->n_options; i++) {
		const char *next = ops->options[i].name;

		if (strlen(list) + strlen(next) + sizeof(" ...") >
		    sizeof(list)) {
			strlcat(list, " ...", sizeof(list));
			break;
		}
		strlcat(list, " ", sizeof(list));
		strlcat(list, next, sizeof(list));
	}
	l4lb_err_attr_fmt(extack, name, "unknown option; %s has:%s", ops->name,
			  list);
	return -EINVAL;
}

/* The same key on processors of either byte order.  Afterwards the message has it no
 * more, nor has the copy of the message in the report of an error.
 */
static void take_key(struct l4lb_sched_values *values, const struct nlattr *attr)
{
	__le64 word[2];

	static_assert(sizeof(word) == L4LB_KEY_LEN);
	memcpy(word, nla_data(attr), sizeof(word));
	values->key.key[0] = le64_to_cpu(word[0]);
	values->key.key[1] = le64_to_cpu(word[1]);
	values->keyed = true;
	memzero_explicit(word, sizeof(word));
	memzero_explicit(nla_data(attr), L4LB_KEY_LEN);
}

/* Listings are read by people and by programs that split lines into words. */
static bool is_plain(const char *path)
{
	for (; *path; path++)
		if (*path <= ' ' || *path > '~' || strchr("#\"'\\", *path))
			return false;
	return true;
}

static int take_file(struct l4lb_sched_values *values, const struct l4lb_sched_ops *ops,
		     unsigned int i, struct nlattr **tb, struct netlink_ext_ack *extack)
{
	const struct l4lb_sched_option *o = &ops->options[i];
	const struct nlattr *fd = tb[L4LB_OPTION_ATTR_FD];
	const struct nlattr *path = tb[L4LB_OPTION_ATTR_PATH];
	struct l4lb_sched_file *file;

	if (path && !is_plain(nla_data(path))) {
		NL_SET_ERR_MSG_ATTR(extack, path,
				    "PATH must be printable, without blanks, #, quotes and \\");
		return -EINVAL;
	}
	file = l4lb_file_open(ops, nla_get_s32(fd), path ? nla_data(path) : "");
	if (PTR_ERR(file) == -ENOMEM)
		NL_SET_ERR_MSG(extack, "no memory for the scheduler's file");
	else if (IS_ERR(file))
		l4lb_err_attr_fmt(extack, fd, "option %s must be %s", o->name, o->what);
	if (IS_ERR(file))
		return PTR_ERR(file);
	values->file = file;
	values->option[i] = file->id;
	return 0;
}

/* Another kind of value than the option has? */
static int check_kind(const struct l4lb_sched_option *o, struct nlattr **tb,
		      struct netlink_ext_ack *extack)
{
	const struct nlattr *key = tb[L4LB_OPTION_ATTR_KEY];
	const struct nlattr *fd = tb[L4LB_OPTION_ATTR_FD];

	if (o->count)
		l4lb_err_attr_fmt(extack, tb[L4LB_OPTION_ATTR_NAME],
				  "%s is a count: leave it out", o->name);
	else if (key && !o->key)
		l4lb_err_attr_fmt(extack, key, "option %s is no key: give a VALUE",
				  o->name);
	else if (fd && !o->file)
		l4lb_err_attr_fmt(extack, fd, "option %s is no file: give a VALUE",
				  o->name);
	else
		return 0;
	return -EINVAL;
}

static int parse_value(const struct l4lb_sched_ops *ops, unsigned int i,
		       struct nlattr **tb, struct l4lb_sched_values *values,
		       struct netlink_ext_ack *extack)
{
	const struct l4lb_sched_option *o = &ops->options[i];
	u32 wanted;
	int err;

	err = check_kind(o, tb, extack);
	if (err)
		return err;
	if (tb[L4LB_OPTION_ATTR_KEY]) {
		take_key(values, tb[L4LB_OPTION_ATTR_KEY]);
		values->option[i] = l4lb_key_fingerprint(&values->key);
		return 0;
	}
	if (tb[L4LB_OPTION_ATTR_FD])
		return take_file(values, ops, i, tb, extack);
	wanted = nla_get_u32(tb[L4LB_OPTION_ATTR_VALUE]);
	if (wanted < o->min || wanted > o->max) {
		l4lb_err_attr_fmt(extack, tb[L4LB_OPTION_ATTR_VALUE],
				  "option %s must be %u to %u", o->name,
				  o->min, o->max);
		return -ERANGE;
	}
	values->option[i] = wanted;
	return 0;
}

static int parse_pair(struct nlattr **tb, const struct nlattr *nest,
		      struct netlink_ext_ack *extack)
{
	int err = nla_parse_nested(tb, L4LB_OPTION_ATTR_PATH, nest,
				   l4lb_nl_option_policy, extack);
	unsigned int values;

	if (err)
		return err;
	values = !!tb[L4LB_OPTION_ATTR_VALUE] + !!tb[L4LB_OPTION_ATTR_KEY] +
		 !!tb[L4LB_OPTION_ATTR_FD];
	if (!tb[L4LB_OPTION_ATTR_NAME] || !values) {
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "option: attribute NAME or VALUE is missing");
		return -EINVAL;
	}
	if (values > 1) {
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "option: give one of VALUE, KEY and FD");
		return -EINVAL;
	}
	return 0;
}

int l4lb_nl_parse_option(const struct l4lb_sched_ops *ops,
			 struct l4lb_sched_values *values, unsigned long *seen,
			 const struct nlattr *nest,
			 struct netlink_ext_ack *extack)
{
	struct nlattr *tb[L4LB_OPTION_ATTR_PATH + 1];
	unsigned int i;
	int err;

	err = parse_pair(tb, nest, extack);
	if (err)
		return err;
	for (i = 0; ops && i < ops->n_options; i++)
		if (!nla_strcmp(tb[L4LB_OPTION_ATTR_NAME],
				ops->options[i].name))
			break;
	if (!ops || i == ops->n_options)
		return l4lb_nl_unknown_option(ops, tb[L4LB_OPTION_ATTR_NAME], extack);

	if (__test_and_set_bit(i, seen)) {
		l4lb_err_attr_fmt(extack, nest,
				  "option %s is named twice: name it once",
				  ops->options[i].name);
		return -EINVAL;
	}
	return parse_value(ops, i, tb, values, extack);
}
