// SPDX-License-Identifier: GPL-2.0
/* Services and servers that a command names, read from the kernel. */
#include <errno.h>

#include "args.h"
#include "err.h"
#include "kern.h"
#include "lookup.h"
#include "model.h"
#include "refuse.h"
#include "svcopt.h"

int service_lookup(const struct svc_id *id, struct service *svc, bool servers)
{
	int err = kern_service(id, svc, servers);

	if (err == -ESRCH)
		return missing_service(id);
	return err ? refuse(err, svc_text(id), "reading the service") : RC_OK;
}

int server_words(struct args *a, struct svc_id *id, struct srv_id *name)
{
	int rc;

	arg_accept(a, "to");	/* "server add to ID SRV" */
	rc = parse_svc_id(a, id);
	return rc ? rc : parse_srv_id(a, svc_text(id), name);
}

int server_lookup(const struct svc_id *id, const struct srv_id *name,
		  struct server *srv)
{
	struct service svc;
	struct server *found;
	int rc;

	server_defaults(srv, id, name);
	rc = service_lookup(id, &svc, true);
	if (rc)
		return rc;
	found = server_find(&svc, srv->af, &srv->addr, srv->port);
	if (found)
		*srv = *found;
	else
		rc = missing_server(&svc, srv);
	service_free(&svc);
	return rc;
}
