// SPDX-License-Identifier: GPL-2.0
/* The messages of kernel/l4lb.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/ip_vs.h>
#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "kern_msg.h"
#include "kern_l4lb.h"
#include "model.h"
#include "program.h"
#include "snat.h"
#include "wire.h"

static struct nla_policy option_policy[L4LB_OPTION_ATTR_MAX + 1] = {
	[L4LB_OPTION_ATTR_NAME]		= { .type = NLA_STRING },
	[L4LB_OPTION_ATTR_VALUE]	= { .type = NLA_U32 },
	[L4LB_OPTION_ATTR_MIN_VALUE]	= { .type = NLA_U32 },
	[L4LB_OPTION_ATTR_MAX_VALUE]	= { .type = NLA_U32 },
	[L4LB_OPTION_ATTR_DEFAULT]	= { .type = NLA_U32 },
	[L4LB_OPTION_ATTR_WHAT]		= { .type = NLA_STRING },
	[L4LB_OPTION_ATTR_KEY]		= { .type = NLA_UNSPEC },
	[L4LB_OPTION_ATTR_PATH]		= { .type = NLA_STRING },
	[L4LB_OPTION_ATTR_COUNT]	= { .type = NLA_FLAG },
};

static struct nla_policy sched_policy[L4LB_SCHED_ATTR_MAX + 1] = {
	[L4LB_SCHED_ATTR_NAME]		= { .type = NLA_STRING },
	[L4LB_SCHED_ATTR_FLAGS]		= { .type = NLA_U32 },
	[L4LB_SCHED_ATTR_OPTIONS]	= { .type = NLA_NESTED },
};

void l4lb_take_option(struct nlattr *nest, struct sched_option *o)
{
	struct nlattr *tb[L4LB_OPTION_ATTR_MAX + 1];

	memset(o, 0, sizeof(*o));
	if (nla_parse_nested(tb, L4LB_OPTION_ATTR_MAX, nest, option_policy) < 0)
		return;
	if (tb[L4LB_OPTION_ATTR_NAME])
		nla_strlcpy(o->name, tb[L4LB_OPTION_ATTR_NAME],
			    sizeof(o->name));
	if (tb[L4LB_OPTION_ATTR_WHAT])
		nla_strlcpy(o->what, tb[L4LB_OPTION_ATTR_WHAT],
			    sizeof(o->what));
	if (tb[L4LB_OPTION_ATTR_MIN_VALUE])
		o->min = nla_get_u32(tb[L4LB_OPTION_ATTR_MIN_VALUE]);
	if (tb[L4LB_OPTION_ATTR_MAX_VALUE])
		o->max = nla_get_u32(tb[L4LB_OPTION_ATTR_MAX_VALUE]);
	if (tb[L4LB_OPTION_ATTR_DEFAULT])
		o->def = nla_get_u32(tb[L4LB_OPTION_ATTR_DEFAULT]);
	o->key = tb[L4LB_OPTION_ATTR_KEY];
	o->file = tb[L4LB_OPTION_ATTR_PATH];
	if (o->file)
		nla_strlcpy(o->path, tb[L4LB_OPTION_ATTR_PATH], sizeof(o->path));
	o->count = tb[L4LB_OPTION_ATTR_COUNT];
	o->value = tb[L4LB_OPTION_ATTR_VALUE]
		? nla_get_u32(tb[L4LB_OPTION_ATTR_VALUE]) : o->def;
}

static void take_scheduler(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1], *tb[L4LB_SCHED_ATTR_MAX + 1];
	struct sched_info *info = arg;
	struct nlattr *nest;
	int left;

	memset(info, 0, sizeof(*info));
	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) < 0 ||
	    !top[L4LB_ATTR_SCHEDULER] ||
	    nla_parse_nested(tb, L4LB_SCHED_ATTR_MAX, top[L4LB_ATTR_SCHEDULER],
			     sched_policy) < 0)
		return;
	if (tb[L4LB_SCHED_ATTR_NAME])
		nla_strlcpy(info->name, tb[L4LB_SCHED_ATTR_NAME],
			    sizeof(info->name));
	if (tb[L4LB_SCHED_ATTR_FLAGS])
		info->flags = nla_get_u32(tb[L4LB_SCHED_ATTR_FLAGS]);
	if (tb[L4LB_SCHED_ATTR_OPTIONS])
		nla_for_each_nested(nest, tb[L4LB_SCHED_ATTR_OPTIONS], left)
			if (info->n < L4LB_OPTIONS_MAX)
				l4lb_take_option(nest, &info->options[info->n++]);
}

static void take_schedulers(struct nlmsghdr *nlh, void *arg)
{
	struct sched_infos *infos = arg;
	struct sched_info *more;

	more = reallocarray(infos->v, infos->n + 1, sizeof(*more));
	if (!more)
		return;
	infos->v = more;
	take_scheduler(nlh, &more[infos->n++]);
}

int kern_scheduler(const char *name, struct sched_info *info)
{
	struct nlattr *nest;
	struct nl_msg *msg;

	memset(info, 0, sizeof(*info));
	if (!wire_has_own())
		return -EOPNOTSUPP;
	snprintf(info->name, sizeof(info->name), "%s", name);
	if (!strcmp(name, "none"))
		return 0;
	msg = wire_own_request(L4LB_CMD_GET_SCHEDULER, 0);
	if (!msg)
		return -ENOMEM;
	nest = nla_nest_start(msg, L4LB_ATTR_SCHEDULER);
	nla_put_string(msg, L4LB_SCHED_ATTR_NAME, name);
	nla_nest_end(msg, nest);
	return wire_call(msg, take_scheduler, info);
}

int kern_schedulers(struct sched_infos *infos)
{
	struct nl_msg *msg;

	memset(infos, 0, sizeof(*infos));
	if (!wire_has_own())
		return 0;
	msg = wire_own_request(L4LB_CMD_GET_SCHEDULER, NLM_F_DUMP);
	return msg ? wire_call(msg, take_schedulers, infos) : -ENOMEM;
}

static struct nl_msg *service_request(int cmd, const struct svc_id *id)
{
	struct nl_msg *msg = wire_own_request(cmd, 0);
	struct nlattr *nest;

	if (!msg)
		return NULL;
	nest = nla_nest_start(msg, L4LB_ATTR_SERVICE);
	kern_put_ident(msg, id);
	nla_nest_end(msg, nest);
	return msg;
}

int kern_options(const struct svc_id *id, struct sched_info *info)
{
	struct nl_msg *msg = service_request(L4LB_CMD_GET_OPTIONS, id);

	memset(info, 0, sizeof(*info));
	return msg ? wire_call(msg, take_scheduler, info) : -ENOMEM;
}

/* The scheduler may have changed since the service was read: then the options
 * belong to another scheduler and are ignored.
 */
