// SPDX-License-Identifier: GPL-2.0
/* A batch is one message, packed here: it may be too large for libnl. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/genetlink.h>
#include <linux/ip_vs.h>
#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "kern.h"
#include "kern_msg.h"
#include "kern_batch.h"
#include "kern_l4lb.h"
#include "model.h"
#include "must.h"
#include "program.h"
#include "snat.h"
#include "wire.h"

enum { NEST_MAX = 60000 };	/* an attribute's length has 16 bits */

/* The service or server that begins at an offset of the message. */
struct place {
	size_t offset;
	const struct service *svc;
	const struct server *srv;
};

struct batch {
	unsigned char *data;
	size_t len, size;
	struct place *places;
	size_t nplaces;
	const struct service *open;	/* its entry is not complete */
	size_t entry, dests;		/* offsets of its nests */
};

/* There may be keys in it. */
static void wipe(struct batch *b)
{
	explicit_bzero(b->data, b->len);
	free(b->data);
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	wipe(b);
	free(b->places);
	free(b);
}

/* Unlike realloc(), leaves no copy behind. */
static void double_size(struct batch *b)
{
	unsigned char *larger = must(malloc(2 * b->size));

	memcpy(larger, b->data, b->len);
	wipe(b);
	b->data = larger;
	b->size *= 2;
}

/* Appends @n zeroed bytes. */
static void *grow(struct batch *b, size_t n)
{
	void *room;

	while (b->len + n > b->size)
		double_size(b);
	room = memset(b->data + b->len, 0, n);
	b->len += n;
	return room;
}

static void put(struct batch *b, int type, const void *data, size_t len)
{
	struct nlattr *a = grow(b, NLA_HDRLEN + NLA_ALIGN(len));

	a->nla_type = (uint16_t)type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + len);
	memcpy((char *)a + NLA_HDRLEN, data, len);
}

static void put_u32(struct batch *b, int type, uint32_t value)
{
	put(b, type, &value, sizeof(value));
}

static void put_u16(struct batch *b, int type, uint16_t value)
{
	put(b, type, &value, sizeof(value));
}

struct batch *batch_new(enum l4lb_set_mode mode)
{
	struct batch *b = must(calloc(1, sizeof(*b)));

	b->size = 1 << 16;
	b->data = must(malloc(b->size));
	b->len = NLMSG_HDRLEN + GENL_HDRLEN;
	put_u32(b, L4LB_ATTR_MODE, mode);
	return b;
}

static size_t nest_begin(struct batch *b, int type)
{
	size_t at = b->len;

	put(b, type | NLA_F_NESTED, "", 0);
	return at;
}

static void nest_end(struct batch *b, size_t at)
{
	struct nlattr *a = (struct nlattr *)(b->data + at);

	a->nla_len = (uint16_t)(b->len - at);
}

void batch_timeouts(struct batch *b, const struct kern_timeouts *t)
{
	size_t nest = nest_begin(b, L4LB_ATTR_TIMEOUTS);

	put_u32(b, L4LB_TIMEOUTS_ATTR_TCP, t->tcp);
	put_u32(b, L4LB_TIMEOUTS_ATTR_TCP_FIN, t->tcp_fin);
	put_u32(b, L4LB_TIMEOUTS_ATTR_UDP, t->udp);
	nest_end(b, nest);
}

static void put_place(struct batch *b, const struct service *svc,
		      const struct server *srv)
{
	if (!(b->nplaces & (b->nplaces - 1)))
		b->places = must(reallocarray(b->places, b->nplaces ?
					      2 * b->nplaces : 1,
					      sizeof(*b->places)));
	b->places[b->nplaces++] = (struct place){ b->len, svc, srv };
}

static void put_range(struct batch *b, const struct svc_id *id)
{
	size_t nest = nest_begin(b, L4LB_SVC_ATTR_RANGE);

	put(b, L4LB_RANGE_ATTR_ADDR, &id->addr, sizeof(id->addr));
	put(b, L4LB_RANGE_ATTR_PREFIX_LEN, &id->prefix_len, 1);
	put_u16(b, L4LB_RANGE_ATTR_PORT, htons(id->port));
	put_u16(b, L4LB_RANGE_ATTR_LAST_PORT, htons(id->last_port));
	nest_end(b, nest);
}

