// SPDX-License-Identifier: GPL-2.0
/* In-tree ip_vs answers with a bare errno, and one errno stands for several
 * mistakes. Checks made here (does the scheduler exist, is lo up) find the one
 * reason, so that the message need not list them all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ip_vs.h>

#include "args.h"
#include "backend.h"
#include "err.h"
#include "kern.h"
#include "model.h"
#include "opt.h"
#include "refuse.h"
#include "scheduler_list.h"
#include "suggest.h"
#include "wire.h"

/* Adds the kernel's own sentence, if there is one, to the message. */
static int with_extack(int rc, int err)
{
	fail_errno(err);
	if (wire_extack()[0])
		hint("kernel: %s", wire_extack());
	return rc;
}

/* In the kernel's own words. */
static int in_its_words(enum exit_code code, int err, const char *object, const char *what)
{
	int rc = fail(code, object, "%s: the kernel refused: %s", what,
		      wire_extack()[0] ? wire_extack() : strerror(-err));

	fail_errno(err);
	return rc;
}

int refuse(int err, const char *object, const char *what)
{
	int rc;

	switch (-err) {
	case EPERM:
	case EACCES:
		rc = fail(RC_PERM, object,
			  "not permitted: CAP_NET_ADMIN in the initial user namespace is needed");
		hint("try: sudo ipvsctl ...");
		break;
	case ETIMEDOUT:
		rc = fail(RC_TIMEOUT, object,
			  "%s: the kernel did not answer within %u ms", what,
			  opt.timeout_ms);
		hint("try: --timeout 60, and find out what keeps the kernel busy");
		break;
	case EOPNOTSUPP:
		/* A module that says why knows the command. */
		if (wire_extack()[0])
			return in_its_words(RC_BACKEND, err, object, what);
		rc = fail(RC_BACKEND, object,
			  "%s: the module %s does not know this command", what,
			  backend_name());
		hint_module();
		break;
	case EINTR:
		rc = fail(RC_REFUSED, object,
			  "%s: the configuration kept changing while it was read",
			  what);
		hint("try: again when the other program has finished");
		break;
	case ENOMEM:
	case ENOBUFS:
		rc = fail(RC_REFUSED, object, "%s: the kernel is out of memory",
			  what);
		break;
	case ESRCH:
		rc = fail(RC_MISSING, object, "no such service");
		break;
	default:
		return in_its_words(RC_REFUSED, err, object, what);
	}
	return with_extack(rc, err);
}

int missing_service(const struct svc_id *id)
{
	struct service_list list = { 0 };
	const char **names, *near = NULL;
	char text[160];
	size_t i;
	int rc;

	snprintf(text, sizeof(text), "%s", svc_text(id));
	names = kern_services(&list, false) ? NULL
		: calloc(list.n + 1, sizeof(*names));
	for (i = 0; names && i < list.n; i++)
		names[i] = strdup(svc_text(&list.v[i].id));
	if (names)
		near = suggest(text, names);
	if (near)
		rc = fail(RC_MISSING, text, "no such service; nearest: %s",
			  near);
	else
		rc = fail(RC_MISSING, text, "no such service");
	fail_errno(ESRCH);
	hint("try: ipvsctl service show");
	for (i = 0; names && i < list.n; i++)
		free((char *)names[i]);
	free(names);
	service_list_free(&list);
	return rc;
}

int missing_server(const struct service *svc, const struct server *srv)
{
	char list[400] = "";
	size_t i;
	int rc;

	for (i = 0; i < svc->nservers && i < 8; i++) {
		const struct server *s = &svc->servers[i];
		size_t used = strlen(list);

		snprintf(list + used, sizeof(list) - used, " %s",
			 ip_port_text(s->af, &s->addr, s->port));
	}
	if (svc->nservers > i)
		strcat(list, " ...");
	rc = fail(RC_MISSING, svc_text(&svc->id), "no server %s; it has:%s",
		  ip_port_text(srv->af, &srv->addr, srv->port),
		  svc->nservers ? list : " none");
	fail_errno(ENOENT);
	return rc;
}

