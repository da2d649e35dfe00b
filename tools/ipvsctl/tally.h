/* SPDX-License-Identifier: GPL-2.0 */
/* What was added, changed and removed. */
#ifndef IPVSCTL_TALLY_H
#define IPVSCTL_TALLY_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct tally {
	size_t added, changed, removed, same, extra;
};

json_t *tally_json(const struct tally *t);
/* @same: also how many are unchanged. */
void tally_print(const char *what, const struct tally *t, bool same);

#endif
