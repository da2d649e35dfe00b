// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "err.h"
#include "source.h"

int source_too_large(const struct source *s, size_t max)
{
	return fail(RC_USAGE, NULL, "%s is too large: more than %zu MiB",
		    s->name, max >> 20);
}

/* One byte more than @max is read, to know whether there is more. */
static int read_all(FILE *f, size_t max, struct source *s)
{
	size_t size = 0, n;
	char *more;

	do {
		size = size ? 2 * size : 1 << 16;
		if (size > max + 1)
			size = max + 1;
		more = realloc(s->text, size + 1);
		if (!more)
			return fail(RC_REFUSED, NULL, "out of memory");
		s->text = more;
		n = fread(s->text + s->len, 1, size - s->len, f);
		s->len += n;
		s->text[s->len] = '\0';
	} while (s->len == size && size <= max);
	if (ferror(f))
		return fail_unreadable(NULL, "", s->name);
	return s->len > max ? source_too_large(s, max) : RC_OK;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* An editor that writes the file anew leaves half of it for a moment. */
static int read_file(FILE *f, size_t max, struct source *s)
{
	struct stat before, after;
	int rc;

	if (fstat(fileno(f), &before))
		return fail_unreadable(NULL, "", s->name);
	if (S_ISREG(before.st_mode) && (size_t)before.st_size > max)
		return source_too_large(s, max);
	rc = read_all(f, max, s);
	if (rc || !S_ISREG(before.st_mode) || f == stdin)
		return rc;
	if (!fstat(fileno(f), &after) && same_file(&before, &after) &&
	    (size_t)after.st_size == s->len)
		return RC_OK;
	rc = fail(RC_USAGE, NULL, "%s was changed while it was read", s->name);
	hint("try: run the command again when the file is complete");
	return rc;
}

int source_read(const char *file, size_t max, struct source *s)
{
	bool in = !strcmp(file, "-");
	FILE *f = in ? stdin : fopen(file, "re");
	int rc;

	*s = (struct source){ .name = in ? "standard input" : file };
	if (!f)
		return fail_unreadable(NULL, "", file);
	rc = read_file(f, max, s);
	if (!in)
		fclose(f);
	if (rc)
		source_free(s);
	return rc;
}

/* There may be keys in it. */
void source_free(struct source *s)
{
	if (s->text)
		explicit_bzero(s->text, s->len);
	free(s->text);
	s->text = NULL;
	s->len = 0;
}
