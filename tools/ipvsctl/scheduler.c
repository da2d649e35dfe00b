// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl scheduler`: the algorithms, one kernel module each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "backend.h"
#include "cmd.h"
#include "compare.h"
#include "err.h"
#include "describe.h"
#include "kern.h"
#include "kern_l4lb.h"
#include "lookup.h"
#include "model.h"
#include "options.h"
#include "out.h"
#include "refuse.h"
#include "schedopt.h"
#include "scheduler_list.h"
#include "shadow.h"
#include "svcopt.h"
#include "wire.h"

static const struct { const char *name, *idea; } ideas[] = {
	{ "rr", "round robin: each server in turn" },
	{ "wrr", "round robin by weight" },
	{ "lc", "fewest connections" },
	{ "wlc", "fewest connections for the weight" },
	{ "lblc", "locality: a destination address stays with its server" },
	{ "lblcr", "locality with a set of servers for each destination" },
	{ "dh", "hash of the destination address" },
	{ "sh", "hash of the source address" },
	{ "mh", "maglev hash of the source address" },
	{ "sed", "shortest expected delay" },
	{ "nq", "never queue: an idle server first" },
	{ "fo", "failover: the heaviest server that is up" },
	{ "ovf", "overflow: the heaviest server until it is full" },
	{ "twos", "the better of two random choices" },
	{ "ewma", "the server expected to answer first (with latency on)" },
	{ "bpf", "a BPF program chooses (option program)" },
};

/* The module's own description, for schedulers not in the table above. The name
 * comes from the kernel or depmod; it is checked all the same, because a shell
 * sees it.
 */
static bool ask_modinfo(const char *module, char *out, size_t size)
{
	char command[NAME_LEN + 128];
	bool found;
	FILE *f;

	if (strspn(module, "abcdefghijklmnopqrstuvwxyz0123456789_") !=
	    strlen(module))
		return false;
	snprintf(command, sizeof(command),
		 "PATH=$PATH:/sbin:/usr/sbin modinfo -F description %s 2>/dev/null",
		 module);
	f = popen(command, "re");
	if (!f)
		return false;
	found = !!fgets(out, (int)size, f);
	pclose(f);
	out[found ? strcspn(out, "\n") : 0] = '\0';
	return found;
}

static const char *idea_of(const char *name)
{
	static char text[128];
	char module[NAME_LEN + 8];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ideas); i++)
		if (!strcmp(ideas[i].name, name))
			return ideas[i].idea;
	snprintf(module, sizeof(module), "%s%s", scheduler_prefix(), name);
	return ask_modinfo(module, text, sizeof(text)) ? text : "";
}

static int users_of(const struct service_list *list, const char *name)
{
	int users = 0;
	size_t i;

	for (i = 0; i < list->n; i++)
		users += !strcmp(list->v[i].scheduler, name);
	return users;
}

static bool is_loaded(const char *name)
{
	char module[NAME_LEN + 8];

	snprintf(module, sizeof(module), "%s%s", scheduler_prefix(), name);
	return module_loaded(module);
}

/* "fallback,port"; "" if it has none. */
static const char *flags_of(const struct sched_info *info)
{
	struct service any = { .flags = info->flags };

	snprintf(any.scheduler, sizeof(any.scheduler), "%s", info->name);
	return describe_flags(&any);
}

/* The kernel's entry for a scheduler; NULL if that is not loaded, or is of
 * in-tree ip_vs.
 */
static const struct sched_info *info_of(const struct sched_infos *infos,
					const char *name)
{
	unsigned int i;

	for (i = 0; i < infos->n; i++)
		if (!strcmp(infos->v[i].name, name))
			return &infos->v[i];
	return NULL;
}

static json_t *option_json(const struct sched_option *o)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:s}", "name", o->name,
			 "default", (json_int_t)o->def,
			 "min", (json_int_t)o->min, "max", (json_int_t)o->max,
			 "what", o->what);
}

