/* SPDX-License-Identifier: GPL-2.0 */
/* The format of ipvsadm, as rules.h reads it. */
#ifndef IPVSCTL_RULES_PRINT_H
#define IPVSCTL_RULES_PRINT_H

struct service_list;

/* What ipvsadm -Sn writes, and what it has no words for as comments; drains are left out. */
int rules_print(const struct service_list *list);

#endif
