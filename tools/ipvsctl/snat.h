/* SPDX-License-Identifier: GPL-2.0 */
/* The setting `snat` of a service: addresses that its real servers see as clients. */
#ifndef IPVSCTL_SNAT_H
#define IPVSCTL_SNAT_H

#include "policy.h"

struct nlattr;
struct nl_msg;
struct service;

/* "10.0.0.250-10.0.0.253", "10.0.0.250" or "off". */
int snat_parse(const char *word, const char *object, struct policy *policy);
/* The same word; NULL for off. Valid until the next call. */
const char *snat_text(const struct policy *policy);

/* Is it a range that the service can have? */
int snat_check(const struct service *svc, const char *object);

/* Is @addr, of the family of its addresses, one of them? */
bool snat_has(const struct policy *policy, const struct ip *addr);
void snat_next(uint16_t af, struct ip *addr);

/* Bytes of each of its addresses; 0: off. */
size_t snat_size(const struct policy *policy);

/* From and to the attribute L4LB_POLICY_ATTR_SNAT. */
void snat_take(struct nlattr *nest, struct policy *policy);
void snat_put(struct nl_msg *msg, const struct policy *policy);

#endif
