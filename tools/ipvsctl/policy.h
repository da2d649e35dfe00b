/* SPDX-License-Identifier: GPL-2.0 */
/* What a service does otherwise than its namespace, which only l4lb knows:
 * one table has the words, the JSON keys and the attributes.
 */
#ifndef IPVSCTL_POLICY_H
#define IPVSCTL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "../../kernel/l4lb.h"

struct args;
struct service;

/* By L4LB_POLICY_ATTR_*; 0 is the default of each. */
struct policy {
	uint32_t value[L4LB_POLICY_ATTR_MAX + 1];
};

/* Those that were named: bit n for attribute n. */
struct policy_opts {
	struct policy policy;
	unsigned int named;
};

/* The words that begin a setting, for lists of what is known. */
#define POLICY_WORDS "timeout", "on-idle", "on-loss", "on-drain", "guard", \
		     "fast-path", "priority"
#define POLICY_KEYS "timeout", "on_idle", "on_loss", "on_drain", "guard", \
		    "fast_path", "priority", "las_bytes"

/* Is it one of them? */
bool policy_is_word(const char *word);

/* Reads what follows @word. */
int policy_parse(struct args *a, const char *object, const char *word,
		 struct policy_opts *o);
void policy_apply(struct policy *policy, const struct policy_opts *o);

bool policy_is_default(const struct policy *policy);
/* Where a band of `priority las` ends, in bytes; 0: it has all the rest. */
uint32_t policy_band_end(const struct policy *policy, size_t band);
bool policy_equal(const struct policy *a, const struct policy *b);

/* As words that policy_parse() reads: "timeout tcp 7200 udp 30"; "" for the
 * default. Good until the next call.
 */
const char *policy_text(const struct policy *policy);

/* Keys of a service's object; the default has none. */
void policy_to_json(json_t *o, const struct policy *policy);
int policy_from_json(json_t *o, const char *object, struct policy *policy);

/* Can the module that answers do it? Says so if not. */
int policy_settle(const struct service *svc);

#endif
