// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <assert.h>
#include <err.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/ip_vs.h>

#include "keep.h"
#include "model.h"
#include "must.h"

/* Room for one more element: doubles when @n is 0 or a power of two. */
static void *grow(void *v, size_t n, size_t size)
{
	if (n & (n - 1))
		return v;
	v = reallocarray(v, n ? 2 * n : 1, size);
	if (!v)
		err(3, "out of memory");
	return v;
}

struct service *service_append(struct service_list *list)
{
	struct service *svc;

	list->v = grow(list->v, list->n, sizeof(*list->v));
	svc = &list->v[list->n++];
	memset(svc, 0, sizeof(*svc));
	return svc;
}

struct server *server_append(struct service *svc)
{
	struct server *srv;

	assert(!svc->shares);
	svc->servers = grow(svc->servers, svc->nservers, sizeof(*srv));
	srv = &svc->servers[svc->nservers++];
	memset(srv, 0, sizeof(*srv));
	return srv;
}

void service_free(struct service *svc)
{
	size_t i;

	for (i = 0; !svc->shares && i < svc->nservers; i++)
		free(svc->servers[i].latency);
	if (!svc->shares) {
		free(svc->servers);
		free(svc->options);
	}
	svc->servers = NULL;
	svc->nservers = 0;
	svc->options = NULL;
	svc->noptions = 0;
}

void service_copy(struct service *to, const struct service *from)
{
	const size_t size = sizeof(*to->servers);
	const size_t options = SERVICE_OPTIONS_MAX * sizeof(*to->options);
	size_t room = 1, i;

	*to = *from;
	to->shares = false;
	/* As much as grow() would have made. */
	while (room < from->nservers)
		room *= 2;
	if (from->nservers)
		to->servers = memcpy(must(reallocarray(NULL, room, size)),
				     from->servers, from->nservers * size);
	else
		to->servers = NULL;
	for (i = 0; i < to->nservers; i++)
		to->servers[i].latency = NULL;
	if (from->options)
		to->options = memcpy(must(malloc(options)), from->options,
				     options);
}

void service_list_free(struct service_list *list)
{
	while (list->n)
		service_free(&list->v[--list->n]);
	free(list->v);
	free(list->index);
	memset(list, 0, sizeof(*list));
}

static size_t id_hash(const struct svc_id *id)
{
	uint32_t h = id->fwmark * 2654435761u + id->port + id->af;
	size_t i;

	for (i = 0; i < sizeof(id->addr.b); i++)
		h = (h ^ id->addr.b[i]) * 16777619u;
	h = (h ^ id->proto) * 16777619u;
	return h ^ h >> 15;
}

/* Open addressing; a slot is 0 if empty, else the service's position plus 1. */
static void index_add(struct service_list *list, size_t i)
{
	size_t mask = list->index_size - 1;
	size_t at = id_hash(&list->v[i].id) & mask;

	while (list->index[at])
		at = (at + 1) & mask;
	list->index[at] = (uint32_t)i + 1;
}

/* Adds the services that were appended since the last call. */
static void index_update(struct service_list *list)
{
	if (2 * list->n > list->index_size) {
		list->index_size = list->index_size ? list->index_size : 64;
		while (2 * list->n > list->index_size)
			list->index_size *= 2;
		free(list->index);
		list->index = calloc(list->index_size, sizeof(*list->index));
		if (!list->index)
			err(3, "out of memory");
		list->indexed = 0;
	}
	while (list->indexed < list->n)
		index_add(list, list->indexed++);
}

struct service *service_find(struct service_list *list,
			     const struct svc_id *id)
{
	size_t mask, at;

	if (!list->n)
		return NULL;
	index_update(list);
	mask = list->index_size - 1;
	for (at = id_hash(id) & mask; list->index[at]; at = (at + 1) & mask)
		if (svc_id_equal(&list->v[list->index[at] - 1].id, id))
			return &list->v[list->index[at] - 1];
	return NULL;
}

struct server *server_find(const struct service *svc, uint16_t af,
			   const struct ip *addr, uint16_t port)
{
	size_t i;

	for (i = 0; i < svc->nservers; i++)
		if (svc->servers[i].af == af && svc->servers[i].port == port &&
		    ip_equal(&svc->servers[i].addr, addr))
			return &svc->servers[i];
	return NULL;
}

const struct svc_option *service_option(const struct service *svc,
					const char *name)
{
	size_t i;

	for (i = 0; i < svc->noptions; i++)
		if (!strcmp(svc->options[i].name, name))
			return &svc->options[i];
	return NULL;
}

bool service_option_put(struct service *svc, const struct svc_option *option)
{
	size_t i;

	for (i = 0; i < svc->noptions; i++)
		if (!strcmp(svc->options[i].name, option->name))
			break;
	if (i == SERVICE_OPTIONS_MAX)
		return false;
	if (!svc->options)
		svc->options = must(calloc(SERVICE_OPTIONS_MAX,
					   sizeof(*svc->options)));
	svc->options[i] = *option;
	if (i == svc->noptions)
		svc->noptions++;
	return true;
}

