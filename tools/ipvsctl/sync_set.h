/* SPDX-License-Identifier: GPL-2.0 */
/* `ipvsctl sync set`: what holds for all peers. */
#ifndef IPVSCTL_SYNC_SET_H
#define IPVSCTL_SYNC_SET_H

struct args;

/* A verb; returns an exit code. */
int sync_set(struct args *a);

#endif
