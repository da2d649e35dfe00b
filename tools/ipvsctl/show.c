// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl` and `ipvsctl show`: everything there is. */
#include "cmd.h"
#include "opt.h"
#include "view.h"

static const struct verb verbs[] = {
	{ "show", view_services, "[ID|FILTER]...",
	  "services and their real servers as a tree", OPT_WATCH },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_show = {
	"show", NULL, verbs, "show every service and real server", NOUN_SINGLE
};
