// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "drain_wait.h"
#include "err.h"
#include "kern.h"
#include "kern_event.h"
#include "model.h"
#include "opt.h"
#include "refuse.h"

enum {
	ASK_MS		= 500,
	/* Of a server that has drained once, and got connections again, no event tells. */
	LISTEN_MS	= 5000,
};

struct waiter {
	const struct svc_id *id;
	struct server *srv;
	bool changed;		/* an event may be about the server */
	bool gone;		/* the server was removed */
};

static bool listening;

void drain_listen(void)
{
	listening = !kern_event_open();
}

static uint64_t left(const struct server *srv)
{
	return (uint64_t)srv->active + srv->inactive + srv->persistent;
}

/* Drained servers may be removed by then. */
static int look_again(struct waiter *w)
{
	const struct server *found;
	struct service svc;
	int err = kern_service(w->id, &svc, true);

	w->gone = err == -ESRCH;
	if (err)
		return w->gone ? RC_OK : refuse(err, svc_text(w->id),
						"reading the service");
	found = server_find(&svc, w->srv->af, &w->srv->addr, w->srv->port);
	w->gone = !found;
	if (found)
		*w->srv = *found;
	service_free(&svc);
	return RC_OK;
}

static bool is_same_server(const struct server *a, const struct server *b)
{
	return a->af == b->af && a->port == b->port &&
	       !memcmp(&a->addr, &b->addr, sizeof(a->addr));
}

/* Of the server, or of its service as a whole. */
static void take_event(const struct event *e, void *arg)
{
	struct waiter *w = arg;

	if (e->what == EVENT_LOST ||
	    (e->has_service && svc_id_equal(&e->svc.id, w->id) &&
	     (!e->has_server || is_same_server(&e->srv, w->srv))))
		w->changed = true;
}

/* Until there is an event, or for @ms, or for a while. */
static int listen_for(struct waiter *w, int64_t ms)
{
	struct pollfd fd = { .fd = kern_event_fd(), .events = POLLIN };
	int err;

	w->changed = true;
	if (poll(&fd, 1, (int)(ms < LISTEN_MS ? ms : LISTEN_MS)) <= 0)
		return RC_OK;
	w->changed = false;
	err = kern_event_read(take_event, w);
	return err ? refuse(err, svc_text(w->id), "waiting for the drain") : RC_OK;
}

static int pause_for(struct waiter *w, int64_t ms)
{
	struct timespec pause = { .tv_nsec = ASK_MS * 1000000L };

	if (listening)
		return listen_for(w, ms);
	if (ms < ASK_MS)
		pause.tv_nsec = (long)ms * 1000000L;
	nanosleep(&pause, NULL);
	w->changed = true;
	return RC_OK;
}

static int too_long(const struct svc_id *id, const struct server *srv)
{
	int rc = fail(RC_TIMEOUT, svc_text(id),
		      "server %s: after %u s still %u active, %u inactive, %u persistent connections",
		      ip_port_text(srv->af, &srv->addr, srv->port),
		      opt.wait_secs, srv->active, srv->inactive,
		      srv->persistent);

	hint("it stays drained; try: a longer --wait");
	return rc;
}

/* Somebody else was here. */
static int taken_back(const struct svc_id *id, const struct server *srv)
{
	return fail(RC_REFUSED, svc_text(id),
		    "server %s is not drained any more: it has weight %u",
		    ip_port_text(srv->af, &srv->addr, srv->port), srv->weight);
}

int drain_wait(const struct svc_id *id, struct server *srv)
{
	int64_t end = clock_ms(CLOCK_MONOTONIC) + (int64_t)opt.wait_secs * 1000, ms;
	struct waiter w = { .id = id, .srv = srv };
	int rc = look_again(&w);

	while (!rc && !w.gone && !srv->weight && left(srv) &&
	       (ms = end - clock_ms(CLOCK_MONOTONIC)) > 0) {
		rc = pause_for(&w, ms);
		if (!rc && w.changed)
			rc = look_again(&w);
	}
	/* The numbers of now. */
	if (!rc && !w.gone && left(srv))
		rc = look_again(&w);
	if (listening)
		kern_event_close();
	if (rc || w.gone)
		return rc;
	if (srv->weight)
		return taken_back(id, srv);
	return left(srv) && !(opt.given & OPT_KILL) ? too_long(id, srv) : RC_OK;
}
