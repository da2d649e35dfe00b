/* SPDX-License-Identifier: GPL-2.0 */
/* Checks of `ipvsctl doctor`: what devices do to packets by themselves. */
#ifndef IPVSCTL_DOCTOR_OFFLOAD_H
#define IPVSCTL_DOCTOR_OFFLOAD_H

struct exam;
struct report;

void check_lro(const struct exam *e, struct report *r);
void check_xdp(const struct exam *e, struct report *r);

#endif
