/* SPDX-License-Identifier: GPL-2.0 */
/* The last HISTORY_MAX applied configurations of this network namespace, as far as they
 * changed something: files in /var/lib/ipvsctl, or where systemd's $STATE_DIRECTORY
 * says. A file is written and synced before the kernel is told, under another name,
 * and gets its own name afterwards.
 */
#ifndef IPVSCTL_HISTORY_H
#define IPVSCTL_HISTORY_H

#include <stdbool.h>

struct undo;

enum { HISTORY_MAX = 16 };

/* Before the kernel is told. False, with a remark, if it cannot be kept. */
bool history_begin(const struct undo *u);
/* The kernel has done it. @u: again, if it became another; or NULL. */
void history_commit(const struct undo *u);
/* The kernel has not. */
void history_drop(void);

/* The newest; returns an exit code. */
int history_last(struct undo *u);
/* Takes the newest away. */
void history_forget(void);

#endif
