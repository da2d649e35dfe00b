// SPDX-License-Identifier: GPL-2.0
/* ipvsadm has one letter for each command and option, in any order, so a line
 * is read whole before its words are written.
 */
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "err.h"
#include "ipvsadm.h"

enum opt_kind {
	O_TCP, O_UDP, O_SCTP, O_MARK, O_SIX, O_SCHED, O_PERSISTENT, O_MASK, O_PE,
	O_FLAGS, O_OPS, O_SERVER, O_DR, O_TUN, O_NAT, O_WEIGHT, O_MAX, O_MIN,
	O_TUN_TYPE, O_TUN_PORT, O_NOCSUM, O_CSUM, O_REMCSUM, O_CONN, O_STATS,
	O_RATE, O_TIMEOUT, O_DAEMON, O_THRESHOLDS, O_NOTHING, O_IFACE, O_ID,
	O_MAXLEN, O_GROUP, O_PORT, O_TTL, O_KINDS,
};

/* Commands: a letter of ours for those that have none. */
enum { CMD_SET = 's', CMD_START = 'b', CMD_STOP = 'k' };

static const struct command {
	char letter, cmd;
	const char *name;
} commands[] = {
	{ 'A', 'A', "add-service" }, { 'E', 'E', "edit-service" },
	{ 'D', 'D', "delete-service" }, { 'C', 'C', "clear" },
	{ 'R', 'R', "restore" }, { 'S', 'S', "save" },
	{ 'a', 'a', "add-server" }, { 'e', 'e', "edit-server" },
	{ 'd', 'd', "delete-server" }, { 'L', 'L', "list" },
	{ 'l', 'L', NULL }, { 'Z', 'Z', "zero" }, { 0, CMD_SET, "set" },
	{ 0, CMD_START, "start-daemon" }, { 0, CMD_STOP, "stop-daemon" },
};

static const struct option {
	char letter;
	bool value;
	const char *name;
	enum opt_kind kind;
	const char *cmds;	/* commands that take it */
} options[] = {
	{ 't', true, "tcp-service", O_TCP, "AEDaedLZ" },
	{ 'u', true, "udp-service", O_UDP, "AEDaedLZ" },
	{ 0, true, "sctp-service", O_SCTP, "AEDaedLZ" },
	{ 'f', true, "fwmark-service", O_MARK, "AEDaedLZ" },
	{ '6', false, "ipv6", O_SIX, "AEDaedLZ" },
	{ 's', true, "scheduler", O_SCHED, "AE" },
	{ 'p', false, "persistent", O_PERSISTENT, "AE" },
	{ 'M', true, "netmask", O_MASK, "AE" },
	{ 0, true, "pe", O_PE, "AE" },
	{ 'b', true, "sched-flags", O_FLAGS, "AE" },
	{ 'o', false, "ops", O_OPS, "AE" },
	{ 'r', true, "real-server", O_SERVER, "aed" },
	{ 'g', false, "gatewaying", O_DR, "ae" },
	{ 'i', false, "ipip", O_TUN, "ae" },
	{ 'm', false, "masquerading", O_NAT, "ae" },
	{ 'w', true, "weight", O_WEIGHT, "ae" },
	{ 'x', true, "u-threshold", O_MAX, "ae" },
	{ 'y', true, "l-threshold", O_MIN, "ae" },
	{ 0, true, "tun-type", O_TUN_TYPE, "ae" },
	{ 0, true, "tun-port", O_TUN_PORT, "ae" },
	{ 0, false, "tun-nocsum", O_NOCSUM, "ae" },
	{ 0, false, "tun-csum", O_CSUM, "ae" },
	{ 0, false, "tun-remcsum", O_REMCSUM, "ae" },
	{ 'c', false, "connection", O_CONN, "L" },
	{ 0, false, "stats", O_STATS, "L" },
	{ 0, false, "rate", O_RATE, "L" },
	{ 0, false, "timeout", O_TIMEOUT, "L" },
	{ 0, false, "daemon", O_DAEMON, "L" },
	{ 0, false, "thresholds", O_THRESHOLDS, "L" },
	{ 0, false, "persistent-conn", O_NOTHING, "L" },
	{ 0, false, "tun-info", O_NOTHING, "L" },
	{ 0, false, "nosort", O_NOTHING, "L" },
	{ 0, false, "sort", O_NOTHING, "L" },
	{ 0, false, "exact", O_NOTHING, "L" },
	{ 'n', false, "numeric", O_NOTHING, "LS" },
	{ 0, true, "mcast-interface", O_IFACE, "b" },
	{ 0, true, "syncid", O_ID, "bk" },
	{ 0, true, "sync-maxlen", O_MAXLEN, "b" },
	{ 0, true, "mcast-group", O_GROUP, "b" },
	{ 0, true, "mcast-port", O_PORT, "b" },
	{ 0, true, "mcast-ttl", O_TTL, "b" },
};

