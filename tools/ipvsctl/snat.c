// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <linux/ip_vs.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include "err.h"
#include "model.h"
#include "snat.h"

static int bad_range(const char *word, const char *object)
{
	return fail(RC_USAGE, object,
		    "bad snat \"%s\": write one address, two as in 10.0.0.250-10.0.0.253, or off",
		    word);
}

/* Returns the family, or 0. */
static uint32_t parse_address(const char *word, size_t len, struct ip *addr)
{
	char text[INET6_ADDRSTRLEN];

	memset(addr, 0, sizeof(*addr));
	if (len >= sizeof(text))
		return 0;
	memcpy(text, word, len);
	text[len] = '\0';
	if (inet_pton(AF_INET, text, addr->b) == 1)
		return AF_INET;
	return inet_pton(AF_INET6, text, addr->b) == 1 ? AF_INET6 : 0;
}

int snat_parse(const char *word, const char *object, struct policy *policy)
{
	size_t len = strcspn(word, "-");
	const char *last = word[len] ? word + len + 1 : word;
	struct ip ends[2];
	uint32_t af;

	memset(policy->snat, 0, sizeof(policy->snat));
	policy->value[L4LB_POLICY_ATTR_SNAT] = 0;
	if (!strcmp(word, "off"))
		return RC_OK;
	af = parse_address(word, len, &ends[0]);
	if (!af || parse_address(last, strlen(last), &ends[1]) != af)
		return bad_range(word, object);
	memcpy(policy->snat, ends, sizeof(ends));
	policy->value[L4LB_POLICY_ATTR_SNAT] = af;
	return RC_OK;
}

const char *snat_text(const struct policy *policy)
{
	uint16_t af = (uint16_t)policy->value[L4LB_POLICY_ATTR_SNAT];
	static char text[2 * INET6_ADDRSTRLEN];
	size_t used;

	if (!af)
		return NULL;
	used = (size_t)snprintf(text, sizeof(text), "%s", ip_text(af, &policy->snat[0]));
	if (!ip_equal(&policy->snat[0], &policy->snat[1]))
		snprintf(text + used, sizeof(text) - used, "-%s",
			 ip_text(af, &policy->snat[1]));
	return text;
}

/* Addresses after the first; more than that if other bytes than the last two differ. */
static long length_of(const struct policy *policy)
{
	size_t end = snat_size(policy) - 2;
	const uint8_t *first = policy->snat[0].b, *last = policy->snat[1].b;
	int order = memcmp(first, last, end);

	if (order)
		return order > 0 ? -1 : L4LB_SNAT_MAX;
	return (last[end] - first[end]) * 256L + last[end + 1] - first[end + 1];
}

int snat_check(const struct service *svc, const char *object)
{
	const struct policy *policy = &svc->policy;

	if (!snat_size(policy))
		return RC_OK;
	if (policy->value[L4LB_POLICY_ATTR_SNAT] != svc->id.af)
		return fail(RC_USAGE, object,
			    "snat %s: the service has the other family", snat_text(policy));
	if (length_of(policy) < 0)
		return fail(RC_USAGE, object,
			    "snat %s: the last address comes before the first",
			    snat_text(policy));
	if (svc->flags & IP_VS_SVC_F_ONEPACKET)
		return fail(RC_USAGE, object,
			    "snat does not work with ops: a port needs a connection");
	if (svc->pe[0])
		return fail(RC_USAGE, object,
			    "snat does not work with pe: real servers begin calls, too");
	if (policy->value[L4LB_POLICY_ATTR_CONN_STATE] == L4LB_SERVICE_STATE_LAZY)
		return fail(RC_USAGE, object,
			    "conn-state lazy excludes snat: a port needs an entry");
	return RC_OK;
}

size_t snat_size(const struct policy *policy)
{
	switch (policy->value[L4LB_POLICY_ATTR_SNAT]) {
	case AF_INET:
		return sizeof(struct in_addr);
	case AF_INET6:
		return sizeof(struct in6_addr);
	default:
		return 0;
	}
}

bool snat_has(const struct policy *policy, const struct ip *addr)
{
	return memcmp(addr, &policy->snat[0], sizeof(*addr)) >= 0 &&
	       memcmp(addr, &policy->snat[1], sizeof(*addr)) <= 0;
}

void snat_next(uint16_t af, struct ip *addr)
{
	size_t i = af == AF_INET ? 4 : 16;

	while (i-- && !++addr->b[i])
		;
}

void snat_take(struct nlattr *nest, struct policy *policy)
{
	struct nlattr *tb[L4LB_SNAT_ATTR_MAX + 1];
	size_t size;

	if (nla_parse_nested(tb, L4LB_SNAT_ATTR_MAX, nest, NULL) < 0 ||
	    !tb[L4LB_SNAT_ATTR_FIRST] || !tb[L4LB_SNAT_ATTR_LAST])
		return;
	size = (size_t)nla_len(tb[L4LB_SNAT_ATTR_FIRST]);
	if (size != (size_t)nla_len(tb[L4LB_SNAT_ATTR_LAST]) ||
	    (size != sizeof(struct in_addr) && size != sizeof(struct in6_addr)))
		return;
	memcpy(policy->snat[0].b, nla_data(tb[L4LB_SNAT_ATTR_FIRST]), size);
	memcpy(policy->snat[1].b, nla_data(tb[L4LB_SNAT_ATTR_LAST]), size);
	policy->value[L4LB_POLICY_ATTR_SNAT] =
		size == sizeof(struct in_addr) ? AF_INET : AF_INET6;
}

void snat_put(struct nl_msg *msg, const struct policy *policy)
{
	struct nlattr *nest = nla_nest_start(msg, L4LB_POLICY_ATTR_SNAT);
	int size = (int)snat_size(policy);

	if (size) {
		nla_put(msg, L4LB_SNAT_ATTR_FIRST, size, policy->snat[0].b);
		nla_put(msg, L4LB_SNAT_ATTR_LAST, size, policy->snat[1].b);
	}
	nla_nest_end_keep_empty(msg, nest);
}
