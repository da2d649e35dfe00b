/* SPDX-License-Identifier: GPL-2.0 */
/* Services and real servers in memory. The parsers fill these, the printers
 * read these, and kern.c translates them to and from netlink.
 */
#ifndef IPVSCTL_MODEL_H
#define IPVSCTL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ident.h"
#include "policy.h"

struct server_latency;

struct counters {
	uint64_t conns, inpkts, outpkts, inbytes, outbytes;
	uint64_t cps, inpps, outpps, inbps, outbps;	/* a second */
};

/* Replies sent in one band of `priority las`. */
struct band {
	uint64_t packets, bytes;
};

/* Of a server with weight 0. */
struct server_drain {
	bool known;
	uint32_t weight;	/* before; 0: it never had one */
	uint32_t then;		/* enum l4lb_then */
	bool timed;
	uint32_t left;		/* seconds, if .timed */
};

/* A newcomer in a service with `ramp`. */
struct server_ramp {
	bool on;
	uint32_t percent;	/* of its time; 100: it catches up */
};

struct server {
	uint16_t af;
	uint16_t port;
	struct ip addr;
	uint32_t forward;	/* IP_VS_CONN_F_MASQ and so on */
	uint32_t weight;
	uint32_t max_conns, min_conns;
	uint32_t active, inactive, persistent;
	uint8_t tun_type;
	uint16_t tun_port;
	uint16_t tun_flags;
	unsigned int line, column;	/* in the file it was read from, or 0 */
	struct server_drain drain;
	struct server_ramp ramp;
	struct counters stats;
	struct server_latency *latency;	/* NULL: not measured */
};

enum {
	SERVICE_OPTIONS_MAX = 16,
	SCHED_FLAGS = 0x38,	/* IP_VS_SVC_F_SCHED1 to 3 */
};

/* An option of the scheduler. The kernel takes keys and shows fingerprints. It takes
 * programs as open files, and shows their numbers and the paths of their pins.
 */
struct svc_option {
	char name[16];
	uint32_t value;		/* of a key, its fingerprint; of a program, its number */
	const uint8_t *key;	/* L4LB_KEY_LEN bytes instead of .value, or NULL */
	const char *path;	/* of a program, or NULL; .value 0: not opened yet */
	const char *file;	/* of a key: where it was read, or NULL */
	bool given;		/* by the user; not read from the kernel */
};

/* What a service's shadow has counted. */
struct shadow_counts {
	bool known;
	uint64_t choices, agreed, refused;
};

struct service {
	struct svc_id id;
	char scheduler[16];
	char pe[17];
	uint32_t flags;		/* IP_VS_SVC_F_* */
	uint32_t timeout;	/* of persistence, seconds */
	uint32_t netmask;	/* IPv4: network order mask; IPv6: length */
	/* Those not at their default, in the scheduler's order if read. NULL, or
	 * room for SERVICE_OPTIONS_MAX: most services have none.
	 */
	struct svc_option *options;
	size_t noptions;
	struct policy policy;
	struct band bands[L4LB_BANDS];
	bool has_bands;
	uint64_t limited;	/* new connections that a limit refused */
	bool has_limited;
	struct shadow_counts shadow;
	unsigned int line, column;	/* in the file it was read from, or 0 */
	struct counters stats;
	struct server *servers;
	size_t nservers;
	bool shares;		/* .servers and .options are another's */
};

struct service_list {
	struct service *v;
	size_t n;
	/* Hash table of service_find(), with the first @indexed services. */
	uint32_t *index;
	size_t index_size, indexed;
};

/* Appends a zeroed element; the pointer is valid until the next append. */
struct service *service_append(struct service_list *list);
struct server *server_append(struct service *svc);
void service_list_free(struct service_list *list);
void service_free(struct service *svc);	/* what it has, not itself */

/* A copy with servers and options of its own, without their latency. */
void service_copy(struct service *to, const struct service *from);

/* Like service_copy(), but sorted, and cheap: it may have the arrays of @from. Only read it,
 * and free it before @from.
 */
void service_share(struct service *to, const struct service *from);

struct service *service_find(struct service_list *list,
			     const struct svc_id *id);
struct server *server_find(const struct service *svc, uint16_t af,
			   const struct ip *addr, uint16_t port);
/* By family, address and port. */
int server_cmp(const struct server *x, const struct server *y);
/* The server with the name of @name, or NULL; the list must be sorted. */
struct server *server_search(const struct service *svc,
			     const struct server *name);
/* The scheduler's option @name, or NULL if it is at its default. */
const struct svc_option *service_option(const struct service *svc,
					const char *name);
/* Sets or adds an option; false if there are too many. @path: empty for none. */
bool service_option_put(struct service *svc, const struct svc_option *option);
bool service_option_set(struct service *svc, const char *name, uint32_t value,
			const char *path);
/* Services have other places in @list than before: service_find() looks anew. */
void service_list_moved(struct service_list *list);
void service_list_sort(struct service_list *list);
void service_sort(struct service *svc);	/* its servers */

/* Is it measured how long its real servers take? */
bool service_measures(const struct service *svc);
/* Judged by max-conns: the kernel does not export its own flag. */
bool server_is_overloaded(const struct server *srv);
bool service_is_down(const struct service *svc);

/* The netmask of a service without `mask`. */
uint32_t netmask_full(uint16_t af);
/* Prefix length, or -1 for a mask with holes. */
int netmask_len(uint16_t af, uint32_t netmask);
uint32_t netmask_from_len(uint16_t af, uint32_t len);

const char *forward_name(uint32_t forward);	/* NULL if unknown */
const char *tun_type_name(uint8_t type);	/* NULL if unknown */

#endif
