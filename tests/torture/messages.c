// SPDX-License-Identifier: GPL-2.0
/*
 * Damaged generic netlink messages.  When attributes appear or go, the lengths of the
 * nests around them mostly follow, so that the damage is seen where it was done.
 */
#include "hostile.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <string.h>

enum {
	HEAD	= NLMSG_HDRLEN + GENL_HDRLEN,
	MOST	= 256,		/* attributes looked at */
};

/* An attribute at offset @at; its nest is found[parent], -1: the message. */
struct place {
	size_t	at;
	int	parent;
};

struct found {
	struct place	places[MOST];
	int		count;
};

static struct nlattr *attribute(struct input *in, const struct found *found, int n)
{
	return (struct nlattr *)(in->data + found->places[n].at);
}

static void walk(struct input *in, size_t at, size_t end, int parent, struct found *found)
{
	while (at + NLA_HDRLEN <= end && found->count < MOST) {
		const struct nlattr *a = (const struct nlattr *)(in->data + at);
		size_t len = a->nla_len;
		int number = found->count++;

		if (len < NLA_HDRLEN || at + len > end) {
			found->count--;
			return;
		}
		found->places[number] = (struct place) { at, parent };
		if (a->nla_type & NLA_F_NESTED)
			walk(in, at + NLA_HDRLEN, at + len, number, found);
		at += NLA_ALIGN(len);
	}
}

/* The nests around attribute @n grow by @more bytes. */
static void grow(struct input *in, const struct found *found, int n, int more)
{
	if (one_in(16))
		return;
	for (n = found->places[n].parent; n >= 0; n = found->places[n].parent)
		attribute(in, found, n)->nla_len += more;
}

static size_t whole(struct input *in, const struct found *found, int n)
{
	size_t len = NLA_ALIGN(attribute(in, found, n)->nla_len);
	size_t rest = in->len - found->places[n].at;

	return len < rest ? len : rest;
}

static void repeat(struct input *in, const struct found *found, int n)
{
	size_t size = whole(in, found, n), at = found->places[n].at;

	if (in->len + size > ROOM)
		return;
	memmove(in->data + at + size, in->data + at, in->len - at);
	in->len += size;
	grow(in, found, n, size);
}

static void drop(struct input *in, const struct found *found, int n)
{
	size_t size = whole(in, found, n), at = found->places[n].at;

	grow(in, found, n, -(int)size);
	memmove(in->data + at, in->data + at + size, in->len - at - size);
	in->len -= size;
}

/* Makes the payload longer or shorter, with the length that belongs to it. */
static void resize(struct input *in, const struct found *found, int n)
{
	struct nlattr *a = attribute(in, found, n);
	size_t end = found->places[n].at + whole(in, found, n);
	int more = one_in(2) ? 4 : -4;

	if (a->nla_len + more < NLA_HDRLEN || in->len + more > ROOM || end + more > ROOM)
		return;
	grow(in, found, n, more);
	a->nla_len += more;
	memmove(in->data + end + more, in->data + end, in->len - end);
	if (more > 0)
		memset(in->data + end, below(256), more);
	in->len += more;
}

static void value(struct input *in, const struct found *found, int n)
{
	static const uint32_t edges[] = { 0, 1, 2, 5, 10, 255, 0x7fff, 0xffff, 0x7fffffff, 0x80000000,
					  0xfffffffe, 0xffffffff };
	uint8_t *data = in->data + found->places[n].at + NLA_HDRLEN;
	int size = attribute(in, found, n)->nla_len - NLA_HDRLEN, i;
	uint32_t edge = edges[below(12)];

	if (size <= 4 && one_in(2)) {
		memcpy(data, &edge, size);
		return;
	}
	for (i = one_in(2) && size ? (int)below(size) : 0; i < size; i++) {
		data[i] = one_in(4) ? 0 : below(256);
		if (one_in(3))
			break;
	}
}

static void type(struct nlattr *a)
{
	switch (below(4)) {
	case 0:
		a->nla_type ^= NLA_F_NESTED;
		break;
	case 1:
		a->nla_type ^= NLA_F_NET_BYTEORDER;
		break;
	case 2:
		a->nla_type = (a->nla_type & NLA_F_NESTED) | below(24);
		break;
	default:
		a->nla_type = below(65536);
	}
}

static void length(struct nlattr *a)
{
	a->nla_len = (uint16_t[]) { 0, 1, 3, 4, 5, 8, a->nla_len - 1, a->nla_len + 1, a->nla_len + 4,
				    a->nla_len - 4, 0x7fff, 0xffff }[below(12)];
}

static void head(struct input *in)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)in->data;
	struct genlmsghdr *genl = (struct genlmsghdr *)(in->data + NLMSG_HDRLEN);

	switch (below(4)) {
	case 0:
		nlh->nlmsg_flags ^= 1 << below(12);
		break;
	case 1:
		genl->cmd = below(20);
		break;
	case 2:
		genl->version = below(3);
		break;
	default:
		genl->reserved = below(65536);
	}
}

static void damage_attribute(struct input *in)
{
	static struct found found;
	int n;

	found.count = 0;
	walk(in, HEAD, in->len, -1, &found);
	if (!found.count)
		return;
	n = below(found.count);
	switch (below(8)) {
	case 0: length(attribute(in, &found, n)); break;
	case 1: type(attribute(in, &found, n)); break;
	case 2: repeat(in, &found, n); break;
	case 3: drop(in, &found, n); break;
	case 4: resize(in, &found, n); break;
	default: value(in, &found, n);
	}
}

void damage_message(struct input *in)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)in->data;
	int n = (int[]) { 0, 1, 1, 1, 2, 2, 3, 6 }[below(8)];

	while (n--) {
		switch (below(16)) {
		case 0: flip_bit(in, HEAD); break;
		case 1: any_byte(in, HEAD); break;
		case 2: in->len = HEAD + below(in->len - HEAD + 1); break;
		case 3: head(in); break;
		default: damage_attribute(in);
		}
	}
	/* Another length than that of the data ends in the netlink core. */
	nlh->nlmsg_len = one_in(256) ? below(2 * in->len) : in->len;
}
