// SPDX-License-Identifier: GPL-2.0
/*
 * Damaged packets.  Half of them get right checksums again, so that they are not
 * dropped at the first look.
 */
#include "hostile.h"

#include <netinet/in.h>
#include <string.h>

enum {
	ETHER		= 14,
	HEADERS		= 100,		/* bytes in which most damage is done */
	LONGEST		= 1514,
};

/* The transport header of a packet; the packet ends at @end. */
struct place {
	size_t	at, end;
	uint8_t	proto;
	bool	fragment;
};

static uint16_t get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static void put16(uint8_t *p, uint16_t value)
{
	p[0] = value >> 8;
	p[1] = value;
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* -- finding headers */

static bool find_ipv4(const uint8_t *ip, size_t len, struct place *p)
{
	if (len < 20)
		return false;
	p->at = (ip[0] & 15) * 4;
	p->end = min(get16(ip + 2), len);
	p->proto = ip[9];
	p->fragment = get16(ip + 6) & 0x3fff;
	return p->at >= 20 && p->at <= p->end;
}

static bool is_extension(uint8_t proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_FRAGMENT ||
	       proto == IPPROTO_DSTOPTS || proto == IPPROTO_AH;
}

static bool find_ipv6(const uint8_t *ip, size_t len, struct place *p)
{
	if (len < 40)
		return false;
	*p = (struct place) { .at = 40, .end = min(40 + get16(ip + 4), len), .proto = ip[6] };
	while (is_extension(p->proto) && p->at + 8 <= p->end) {
		const uint8_t *ext = ip + p->at;

		if (p->proto == IPPROTO_FRAGMENT) {
			p->fragment |= get16(ext + 2) & 0xfff9;
			p->at += 8;
		} else {
			p->at += p->proto == IPPROTO_AH ? ext[1] * 4 + 8 : ext[1] * 8 + 8;
		}
		p->proto = ext[0];
	}
	return p->at <= p->end;
}

static bool find(const uint8_t *ip, size_t len, struct place *p)
{
	if (!len)
		return false;
	return ip[0] >> 4 == 4 ? find_ipv4(ip, len, p) : ip[0] >> 4 == 6 && find_ipv6(ip, len, p);
}

/* -- checksums */

static uint32_t sum(const uint8_t *data, size_t len, uint32_t before)
{
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		before += get16(data + i);
	return len % 2 ? before + (data[len - 1] << 8) : before;
}

static uint16_t folded(uint32_t total)
{
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return ~total;
}

static uint32_t crc32c(const uint8_t *data, size_t len)
{
	static uint32_t table[256];
	uint32_t crc = ~0u;
	int i, bit;

	for (i = 1; !table[255] && i < 256; i++) {
		table[i] = i;
		for (bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78 : 0);
	}
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *data++) & 255];
	return ~crc;
}

/* The offset of a transport header's checksum, or 0. */
static size_t checksum_at(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return 16;
	case IPPROTO_UDP:
		return 6;
	case IPPROTO_SCTP:
		return 8;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return 2;
	}
	return 0;
}

static void repair_transport(uint8_t *ip, const struct place *p)
{
	size_t len = p->end - p->at, off = checksum_at(p->proto);
	uint8_t *l4 = ip + p->at;
	uint32_t total = 0;

	if (!off || p->fragment || len < off + 4)
		return;
	if (p->proto == IPPROTO_SCTP) {
		memset(l4 + off, 0, 4);
		total = crc32c(l4, len);
		l4[off] = total;
		l4[off + 1] = total >> 8;
		l4[off + 2] = total >> 16;
		l4[off + 3] = total >> 24;
		return;
	}
	put16(l4 + off, 0);
	if (p->proto != IPPROTO_ICMP) {
		total = ip[0] >> 4 == 4 ? sum(ip + 12, 8, 0) : sum(ip + 8, 32, 0);
		total += p->proto + len;
	}
	total = folded(sum(l4, len, total));
	put16(l4 + off, total || p->proto != IPPROTO_UDP ? total : 0xffff);
}

void repair_packet(uint8_t *ip, size_t len, int depth)
{
	struct place p;

	if (!find(ip, len, &p))
		return;
	if (ip[0] >> 4 == 4) {
		put16(ip + 10, 0);
		put16(ip + 10, folded(sum(ip, (ip[0] & 15) * 4, 0)));
	}
	if ((p.proto == IPPROTO_IPIP || p.proto == IPPROTO_IPV6) && depth < 3)
		repair_packet(ip + p.at, p.end - p.at, depth + 1);
	else
		repair_transport(ip, &p);
}

/* -- damage */

/* Sources of other flows: random clients, or addresses that are no source at all. */
static void spoof(uint8_t *ip, size_t len)
{
	static const uint8_t odd[][4] = { { 0, 0, 0, 0 }, { 255, 255, 255, 255 }, { 127, 0, 0, 1 },
					  { 224, 0, 0, 1 }, { 10, 255, 255, 255 } };
	bool six = ip[0] >> 4 == 6;
	uint8_t *source = ip + (six ? 8 : 12);
	struct place p;
	int i;

	if (len < (six ? 40 : 20))
		return;
	if (one_in(16)) {
		memcpy(source, source + (six ? 16 : 4), six ? 16 : 4);
	} else if (one_in(16)) {
		if (six)
			source[0] = (uint8_t[]) { 0, 0xff, 0xfe, 0xfc }[below(4)];
		else
			memcpy(source, odd[below(5)], 4);
	} else if (source[0] == 10) {
		for (i = 1; i < 4; i++)
			source[i] = below(256);
	} else if (six && source[5] == 0x0c) {
		for (i = 6; i < 16; i++)
			source[i] = below(256);
	}
	if (one_in(2) && find(ip, len, &p) && !p.fragment && p.at + 2 <= p.end)
		put16(ip + p.at, below(65536));
}

