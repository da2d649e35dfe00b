// SPDX-License-Identifier: GPL-2.0
/*
 * A message has a header, sometimes the templates, and sets of records. Each of the
 * eight forms of a record has a template: client and real server may be of either
 * family, and NAT has changed the destination where other methods have a next hop.
 * By UDP a collector may miss templates, so they are sent again each minute (RFC 7011,
 * section 8.4). Numbers of fields are IANA's "IPFIX Information Elements".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/ip_vs.h>

#include "args.h"
#include "err.h"
#include "ident.h"
#include "ipfix.h"
#include "kern_log.h"
#include "../../kernel/l4lb.h"

enum {
	VERSION		= 10,
	HEADER		= 16,		/* bytes */
	TEMPLATE_SET	= 2,
	FIRST_TEMPLATE	= 256,
	PORT		= 4739,
	MESSAGE_MAX	= 1400,		/* a packet of any Ethernet */
	RECORD_MAX	= 80,
	RESEND		= 60,		/* seconds */
};

/* Bits of a template's number. */
enum { CLIENT_V6 = 1, SERVER_V6 = 2, BY_NAT = 4, FORMS = 8 };

enum end_reason {
	END_IDLE = 1, END_SEEN = 3, END_FORCED = 4, END_RESOURCES = 5,
};

struct field {
	uint16_t id, size;
};

static struct {
	int fd;
	struct srv_id to;
	uint8_t data[MESSAGE_MAX];
	size_t used, set;	/* where the open set begins; 0: there is none */
	unsigned int form;	/* of the open set */
	uint32_t records;	/* in this message */
	uint32_t sequence;	/* records before it */
	time_t templates;	/* when they are to be sent next; 0: now */
	bool refused;
} out = { .fd = -1 };

static void put(const void *value, size_t size)
{
	memcpy(out.data + out.used, value, size);
	out.used += size;
}

static void put_u8(uint8_t value)
{
	put(&value, 1);
}

static void put_u16(uint16_t value)
{
	value = htons(value);
	put(&value, 2);
}

static void put_u32(uint32_t value)
{
	value = htonl(value);
	put(&value, 4);
}

static void put_u64(uint64_t value)
{
	put_u32((uint32_t)(value >> 32));
	put_u32((uint32_t)value);
}

static void put_addr(uint16_t af, const struct ip *addr)
{
	put(addr->b, af == AF_INET6 ? 16 : 4);
}

static void set_u16(size_t at, size_t value)
{
	uint16_t net = htons((uint16_t)value);

	memcpy(out.data + at, &net, 2);
}

static void begin_set(uint16_t id)
{
	out.set = out.used;
	put_u16(id);
	put_u16(0);
}

static void end_set(void)
{
	if (out.set)
		set_u16(out.set + 2, out.used - out.set);
	out.set = 0;
}

/* What the records of @form consist of, in the order of put_record(). */
static size_t fields_of(unsigned int form, struct field *f)
{
	const struct field client = form & CLIENT_V6 ? (struct field){ 27, 16 }
						     : (struct field){ 8, 4 };
	const struct field vip = form & CLIENT_V6 ? (struct field){ 28, 16 }
						  : (struct field){ 12, 4 };
	const struct field translated = form & SERVER_V6 ?
		(struct field){ 282, 16 } : (struct field){ 226, 4 };
	const struct field hop = form & SERVER_V6 ? (struct field){ 62, 16 }
						  : (struct field){ 15, 4 };
	size_t n = 0;

	f[n++] = (struct field){ 4, 1 };	/* protocolIdentifier */
	f[n++] = client;			/* sourceIPv*Address */
	f[n++] = (struct field){ 7, 2 };	/* sourceTransportPort */
	f[n++] = vip;				/* destinationIPv*Address */
	f[n++] = (struct field){ 11, 2 };	/* destinationTransportPort */
	if (form & BY_NAT) {
		f[n++] = translated;	/* postNATDestinationIPv*Address */
		f[n++] = (struct field){ 228, 2 }; /* postNAPTDestination... */
	} else {
		f[n++] = hop;			/* ipNextHopIPv*Address */
	}
	f[n++] = (struct field){ 152, 8 };	/* flowStartMilliseconds */
	f[n++] = (struct field){ 153, 8 };	/* flowEndMilliseconds */
	f[n++] = (struct field){ 136, 1 };	/* flowEndReason */
	return n;
}

static void put_templates(void)
{
	struct field fields[16];
	unsigned int form;
	size_t i, n;

	begin_set(TEMPLATE_SET);
	for (form = 0; form < FORMS; form++) {
		n = fields_of(form, fields);
		put_u16((uint16_t)(FIRST_TEMPLATE + form));
		put_u16((uint16_t)n);
		for (i = 0; i < n; i++) {
			put_u16(fields[i].id);
			put_u16(fields[i].size);
		}
	}
	end_set();
}

