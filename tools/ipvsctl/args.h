/* SPDX-License-Identifier: GPL-2.0 */
/* The words of a command, read from left to right. */
#ifndef IPVSCTL_ARGS_H
#define IPVSCTL_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

struct args {
	char **word;
	int count;
	int pos;
};

/* The next word without taking it, or NULL at the end. */
const char *arg_peek(const struct args *a);
const char *arg_next(struct args *a);

/* Takes the next word if it is @word. */
bool arg_accept(struct args *a, const char *word);

/* Takes the word after @keyword, or fails. */
int arg_value(struct args *a, const char *object, const char *keyword,
	      const char **out);

struct range {
	uint32_t min;
	uint32_t max;
};

#define RANGE(from, to)	((struct range){ .min = (from), .max = (to) })

/* Takes the word after @keyword as a number in @range, or fails. */
int arg_u32(struct args *a, const char *object, const char *keyword,
	    struct range range, uint32_t *out);

/* Takes the word after @keyword as a time span, or fails; see parse_duration().
 * @max is in seconds, a whole number of days.
 */
int arg_duration(struct args *a, const char *object, const char *keyword,
		 uint32_t max, uint32_t *secs);

/* Fails if a word is left over. */
int arg_end(const struct args *a, const char *object);

/* Fails: @word is none of the NULL-terminated @known. Hints at the closest. */
int arg_unknown(const char *object, const char *what, const char *word,
		const char *const *known);

/* Plain decimal: no sign, blank, leading zero, base prefix or trailing text. */
bool parse_u32(const char *s, uint32_t min, uint32_t max, uint32_t *out);

/* N, Ns, Nm, Nh or Nd, from 1 second to 31 days. */
bool parse_duration(const char *s, uint32_t *secs);

/* N, NK, NM or NG, in units of 1024: from 1 to 2^32 - 1. */
bool parse_size(const char *s, uint32_t *bytes);
/* The reverse of parse_size(); the text is valid for the next seven calls. */
const char *size_text(uint32_t bytes);

enum { DURATION_MAX = 31 * 24 * 3600 };

#endif
