/* SPDX-License-Identifier: GPL-2.0 */
/* Keys that were read from files or arguments. This is the only place that keeps
 * them, and no output shows them.
 */
#ifndef IPVSCTL_SECRET_H
#define IPVSCTL_SECRET_H

#include <stddef.h>
#include <stdint.h>

/* Keep a key; returns the copy, which is valid until the program ends. */
const uint8_t *secret_keep(const void *key, size_t len);

/* Replace each key in @data by asterisks. */
void secret_hide(void *data, size_t len);

#endif
