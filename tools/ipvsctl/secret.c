// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <err.h>
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

static const uint8_t *find(const void *key, size_t len)
{
	const struct secret *s;

	for (s = secrets; s; s = s->next)
		if (s->len == len && !memcmp(s->key, key, len))
			return s->key;
	return NULL;
}

/* A configuration of many services has few keys. */
const uint8_t *secret_keep(const void *key, size_t len)
{
	const uint8_t *kept = find(key, len);
	struct secret *s;

	if (kept)
		return kept;
	s = malloc(sizeof(*s) + len);
	if (!s)
		err(3, "out of memory");
	s->len = len;
	memcpy(s->key, key, len);
	s->next = secrets;
	secrets = s;
	return s->key;
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
