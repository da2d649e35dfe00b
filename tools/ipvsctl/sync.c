// SPDX-License-Identifier: GPL-2.0
/* `ipvsctl sync`: the daemons that tell other directors of connections. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/ip_vs.h>

#include "args.h"
#include "cmd.h"
#include "err.h"
#include "kern_sync.h"
#include "opt.h"
#include "out.h"
#include "refuse.h"
#include "sync_peer.h"
#include "sync_set.h"
#include "wire.h"

enum { SEND = 1 << 0, RECEIVE = 1 << 1 };

static const char *const role_words[] = {
	"send", "receive", "both", "master", "backup", NULL
};

static const unsigned int role_bits[] = {
	SEND, RECEIVE, SEND | RECEIVE, SEND, RECEIVE
};

static int parse_roles(const char *word, unsigned int *roles)
{
	int i;

	for (i = 0; role_words[i]; i++) {
		if (strcmp(word, role_words[i]))
			continue;
		*roles = role_bits[i];
		return RC_OK;
	}
	return arg_unknown("sync", "role", word, role_words);
}

static json_t *daemon_json(const struct sync_daemon *d)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:s, s:I, s:I}",
			 "role", sync_role_name(d->role), "device", d->dev,
			 "id", (json_int_t)d->id,
			 "maxlen", (json_int_t)d->maxlen,
			 "group", ip_text(d->af, &d->group),
			 "port", (json_int_t)d->port,
			 "ttl", (json_int_t)d->ttl);
}

static int sync_show(struct args *a)
{
	struct sync_daemon list[SYNC_DAEMONS_MAX];
	json_t *doc, *array;
	int i, n = 0, rc;

	rc = arg_end(a, "sync");
	if (!rc)
		rc = wire_open();
	if (!rc)
		n = kern_sync_list(list);
	if (rc)
		return rc;
	if (n < 0)
		return refuse(n, "sync", "reading the daemons");
	if (!opt.json) {
		if (!n)
			note("neither send nor receive runs");
		for (i = 0; i < n; i++)
			printf("%s dev %s id %u group %s port %u ttl %u maxlen %u\n",
			       sync_role_name(list[i].role), list[i].dev,
			       list[i].id,
			       ip_text(list[i].af, &list[i].group),
			       list[i].port, list[i].ttl, list[i].maxlen);
		return sync_show_peers(NULL);
	}
	array = json_array();
	for (i = 0; i < n; i++)
		json_array_append_new(array, daemon_json(&list[i]));
	doc = doc_new();
	json_object_set_new(doc, "sync", array);
	rc = sync_show_peers(doc);
	if (!rc)
		return print_doc(doc);
	json_decref(doc);
	return rc;
}

static int parse_device(struct args *a, struct sync_daemon *d)
{
	const char *word;
	int rc = arg_value(a, "sync", "dev", &word);

	if (rc)
		return rc;
	if (!word[0] || strlen(word) >= sizeof(d->dev))
		return fail(RC_USAGE, "sync",
			    "bad dev \"%s\": an interface's name has 1 to %zu characters",
			    word, sizeof(d->dev) - 1);
	strcpy(d->dev, word);
	return RC_OK;
}

static bool is_multicast(const struct sync_daemon *d)
{
	return d->af == AF_INET ? (d->group.b[0] & 0xf0) == 0xe0
				: d->group.b[0] == 0xff;
}

static int parse_group(struct args *a, struct sync_daemon *d)
{
	const char *word;
	uint32_t len;
	int rc = arg_value(a, "sync", "group", &word);

	if (!rc)
		rc = parse_prefix(word, "sync", &d->af, &d->group, &len);
	if (rc)
		return rc;
	if (strchr(word, '/') || !is_multicast(d))
		return fail(RC_USAGE, "sync",
			    "bad group \"%s\": write a multicast address, such as 224.0.0.81 or ff02::81",
			    word);
	return RC_OK;
}

static int parse_value(struct args *a, const char *word, struct sync_daemon *d)
{
	if (!strcmp(word, "dev"))
		return parse_device(a, d);
	if (!strcmp(word, "group"))
		return parse_group(a, d);
	if (!strcmp(word, "id"))
		return arg_u32(a, "sync", word, RANGE(0, 255), &d->id);
	if (!strcmp(word, "maxlen"))
		return arg_u32(a, "sync", word, RANGE(1, 65535), &d->maxlen);
	if (!strcmp(word, "port"))
		return arg_u32(a, "sync", word, RANGE(1, 65535), &d->port);
	return arg_u32(a, "sync", word, RANGE(1, 255), &d->ttl);
}

static int parse_options(struct args *a, struct sync_daemon *d)
{
	static const char *const known[] = {
		"dev", "id", "maxlen", "group", "port", "ttl", NULL
	};
	unsigned int seen = 0;
	const char *word;
	int i, rc = RC_OK;

	while (!rc && (word = arg_next(a))) {
		for (i = 0; known[i] && strcmp(word, known[i]); i++)
			;
		if (!known[i])
			return arg_unknown("sync", "option", word, known);
		if (seen & 1 << i)
			return fail(RC_USAGE, "sync", "\"%s\" is given twice",
				    word);
		seen |= 1 << i;
		rc = parse_value(a, word, d);
	}
	return rc;
}

static int parse_start(struct args *a, unsigned int *roles,
		       struct sync_daemon *d)
{
	const char *word = arg_next(a);
	int rc;

	memset(d, 0, sizeof(*d));
	if (!word) {
		rc = fail(RC_USAGE, "sync", "start what?");
		hint("try: ipvsctl sync start both dev eth1 id 1");
		return rc;
	}
	rc = parse_roles(word, roles);
	if (!rc)
		rc = parse_options(a, d);
	if (!rc && !d->dev[0]) {
		rc = fail(RC_USAGE, "sync", "\"dev\" is missing");
		hint("try: ipvsctl sync start %s dev eth1 id 1", word);
	}
	return rc;
}

static int refuse_start(int err, const struct sync_daemon *d)
{
	const char *role = sync_role_name(d->role);
	int rc;

	switch (-err) {
	case EEXIST:
		rc = fail(RC_EXISTS, "sync", "%s runs already", role);
		hint("see: ipvsctl sync show");
		break;
	case ENODEV:
		rc = fail(RC_MISSING, "sync", "there is no interface %s",
			  d->dev);
		hint("see: ip link show");
		break;
	case ENETUNREACH:
	case EADDRNOTAVAIL:
		rc = fail(RC_REFUSED, "sync", "interface %s cannot send to %s",
			  d->dev, d->af ? ip_text(d->af, &d->group) :
			  "the group");
		hint("try: ip link set %s up", d->dev);
		break;
	default:
		return refuse(err, "sync", "starting it");
	}
	fail_errno(err);
	return rc;
}

static int sync_start(struct args *a)
{
	unsigned int roles = 0;
	struct sync_daemon d;
	int err = 0, rc;

	rc = parse_start(a, &roles, &d);
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	if (roles & SEND) {
		d.role = IP_VS_STATE_MASTER;
		err = kern_sync_start(&d);
	}
	if (!err && roles & RECEIVE) {
		d.role = IP_VS_STATE_BACKUP;
		err = kern_sync_start(&d);
		if (err && roles & SEND)
			kern_sync_undo(IP_VS_STATE_MASTER);
	}
	return err ? refuse_start(err, &d) : RC_OK;
}

/* 0: at least one of @roles has run, and is stopped. */
static int stop_roles(unsigned int roles)
{
	int sent = roles & SEND ? kern_sync_stop(IP_VS_STATE_MASTER) : -ESRCH;
	int received = roles & RECEIVE ? kern_sync_stop(IP_VS_STATE_BACKUP) :
					 -ESRCH;

	if (sent && sent != -ESRCH)
		return sent;
	if (received && received != -ESRCH)
		return received;
	return sent && received ? -ESRCH : 0;
}