static void put_ident(struct batch *b, const struct svc_id *id)
{
	put_u16(b, IPVS_SVC_ATTR_AF, id->af);
	if (id->fwmark) {
		put_u32(b, IPVS_SVC_ATTR_FWMARK, id->fwmark);
		return;
	}
	put_u16(b, IPVS_SVC_ATTR_PROTOCOL, id->proto);
	if (svc_is_range(id)) {
		put_range(b, id);
		return;
	}
	put(b, IPVS_SVC_ATTR_ADDR, &id->addr, sizeof(id->addr));
	put_u16(b, IPVS_SVC_ATTR_PORT, htons(id->port));
}

static void put_program(struct batch *b, int fd, const char *path)
{
	put_u32(b, L4LB_OPTION_ATTR_FD, (uint32_t)fd);
	if (path)
		put(b, L4LB_OPTION_ATTR_PATH, path, strlen(path) + 1);
}

static void put_options(struct batch *b, const struct service *svc)
{
	size_t list = nest_begin(b, L4LB_ATTR_OPTIONS), nest, i;
	int fd;

	for (i = 0; i < svc->noptions; i++) {
		const struct svc_option *o = &svc->options[i];

		nest = nest_begin(b, 1);
		put(b, L4LB_OPTION_ATTR_NAME, o->name, strlen(o->name) + 1);
		fd = program_fd(o);
		if (o->key)
			put(b, L4LB_OPTION_ATTR_KEY, o->key, L4LB_KEY_LEN);
		else if (fd >= 0 || (o->path && !o->value))
			put_program(b, fd, o->path);
		else
			put_u32(b, L4LB_OPTION_ATTR_VALUE, o->value);
		nest_end(b, nest);
	}
	nest_end(b, list);
}

static void put_snat(struct batch *b, const struct policy *policy)
{
	size_t nest = nest_begin(b, L4LB_POLICY_ATTR_SNAT), size = snat_size(policy);

	put(b, L4LB_SNAT_ATTR_FIRST, policy->snat[0].b, size);
	put(b, L4LB_SNAT_ATTR_LAST, policy->snat[1].b, size);
	nest_end(b, nest);
}

static void put_policy(struct batch *b, const struct policy *policy)
{
	size_t nest = nest_begin(b, L4LB_ATTR_POLICY);
	int i;

	for (i = 1; i <= L4LB_POLICY_ATTR_MAX; i++)
		if (policy->value[i] && i != L4LB_POLICY_ATTR_SNAT)
			put_u32(b, i, policy->value[i]);
	if (snat_size(policy))
		put_snat(b, policy);
	nest_end(b, nest);
}

static void put_claim(struct batch *b, const struct policy *policy)
{
	const uint8_t on = 1;

	if (policy->owner[0])
		put(b, L4LB_ATTR_OWNER, policy->owner,
		    strlen(policy->owner) + 1);
	if (policy->value[POLICY_PROTECTED])
		put(b, L4LB_ATTR_PROTECTED, &on, 1);
	if (policy->shadow[0])
		put(b, L4LB_ATTR_SHADOW, policy->shadow,
		    strlen(policy->shadow) + 1);
}

static void entry_end(struct batch *b)
{
	if (!b->open)
		return;
	nest_end(b, b->dests);
	nest_end(b, b->entry);
	b->open = NULL;
}

/* ENTRY_MORE: only more servers of the service before it. */
enum entry_kind { ENTRY_MORE, ENTRY_WHOLE, ENTRY_EXACT, ENTRY_REMOVE };

static void put_settings(struct batch *b, const struct service *svc)
{
	const uint32_t flags[2] = { svc->flags & ~IP_VS_SVC_F_HASHED, ~0u };

	put(b, IPVS_SVC_ATTR_SCHED_NAME, svc->scheduler,
	    strlen(svc->scheduler) + 1);
	put(b, IPVS_SVC_ATTR_FLAGS, flags, sizeof(flags));
	put_u32(b, IPVS_SVC_ATTR_TIMEOUT, svc->timeout);
	put_u32(b, IPVS_SVC_ATTR_NETMASK, svc->netmask);
	if (svc->pe[0])
		put(b, IPVS_SVC_ATTR_PE_NAME, svc->pe, strlen(svc->pe) + 1);
}