static int service_exists(const struct svc_id *id)
{
	const char *text = svc_text(id);
	struct service old;
	int rc;

	if (kern_service(id, &old, true)) {
		rc = fail(RC_EXISTS, text, "already exists");
	} else {
		rc = fail(RC_EXISTS, text,
			  "already exists (scheduler %s, %zu server%s)",
			  old.scheduler, old.nservers,
			  old.nservers == 1 ? "" : "s");
		service_free(&old);
	}
	fail_errno(EEXIST);
	hint("try: ipvsctl service change %s ... or service replace %s ...",
	     text, text);
	return rc;
}

/* There it is, or it has ports of another one. */
static int range_exists(const struct svc_id *id)
{
	struct service old;
	char why[256];
	int rc;

	snprintf(why, sizeof(why), "%s", wire_extack());
	if (!kern_service(id, &old, false)) {
		service_free(&old);
		return service_exists(id);
	}
	rc = fail(RC_REFUSED, svc_text(id), "the kernel refused: %s", why);
	fail_errno(EEXIST);
	return rc;
}

int refuse_service(int err, const struct service *svc)
{
	const char *text = svc_text(&svc->id);
	int rc;

	switch (-err) {
	case EEXIST:
		return svc_is_range(&svc->id) ? range_exists(&svc->id) :
						service_exists(&svc->id);
	case ESRCH:
		return missing_service(&svc->id);
	case ENOENT:
		if (svc->policy.shadow[0] && scheduler_known(svc->scheduler) &&
		    !scheduler_known(svc->policy.shadow)) {
			rc = scheduler_missing(text, svc->policy.shadow);
		} else if (svc->pe[0] && scheduler_known(svc->scheduler)) {
			rc = fail(RC_MISSING, text,
				  "persistence engine \"%s\" not found",
				  svc->pe);
			hint("try: pe sip, the only one there is");
		} else {
			rc = scheduler_missing(text, svc->scheduler);
		}
		return with_extack(rc, err);
	}
	return refuse(err, text, "service");
}

static bool loopback_is_down(void)
{
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool down = false;

	if (fd < 0)
		return false;
	if (!ioctl(fd, SIOCGIFFLAGS, &ifr))
		down = !(ifr.ifr_flags & IFF_UP);
	close(fd);
	return down;
}

/* EINVAL: the reasons that remain after the tool's own checks. */
static int server_invalid(int err, const char *object, const struct svc_id *id,
			  const struct server *srv)
{
	const char *addr = ip_text(srv->af, &srv->addr);
	int rc;

	if (wire_extack()[0]) {
		rc = fail(RC_REFUSED, object, "server %s: the kernel refused: %s",
			  addr, wire_extack());
	} else if (srv->af != id->af) {
		rc = fail(RC_REFUSED, object,
			  "server %s: refused: families cannot be mixed while a sync daemon runs",
			  addr);
		hint("see: ipvsctl sync show");
	} else {
		rc = fail(RC_REFUSED, object,
			  "server %s: refused: by the routes here it is neither local nor a unicast address",
			  addr);
	}
	fail_errno(err);
	if (loopback_is_down()) {
		hint("lo is down: this namespace has no local routing table");
		hint("try: ip link set lo up");
	}
	return rc;
}

int refuse_server(int err, const struct svc_id *id, const struct server *srv)
{
	const char *text = svc_text(id);
	const char *name = ip_port_text(srv->af, &srv->addr, srv->port);
	int rc;

	switch (-err) {
	case ESRCH:
		return missing_service(id);
	case EEXIST:
		rc = fail(RC_EXISTS, text, "server %s already exists", name);
		hint("try: ipvsctl server change %s %s ... or server replace",
		     text, name);
		return with_extack(rc, err);
	case ENOENT:
		rc = fail(RC_MISSING, text, "no server %s", name);
		return with_extack(rc, err);
	case EINVAL:
		return server_invalid(err, text, id, srv);
	}
	return refuse(err, text, name);
}
