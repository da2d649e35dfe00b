// SPDX-License-Identifier: GPL-2.0
/* Addresses must be literal: a name may resolve to two addresses, or to another
 * one tomorrow.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "err.h"
#include "ident.h"
#include "opt.h"
#include "suggest.h"

enum { TEXT_LEN = 96, TEXT_RING = 32 };

static unsigned int turn;	/* of the ring: texts made so far */

static char *text_slot(void)
{
	static char ring[TEXT_RING][TEXT_LEN];

	return ring[turn++ % TEXT_RING];
}

bool proto_parse(const char *word, uint16_t *proto)
{
	if (!strcmp(word, "tcp"))
		*proto = IPPROTO_TCP;
	else if (!strcmp(word, "udp"))
		*proto = IPPROTO_UDP;
	else if (!strcmp(word, "sctp"))
		*proto = IPPROTO_SCTP;
	else
		return false;
	return true;
}

const char *proto_name(uint16_t proto)
{
	char *s;

	switch (proto) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_SCTP:
		return "sctp";
	}
	s = text_slot();
	snprintf(s, TEXT_LEN, "proto%u", proto);
	return s;
}

const char *family_name(uint16_t af)
{
	return af == AF_INET6 ? "IPv6" : "IPv4";
}

/* Returns the end of the text. */
static char *put_number(char *s, unsigned int n)
{
	if (n >= 10)
		s = put_number(s, n / 10);
	*s++ = (char)('0' + n % 10);
	return s;
}

/* There are many of them: inet_ntop() and snprintf() would take a fifth of the time of
 * reading 10,000 services.
 */
static char *put_ipv4(char *s, const struct ip *addr)
{
	int i;

	for (i = 0; i < 4; i++) {
		if (i)
			*s++ = '.';
		s = put_number(s, addr->b[i]);
	}
	return s;
}

const char *ip_text(uint16_t af, const struct ip *addr)
{
	char *s = text_slot();

	if (af == AF_INET)
		*put_ipv4(s, addr) = '\0';
	else if (!inet_ntop(af, addr->b, s, TEXT_LEN))
		snprintf(s, TEXT_LEN, "?");
	return s;
}

const char *ip_port_text(uint16_t af, const struct ip *addr, uint16_t port)
{
	const char *ip;
	char *s, *end;

	if (af == AF_INET6) {
		ip = ip_text(af, addr);
		s = text_slot();
		snprintf(s, TEXT_LEN, "[%s]:%u", ip, port);
		return s;
	}
	s = text_slot();
	end = put_ipv4(s, addr);
	*end++ = ':';
	*put_number(end, port) = '\0';
	return s;
}

static const char *range_text(const struct svc_id *id)
{
	bool six = id->af == AF_INET6;
	const char *ip = ip_text(id->af, &id->addr);
	char *s = text_slot();
	int n;

	n = snprintf(s, TEXT_LEN, six ? "[%s]" : "%s", ip);
	if (id->prefix_len != (six ? 128 : 32))
		n += snprintf(s + n, (size_t)(TEXT_LEN - n), "/%u", id->prefix_len);
	n += snprintf(s + n, (size_t)(TEXT_LEN - n), ":%u", id->port);
	if (id->last_port != id->port)
		snprintf(s + n, (size_t)(TEXT_LEN - n), "-%u", id->last_port);
	return s;
}

const char *vip_text(const struct svc_id *id)
{
	return svc_is_range(id) ? range_text(id)
				: ip_port_text(id->af, &id->addr, id->port);
}

/* Parsers ask for the name of a service with each word of each server, for messages
 * that are rarely printed: the last answer is given again while it is young.
 */
const char *svc_text(const struct svc_id *id)
{
	static struct svc_id last;
	static unsigned int when;
	static char *s;

	if (s && turn - when < TEXT_RING / 2 && svc_id_equal(id, &last))
		return s;
	s = text_slot();
	if (id->fwmark)
		snprintf(s, TEXT_LEN, "fwmark %u%s", id->fwmark,
			 id->af == AF_INET6 ? " inet6" : "");
	else
		stpcpy(stpcpy(stpcpy(s, proto_name(id->proto)), " "),
		       vip_text(id));
	last = *id;
	when = turn;
	return s;
}

const char *svc_word(const struct svc_id *id)
{
	char *s = text_slot();

	if (id->fwmark)
		snprintf(s, TEXT_LEN, "fwm%s:%u",
			 id->af == AF_INET6 ? "6" : "", id->fwmark);
	else
		snprintf(s, TEXT_LEN, "%s:%s", proto_name(id->proto),
			 vip_text(id));
	return s;
}