static void entry_begin(struct batch *b, const struct service *svc,
			enum entry_kind kind)
{
	bool whole = kind == ENTRY_WHOLE || kind == ENTRY_EXACT;
	size_t nest;

	entry_end(b);
	put_place(b, svc, NULL);
	b->open = svc;
	b->entry = nest_begin(b, L4LB_ATTR_ENTRY);
	nest = nest_begin(b, L4LB_ATTR_SERVICE);
	put_ident(b, &svc->id);
	if (whole)
		put_settings(b, svc);
	nest_end(b, nest);
	if (whole && svc->noptions)
		put_options(b, svc);
	if (whole && policy_has_values(&svc->policy))
		put_policy(b, &svc->policy);
	if (whole)
		put_claim(b, &svc->policy);
	if (kind == ENTRY_EXACT)
		put(b, L4LB_ATTR_EXACT, "", 0);
	if (kind == ENTRY_REMOVE)
		put(b, L4LB_ATTR_REMOVE, "", 0);
	b->dests = nest_begin(b, L4LB_ATTR_DESTS);
}

void batch_service(struct batch *b, const struct service *svc)
{
	entry_begin(b, svc, ENTRY_WHOLE);
}

void batch_service_exact(struct batch *b, const struct service *svc)
{
	entry_begin(b, svc, ENTRY_EXACT);
}

void batch_remove(struct batch *b, const struct service *svc)
{
	entry_begin(b, svc, ENTRY_REMOVE);
}

void batch_server(struct batch *b, const struct service *svc,
		  const struct server *srv)
{
	size_t nest;

	if (b->open != svc)
		entry_begin(b, svc, ENTRY_WHOLE);
	else if (b->len - b->entry > NEST_MAX)
		entry_begin(b, svc, ENTRY_MORE);
	put_place(b, svc, srv);
	nest = nest_begin(b, 1);
	put(b, IPVS_DEST_ATTR_ADDR, &srv->addr, sizeof(srv->addr));
	put_u16(b, IPVS_DEST_ATTR_PORT, htons(srv->port));
	put_u16(b, IPVS_DEST_ATTR_ADDR_FAMILY, srv->af);
	put_u32(b, IPVS_DEST_ATTR_FWD_METHOD,
		srv->forward & IP_VS_CONN_F_FWD_MASK);
	put_u32(b, IPVS_DEST_ATTR_WEIGHT, srv->weight);
	put_u32(b, IPVS_DEST_ATTR_U_THRESH, srv->max_conns);
	put_u32(b, IPVS_DEST_ATTR_L_THRESH, srv->min_conns);
	put(b, IPVS_DEST_ATTR_TUN_TYPE, &srv->tun_type, 1);
	put_u16(b, IPVS_DEST_ATTR_TUN_PORT, htons(srv->tun_port));
	put_u16(b, IPVS_DEST_ATTR_TUN_FLAGS, srv->tun_flags);
	nest_end(b, nest);
}

