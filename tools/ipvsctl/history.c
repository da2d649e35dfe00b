// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "compact.h"
#include "config.h"
#include "err.h"
#include "history.h"
#include "out.h"
#include "source.h"
#include "undo.h"

#define USUAL "/var/lib/ipvsctl"

enum { PATH_LEN = 1024, FILE_MAX = 256 << 20, BUFFER = 1 << 17 };

/* ---- names ---- */

static const char *top(void)
{
	const char *dir = getenv("STATE_DIRECTORY");

	return dir && dir[0] == '/' ? dir : USUAL;
}

static bool same_inode(const char *path, const struct stat *own)
{
	struct stat st;

	return !stat(path, &st) && st.st_dev == own->st_dev &&
	       st.st_ino == own->st_ino;
}

/* Of a namespace without a name. Its inode is soon another one's; the cookie is not,
 * until the next boot.
 */
static void name_by_cookie(char *name, size_t size)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	char boot[9] = "";
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	if (f && !fgets(boot, sizeof(boot), f))
		boot[0] = '\0';
	if (f)
		fclose(f);
	if (fd >= 0) {
		getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len);
		close(fd);
	}
	snprintf(name, size, "boot-%s-%llu", boot, (unsigned long long)cookie);
}

/* A name outlives a reboot. */
static void name_namespace(char *name, size_t size)
{
	char path[sizeof("/run/netns/") + NAME_MAX];
	struct stat own = { 0 };
	struct dirent *e = NULL;
	DIR *dir;

	/* Each namespace has its own. The unit may not look at /proc/1/ns. */
	if (!stat("/proc/self/net/dev", &own) &&
	    same_inode("/proc/1/net/dev", &own)) {
		snprintf(name, size, "main");
		return;
	}
	stat("/proc/self/ns/net", &own);
	dir = opendir("/run/netns");
	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/run/netns/%s", e->d_name);
		if (e->d_name[0] != '.' && same_inode(path, &own))
			break;
	}
	if (e)
		snprintf(name, size, "netns-%s", e->d_name);
	else
		name_by_cookie(name, size);
	if (dir)
		closedir(dir);
}

/* The file @name of this namespace; "" for the directory. */
static void path_of(char *path, const char *name)
{
	char space[NAME_MAX + 16];

	name_namespace(space, sizeof(space));
	snprintf(path, PATH_LEN, "%s/%s/%s", top(), space, name);
}

static void path_of_number(char *path, unsigned int number)
{
	char name[32];

	snprintf(name, sizeof(name), "%u.json", number);
	path_of(path, name);
}

/* The highest and the lowest number; 0 if there is none. */
static void find_numbers(unsigned int *high, unsigned int *low)
{
	char path[PATH_LEN];
	struct dirent *e;
	unsigned int n;
	DIR *dir;
	int len;

	*high = 0;
	*low = 0;
	path_of(path, "");
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		len = 0;
		if (sscanf(e->d_name, "%u.json%n", &n, &len) != 1 || !len ||
		    e->d_name[len] || !n)
			continue;
		*high = n > *high ? n : *high;
		*low = !*low || n < *low ? n : *low;
	}
	if (dir)
		closedir(dir);
}

/* ---- writing ---- */

static void put_services(FILE *f, const char *name,
			 const struct service_list *list)
{
	const char *sep = "\n";
	size_t i;

	fprintf(f, ",\n\"%s\": {\"services\": [", name);
	for (i = 0; i < list->n; i++, sep = ",\n") {
		fputs(sep, f);
		compact_print(f, &list->v[i]);
	}
	fputs("]}", f);
}

static void put_timeouts(FILE *f, const char *name,
			 const struct kern_timeouts *t)
{
	fprintf(f, ",\n\"%s\": [%u, %u, %u]", name, t->tcp, t->tcp_fin, t->udp);
}

static void put_names(FILE *f, const char *name, const struct xdp_names *list)
{
	json_t *array = json_array();
	size_t i;

	for (i = 0; i < list->n; i++)
		json_array_append_new(array, json_string(list->v[i]));
	fprintf(f, ",\n\"%s\": ", name);
	json_dumpf(array, f, JSON_COMPACT);
	json_decref(array);
}

static bool write_file(const char *path, const struct undo *u)
{
	static char buffer[BUFFER];
	FILE *f;
	bool bad;

	unlink(path);
	f = fopen(path, "wxe");
	if (!f)
		return false;
	setvbuf(f, buffer, _IOFBF, sizeof(buffer));
	fprintf(f, "{\"ipvsctl\": {\"schema\": 1}, \"time\": %lld",
		(long long)time(NULL));
	put_timeouts(f, "timeouts_before", &u->had);
	put_timeouts(f, "timeouts_after", &u->set);
	put_names(f, "xdp_attached", &u->xdp.on);
	put_names(f, "xdp_detached", &u->xdp.off);
	put_services(f, "before", &u->before);
	put_services(f, "after", &u->after);
	fputs("}\n", f);
	bad = fflush(f) || ferror(f) || fsync(fileno(f));
	if (fclose(f) || bad) {
		unlink(path);
		return false;
	}
	return true;
}

