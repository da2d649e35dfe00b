// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "rule_match.h"

/* A field of the packet: an address or a number. */
struct field {
	bool known;
	uint16_t af;		/* of an address; 0: it is a number */
	struct ip addr;
	uint32_t number;
};

static enum answer invert(enum answer a)
{
	return a == ANSWER_MAYBE ? a : a == ANSWER_YES ? ANSWER_NO : ANSWER_YES;
}

static bool parse_addr(const json_t *value, uint16_t af, struct ip *ip)
{
	const char *text = json_string_value(value);

	memset(ip, 0, sizeof(*ip));
	return text && inet_pton(af, text, ip->b) == 1;
}

static bool parse_number(const json_t *value, uint32_t *number)
{
	static const struct { const char *name; uint32_t value; } names[] = {
		{ "tcp", IPPROTO_TCP }, { "udp", IPPROTO_UDP },
		{ "sctp", IPPROTO_SCTP }, { "icmp", IPPROTO_ICMP },
		{ "ipv6-icmp", IPPROTO_ICMPV6 }, { "icmpv6", IPPROTO_ICMPV6 },
		{ "ah", IPPROTO_AH }, { "esp", IPPROTO_ESP }, { "vrrp", 112 },
		{ "ipv4", AF_INET }, { "ipv6", AF_INET6 },
	};
	const char *text = json_string_value(value);
	size_t i;

	*number = (uint32_t)json_integer_value(value);
	for (i = 0; text && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i].name)) {
			*number = names[i].value;
			return true;
		}
	return json_is_integer(value);
}

static enum answer in_prefix(const struct field *f, const json_t *prefix)
{
	struct ip net;

	if (!f->af || !parse_addr(json_object_get(prefix, "addr"), f->af, &net))
		return ANSWER_MAYBE;
	return ip_in_prefix(f->af, &f->addr, f->af, &net, (uint32_t)
			    json_integer_value(json_object_get(prefix, "len")));
}

static enum answer in_range(const struct field *f, const json_t *range)
{
	const json_t *from = json_array_get(range, 0), *to = json_array_get(range, 1);
	struct ip a, b;
	uint32_t x, y;

	if (f->af)
		return parse_addr(from, f->af, &a) && parse_addr(to, f->af, &b) ?
		       memcmp(f->addr.b, a.b, 16) >= 0 &&
		       memcmp(f->addr.b, b.b, 16) <= 0 : ANSWER_MAYBE;
	return parse_number(from, &x) && parse_number(to, &y) ?
	       f->number >= x && f->number <= y : ANSWER_MAYBE;
}

/* The right side: a value, a prefix, a range, or a set of these. */
static enum answer equals(const struct field *f, const json_t *right)
{
	enum answer all = ANSWER_NO, one;
	const json_t *in, *each;
	uint32_t number;
	struct ip addr;
	size_t i;

	in = json_object_get(right, "set");
	if (json_is_array(in)) {
		json_array_foreach(in, i, each) {
			one = equals(f, each);
			if (one == ANSWER_YES)
				return one;
			all = one == ANSWER_MAYBE ? one : all;
		}
		return all;
	}
	in = json_object_get(right, "prefix");
	if (in)
		return in_prefix(f, in);
	in = json_object_get(right, "range");
	if (in)
		return in_range(f, in);
	if (f->af)
		return parse_addr(right, f->af, &addr) ?
		       (enum answer)ip_equal(&f->addr, &addr) : ANSWER_MAYBE;
	return parse_number(right, &number) ?
	       (enum answer)(f->number == number) : ANSWER_MAYBE;
}

static void take_addr(struct field *f, uint16_t af, const struct ip *addr)
{
	f->known = addr;
	f->af = af;
	if (addr)
		f->addr = *addr;
}

static void take_number(struct field *f, uint32_t number)
{
	f->known = number;
	f->number = number;
}

/* Finds the field @name of header @header; false if the packet has no such header. */
static bool take_field(const struct rule_packet *p, const char *header,
		       const char *name, struct field *f)
{
	uint32_t proto;
	bool ip = !strcmp(header, "ip");
	json_t *word = json_string(header);

	if (ip || !strcmp(header, "ip6")) {
		json_decref(word);
		if (!strcmp(name, "saddr"))
			take_addr(f, p->af, p->saddr);
		else if (!strcmp(name, "daddr"))
			take_addr(f, p->af, p->daddr);
		else if (!strcmp(name, "protocol") || !strcmp(name, "nexthdr"))
			take_number(f, p->proto);
		return p->af == (ip ? AF_INET : AF_INET6);
	}
	if (!strcmp(name, "sport"))
		take_number(f, p->sport);
	else if (!strcmp(name, "dport"))
		take_number(f, p->dport);
	ip = strcmp(header, "th") && parse_number(word, &proto) && proto != p->proto;
	json_decref(word);
	return !ip;
}

/* A first packet is new; of others nothing is known. */
static enum answer match_state(const json_t *right, const struct rule_packet *p)
{
	const json_t *list = json_object_get(right, "set"), *each;
	size_t i;

	if (!p->first)
		return ANSWER_MAYBE;
	list = list ? list : right;
	if (json_is_string(list))
		return !strcmp(json_string_value(list), "new");
	json_array_foreach(list, i, each)
		if (json_is_string(each) && !strcmp(json_string_value(each), "new"))
			return ANSWER_YES;
	return json_is_array(list) ? ANSWER_NO : ANSWER_MAYBE;
}

static enum answer match_meta(const char *key, const json_t *right,
			      const struct rule_packet *p)
{
	const char *text = json_string_value(right);
	struct field f = { 0 };

	/* What comes from the network does not come by lo. */
	if ((!strcmp(key, "iifname") || !strcmp(key, "iif")) && text)
		return strcmp(text, "lo") ? ANSWER_MAYBE : ANSWER_NO;
	if (!strcmp(key, "l4proto"))
		take_number(&f, p->proto);
	else if (!strcmp(key, "nfproto"))
		take_number(&f, p->af);
	return f.known ? equals(&f, right) : ANSWER_MAYBE;
}

static enum answer match_left(const json_t *left, const json_t *right,
			      const struct rule_packet *p)
{
	const json_t *payload = json_object_get(left, "payload");
	const json_t *meta = json_object_get(left, "meta");
	const json_t *ct = json_object_get(left, "ct");
	const char *key = json_string_value(json_object_get(meta ? meta : ct, "key"));
	const char *header = json_string_value(json_object_get(payload, "protocol"));
	const char *name = json_string_value(json_object_get(payload, "field"));
	struct field f = { 0 };

	if (ct && key)
		return strcmp(key, "state") ? ANSWER_MAYBE : match_state(right, p);
	if (meta && key)
		return match_meta(key, right, p);
	if (!header || !name)
		return ANSWER_MAYBE;
	if (!take_field(p, header, name, &f))
		return ANSWER_NO;
	return f.known ? equals(&f, right) : ANSWER_MAYBE;
}

enum answer rule_match(const json_t *match, const struct rule_packet *p)
{
	const char *op = json_string_value(json_object_get(match, "op"));
	const json_t *left = json_object_get(match, "left");
	const json_t *right = json_object_get(match, "right");

	if (!op || !left || !right)
		return ANSWER_MAYBE;
	if (!strcmp(op, "==") || !strcmp(op, "in"))
		return match_left(left, right, p);
	return strcmp(op, "!=") ? ANSWER_MAYBE : invert(match_left(left, right, p));
}
