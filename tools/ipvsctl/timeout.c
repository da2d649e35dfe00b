// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl timeout`: how long an idle connection is kept. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "err.h"
#include "kern.h"
#include "opt.h"
#include "out.h"
#include "refuse.h"
#include "wire.h"

static int timeout_show(struct args *a)
{
	struct kern_timeouts t;
	json_t *doc;
	int err, rc;

	rc = arg_end(a, NULL);
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = kern_timeouts(&t);
	if (err)
		return refuse(err, NULL, "reading the timeouts");
	if (!opt.json) {
		printf("tcp %u  tcp-fin %u  udp %u  (seconds)\n", t.tcp,
		       t.tcp_fin, t.udp);
		return RC_OK;
	}
	doc = doc_new();
	json_object_set_new(doc, "timeouts",
			    json_pack("{s:I, s:I, s:I}",
				      "tcp", (json_int_t)t.tcp,
				      "tcp_fin", (json_int_t)t.tcp_fin,
				      "udp", (json_int_t)t.udp));
	return print_doc(doc);
}

static int parse_set(struct args *a, struct kern_timeouts *t)
{
	static const char *const known[] = { "tcp", "tcp-fin", "udp", NULL };
	uint32_t *const slot[] = { &t->tcp, &t->tcp_fin, &t->udp };
	const char *word = arg_peek(a);
	int i, rc = RC_OK;

	memset(t, 0, sizeof(*t));
	if (!word) {
		rc = fail(RC_USAGE, "timeout", "nothing to set");
		hint("try: ipvsctl timeout set tcp 15m tcp-fin 2m udp 5m");
	}
	while (!rc && (word = arg_next(a))) {
		for (i = 0; known[i] && strcmp(word, known[i]); i++)
			;
		if (!known[i])
			rc = arg_unknown("timeout", "kind of timeout", word,
					 known);
		else if (*slot[i])
			rc = fail(RC_USAGE, "timeout", "\"%s\" is given twice",
				  word);
		else
			rc = arg_duration(a, "timeout", word, DURATION_MAX,
					  slot[i]);
	}
	return rc;
}

static int timeout_set(struct args *a)
{
	struct kern_timeouts t;
	int err, rc;

	rc = parse_set(a, &t);
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = kern_timeouts_set(&t);
	if (err == -EINVAL && !wire_extack()[0])
		return fail(RC_REFUSED, "timeout",
			    "the kernel refused: one of the times is too long for its clock");
	return err ? refuse(err, "timeout", "set") : RC_OK;
}

static const struct verb verbs[] = {
	{ "show", timeout_show, "",
	  "the times, in seconds, of services that have none of their own", 0 },
	{ "set", timeout_set, "[tcp DUR] [tcp-fin DUR] [udp DUR]",
	  "set the timeouts named, keep the others", 0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_timeout = {
	"timeout", NULL, verbs, "how long idle connections are kept, by default", NOUN_VERBS
};
