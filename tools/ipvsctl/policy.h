/* SPDX-License-Identifier: GPL-2.0 */
/* Per-service overrides of namespace settings, which only l4lb has: their
 * words, JSON keys and attributes are in the tables of policy.c.
 */
#ifndef IPVSCTL_POLICY_H
#define IPVSCTL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "../../kernel/l4lb.h"
#include "ident.h"

struct args;
struct service;

/* Is the service protected? Behind those that are attributes of a policy. */
enum { POLICY_PROTECTED = L4LB_POLICY_ATTR_MAX + 1, POLICY_VALUES };

/* Indexed by L4LB_POLICY_ATTR_*; 0 is the default of each. Without padding. That of
 * SNAT is the family of its addresses, see snat.h.
 */
struct policy {
	uint32_t value[POLICY_VALUES];
	struct ip snat[2];		/* first and last; or zeros */
	char owner[L4LB_OWNER_LEN];	/* "": none; padded with zeros */
	char shadow[L4LB_NAME_LEN];	/* likewise */
};

/* Values that were named: bit n of @named for attribute n, and these. */
enum { POLICY_SHADOW = 1 << 29, POLICY_OWNER = 1 << 30 };

struct policy_opts {
	struct policy policy;
	unsigned int named;
};

/* The words that begin a setting, for lists of known words. */
#define POLICY_WORDS "timeout", "on-idle", "on-loss", "on-drain", "guard", \
		     "fast-path", "sync", "log", "ramp", "limit-rate", \
		     "limit-burst", "limit-conns", "limit-reply", "latency", \
		     "conn-state", "snat", "priority", \
		     "owner", "protected", "shadow"
#define POLICY_KEYS "timeout", "on_idle", "on_loss", "on_drain", "guard", \
		    "fast_path", "sync", "log", "ramp", "limit_rate", \
		    "limit_burst", "limit_conns", "limit_reply", \
		    "latency", "conn_state", "snat", "priority", "las_bytes", \
		    "owner", "protected", "shadow"

/* Is it one of POLICY_WORDS? */
bool policy_is_word(const char *word);

/* Parses the values after @word. */
int policy_parse(struct args *a, const char *object, const char *word,
		 struct policy_opts *o);
void policy_apply(struct policy *policy, const struct policy_opts *o);

/* Checks a name; @out has L4LB_OWNER_LEN bytes. "none" is "". */
int policy_parse_owner(const char *word, const char *object, char *out);

/* Does one of its L4LB_POLICY_ATTR_* differ from its default? */
bool policy_has_values(const struct policy *policy);

bool policy_is_default(const struct policy *policy);
/* Where a band of `priority las` ends, in bytes; 0: it is the last one. */
uint32_t policy_band_end(const struct policy *policy, size_t band);
bool policy_equal(const struct policy *a, const struct policy *b);

/* As words that policy_parse() reads: "timeout tcp 7200 udp 30"; "" for the
 * default. Valid until the next call.
 */
const char *policy_text(const struct policy *policy);

/* Adds keys to a service's JSON object; none for values at their default. */
void policy_to_json(json_t *o, const struct policy *policy);
int policy_from_json(json_t *o, const char *object, struct policy *policy);

/* Fails if the service has a policy and the module is in-tree ip_vs. */
int policy_settle(const struct service *svc);

#endif
