// SPDX-License-Identifier: GPL-2.0
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "commands.h"
#include "compat.h"
#include "complete.h"
#include "err.h"
#include "ipvsadm.h"
#include "opt.h"
#include "options.h"
#include "out.h"
#include "version.h"
#include "wire.h"

static const struct noun *const nouns[] = {
	&noun_show, &noun_service, &noun_server, &noun_conn, &noun_stats,
	&noun_top, &noun_timeout, &noun_scheduler, &noun_sync, &noun_info,
	&noun_save, &noun_restore, &noun_import, &noun_check, &noun_apply,
	&noun_diff, &noun_export, &noun_rollback, &noun_confirm, &noun_compat,
	&noun_monitor, &noun_doctor, &noun_fast_path, NULL
};

static int run(struct args *words)
{
	if (opt.version) {
		puts("ipvsctl " IPVSCTL_VERSION);
		return RC_OK;
	}
	return opt.help ? commands_help(words) : commands_run(words);
}

/* Installed under the name of ipvsadm, the program takes its options. */
static bool is_ipvsadm(const char *program)
{
	const char *slash = strrchr(program, '/');

	return !strcmp(slash ? slash + 1 : program, "ipvsadm");
}

static int run_line(int argc, char **argv, struct args *words)
{
	struct args line = { .word = argv, .count = argc, .pos = 1 };
	int rc;

	if (argc && is_ipvsadm(argv[0]))
		return compat_run(&line);
	if (argc && ipvsadm_is_line(argc - 1, argv + 1)) {
		line = (struct args){ .word = argv + 1, .count = argc - 1 };
		return compat_teach(&line);
	}
	if (argc > 1 && !strcmp(argv[1], "__complete")) {
		line.pos = 2;
		return complete_run(nouns, &line);
	}
	rc = options_parse(argc, argv, words);
	return rc ? rc : run(words);
}

int main(int argc, char **argv)
{
	struct args words = { .word = calloc((size_t)argc + 1, sizeof(char *)) };
	int rc, flushed;

	setlocale(LC_CTYPE, "");	/* line drawing; numbers stay plain */
	if (!words.word)
		return RC_REFUSED;
	commands_use(nouns);
	rc = run_line(argc, argv, &words);
	flushed = out_finish();
	if (!rc)
		rc = flushed;
	err_flush();
	wire_close();
	free(words.word);
	return rc;
}