bool ip_equal(const struct ip *a, const struct ip *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Can it be a server's address? The kernel checks its routes, too. */
bool ip_is_unicast(uint16_t af, const struct ip *addr)
{
	static const struct ip zero;
	const uint8_t *b = addr->b;

	if (af == AF_INET)
		return !ip_equal(addr, &zero) && (b[0] & 0xf0) != 0xe0 &&
		       !(b[0] == 255 && b[1] == 255 && b[2] == 255 &&
			 b[3] == 255);
	if (b[0] == 0xff || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80))
		return false;
	return !ip_equal(addr, &zero) &&
	       !IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)b);
}

bool svc_is_range(const struct svc_id *id)
{
	return id->prefix_len;
}

bool svc_in_prefix(const struct svc_id *id, uint16_t af, const struct ip *net,
		   uint32_t len)
{
	return ip_in_prefix(id->af, &id->addr, af, net, len) ||
	       (svc_is_range(id) && ip_in_prefix(af, net, id->af, &id->addr,
						 id->prefix_len));
}

bool svc_has_port(const struct svc_id *id, uint16_t port)
{
	return svc_is_range(id) ? port >= id->port && port <= id->last_port
				: port == id->port;
}

uint16_t svc_server_port(const struct svc_id *id)
{
	return id->fwmark || svc_is_range(id) ? 0 : id->port;
}

bool svc_id_equal(const struct svc_id *a, const struct svc_id *b)
{
	return !svc_id_cmp(a, b);
}

/* The order of listings, as in ipvsadm: first services by address (family,
 * protocol, address, port, range), then services by mark.
 */
int svc_id_cmp(const struct svc_id *a, const struct svc_id *b)
{
	int d;

	if (a->fwmark != b->fwmark)
		return a->fwmark < b->fwmark ? -1 : 1;
	d = (int)a->af - b->af;
	if (d || a->fwmark)
		return d;
	d = (int)a->proto - b->proto;
	if (!d)
		d = memcmp(&a->addr, &b->addr, sizeof(a->addr));
	if (!d)
		d = (int)a->port - b->port;
	if (!d)
		d = (int)a->prefix_len - b->prefix_len;
	return d ? d : (int)a->last_port - b->last_port;
}

static int bad_address(const char *object, const char *word)
{
	int rc = fail(RC_USAGE, object, "bad address \"%s\"", word);

	hint("try: an address such as 192.0.2.10, or in brackets [2001:db8::10]");
	return rc;
}

static bool ip_parse(const char *word, uint16_t *af, struct ip *addr)
{
	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, word, addr->b) == 1) {
		*af = AF_INET;
		return true;
	}
	if (inet_pton(AF_INET6, word, addr->b) == 1) {
		*af = AF_INET6;
		return true;
	}
	return false;
}

/* Cuts "ADDR", "ADDR:PORT", "[ADDR6]" or "[ADDR6]:PORT" in two; @port is NULL
 * if there is none. @buf is overwritten.
 */
static int split_port(char *buf, const char *object, const char **ip,
		      const char **port)
{
	char *end, *colon = strchr(buf, ':');
	int rc;

	*port = NULL;
	*ip = buf;
	if (buf[0] == '[') {
		end = strchr(buf, ']');
		if (!end || (end[1] && end[1] != ':') || !colon || colon > end)
			return bad_address(object, buf);
		*ip = buf + 1;
		*end = '\0';
		*port = end[1] ? end + 2 : NULL;
	} else if (colon && strchr(colon + 1, ':')) {
		rc = fail(RC_USAGE, object, "bad address \"%s\"", buf);
		hint("try: an IPv6 address goes in brackets: [ADDRESS]:PORT");
		return rc;
	} else if (colon) {
		*colon = '\0';
		*port = colon + 1;
	}
	return RC_OK;
}

/* Sets all members of @end. */
static int parse_endpoint(const char *word, const char *object,
			  struct srv_id *end)
{
	const char *ip, *portword;
	uint32_t n = 0;
	char buf[128];
	int rc;

	if (strlen(word) >= sizeof(buf))
		return bad_address(object, word);
	strcpy(buf, word);
	rc = split_port(buf, object, &ip, &portword);
	if (rc)
		return rc;
	if (!ip_parse(ip, &end->af, &end->addr))
		return bad_address(object, ip);
	end->has_port = !!portword;
	if (portword && !parse_u32(portword, 0, 65535, &n))
		return fail(RC_USAGE, object,
			    "bad port \"%s\": write a number from 0 to 65535",
			    portword);
	end->port = (uint16_t)n;
	return RC_OK;
}

