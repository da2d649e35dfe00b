/* SPDX-License-Identifier: GPL-2.0 */
/* BPF programs that schedulers have, by their numbers and the paths of their pins. */
#ifndef IPVSCTL_PROGRAM_H
#define IPVSCTL_PROGRAM_H

#include <stdint.h>

struct service;
struct svc_option;

/* Opens the pin @o->path and sets @o->value to the program's number; returns an exit
 * code. @object: the service, for messages. The file stays open.
 */
int program_open(struct svc_option *o, const char *object);

/* Keeps the programs of a service that was read from the kernel, so that it can get them
 * back when others have taken their place.
 */
void program_hold(const struct service *svc);

/* The open file of a program that was opened or is held, otherwise -1. */
int program_fd(uint32_t number);

#endif