static int get_options(struct service *svc)
{
	struct sched_info info;
	unsigned int i;
	int err;

	svc->noptions = 0;
	err = kern_options(&svc->id, &info);
	if (err)
		return err;
	for (i = 0; i < info.n && !strcmp(info.name, svc->scheduler); i++) {
		const struct sched_option *o = &info.options[i];

		if (o->value != o->def && !o->count)
			service_option_set(svc, o->name, o->value, o->path);
	}
	return 0;
}

static void put_program(struct nl_msg *msg, int fd, const char *path)
{
	nla_put_s32(msg, L4LB_OPTION_ATTR_FD, fd);
	if (path)
		nla_put_string(msg, L4LB_OPTION_ATTR_PATH, path);
}

/* Is a program sent although the service has it? It may have been stopped, or have
 * another pin now.
 */
static bool is_told(const struct sched_option *o, const struct svc_option *wanted)
{
	return o->file && wanted &&
	       (wanted->given || (wanted->path && strcmp(wanted->path, o->path)));
}

/* @wanted: NULL for the default. */
static bool put_option(struct nl_msg *msg, const struct sched_option *o,
		       const struct svc_option *wanted)
{
	uint32_t value = wanted ? wanted->value : o->def;
	const uint8_t *key = wanted ? wanted->key : NULL;
	int fd = wanted ? program_fd(wanted) : -1;
	struct nlattr *nest;

	if (o->count || (!key && o->value == value && !is_told(o, wanted)))
		return false;
	nest = nla_nest_start(msg, 1);
	nla_put_string(msg, L4LB_OPTION_ATTR_NAME, o->name);
	if (key)
		nla_put(msg, L4LB_OPTION_ATTR_KEY, L4LB_KEY_LEN, key);
	else if (fd >= 0 || (wanted && wanted->path && !value))
		put_program(msg, fd, wanted->path);
	else
		nla_put_u32(msg, L4LB_OPTION_ATTR_VALUE, value);
	nla_nest_end(msg, nest);
	return true;
}

