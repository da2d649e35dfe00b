/* SPDX-License-Identifier: GPL-2.0 */
/* The rules of nftables in this namespace, and what they do to a packet. */
#ifndef IPVSCTL_RULESET_H
#define IPVSCTL_RULESET_H

#include <stdbool.h>

#include <jansson.h>

struct rule_packet;

/* Runs nft. Returns the list of its objects, for json_decref(), or NULL and *why. */
json_t *ruleset_read(const char **why);

enum fate { FATE_CONTINUE, FATE_ACCEPT, FATE_DROP, FATE_REWRITE, FATE_MAYBE };

/* What chains of @type (filter, nat) at @hook surely do to the packet: FATE_DROP or
 * FATE_REWRITE, with the chain's name in *chain; otherwise FATE_MAYBE.
 */
enum fate ruleset_fate(const json_t *rules, const char *type, const char *hook,
		       const struct rule_packet *p, const char **chain);

#endif
