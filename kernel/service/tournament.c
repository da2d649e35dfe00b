// SPDX-License-Identifier: GPL-2.0
/*
 * Tournaments: the lowest ranked of many real servers.
 *
 * Servers have seats, in the order of adding.  Up to 16 neighbours play a match,
 * the winners of up to 16 matches play the next one, and so on up to the final.
 *
 *	level 0			 final
 *			    /	   |	 \
 *	level 1		 match	 match	 match
 *			/  |  \	 / | \	 / | \
 *			seats, 16 a match
 *
 * Pools that follow each other share a tournament while only one server comes or
 * goes: it takes the next seat, or leaves an empty one.  When all seats have been
 * used, the next pool gets a tournament with half as many again as it needs.
 *
 * A CPU that changes a server plays nothing: it marks the match of that server
 * stale, and those above, whoever has marked some of them: that CPU may be stopped
 * before it comes to the next.  A CPU that picks plays the stale matches again,
 * from the bottom to the final.  So a change costs a few marks, several changes
 * between two picks cost little more than one, and a pick costs a match in each
 * level for a server that changed.
 *
 * No lock is taken.  Why no change is forgotten for good:
 *
 * - A match's mark is removed before its players are looked at, and a server is
 *   changed before its match is marked, with full barriers in between: either
 *   the CPU that plays sees the change, or the other one sees no mark and sets
 *   one.  The same holds for a match and the one above it: whoever finds a
 *   player's match stale marks the match it has just played (@again).
 * - Results have a number.  Of two CPUs that play a match at once, the second
 *   one finds that the result is not the one it began with, and marks the match.
 *
 * So whenever no CPU is in the middle of it, each stale match is below stale
 * ones only, and each other match has the result of a scan.  A CPU that picks
 * meanwhile may miss what happens at that moment, as a scan may.
 *
 * Source: tree selection, Knuth, "The Art of Computer Programming", volume 3,
 * section 5.2.3, with results that are found when they are needed.
 */
#include "service/tournament.h"

#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "sched.h"

#define LEVELS_MAX	8	/* 16^8 real servers */
#define BREATH		256	/* servers between two looks for other tasks */
#define STALE_ALL	((1 << L4LB_SCHED_RANKS) - 1)

/**
 * struct l4lb_tournament - the matches of real servers
 * @refs: pools that use it; configuration mutex or, of the last one, l4lb_wq
 * @n_seats: number of seats
 * @n_used: number of seats that have been taken, the first ones
 * @levels: number of levels, at least 1
 * @begun: servers mark their changes in it
 * @first: for each level, the first of its matches
 * @n: for each level, the number of its matches
 * @result: for each rank, results of all matches: a number that grows, and the
 *	winner in the lower 32 bits
 * @seat: for each seat the server, or NULL when it has left
 * @match: all matches, the final first
 */
struct l4lb_tournament {
	refcount_t		refs;
	u32			n_seats;
	u32			n_used;
	unsigned int		levels;
	bool			begun;
	u32			first[LEVELS_MAX];
	u32			n[LEVELS_MAX];
	atomic64_t		*result[L4LB_SCHED_RANKS];
	struct l4lb_sched_server __rcu	**seat;
	struct l4lb_match	match[];
};

static_assert(offsetof(struct l4lb_tournament, match) % sizeof(s64) == 0);

/* ---- playing ---- */

static u32 match_at(const struct l4lb_tournament *t,
		    const struct l4lb_umpire *u)
{
	return t->first[u->level] + u->index;
}

static bool match_stale(const struct l4lb_match *match, unsigned int rank)
{
	return atomic_read(&match->stale) & BIT(rank);
}

/* Is there a level below that of @u? */
static bool has_level_below(const struct l4lb_tournament *t,
			    const struct l4lb_umpire *u)
{
	return u->level + 1 < t->levels;
}

