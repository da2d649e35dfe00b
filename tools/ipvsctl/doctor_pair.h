/* SPDX-License-Identifier: GPL-2.0 */
/* Checks of `ipvsctl doctor`: directors that share connections. */
#ifndef IPVSCTL_DOCTOR_PAIR_H
#define IPVSCTL_DOCTOR_PAIR_H

struct exam;
struct report;

void check_sync(const struct exam *e, struct report *r);
void check_peer(const struct exam *e, struct report *r);

#endif
