/* SPDX-License-Identifier: GPL-2.0 */
/* A check of `ipvsctl doctor`: do replies come to the addresses of `snat`, and for it alone? */
#ifndef IPVSCTL_DOCTOR_SNAT_H
#define IPVSCTL_DOCTOR_SNAT_H

struct exam;
struct report;

void check_snat(const struct exam *e, struct report *r);

#endif