int parse_srv_word(const char *word, const char *object, struct srv_id *id)
{
	memset(id, 0, sizeof(*id));
	return parse_endpoint(word, object, id);
}

int parse_srv_id(struct args *a, const char *object, struct srv_id *id)
{
	const char *word = arg_next(a);
	int rc;

	if (word)
		return parse_srv_word(word, object, id);
	rc = fail(RC_USAGE, object, "no real server named");
	hint("try: ADDR[:PORT], such as 10.0.0.11:8080");
	return rc;
}

static int parse_fwmark(struct args *a, const char *word, bool six,
			struct svc_id *id)
{
	if (!parse_u32(word, 1, UINT32_MAX, &id->fwmark))
		return fail(RC_USAGE, NULL,
			    "bad fwmark \"%s\": write a whole number from 1 to 4294967295",
			    word);
	id->af = six || opt.family == AF_INET6 ? AF_INET6 : AF_INET;
	if (a && arg_accept(a, "inet6"))
		id->af = AF_INET6;
	else if (a && arg_accept(a, "inet"))
		id->af = AF_INET;
	return RC_OK;
}

/* What of a VIP is beyond ADDR:PORT; NULL without. */
struct beyond {
	const char *len, *last;
};

/* Takes "/LEN" and "-PORT" out of @buf. @lens gets room for the first. */
static void split_range(char *buf, char *lens, struct beyond *beyond)
{
	char *slash = strchr(buf, '/'), *end, *dash;

	memset(beyond, 0, sizeof(*beyond));
	if (slash) {
		end = strchr(slash, ':');
		end = end ? end : slash + strlen(slash);
		memcpy(lens, slash + 1, (size_t)(end - slash - 1));
		lens[end - slash - 1] = '\0';
		memmove(slash, end, strlen(end) + 1);
		beyond->len = lens;
	}
	dash = strchr(buf, '-');
	/* ":-1" is a bad port. */
	if (dash && dash > buf && dash[-1] != ':') {
		*dash = '\0';
		beyond->last = dash + 1;
	}
}

static int parse_last_port(const char *word, const char *object, struct svc_id *id)
{
	uint32_t n = id->port;

	if (word && !parse_u32(word, 1, 65535, &n))
		return fail(RC_USAGE, object,
			    "bad last port \"%s\": write a number from 1 to 65535",
			    word);
	if (!id->port)
		return fail(RC_USAGE, object,
			    "a range has ports from 1 to 65535, not port 0");
	if (n < id->port)
		return fail(RC_USAGE, object,
			    "the last port, %u, is before the first one, %u", n, id->port);
	id->last_port = (uint16_t)n;
	return RC_OK;
}

static int parse_len(const char *word, const char *object, struct svc_id *id)
{
	uint32_t most = id->af == AF_INET6 ? 128 : 32, n = most, i;
	struct svc_id whole = *id;
	int rc;

	if (word && !parse_u32(word, 1, most, &n))
		return fail(RC_USAGE, object,
			    "bad prefix length \"%s\": write a number from 1 to %u",
			    word, most);
	id->prefix_len = (uint8_t)n;
	for (i = n; i < most; i++)
		whole.addr.b[i / 8] &= (uint8_t)~(0x80 >> i % 8);
	if (ip_equal(&whole.addr, &id->addr))
		return RC_OK;
	rc = fail(RC_USAGE, object, "%s is not the first address with the prefix",
		  ip_text(id->af, &id->addr));
	hint("try: %s/%u", ip_text(id->af, &whole.addr), n);
	return rc;
}

/* ADDR is in @id, with the first port. */
static int parse_range(const struct beyond *beyond, const char *object,
		       struct svc_id *id)
{
	int rc = parse_last_port(beyond->last, object, id);

	if (!rc)
		rc = parse_len(beyond->len, object, id);
	if (rc || id->port != id->last_port ||
	    id->prefix_len != (id->af == AF_INET6 ? 128 : 32))
		return rc;
	rc = fail(RC_USAGE, object, "a single address and port are no range");
	hint("try: %s %s", proto_name(id->proto),
	     ip_port_text(id->af, &id->addr, id->port));
	return rc;
}

