/* SPDX-License-Identifier: GPL-2.0 */
/* How a run ends: one exit code, one message, its hints. */
#ifndef IPVSCTL_ERR_H
#define IPVSCTL_ERR_H

#include <stddef.h>

enum exit_code {
	RC_OK = 0,
	RC_DIFF = 1,		/* a difference or a problem was found */
	RC_USAGE = 2,		/* the words are wrong; nothing was sent */
	RC_REFUSED = 3,		/* the kernel refused */
	RC_MISSING = 4,		/* no such service, server, scheduler */
	RC_EXISTS = 5,
	RC_PERM = 6,
	RC_BACKEND = 7,		/* no module answers, or it lacks the feature */
	RC_PARTIAL = 8,
	RC_TIMEOUT = 9,
};

#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* Records a failure and returns its code; the first one recorded wins. @object
 * is what the message is about, or NULL.
 */
int fail(enum exit_code code, const char *object, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/* Adds a line of advice to the recorded message. */
void hint(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Records that the file @name cannot be read, with errno and what to do about it.
 * @what: what it is, such as "the key file ", or "".
 */
int fail_unreadable(const char *object, const char *what, const char *name);

/* Records the kernel's errno, whose name is printed with -j. */
void fail_errno(int err);

/* Puts "file:line: " (line 0: "file: ") before the object of the recorded
 * failure.
 */
void fail_where(const char *file, unsigned int line);

/* A place in a file. @text, the line there, is not NUL-terminated; NULL: it is not
 * to be shown, since it may have a secret.
 */
struct place {
	unsigned int line, column;	/* from 1; characters, not bytes */
	const char *text;
	size_t len;
};

/* Puts "file:line:column: " before the object of the recorded failure, and the
 * line with a caret below the message. Only the first place counts.
 */
void fail_place(const char *file, const struct place *p);

/* Changes the recorded exit code, when a later step makes matters worse. */
int fail_code(enum exit_code code);

/* Prints a remark on stderr, unless -q was given. */
void note(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Nothing is recorded any more. */
void err_forget(void);

/* Prints the recorded failure: text, or a JSON object with -j. */
void err_flush(void);

#endif
