/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fetches documents over HTTP, many at a time, in one thread; load and surge
 * share this code.  Every document has its own connection.
 */
#ifndef _FETCH_H
#define _FETCH_H

#include <netinet/in.h>
#include <stdbool.h>

#include "trace.h"

#define FIRST_PORT	1024
#define PORTS		(65536 - FIRST_PORT)

struct fetch {
	uint32_t	document;
	uint64_t	begun;
	unsigned int	length;		/* the answer's Content-Length */
	uint8_t		server;		/* the answer's Real-Server, from 1 */
	bool		hit;		/* the answer's Cache is "hit" */
	/* The rest is private to fetch.c. */
	int		fd;
	size_t		head, got;	/* bytes of the head, once complete; received */
	bool		good;		/* the head says 200, server and length */
	struct fetch	*older, *newer;	/* in the order of begun */
	char		text[1024];
};

/* Called when a fetch has ended; it may free @f. */
typedef void fetch_done(struct fetch *f, uint64_t now, enum fault fault);

void fetch_setup(fetch_done *done);
/* Waits for the next whole second and returns the time, ns of the monotonic clock.
 * The setup takes longer with longer paths: without the wait, a microsecond could
 * swap two requests and so change all that follow.
 */
uint64_t fetch_start(void);
void fetch_begin(struct fetch *f, uint32_t document, const struct sockaddr_in *from,
		 const struct sockaddr_in *to, uint64_t now);
/* Is any fetch in progress? */
bool fetch_any(void);
/* Goes on with all fetches until something happens or the time UNTIL (ns) comes;
 * fetches that began more than GIVE_UP ns ago fail.
 */
void fetch_go_on(uint64_t until, uint64_t give_up);

#endif /* _FETCH_H */