static int parse_vip(const char *proto, const char *word, struct svc_id *id)
{
	static const struct ip zero;
	char object[160], buf[128], lens[128];
	struct srv_id end = { };
	struct beyond beyond;
	int rc;

	snprintf(object, sizeof(object), "%s %s", proto, word);
	if (strlen(word) >= sizeof(buf))
		return bad_address(object, word);
	strcpy(buf, word);
	split_range(buf, lens, &beyond);
	rc = parse_endpoint(buf, object, &end);
	id->af = end.af;
	id->addr = end.addr;
	id->port = end.port;
	if (rc)
		return rc;
	if (!end.has_port) {
		rc = fail(RC_USAGE, object, "the port is missing");
		hint("try: %s %s", proto,
		     ip_port_text(id->af, &id->addr, 80));
		return rc;
	}
	if (ip_equal(&id->addr, &zero) ||
	    (!ip_is_unicast(id->af, &id->addr) &&
	     !(id->af == AF_INET6 && id->addr.b[0] == 0xfe)))
		return fail(RC_USAGE, object,
			    "%s is not an address that clients can connect to",
			    ip_text(id->af, &id->addr));
	return beyond.len || beyond.last ? parse_range(&beyond, object, id) : RC_OK;
}

static int bad_svc_id(const char *word)
{
	static const char *const known[] = {
		"tcp", "udp", "sctp", "fwmark", NULL
	};
	const char *close = word ? suggest(word, known) : NULL;
	int rc;

	rc = word ? fail(RC_USAGE, NULL, "\"%s\" does not name a service", word)
		  : fail(RC_USAGE, NULL, "no service named");
	if (close)
		hint("did you mean: %s", close);
	hint("try: tcp 192.0.2.10:80, udp [2001:db8::10]:53 or fwmark 7");
	return rc;
}

/* PROTO:ADDR:PORT, fwm:N or fwm6:N */
static int parse_svc_word(const char *word, struct svc_id *id)
{
	const char *colon = strchr(word, ':');
	char head[8];

	if (!colon || (size_t)(colon - word) >= sizeof(head))
		return bad_svc_id(word);
	memcpy(head, word, (size_t)(colon - word));
	head[colon - word] = '\0';
	if (!strcmp(head, "fwm"))
		return parse_fwmark(NULL, colon + 1, false, id);
	if (!strcmp(head, "fwm6"))
		return parse_fwmark(NULL, colon + 1, true, id);
	if (proto_parse(head, &id->proto))
		return parse_vip(head, colon + 1, id);
	return bad_svc_id(word);
}

int parse_svc_id(struct args *a, struct svc_id *id)
{
	const char *word = arg_next(a), *rest;
	int rc;

	memset(id, 0, sizeof(*id));
	if (!word)
		return bad_svc_id(NULL);
	if (!strcmp(word, "fwmark")) {
		rc = arg_value(a, NULL, word, &rest);
		return rc ? rc : parse_fwmark(a, rest, false, id);
	}
	if (!proto_parse(word, &id->proto))
		return parse_svc_word(word, id);
	rest = arg_next(a);
	if (!rest) {
		rc = fail(RC_USAGE, word, "the address is missing");
		hint("try: %s 192.0.2.10:80", word);
		return rc;
	}
	return parse_vip(word, rest, id);
}

bool arg_is_svc_id(const struct args *a)
{
	const char *word = arg_peek(a);
	uint16_t proto;

	return word && (proto_parse(word, &proto) || !strcmp(word, "fwmark") ||
			strchr(word, ':'));
}

int parse_prefix(const char *word, const char *object, uint16_t *af,
		 struct ip *addr, uint32_t *len)
{
	char buf[64], *slash;
	size_t used;

	if (strlen(word) >= sizeof(buf))
		return bad_address(object, word);
	strcpy(buf, word);
	slash = strchr(buf, '/');
	if (slash)
		*slash = '\0';
	used = strlen(buf);
	if (buf[0] == '[' && buf[used - 1] == ']') {
		memmove(buf, buf + 1, used - 2);
		buf[used - 2] = '\0';
	}
	if (!ip_parse(buf, af, addr))
		return bad_address(object, buf);
	*len = *af == AF_INET ? 32 : 128;
	if (slash && !parse_u32(slash + 1, 0, *len, len))
		return fail(RC_USAGE, object,
			    "bad prefix length \"%s\": write a number from 0 to %u",
			    slash + 1, *af == AF_INET ? 32 : 128);
	return RC_OK;
}

bool ip_in_prefix(uint16_t af, const struct ip *addr, uint16_t net_af,
		  const struct ip *net, uint32_t len)
{
	uint32_t bytes = len / 8, bits = len % 8;
	uint8_t mask = (uint8_t)(0xff00 >> bits);

	if (af != net_af || memcmp(addr->b, net->b, bytes))
		return false;
	return !bits || !((addr->b[bytes] ^ net->b[bytes]) & mask);
}
