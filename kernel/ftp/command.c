// SPDX-License-Identifier: GPL-2.0
/*
 * What a client and a server of FTP say about data connections:
 *
 *	PORT h1,h2,h3,h4,p1,p2		EPRT |1|h1.h2.h3.h4|port|
 *	PASV				EPSV, EPSV 1
 *	227 text (h1,h2,h3,h4,p1,p2)	229 text (|||port|)
 *
 * Anyone may send any bytes.  A line counts only as a whole, and each of its numbers
 * only within its limits: 0 to 255, and 1 to 65535 for a port.
 */
#include "ftp/command.h"

struct text {
	const u8	*at;
	const u8	*end;
};

static bool is_digit(u8 c)
{
	return c >= '0' && c <= '9';
}

static u8 upper(u8 c)
{
	return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
}

static bool skip(struct text *t, u8 c)
{
	if (t->at == t->end || *t->at != c)
		return false;
	t->at++;
	return true;
}

static void skip_blanks(struct text *t)
{
	while (skip(t, ' '))
		;
}

static bool skip_word(struct text *t, const char *word)
{
	const u8 *at = t->at;

	for (; *word; word++, at++)
		if (at == t->end || upper(*at) != (u8)*word)
			return false;
	t->at = at;
	return true;
}

/* The line is over, but for blanks. */
static bool is_over(struct text t)
{
	skip_blanks(&t);
	skip(&t, '\r');
	return t.at == t.end;
}

/* A number of at most five digits, up to @max. */
static bool number(struct text *t, unsigned int max, unsigned int *value)
{
	const u8 *from = t->at;

	for (*value = 0; t->at < t->end && is_digit(*t->at); t->at++) {
		if (t->at - from == 5)
			return false;
		*value = *value * 10 + *t->at - '0';
	}
	return t->at > from && *value <= max;
}

static bool port(struct text *t, struct l4lb_ftp_line *line)
{
	unsigned int value;

	if (!number(t, 65535, &value) || !value)
		return false;
	line->port = value;
	return true;
}

/* h1,h2,h3,h4,p1,p2 */
static bool numbers(struct text *t, struct l4lb_ftp_line *line)
{
	unsigned int i, value[6];

	for (i = 0; i < 6; i++) {
		if (i && !skip(t, ','))
			return false;
		if (!number(t, 255, &value[i]))
			return false;
	}
	for (i = 0; i < 4; i++)
		line->addr[i] = value[i];
	line->port = value[4] << 8 | value[5];
	return line->port;
}

/* The delimiter that comes next: any character but digits, blanks and control characters. */
static bool delimiter(struct text *t, u8 *c)
{
	if (t->at == t->end || *t->at <= ' ' || *t->at > '~' || is_digit(*t->at))
		return false;
	*c = *t->at++;
	return true;
}

static bool is_port(struct text t, struct l4lb_ftp_line *line)
{
	return skip_word(&t, "PORT ") && numbers(&t, line) && is_over(t);
}

/* The address is for someone else to read. */
static bool is_eprt(struct text t, const u8 *from, struct l4lb_ftp_line *line)
{
	unsigned int family;
	const u8 *addr;
	u8 c;

	if (!skip_word(&t, "EPRT ") || !delimiter(&t, &c) || !number(&t, 2, &family) ||
	    !family || !skip(&t, c))
		return false;
	addr = t.at;
	while (t.at < t.end && *t.at != c)
		t.at++;
	line->family = family;
	line->at = addr - from;
	line->len = t.at - addr;
	return skip(&t, c) && port(&t, line) && skip(&t, c) && is_over(t);
}

static bool is_pasv(struct text t)
{
	return skip_word(&t, "PASV") && is_over(t);
}

/* It may name the family, but not ALL: that asks for nothing. */
static bool is_epsv(struct text t)
{
	if (!skip_word(&t, "EPSV"))
		return false;
	if (is_over(t))
		return true;
	if (!skip(&t, ' '))
		return false;
	return (skip(&t, '1') || skip(&t, '2')) && is_over(t);
}

/* The numbers begin with the first digit, with or without a parenthesis. */
static bool is_passive(struct text t, const u8 *from, struct l4lb_ftp_line *line)
{
	if (!skip_word(&t, "227 "))
		return false;
	while (t.at < t.end && !is_digit(*t.at))
		t.at++;
	line->at = t.at - from;
	if (!numbers(&t, line))
		return false;
	line->len = t.at - from - line->at;
	return t.at == t.end || (!is_digit(*t.at) && *t.at != ',');
}

static bool is_extended(struct text t, const u8 *from, struct l4lb_ftp_line *line)
{
	u8 c;

	if (!skip_word(&t, "229 "))
		return false;
	while (t.at < t.end && *t.at != '(')
		t.at++;
	if (!skip(&t, '(') || !delimiter(&t, &c) || !skip(&t, c) || !skip(&t, c))
		return false;
	line->at = t.at - from;
	if (!port(&t, line))
		return false;
	line->len = t.at - from - line->at;
	return skip(&t, c) && skip(&t, ')');
}

/* To the LF of the first line; false: it is not whole. */
static bool cut(const u8 *text, unsigned int len, struct text *t)
{
	*t = (struct text){ text, text };
	while (t->end < text + len && *t->end != '\n')
		t->end++;
	return t->end < text + len;
}

/**
 * l4lb_ftp_command() - read a line of a client
 * @text: it begins there
 * @len: bytes that there are
 * @line: set to what it says
 *
 * Context: any.
 * Return: its length in bytes, with its LF; 0: it is not whole.
 */
unsigned int l4lb_ftp_command(const u8 *text, unsigned int len, struct l4lb_ftp_line *line)
{
	struct text t;

	if (!cut(text, len, &t))
		return 0;
	if (is_port(t, line))
		line->kind = L4LB_FTP_PORT;
	else if (is_eprt(t, text, line))
		line->kind = L4LB_FTP_EPRT;
	else if (is_pasv(t))
		line->kind = L4LB_FTP_PASV;
	else if (is_epsv(t))
		line->kind = L4LB_FTP_EPSV;
	else
		line->kind = L4LB_FTP_OTHER;
	return t.end - text + 1;
}

/**
 * l4lb_ftp_answer() - read a line of a server
 * @text: it begins there
 * @len: bytes that there are
 * @line: set to what it says
 *
 * Context: any.
 * Return: its length in bytes, with its LF; 0: it is not whole.
 */
unsigned int l4lb_ftp_answer(const u8 *text, unsigned int len, struct l4lb_ftp_line *line)
{
	struct text t;

	if (!cut(text, len, &t))
		return 0;
	if (is_passive(t, text, line))
		line->kind = L4LB_FTP_PASSIVE;
	else if (is_extended(t, text, line))
		line->kind = L4LB_FTP_EXTENDED;
	else
		line->kind = L4LB_FTP_OTHER;
	return t.end - text + 1;
}
