/* SPDX-License-Identifier: GPL-2.0 */
/* Checks of `ipvsctl doctor`: the modules and the machine. */
#ifndef IPVSCTL_DOCTOR_MACHINE_H
#define IPVSCTL_DOCTOR_MACHINE_H

struct exam;
struct report;

void check_module(const struct exam *e, struct report *r);
void check_other_module(const struct exam *e, struct report *r);
void check_version(const struct exam *e, struct report *r);
void check_scheduler(const struct exam *e, struct report *r);
void check_loopback(const struct exam *e, struct report *r);

#endif