/* A line that was read. */
struct line {
	char cmd;
	const char *cmd_name;
	bool given[O_KINDS];
	const char *value[O_KINDS];
	const char *number[3];		/* after --set; number[0]: the daemon's role */
	const char *forward;
	const char *csum;
};

enum { OUT_WORDS = 64, OUT_TEXT = 4096 };

static struct {
	char *word[OUT_WORDS];
	char text[OUT_TEXT];
	size_t used;
	int n;
	bool full;
} out_line;

static void put(const char *fmt, ...) PRINTF_LIKE(1, 2);

static void put(const char *fmt, ...)
{
	size_t room = OUT_TEXT - out_line.used;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(out_line.text + out_line.used, room, fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= room || out_line.n >= OUT_WORDS - 1) {
		out_line.full = true;
		return;
	}
	out_line.word[out_line.n++] = out_line.text + out_line.used;
	out_line.used += (size_t)len + 1;
}

static const struct command *find_command(const char *name, size_t len,
					  char letter)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		const char *n = commands[i].name;

		if (letter ? commands[i].letter == letter
			   : n && strlen(n) == len && !strncmp(n, name, len))
			return &commands[i];
	}
	return NULL;
}

static const struct option *find_option(const char *name, size_t len,
					char letter)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		const char *n = options[i].name;

		if (letter ? options[i].letter == letter
			   : strlen(n) == len && !strncmp(n, name, len))
			return &options[i];
	}
	return NULL;
}

bool ipvsadm_is_line(int count, char **word)
{
	int i;

	for (i = 0; i < count && word[i][0] == '-'; i++) {
		if (word[i][1] == '-' &&
		    find_command(word[i] + 2, strcspn(word[i] + 2, "="), 0))
			return true;
		if (word[i][1] == '-' || !word[i][1])
			continue;
		if (word[i][1] == 'C' && i + 1 < count)
			continue;	/* our --color, with its value */
		if (find_command(NULL, 0, word[i][1]) &&
		    (word[i][1] != 'C' || !word[i][2]))
			return true;
		/* The values of -t, -u and -f do not begin with a dash. */
		if (strchr("tuf", word[i][1]) && !word[i][2])
			i++;
	}
	return false;
}

static int set_command(struct line *l, const struct command *c,
		       struct args *in)
{
	size_t i, want = c->cmd == CMD_SET ? 3 : 0;
	int rc = RC_OK;

	if (l->cmd)
		return fail(RC_USAGE, NULL,
			    "two commands on a line of ipvsadm: %s and %s",
			    l->cmd_name, c->name ? c->name : "list");
	l->cmd = c->cmd;
	l->cmd_name = c->name ? c->name : "list";
	if (c->cmd == CMD_START || c->cmd == CMD_STOP)
		want = 1;
	for (i = 0; i < want && !rc; i++)
		rc = arg_value(in, NULL, c->name, &l->number[i]);
	return rc;
}

