/* SPDX-License-Identifier: GPL-2.0 */
/* Command lines of ipvsadm. */
#ifndef IPVSCTL_COMPAT_H
#define IPVSCTL_COMPAT_H

struct args;

/* Fails: the words are a line of ipvsadm. Says the line of ipvsctl for it. */
int compat_teach(struct args *words);

/* Runs a line of ipvsadm; returns ipvsadm's exit code: 0, 2 or 255. */
int compat_run(struct args *words);

#endif