static void edge(struct input *in)
{
	static const uint16_t edges[] = { 0, 1, 4, 7, 8, 19, 20, 27, 28, 39, 40, 0x1fff, 0x2000,
					  0x2001, 0x7fff, 0x8000, 0xfffe, 0xffff };
	size_t at = ETHER + 2 * below(HEADERS / 2);

	if (at + 2 <= in->len)
		put16(in->data + at, edges[below(sizeof(edges) / sizeof(*edges))]);
}

/* Sets the packet's length to what it is. */
static void fit(struct input *in)
{
	uint8_t *ip = in->data + ETHER;
	size_t len = in->len - ETHER;
	struct place p;

	if (!find(ip, len, &p))
		return;
	put16(ip + (ip[0] >> 4 == 4 ? 2 : 4), ip[0] >> 4 == 4 ? len : len - 40);
	if (p.proto == IPPROTO_UDP && p.at + 8 <= len)
		put16(ip + p.at + 4, len - p.at);
}

static void cut(struct input *in)
{
	size_t len = in->len - ETHER;

	in->len = ETHER + below((one_in(2) ? min(len, HEADERS) : len) + 1);
	if (one_in(2))
		fit(in);
}

static void pad(struct input *in)
{
	size_t more = (size_t[]) { 1, 3, 8, 60, 400 }[below(5)];

	if (in->len + more > LONGEST)
		return;
	memset(in->data + in->len, one_in(2) ? 0 : below(256), more);
	in->len += more;
	if (one_in(2))
		fit(in);
}

static void lengths(struct input *in)
{
	uint8_t *ip = in->data + ETHER;
	size_t len = in->len - ETHER, at;
	struct place p;

	if (!find(ip, len, &p))
		return;
	at = p.proto == IPPROTO_UDP ? p.at + 4 : p.at + 12;
	switch (below(4)) {
	case 0:
		put16(ip + (ip[0] >> 4 == 4 ? 2 : 4), one_in(2) ? below(65536) : len + below(9) - 4);
		return;
	case 1:
		if (ip[0] >> 4 == 4)
			ip[0] = 0x40 | below(16);
		else if (p.at > 40)
			ip[41] = one_in(2) ? below(4) : below(256);	/* an extension header's */
		return;
	}
	if (at + 2 > len)
		return;
	if (p.proto == IPPROTO_TCP)
		ip[at] = below(16) << 4;
	else
		put16(ip + at, one_in(2) ? below(65536) : len - p.at + below(9) - 4);
}

static void checksum(struct input *in)
{
	uint8_t *ip = in->data + ETHER;
	size_t off;
	struct place p;

	if (!find(ip, in->len - ETHER, &p))
		return;
	off = checksum_at(p.proto);
	if (off && p.at + off + 2 <= in->len - ETHER)
		put16(ip + p.at + off, one_in(2) ? 0 : below(65536));
	else if (ip[0] >> 4 == 4)
		put16(ip + 10, below(65536));
}

static void protocol(struct input *in)
{
	static const uint8_t known[] = { 0, 1, 4, 6, 17, 41, 43, 44, 47, 50, 51, 58, 59, 60, 132, 255 };
	uint8_t *ip = in->data + ETHER;

	if (in->len >= ETHER + 40)
		ip[ip[0] >> 4 == 4 ? 9 : one_in(2) ? 6 : 40] = known[below(sizeof(known))];
}

static void fragments(struct input *in)
{
	uint8_t *ip = in->data + ETHER;

	if (in->len >= ETHER + 20 && ip[0] >> 4 == 4)
		put16(ip + 6, below(8) << 13 | (one_in(2) ? below(4) : below(8192)));
}

void damage_packet(struct input *in)
{
	uint8_t *ip = in->data + ETHER;
	int n = (int[]) { 0, 1, 1, 1, 2, 2, 3, 8 }[below(8)];

	if (in->len > ETHER && below(8) < 3) {
		spoof(ip, in->len - ETHER);
		repair_packet(ip, in->len - ETHER, 0);
	}
	while (n-- && in->len > ETHER) {
		switch (below(12)) {
		case 0: case 1: flip_bit(in, ETHER); break;
		case 2: any_byte(in, ETHER); break;
		case 3: case 4: edge(in); break;
		case 5: cut(in); break;
		case 6: pad(in); break;
		case 7: case 8: lengths(in); break;
		case 9: checksum(in); break;
		case 10: protocol(in); break;
		case 11: fragments(in); break;
		}
	}
	if (one_in(2) && in->len > ETHER)
		repair_packet(ip, in->len - ETHER, 0);
	if (one_in(256))
		any_byte(in, ETHER - 2);
}
