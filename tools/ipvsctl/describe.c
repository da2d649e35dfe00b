// SPDX-License-Identifier: GPL-2.0
/* One wording for dry runs, listings and messages, so that what is printed
 * can be typed back in.
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <linux/ip_vs.h>

#include "describe.h"
#include "err.h"
#include "kern.h"
#include "model.h"
#include "optword.h"
#include "then.h"

enum { LINE = 1024 };

static void append(char *line, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void append(char *line, const char *fmt, ...)
{
	size_t used = strlen(line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + used, LINE - used, fmt, ap);
	va_end(ap);
}

const char *describe_mask(uint16_t af, uint32_t netmask)
{
	int len = netmask_len(af, netmask);
	static char buf[INET_ADDRSTRLEN];

	if (len >= 0)
		snprintf(buf, sizeof(buf), "%d", len);
	else
		inet_ntop(AF_INET, &netmask, buf, sizeof(buf));
	return buf;
}

const char *describe_flags(const struct service *svc)
{
	static const char *const plain[] = { "flag-1", "flag-2", "flag-3" };
	bool hash = !strcmp(svc->scheduler, "sh") ||
		    !strcmp(svc->scheduler, "mh");
	static const char *const named[] = { "fallback", "port", "flag-3" };
	static char line[LINE];
	int i;

	line[0] = '\0';
	for (i = 0; i < 3; i++)
		if (svc->flags & (uint32_t)(IP_VS_SVC_F_SCHED1 << i))
			append(line, "%s%s", line[0] ? "," : "",
			       hash ? named[i] : plain[i]);
	return line;
}

const char *describe_options(const struct service *svc)
{
	const char *flags = describe_flags(svc);
	static char line[LINE];
	size_t i;

	line[0] = '\0';
	if (flags[0])
		append(line, " flags %s", flags);
	if (svc->flags & IP_VS_SVC_F_PERSISTENT) {
		append(line, " persistent %u", svc->timeout);
		if (svc->netmask != netmask_full(svc->id.af))
			append(line, " mask %s",
			       describe_mask(svc->id.af, svc->netmask));
	}
	if (svc->pe[0])
		append(line, " pe %s", svc->pe);
	if (svc->flags & IP_VS_SVC_F_ONEPACKET)
		append(line, " ops");
	for (i = 0; i < svc->noptions; i++)
		append(line, " option %s %s", svc->options[i].name,
		       option_exact(&svc->options[i]));
	if (!policy_is_default(&svc->policy))
		append(line, " %s", policy_text(&svc->policy));
	return line[0] ? line + 1 : line;
}

const char *describe_service(const struct service *svc)
{
	const char *options = describe_options(svc);
	static char line[LINE];

	line[0] = '\0';
	append(line, "service %s scheduler %s%s%s", svc_text(&svc->id),
	       svc->scheduler, options[0] ? " " : "", options);
	return line;
}

const char *describe_forward(const struct server *srv)
{
	const char *name = forward_name(srv->forward);
	const char *type = tun_type_name(srv->tun_type);
	static char line[LINE];

	line[0] = '\0';
	if (!name) {
		append(line, "method-%u", srv->forward & IP_VS_CONN_F_FWD_MASK);
		return line;
	}
	append(line, "%s", name);
	if ((srv->forward & IP_VS_CONN_F_FWD_MASK) != IP_VS_CONN_F_TUNNEL ||
	    srv->tun_type == IP_VS_CONN_F_TUNNEL_TYPE_IPIP)
		return line;
	if (type)
		append(line, " type %s", type);
	else
		append(line, " type %u", srv->tun_type);
	if (srv->tun_port)
		append(line, " port %u", srv->tun_port);
	if (srv->tun_flags & IP_VS_TUNNEL_ENCAP_FLAG_CSUM)
		append(line, " csum");
	if (srv->tun_flags & IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM)
		append(line, " remcsum");
	return line;
}

const char *describe_server(const struct svc_id *id, const struct server *srv)
{
	static char line[LINE];

	line[0] = '\0';
	append(line, "server %s %s %s weight %u", svc_text(id),
	       ip_port_text(srv->af, &srv->addr, srv->port),
	       describe_forward(srv), srv->weight);
	if (srv->max_conns)
		append(line, " max-conns %u", srv->max_conns);
	if (srv->min_conns)
		append(line, " min-conns %u", srv->min_conns);
	return line;
}

const char *describe_timeouts(const struct kern_timeouts *t)
{
	static char line[LINE];

	line[0] = '\0';
	append(line, "timeout");
	if (t->tcp)
		append(line, " tcp %u", t->tcp);
	if (t->tcp_fin)
		append(line, " tcp-fin %u", t->tcp_fin);
	if (t->udp)
		append(line, " udp %u", t->udp);
	return line;
}

/* "draining (10 s, then delete)" */
static const char *state_of_drain(const struct server *srv, char *line)
{
	const char *then = srv->drain.then ? then_name(srv->drain.then) : NULL;

	if (!srv->drain.timed && !then)
		return "draining";
	snprintf(line, LINE, "draining (");
	if (srv->drain.timed)
		append(line, "%u s", srv->drain.left);
	if (then)
		append(line, "%sthen %s", srv->drain.timed ? ", " : "", then);
	append(line, ")");
	return line;
}

const char *server_state(const struct server *srv)
{
	static char line[LINE];

	if (!srv->weight)
		return state_of_drain(srv, line);
	if (server_is_overloaded(srv))
		snprintf(line, sizeof(line), "overloaded (%u max)",
			 srv->max_conns);
	else if (!srv->ramp.on)
		return "ok";
	else if (srv->ramp.percent < 100)
		snprintf(line, sizeof(line), "ramping %u %%",
			 srv->ramp.percent);
	else
		return "catching up";
	return line;
}

const char *service_state(const struct service *svc)
{
	if (!svc->nservers)
		return "no servers";
	return service_is_down(svc) ? "down" : "ok";
}
