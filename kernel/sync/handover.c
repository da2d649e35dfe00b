// SPDX-License-Identifier: GPL-2.0
/*
 * A user keeps the connections while the module is replaced: their messages are
 * those that directors send to each other.  The reader of messages has been
 * fuzzed for strangers, and rules for what arrives hold here, too.
 */
#include "sync/handover.h"

#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "sync/apply.h"
#include "sync/send.h"
#include "sync/send_rules.h"
#include "sync/tour.h"
#include "sync/wire_read.h"
#include "sync/wire_write.h"

enum {
	MESSAGE_MAX	= 3000,	/* bytes, two in the smallest netlink buffer */
	VISITS_MAX	= 512,	/* between two breaks */
};

/**
 * struct l4lb_handover - the connections of a namespace, one message at a time
 * @tour: what was told
 * @buf: the message
 * @left_out: connections before it that no record can tell
 * @ready: it is complete and was not taken
 * @data: its bytes
 */
struct l4lb_handover {
	struct l4lb_sync_tour	tour;
	struct l4lb_sync_buffer	buf;
	u32			left_out;
	bool			ready;
	u8			data[MESSAGE_MAX];
};

struct l4lb_handover *l4lb_handover_open(struct l4lb_net *ln)
{
	struct l4lb_handover *handover = kvzalloc(sizeof(*handover), GFP_KERNEL);

	if (!handover)
		return NULL;
	l4lb_sync_tour_begin(&handover->tour, ln);
	if (handover->tour.walk)
		return handover;
	kvfree(handover);
	return NULL;
}

void l4lb_handover_close(struct l4lb_handover *handover)
{
	l4lb_sync_tour_end(&handover->tour);
	kvfree(handover);
}

/* ---- out ---- */

/* Returns false if the message is full. */
static bool tell(struct l4lb_handover *handover, struct l4lb_conn *conn)
{
	struct l4lb_sync_record record = { };

	if (!l4lb_send_tellable(conn)) {
		handover->left_out += l4lb_sync_lasts(conn);
		return true;
	}
	return !l4lb_sync_describe(conn, L4LB_SYNC_WHOLE, &record) ||
	       l4lb_sync_append(&handover->buf, &record);
}

/* Returns false if the message is full. */
static bool fill_some(struct l4lb_handover *handover)
{
	unsigned int visits = VISITS_MAX;
	struct l4lb_conn *conn;
	bool room = true;

	l4lb_conn_walk_start(handover->tour.walk);
	while (room) {
		conn = l4lb_sync_tour_next(&handover->tour, &visits);
		if (!conn)
			break;
		room = tell(handover, conn);
		if (!room)
			l4lb_conn_walk_back(handover->tour.walk);
	}
	l4lb_conn_walk_stop(handover->tour.walk);
	return room;
}

static void fill(struct l4lb_handover *handover)
{
	handover->buf = (struct l4lb_sync_buffer){
		.data = handover->data,
		.size = MESSAGE_MAX,
	};
	handover->left_out = 0;
	l4lb_sync_begin(&handover->buf, 1, 0);
	/* Many connections may be none of those that are told. */
	while (!handover->tour.over && fill_some(handover) &&
	       !fatal_signal_pending(current))
		cond_resched();
	l4lb_sync_finish(&handover->buf);
	handover->ready = true;
}

struct l4lb_handover_message
l4lb_handover_peek(struct l4lb_handover *handover)
{
	if (!handover->ready)
		fill(handover);
	return (struct l4lb_handover_message){
		.data = handover->data,
		.len = handover->buf.n || handover->left_out ?
		       handover->buf.len : 0,
		.records = handover->buf.n,
		.left_out = handover->left_out,
	};
}

void l4lb_handover_take(struct l4lb_handover *handover)
{
	handover->ready = false;
}

/* ---- in ---- */

struct arrival {
	struct l4lb_net			*ln;
	struct l4lb_handover_tally	*tally;
	bool				damaged;
};

static void pass(void *arg, const struct l4lb_sync_record *record)
{
}

static void damaged(void *arg, enum l4lb_sync_error error)
{
	struct arrival *arrival = arg;

	arrival->damaged = true;
}

static void apply(void *arg, const struct l4lb_sync_record *record)
{
	const struct arrival *arrival = arg;

	switch (l4lb_sync_apply(arrival->ln, record,
				L4LB_SYNC_ANSWER | L4LB_SYNC_HANDOVER)) {
	case 0:
		arrival->tally->applied++;
		break;
	case -ESRCH:
		arrival->tally->no_server++;
		break;
	case -ENOSPC:
		arrival->tally->full++;
		break;
	default:
		arrival->tally->unsupported++;
	}
	cond_resched();
}

/* It is read twice, because a damaged one changes nothing. */
int l4lb_handover_apply(struct l4lb_net *ln, const u8 *data, size_t len,
			struct l4lb_handover_tally *tally)
{
	struct arrival arrival = { .ln = ln, .tally = tally };
	struct l4lb_sync_reader reader = {
		.record	= pass,
		.error	= damaged,
		.arg	= &arrival,
	};

	l4lb_sync_read(&reader, data, len, 0);
	if (arrival.damaged)
		return -EINVAL;
	reader.record = apply;
	l4lb_sync_read(&reader, data, len, 0);
	return 0;
}
