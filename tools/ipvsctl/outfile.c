// SPDX-License-Identifier: GPL-2.0
/* Writes PATH.new and renames it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "out.h"
#include "outfile.h"

static int cannot_write(const char *path)
{
	return fail(RC_USAGE, NULL, "cannot write %s: %s", path,
		    strerror(errno));
}

int outfile_write(const char *path, int (*print)(void *arg), void *arg)
{
	char tmp[4096];
	struct stat st;
	int rc;

	if (!path)
		return print(arg);
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		if (!freopen(path, "w", stdout))
			return cannot_write(path);
		return print(arg);
	}
	if (snprintf(tmp, sizeof(tmp), "%s.new", path) >= (int)sizeof(tmp))
		return fail(RC_USAGE, NULL, "file name too long");
	/* What a killed run or another user has left there has its own owner and rights. */
	unlink(tmp);
	if (!freopen(tmp, "wx", stdout))
		return cannot_write(tmp);
	rc = print(arg);
	if (!rc)
		rc = out_finish();
	if (!rc && (fsync(STDOUT_FILENO) || rename(tmp, path)))
		rc = cannot_write(path);
	if (rc)
		unlink(tmp);
	return rc;
}
