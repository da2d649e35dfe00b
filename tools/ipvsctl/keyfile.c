// SPDX-License-Identifier: GPL-2.0
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "err.h"
#include "keyfile.h"
#include "secret.h"

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) % 16 : -1;
}

const uint8_t *key_from_hex(const char *text, size_t len)
{
	uint8_t bytes[KEY_BYTES_MAX];
	const uint8_t *key = NULL;
	int high, low;
	size_t i;

	if (strlen(text) != 2 * len)
		return NULL;
	for (i = 0; i < len; i++) {
		high = digit(text[2 * i]);
		low = digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			break;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	if (i == len)
		key = secret_keep(bytes, len);
	explicit_bzero(bytes, sizeof(bytes));
	return key;
}

static int bad_file(const char *name, const char *object, size_t len)
{
	int rc = fail(RC_USAGE, object,
		      "%s: a key file has %zu hexadecimal digits and nothing else",
		      name, 2 * len);

	hint("try: (umask 077; od -An -v -N%zu -tx1 /dev/urandom | tr -d ' \\n' >NEWFILE)",
	     len);
	return rc;
}

int key_from_file(const char *name, const char *object, size_t len,
		  const uint8_t **key)
{
	char text[2 * KEY_BYTES_MAX + 8] = "";
	struct stat st = { 0 };
	bool good;
	FILE *f = fopen(name, "re");

	/* It may be the key itself: it is not shown. */
	if (!f && strlen(name) >= 2 * len && !strchr(name, '/'))
		return fail(RC_USAGE, object,
			    "bad key: write the path of a file that has it");
	if (!f)
		return fail_unreadable(object, "the key file ", name);
	/* No copy stays in a buffer of the stream. */
	setvbuf(f, NULL, _IONBF, 0);
	good = fgets(text, sizeof(text), f) && fgetc(f) == EOF;
	if (!fstat(fileno(f), &st) && S_ISREG(st.st_mode) && st.st_mode & 077)
		note("ipvsctl: %s: others can read it; try: chmod 600 %s", name,
		     name);
	fclose(f);
	text[strcspn(text, "\r\n")] = '\0';
	*key = good ? key_from_hex(text, len) : NULL;
	explicit_bzero(text, sizeof(text));
	return *key ? RC_OK : bad_file(name, object, len);
}
