/* SPDX-License-Identifier: GPL-2.0 */
/* `ipvsctl scheduler compare`. */
#ifndef IPVSCTL_COMPARE_H
#define IPVSCTL_COMPARE_H

struct args;

int scheduler_compare(struct args *a);

#endif
