// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl fast-path`: on which devices frames are forwarded by XDP. */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "cmd.h"
#include "err.h"
#include "kern_net.h"
#include "kern_xdp.h"
#include "opt.h"
#include "out.h"
#include "proc.h"
#include "wire.h"
#include "xdp_device.h"

/* ---- show ---- */

static void counter_json(const struct proc_counter *c, void *arg)
{
	json_t *packets = arg;

	if (proc_is_fast_path(c->name))
		json_object_set_new(packets, c->name,
				    json_integer((json_int_t)c->value));
}

static const char *program(enum xdp_state state)
{
	switch (state) {
	case XDP_STATE_OURS:
		return "l4lb";
	case XDP_STATE_OTHER:
		return "other";
	case XDP_STATE_HIDDEN:
		return "?";
	default:
		return NULL;
	}
}

static json_t *devices_json(const struct net *net,
			    const struct xdp_programs *programs)
{
	json_t *array = json_array();
	size_t i;

	for (i = 0; i < net->nlinks; i++) {
		const char *xdp;

		if (net->links[i].flags & IFF_LOOPBACK)
			continue;
		xdp = program(xdp_state_of(programs, net->links[i].index));
		json_array_append_new(array, json_pack("{s:s, s:s?}", "device",
						       net->links[i].name,
						       "xdp", xdp));
	}
	return array;
}

static int print_text(const json_t *devices, const json_t *packets)
{
	static const struct column columns[] = {
		{ "device", "DEVICE", false, false, false },
		{ "xdp", "XDP", false, false, false },
	};
	const char *name;
	struct table *table;
	json_t *item;
	size_t i;
	int rc = table_new(&table, columns, ARRAY_SIZE(columns), NULL);

	if (rc)
		return rc;
	json_array_foreach(devices, i, item) {
		struct row *row = table_row(table, NULL);
		const char *xdp = json_string_value(json_object_get(item, "xdp"));

		table_cell(table, row, 0, "%s",
			   json_string_value(json_object_get(item, "device")));
		table_cell(table, row, 1, "%s", xdp ? xdp : "-");
	}
	rc = table_print(table);
	json_object_foreach((json_t *)packets, name, item)
		if (json_integer_value(item))
			printf("%s %lld\n", name,
			       (long long)json_integer_value(item));
	return rc;
}

static int show(struct args *a)
{
	struct xdp_programs programs = { 0 };
	json_t *doc, *devices, *packets;
	struct net net;
	int rc = arg_end(a, "fast-path");

	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	if (net_read(&net) || kern_xdp_programs(&programs))
		rc = fail(RC_REFUSED, "fast-path", "the devices cannot be listed");
	packets = json_object();
	devices = devices_json(&net, &programs);
	net_free(&net);
	xdp_programs_free(&programs);
	if (!rc)
		rc = proc_counters(counter_json, packets);
	if (!rc && opt.json) {
		doc = doc_new();
		json_object_set_new(doc, "fast_path",
				    json_pack("{s:O, s:O}", "devices", devices,
					      "packets", packets));
		rc = print_doc(doc);
	} else if (!rc) {
		rc = print_text(devices, packets);
	}
	json_decref(devices);
	json_decref(packets);
	return rc;
}

/* ---- change ---- */

static int detach_all(void)
{
	struct xdp_programs programs;
	char name[IF_NAMESIZE];
	size_t i;
	int rc = RC_OK;

	if (kern_xdp_programs(&programs))
		rc = fail(RC_REFUSED, "fast-path", "the devices cannot be listed");
	for (i = 0; !rc && i < programs.n; i++)
		if (programs.v[i].state != XDP_STATE_OTHER &&
		    if_indextoname((unsigned int)programs.v[i].ifindex, name))
			rc = xdp_detach(name);
	xdp_programs_free(&programs);
	return rc;
}

/* "dev NAME" */
static int parse_device(struct args *a, const char *or, const char **name)
{
	int rc = RC_OK;

	if (!arg_accept(a, "dev"))
		rc = fail(RC_USAGE, "fast-path", "which device? write: dev NAME%s", or);
	if (!rc)
		rc = arg_value(a, "fast-path", "dev", name);
	return rc ? rc : arg_end(a, "fast-path");
}

static int xdp(struct args *a)
{
	const char *name;
	int rc = parse_device(a, "", &name);

	if (!rc)
		rc = wire_open();
	if (!rc)
		rc = xdp_possible();
	return rc ? rc : xdp_attach(name);
}

static int no_xdp(struct args *a)
{
	const char *name;
	int rc;

	if (arg_accept(a, "all")) {
		rc = arg_end(a, "fast-path");
		return rc ? rc : detach_all();
	}
	rc = parse_device(a, ", or all", &name);
	return rc ? rc : xdp_detach(name);
}

static const struct verb verbs[] = {
	{ "show", show, "", "devices with XDP, and what became of packets", 0 },
	{ "xdp", xdp, "dev IF", "forward frames of a device by XDP", 0 },
	{ "no-xdp", no_xdp, "{dev IF|all}", "leave them to the stack again", 0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_fast_path = {
	"fast-path", NULL, verbs, "forwarding by XDP, by device", NOUN_VERBS
};
