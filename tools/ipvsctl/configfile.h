/* SPDX-License-Identifier: GPL-2.0 */
/* A file of services in any form that restore takes: ipvsadm's rules, the JSON of save,
 * and the YAML of apply, of which only the services count.
 */
#ifndef IPVSCTL_CONFIGFILE_H
#define IPVSCTL_CONFIGFILE_H

struct service_list;
struct source;

enum { CONFIGFILE_BYTES = 64 << 20 };

/* The services of a file that has been read. Returns an exit code; a message about a
 * mistake names the file and the line.
 */
int configfile_parse(const struct source *s, struct service_list *list);

/* Reads @file, "-" for standard input. One without services is refused. The text stays in @s,
 * for messages; source_free() in any case.
 */
int configfile_read(const char *file, struct source *s, struct service_list *list);

#endif
