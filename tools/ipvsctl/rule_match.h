/* SPDX-License-Identifier: GPL-2.0 */
/* Does a condition of an nftables rule, as JSON (libnftables-json(5)), hold? */
#ifndef IPVSCTL_RULE_MATCH_H
#define IPVSCTL_RULE_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "ident.h"

/* What is known of a packet; NULL and 0 are not known. */
struct rule_packet {
	uint16_t af, proto;
	const struct ip *saddr, *daddr;
	uint16_t sport, dport;
	bool first;		/* of its connection */
};

enum answer { ANSWER_NO, ANSWER_YES, ANSWER_MAYBE };

/* @match: the value of {"match": ...} */
enum answer rule_match(const json_t *match, const struct rule_packet *p);

#endif