/* Without @info, flags and options are unknown and therefore absent. */
static json_t *sched_json(const char *name, const struct sched_info *info,
			  const struct service_list *services)
{
	json_t *o = json_pack("{s:s, s:b, s:i, s:s}", "name", name,
			      "loaded", is_loaded(name),
			      "services", users_of(services, name),
			      "description", idea_of(name));
	json_t *flags, *options;
	char text[64], *word, *save;
	unsigned int i;

	if (!info)
		return o;
	flags = json_array();
	options = json_array();
	snprintf(text, sizeof(text), "%s", flags_of(info));
	for (word = strtok_r(text, ",", &save); word;
	     word = strtok_r(NULL, ",", &save))
		json_array_append_new(flags, json_string(word));
	for (i = 0; i < info->n; i++)
		json_array_append_new(options, option_json(&info->options[i]));
	json_object_set_new(o, "flags", flags);
	json_object_set_new(o, "options", options);
	return o;
}

static int list_json(const struct sched_list *list,
		     const struct sched_infos *infos,
		     const struct service_list *services)
{
	json_t *doc = doc_new(), *all = json_array();
	int i;

	for (i = 0; i < list->n; i++) {
		const char *name = list->name[i];

		json_array_append_new(all, sched_json(name,
						      info_of(infos, name),
						      services));
	}
	json_object_set_new(doc, "schedulers", all);
	return print_doc(doc);
}

static void options_cell(struct table *t, struct row *row, size_t col,
			 const struct sched_info *info)
{
	char text[L4LB_OPTIONS_MAX * L4LB_NAME_LEN] = "";
	unsigned int i;

	for (i = 0; info && i < info->n; i++) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s%s",
			 i ? " " : "", info->options[i].name);
	}
	table_cell(t, row, col, "%s", text);
}

static int list_table(const struct sched_list *list,
		      const struct sched_infos *infos,
		      const struct service_list *services)
{
	enum { NAME, STATE, USERS, OPTIONS, IDEA, N };
	static const struct column cols[N] = {
		[NAME] = { "name", "NAME" },
		[STATE] = { "state", "MODULE" },
		[USERS] = { "services", "SERVICES", .right = true },
		[OPTIONS] = { "options", "OPTIONS" },
		[IDEA] = { "idea", "PICKS" },
	};
	struct table *t;
	int i, rc = table_new(&t, cols, N, NULL);

	for (i = 0; !rc && i < list->n; i++) {
		const char *name = list->name[i];
		struct row *row = table_row(t, NULL);

		table_cell(t, row, NAME, "%s", name);
		table_cell(t, row, STATE, "%s",
			   is_loaded(name) ? "loaded" : "on disk");
		table_cell(t, row, USERS, "%d", users_of(services, name));
		options_cell(t, row, OPTIONS, info_of(infos, name));
		table_cell(t, row, IDEA, "%s", idea_of(name));
	}
	return rc ? rc : table_print(t);
}

static int options_table(const struct sched_info *info)
{
	enum { NAME, DEFAULT, MIN, MAX, WHAT, N };
	static const struct column cols[N] = {
		[NAME] = { "option", "OPTION" },
		[DEFAULT] = { "default", "DEFAULT", .right = true },
		[MIN] = { "min", "MIN", .right = true },
		[MAX] = { "max", "MAX", .right = true },
		[WHAT] = { "what", "WHAT" },
	};
	struct table *t;
	unsigned int i;
	int rc = table_new(&t, cols, N, NULL);

	for (i = 0; !rc && i < info->n; i++) {
		const struct sched_option *o = &info->options[i];
		struct row *row = table_row(t, NULL);

		table_cell(t, row, NAME, "%s", o->name);
		if (!o->key && !o->file && !o->count) {
			table_cell(t, row, DEFAULT, "%u", o->def);
			table_cell(t, row, MIN, "%u", o->min);
			table_cell(t, row, MAX, "%u", o->max);
		}
		table_cell(t, row, WHAT, "%s", o->what);
	}
	return rc ? rc : table_print(t);
}

