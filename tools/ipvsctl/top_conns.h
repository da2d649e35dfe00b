/* SPDX-License-Identifier: GPL-2.0 */
/* Some connections of one service, as lines. */
#ifndef IPVSCTL_TOP_CONNS_H
#define IPVSCTL_TOP_CONNS_H

#include <stddef.h>

struct svc_id;
struct srv_id;

struct top_conns {
	char title[160];
	char **lines;		/* the last is NULL */
	size_t n;
};

/* Reads at most @max connections of @id, of its server @srv if that is not NULL,
 * however many there are. Fails like conn_walk().
 */
int top_conns_read(struct top_conns *c, const struct svc_id *id,
		   const struct srv_id *srv, size_t max);
void top_conns_free(struct top_conns *c);

#endif
