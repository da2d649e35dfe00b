// SPDX-License-Identifier: GPL-2.0
/* The kernel takes an open file: a path means the same for the user and for the kernel
 * only where it is opened.
 */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "err.h"
#include "model.h"
#include "must.h"
#include "program.h"

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

int program_fd(uint32_t number)
{
	const struct program wanted = { .number = number };
	void *at = tfind(&wanted, &programs, cmp_number);

	return at ? (*(struct program **)at)->fd : -1;
}

/* Takes over @fd. */
static void keep(uint32_t number, int fd)
{
	struct program *p;

	if (program_fd(number) >= 0) {
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

int program_open(struct svc_option *o, const char *object)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int fd = bpf_obj_get(o->path);

	if (fd < 0)
		return no_program(o->path, object);
	/* A map has another structure, and its first field is no type of programs. */
	if (bpf_obj_get_info_by_fd(fd, &info, &len) ||
	    info.type != BPF_PROG_TYPE_SOCKET_FILTER) {
		close(fd);
		errno = EINVAL;
		return no_program(o->path, object);
	}
	o->value = info.id;
	keep(info.id, fd);
	return RC_OK;
}

void program_hold(const struct service *svc)
{
	size_t i;
	int fd;

	for (i = 0; i < svc->noptions; i++) {
		const struct svc_option *o = &svc->options[i];

		if (!o->path || program_fd(o->value) >= 0)
			continue;
		fd = bpf_prog_get_fd_by_id(o->value);
		if (fd >= 0)
			keep(o->value, fd);
	}
}
