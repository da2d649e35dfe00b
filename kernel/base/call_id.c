// SPDX-License-Identifier: GPL-2.0
/*
 * Finding the Call-ID of a SIP message.  Anyone may send one: each byte is looked at
 * once, and none behind the given length.
 *
 *	INVITE sip:bob@example.com SIP/2.0	start line
 *	Via: ...				header fields, until an empty line
 *	Call-ID : 3848276298220188511@host	name, colon, value; any case
 *	i:3848276298220188511@host		the same in compact form
 *
 * A line that begins with a blank continues the field before.  This file is a
 * user-space program, too.
 */
#include "base/call_id.h"

#include <linux/string.h>

/* What is left of the message. */
struct text {
	const u8	*at, *end;
};

static bool is_blank(u8 c)
{
	return c == ' ' || c == '\t';
}

static bool is_end(u8 c)
{
	return c == '\r' || c == '\n';
}

static u8 lower(u8 c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* May it be part of a word, as RFC 3261 calls it? */
static bool is_word(u8 c)
{
	if ((lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9'))
		return true;
	return c && c < 0x80 && strchr("-.!%*_+`'~()<>:\\\"/[]?{}", c);
}

static void skip_line(struct text *t)
{
	while (t->at < t->end && !is_end(*t->at))
		t->at++;
}

/* CR LF, or one of them. */
static void skip_end(struct text *t)
{
	if (t->at < t->end && *t->at == '\r')
		t->at++;
	if (t->at < t->end && *t->at == '\n')
		t->at++;
}

static void skip_blanks(struct text *t)
{
	while (t->at < t->end && is_blank(*t->at))
		t->at++;
}

/* Also to the next line, if that continues this one. */
static void skip_white(struct text *t)
{
	struct text next;

	skip_blanks(t);
	next = *t;
	skip_end(&next);
	if (next.at != t->at && next.at < next.end && is_blank(*next.at)) {
		*t = next;
		skip_blanks(t);
	}
}

static bool skip_name(struct text *t, const char *name)
{
	const u8 *at = t->at;

	for (; *name; name++, at++)
		if (at == t->end || lower(*at) != *name)
			return false;
	t->at = at;
	return true;
}

/* To the value of a Call-ID field; false: the line is another one. */
static bool skip_field(struct text *t)
{
	struct text line = *t;

	if (!skip_name(&line, "call-id") && !skip_name(&line, "i"))
		return false;
	skip_white(&line);
	if (line.at == line.end || *line.at != ':')
		return false;
	line.at++;
	skip_white(&line);
	*t = line;
	return true;
}

static unsigned int word(struct text *t)
{
	const u8 *from = t->at;

	while (t->at < t->end && is_word(*t->at))
		t->at++;
	return t->at - from;
}

/* Past a word, and perhaps an "@" and another one, which end the line; false: there
 * is no such value.
 */
static bool skip_value(struct text *t)
{
	if (!word(t))
		return false;
	if (t->at < t->end && *t->at == '@') {
		t->at++;
		if (!word(t))
			return false;
	}
	return t->at < t->end && is_end(*t->at);
}

/**
 * l4lb_call_id_find() - find the Call-ID of a SIP message
 * @data: the message
 * @len: its length in bytes
 * @at: set to where the Call-ID begins
 *
 * Of several Call-ID fields the first counts, and only if the line ends behind it:
 * so one that is cut off is none.
 *
 * Context: any.
 * Return: its length, 1 to %L4LB_CALL_ID_MAX; 0: there is none, or a longer one.
 */
unsigned int l4lb_call_id_find(const u8 *data, unsigned int len, unsigned int *at)
{
	struct text t = { data, data + len };
	unsigned int found;

	/* Empty lines may come before a message. */
	while (t.at < t.end && is_end(*t.at))
		t.at++;
	do {
		skip_line(&t);
		skip_end(&t);
		if (t.at == t.end || is_end(*t.at))
			return 0;
	} while (!skip_field(&t));
	*at = t.at - data;
	if (!skip_value(&t))
		return 0;
	found = t.at - data - *at;
	return found <= L4LB_CALL_ID_MAX ? found : 0;
}
