/* SPDX-License-Identifier: GPL-2.0 */
/* What `ipvsctl doctor` found, and how it is printed. */
#ifndef IPVSCTL_REPORT_H
#define IPVSCTL_REPORT_H

#include <stddef.h>

#include "err.h"

/* A note is no problem: the exit code does not count it. */
enum severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE };

struct finding {
	const char *check;
	enum severity severity;
	char *object;		/* NULL: the machine */
	char *text;
	char *cure;
};

struct unknown {
	const char *check;
	char *why;
};

struct report {
	const char *check;	/* the one that runs */
	size_t alike;		/* findings it has made so far */
	size_t checks;
	struct finding *v;
	size_t n;
	struct unknown *unknown;
	size_t nunknown;
};

/* Findings until the next call are of the check @name. */
void report_begin(struct report *r, const char *name);

/* Adds a finding. Of one check, only the first few are kept; the rest is counted. */
void report_add(struct report *r, enum severity how, const char *object,
		const char *fmt, ...) PRINTF_LIKE(4, 5);

/* What to do about the last finding, as words after "try: ". */
void report_cure(struct report *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The check cannot be made. */
void report_unknown(struct report *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Prints all, as text or JSON, and frees it. Returns RC_DIFF if there are errors
 * or warnings.
 */
int report_print(struct report *r);

#endif
