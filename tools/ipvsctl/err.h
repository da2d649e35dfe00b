/* SPDX-License-Identifier: GPL-2.0 */
/* How a run ends: one exit code, one message, its hints. */
#ifndef IPVSCTL_ERR_H
#define IPVSCTL_ERR_H

enum exit_code {
	RC_OK = 0,
	RC_DIFF = 1,		/* a difference or a problem was found */
	RC_USAGE = 2,		/* the words are wrong; nothing was sent */
	RC_REFUSED = 3,		/* the kernel said no */
	RC_MISSING = 4,		/* no such service, server, scheduler */
	RC_EXISTS = 5,
	RC_PERM = 6,
	RC_BACKEND = 7,		/* no module answers, or it lacks the feature */
	RC_PARTIAL = 8,
	RC_TIMEOUT = 9,
};

#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* Records the message (the first one wins) and returns @code. @object is the
 * thing it is about, or NULL.
 */
int fail(enum exit_code code, const char *object, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/* Adds a line of advice to the recorded message. */
void hint(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Remembers which errno the kernel gave; JSON readers see its name. */
void fail_errno(int err);

/* Puts "file:line: " (line 0: "file: ") before what the recorded failure is
 * about.
 */
void fail_where(const char *file, unsigned int line);

/* Changes the recorded exit code, when a later step makes matters worse. */
int fail_code(enum exit_code code);

/* Says something on stderr that is not an error; silent with -q. */
void note(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Prints what was recorded: text, or a JSON object with -j. */
void err_flush(void);

#endif
