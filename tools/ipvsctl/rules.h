/* SPDX-License-Identifier: GPL-2.0 */
/* The two file formats that restore reads. Each reader checks everything
 * before it returns, and names file and line of what is wrong.
 */
#ifndef IPVSCTL_RULES_H
#define IPVSCTL_RULES_H

#include <stddef.h>

struct service_list;

/* Lines as `ipvsadm -Sn` writes them. */
int rules_read(const char *file, char *text, struct service_list *list);

/* The document of `ipvsctl save -F json` or `ipvsctl -j show`. */
int config_read(const char *file, const char *text, size_t len,
		struct service_list *list);

#endif
