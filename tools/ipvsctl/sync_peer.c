// SPDX-License-Identifier: GPL-2.0
/* Peers: directors that send their connections to each other's address, and repair
 * what is lost on the way.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "err.h"
#include "kern_peer.h"
#include "opt.h"
#include "out.h"
#include "refuse.h"
#include "sync_peer.h"
#include "wire.h"

enum {
	POLL_MS		= 100,
	WAIT_SECS	= 60,		/* of `sync wait`, if it says no time */
	WAIT_MAX	= 24 * 3600,
	VERIFY_SECS	= 30,		/* a comparison takes that long at most */
};

static const char *state_name(uint32_t state)
{
	return state == L4LB_PEER_IN_STEP ? "in step" :
	       state == L4LB_PEER_JOINING ? "joining" : "absent";
}

static void pause_poll(void)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };

	nanosleep(&pause, NULL);
}

/* ---- failures ---- */

static int no_such_peer(const struct sync_peer *peer)
{
	int rc;

	if (peer)
		rc = fail(RC_MISSING, "sync", "there is no peer %s",
			  ip_text(peer->af, &peer->addr));
	else
		rc = fail(RC_MISSING, "sync", "there are no peers");
	if (peer)
		hint("see: ipvsctl sync show");
	else
		hint("try: ipvsctl sync peer add ADDR");
	return rc;
}

static int refuse_peer(int err, const struct sync_peer *peer, const char *what)
{
	int rc;

	if (err == -ESRCH)
		rc = no_such_peer(peer);
	else if (err == -EEXIST && peer)
		rc = fail(RC_EXISTS, "sync", "peer %s exists already",
			  ip_text(peer->af, &peer->addr));
	else
		return refuse(err, "sync", what);
	fail_errno(err);
	return rc;
}

/* ---- words ---- */

static int parse_address(const char *word, struct sync_peer *peer)
{
	uint32_t len;
	int rc;

	memset(peer, 0, sizeof(*peer));
	rc = parse_prefix(word, "sync", &peer->af, &peer->addr, &len);
	if (rc)
		return rc;
	if (strchr(word, '/') || !ip_is_unicast(peer->af, &peer->addr))
		return fail(RC_USAGE, "sync",
			    "bad peer \"%s\": write the address of another director",
			    word);
	return RC_OK;
}

/* [ADDR], and no more words. @named: there was one. */
static int parse_maybe_address(struct args *a, struct sync_peer *peer,
			       bool *named)
{
	const char *word = arg_next(a);
	int rc = word ? parse_address(word, peer) : RC_OK;

	*named = word;
	return rc ? rc : arg_end(a, "sync");
}

/* ---- peer ---- */

static int parse_peer_options(struct args *a, struct sync_peer *peer)
{
	static const char *const known[] = { "port", "hops", NULL };
	const char *word;
	int rc = RC_OK;

	while (!rc && (word = arg_next(a))) {
		if (!strcmp(word, "hops") && !peer->hops)
			peer->hops = true;
		else if (!strcmp(word, "port") && !peer->port)
			rc = arg_u32(a, "sync", word, RANGE(1, 65535),
				     &peer->port);
		else if (!strcmp(word, "hops") || !strcmp(word, "port"))
			rc = fail(RC_USAGE, "sync", "\"%s\" is given twice",
				  word);
		else
			rc = arg_unknown("sync", "option", word, known);
	}
	return rc;
}

int sync_peer(struct args *a)
{
	static const char *const known[] = { "add", "delete", NULL };
	const char *verb = arg_next(a), *word = verb ? arg_next(a) : NULL;
	struct sync_peer peer;
	bool add;
	int err, rc;

	if (verb && strcmp(verb, "add") && strcmp(verb, "delete"))
		return arg_unknown("sync", "command about peers", verb, known);
	if (!word) {
		rc = fail(RC_USAGE, "sync", "which peer?");
		hint("try: ipvsctl sync peer %s 192.0.2.2",
		     verb ? verb : "add");
		return rc;
	}
	add = !strcmp(verb, "add");
	rc = parse_address(word, &peer);
	if (!rc)
		rc = add ? parse_peer_options(a, &peer) : arg_end(a, "sync");
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = add ? kern_peer_add(&peer) : kern_peer_delete(&peer);
	return err ? refuse_peer(err, &peer, add ? "adding the peer" :
				 "deleting the peer") : RC_OK;
}

