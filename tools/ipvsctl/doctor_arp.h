/* SPDX-License-Identifier: GPL-2.0 */
/* Checks of `ipvsctl doctor`: who answers on the links. */
#ifndef IPVSCTL_DOCTOR_ARP_H
#define IPVSCTL_DOCTOR_ARP_H

struct exam;
struct report;

void check_neighbour(const struct exam *e, struct report *r);
void check_vip_answer(const struct exam *e, struct report *r);

#endif