/* The first stale match of the level below, from the @from-th player on. */
static bool find_below(const struct l4lb_tournament *t, struct l4lb_umpire *u,
		       u32 from)
{
	u32 i, end, first = u->index * L4LB_MATCH_PLAYERS;

	if (!has_level_below(t, u))
		return false;
	end = min(first + L4LB_MATCH_PLAYERS, t->n[u->level + 1]);
	for (i = first + from; i < end; i++) {
		if (!match_stale(&t->match[t->first[u->level + 1] + i],
				 u->rank))
			continue;
		u->level++;
		u->index = i;
		return true;
	}
	return false;
}

static void invite(const struct l4lb_tournament *t, struct l4lb_umpire *u,
		   u32 seat)
{
	struct l4lb_sched_server *server = rcu_dereference(t->seat[seat]);

	if (!server)
		return;
	u->server[u->n] = server;
	u->player[u->n++] = seat;
}

/* The players of a match whose level is not the lowest: winners of others. */
static void invite_winners(const struct l4lb_tournament *t,
			   struct l4lb_umpire *u)
{
	u32 first = u->index * L4LB_MATCH_PLAYERS, i, end, at, winner;

	end = min(first + L4LB_MATCH_PLAYERS, t->n[u->level + 1]);
	for (i = first; i < end; i++) {
		at = t->first[u->level + 1] + i;
		winner = (u32)atomic64_read(&t->result[u->rank][at]);
		if (match_stale(&t->match[at], u->rank))
			u->again = true;
		if (winner == L4LB_UNKNOWN)
			u->unknown = true;
		else if (winner != L4LB_NOBODY)
			invite(t, u, winner);
	}
}

static void invite_servers(const struct l4lb_tournament *t,
			   struct l4lb_umpire *u)
{
	u32 i = u->index * L4LB_MATCH_PLAYERS;
	u32 end = min(i + L4LB_MATCH_PLAYERS, READ_ONCE(t->n_used));

	for (; i < end; i++)
		invite(t, u, i);
}

static void match_open(struct l4lb_tournament *t, struct l4lb_umpire *u)
{
	u32 at = match_at(t, u);

	u->before = atomic64_read(&t->result[u->rank][at]);
	/* Orders: the result is read before, the players after. */
	atomic_fetch_andnot(BIT(u->rank), &t->match[at].stale);
	u->n = 0;
	u->winner = L4LB_NOBODY;
	u->again = false;
	u->unknown = false;
	if (has_level_below(t, u))
		invite_winners(t, u);
	else
		invite_servers(t, u);
}

static void match_close(struct l4lb_tournament *t, struct l4lb_umpire *u)
{
	u32 at = match_at(t, u);
	s64 after;

	if (u->unknown)
		u->winner = L4LB_UNKNOWN;
	after = (s64)((((u64)u->before >> 32) + 1) << 32 | u->winner);
	if (atomic64_cmpxchg(&t->result[u->rank][at], u->before, after) !=
	    u->before || u->again)
		l4lb_tournament_mark(&t->match[at]);
}

/* Notes the winner of the final. */
static bool end_all(const struct l4lb_tournament *t, struct l4lb_umpire *u)
{
	u->chosen = u->winner < L4LB_UNKNOWN ?
		    rcu_dereference(t->seat[u->winner]) : NULL;
	return false;
}

/**
 * l4lb_tournament_next() - the next match that must be played
 * @t: the tournament
 * @u: with .rank set and the rest 0 for the first call; later with the winner
 *	of its match, or %L4LB_NOBODY as it came
 *
 * Each match comes once at most, so the number of calls is limited.
 *
 * Context: RCU, BH off; several CPUs at once.
 * Return: true with a match in @u; false with the final's winner, also in .chosen
 * unless it has just left.
 */
bool l4lb_tournament_next(struct l4lb_tournament *t, struct l4lb_umpire *u)
{
	u32 from = 0;

	if (u->begun) {
		match_close(t, u);
		if (!u->level)
			return end_all(t, u);
		from = u->index % L4LB_MATCH_PLAYERS + 1;
		u->index /= L4LB_MATCH_PLAYERS;
		u->level--;
	} else if (!smp_load_acquire(&t->begun)) {	/* before the servers */
		u->winner = L4LB_UNKNOWN;
		return end_all(t, u);
	} else if (!match_stale(&t->match[0], u->rank)) {
		u->winner = (u32)atomic64_read(&t->result[u->rank][0]);
		return end_all(t, u);
	}
	u->begun = true;
	while (find_below(t, u, from))
		from = 0;
	match_open(t, u);
	return true;
}
EXPORT_SYMBOL_GPL(l4lb_tournament_next);

