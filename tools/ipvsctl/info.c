// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl info`: the module that serves IPVS, and what it cannot do. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "args.h"
#include "backend.h"
#include "cmd.h"
#include "err.h"
#include "kern.h"
#include "model.h"
#include "opt.h"
#include "out.h"
#include "refuse.h"
#include "version.h"
#include "wire.h"

struct facts {
	struct kern_info kern;
	struct utsname uts;
	size_t services, servers;
	char abi[16];
	const char *limits[8];
	int nlimits;
};

/* What ipvsctl, or the user, has to do without. */
static void find_limits(struct facts *f)
{
	const char **limit = f->limits;

	if (!backend_is_l4lb()) {
		*limit++ = "refusals carry an error number only; ipvsctl infers the reason";
		*limit++ = "counters and rates are up to 2 s old";
	}
	if (!wire_has_own()) {
		*limit++ = "schedulers have no options, and accept flags they do not know";
		*limit++ = "connections cannot be ended one by one (no conn kill)";
		*limit++ = "connection filters are applied by ipvsctl, not in the kernel";
		*limit++ = "no notification of changes (no monitor)";
	}
	f->nlimits = (int)(limit - f->limits);
}

static int gather(struct facts *f)
{
	struct service_list list = { 0 };
	size_t i;
	int err;

	memset(f, 0, sizeof(*f));
	uname(&f->uts);
	err = kern_info(&f->kern);
	if (!err)
		err = kern_services(&list, true);
	if (err)
		return refuse(err, NULL, "info");
	f->services = list.n;
	for (i = 0; i < list.n; i++)
		f->servers += list.v[i].nservers;
	service_list_free(&list);
	snprintf(f->abi, sizeof(f->abi), "%u.%u.%u",
		 f->kern.version >> 16 & 0xff, f->kern.version >> 8 & 0xff,
		 f->kern.version & 0xff);
	find_limits(f);
	return RC_OK;
}

static int info_json(const struct facts *f)
{
	json_t *doc = doc_new(), *limits = json_array(), *o;
	const char *version = backend_version();
	int i;

	for (i = 0; i < f->nlimits; i++)
		json_array_append_new(limits, json_string(f->limits[i]));
	o = json_pack("{s:s, s:o, s:s, s:s, s:I, s:I, s:I, s:o}",
		      "backend", backend_name(),
		      "backend_version",
		      version ? json_string(version) : json_null(),
		      "kernel", f->uts.release, "ipvs_abi", f->abi,
		      "table_size", (json_int_t)f->kern.table_size,
		      "services", (json_int_t)f->services,
		      "servers", (json_int_t)f->servers, "limits", limits);
	json_object_set_new(doc, "info", o);
	return print_doc(doc);
}

static int info(struct args *a)
{
	const char *version;
	struct facts f;
	int i, rc;

	rc = arg_end(a, NULL);
	if (!rc)
		rc = wire_open();
	if (!rc)
		rc = gather(&f);
	if (rc)
		return rc;
	if (opt.json)
		return info_json(&f);
	version = backend_version();
	printf("ipvsctl     %s\n", IPVSCTL_VERSION);
	printf("backend     %s%s%s\n", backend_name(), version ? " " : "",
	       version ? version : "");
	printf("kernel      %s\n", f.uts.release);
	printf("IPVS ABI    %s\n", f.abi);
	printf("table size  %u\n", f.kern.table_size);
	printf("services    %zu with %zu servers\n", f.services, f.servers);
	for (i = 0; i < f.nlimits; i++)
		printf("%-11s %s\n", i ? "" : "limits", f.limits[i]);
	return RC_OK;
}

static const struct verb verbs[] = {
	{ "info", info, "", "backend, versions, table size, missing features",
	  0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_info = {
	"info", NULL, verbs, "the module that serves IPVS, and its limits", NOUN_SINGLE
};
