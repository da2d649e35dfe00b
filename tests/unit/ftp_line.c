// SPDX-License-Identifier: GPL-2.0
/*
 * kernel/ftp/command.c as a user-space program: each line of input is "c" or "a" (of a client
 * or a server) and a text in hexadecimal.  It prints the length of the text's first line, what
 * that says, family, address, port, and the part that NAT may change.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ftp/command.h"

static u8 digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void show(const u8 *data, unsigned int len, const struct l4lb_ftp_line *line)
{
	unsigned int i;

	printf("%u %d", len, len ? (int)line->kind : 0);
	if (!len || line->kind == L4LB_FTP_OTHER || line->kind == L4LB_FTP_PASV ||
	    line->kind == L4LB_FTP_EPSV) {
		putchar('\n');
		return;
	}
	assert(line->port);
	printf(" %u", line->port);
	if (line->kind == L4LB_FTP_PORT || line->kind == L4LB_FTP_PASSIVE)
		printf(" %u.%u.%u.%u", line->addr[0], line->addr[1], line->addr[2], line->addr[3]);
	if (line->kind == L4LB_FTP_EPRT)
		printf(" %u", line->family);
	if (line->kind != L4LB_FTP_PORT) {
		assert(line->at <= len && line->len <= len - line->at);
		printf(" %u ", line->at);
		for (i = 0; i < line->len; i++)
			printf("%02x", data[line->at + i]);
	}
	putchar('\n');
}

int main(void)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t got;

	while ((got = getline(&text, &room, stdin)) > 1) {
		unsigned int n = (got - 2) / 2, i, len;
		struct l4lb_ftp_line line;
		u8 *data = malloc(n);	/* no byte more, for the sanitizer */

		memset(&line, 0xa5, sizeof(line));
		for (i = 0; i < n; i++)
			data[i] = digit(text[1 + 2 * i]) << 4 | digit(text[2 + 2 * i]);
		len = text[0] == 'c' ? l4lb_ftp_command(data, n, &line) :
				       l4lb_ftp_answer(data, n, &line);
		assert(len <= n);
		show(data, len, &line);
		free(data);
	}
	free(text);
	return 0;
}
