/* SPDX-License-Identifier: GPL-2.0 */
/* Keys that were read from files or arguments: no output shows them. */
#ifndef IPVSCTL_SECRET_H
#define IPVSCTL_SECRET_H

#include <stddef.h>

/* Remember a key, until the program ends. */
void secret_note(const void *key, size_t len);

/* Replace each key in @data by asterisks. */
void secret_hide(void *data, size_t len);

#endif