static int set_option(struct line *l, const struct option *o,
		      const char *attached, struct args *in)
{
	static const char *const forward[] = { "dr", "tun", "nat" };
	static const char *const csum[] = { "no-csum", "csum", "remcsum" };
	const char *next = arg_peek(in);

	l->given[o->kind] = true;
	if (o->kind >= O_DR && o->kind <= O_NAT)
		l->forward = forward[o->kind - O_DR];
	if (o->kind >= O_NOCSUM && o->kind <= O_REMCSUM)
		l->csum = csum[o->kind - O_NOCSUM];
	/* -p may have a value, the others always or never. */
	if (o->kind == O_PERSISTENT && !attached && next && next[0] != '-')
		attached = arg_next(in);
	if (o->value && !attached)
		return arg_value(in, NULL, o->name, &l->value[o->kind]);
	if (attached && !o->value && o->kind != O_PERSISTENT)
		return fail(RC_USAGE, NULL, "ipvsadm's --%s takes no value",
			    o->name);
	l->value[o->kind] = attached;
	return RC_OK;
}

static int unknown(const char *word)
{
	int rc = fail(RC_USAGE, NULL, "ipvsadm has no option \"%s\"", word);

	hint("see: ipvsctl help");
	return rc;
}

static int read_long(struct line *l, const char *word, struct args *in)
{
	size_t len = strcspn(word + 2, "=");
	const char *attached = word[2 + len] ? word + 2 + len + 1 : NULL;
	const struct command *c = find_command(word + 2, len, 0);
	const struct option *o = find_option(word + 2, len, 0);

	if (c && !attached)
		return set_command(l, c, in);
	return o ? set_option(l, o, attached, in) : unknown(word);
}

/* Letters stand together, as in -Ln; the rest of the word may be a value. */
static int read_short(struct line *l, const char *word, struct args *in)
{
	const char *p;
	int rc = RC_OK;

	for (p = word + 1; *p && !rc; p++) {
		const struct command *c = find_command(NULL, 0, *p);
		const struct option *o = find_option(NULL, 0, *p);
		const char *rest = p[1] == '=' ? p + 2 : p + 1;

		if (!c && !o)
			return unknown(word);
		if (o && p[1] && (o->value || (o->kind == O_PERSISTENT &&
					       p[1] >= '0' && p[1] <= '9')))
			return set_option(l, o, rest, in);
		rc = c ? set_command(l, c, in) : set_option(l, o, NULL, in);
	}
	return rc;
}

static int check_line(const struct line *l)
{
	int names = l->given[O_TCP] + l->given[O_UDP] + l->given[O_SCTP] +
		    l->given[O_MARK];
	size_t i;

	if (!l->cmd)
		return fail(RC_USAGE, NULL,
			    "no command of ipvsadm, such as -A, -a or -L");
	for (i = 0; i < ARRAY_SIZE(options); i++)
		if (l->given[options[i].kind] &&
		    options[i].kind != O_NOTHING &&
		    !strchr(options[i].cmds, l->cmd))
			return fail(RC_USAGE, NULL,
				    "ipvsadm's --%s does not belong to --%s",
				    options[i].name, l->cmd_name);
	if (names > 1)
		return fail(RC_USAGE, NULL, "the line names two services");
	if (!names && strchr("AEDaed", l->cmd))
		return fail(RC_USAGE, NULL,
			    "the line names no service (-t, -u or -f)");
	if (!l->given[O_SERVER] && strchr("aed", l->cmd))
		return fail(RC_USAGE, NULL, "the line names no server (-r)");
	return RC_OK;
}

/* The place of the colon before the port, or NULL. */
static const char *port_colon(const char *name)
{
	const char *end = strchr(name, ']');

	return strchr(end ? end : name, ':');
}

/* The address, and the port as a number: it may be the name of a service. */
static void put_endpoint(const char *name, const char *proto, bool port)
{
	const char *colon = port_colon(name);
	struct servent *known;

	if (!colon || !port) {
		put("%.*s", (int)(colon ? (size_t)(colon - name)
				       : strlen(name)), name);
		return;
	}
	known = getservbyname(colon + 1, proto);
	if (known && (colon[1] < '0' || colon[1] > '9'))
		put("%.*s:%u", (int)(colon - name), name,
		    ((known->s_port & 0xff) << 8) | known->s_port >> 8);
	else
		put("%s", name);
}

static const char *protocol(const struct line *l)
{
	return l->given[O_UDP] ? "udp" : l->given[O_SCTP] ? "sctp" : "tcp";
}

