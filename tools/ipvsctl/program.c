// SPDX-License-Identifier: GPL-2.0
/* The kernel takes an open file: a path means the same for the user and for the kernel
 * only where it is opened.
 */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "describe.h"
#include "err.h"
#include "model.h"
#include "must.h"
#include "optword.h"
#include "program.h"

#define NAME	"program"	/* of the option */

struct program {
	uint32_t number;
	int fd;
};

static void *programs;	/* a tree of tsearch(3) */

static int cmp_number(const void *x, const void *y)
{
	const struct program *a = x, *b = y;

	return (a->number > b->number) - (a->number < b->number);
}

static int find(uint32_t number)
{
	const struct program wanted = { .number = number };
	void *at = tfind(&wanted, &programs, cmp_number);

	return at ? (*(struct program **)at)->fd : -1;
}

int program_fd(const struct svc_option *o)
{
	return strcmp(o->name, NAME) ? -1 : find(o->value);
}

/* Takes over @fd. */
static void keep(uint32_t number, int fd)
{
	struct program *p;

	if (find(number) >= 0) {
		close(fd);
		return;
	}
	p = must(malloc(sizeof(*p)));
	*p = (struct program){ .number = number, .fd = fd };
	must(tsearch(p, &programs, cmp_number));
}

static int no_program(const char *path, const char *object)
{
	int err = errno;
	int rc = fail(err == ENOENT ? RC_MISSING : RC_REFUSED, object,
		      "option program: %s: %s", path, strerror(err));

	if (err == ENOENT)
		hint("load it first: bpftool prog load FILE.o %s type socket", path);
	else if (err == EINVAL)
		hint("it must be a pin of a BPF program, as `bpftool prog load` makes it");
	return rc;
}

/* Maps and links can be pinned, too, and have a type of the same number. */
static bool is_program(int fd, struct bpf_prog_info *info)
{
	static const char name[] = "anon_inode:bpf-prog";
	uint32_t size = sizeof(*info);
	char link[32], what[sizeof(name)];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, what, sizeof(what)) == sizeof(name) - 1 &&
	       !memcmp(what, name, sizeof(name) - 1) &&
	       !bpf_obj_get_info_by_fd(fd, info, &size) &&
	       info->type == BPF_PROG_TYPE_SOCKET_FILTER;
}

/* Each program of a large configuration takes a descriptor. */
static void more_files(void)
{
	struct rlimit limit;

	if (programs || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int program_open(struct svc_option *o, const char *object)
{
	struct bpf_prog_info info = { 0 };
	int fd;

	more_files();
	fd = bpf_obj_get(o->path);
	if (fd < 0)
		return no_program(o->path, object);
	if (!is_program(fd, &info)) {
		close(fd);
		errno = EINVAL;
		return no_program(o->path, object);
	}
	o->value = info.id;
	keep(info.id, fd);
	return RC_OK;
}

/* By its number; or by its pin, if that is of the same program. */
static bool hold(const struct svc_option *o)
{
	struct svc_option pinned = *o;
	int fd;

	if (find(o->value) >= 0)
		return true;
	more_files();
	fd = bpf_prog_get_fd_by_id(o->value);
	if (fd >= 0) {
		keep(o->value, fd);
		return true;
	}
	if (!o->path || program_open(&pinned, ""))
		return false;
	return pinned.value == o->value;
}

int program_hold(const struct service *svc)
{
	const struct svc_option *o = service_option(svc, NAME);

	int rc;

	if (!o || !o->value || hold(o))
		return RC_OK;
	err_forget();
	rc = fail(RC_REFUSED, svc_text(&svc->id),
		  "its program %s has lost its pin and could not be brought back",
		  option_exact(o));
	hint("try: as root of the host; or pin it again: bpftool prog pin id %u PATH",
	     o->value);
	return rc;
}

int program_find(struct service *svc)
{
	size_t i;

	for (i = 0; i < svc->noptions; i++) {
		struct svc_option *o = &svc->options[i];

		if (!o->path || hold(o))
			continue;
		err_forget();
		if (program_open(o, svc_text(&svc->id)))
			return RC_MISSING;
	}
	return RC_OK;
}
