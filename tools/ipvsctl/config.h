/* SPDX-License-Identifier: GPL-2.0 */
/* The JSON format, which restore reads. The reader checks everything before it
 * returns; a message about a mistake names the file and the place in it.
 */
#ifndef IPVSCTL_CONFIG_H
#define IPVSCTL_CONFIG_H

#include <stddef.h>

struct service_list;

/* The document of `ipvsctl save -F json` or `ipvsctl -j show`. */
int config_read(const char *file, const char *text, size_t len,
		struct service_list *list);

#endif
