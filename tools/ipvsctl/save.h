/* SPDX-License-Identifier: GPL-2.0 */
/* Prints the configuration, or writes it to the file of -o. */
#ifndef IPVSCTL_SAVE_H
#define IPVSCTL_SAVE_H

struct args;
struct service_list;

/* @usual: the format without -F and -j; @verb is for messages. */
int save_as(struct args *a, const char *verb, const char *usual);
/* The same of services that the caller has. */
int save_list(const struct service_list *list, const char *verb,
	      const char *usual);

#endif
