// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl fast-path`: on which devices frames are forwarded by XDP. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "backend.h"
#include "cmd.h"
#include "err.h"
#include "kern_ethtool.h"
#include "kern_net.h"
#include "kern_xdp.h"
#include "opt.h"
#include "out.h"
#include "proc.h"
#include "wire.h"

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

static int no_device(const char *name)
{
	int rc = fail(RC_MISSING, name, "there is no such device");

	hint("try: ip link show");
	return rc;
}

static int no_types(void)
{
	int rc = fail(RC_BACKEND, "fast-path",
		      "module l4lb has no type information (BTF) for this kernel");

	hint("try: install pahole (package dwarves), and build the module again");
	return rc;
}

static int no_jit(void)
{
	int rc = fail(RC_BACKEND, "fast-path", "this kernel does not compile BPF programs");

	hint("try: sysctl -w net.core.bpf_jit_enable=1");
	return rc;
}

static int taken(const char *name)
{
	int rc = fail(RC_EXISTS, name, "another XDP program is attached to it");

	hint("ip link show %s has its number", name);
	return rc;
}

/* @what the kernel has refused, with errno and perhaps its reason. */
static int refusal(const char *name, const char *what, const char *why)
{
	int err = errno, rc;

	fail_errno(err);
	if (err != EPERM && err != EACCES)
		return fail(RC_REFUSED, name, "the kernel refused to %s XDP: %s",
			    what, why ? why : strerror(err));
	rc = fail(RC_PERM, name, "XDP programs are not permitted");
	hint("they need CAP_SYS_ADMIN and CAP_NET_ADMIN");
	return rc;
}

static int explain(enum xdp_error error, const char *name, const char *why)
{
	switch (error) {
	case XDP_NO_KERNEL_TYPES:
		return fail(RC_BACKEND, "fast-path",
			    "this kernel has no type information (CONFIG_DEBUG_INFO_BTF)");
	case XDP_NO_MODULE_TYPES:
		return no_types();
	case XDP_NO_JIT:
		return no_jit();
	case XDP_TAKEN:
		return taken(name);
	case XDP_NO_DRIVER:
		return fail(RC_REFUSED, name, "%s",
			    why ? why : "its driver cannot run XDP programs");
	case XDP_BAD_DEVICE:
		return fail(RC_REFUSED, name, "its driver refuses: %s",
			    why ? why : "see its MTU and queues");
	default:
		return refusal(name, "attach", why);
	}
}

/* What makes the program leave all frames to the stack. */
static void remark(const char *name)
{
	uint32_t flags;

	if (ethtool_is(name, "veth"))
		note("%s: frames need tx and VLAN offloads off at its other end: see doc/xdp.md",
		     name);
	else if (ethtool_is(name, "tun"))
		note("%s: frames stay with the stack: tun and tap devices hide checksums",
		     name);
	else if (ethtool_is(name, "bonding"))
		note("%s: its devices must not take VLAN tags off: ethtool -K DEV rxvlan off",
		     name);
	else if (ethtool_flags(name, &flags) && flags & ETH_FLAG_RXVLAN)
		note("%s: frames stay with the stack until: ethtool -K %s rxvlan off",
		     name, name);
}

static int attach(const char *name)
{
	int ifindex = (int)if_nametoindex(name);
	struct xdp_programs programs;
	enum xdp_error error;
	enum xdp_state state;
	const char *why;

	if (!ifindex)
		return no_device(name);
	kern_xdp_programs(&programs);
	state = xdp_state_of(&programs, ifindex);
	xdp_programs_free(&programs);
	if (state == XDP_STATE_HIDDEN)
		return refusal(name, "show", NULL);
	if (state == XDP_STATE_OURS)
		return RC_OK;
	if (opt.dry_run) {
		plan_step("xdp", name);
		return RC_OK;
	}
	error = kern_xdp_attach(ifindex, &why);
	if (error)
		return explain(error, name, why);
	remark(name);
	return RC_OK;
}

static int detach(const char *name, int ifindex)
{
	int err;

	if (opt.dry_run) {
		plan_step("no-xdp", name);
		return RC_OK;
	}
	err = kern_xdp_detach(ifindex);
	if (!err || err == -ENOENT)
		return RC_OK;
	errno = -err;
	return refusal(name, "detach", NULL);
}

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
			rc = detach(name, programs.v[i].ifindex);
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
	if (!rc && !backend_is_l4lb())
		rc = fail(RC_BACKEND, "fast-path", "the module %s has no XDP",
			  backend_name());
	return rc ? rc : attach(name);
}

static int no_xdp(struct args *a)
{
	const char *name;
	int ifindex, rc;

	if (arg_accept(a, "all")) {
		rc = arg_end(a, "fast-path");
		return rc ? rc : detach_all();
	}
	rc = parse_device(a, ", or all", &name);
	if (rc)
		return rc;
	ifindex = (int)if_nametoindex(name);
	return ifindex ? detach(name, ifindex) : no_device(name);
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
