/* SPDX-License-Identifier: GPL-2.0 */
/* The format of ipvsadm, which restore reads. The reader checks everything
 * before it returns; a message about a mistake names the file and the line.
 */
#ifndef IPVSCTL_RULES_H
#define IPVSCTL_RULES_H

#include <stdbool.h>

struct service_list;

/* Is the first line that is no comment one of ipvsadm's? */
bool rules_are(const char *text);

/* Lines as `ipvsadm -Sn` writes them. */
int rules_read(const char *file, char *text, struct service_list *list);

#endif