/* ---- resync and push ---- */

int sync_resync(struct args *a)
{
	struct sync_peer peer;
	bool named = false;
	int err, rc = parse_maybe_address(a, &peer, &named);

	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = kern_sync_resync(named ? &peer : NULL);
	return err ? refuse_peer(err, named ? &peer : NULL,
				 "asking for connections") : RC_OK;
}

int sync_push(struct args *a)
{
	int err, rc = arg_end(a, "sync");

	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = kern_sync_push();
	if (err != -ESRCH)
		return err ? refuse(err, "sync", "sending all connections") :
			     RC_OK;
	rc = fail(RC_MISSING, "sync", "send does not run");
	fail_errno(err);
	hint("try: ipvsctl sync start send dev IF");
	return rc;
}

/* ---- reading peers ---- */

static bool is_named(const struct sync_peer *peer, const struct sync_peer *name)
{
	return !name || (peer->af == name->af &&
			 ip_equal(&peer->addr, &name->addr));
}

/* Only those with the address of @name, or all; returns their number in @n. */
static int read_peers(struct sync_peer list[L4LB_PEERS_MAX],
		      const struct sync_peer *name, int *n)
{
	int i, all = kern_peers(list);

	if (all < 0)
		return refuse(all, "sync", "reading the peers");
	*n = 0;
	for (i = 0; i < all; i++)
		if (is_named(&list[i], name))
			list[(*n)++] = list[i];
	return *n ? RC_OK : no_such_peer(name);
}

/* ---- wait ---- */

static int parse_wait(struct args *a, uint32_t *secs, struct sync_peer *peer,
		      bool *named)
{
	const char *word = arg_next(a);
	int rc = RC_OK;

	*named = false;
	*secs = WAIT_SECS;
	if (word && strcmp(word, "peer")) {
		if (!parse_u32(word, 0, WAIT_MAX, secs) &&
		    (!parse_duration(word, secs) || *secs > WAIT_MAX))
			return fail(RC_USAGE, "sync",
				    "bad time \"%s\": write 0 to %u seconds, or such as 90s or 2m",
				    word, WAIT_MAX);
		word = arg_next(a);
	}
	if (word && strcmp(word, "peer"))
		return fail(RC_USAGE, "sync", "unexpected word \"%s\"", word);
	if (word) {
		*named = true;
		rc = arg_value(a, "sync", "peer", &word);
		if (!rc)
			rc = parse_address(word, peer);
	}
	return rc ? rc : arg_end(a, "sync");
}

static const struct sync_peer *not_in_step(const struct sync_peer *list, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (list[i].state != L4LB_PEER_IN_STEP)
			return &list[i];
	return NULL;
}

static int not_yet(const struct sync_peer *peer, uint32_t secs)
{
	int rc;

	if (peer->state == L4LB_PEER_JOINING)
		rc = fail(RC_TIMEOUT, "sync",
			  "after %u s: peer %s is joining, %llu of about %llu records have come",
			  secs, ip_text(peer->af, &peer->addr),
			  (unsigned long long)peer->bulk_in,
			  (unsigned long long)peer->bulk_expected);
	else
		rc = fail(RC_TIMEOUT, "sync",
			  "after %u s: peer %s is absent: nothing is heard of it",
			  secs, ip_text(peer->af, &peer->addr));
	hint("see: ipvsctl sync show");
	return rc;
}

int sync_wait(struct args *a)
{
	const struct sync_peer *late;
	struct sync_peer list[L4LB_PEERS_MAX], name;
	uint64_t polls;
	uint32_t secs;
	bool named;
	int n, rc;

	rc = parse_wait(a, &secs, &name, &named);
	if (!rc)
		rc = wire_open();
	if (!rc)
		rc = read_peers(list, named ? &name : NULL, &n);
	polls = (uint64_t)secs * 1000 / POLL_MS;
	while (!rc && not_in_step(list, n) && polls--) {
		pause_poll();
		rc = read_peers(list, named ? &name : NULL, &n);
	}
	if (rc)
		return rc;
	late = not_in_step(list, n);
	return late ? not_yet(late, secs) : RC_OK;
}

