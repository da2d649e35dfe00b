// SPDX-License-Identifier: GPL-2.0
/* The scheduling algorithms that can be used. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "backend.h"
#include "err.h"
#include "kern_l4lb.h"
#include "scheduler_list.h"
#include "suggest.h"

const char *scheduler_prefix(void)
{
	return backend_is_l4lb() ? "l4lb_" : "ip_vs_";
}

/* Modules with the same prefix that are not schedulers. */
static bool is_helper(const char *name)
{
	return !strcmp(name, "ftp") || !strncmp(name, "pe_", 3) ||
	       !strcmp(name, "test");
}

static void add_module(const char *module, void *arg)
{
	struct sched_list *list = arg;
	const char *name = module + strlen(scheduler_prefix());
	int i;

	if (is_helper(name) || strlen(name) >= NAME_LEN)
		return;
	for (i = 0; i < list->n; i++)
		if (!strcmp(list->name[i], name))
			return;
	if (list->n < SCHED_MAX)
		strcpy(list->name[list->n++], name);
}

static int cmp_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

void scheduler_list_read(struct sched_list *list)
{
	DIR *dir = opendir("/sys/module");
	struct dirent *d;

	list->n = 0;
	while (dir && (d = readdir(dir)))
		if (!strncmp(d->d_name, scheduler_prefix(), strlen(scheduler_prefix())))
			add_module(d->d_name, list);
	if (dir)
		closedir(dir);
	module_each(scheduler_prefix(), add_module, list);
	qsort(list->name, (size_t)list->n, NAME_LEN, cmp_name);
}

bool scheduler_known(const char *name)
{
	struct sched_list list;
	struct sched_info info;
	int i, err;

	scheduler_list_read(&list);
	for (i = 0; i < list.n; i++)
		if (!strcmp(list.name[i], name))
			return true;
	/* The kernel may know one that sysfs and depmod do not list. If it is too busy to
	 * answer, or l4lb is older than the question, the next request says so. ip_vs
	 * cannot be asked.
	 */
	err = kern_scheduler(name, &info);
	return !err || err == -ETIMEDOUT || (err == -EOPNOTSUPP && backend_is_l4lb());
}

int scheduler_missing(const char *object, const char *name)
{
	const char *known[SCHED_MAX + 1] = { NULL }, *close;
	struct sched_list list;
	char text[512] = "";
	int i, rc;

	scheduler_list_read(&list);
	for (i = 0; i < list.n; i++) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, " %s",
			 list.name[i]);
		known[i] = list.name[i];
	}
	rc = fail(RC_MISSING, object, "scheduler \"%s\" not found; available:%s",
		  name, list.n ? text : " none");
	close = suggest(name, known);
	if (close && strcmp(close, name))
		hint("did you mean: %s", close);
	return rc;
}
