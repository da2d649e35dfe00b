// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "err.h"
#include "model.h"
#include "proc.h"

static int open_proc(const char *path, FILE **f)
{
	*f = fopen(path, "re");
	if (*f)
		return RC_OK;
	if (errno == ENOENT && !module_loaded("l4lb") &&
	    !module_loaded("ip_vs"))
		return backend_missing();
	return fail(errno == EACCES ? RC_PERM : RC_BACKEND, NULL,
		    "cannot read %s: %s", path, strerror(errno));
}

/* Eight hex digits, or a full IPv6 address with or without brackets. */
static bool parse_addr(const char *word, uint16_t *af, struct ip *ip)
{
	unsigned int n = 0;
	uint32_t be;
	char buf[64];

	memset(ip, 0, sizeof(*ip));
	if (strchr(word, ':')) {
		snprintf(buf, sizeof(buf), "%s", word[0] == '[' ? word + 1
								: word);
		buf[strcspn(buf, "]")] = '\0';
		*af = AF_INET6;
		return inet_pton(AF_INET6, buf, ip->b) == 1;
	}
	if (strlen(word) != 8 || sscanf(word, "%8x", &n) != 1)
		return false;
	be = htonl(n);
	memcpy(ip->b, &be, 4);
	*af = AF_INET;
	return true;
}

/* A template of a service by mark has the mark in place of the address. */
static void take_fwmark(struct conn *c)
{
	uint32_t be;

	memcpy(&be, c->vip.b, 4);
	c->fwmark = ntohl(be);
	c->proto = 0;
}

static bool conn_line(const char *line, struct conn *c)
{
	char pro[12], from[64], to[64], dest[64];
	unsigned int fport, tport, dport, expires;
	uint16_t af;
	int n, i;

	memset(c, 0, sizeof(*c));
	n = sscanf(line, "%11s %63s %x %63s %x %63s %x %23s %u %19s %255[^\n]",
		   pro, from, &fport, to, &tport, dest, &dport, c->state,
		   &expires, c->pe, c->pe_data);
	if (n < 9 || !parse_addr(from, &c->af, &c->client) ||
	    !parse_addr(to, &af, &c->vip) ||
	    !parse_addr(dest, &c->server_af, &c->server))
		return false;
	for (i = 0; pro[i]; i++)
		if (pro[i] >= 'A' && pro[i] <= 'Z')
			pro[i] += 'a' - 'A';
	c->client_port = (uint16_t)fport;
	c->vport = (uint16_t)tport;
	c->server_port = (uint16_t)dport;
	c->expires = expires;
	c->template = !fport && (!strcmp(c->state, "NONE") ||
				 !strcmp(c->state, "ASSURED"));
	if (!strcmp(pro, "ip"))
		take_fwmark(c);
	else if (!proto_parse(pro, &c->proto) && !strncmp(pro, "ip_", 3))
		c->proto = (uint16_t)strtoul(pro + 3, NULL, 10);
	return true;
}

int proc_conns(bool (*fn)(const struct conn *c, void *arg), void *arg)
{
	char *line = NULL;
	size_t size = 0;
	struct conn c;
	FILE *f;
	int rc = open_proc("/proc/net/ip_vs_conn", &f);

	if (rc)
		return rc;
	while (getline(&line, &size, f) > 0)
		if (conn_line(line, &c) && !fn(&c, arg))
			break;
	free(line);
	fclose(f);
	return RC_OK;
}

static bool parse_five(const char *line, uint64_t v[5])
{
	char *end;
	int i;

	for (i = 0; i < 5; i++, line = end) {
		v[i] = strtoull(line, &end, 16);
		if (end == line || (*end && !isspace((unsigned char)*end)))
			return false;
	}
	return true;
}

static void take_totals(struct counters *c, const uint64_t v[5])
{
	c->conns = v[0];
	c->inpkts = v[1];
	c->outpkts = v[2];
	c->inbytes = v[3];
	c->outbytes = v[4];
}

static void take_rates(struct counters *c, const uint64_t v[5])
{
	c->cps = v[0];
	c->inpps = v[1];
	c->outpps = v[2];
	c->inbps = v[3];
	c->outbps = v[4];
}

/* Title lines are not five hex numbers. The totals come before the rates. */
int proc_totals(struct counters *total)
{
	char *line = NULL;
	size_t size = 0;
	uint64_t v[5];
	int seen = 0, rc;
	FILE *f;

	memset(total, 0, sizeof(*total));
	rc = open_proc("/proc/net/ip_vs_stats", &f);
	if (rc)
		return rc;
	while (getline(&line, &size, f) > 0) {
		if (!parse_five(line, v))
			continue;
		if (!seen++)
			take_totals(total, v);
		else
			take_rates(total, v);
	}
	free(line);
	fclose(f);
	return RC_OK;
}

int proc_counters(void (*fn)(const struct proc_counter *c, void *arg),
		  void *arg)
{
	char *line = NULL;
	size_t size = 0;
	FILE *f;
	int rc;

	if (!backend_is_l4lb())
		return RC_OK;
	rc = open_proc("/proc/net/l4lb", &f);
	if (rc)
		return rc;
	while (getline(&line, &size, f) > 0) {
		struct proc_counter c;
		unsigned long long value;

		if (sscanf(line, "%31s %llu", c.name, &value) != 2)
			continue;
		c.value = value;
		fn(&c, arg);
	}
	free(line);
	fclose(f);
	return RC_OK;
}

bool proc_is_fast_path(const char *name)
{
	return !strcmp(name, "fast") || !strncmp(name, "slow_", 5) ||
	       !strncmp(name, "xdp", 3);
}

bool proc_setting(const char *name, uint64_t *value)
{
	unsigned long long found;
	char path[128];
	bool ok;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/vs/%s", name);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fscanf(f, "%llu", &found) == 1;
	if (ok)
		*value = found;
	fclose(f);
	return ok;
}

int proc_percpu(void (*fn)(const char *cpu, const struct counters *c,
			   void *arg), void *arg)
{
	char *line = NULL, label[16], *end;
	unsigned long cpu;
	size_t size = 0;
	uint64_t v[5];
	int rc, skip;
	FILE *f;

	rc = open_proc("/proc/net/ip_vs_stats_percpu", &f);
	if (rc)
		return rc;
	while (getline(&line, &size, f) > 0) {
		struct counters c = { 0 };

		if (sscanf(line, "%15s%n", label, &skip) != 1 ||
		    !parse_five(line + skip, v))
			continue;
		take_totals(&c, v);
		cpu = strtoul(label, &end, 16);
		if (!strcmp(label, "~"))
			strcpy(label, "all");
		else if (*end)
			continue;
		else
			snprintf(label, sizeof(label), "%lu", cpu);
		fn(label, &c, arg);
	}
	free(line);
	fclose(f);
	return RC_OK;
}