/**
 * l4lb_tournament_mark() - a player of a match has changed
 * @match: the match
 *
 * A full barrier lies between the change and the call.
 *
 * Context: RCU; several CPUs at once.
 */
void l4lb_tournament_mark(struct l4lb_match *match)
{
	for (;; match -= match->up) {
		if (atomic_read(&match->stale) != STALE_ALL)
			atomic_fetch_or(STALE_ALL, &match->stale);
		if (!match->up)
			return;
	}
}
EXPORT_SYMBOL_GPL(l4lb_tournament_mark);

/* ---- building ---- */

/* Sets the number of matches in each level; returns their sum. */
static u32 plan_levels(u32 *n, unsigned int *levels, u32 players)
{
	u32 below[LEVELS_MAX], sum = 0;
	unsigned int i, depth = 0;

	do {
		players = DIV_ROUND_UP(players, L4LB_MATCH_PLAYERS);
		below[depth++] = players;
		sum += players;
	} while (players > 1);
	for (i = 0; i < depth; i++)
		n[i] = below[depth - 1 - i];
	*levels = depth;
	return sum;
}

static void link_matches(struct l4lb_tournament *t)
{
	unsigned int level;
	u32 i, above;

	for (level = 1; level < t->levels; level++) {
		t->first[level] = t->first[level - 1] + t->n[level - 1];
		for (i = 0; i < t->n[level]; i++) {
			above = t->first[level - 1] + i / L4LB_MATCH_PLAYERS;
			t->match[t->first[level] + i].up =
				t->first[level] + i - above;
		}
	}
}

/* Matches, results and seats in one piece. */
static struct l4lb_tournament *tournament_alloc(u32 n_seats)
{
	u32 n[LEVELS_MAX] = {}, sum, i;
	struct l4lb_tournament *t;
	unsigned int levels, rank;
	atomic64_t *result;
	size_t size;

	sum = plan_levels(n, &levels, n_seats);
	size = struct_size(t, match, sum);
	t = kvzalloc(size + L4LB_SCHED_RANKS * sum * sizeof(*result) +
		     n_seats * sizeof(*t->seat),
		     GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!t)
		return NULL;
	refcount_set(&t->refs, 1);
	t->n_seats = n_seats;
	t->levels = levels;
	memcpy(t->n, n, sizeof(n));
	link_matches(t);
	result = (void *)t + size;
	for (rank = 0; rank < L4LB_SCHED_RANKS; rank++, result += sum) {
		t->result[rank] = result;
		for (i = 0; i < sum; i++)
			atomic64_set(&result[i], L4LB_UNKNOWN);
	}
	t->seat = (void *)result;
	for (i = 0; i < sum; i++)
		atomic_set(&t->match[i].stale, STALE_ALL);
	return t;
}

/* The match of a seat. */
static struct l4lb_match *match_of(struct l4lb_tournament *t, u32 seat)
{
	return &t->match[t->first[t->levels - 1] + seat / L4LB_MATCH_PLAYERS];
}

/**
 * l4lb_tournament_create() - a tournament of the servers of a new pool
 * @pool: complete but for its tournament
 *
 * Context: process, may sleep.
 * Return: the tournament, for l4lb_tournament_put(); or NULL if @pool is better
 * scanned: it is small, its scheduler does not rank, or there is no memory.
 */
struct l4lb_tournament *l4lb_tournament_create(const struct l4lb_pool *pool)
{
	struct l4lb_tournament *t;
	unsigned int i;

	if (pool->n <= L4LB_MATCH_PLAYERS || !pool->ops || !pool->ops->rank[0])
		return NULL;
	t = tournament_alloc(pool->n + pool->n / 2);
	if (!t)
		return NULL;
	for (i = 0; i < pool->n; i++)
		RCU_INIT_POINTER(t->seat[i], pool->server[i]);
	t->n_used = pool->n;
	return t;
}

