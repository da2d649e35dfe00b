// SPDX-License-Identifier: GPL-2.0
/* Both modules serve the same netlink family, so sysfs tells which is loaded:
 * only one of them can be at a time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "backend.h"
#include "err.h"

bool module_loaded(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/%s", name);
	return !access(path, F_OK);
}

bool backend_is_l4lb(void)
{
	return module_loaded("l4lb");
}

const char *backend_name(void)
{
	if (backend_is_l4lb())
		return "l4lb";
	return module_loaded("ip_vs") ? "ip_vs" : "unknown";
}

const char *backend_version(void)
{
	static char version[64];
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/%s/version", backend_name());
	f = fopen(path, "re");
	if (!f)
		return NULL;
	if (!fgets(version, sizeof(version), f))
		version[0] = '\0';
	fclose(f);
	version[strcspn(version, "\n")] = '\0';
	return version[0] ? version : NULL;
}

/* depmod's list has one line for each module: path, colon, dependencies. The
 * list of built-in modules has only the paths.
 */
static void each_in(const char *list, const char *prefix,
		    void (*fn)(const char *name, void *arg), void *arg)
{
	struct utsname uts;
	char path[512], *line = NULL, *name, *p;
	size_t size = 0;
	FILE *f;

	uname(&uts);
	snprintf(path, sizeof(path), "/lib/modules/%s/%s", uts.release, list);
	f = fopen(path, "re");
	if (!f)
		return;
	while (getline(&line, &size, f) > 0) {
		line[strcspn(line, ":\n")] = '\0';
		name = strrchr(line, '/');
		name = name ? name + 1 : line;
		name[strcspn(name, ".")] = '\0';
		for (p = name; *p; p++)
			if (*p == '-')
				*p = '_';
		if (!strncmp(name, prefix, strlen(prefix)))
			fn(name, arg);
	}
	free(line);
	fclose(f);
}

void module_each(const char *prefix, void (*fn)(const char *name, void *arg),
		 void *arg)
{
	each_in("modules.dep", prefix, fn, arg);
	each_in("modules.builtin", prefix, fn, arg);
}

struct search {
	const char *name;
	bool found;
};

static void search_one(const char *name, void *arg)
{
	struct search *s = arg;

	s->found |= !strcmp(name, s->name);
}

bool module_on_disk(const char *name)
{
	struct search s = { .name = name };

	module_each(name, search_one, &s);
	return s.found;
}

void hint_module(void)
{
	if (backend_is_l4lb()) {
		hint("it is older than this ipvsctl: ipvsctl info shows both versions");
		hint("try: install both of one version, and load that module");
	} else {
		hint("try: load l4lb, which has it; ipvsctl info shows what else the module lacks");
	}
}

int backend_missing(void)
{
	struct utsname uts;
	int rc;

	uname(&uts);
	if (module_on_disk("l4lb")) {
		rc = fail(RC_BACKEND, NULL,
			  "no IPVS backend: module l4lb is installed but not loaded");
		hint("try: modprobe l4lb");
	} else if (module_on_disk("ip_vs")) {
		rc = fail(RC_BACKEND, NULL,
			  "no IPVS backend: module l4lb is not built for %s, and ip_vs is not loaded",
			  uts.release);
		hint("try: install l4lb for this kernel and modprobe l4lb, or modprobe ip_vs");
	} else {
		rc = fail(RC_BACKEND, NULL,
			  "no IPVS backend: neither l4lb nor ip_vs is installed for kernel %s",
			  uts.release);
		hint("try: install l4lb with this kernel's headers, then modprobe l4lb");
	}
	return rc;
}
