// SPDX-License-Identifier: GPL-2.0
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "args.h"
#include "cmd.h"
#include "commands.h"
#include "err.h"
#include "opt.h"
#include "options.h"
#include "out.h"
#include "version.h"
#include "wire.h"

static const struct noun *const nouns[] = {
	&noun_show, &noun_service, &noun_server, &noun_conn, &noun_stats,
	&noun_timeout, &noun_scheduler, &noun_sync, &noun_info, &noun_save,
	&noun_restore, NULL
};

static int run(struct args *words)
{
	if (opt.version) {
		puts("ipvsctl " IPVSCTL_VERSION);
		return RC_OK;
	}
	return opt.help ? commands_help(words) : commands_run(words);
}

int main(int argc, char **argv)
{
	struct args words = { .word = calloc((size_t)argc + 1, sizeof(char *)) };
	int rc, flushed;

	setlocale(LC_CTYPE, "");	/* line drawing; numbers stay plain */
	if (!words.word)
		return RC_REFUSED;
	commands_use(nouns);
	rc = options_parse(argc, argv, &words);
	if (!rc)
		rc = run(&words);
	flushed = out_finish();
	if (!rc)
		rc = flushed;
	err_flush();
	wire_close();
	free(words.word);
	return rc;
}
