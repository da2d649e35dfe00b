// SPDX-License-Identifier: GPL-2.0
/*
 * kernel/base/call_id.c as a user-space program: each line of input is a message in
 * hexadecimal, for which it prints the Call-ID likewise, or "-".
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/call_id.h"

static u8 digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	while ((len = getline(&line, &room, stdin)) > 0) {
		unsigned int n = (len - 1) / 2, i, at = ~0U, found;
		u8 *data = malloc(n);	/* no byte more, for the sanitizer */

		for (i = 0; i < n; i++)
			data[i] = digit(line[2 * i]) << 4 | digit(line[2 * i + 1]);
		found = l4lb_call_id_find(data, n, &at);
		assert(found <= L4LB_CALL_ID_MAX);
		assert(!found || (at < n && found <= n - at));
		if (!found)
			putchar('-');
		for (i = 0; i < found; i++)
			printf("%02x", data[at + i]);
		putchar('\n');
		free(data);
	}
	free(line);
	return 0;
}
