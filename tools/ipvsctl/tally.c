// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "opt.h"
#include "tally.h"

json_t *tally_json(const struct tally *t)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}",
			 "added", (json_int_t)t->added,
			 "changed", (json_int_t)t->changed,
			 "removed", (json_int_t)t->removed,
			 "unchanged", (json_int_t)t->same,
			 "not_in_file", (json_int_t)t->extra);
}

void tally_print(const char *what, const struct tally *t, bool same)
{
	const char *would = opt.dry_run ? "would be " : "";

	printf("%s %zu %sadded, %zu %schanged, %zu %sremoved", what, t->added,
	       would, t->changed, would, t->removed, would);
	if (same)
		printf(", %zu unchanged", t->same);
	putchar('\n');
}
