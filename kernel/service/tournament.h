/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tournaments: the lowest ranked of many real servers, without looking at all
 * of them.  Included by sched.h, whose l4lb_pool_lowest() compares the ranks.
 */
#ifndef _L4LB_TOURNAMENT_H
#define _L4LB_TOURNAMENT_H

#include <linux/atomic.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

struct l4lb_pool;
struct l4lb_sched_server;
struct l4lb_tournament;

#define L4LB_SCHED_RANKS	2	/* of a scheduler, at most */
#define L4LB_MATCH_PLAYERS	16	/* at most; so many servers are scanned */
#define L4LB_NOBODY		0xffffffffU	/* no server may be picked */
#define L4LB_UNKNOWN		0xfffffffeU	/* look at all servers */

/**
 * struct l4lb_match - a match of a tournament
 * @stale: a bit for each rank by which the match must be played again
 * @up: distance to the match that its winner plays in; 0: this is the final
 */
struct l4lb_match {
	atomic_t	stale;
	u32		up;
};

/**
 * struct l4lb_umpire - plays the stale matches of a tournament
 * @rank: index of the rank that decides
 * @n: number of @server and @player
 * @server: real servers, oldest first
 * @player: their seats
 * @winner: seat of the server with the lowest rank, %L4LB_NOBODY, or at the end
 *	%L4LB_UNKNOWN
 * @chosen: at the end, the winner or NULL
 * @level: of the match, 0 is the final; private, like all that follow
 * @index: of the match in its level
 * @before: the result that it replaces
 * @begun: false before the first match
 * @again: a player's own match became stale meanwhile
 * @unknown: another CPU is still playing a player's first match
 */
struct l4lb_umpire {
	unsigned int	rank;
	unsigned int	n;
	struct l4lb_sched_server	*server[L4LB_MATCH_PLAYERS];
	u32		player[L4LB_MATCH_PLAYERS];
	u32		winner;
	struct l4lb_sched_server	*chosen;
	unsigned int	level;
	u32		index;
	s64		before;
	bool		begun, again, unknown;
};

/* Packet path: RCU, BH off. */
bool l4lb_tournament_next(struct l4lb_tournament *t, struct l4lb_umpire *u);
void l4lb_tournament_mark(struct l4lb_match *match);

/* Control path: configuration mutex held.  create() may sleep.  A pool has the
 * present one's tournament, or a new one; after it was published, the old one
 * is left unless it is shared, begin() starts a new one, and a server that the
 * old pool did not have joins, or one that is gone quits.
 */
struct l4lb_tournament *l4lb_tournament_create(const struct l4lb_pool *pool);
struct l4lb_tournament *l4lb_tournament_share(const struct l4lb_pool *old,
					      unsigned int n);
void l4lb_tournament_leave(struct l4lb_tournament *t);
void l4lb_tournament_begin(const struct l4lb_pool *pool);
void l4lb_tournament_join(struct l4lb_tournament *t,
			  struct l4lb_sched_server *server);
void l4lb_tournament_quit(struct l4lb_tournament *t,
			  struct l4lb_sched_server *server);

/* A pool that has no readers any more. */
void l4lb_tournament_put(struct l4lb_tournament *t);

#endif /* _L4LB_TOURNAMENT_H */
