/* SPDX-License-Identifier: GPL-2.0 */
/* A check of `ipvsctl doctor --probe`: does a program listen on each real server? */
#ifndef IPVSCTL_DOCTOR_LISTEN_H
#define IPVSCTL_DOCTOR_LISTEN_H

struct exam;
struct report;

void check_listen(const struct exam *e, struct report *r);

#endif
