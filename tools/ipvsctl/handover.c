// SPDX-License-Identifier: GPL-2.0
/*
 * A file keeps the connections while the module is replaced: a line that names
 * the format; then for each message of the kernel its length in two bytes and the
 * message; then two bytes 0, and the number of connections in eight bytes. Numbers
 * are big-endian. The end tells whether the file is whole.
 */
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "backend.h"
#include "err.h"
#include "handover.h"
#include "kern.h"
#include "kern_handover.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "outfile.h"
#include "refuse.h"
#include "source.h"
#include "wire.h"

#define MAGIC "l4lb connections 1\n"

enum { MAGIC_LEN = sizeof(MAGIC) - 1, END_LEN = 8, MESSAGE_MIN = 8 };
#define FILE_MAX ((size_t)4 << 30)	/* 90 million connections */

struct export {
	uint64_t records, left_out;
};

static int no_handover(const char *object)
{
	int rc = fail(RC_BACKEND, object,
		      "the module %s cannot hand its connections over",
		      backend_name());

	hint_module();
	return rc;
}

static int parse_file(struct args *a, const char *object, const char **file)
{
	if (!arg_peek(a))
		return fail(RC_USAGE, object, "name a file, or - for a pipe");
	*file = arg_next(a);
	return arg_end(a, object);
}

/* ---- export ---- */

static void write_message(const struct handover_message *m, void *arg)
{
	uint16_t len = htobe16((uint16_t)m->len);
	struct export *e = arg;

	e->records += m->records;
	e->left_out += m->left_out;
	if (!m->records)
		return;
	fwrite(&len, sizeof(len), 1, stdout);
	fwrite(m->data, m->len, 1, stdout);
}

static int write_file(void *arg)
{
	struct export *e = arg;
	uint64_t records;
	int err;

	fwrite(MAGIC, MAGIC_LEN, 1, stdout);
	err = kern_export(write_message, e);
	if (err == -EOPNOTSUPP)
		return no_handover("conn export");
	if (err)
		return refuse(err, NULL, "listing the connections");
	records = htobe64(e->records);
	fwrite("\0", 2, 1, stdout);
	fwrite(&records, sizeof(records), 1, stdout);
	return RC_OK;
}

int conn_export(struct args *a)
{
	struct export e = { 0 };
	const char *file = NULL;
	bool out;
	int rc = parse_file(a, "conn export", &file);

	if (rc)
		return rc;
	out = !strcmp(file, "-");
	if (out && isatty(STDOUT_FILENO))
		return fail(RC_USAGE, "conn export",
			    "the connections are no text for a terminal: name a file");
	rc = wire_open();
	if (!rc && !backend_is_l4lb())
		rc = no_handover("conn export");
	/* Clients' addresses are not for every user. */
	umask(077);
	if (!rc)
		rc = outfile_write(out ? NULL : file, write_file, &e);
	if (rc)
		return rc;
	note("exported %llu connections", (unsigned long long)e.records);
	if (!e.left_out)
		return RC_OK;
	return fail(RC_PARTIAL, "conn export",
		    "%llu connections are not in the file: their real server was removed or has another family than they, or they have full NAT",
		    (unsigned long long)e.left_out);
}

/* ---- import ---- */

/* Calls @fn for each message, until it returns false; @n is the number of
 * connections in the end, or untouched. False: the file is not whole.
 */
static bool each_message(const struct source *s,
			 bool (*fn)(const void *data, size_t len, void *arg),
			 void *arg, uint64_t *n)
{
	const char *at = s->text + MAGIC_LEN, *end = s->text + s->len;
	uint64_t records;
	uint16_t len;

	for (;;) {
		if (end - at < 2)
			return false;
		memcpy(&len, at, 2);
		len = be16toh(len);
		at += 2;
		if (!len)
			break;
		if (len < MESSAGE_MIN || len > L4LB_HANDOVER_LEN ||
		    end - at < len)
			return false;
		if (fn && !fn(at, len, arg))
			return true;
		at += len;
	}
	if (end - at != END_LEN)
		return false;
	memcpy(&records, at, END_LEN);
	*n = be64toh(records);
	return true;
}

static int foreign(const char *name)
{
	return fail(RC_USAGE, NULL, "%s is no file of ipvsctl conn export", name);
}