static int scheduler_list(struct args *a)
{
	struct service_list services = { 0 };
	struct sched_infos infos = { 0 };
	struct sched_list list;
	int err, rc;

	rc = arg_end(a, NULL);
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = kern_services(&services, false);
	if (!err)
		err = kern_schedulers(&infos);
	scheduler_list_read(&list);
	if (err)
		rc = refuse(err, NULL, "reading the services");
	else
		rc = opt.json ? list_json(&list, &infos, &services)
			      : list_table(&list, &infos, &services);
	free(infos.v);
	service_list_free(&services);
	return rc;
}

static int show_one(const char *name, const struct sched_info *info,
		    const struct service_list *services)
{
	json_t *doc;

	if (opt.json) {
		doc = doc_new();
		json_object_set_new(doc, "scheduler",
				    sched_json(name, info, services));
		return print_doc(doc);
	}
	printf("%s: %s\n", name, idea_of(name));
	if (info && info->flags)
		printf("flags: %s\n", flags_of(info));
	return info && info->n ? options_table(info) : RC_OK;
}

static int scheduler_show(struct args *a)
{
	struct service_list services = { 0 };
	struct sched_info info;
	const char *name;
	int err, rc;

	if (!arg_peek(a))
		return scheduler_list(a);
	name = arg_next(a);
	rc = check_scheduler_name(name, NULL);
	if (!rc)
		rc = arg_end(a, name);
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = kern_scheduler(name, &info);
	if (err == -ENOENT || (err == -EOPNOTSUPP && !scheduler_known(name)))
		return scheduler_missing(NULL, name);
	if (err && err != -EOPNOTSUPP)
		return refuse(err, name, "reading the scheduler");
	rc = kern_services(&services, false);
	if (rc)
		rc = refuse(rc, NULL, "reading the services");
	else
		rc = show_one(name, err ? NULL : &info, &services);
	service_list_free(&services);
	return rc;
}

static int scheduler_set(struct args *a)
{
	struct svc_opts o = { .named = SVC_SCHEDULER };
	struct service svc;
	struct svc_id id;
	const char *name;
	int err, rc;

	rc = parse_svc_id(a, &id);
	if (!rc)
		rc = arg_value(a, svc_text(&id), "scheduler set", &name);
	if (!rc)
		rc = check_scheduler_name(name, svc_text(&id));
	if (!rc)
		rc = arg_end(a, svc_text(&id));
	if (!rc)
		rc = wire_open();
	if (!rc)
		rc = service_lookup(&id, &svc, false);
	if (rc)
		return rc;
	snprintf(o.scheduler, sizeof(o.scheduler), "%s", name);
	svc_opts_apply(&svc, &o);
	rc = scheduler_settle(&svc, FOREIGN_DROPPED);
	err = rc ? 0 : kern_service_set(&svc);
	if (err)
		rc = refuse_service(err, &svc);
	service_free(&svc);
	return rc;
}

static const struct verb verbs[] = {
	{ "list", scheduler_list, "", "algorithms loaded and on disk", 0 },
	{ "show", scheduler_show, "[SCHED]",
	  "describe an algorithm's flags and options; loads its module", 0 },
	{ "set", scheduler_set, "ID SCHED",
	  "give a service another scheduler; connections stay", 0 },
	{ "compare", scheduler_compare,
	  "ID [with SCHEDS] [flows N] [clients {N|live}] [hold N] [seed N] [without SRV]",
	  "what algorithms would choose, without a packet", 0 },
	{ "stats", scheduler_stats, "ID",
	  "what a service's scheduler counts, and its shadow", 0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_scheduler = {
	"scheduler", "sched", verbs, "scheduling algorithms", NOUN_VERBS
};
