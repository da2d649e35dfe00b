// SPDX-License-Identifier: GPL-2.0
/* Words, numbers and spelling. Numbers are read strictly: what strtoul()
 * accepts ("0x50", "080", " 80", "-1", "80x") is an error here, because other
 * programs read it differently.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "args.h"
#include "err.h"
#include "suggest.h"

const char *arg_peek(const struct args *a)
{
	return a->pos < a->count ? a->word[a->pos] : NULL;
}

const char *arg_next(struct args *a)
{
	return a->pos < a->count ? a->word[a->pos++] : NULL;
}

bool arg_accept(struct args *a, const char *word)
{
	const char *next = arg_peek(a);

	if (!next || strcmp(next, word))
		return false;
	a->pos++;
	return true;
}

int arg_value(struct args *a, const char *object, const char *keyword,
	      const char **out)
{
	*out = arg_next(a);
	if (*out)
		return RC_OK;
	return fail(RC_USAGE, object, "\"%s\" needs a value after it", keyword);
}

int arg_u32(struct args *a, const char *object, const char *keyword,
	    struct range range, uint32_t *out)
{
	const char *s;
	int rc = arg_value(a, object, keyword, &s);

	if (rc)
		return rc;
	if (parse_u32(s, range.min, range.max, out))
		return RC_OK;
	return fail(RC_USAGE, object,
		    "bad %s \"%s\": write a whole number from %u to %u",
		    keyword, s, range.min, range.max);
}

/* The letter for a unit of time as people write it; 0 if it is none. */
static char unit_of(const char *word)
{
	static const char *const units[] = {
		"s", "sec", "secs", "second", "seconds", "m", "min", "mins",
		"minute", "minutes", "h", "hr", "hour", "hours", "d", "day",
		"days", NULL
	};
	int i;

	for (i = 0; units[i]; i++)
		if (!strcasecmp(word, units[i]))
			return units[i][0];
	return 0;
}

/* "15min", or "15" and "min": says how to write it. */
static void duration_hint(const char *s, const char *unit)
{
	size_t digits = strspn(s, "0123456789");
	const char *rest = unit ? unit : s + digits;
	char text[16];
	uint32_t secs;

	if (!digits || digits > 9)
		return;
	snprintf(text, sizeof(text), "%.*s%c", (int)digits, s, unit_of(rest));
	if (!strcasecmp(rest, "ms"))
		hint("the kernel counts whole seconds");
	else if (unit_of(rest) && strcmp(text, s) && parse_duration(text, &secs))
		hint("did you mean: %s", text);
}

int arg_duration(struct args *a, const char *object, const char *keyword,
		 uint32_t max, uint32_t *secs)
{
	const char *s;
	int rc = arg_value(a, object, keyword, &s);

	if (rc)
		return rc;
	if (parse_duration(s, secs) && *secs <= max) {
		if (!arg_peek(a) || !unit_of(arg_peek(a)))
			return RC_OK;
		rc = fail(RC_USAGE, object,
			  "bad time \"%s %s\" for %s: write it as one word",
			  s, arg_peek(a), keyword);
		duration_hint(s, arg_peek(a));
		return rc;
	}
	rc = fail(RC_USAGE, object,
		  "bad time \"%s\" for %s: write 1 second to %u day%s, such as 90, 90s, 15m, 2h or 1d",
		  s, keyword, max / (24 * 3600),
		  max / (24 * 3600) == 1 ? "" : "s");
	duration_hint(s, NULL);
	return rc;
}

int arg_end(const struct args *a, const char *object)
{
	const char *extra = arg_peek(a);

	if (!extra)
		return RC_OK;
	return fail(RC_USAGE, object, "unexpected word \"%s\"", extra);
}

int arg_unknown(const char *object, const char *what, const char *word,
		const char *const *known)
{
	const char *close = suggest(word, known);
	char list[512] = "";
	int rc, i;

	for (i = 0; known[i]; i++) {
		size_t used = strlen(list);

		snprintf(list + used, sizeof(list) - used, "%s%s",
			 i ? " " : "", known[i]);
	}
	rc = fail(RC_USAGE, object, "unknown %s \"%s\"; known: %s", what, word,
		  list);
	if (close)
		hint("did you mean: %s", close);
	return rc;
}

bool parse_u32(const char *s, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t n = 0;
	const char *p;

	if (!*s || (s[0] == '0' && s[1]))
		return false;
	for (p = s; *p; p++) {
		if (*p < '0' || *p > '9')
			return false;
		n = n * 10 + (uint64_t)(*p - '0');
		if (n > UINT32_MAX)
			return false;
	}
	if (n < min || n > max)
		return false;
	*out = (uint32_t)n;
	return true;
}

bool parse_duration(const char *s, uint32_t *secs)
{
	size_t len = strlen(s);
	uint32_t unit = 1, n;
	char digits[16];

	if (!len || len >= sizeof(digits))
		return false;
	memcpy(digits, s, len + 1);
	switch (digits[len - 1]) {
	case 'd':
		unit = 24 * 3600;
		break;
	case 'h':
		unit = 3600;
		break;
	case 'm':
		unit = 60;
		break;
	case 's':
		break;
	default:
		len++;		/* no unit to cut off */
	}
	digits[len - 1] = '\0';
	if (!parse_u32(digits, 1, DURATION_MAX, &n))
		return false;
	if (n > DURATION_MAX / unit)
		return false;
	*secs = n * unit;
	return true;
}

bool parse_size(const char *s, uint32_t *bytes)
{
	static const char units[] = "KMG";
	size_t len = strlen(s);
	unsigned int shift = 0;
	char digits[16];
	const char *unit;
	uint32_t n;

	if (!len || len >= sizeof(digits))
		return false;
	memcpy(digits, s, len + 1);
	unit = strchr(units, digits[len - 1]);
	if (unit) {
		shift = 10 * (unsigned int)(unit - units + 1);
		digits[len - 1] = '\0';
	}
	if (!parse_u32(digits, 1, UINT32_MAX >> shift, &n))
		return false;
	*bytes = n << shift;
	return true;
}

const char *size_text(uint32_t bytes)
{
	static char text[8][16];
	static unsigned int at;
	unsigned int unit = 0;

	while (unit < 3 && bytes && !(bytes & 1023)) {
		bytes >>= 10;
		unit++;
	}
	at = (at + 1) % ARRAY_SIZE(text);
	snprintf(text[at], sizeof(text[at]), "%u%.1s", bytes, &"\0KMG"[unit]);
	return text[at];
}
