// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl export`: the configuration as a file for apply. */
#include <stddef.h>

#include "cmd.h"
#include "opt.h"
#include "save.h"

static int export(struct args *a)
{
	return save_as(a, "export", "yaml");
}

static const struct verb verbs[] = {
	{ "export", export, "",
	  "print the configuration as a file that apply can read", OPT_FORMAT },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_export = {
	"export", NULL, verbs, "print the configuration for apply", 1
};
