/* SPDX-License-Identifier: GPL-2.0 */
/* Secrets, written as hexadecimal digits. */
#ifndef IPVSCTL_KEYFILE_H
#define IPVSCTL_KEYFILE_H

#include <stddef.h>
#include <stdint.h>

enum { KEY_BYTES_MAX = 32 };

/* The key, kept by secret.h; NULL unless @text is exactly the digits of @len bytes,
 * at most KEY_BYTES_MAX.
 */
const uint8_t *key_from_hex(const char *text, size_t len);

/* Reads a file that has the digits of @len bytes, at most KEY_BYTES_MAX; returns an
 * exit code. Notes it if others can read the file.
 */
int key_from_file(const char *name, const char *object, size_t len,
		  const uint8_t **key);

#endif