/* Looks before gigabytes of something else are read. A pipe can be read only once. */
static bool is_foreign(const char *file)
{
	char first[MAGIC_LEN];
	struct stat st;
	bool known;
	FILE *f;

	if (!strcmp(file, "-") || stat(file, &st) || S_ISFIFO(st.st_mode))
		return false;
	f = fopen(file, "re");
	if (!f)
		return false;
	known = fread(first, MAGIC_LEN, 1, f) == 1 &&
		!memcmp(first, MAGIC, MAGIC_LEN);
	fclose(f);
	return !known;
}

static int read_file(const char *file, struct source *s, uint64_t *n)
{
	int rc = is_foreign(file) ? foreign(file) :
				    source_read(file, FILE_MAX, s);

	if (rc)
		return rc;
	if (s->len < MAGIC_LEN || memcmp(s->text, MAGIC, MAGIC_LEN))
		rc = foreign(s->name);
	else if (!each_message(s, NULL, NULL, n))
		rc = fail(RC_USAGE, NULL,
			  "%s is damaged or not whole: nothing was imported",
			  s->name);
	if (rc)
		source_free(s);
	return rc;
}

struct import {
	struct handover_tally tally;
	int err, rc;		/* of the first refusal */
};

/* A refused message, for example of a later version, does not keep others from being
 * sent; a kernel that does not answer does.
 */
static bool send_message(const void *data, size_t len, void *arg)
{
	struct import *import = arg;
	int err = kern_import(data, len, &import->tally);

	if (!err)
		return true;
	if (!import->err)
		import->rc = refuse(err, NULL, "importing the connections");
	import->err = err;
	return err == -EINVAL || err == -ENOMEM;
}

static int explain(const struct handover_tally *t)
{
	int rc = fail(RC_PARTIAL, "conn import",
		      "%llu connections are missing",
		      (unsigned long long)(t->no_server + t->full +
					   t->unsupported));

	if (t->no_server)
		hint("%llu have no real server here: restore the services first, and import again",
		     (unsigned long long)t->no_server);
	if (t->full)
		hint("%llu found no room: see net.ipv4.vs.conn_max, conn_max_all, free memory",
		     (unsigned long long)t->full);
	if (t->unsupported)
		hint("%llu are of a kind that this module does not have",
		     (unsigned long long)t->unsupported);
	return rc;
}

static int report(const struct handover_tally *t)
{
	bool missing = t->no_server || t->full || t->unsupported;
	int rc = RC_OK;
	json_t *doc;

	if (opt.json) {
		doc = doc_new();
		json_object_set_new(doc, "imported",
				    json_integer((json_int_t)t->imported));
		json_object_set_new(doc, "no_server",
				    json_integer((json_int_t)t->no_server));
		json_object_set_new(doc, "full",
				    json_integer((json_int_t)t->full));
		json_object_set_new(doc, "unsupported",
				    json_integer((json_int_t)t->unsupported));
		rc = print_doc(doc);
	} else if (!opt.quiet) {
		printf("imported %llu connections\n",
		       (unsigned long long)t->imported);
	}
	return rc || !missing ? rc : explain(t);
}

static int import_file(const struct source *s)
{
	struct import import = { .err = 0 };
	uint64_t n = 0;

	each_message(s, send_message, &import, &n);
	if (!import.err)
		return report(&import.tally);
	hint("imported %llu connections; keep the file: it can be imported again",
	     (unsigned long long)import.tally.imported);
	return import.tally.imported ? fail_code(RC_PARTIAL) : import.rc;
}

int conn_import(struct args *a)
{
	const char *file = NULL;
	struct source s;
	char what[64];
	uint64_t n = 0;
	int rc = parse_file(a, "conn import", &file);

	if (!rc)
		rc = read_file(file, &s, &n);
	if (rc)
		return rc;
	rc = wire_open();
	if (!rc && !backend_is_l4lb())
		rc = no_handover("conn import");
	if (!rc && opt.dry_run) {
		snprintf(what, sizeof(what), "%llu connections",
			 (unsigned long long)n);
		kern_announce("import", what);
	} else if (!rc) {
		rc = import_file(&s);
	}
	source_free(&s);
	return rc;
}
