// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl doctor`: mistakes around the services, each with what to do. It reads, asks
 * links who has an address, and changes nothing.
 */
#include <stdio.h>

#include "args.h"
#include "cmd.h"
#include "doctor_arp.h"
#include "doctor_load.h"
#include "doctor_machine.h"
#include "doctor_pair.h"
#include "doctor_path.h"
#include "doctor_reply.h"
#include "doctor_rules.h"
#include "err.h"
#include "exam.h"
#include "report.h"

/* Each is in the table of doc/doctor.md, with what it means. */
static const struct check {
	const char *name;
	void (*run)(const struct exam *e, struct report *r);
} checks[] = {
	{ "module", check_module },
	{ "other-module", check_other_module },
	{ "version", check_version },
	{ "scheduler", check_scheduler },
	{ "loopback", check_loopback },
	{ "vip", check_vip },
	{ "vip-answer", check_vip_answer },
	{ "device", check_device },
	{ "route", check_route },
	{ "neighbour", check_neighbour },
	{ "direct", check_direct },
	{ "local", check_local },
	{ "mtu", check_mtu },
	{ "forwarding", check_forwarding },
	{ "replies", check_replies },
	{ "rp-filter", check_rp_filter },
	{ "firewall", check_firewall },
	{ "usable", check_usable },
	{ "overload", check_overload },
	{ "conn-max", check_conn_max },
	{ "conntrack", check_conntrack },
	{ "sync", check_sync },
	{ "peer", check_peer },
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
		report_begin(&report, checks[i].name);
		checks[i].run(&exam, &report);
	}
	exam_free(&exam);
	return rc ? rc : report_print(&report);
}

static const struct verb verbs[] = {
	{ "doctor", doctor, "[ID]",
	  "look for mistakes in the set-up, and say what to do", 0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_doctor = {
	"doctor", NULL, verbs, "find mistakes in the set-up", NOUN_SINGLE
};
