/* SPDX-License-Identifier: GPL-2.0 */
/* Secrets, written as hexadecimal digits. */
#ifndef IPVSCTL_KEYFILE_H
#define IPVSCTL_KEYFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEY_BYTES_MAX = 32 };

/* Exactly the digits of @len bytes? */
bool key_from_hex(const char *text, uint8_t *key, size_t len);

/* Reads a file that has the digits of @len bytes, at most KEY_BYTES_MAX; returns an
 * exit code. Notes it if others can read the file.
 */
int key_from_file(const char *name, const char *object, uint8_t *key,
		  size_t len);

#endif
