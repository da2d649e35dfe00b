// SPDX-License-Identifier: GPL-2.0
/* Options of schedulers in messages of family L4LB. */
#include "api/netlink_option.h"

const struct nla_policy l4lb_nl_option_policy[] = {
	[L4LB_OPTION_ATTR_NAME]	= { .type = NLA_NUL_STRING,
				    .len = L4LB_NAME_LEN - 1 },
	[L4LB_OPTION_ATTR_VALUE] = { .type = NLA_U32 },
	[L4LB_OPTION_ATTR_KEY]	= NLA_POLICY_EXACT_LEN(L4LB_KEY_LEN),
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

static int parse_value(const struct l4lb_sched_option *o, struct nlattr **tb,
		       struct l4lb_sched_values *values, u32 *value,
		       struct netlink_ext_ack *extack)
{
	const struct nlattr *key = tb[L4LB_OPTION_ATTR_KEY];
	u32 wanted;

	if (key && !o->key) {
		l4lb_err_attr_fmt(extack, key, "option %s is no key: give a VALUE",
				  o->name);
		return -EINVAL;
	}
	if (key) {
		take_key(values, key);
		*value = l4lb_key_fingerprint(&values->key);
		return 0;
	}
	wanted = nla_get_u32(tb[L4LB_OPTION_ATTR_VALUE]);
	if (wanted < o->min || wanted > o->max) {
		l4lb_err_attr_fmt(extack, tb[L4LB_OPTION_ATTR_VALUE],
				  "option %s must be %u to %u", o->name,
				  o->min, o->max);
		return -ERANGE;
	}
	*value = wanted;
	return 0;
}

static int parse_pair(struct nlattr **tb, const struct nlattr *nest,
		      struct netlink_ext_ack *extack)
{
	int err = nla_parse_nested(tb, L4LB_OPTION_ATTR_KEY, nest,
				   l4lb_nl_option_policy, extack);

	if (err)
		return err;
	if (!tb[L4LB_OPTION_ATTR_NAME] ||
	    (!tb[L4LB_OPTION_ATTR_VALUE] && !tb[L4LB_OPTION_ATTR_KEY])) {
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "option: attribute NAME or VALUE is missing");
		return -EINVAL;
	}
	if (tb[L4LB_OPTION_ATTR_VALUE] && tb[L4LB_OPTION_ATTR_KEY]) {
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "option: give VALUE or KEY, not both");
		return -EINVAL;
	}
	return 0;
}

int l4lb_nl_parse_option(const struct l4lb_sched_ops *ops,
			 struct l4lb_sched_values *values, unsigned long *seen,
			 const struct nlattr *nest,
			 struct netlink_ext_ack *extack)
{
	struct nlattr *tb[L4LB_OPTION_ATTR_KEY + 1];
	const struct l4lb_sched_option *o;
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

	o = &ops->options[i];
	if (__test_and_set_bit(i, seen)) {
		l4lb_err_attr_fmt(extack, nest,
				  "option %s is named twice: name it once",
				  o->name);
		return -EINVAL;
	}
	return parse_value(o, tb, values, &values->option[i], extack);
}