/* Without a role: whatever runs. */
static int sync_stop(struct args *a)
{
	const char *word = arg_next(a);
	unsigned int roles = SEND | RECEIVE;
	int err, rc = word ? parse_roles(word, &roles) : RC_OK;

	if (!rc)
		rc = arg_end(a, "sync");
	if (!rc)
		rc = wire_open();
	if (rc)
		return rc;
	err = stop_roles(roles);
	if (err != -ESRCH)
		return err ? refuse(err, "sync", "stopping it") : RC_OK;
	rc = fail(RC_MISSING, "sync", "%s does not run",
		  roles == (SEND | RECEIVE) ? "synchronisation" :
		  roles == SEND ? "send" : "receive");
	fail_errno(err);
	return rc;
}

static const struct verb verbs[] = {
	{ "show", sync_show, "", "the daemons that run, and the peers", 0 },
	{ "start", sync_start,
	  "{send|receive|both} dev IF [id N] [maxlen N] [group ADDR] [port N] [ttl N]",
	  "send connections to other directors, receive theirs, or both", 0 },
	{ "stop", sync_stop, "[send|receive|both]", "stop sending, receiving or both", 0 },
	{ "peer", sync_peer, "{add ADDR [port N] [hops]|delete ADDR}",
	  "another director, by its address", 0 },
	{ "set", sync_set,
	  "[rate N] [multicast {on|off}] [port N] [verify SECONDS] [key {FILE|none}]",
	  "what holds for all peers", 0 },
	{ "resync", sync_resync, "[ADDR]", "ask peers for all their connections", 0 },
	{ "push", sync_push, "", "send all connections to the group once, for ip_vs", 0 },
	{ "wait", sync_wait, "[SECONDS] [peer ADDR]", "until peers are in step", 0 },
	{ "verify", sync_verify, "[ADDR]", "compare connections with peers", 0 },
	{ NULL, NULL, NULL, NULL, 0 }
};

const struct noun noun_sync = {
	"sync", NULL, verbs, "connections shared with other directors", NOUN_VERBS
};