/**
 * l4lb_tournament_share() - the tournament of a pool, for the next one
 * @old: the present pool, of the same scheduler instance
 * @n: number of servers in the next one, which has one more or one less
 *
 * Context: configuration mutex held.
 * Return: as l4lb_tournament_create(); NULL also if a new one is needed.
 */
struct l4lb_tournament *l4lb_tournament_share(const struct l4lb_pool *old,
					      unsigned int n)
{
	struct l4lb_tournament *t = old->tournament;

	if (!t || n <= L4LB_MATCH_PLAYERS ||
	    (n > old->n && t->n_used == t->n_seats))
		return NULL;
	refcount_inc(&t->refs);
	return t;
}

void l4lb_tournament_put(struct l4lb_tournament *t)
{
	if (t && refcount_dec_and_test(&t->refs))
		kvfree(t);
}

/**
 * l4lb_tournament_begin() - let the servers of a pool mark their changes
 * @pool: just published; does nothing if its tournament is shared
 *
 * Until the last one does, picks scan the pool.
 *
 * Context: configuration mutex held, may sleep.
 */
void l4lb_tournament_begin(const struct l4lb_pool *pool)
{
	struct l4lb_tournament *t = pool->tournament;
	unsigned int i;

	if (!t || t->begun)
		return;
	for (i = 0; i < pool->n; i++) {
		rcu_assign_pointer(pool->server[i]->match, match_of(t, i));
		if (i % BREATH == 0)
			cond_resched();
	}
	/* A CPU that does not see its server's match has changed the server
	 * before that: picks from now on see the change.
	 */
	smp_mb();	/* write the matches before reading the servers */
	smp_store_release(&t->begun, true);	/* after the matches */
}

/**
 * l4lb_tournament_join() - give a server the next seat
 * @t: NULL: does nothing; there is a seat, see l4lb_tournament_share()
 * @server: does nothing if it has a seat in @t; it has none elsewhere
 *
 * Context: configuration mutex held.
 */
void l4lb_tournament_join(struct l4lb_tournament *t,
			  struct l4lb_sched_server *server)
{
	u32 seat;

	if (!t || rcu_access_pointer(server->match))
		return;
	seat = t->n_used;
	rcu_assign_pointer(t->seat[seat], server);
	smp_store_release(&t->n_used, seat + 1);	/* after the seat */
	rcu_assign_pointer(server->match, match_of(t, seat));
	smp_mb();	/* write all that before reading marks */
	l4lb_tournament_mark(match_of(t, seat));
}

/**
 * l4lb_tournament_quit() - take a server's seat
 * @t: NULL: does nothing
 * @server: does nothing if it has no seat; it has none in another tournament
 *
 * Context: configuration mutex held.
 */
void l4lb_tournament_quit(struct l4lb_tournament *t,
			  struct l4lb_sched_server *server)
{
	struct l4lb_match *match = rcu_access_pointer(server->match);
	u32 seat;

	if (!t || !match)
		return;
	RCU_INIT_POINTER(server->match, NULL);
	seat = (match - match_of(t, 0)) * L4LB_MATCH_PLAYERS;
	while (rcu_access_pointer(t->seat[seat]) != server)
		seat++;
	RCU_INIT_POINTER(t->seat[seat], NULL);
	smp_mb();	/* write the seat before reading marks */
	l4lb_tournament_mark(match);
}

/**
 * l4lb_tournament_leave() - let no server mark its changes any more
 * @t: NULL: does nothing; its last pool is about to be freed after a grace period
 *
 * Context: configuration mutex held, may sleep.
 */
void l4lb_tournament_leave(struct l4lb_tournament *t)
{
	struct l4lb_sched_server *server;
	u32 i;

	for (i = 0; t && i < t->n_used; i++) {
		server = rcu_dereference_protected(t->seat[i], true);
		if (server)
			RCU_INIT_POINTER(server->match, NULL);
		if (i % BREATH == 0)
			cond_resched();
	}
}