bool service_option_set(struct service *svc, const char *name, uint32_t value,
			const char *path)
{
	struct svc_option o = {
		.value = value, .path = path[0] ? keep_text(path) : NULL,
	};

	snprintf(o.name, sizeof(o.name), "%s", name);
	return service_option_put(svc, &o);
}

static int cmp_service(const void *a, const void *b)
{
	const struct service *x = a, *y = b;

	return svc_id_cmp(&x->id, &y->id);
}

int server_cmp(const struct server *x, const struct server *y)
{
	int d = (int)x->af - y->af;

	if (!d)
		d = memcmp(&x->addr, &y->addr, sizeof(x->addr));
	return d ? d : (int)x->port - y->port;
}

static int cmp_server(const void *a, const void *b)
{
	return server_cmp(a, b);
}

struct server *server_search(const struct service *svc,
			     const struct server *name)
{
	if (!svc->nservers)
		return NULL;
	return bsearch(name, svc->servers, svc->nservers,
		       sizeof(*svc->servers), cmp_server);
}

/* What l4lb or a file of "export" lists is in order already. */
static bool is_sorted(const void *v, size_t n, size_t size,
		      int (*cmp)(const void *a, const void *b))
{
	const char *p = v;
	size_t i;

	for (i = 1; i < n; i++, p += size)
		if (cmp(p, p + size) > 0)
			return false;
	return true;
}

static void sort(void *v, size_t n, size_t size,
		 int (*cmp)(const void *a, const void *b))
{
	if (!is_sorted(v, n, size, cmp))
		qsort(v, n, size, cmp);
}

void service_sort(struct service *svc)
{
	sort(svc->servers, svc->nservers, sizeof(*svc->servers), cmp_server);
}

void service_list_moved(struct service_list *list)
{
	free(list->index);
	list->index = NULL;
	list->index_size = 0;
	list->indexed = 0;
}

/* The order of a file's servers is the order in which the kernel gets them. */
void service_share(struct service *to, const struct service *from)
{
	if (is_sorted(from->servers, from->nservers, sizeof(*from->servers),
		      cmp_server)) {
		*to = *from;
		to->shares = true;
	} else {
		service_copy(to, from);
		service_sort(to);
	}
}

void service_list_sort(struct service_list *list)
{
	size_t i;

	service_list_moved(list);
	sort(list->v, list->n, sizeof(*list->v), cmp_service);
	for (i = 0; i < list->n; i++)
		service_sort(&list->v[i]);
}

bool service_measures(const struct service *svc)
{
	return svc->policy.value[L4LB_POLICY_ATTR_LATENCY];
}

/* The rule by which the kernel sets its overload flag, which is not exported.
 * While the number falls from max-conns to min-conns, that flag may still be
 * set although this returns false.
 */
bool server_is_overloaded(const struct server *srv)
{
	return srv->max_conns &&
	       (uint64_t)srv->active + srv->inactive >= srv->max_conns;
}

bool service_is_down(const struct service *svc)
{
	size_t i;

	for (i = 0; i < svc->nservers; i++)
		if (svc->servers[i].weight)
			return false;
	return true;
}

uint32_t netmask_full(uint16_t af)
{
	return af == AF_INET6 ? 128 : 0xffffffff;
}

int netmask_len(uint16_t af, uint32_t netmask)
{
	uint32_t host = ntohl(netmask);

	if (af == AF_INET6)
		return (int)netmask;
	if (~host & (~host + 1))
		return -1;
	return host ? 32 - __builtin_ctz(host) : 0;
}

uint32_t netmask_from_len(uint16_t af, uint32_t len)
{
	if (af == AF_INET6)
		return len;
	return len ? htonl(0xffffffffu << (32 - len)) : 0;
}

const char *forward_name(uint32_t forward)
{
	switch (forward & IP_VS_CONN_F_FWD_MASK) {
	case IP_VS_CONN_F_MASQ:
		return "nat";
	case IP_VS_CONN_F_LOCALNODE:
		return "local";
	case IP_VS_CONN_F_TUNNEL:
		return "tun";
	case IP_VS_CONN_F_DROUTE:
		return "dr";
	case IP_VS_CONN_F_BYPASS:
		return "bypass";
	}
	return NULL;
}

const char *tun_type_name(uint8_t type)
{
	switch (type) {
	case IP_VS_CONN_F_TUNNEL_TYPE_IPIP:
		return "ipip";
	case IP_VS_CONN_F_TUNNEL_TYPE_GUE:
		return "gue";
	case IP_VS_CONN_F_TUNNEL_TYPE_GRE:
		return "gre";
	}
	return NULL;
}
