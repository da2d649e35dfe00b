/* SPDX-License-Identifier: GPL-2.0 */
/* `ipvsctl scheduler stats`. */
#ifndef IPVSCTL_SHADOW_H
#define IPVSCTL_SHADOW_H

struct args;

int scheduler_stats(struct args *a);

#endif
