// SPDX-License-Identifier: GPL-2.0
/* Rules of a configuration that can work. The kernel accepts more: even a
 * service that silently drops every connection.
 */
#include <netinet/in.h>
#include <string.h>

#include <linux/ip_vs.h>

#include "check.h"
#include "err.h"
#include "model.h"
#include "svcopt.h"

static int check_flags(const struct service *svc, const char *object)
{
	uint32_t odd = svc->flags & ~(uint32_t)(IP_VS_SVC_F_PERSISTENT |
				      IP_VS_SVC_F_HASHED |
				      IP_VS_SVC_F_ONEPACKET |
				      IP_VS_SVC_F_SCHED1 | IP_VS_SVC_F_SCHED2 |
				      IP_VS_SVC_F_SCHED3);

	if (odd)
		return fail(RC_USAGE, object, "unknown flag bits 0x%x", odd);
	return RC_OK;
}

int service_check(const struct service *svc)
{
	bool persistent = svc->flags & IP_VS_SVC_F_PERSISTENT;
	const char *object = svc_text(&svc->id);
	int rc;

	if (!svc->id.fwmark && !svc->id.port && !persistent) {
		rc = fail(RC_USAGE, object,
			  "port 0 (any port) needs persistence");
		hint("try: add: persistent 300");
		return rc;
	}
	if (!persistent && svc->netmask != netmask_full(svc->id.af)) {
		rc = fail(RC_USAGE, object,
			  "mask groups persistent clients, but the service is not persistent");
		hint("try: add: persistent 300");
		return rc;
	}
	if (!persistent && svc->pe[0]) {
		rc = fail(RC_USAGE, object,
			  "a persistence engine needs persistence");
		hint("try: add: persistent 300");
		return rc;
	}
	if (svc->flags & IP_VS_SVC_F_ONEPACKET && !svc->id.fwmark &&
	    svc->id.proto != IPPROTO_UDP)
		return fail(RC_USAGE, object,
			    "ops (one-packet scheduling) is for udp and fwmark services");
	if (svc->id.fwmark && svc->policy.value[L4LB_POLICY_ATTR_GUARD])
		return fail(RC_USAGE, object,
			    "guard is for services by address: a fwmark service has none");
	return check_flags(svc, object);
}

static int check_tunnel(const struct server *srv, const char *object,
			const char *name)
{
	bool tun = (srv->forward & IP_VS_CONN_F_FWD_MASK) ==
		   IP_VS_CONN_F_TUNNEL;
	bool gue = srv->tun_type == IP_VS_CONN_F_TUNNEL_TYPE_GUE;
	int rc;

	if (!tun && (srv->tun_type || srv->tun_port || srv->tun_flags)) {
		rc = fail(RC_USAGE, object,
			  "server %s: type, port and csum are for tun", name);
		hint("try: tun type gue port 6080");
		return rc;
	}
	if (tun && gue && !srv->tun_port) {
		rc = fail(RC_USAGE, object,
			  "server %s: a gue tunnel needs its UDP port", name);
		hint("try: tun type gue port 6080");
		return rc;
	}
	if (srv->tun_port && !gue)
		return fail(RC_USAGE, object,
			    "server %s: only a gue tunnel has a port", name);
	if (srv->tun_flags & IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM && !gue)
		return fail(RC_USAGE, object,
			    "server %s: only a gue tunnel has remcsum", name);
	if (srv->tun_flags && srv->tun_type == IP_VS_CONN_F_TUNNEL_TYPE_IPIP)
		return fail(RC_USAGE, object,
			    "server %s: an ipip tunnel has no checksum", name);
	return RC_OK;
}

/* A mark stands for packets of any port, so only a service with an address
 * has a port to compare with.
 */
static int check_port(const struct svc_id *id, const struct server *srv,
		      const char *object, const char *name)
{
	uint32_t method = srv->forward & IP_VS_CONN_F_FWD_MASK;
	const char *how = NULL;
	int rc;

	if (id->fwmark)
		return RC_OK;
	if (method == IP_VS_CONN_F_DROUTE)
		how = "direct routing";
	else if (method == IP_VS_CONN_F_TUNNEL)
		how = "a tunnel";
	if (how && srv->port != id->port) {
		rc = fail(RC_USAGE, object,
			  "server %s: %s cannot change the port (service %u, server %u)",
			  name, how, id->port, srv->port);
		hint("try: nat, or leave the server's port out");
		return rc;
	}
	if (!srv->port && id->port)
		return fail(RC_USAGE, object,
			    "server %s: port 0 (any port) is for services with port 0",
			    name);
	return RC_OK;
}

static int check_limits(const struct server *srv, const char *object,
			const char *name)
{
	if (srv->weight > INT32_MAX)
		return fail(RC_USAGE, object,
			    "server %s: weight %u is above 2147483647", name,
			    srv->weight);
	if (srv->min_conns && !srv->max_conns)
		return fail(RC_USAGE, object,
			    "server %s: min-conns %u needs a max-conns above it",
			    name, srv->min_conns);
	if (srv->min_conns > srv->max_conns)
		return fail(RC_USAGE, object,
			    "server %s: min-conns %u is above max-conns %u",
			    name, srv->min_conns, srv->max_conns);
	return RC_OK;
}

int server_check(const struct service *svc, const struct server *srv)
{
	const char *object = svc_text(&svc->id);
	const char *name = ip_port_text(srv->af, &srv->addr, srv->port);
	int rc;

	if (!ip_is_unicast(srv->af, &srv->addr))
		return fail(RC_USAGE, object,
			    "server %s: not a unicast address", name);
	if (srv->af != svc->id.af && (srv->forward & IP_VS_CONN_F_FWD_MASK) !=
	    IP_VS_CONN_F_TUNNEL) {
		rc = fail(RC_USAGE, object,
			  "server %s is %s but the service is %s: only tun can cross families",
			  name, family_name(srv->af),
			  family_name(svc->id.af));
		hint("try: %s tun", name);
		return rc;
	}
	rc = check_port(&svc->id, srv, object, name);
	if (!rc)
		rc = check_limits(srv, object, name);
	return rc ? rc : check_tunnel(srv, object, name);
}
