/* SPDX-License-Identifier: GPL-2.0 */
/* A check of `ipvsctl doctor`: rules of nftables in the way. */
#ifndef IPVSCTL_DOCTOR_RULES_H
#define IPVSCTL_DOCTOR_RULES_H

struct exam;
struct report;

void check_firewall(const struct exam *e, struct report *r);

#endif
