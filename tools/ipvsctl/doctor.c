// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl doctor`: mistakes around the services, each with what to do. It reads, asks
 * links who has an address, with --probe asks real servers, and changes nothing.
 */
#include <stdio.h>

#include "args.h"
#include "cmd.h"
#include "doctor_arp.h"
#include "doctor_lazy.h"
#include "doctor_listen.h"
#include "doctor_load.h"
#include "doctor_machine.h"
#include "doctor_offload.h"
#include "doctor_pair.h"
#include "doctor_path.h"
#include "doctor_reply.h"
#include "doctor_rules.h"
#include "doctor_snat.h"
#include "err.h"
#include "exam.h"
#include "opt.h"
#include "report.h"

/* Each is in the table of doc/doctor.md, with what it means. */
static const struct check {
	const char *name;
	void (*run)(const struct exam *e, struct report *r);
	unsigned int wanted_by;	/* OPT_*, or 0: always */
} checks[] = {
	{ "module", check_module, 0 },
	{ "other-module", check_other_module, 0 },
	{ "version", check_version, 0 },
	{ "scheduler", check_scheduler, 0 },
	{ "loopback", check_loopback, 0 },
	{ "vip", check_vip, 0 },
	{ "vip-answer", check_vip_answer, 0 },
	{ "device", check_device, 0 },
	{ "route", check_route, 0 },
	{ "neighbour", check_neighbour, 0 },
	{ "listen", check_listen, OPT_PROBE },
	{ "direct", check_direct, 0 },
	{ "local", check_local, 0 },
	{ "mtu", check_mtu, 0 },
	{ "lro", check_lro, 0 },
	{ "xdp", check_xdp, 0 },
	{ "forwarding", check_forwarding, 0 },
	{ "replies", check_replies, 0 },
	{ "rp-filter", check_rp_filter, 0 },
	{ "firewall", check_firewall, 0 },
	{ "usable", check_usable, 0 },
	{ "overload", check_overload, 0 },
	{ "conn-max", check_conn_max, 0 },
	{ "conntrack", check_conntrack, 0 },
	{ "lazy", check_lazy, 0 },
	{ "snat", check_snat, 0 },
	{ "sync", check_sync, 0 },
	{ "peer", check_peer, 0 },
};

static int doctor(struct args *a)
{
	struct report report = { 0 };
	struct svc_id id, *only = NULL;
	struct exam exam = { 0 };
	size_t i;
	int rc = RC_OK;

	if (arg_peek(a)) {
		rc = parse_svc_id(a, &id);
		only = &id;
	}
	if (!rc)
		rc = arg_end(a, NULL);
	if (rc)
		return rc;
	rc = exam_read(&exam, only);
	for (i = 0; !rc && i < ARRAY_SIZE(checks); i++) {
		if (checks[i].wanted_by & ~opt.given)
			continue;
		report_begin(&report, checks[i].name);
		checks[i].run(&exam, &report);
	}
	exam_free(&exam);
	return rc ? rc : report_print(&report);
}

static const struct verb verbs[] = {
	{ "doctor", doctor, "[ID]",
	  "look for mistakes in the set-up, and say what to do", OPT_PROBE },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_doctor = {
	"doctor", NULL, verbs, "find mistakes in the set-up", NOUN_SINGLE
};
