/* SPDX-License-Identifier: GPL-2.0 */
/* `ipvsctl top` on a terminal. The Makefile leaves it out with WITH_TOP=0. */
#ifndef IPVSCTL_TOP_SCREEN_H
#define IPVSCTL_TOP_SCREEN_H

struct top_data;

#ifdef WITH_TOP
/* Draws until the user ends it. Returns an exit code. */
int top_screen_run(struct top_data *d);
#else
#include "err.h"

static inline int top_screen_run(struct top_data *d)
{
	(void)d;
	fail(RC_USAGE, NULL, "this ipvsctl was built without the screen of top");
	hint("try: ipvsctl top -b");
	return RC_USAGE;
}
#endif

#endif