static int sync_options(const struct service *svc)
{
	struct sched_info info;
	struct nlattr *nest;
	struct nl_msg *msg;
	bool any = false;
	unsigned int i;
	int err;

	err = kern_options(&svc->id, &info);
	if (err)
		return err;
	msg = service_request(L4LB_CMD_SET_OPTIONS, &svc->id);
	if (!msg)
		return -ENOMEM;
	nest = nla_nest_start(msg, L4LB_ATTR_OPTIONS);
	for (i = 0; i < info.n; i++)
		any |= put_option(msg, &info.options[i],
				  service_option(svc, info.options[i].name));
	nla_nest_end(msg, nest);
	if (any)
		return wire_call(msg, NULL, NULL);
	nlmsg_free(msg);
	return 0;
}

void l4lb_take_policy(struct nlattr *nest, struct service *svc)
{
	struct nlattr *value[L4LB_POLICY_ATTR_MAX + 1];
	int i;

	if (nla_parse_nested(value, L4LB_POLICY_ATTR_MAX, nest, NULL) < 0)
		return;
	for (i = 1; i <= L4LB_POLICY_ATTR_MAX; i++)
		if (value[i] && nla_len(value[i]) >= 4 && i != L4LB_POLICY_ATTR_SNAT)
			svc->policy.value[i] = nla_get_u32(value[i]);
	if (value[L4LB_POLICY_ATTR_SNAT])
		snat_take(value[L4LB_POLICY_ATTR_SNAT], &svc->policy);
}

void l4lb_take_claim(struct nlattr **tb, struct service *svc)
{
	struct policy *policy = &svc->policy;

	if (tb[L4LB_ATTR_OWNER])
		nla_strlcpy(policy->owner, tb[L4LB_ATTR_OWNER],
			    sizeof(policy->owner));
	if (tb[L4LB_ATTR_SHADOW])
		nla_strlcpy(policy->shadow, tb[L4LB_ATTR_SHADOW],
			    sizeof(policy->shadow));
	if (tb[L4LB_ATTR_PROTECTED])
		policy->value[POLICY_PROTECTED] =
			nla_get_u8(tb[L4LB_ATTR_PROTECTED]);
}

static void take_bands(struct nlattr *list, struct service *svc)
{
	struct nlattr *value[L4LB_BAND_ATTR_MAX + 1], *nest;
	size_t n = 0;
	int left;

	nla_for_each_nested(nest, list, left) {
		if (n == L4LB_BANDS ||
		    nla_parse_nested(value, L4LB_BAND_ATTR_MAX, nest, NULL) < 0 ||
		    !value[L4LB_BAND_ATTR_PACKETS] ||
		    !value[L4LB_BAND_ATTR_BYTES])
			return;
		svc->bands[n].packets = nla_get_u64(value[L4LB_BAND_ATTR_PACKETS]);
		svc->bands[n++].bytes = nla_get_u64(value[L4LB_BAND_ATTR_BYTES]);
	}
	svc->has_bands = n == L4LB_BANDS;
}