/* The last service or server that begins at or before @offset, if any. */
static void find_place(const struct batch *b, size_t offset,
		       const struct service **svc, const struct server **srv)
{
	size_t low = 0, high = b->nplaces;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (b->places[mid].offset <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return;
	*svc = b->places[low - 1].svc;
	*srv = b->places[low - 1].srv;
}

int batch_send(struct batch *b, const struct service **svc,
	       const struct server **srv)
{
	size_t offset;
	int rc;

	*svc = NULL;
	*srv = NULL;
	entry_end(b);
	rc = wire_own_call_raw(b->data, b->len, L4LB_CMD_SET_SERVICES,
			       &offset);
	if (rc && offset)
		find_place(b, offset, svc, srv);
	return rc;
}

/* ---- reading ---- */

static void take_options(struct nlattr *list, struct service *svc)
{
	struct nlattr *tb[L4LB_OPTION_ATTR_MAX + 1], *nest;
	char name[L4LB_NAME_LEN];
	int left;

	nla_for_each_nested(nest, list, left) {
		if (nla_parse_nested(tb, L4LB_OPTION_ATTR_MAX, nest, NULL) < 0 ||
		    !tb[L4LB_OPTION_ATTR_NAME] || !tb[L4LB_OPTION_ATTR_VALUE])
			continue;
		nla_strlcpy(name, tb[L4LB_OPTION_ATTR_NAME], sizeof(name));
		service_option_set(svc, name,
				   nla_get_u32(tb[L4LB_OPTION_ATTR_VALUE]),
				   tb[L4LB_OPTION_ATTR_PATH] ?
				   nla_get_string(tb[L4LB_OPTION_ATTR_PATH]) : "");
	}
}

static void take_entry(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *top[L4LB_ATTR_MAX + 1], *tb[L4LB_ATTR_MAX + 1];
	struct nlattr *attrs[SVC_ATTR_MAX + 1];
	struct nlattr *dest[IPVS_DEST_ATTR_MAX + 1], *nest;
	struct service_list *list = arg;
	struct service *svc;
	int left;

	if (genlmsg_parse(nlh, 0, top, L4LB_ATTR_MAX, NULL) < 0 ||
	    !top[L4LB_ATTR_ENTRY] ||
	    nla_parse_nested(tb, L4LB_ATTR_MAX, top[L4LB_ATTR_ENTRY], NULL) < 0 ||
	    !tb[L4LB_ATTR_SERVICE] ||
	    nla_parse_nested(attrs, SVC_ATTR_MAX, tb[L4LB_ATTR_SERVICE],
			     NULL) < 0)
		return;
	if (attrs[IPVS_SVC_ATTR_SCHED_NAME]) {
		svc = service_append(list);
		kern_get_service(attrs, svc);
		if (tb[L4LB_ATTR_OPTIONS])
			take_options(tb[L4LB_ATTR_OPTIONS], svc);
		l4lb_take_claim(tb, svc);
		if (tb[L4LB_ATTR_POLICY])
			l4lb_take_policy(tb[L4LB_ATTR_POLICY], svc);
		l4lb_take_counts(tb, svc);
	} else if (list->n) {
		svc = &list->v[list->n - 1];
	} else {
		return;
	}
	if (!tb[L4LB_ATTR_DESTS])
		return;
	nla_for_each_nested(nest, tb[L4LB_ATTR_DESTS], left)
		if (nla_parse_nested(dest, IPVS_DEST_ATTR_MAX, nest, NULL) >= 0)
			kern_get_server(dest, svc, server_append(svc));
}

static int list_by(struct service_list *list, bool live, bool ranges,
		   void (*put_filter)(struct nl_msg *msg, const struct svc_id *id),
		   const struct svc_id *id)
{
	struct nl_msg *msg = wire_own_request(L4LB_CMD_GET_SERVICES,
					      NLM_F_DUMP);
	struct nlattr *nest;

	if (!msg)
		return -ENOMEM;
	if (live)
		nla_put_flag(msg, L4LB_ATTR_LIVE);
	if (ranges)
		nla_put_flag(msg, L4LB_ATTR_RANGES);
	if (put_filter) {
		nest = nla_nest_start(msg, L4LB_ATTR_SERVICE);
		put_filter(msg, id);
		nla_nest_end(msg, nest);
	}
	return wire_call(msg, take_entry, list);
}

/* A module that is older than ranges refuses the flag: then it has none. */
static bool older;

int batch_list(struct service_list *list, bool live)
{
	int err = list_by(list, live, !older, NULL, NULL);

	if (err != -EINVAL || older)
		return err;
	older = true;
	return list_by(list, live, false, NULL, NULL);
}

static void put_any_range(struct nl_msg *msg, const struct svc_id *unused)
{
	(void)unused;
	nla_put(msg, L4LB_SVC_ATTR_RANGE | NLA_F_NESTED, 0, NULL);
}

int batch_list_ranges(struct service_list *list)
{
	int err = older ? 0 : list_by(list, false, false, put_any_range, NULL);

	if (err != -EINVAL)
		return err;
	older = true;
	return 0;
}

int batch_read_range(const struct svc_id *id, struct service_list *list)
{
	return list_by(list, true, false, kern_put_ident, id);
}
