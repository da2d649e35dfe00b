/* SPDX-License-Identifier: GPL-2.0 */
/* Checks of `ipvsctl doctor`: replies on their way back through the director. */
#ifndef IPVSCTL_DOCTOR_REPLY_H
#define IPVSCTL_DOCTOR_REPLY_H

struct exam;
struct report;

void check_forwarding(const struct exam *e, struct report *r);
void check_replies(const struct exam *e, struct report *r);
void check_rp_filter(const struct exam *e, struct report *r);

#endif
