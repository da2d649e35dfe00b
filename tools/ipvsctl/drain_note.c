// SPDX-License-Identifier: GPL-2.0
/* A drained server has weight 0, and in-tree ip_vs has no place for the weight it
 * had before. /run/ipvsctl has a file with it for each server, so that two runs
 * do not overwrite each other's notes. Like the configuration itself, the files
 * are gone after a reboot.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "drain_note.h"
#include "err.h"
#include "model.h"

#define NOTES "/run/ipvsctl"

/* Namespaces may have the same addresses, so their inode is in the name. */
static void note_path(char *path, size_t size, const struct svc_id *id,
		      const struct server *srv)
{
	struct stat st = { 0 };
	char *slash;

	stat("/proc/self/ns/net", &st);
	snprintf(path, size, NOTES "/%llu,%s,%s",
		 (unsigned long long)st.st_ino, svc_word(id),
		 ip_port_text(srv->af, &srv->addr, srv->port));
	slash = strchr(path + strlen(NOTES) + 1, '/');
	if (slash)
		*slash = '_';	/* of a prefix */
}

void drain_remember(const struct svc_id *id, const struct server *srv,
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

bool drain_recall(const struct svc_id *id, const struct server *srv,
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

void drain_forget(const struct svc_id *id, const struct server *srv)
{
	char path[256];

	note_path(path, sizeof(path), id, srv);
	unlink(path);
}