static unsigned int form_of(const struct conn *c)
{
	return (c->af == AF_INET6 ? CLIENT_V6 : 0) |
	       (c->server_af == AF_INET6 ? SERVER_V6 : 0) |
	       (c->forward == IP_VS_CONN_F_MASQ ? BY_NAT : 0);
}

/* Was the end of the flow seen in its packets? */
static bool was_closed(const struct conn *c)
{
	static const char *const open[] = {
		"ESTABLISHED", "SYN_SENT", "SYN_RECV", "SYNACK", "UDP", "NONE",
		"LISTEN", "INIT", "INIT1", "C-SENT", "C-REPLIED", "COOKIE",
		"C-ECHOED",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(open); i++)
		if (!strcmp(c->state, open[i]))
			return false;
	return true;
}

static enum end_reason reason_of(const struct ended *e)
{
	switch (e->why) {
	case L4LB_END_EXPIRED:
		return was_closed(&e->conn) ? END_SEEN : END_IDLE;
	case L4LB_END_REUSED:
		return END_SEEN;
	case L4LB_END_EVICTED:
		return END_RESOURCES;
	default:
		return END_FORCED;
	}
}

static void put_record(const struct ended *e, unsigned int form)
{
	uint64_t ended = e->time / 1000000;
	const struct conn *c = &e->conn;

	put_u8((uint8_t)c->proto);
	put_addr(c->af, &c->client);
	put_u16(c->client_port);
	put_addr(c->af, &c->vip);
	put_u16(c->vport);
	put_addr(c->server_af, &c->server);
	if (form & BY_NAT)
		put_u16(c->server_port);
	put_u64(ended - e->lasted);
	put_u64(ended - e->idle);
	put_u8(reason_of(e));
}

static void begin_message(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	out.used = HEADER;
	out.records = 0;
	if (now.tv_sec < out.templates)
		return;
	put_templates();
	out.templates = now.tv_sec + RESEND;
}

void ipfix_add(const struct ended *e)
{
	unsigned int form = form_of(&e->conn);

	if (out.used + RECORD_MAX > MESSAGE_MAX)
		ipfix_flush();
	if (!out.used)
		begin_message();
	if (!out.set || out.form != form) {
		end_set();
		begin_set((uint16_t)(FIRST_TEMPLATE + form));
		out.form = form;
	}
	put_record(e, form);
	out.records++;
}

static void tell(bool refused)
{
	if (refused && !out.refused)
		note("ipvsctl: no collector takes records at %s",
		     ip_port_text(out.to.af, &out.to.addr, out.to.port));
	out.refused = refused;
}

void ipfix_flush(void)
{
	size_t size = out.used;
	bool refused;

	if (!size)
		return;
	end_set();
	out.used = 0;
	put_u16(VERSION);
	put_u16((uint16_t)size);
	put_u32((uint32_t)time(NULL));
	put_u32(out.sequence);
	put_u32(0);		/* observation domain: none in particular */
	out.used = 0;
	out.sequence += out.records;
	/* It may have the error of the message before. */
	refused = send(out.fd, out.data, size, 0) < 0;
	if (refused)
		(void)!send(out.fd, out.data, size, 0);
	tell(refused);
}

int ipfix_open(const char *collector)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	int rc = parse_srv_word(collector, "conn log", &out.to);

	if (rc)
		return rc;
	if (out.to.has_port && !out.to.port)
		return fail(RC_USAGE, "conn log",
			    "bad port 0: write 1 to 65535, or no port for %d",
			    PORT);
	if (!out.to.has_port)
		out.to.port = PORT;
	memcpy(&v4.sin_addr, out.to.addr.b, 4);
	memcpy(&v6.sin6_addr, out.to.addr.b, 16);
	v4.sin_port = htons(out.to.port);
	v6.sin6_port = v4.sin_port;
	out.fd = socket(out.to.af, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (out.fd < 0 ||
	    (out.to.af == AF_INET ?
	     connect(out.fd, (struct sockaddr *)&v4, sizeof(v4)) :
	     connect(out.fd, (struct sockaddr *)&v6, sizeof(v6)))) {
		rc = fail(RC_USAGE, "conn log", "cannot send to %s: %s",
			  ip_port_text(out.to.af, &out.to.addr, out.to.port),
			  strerror(errno));
		ipfix_close();
	}
	return rc;
}

void ipfix_close(void)
{
	if (out.fd >= 0)
		close(out.fd);
	out.fd = -1;
}
