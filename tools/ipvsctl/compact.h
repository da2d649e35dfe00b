/* SPDX-License-Identifier: GPL-2.0 */
/* Services as JSON for a file that only this program reads. */
#ifndef IPVSCTL_COMPACT_H
#define IPVSCTL_COMPACT_H

#include <stdio.h>

struct service;

/* One object that config_read() understands; what is at its default is left out. */
void compact_print(FILE *f, const struct service *svc);

#endif