static bool has_service(const struct line *l)
{
	return l->given[O_TCP] || l->given[O_UDP] || l->given[O_SCTP] ||
	       l->given[O_MARK];
}

static void put_service(const struct line *l)
{
	const char *name;
	char whole[256];

	if (l->given[O_MARK]) {
		put("fwmark");
		put("%s", l->value[O_MARK]);
		if (l->given[O_SIX])
			put("inet6");
		return;
	}
	name = l->value[l->given[O_UDP] ? O_UDP : l->given[O_SCTP] ? O_SCTP
								  : O_TCP];
	snprintf(whole, sizeof(whole), "%s%s", name, port_colon(name) ? "" : ":0");
	put("%s", protocol(l));
	put_endpoint(whole, protocol(l), true);
}

static void put_pair(const char *word, const char *value)
{
	put("%s", word);
	put("%s", value);
}

/* sh-port and mh-port are one flag with two names. */
static void put_flags(const char *flags)
{
	char buf[128], *word, *save, line[128] = "";

	snprintf(buf, sizeof(buf), "%s", flags);
	for (word = strtok_r(buf, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		size_t used = strlen(line);

		if (!strncmp(word, "sh-", 3) || !strncmp(word, "mh-", 3))
			word += 3;
		snprintf(line + used, sizeof(line) - used, "%s%s",
			 used ? "," : "", word);
	}
	put_pair("flags", line);
}

static void put_persistence(const struct line *l, bool reset)
{
	const char *vip = l->value[l->given[O_UDP] ? O_UDP :
				   l->given[O_SCTP] ? O_SCTP : O_TCP];
	bool six = l->given[O_SIX] || (vip && vip[0] == '[');

	if (!l->given[O_PERSISTENT]) {
		if (reset)
			put("no-persistent");
		return;
	}
	/* Without a time ipvsadm sends 360; its manual says 300. */
	put_pair("persistent", l->value[O_PERSISTENT] ? l->value[O_PERSISTENT]
						      : "360");
	if (reset && !l->given[O_MASK])
		put_pair("mask", six ? "128" : "32");
}

/* Options of a service; with @reset also the defaults of those not named. */
static void put_service_options(const struct line *l, bool reset)
{
	if (l->given[O_SCHED])
		put_pair("scheduler", l->value[O_SCHED]);
	else if (reset)
		put_pair("scheduler", "wlc");
	if (l->given[O_FLAGS])
		put_flags(l->value[O_FLAGS]);
	else if (reset)
		put_pair("flags", "none");
	put_persistence(l, reset);
	if (l->given[O_MASK])
		put_pair("mask", l->value[O_MASK]);
	if (l->given[O_PE])
		put_pair("pe", l->value[O_PE]);
	else if (reset)
		put_pair("pe", "none");
	if (l->given[O_OPS])
		put("ops");
	else if (reset)
		put("no-ops");
}

static void put_server_options(const struct line *l, bool reset)
{
	const struct { enum opt_kind kind; const char *word, *usual; } n[] = {
		{ O_WEIGHT, "weight", "1" }, { O_MAX, "max-conns", "0" },
		{ O_MIN, "min-conns", "0" },
	};
	size_t i;

	if (l->forward || l->cmd == 'a' || reset)
		put("%s", l->forward ? l->forward : "dr");
	if (l->given[O_TUN_TYPE])
		put_pair("type", l->value[O_TUN_TYPE]);
	if (l->given[O_TUN_PORT])
		put_pair("port", l->value[O_TUN_PORT]);
	if (l->csum && strcmp(l->csum, "no-csum"))
		put("%s", l->csum);
	for (i = 0; i < ARRAY_SIZE(n); i++) {
		if (l->given[n[i].kind])
			put_pair(n[i].word, l->value[n[i].kind]);
		else if (reset)
			put_pair(n[i].word, n[i].usual);
	}
}

/* Direct routing and tunnels keep the service's port: ipvsadm passes over
 * another one in silence.
 */
static void put_server(const struct line *l, bool whole)
{
	const char *how = l->forward ? l->forward
			: l->cmd == 'a' || whole ? "dr" : "nat";

	put_service(l);
	put_endpoint(l->value[O_SERVER], protocol(l),
		     l->cmd == 'd' || !strcmp(how, "nat"));
}

static void put_listing(const struct line *l)
{
	if (l->given[O_TIMEOUT]) {
		put_pair("timeout", "show");
	} else if (l->given[O_DAEMON]) {
		put_pair("sync", "show");
	} else if (l->given[O_CONN]) {
		put_pair("conn", "show");
		if (has_service(l))
			put("service");
	} else if (l->given[O_RATE] || l->given[O_STATS]) {
		put_pair("stats", l->given[O_STATS] ? "total" : "rate");
	} else {
		put("show");
		if (l->given[O_THRESHOLDS])
			put_pair("-o", "name,sched,fwd,weight,max,min,active,inact");
	}
	if (has_service(l))
		put_service(l);
}

static void put_sync(const struct line *l)
{
	static const struct { enum opt_kind kind; const char *word; } n[] = {
		{ O_IFACE, "dev" }, { O_ID, "id" }, { O_MAXLEN, "maxlen" },
		{ O_GROUP, "group" }, { O_PORT, "port" }, { O_TTL, "ttl" },
	};
	const char *role = l->number[0];
	size_t i;

	put_pair("sync", l->cmd == CMD_START ? "start" : "stop");
	put("%s", !strcmp(role, "master") ? "send"
		  : !strcmp(role, "backup") ? "receive" : role);
	for (i = 0; i < ARRAY_SIZE(n) && l->cmd == CMD_START; i++)
		if (l->given[n[i].kind])
			put_pair(n[i].word, l->value[n[i].kind]);
}

static void put_timeouts(const struct line *l)
{
	static const char *const kinds[] = { "tcp", "tcp-fin", "udp" };
	size_t i;

	put_pair("timeout", "set");
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(l->number[i], "0"))	/* 0 keeps */
			put_pair(kinds[i], l->number[i]);
}