/* ---- verify ---- */

static const struct sync_peer *find(const struct sync_peer *list, int n,
				    const struct sync_peer *peer)
{
	int i;

	for (i = 0; i < n; i++)
		if (is_named(&list[i], peer))
			return &list[i];
	return NULL;
}

/* One of @before that is still a peer and has not been compared since, or NULL. */
static const struct sync_peer *not_compared(const struct sync_peer *before,
					    int n, const struct sync_peer *now,
					    int m)
{
	const struct sync_peer *peer;
	int i;

	for (i = 0; i < n; i++) {
		peer = find(now, m, &before[i]);
		if (peer && peer->verified == before[i].verified)
			return peer;
	}
	return NULL;
}

static int no_comparison(const struct sync_peer *peer)
{
	int rc;

	if (peer->state != L4LB_PEER_IN_STEP)
		return not_yet(peer, VERIFY_SECS);
	rc = fail(RC_TIMEOUT, "sync",
		  "after %u s: peer %s has not answered the comparison",
		  VERIFY_SECS, ip_text(peer->af, &peer->addr));
	hint("see: ipvsctl sync show");
	return rc;
}

static int report_verified(const struct sync_peer *list, int n)
{
	json_t *doc, *one, *array = json_array();
	bool differs = false;
	int i, rc = RC_OK;

	for (i = 0; i < n; i++) {
		const char *address = ip_text(list[i].af, &list[i].addr);

		differs |= list[i].difference;
		if (!opt.json)
			printf("peer %s: difference %u (of %u slices), %u connections compared\n",
			       address, list[i].difference, L4LB_DIGEST_SLICES,
			       list[i].compared);
		one = json_pack("{s:s, s:I, s:I}", "address", address,
				"difference", (json_int_t)list[i].difference,
				"compared", (json_int_t)list[i].compared);
		json_array_append_new(array, one);
	}
	if (opt.json) {
		doc = doc_new();
		json_object_set(doc, "verify", array);
		rc = print_doc(doc);
	}
	json_decref(array);
	return rc ? rc : differs ? fail_code(RC_DIFF) : RC_OK;
}

static bool any_compared(const struct sync_peer *before, int n,
			 const struct sync_peer *now, int m)
{
	const struct sync_peer *peer;
	int i;

	for (i = 0; i < n; i++) {
		peer = find(now, m, &before[i]);
		if (peer && peer->verified != before[i].verified)
			return true;
	}
	return false;
}

/* Asks for comparisons: the next results of the peers in @before are theirs. One that
 * has ended meanwhile may have begun before, so that it is asked for another.
 */
static int begin(const struct sync_peer *name,
		 struct sync_peer before[L4LB_PEERS_MAX], int *n)
{
	struct sync_peer now[L4LB_PEERS_MAX];
	int err, i, m = 0, rc;

	do {
		rc = read_peers(before, name, n);
		for (i = 0; !rc && i < *n; i++)
			if (before[i].state == L4LB_PEER_ABSENT)
				rc = not_yet(&before[i], 0);
		if (rc)
			return rc;
		err = kern_sync_verify(name);
		if (err)
			return refuse_peer(err, name, "comparing");
		rc = read_peers(now, name, &m);
	} while (!rc && !opt.dry_run && any_compared(before, *n, now, m));
	return rc;
}

static int verify(const struct sync_peer *name)
{
	struct sync_peer before[L4LB_PEERS_MAX], now[L4LB_PEERS_MAX];
	uint64_t polls = VERIFY_SECS * 1000 / POLL_MS;
	const struct sync_peer *late;
	int m = 0, n = 0, rc = begin(name, before, &n);

	if (rc || opt.dry_run)
		return rc;
	do {
		pause_poll();
		rc = read_peers(now, name, &m);
		late = rc ? NULL : not_compared(before, n, now, m);
	} while (late && polls--);
	if (late)
		rc = no_comparison(late);
	return rc ? rc : report_verified(now, m);
}

