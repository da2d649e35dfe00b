/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fetching documents over HTTP, many at a time, from one thread: what load and
 * surge have in common.  Every document is a connection of its own.
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
	unsigned int	length;		/* of the document, says the answer */
	uint8_t		server;		/* likewise, its number from 1 */
	bool		hit;		/* likewise, from its cache */
	/* The rest is fetch.c's own. */
	int		fd;
	size_t		head, got;	/* bytes of the answer's head; of all */
	bool		good;		/* says the head */
	struct fetch	*older, *newer;	/* in the order of begun */
	char		text[1024];
};

/* Called when one has come to its end; its memory is the caller's again. */
typedef void fetch_done(struct fetch *f, uint64_t now, enum fault fault);

void fetch_setup(fetch_done *done);
/* Waits for the next whole second and returns its time, ns of the monotonic clock.
 * How long the setup took depends on the length of paths, and a microsecond more
 * or less changes which of two requests comes first, and by that all that follow.
 */
uint64_t fetch_start(void);
void fetch_begin(struct fetch *f, uint32_t document, const struct sockaddr_in *from,
		 const struct sockaddr_in *to, uint64_t now);
/* Whether any is under way. */
bool fetch_any(void);
/* Goes on with them until something happened or the time UNTIL has come; those
 * that were begun more than GIVE_UP ns ago have failed.
 */
void fetch_go_on(uint64_t until, uint64_t give_up);

#endif /* _FETCH_H */
