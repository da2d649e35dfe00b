/* SPDX-License-Identifier: GPL-2.0 */
/* `ipvsctl conn export` and `conn import`. */
#ifndef IPVSCTL_HANDOVER_H
#define IPVSCTL_HANDOVER_H

struct args;

int conn_export(struct args *a);
int conn_import(struct args *a);

#endif
