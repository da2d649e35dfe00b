/* SPDX-License-Identifier: GPL-2.0 */
/* Checks of `ipvsctl doctor`: servers that can take connections, and limits. */
#ifndef IPVSCTL_DOCTOR_LOAD_H
#define IPVSCTL_DOCTOR_LOAD_H

struct exam;
struct report;

void check_usable(const struct exam *e, struct report *r);
void check_overload(const struct exam *e, struct report *r);
void check_conn_max(const struct exam *e, struct report *r);
void check_conntrack(const struct exam *e, struct report *r);

#endif
