// SPDX-License-Identifier: GPL-2.0
/* Most options are numbers. "order" has names for its numbers; "key" is a secret
 * of 16 bytes, which the kernel does not give back: it shows a number by which
 * the key can be recognised.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "args.h"
#include "err.h"
#include "model.h"
#include "optword.h"

enum { HEX = 2 * L4LB_KEY_LEN };

static const char *const orders[] = { "age", "address" };

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) % 16 : -1;
}

/* Exactly 32 digits? */
static bool from_hex(struct svc_option *o, const char *text)
{
	int i, high, low;

	if (strlen(text) != HEX)
		return false;
	for (i = 0; i < L4LB_KEY_LEN; i++) {
		high = digit(text[2 * i]);
		low = digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		o->key[i] = (uint8_t)(high << 4 | low);
	}
	o->has_key = true;
	o->value = 1;	/* not the default; the kernel makes the fingerprint */
	return true;
}

static int bad_file(const char *name, const char *object)
{
	int rc = fail(RC_USAGE, object,
		      "%s: a key file has 32 hexadecimal digits and nothing else",
		      name);

	hint("try: od -An -N16 -tx1 /dev/urandom | tr -d ' ' > %s", name);
	return rc;
}

static int from_file(struct svc_option *o, const char *name, const char *object)
{
	char text[HEX + 8] = "";
	struct stat st = { 0 };
	bool good;
	FILE *f = fopen(name, "re");

	if (!f)
		return fail(RC_USAGE, object, "cannot read the key file %s: %s",
			    name, strerror(errno));
	good = fgets(text, sizeof(text), f) && fgetc(f) == EOF;
	if (!fstat(fileno(f), &st) && S_ISREG(st.st_mode) && st.st_mode & 077)
		note("ipvsctl: %s: others can read it; try: chmod 600 %s", name,
		     name);
	fclose(f);
	text[strcspn(text, "\r\n")] = '\0';
	good = good && from_hex(o, text);
	explicit_bzero(text, sizeof(text));
	return good ? RC_OK : bad_file(name, object);
}

static int parse_key(struct svc_option *o, const char *word, const char *object)
{
	int rc;

	if (strchr(word, '/'))
		return from_file(o, word, object);
	if (!strcmp(word, "none") || from_hex(o, word) ||
	    parse_u32(word, 0, UINT32_MAX, &o->value))
		return RC_OK;
	/* The word may be a secret with a mistake: it is not shown. */
	rc = fail(RC_USAGE, object,
		  "bad key: write 32 hexadecimal digits, or the path of a file that has them");
	hint("try: option key ./FILE, or none to remove it");
	return rc;
}

int option_word_parse(struct svc_option *o, const char *word, const char *object)
{
	uint32_t i;

	o->value = 0;
	o->has_key = false;
	if (!strcmp(o->name, "key"))
		return parse_key(o, word, object);
	if (!strcmp(o->name, "order"))
		for (i = 0; i < ARRAY_SIZE(orders); i++)
			if (!strcmp(word, orders[i])) {
				o->value = i;
				return RC_OK;
			}
	if (parse_u32(word, 0, UINT32_MAX, &o->value))
		return RC_OK;
	if (!strcmp(o->name, "order"))
		return fail(RC_USAGE, object,
			    "bad order \"%s\": write age or address", word);
	return fail(RC_USAGE, object,
		    "bad %s \"%s\": write a whole number from 0 to 4294967295",
		    o->name, word);
}

const char *option_word(const struct svc_option *o)
{
	static char number[16];

	if (!strcmp(o->name, "order") && o->value < ARRAY_SIZE(orders))
		return orders[o->value];
	if (o->has_key)
		return "(secret)";
	snprintf(number, sizeof(number), "%u", o->value);
	return number;
}
