/* SPDX-License-Identifier: GPL-2.0 */
/* The format of ipvsadm, which restore reads. The reader checks everything
 * before it returns; a message about a mistake names the file and the line.
 */
#ifndef IPVSCTL_RULES_H
#define IPVSCTL_RULES_H

struct service_list;

/* Lines as `ipvsadm -Sn` writes them. */
int rules_read(const char *file, char *text, struct service_list *list);

#endif