static void put_line(const struct line *l, bool whole)
{
	static const struct { char cmd; const char *noun, *verb; } verbs[] = {
		{ 'A', "service", "add" }, { 'E', "service", "change" },
		{ 'D', "service", "delete" }, { 'a', "server", "add" },
		{ 'e', "server", "change" }, { 'd', "server", "delete" },
		{ 'C', "service", "flush" }, { 'Z', "stats", "zero" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(verbs); i++)
		if (verbs[i].cmd == l->cmd)
			put_pair(verbs[i].noun, verbs[i].verb);
	switch (l->cmd) {
	case 'A':
	case 'E':
		put_service(l);
		put_service_options(l, whole && l->cmd == 'E');
		break;
	case 'a':
	case 'e':
		put_server(l, whole);
		put_server_options(l, whole && l->cmd == 'e');
		break;
	case 'd':
		put_server(l, whole);
		break;
	case 'D':
		put_service(l);
		break;
	case 'Z':
		if (has_service(l))
			put_service(l);
		break;
	case 'C':
		if (whole)
			put("--yes");
		break;
	case 'L':
		put_listing(l);
		break;
	case 'R':
	case 'S':
		put("%s", l->cmd_name);
		break;
	case CMD_SET:
		put_timeouts(l);
		break;
	default:
		put_sync(l);
	}
}

int ipvsadm_translate(struct args *in, bool whole, struct args *out)
{
	struct line l = { 0 };
	const char *word;
	int rc = RC_OK;

	out_line.used = 0;
	out_line.n = 0;
	out_line.full = false;
	while (!rc && (word = arg_next(in))) {
		if (word[0] != '-' || !word[1])
			rc = fail(RC_USAGE, NULL,
				  "ipvsadm takes no word \"%s\" here", word);
		else if (word[1] == '-')
			rc = read_long(&l, word, in);
		else
			rc = read_short(&l, word, in);
	}
	if (!rc)
		rc = check_line(&l);
	if (rc)
		return rc;
	put_line(&l, whole);
	if (out_line.full)
		return fail(RC_USAGE, NULL, "the line of ipvsadm is too long");
	out_line.word[out_line.n] = NULL;
	*out = (struct args){ .word = out_line.word, .count = out_line.n };
	return RC_OK;
}