static void sync_directory(void)
{
	char path[PATH_LEN];
	DIR *dir;

	path_of(path, "");
	dir = opendir(path);
	if (!dir)
		return;
	fsync(dirfd(dir));
	closedir(dir);
}

static int load(const char *path, struct undo *u);

/* A run was killed between the kernel and the name. */
static void finish_interrupted(void)
{
	char path[PATH_LEN];
	struct undo u;
	bool same = false;

	path_of(path, "new");
	if (access(path, F_OK))
		return;
	if (!load(path, &u) && !undo_matches(&u, &same) && same)
		history_commit(NULL);
	else
		unlink(path);
	err_forget();	/* half a file does not count */
	undo_free(&u);
}

bool history_begin(const struct undo *u)
{
	mode_t old = umask(077);
	char path[PATH_LEN];
	bool kept;

	finish_interrupted();
	mkdir(top(), 0700);
	path_of(path, "");
	mkdir(path, 0700);
	path_of(path, "new");
	kept = write_file(path, u);
	if (!kept)
		note("ipvsctl: cannot write %s: %s; rollback will not know what was before",
		     path, strerror(errno));
	umask(old);
	return kept;
}

void history_commit(const struct undo *u)
{
	char path[PATH_LEN], named[PATH_LEN];
	unsigned int high, low;
	mode_t old = umask(077);

	path_of(path, "new");
	if (u)
		write_file(path, u);
	umask(old);
	find_numbers(&high, &low);
	path_of_number(named, high + 1);
	if (rename(path, named))
		return;
	for (; low && low + HISTORY_MAX <= high + 1; low++) {
		path_of_number(path, low);
		unlink(path);
	}
	sync_directory();
}

void history_drop(void)
{
	char path[PATH_LEN];

	path_of(path, "new");
	unlink(path);
}

/* ---- reading ---- */

static int get_services(json_t *doc, const char *name, const char *path,
			struct service_list *list)
{
	char *text = json_dumps(json_object_get(doc, name), JSON_COMPACT);
	int rc;

	rc = text ? config_read(path, text, strlen(text), list)
		  : fail(RC_USAGE, NULL, "%s: \"%s\" is missing", path, name);
	free(text);
	service_list_sort(list);
	return rc;
}

static void get_timeouts(json_t *doc, const char *name, struct kern_timeouts *t)
{
	json_t *list = json_object_get(doc, name);
	uint32_t *const slot[] = { &t->tcp, &t->tcp_fin, &t->udp };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(slot); i++)
		*slot[i] = (uint32_t)json_integer_value(json_array_get(list, i));
}

static void get_names(json_t *doc, const char *name, struct xdp_names *list)
{
	json_t *value;
	size_t i;

	json_array_foreach(json_object_get(doc, name), i, value)
		if (json_is_string(value) &&
		    json_string_length(value) < IF_NAMESIZE)
			xdp_names_add(list, json_string_value(value));
}

static int load(const char *path, struct undo *u)
{
	json_error_t bad;
	struct source s;
	json_t *doc;
	int rc;

	memset(u, 0, sizeof(*u));
	rc = source_read(path, FILE_MAX, &s);
	if (rc)
		return rc;
	doc = json_loadb(s.text, s.len, JSON_REJECT_DUPLICATES, &bad);
	source_free(&s);
	if (!doc)
		return fail(RC_USAGE, NULL, "%s is damaged: %s", path, bad.text);
	get_timeouts(doc, "timeouts_before", &u->had);
	get_timeouts(doc, "timeouts_after", &u->set);
	get_names(doc, "xdp_attached", &u->xdp.on);
	get_names(doc, "xdp_detached", &u->xdp.off);
	rc = get_services(doc, "before", path, &u->before);
	if (!rc)
		rc = get_services(doc, "after", path, &u->after);
	json_decref(doc);
	return rc;
}

int history_last(struct undo *u)
{
	char path[PATH_LEN];
	unsigned int high, low;

	memset(u, 0, sizeof(*u));
	finish_interrupted();
	find_numbers(&high, &low);
	path_of_number(path, high);
	if (high)
		return load(path, u);
	path_of(path, "");
	if (access(path, R_OK | X_OK) && errno == EACCES) {
		int rc = fail(RC_PERM, "rollback", "not permitted to read %s",
			      path);

		hint("try: sudo ipvsctl rollback");
		return rc;
	}
	return fail(RC_MISSING, "rollback", "no apply is known: nothing in %s",
		    path);
}

void history_forget(void)
{
	char path[PATH_LEN];
	unsigned int high, low;

	find_numbers(&high, &low);
	path_of_number(path, high);
	unlink(path);
	sync_directory();
}
