/* SPDX-License-Identifier: GPL-2.0 */
/* Which kernel module serves IPVS: ours, the in-tree one, or none. */
#ifndef IPVSCTL_BACKEND_H
#define IPVSCTL_BACKEND_H

#include <stdbool.h>

/* "l4lb", "ip_vs" or "unknown" */
const char *backend_name(void);
bool backend_is_l4lb(void);

/* The module's version, or NULL if it does not say. */
const char *backend_version(void);

/* True if a module of that name is loaded or built in. */
bool module_loaded(const char *name);

/* True if a module of that name is installed for this kernel, or built in. */
bool module_on_disk(const char *name);

/* Calls @fn for every module on disk whose name begins with @prefix. */
void module_each(const char *prefix, void (*fn)(const char *name, void *arg),
		 void *arg);

/* Fails: says which module is missing, and how to load or build it. */
int backend_missing(void);

/* Adds to the recorded failure what to do about a module that lacks something: an older
 * l4lb, or ip_vs.
 */
void hint_module(void);

#endif
