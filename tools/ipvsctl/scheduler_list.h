/* SPDX-License-Identifier: GPL-2.0 */
/* The scheduling algorithms that can be used. */
#ifndef IPVSCTL_SCHEDULER_LIST_H
#define IPVSCTL_SCHEDULER_LIST_H

#include <stdbool.h>

enum { SCHED_MAX = 64, NAME_LEN = 56 };

struct sched_list {
	char name[SCHED_MAX][NAME_LEN];
	int n;
};

/* All schedulers of the backend, loaded or on disk, sorted by name. */
void scheduler_list_read(struct sched_list *list);
/* The prefix of their modules' names. */
const char *scheduler_prefix(void);

/* True if the backend has it, loaded or on disk. */
bool scheduler_known(const char *name);

/* Fails: not found. Lists all schedulers and hints at the closest. */
int scheduler_missing(const char *object, const char *name);

#endif