int sync_verify(struct args *a)
{
	struct sync_peer peer;
	bool named = false;
	int rc = parse_maybe_address(a, &peer, &named);

	if (!rc)
		rc = wire_open();
	return rc ? rc : verify(named ? &peer : NULL);
}

/* ---- show ---- */

static json_t *peer_json(const struct sync_peer *p)
{
	json_t *o = json_pack("{s:s, s:I, s:b, s:s}",
			      "address", ip_text(p->af, &p->addr),
			      "port", (json_int_t)p->port, "hops", p->hops,
			      "state", state_name(p->state));
	const struct {
		const char *name;
		uint64_t value;
		bool absent;
	} numbers[] = {
		{ "heard_ms", p->heard_ms, !p->heard },
		{ "gaps", p->gaps, false },
		{ "repaired", p->repaired, false },
		{ "lost", p->lost, false },
		{ "resent", p->resent, false },
		{ "backlog", p->backlog, false },
		{ "records_in", p->bulk_in, false },
		{ "records_expected", p->bulk_expected, false },
		{ "records_out", p->bulk_out, false },
		{ "resyncs", p->resyncs, false },
		{ "verified", p->verified, false },
		{ "difference", p->difference, !p->verified },
		{ "compared", p->compared, !p->verified },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		json_object_set_new(o, numbers[i].name, numbers[i].absent ?
				    json_null() :
				    json_integer((json_int_t)numbers[i].value));
	return o;
}

static json_t *settings_json(const struct sync_settings *s)
{
	char key[16];

	snprintf(key, sizeof(key), "%08x", s->key_id);
	return json_pack("{s:I, s:b, s:I, s:I, s:I, s:o}",
			 "rate", (json_int_t)s->rate, "multicast", s->multicast,
			 "port", (json_int_t)s->port,
			 "verify", (json_int_t)s->verify,
			 "kept", (json_int_t)s->kept, "key",
			 s->keyed ? json_string(key) : json_null());
}

static void print_settings(const struct sync_settings *s)
{
	printf("settings rate %u multicast %s port %u verify %u", s->rate,
	       s->multicast ? "on" : "off", s->port, s->verify);
	if (s->keyed)
		printf(" key %08x", s->key_id);
	printf("\n");
}

static void print_peer(const struct sync_peer *p)
{
	printf("peer %s port %u%s %s", ip_text(p->af, &p->addr), p->port,
	       p->hops ? " hops" : "", state_name(p->state));
	if (p->heard)
		printf(", heard %llu ms ago", (unsigned long long)p->heard_ms);
	if (p->state == L4LB_PEER_JOINING)
		printf(", %llu of about %llu records",
		       (unsigned long long)p->bulk_in,
		       (unsigned long long)p->bulk_expected);
	printf(", messages missed %llu repaired %llu lost %llu",
	       (unsigned long long)p->gaps, (unsigned long long)p->repaired,
	       (unsigned long long)p->lost);
	if (p->verified)
		printf(", difference %u", p->difference);
	printf("\n");
}

int sync_show_peers(json_t *doc)
{
	struct sync_peer list[L4LB_PEERS_MAX];
	struct sync_settings settings;
	json_t *array;
	int err, i, n = kern_peers(list);

	if (n == -EOPNOTSUPP)
		return RC_OK;
	err = n < 0 ? n : kern_sync_settings(&settings);
	if (err)
		return refuse(err, "sync", "reading the peers");
	if (!doc) {
		if (n || settings.keyed || !settings.multicast)
			print_settings(&settings);
		for (i = 0; i < n; i++)
			print_peer(&list[i]);
		return RC_OK;
	}
	array = json_array();
	for (i = 0; i < n; i++)
		json_array_append_new(array, peer_json(&list[i]));
	json_object_set_new(doc, "peers", array);
	json_object_set_new(doc, "settings", settings_json(&settings));
	return RC_OK;
}
