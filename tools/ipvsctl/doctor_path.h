/* SPDX-License-Identifier: GPL-2.0 */
/* Checks of `ipvsctl doctor`: the way of a request to the VIP and to servers. */
#ifndef IPVSCTL_DOCTOR_PATH_H
#define IPVSCTL_DOCTOR_PATH_H

struct exam;
struct report;

void check_vip(const struct exam *e, struct report *r);
void check_device(const struct exam *e, struct report *r);
void check_route(const struct exam *e, struct report *r);
void check_direct(const struct exam *e, struct report *r);
void check_local(const struct exam *e, struct report *r);
void check_mtu(const struct exam *e, struct report *r);

#endif
