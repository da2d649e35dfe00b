// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "secret.h"

struct secret {
	struct secret *next;
	size_t len;
	uint8_t key[];
};

static struct secret *secrets;

static bool is_noted(const void *key, size_t len)
{
	const struct secret *s;

	for (s = secrets; s; s = s->next)
		if (s->len == len && !memcmp(s->key, key, len))
			return true;
	return false;
}

/* A configuration of many services has few keys. */
void secret_note(const void *key, size_t len)
{
	struct secret *s;

	if (!len || is_noted(key, len))
		return;
	s = malloc(sizeof(*s) + len);
	if (!s)
		err(3, "out of memory");
	s->len = len;
	memcpy(s->key, key, len);
	s->next = secrets;
	secrets = s;
}

void secret_hide(void *data, size_t len)
{
	uint8_t *end = (uint8_t *)data + len, *at;
	const struct secret *s;

	for (s = secrets; s; s = s->next)
		for (at = data; (at = memmem(at, (size_t)(end - at), s->key,
					     s->len)); at += s->len)
			memset(at, '*', s->len);
}
