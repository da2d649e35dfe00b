/* SPDX-License-Identifier: GPL-2.0 */
/* Taking a server out of service without hurting its clients. */
#ifndef IPVSCTL_DRAIN_H
#define IPVSCTL_DRAIN_H

struct args;

int server_drain(struct args *a);
int server_undrain(struct args *a);

#endif
