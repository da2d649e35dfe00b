/* SPDX-License-Identifier: GPL-2.0 */
/* BPF programs that schedulers have, by their numbers and the paths of their pins. */
#ifndef IPVSCTL_PROGRAM_H
#define IPVSCTL_PROGRAM_H

struct service;
struct svc_option;

/* Opens the pin @o->path and sets @o->value to the program's number; returns an exit
 * code. @object: the service, for messages. The file stays open.
 */
int program_open(struct svc_option *o, const char *object);

/* Keeps the program of a service that was read from the kernel, so that it can get it back
 * when another has taken its place; returns an exit code.
 */
int program_hold(const struct service *svc);

/* Opens the programs of a service that was read from a file of this program: those with
 * their numbers, otherwise those that are pinned there now. Returns an exit code.
 */
int program_find(struct service *svc);

/* The open file of the program that @o is, if it was opened or is held; otherwise -1. */
int program_fd(const struct svc_option *o);

#endif
