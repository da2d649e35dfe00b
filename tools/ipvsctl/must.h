/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IPVSCTL_MUST_H
#define IPVSCTL_MUST_H

#include <err.h>

/* @p, an allocation that is small or cannot be done without; NULL ends the program. */
static inline void *must(void *p)
{
	if (!p)
		err(3, "out of memory");
	return p;
}

#endif
