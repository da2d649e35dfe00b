// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl sync set`: what holds for all peers. */
#include <string.h>

#include "args.h"
#include "err.h"
#include "kern_peer.h"
#include "keyfile.h"
#include "refuse.h"
#include "sync_set.h"
#include "wire.h"

enum {
	RATE_MAX	= 1 << 20,
	VERIFY_MAX	= 24 * 3600,
};

struct change {
	unsigned int what;		/* SYNC_SET_* */
	struct sync_settings settings;
	const uint8_t *key;		/* NULL: none */
};

static const char *const known[] = {
	"rate", "multicast", "port", "verify", "key", NULL
};

static const unsigned int bits[] = {
	SYNC_SET_RATE, SYNC_SET_MULTICAST, SYNC_SET_PORT, SYNC_SET_VERIFY,
	SYNC_SET_KEY
};

static int parse_multicast(struct args *a, struct change *c)
{
	const char *word;
	int rc = arg_value(a, "sync", "multicast", &word);

	if (rc)
		return rc;
	if (strcmp(word, "on") && strcmp(word, "off"))
		return fail(RC_USAGE, "sync",
			    "bad multicast \"%s\": write on or off", word);
	c->settings.multicast = !strcmp(word, "on");
	return RC_OK;
}

/* The words of a command can be seen by others: a key comes from a file. */
static int parse_key(struct args *a, struct change *c)
{
	const char *word;
	int rc = arg_value(a, "sync", "key", &word);

	if (rc || !strcmp(word, "none"))
		return rc;
	return key_from_file(word, "sync", L4LB_SYNC_KEY_LEN, &c->key);
}

static int parse_one(struct args *a, unsigned int bit, const char *word,
		     struct change *c)
{
	switch (bit) {
	case SYNC_SET_RATE:
		return arg_u32(a, "sync", word, RANGE(0, RATE_MAX),
			       &c->settings.rate);
	case SYNC_SET_MULTICAST:
		return parse_multicast(a, c);
	case SYNC_SET_PORT:
		return arg_u32(a, "sync", word, RANGE(1, 65535),
			       &c->settings.port);
	case SYNC_SET_VERIFY:
		return arg_u32(a, "sync", word, RANGE(0, VERIFY_MAX),
			       &c->settings.verify);
	default:
		return parse_key(a, c);
	}
}

static int parse(struct args *a, struct change *c)
{
	const char *word;
	int i, rc = RC_OK;

	while (!rc && (word = arg_next(a))) {
		for (i = 0; known[i] && strcmp(word, known[i]); i++)
			;
		if (!known[i])
			return arg_unknown("sync", "setting", word, known);
		if (c->what & bits[i])
			return fail(RC_USAGE, "sync", "\"%s\" is given twice",
				    word);
		c->what |= bits[i];
		rc = parse_one(a, bits[i], word, c);
	}
	if (!rc && !c->what) {
		rc = fail(RC_USAGE, "sync", "nothing to set");
		hint("try: ipvsctl sync set rate 20000");
	}
	return rc;
}

int sync_set(struct args *a)
{
	struct change c = { 0 };
	int err = 0, rc = parse(a, &c);

	if (!rc)
		rc = wire_open();
	if (!rc)
		err = kern_sync_set(c.what, &c.settings, c.key);
	return rc ? rc : err ? refuse(err, "sync", "changing the settings") : RC_OK;
}
