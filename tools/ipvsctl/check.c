// SPDX-License-Identifier: GPL-2.0
/* Rules of a configuration that can work. The kernel accepts more: even a
 * service that silently drops every connection.
 */
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <linux/ip_vs.h>

#include "check.h"
#include "err.h"
#include "model.h"
#include "snat.h"
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

static int check_lazy(const struct service *svc, const char *object)
{
	const uint32_t *value = svc->policy.value;

	if (value[L4LB_POLICY_ATTR_CONN_STATE] != L4LB_SERVICE_STATE_LAZY)
		return RC_OK;
	if (svc->id.fwmark || svc->id.proto == IPPROTO_UDP)
		return fail(RC_USAGE, object,
			    "conn-state lazy is for tcp and sctp services by address");
	if (value[L4LB_POLICY_ATTR_LATENCY] ||
	    value[L4LB_POLICY_ATTR_LIMIT_RATE] ||
	    value[L4LB_POLICY_ATTR_LIMIT_CONNS])
		return fail(RC_USAGE, object,
			    "conn-state lazy excludes latency, limit-rate and limit-conns");
	return RC_OK;
}

/* Replies without a connection do not tell which address and port a client used. */
static int check_range(const struct service *svc, const char *object)
{
	const uint32_t *value = svc->policy.value;
	const struct svc_id *id = &svc->id;

	if (!svc_is_range(id))
		return RC_OK;
	if (svc->flags & IP_VS_SVC_F_ONEPACKET)
		return fail(RC_USAGE, object,
			    "ops (one-packet scheduling) needs a single address and port");
	if (svc->pe[0])
		return fail(RC_USAGE, object,
			    "pe (persistence engine) needs a single address and port");
	if (value[L4LB_POLICY_ATTR_CONN_STATE] == L4LB_SERVICE_STATE_LAZY)
		return fail(RC_USAGE, object,
			    "conn-state lazy needs a single address and port");
	if (value[L4LB_POLICY_ATTR_GUARD] &&
	    id->prefix_len != (id->af == AF_INET6 ? 128 : 32))
		return fail(RC_USAGE, object,
			    "guard is for a single address, not for a prefix");
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
	rc = check_range(svc, object);
	if (rc)
		return rc;
	if (svc->id.fwmark && svc->policy.value[L4LB_POLICY_ATTR_GUARD])
		return fail(RC_USAGE, object,
			    "guard is for services by address: a fwmark service has none");
	rc = check_lazy(svc, object);
	if (!rc)
		rc = snat_check(svc, object);
	return rc ? rc : check_flags(svc, object);
}

/* "server NAME" and what is wrong with it. */
static int PRINTF_LIKE(3, 4) bad_server(const struct service *svc,
					const struct server *srv,
					const char *fmt, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return fail(RC_USAGE, svc_text(&svc->id), "server %s%s",
		    ip_port_text(srv->af, &srv->addr, srv->port), text);
}

static int check_tunnel(const struct service *svc, const struct server *srv)
{
	bool tun = (srv->forward & IP_VS_CONN_F_FWD_MASK) ==
		   IP_VS_CONN_F_TUNNEL;
	bool gue = srv->tun_type == IP_VS_CONN_F_TUNNEL_TYPE_GUE;
	int rc;

	if (!tun && (srv->tun_type || srv->tun_port || srv->tun_flags)) {
		rc = bad_server(svc, srv, ": type, port and csum are for tun");
		hint("try: tun type gue port 6080");
		return rc;
	}
	if (tun && gue && !srv->tun_port) {
		rc = bad_server(svc, srv, ": a gue tunnel needs its UDP port");
		hint("try: tun type gue port 6080");
		return rc;
	}
	if (srv->tun_port && !gue)
		return bad_server(svc, srv, ": only a gue tunnel has a port");
	if (srv->tun_flags & IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM && !gue)
		return bad_server(svc, srv, ": only a gue tunnel has remcsum");
	if (srv->tun_flags && srv->tun_type == IP_VS_CONN_F_TUNNEL_TYPE_IPIP)
		return bad_server(svc, srv, ": an ipip tunnel has no checksum");
	return RC_OK;
}

/* A mark stands for packets of any port, so only a service with an address
 * has a port to compare with.
 */
static int check_port(const struct service *svc, const struct server *srv)
{
	uint32_t method = srv->forward & IP_VS_CONN_F_FWD_MASK;
	const struct svc_id *id = &svc->id;
	const char *how = NULL;
	int rc;

	if (id->fwmark)
		return RC_OK;
	if (method == IP_VS_CONN_F_DROUTE)
		how = "direct routing";
	else if (method == IP_VS_CONN_F_TUNNEL)
		how = "a tunnel";
	if (how && svc_is_range(id) && srv->port) {
		rc = bad_server(svc, srv, ": %s cannot change the port", how);
		hint("try: nat, or leave the server's port out");
		return rc;
	}
	if (svc_is_range(id))
		return RC_OK;
	if (how && srv->port != id->port) {
		rc = bad_server(svc, srv, ": %s cannot change the port (service %u, server %u)",
				how, id->port, srv->port);
		hint("try: nat, or leave the server's port out");
		return rc;
	}
	if (!srv->port && id->port)
		return bad_server(svc, srv, ": port 0 (any port) is for services with port 0");
	return RC_OK;
}

static int check_limits(const struct service *svc, const struct server *srv)
{
	if (srv->weight > INT32_MAX)
		return bad_server(svc, srv, ": weight %u is above 2147483647",
				  srv->weight);
	if (srv->min_conns && !srv->max_conns)
		return bad_server(svc, srv, ": min-conns %u needs a max-conns above it",
				  srv->min_conns);
	if (srv->min_conns > srv->max_conns)
		return bad_server(svc, srv, ": min-conns %u is above max-conns %u",
				  srv->min_conns, srv->max_conns);
	return RC_OK;
}

int server_check(const struct service *svc, const struct server *srv)
{
	int rc;

	if (!ip_is_unicast(srv->af, &srv->addr))
		return bad_server(svc, srv, ": not a unicast address");
	if (srv->af != svc->id.af && (srv->forward & IP_VS_CONN_F_FWD_MASK) !=
	    IP_VS_CONN_F_TUNNEL) {
		rc = bad_server(svc, srv,
				" is %s but the service is %s: only tun can cross families",
				family_name(srv->af), family_name(svc->id.af));
		hint("try: %s tun", ip_port_text(srv->af, &srv->addr, srv->port));
		return rc;
	}
	if (svc_is_range(&svc->id) &&
	    ip_in_prefix(srv->af, &srv->addr, svc->id.af, &svc->id.addr,
			 svc->id.prefix_len))
		return bad_server(svc, srv, ": its address is one of the service's");
	rc = check_port(svc, srv);
	if (!rc)
		rc = check_limits(svc, srv);
	return rc ? rc : check_tunnel(svc, srv);
}
