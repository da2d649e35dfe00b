// SPDX-License-Identifier: GPL-2.0
/* A drained server has weight 0, and the kernel's interface has no place for
 * the weight it had. A file in /run/ipvsctl remembers it: one file a server,
 * so that two runs cannot tear each other's notes, and gone after a reboot
 * like the configuration itself.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "backend.h"
#include "drain.h"
#include "err.h"
#include "kern.h"
#include "model.h"
#include "options.h"
#include "out.h"
#include "refuse.h"
#include "server.h"
#include "svcopt.h"
#include "wire.h"

#define NOTES "/run/ipvsctl"

enum { POLL_MS = 500 };

/* Namespaces have the same addresses in them, so their number is in the name. */
static void note_path(char *path, size_t size, const struct svc_id *id,
		      const struct server *srv)
{
	struct stat st = { 0 };

	stat("/proc/self/ns/net", &st);
	snprintf(path, size, NOTES "/%llu,%s,%s",
		 (unsigned long long)st.st_ino, svc_word(id),
		 ip_port_text(srv->af, &srv->addr, srv->port));
}

static void remember(const struct svc_id *id, const struct server *srv,
		     uint32_t weight)
{
	char path[256];
	FILE *f;

	mkdir(NOTES, 0700);
	note_path(path, sizeof(path), id, srv);
	f = fopen(path, "we");
	if (!f || fprintf(f, "%u\n", weight) < 0)
		note("ipvsctl: cannot note the weight in " NOTES ": %s; undrain with: weight %u",
		     strerror(errno), weight);
	if (f)
		fclose(f);
}

static bool recall(const struct svc_id *id, const struct server *srv,
		   uint32_t *weight)
{
	char path[256], word[16] = "";
	FILE *f;

	note_path(path, sizeof(path), id, srv);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(word, sizeof(word), f))
		word[0] = '\0';
	fclose(f);
	word[strcspn(word, "\n")] = '\0';
	return parse_u32(word, 1, INT32_MAX, weight);
}

bool drain_any(void)
{
	DIR *dir = opendir(NOTES);
	bool any = false;
	struct dirent *e;

	while (dir && !any && (e = readdir(dir)))
		any = e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return any;
}

void drain_forget(const struct svc_id *id, const struct server *srv)
{
	char path[256];

	note_path(path, sizeof(path), id, srv);
	unlink(path);
}

static uint64_t left(const struct server *srv)
{
	return (uint64_t)srv->active + srv->inactive + srv->persistent;
}

static int wait_idle(const struct svc_id *id, const struct srv_id *name,
		     struct server *srv)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
	uint64_t polls = (uint64_t)opt.wait_secs * 1000 / POLL_MS;
	int rc = RC_OK;

	while (!rc && left(srv) && polls--) {
		nanosleep(&pause, NULL);
		rc = server_lookup(id, name, srv);
	}
	if (rc || !left(srv))
		return rc;
	rc = fail(RC_TIMEOUT, svc_text(id),
		  "server %s: after %u s still %u active, %u inactive, %u persistent connections",
		  ip_port_text(srv->af, &srv->addr, srv->port), opt.wait_secs,
		  srv->active, srv->inactive, srv->persistent);
	hint("it stays drained; try: a longer --wait");
	return rc;
}

static int report(const struct svc_id *id, const struct server *srv,
		  uint32_t was)
{
	const char *name = ip_port_text(srv->af, &srv->addr, srv->port);
	json_t *doc, *drain;

	if (!opt.json) {
		if (!opt.quiet)
			printf("%s %s: weight %u -> 0; %u active, %u inactive, %u persistent\n",
			       svc_text(id), name, was, srv->active,
			       srv->inactive, srv->persistent);
		return RC_OK;
	}
	doc = doc_new();
	drain = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}",
			  "service", svc_word(id), "server", name,
			  "weight_before", (json_int_t)was,
			  "active", (json_int_t)srv->active,
			  "inactive", (json_int_t)srv->inactive,
			  "persistent", (json_int_t)srv->persistent);
	json_object_set_new(doc, "drain", drain);
	return print_doc(doc);
}

static int cannot_kill(const char *object)
{
	int rc = fail(RC_BACKEND, object,
		      "--kill: the module %s has no command that drops connections",
		      backend_name());

	hint("try: drain --wait, then server delete");
	hint("with net.ipv4.vs.expire_nodest_conn=1 deleting ends what is left");
	return rc;
}

int server_drain(struct args *a)
{
	struct srv_id name;
	struct server srv;
	struct svc_id id;
	uint32_t was;
	int err, rc;

	rc = server_words(a, &id, &name);
	if (!rc)
		rc = arg_end(a, svc_text(&id));
	if (!rc)
		rc = wire_open();
	if (!rc && opt.given & OPT_KILL)
		rc = cannot_kill(svc_text(&id));
	if (!rc)
		rc = server_lookup(&id, &name, &srv);
	if (rc)
		return rc;
	was = srv.weight;
	if (was) {
		srv.weight = 0;
		err = kern_server_set(&id, &srv);
		if (err)
			return refuse_server(err, &id, &srv);
		if (!opt.dry_run)
			remember(&id, &srv, was);
	}
	if (opt.dry_run)
		return RC_OK;
	if (opt.given & OPT_WAIT)
		rc = wait_idle(&id, &name, &srv);
	return rc ? rc : report(&id, &srv, was);
}

int server_undrain(struct args *a)
{
	uint32_t weight = 0;
	struct srv_id name;
	struct server srv;
	struct svc_id id;
	int err, rc;

	rc = server_words(a, &id, &name);
	if (!rc && arg_accept(a, "weight"))
		rc = arg_u32(a, svc_text(&id), "weight", 1, INT32_MAX, &weight);
	if (!rc)
		rc = arg_end(a, svc_text(&id));
	if (!rc)
		rc = wire_open();
	if (!rc)
		rc = server_lookup(&id, &name, &srv);
	if (rc)
		return rc;
	if (srv.weight && !weight)
		return RC_OK;	/* it is in service already */
	if (!weight && !recall(&id, &srv, &weight)) {
		rc = fail(RC_USAGE, svc_text(&id),
			  "server %s: its weight from before the drain is not known",
			  ip_port_text(srv.af, &srv.addr, srv.port));
		hint("try: add the weight, such as: weight 1");
		return rc;
	}
	srv.weight = weight;
	err = kern_server_set(&id, &srv);
	return err ? refuse_server(err, &id, &srv) : RC_OK;
}
