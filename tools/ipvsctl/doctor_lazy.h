/* SPDX-License-Identifier: GPL-2.0 */
/* A check of `ipvsctl doctor`: has `conn-state lazy` an effect? */
#ifndef IPVSCTL_DOCTOR_LAZY_H
#define IPVSCTL_DOCTOR_LAZY_H

struct exam;
struct report;

void check_lazy(const struct exam *e, struct report *r);

#endif
