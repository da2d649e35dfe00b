// SPDX-License-Identifier: GPL-2.0
#include <search.h>
#include <string.h>

#include "keep.h"
#include "must.h"

static int cmp(const void *x, const void *y)
{
	return strcmp(x, y);
}

const char *keep_text(const char *text)
{
	static void *texts;	/* a tree of tsearch(3) */
	void *at = tfind(text, &texts, cmp);

	if (!at)
		at = must(tsearch(must(strdup(text)), &texts, cmp));
	return *(char **)at;
}