static void take_shadow(struct nlattr *nest, struct service *svc)
{
	struct nlattr *tb[L4LB_SHADOW_ATTR_MAX + 1];

	if (nla_parse_nested(tb, L4LB_SHADOW_ATTR_MAX, nest, NULL) < 0 ||
	    !tb[L4LB_SHADOW_ATTR_SEEN] || !tb[L4LB_SHADOW_ATTR_AGREED] ||
	    !tb[L4LB_SHADOW_ATTR_REFUSED])
		return;
	svc->shadow = (struct shadow_counts){
		.known = true,
		.choices = nla_get_u64(tb[L4LB_SHADOW_ATTR_SEEN]),
		.agreed = nla_get_u64(tb[L4LB_SHADOW_ATTR_AGREED]),
		.refused = nla_get_u64(tb[L4LB_SHADOW_ATTR_REFUSED]),
	};
}

/* What packets have counted because of the policy. */
void l4lb_take_counts(struct nlattr **tb, struct service *svc)
{
	if (tb[L4LB_ATTR_BANDS])
		take_bands(tb[L4LB_ATTR_BANDS], svc);
	svc->has_limited = tb[L4LB_ATTR_LIMITED];
	if (svc->has_limited)
		svc->limited = nla_get_u64(tb[L4LB_ATTR_LIMITED]);
	if (tb[L4LB_ATTR_SHADOW_STATS])
		take_shadow(tb[L4LB_ATTR_SHADOW_STATS], svc);
}

static void take_policy(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1];

	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) < 0)
		return;
	l4lb_take_claim(top, arg);
	if (top[L4LB_ATTR_POLICY])
		l4lb_take_policy(top[L4LB_ATTR_POLICY], arg);
	l4lb_take_counts(top, arg);
}

static int get_policy(struct service *svc)
{
	struct nl_msg *msg = service_request(L4LB_CMD_GET_POLICY, &svc->id);

	memset(&svc->policy, 0, sizeof(svc->policy));
	return msg ? wire_call(msg, take_policy, svc) : -ENOMEM;
}

static int sync_policy(const struct service *svc)
{
	const struct policy *want = &svc->policy, *have;
	struct service now = { .id = svc->id };
	struct nlattr *nest = NULL;
	struct nl_msg *msg;
	int i, err;

	err = get_policy(&now);
	if (err || policy_equal(&now.policy, &svc->policy))
		return err;
	msg = service_request(L4LB_CMD_SET_POLICY, &svc->id);
	if (!msg)
		return -ENOMEM;
	have = &now.policy;
	for (i = 1; i <= L4LB_POLICY_ATTR_MAX; i++) {
		bool snat = i == L4LB_POLICY_ATTR_SNAT;

		if (want->value[i] == have->value[i] &&
		    !(snat && memcmp(want->snat, have->snat, sizeof(want->snat))))
			continue;
		if (!nest)
			nest = nla_nest_start(msg, L4LB_ATTR_POLICY);
		if (snat)
			snat_put(msg, want);
		else
			nla_put_u32(msg, i, want->value[i]);
	}
	if (nest)
		nla_nest_end(msg, nest);
	if (strcmp(want->owner, have->owner))
		nla_put_string(msg, L4LB_ATTR_OWNER, want->owner);
	if (strcmp(want->shadow, have->shadow))
		nla_put_string(msg, L4LB_ATTR_SHADOW,
			       want->shadow[0] ? want->shadow : "none");
	if (want->value[POLICY_PROTECTED] != have->value[POLICY_PROTECTED])
		nla_put_u8(msg, L4LB_ATTR_PROTECTED,
			   (uint8_t)want->value[POLICY_PROTECTED]);
	return wire_call(msg, NULL, NULL);
}

int kern_l4lb_zero(const struct svc_id *id)
{
	struct nl_msg *msg = wire_has_own() ?
			     service_request(L4LB_CMD_ZERO_SERVICE, id) : NULL;

	return msg ? wire_call(msg, NULL, NULL) : -EOPNOTSUPP;
}

int kern_l4lb(struct service *svc)
{
	int err;

	if (!wire_has_own())
		return 0;
	err = get_options(svc);
	return err ? err : get_policy(svc);
}

int kern_l4lb_sync(const struct service *svc)
{
	int err;

	if (!wire_has_own())
		return svc->noptions || !policy_is_default(&svc->policy)
			? -EOPNOTSUPP : 0;
	err = sync_options(svc);
	return err ? err : sync_policy(svc);
}
