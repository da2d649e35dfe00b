// SPDX-License-Identifier: GPL-2.0
/* Most options are numbers. "order" has names for its numbers; "key" is a secret
 * of 16 bytes, which the kernel does not give back: it shows a number by which
 * the key can be recognised. "program" is the path of a BPF program's pin; with # and a
 * number behind it, that program only.
 */
#include <stdio.h>
#include <string.h>

#include "../../kernel/l4lb.h"
#include "args.h"
#include "err.h"
#include "keep.h"
#include "keyfile.h"
#include "model.h"
#include "optword.h"

static const char *const orders[] = { "age", "address" };

static bool take_key(struct svc_option *o, const uint8_t *key)
{
	o->key = key;
	if (key)
		o->value = 1;	/* not the default; the kernel makes the fingerprint */
	return key;
}

static int from_file(struct svc_option *o, const char *name, const char *object)
{
	const uint8_t *key;
	int rc = key_from_file(name, object, L4LB_KEY_LEN, &key);

	if (!rc && take_key(o, key))
		o->file = keep_text(name);
	return rc;
}

static bool from_hex(struct svc_option *o, const char *text)
{
	return take_key(o, key_from_hex(text, L4LB_KEY_LEN));
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

/* The kernel refuses others: listings are split into words. */
static bool is_plain_path(const char *path)
{
	const char *p;

	for (p = path; *p; p++)
		if (*p <= ' ' || *p > '~' || strchr("#\"'\\", *p))
			return false;
	return path[0] == '/' && p - path < L4LB_PATH_LEN;
}

static int parse_program(struct svc_option *o, const char *word, const char *object)
{
	char path[L4LB_PATH_LEN + 16];
	char *number;
	int rc;

	if (!strcmp(word, "none") || parse_u32(word, 0, UINT32_MAX, &o->value))
		return RC_OK;
	snprintf(path, sizeof(path), "%s", word);
	number = strchr(path, '#');
	if (number)
		*number++ = '\0';
	if (is_plain_path(path) && strlen(word) < sizeof(path) &&
	    (!number || (parse_u32(number, 0, UINT32_MAX, &o->value) && o->value))) {
		o->path = keep_text(path);
		return RC_OK;
	}
	rc = fail(RC_USAGE, object,
		  "bad program \"%s\": write the path of its pin, at most %d characters, no blanks",
		  word, L4LB_PATH_LEN - 1);
	hint("try: option program /sys/fs/bpf/NAME, or none to remove it");
	return rc;
}

bool option_has_words(const char *name)
{
	return !strcmp(name, "key") || !strcmp(name, "order") ||
	       !strcmp(name, "program");
}

int option_word_parse(struct svc_option *o, const char *word, const char *object)
{
	uint32_t i;
	int rc;

	o->value = 0;
	o->key = NULL;
	o->path = NULL;
	o->file = NULL;
	o->given = true;
	if (!strcmp(o->name, "key"))
		return parse_key(o, word, object);
	if (!strcmp(o->name, "program"))
		return parse_program(o, word, object);
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
	rc = fail(RC_USAGE, object,
		  "bad %s \"%s\": write a whole number from 0 to 4294967295",
		  o->name, word);
	hint("options with other values are: key, order, program");
	return rc;
}

const char *option_exact(const struct svc_option *o)
{
	static char text[L4LB_PATH_LEN + 16];

	if (!o->path || !o->value)
		return option_word(o);
	snprintf(text, sizeof(text), "%s#%u", o->path, o->value);
	return text;
}

const char *option_word(const struct svc_option *o)
{
	static char number[16];

	if (!strcmp(o->name, "order") && o->value < ARRAY_SIZE(orders))
		return orders[o->value];
	if (o->key)
		return "(secret)";
	if (o->path)
		return o->path;
	snprintf(number, sizeof(number), "%u", o->value);
	return number;
}
