// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rule_match.h"
#include "ruleset.h"

enum {
	NFT_SECS = 5,
	RULES_MAX = 1 << 24,	/* bytes of text */
	JUMPS_MAX = 16,		/* as in the kernel */
};

/* A chain, as rules name it. */
struct chain {
	const char *family, *table, *name;
};

struct walk {
	const json_t *rules;
	const struct rule_packet *p;
	unsigned int depth;
};

static const char *word(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static __attribute__((noreturn)) void run_nft(int out)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	dup2(out, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	alarm(NFT_SECS);
	execlp("nft", "nft", "-j", "list", "ruleset", (char *)NULL);
	_exit(127);
}

static char *read_all(int fd)
{
	char *text = NULL, *more;
	size_t used = 0;
	ssize_t n = 1;

	while (n > 0 && used < RULES_MAX) {
		more = realloc(text, used + (1 << 16) + 1);
		if (!more)
			break;
		text = more;
		n = read(fd, text + used, 1 << 16);
		used += n > 0 ? (size_t)n : 0;
	}
	if (text)
		text[used] = '\0';
	return text;
}

json_t *ruleset_read(const char **why)
{
	json_t *doc = NULL, *list;
	int fds[2], status = 0;
	char *text;
	pid_t pid;

	*why = "nft cannot be run";
	if (pipe2(fds, O_CLOEXEC))
		return NULL;
	pid = fork();
	if (!pid)
		run_nft(fds[1]);
	close(fds[1]);
	text = pid > 0 ? read_all(fds[0]) : NULL;
	close(fds[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		*why = "nft is not installed";
	else if (status)
		*why = "nft cannot list its rules";
	else if (text)
		doc = json_loads(text, 0, NULL);
	free(text);
	list = json_incref(json_object_get(doc, "nftables"));
	json_decref(doc);
	return list;
}

static enum answer both(enum answer a, enum answer b)
{
	if (a == ANSWER_NO || b == ANSWER_NO)
		return ANSWER_NO;
	return a == ANSWER_MAYBE || b == ANSWER_MAYBE ? ANSWER_MAYBE : ANSWER_YES;
}

/* Statements that neither choose packets nor end the rule. */
static bool is_neutral(const char *key)
{
	static const char *const known[] = { "counter", "log", "comment",
					     "mangle", "notrack", "set", NULL };
	int i;

	for (i = 0; known[i]; i++)
		if (!strcmp(key, known[i]))
			return true;
	return false;
}

/* Which packets a rule takes, and the statement that ends it, or NULL. */
static enum answer look_at_rule(const json_t *expr, const struct rule_packet *p,
				const char **verdict, const json_t **target)
{
	static const char *const verdicts[] = {
		"accept", "drop", "reject", "jump", "goto", "return", "dnat",
		"redirect", "queue", NULL
	};
	enum answer takes = ANSWER_YES;
	const json_t *each, *value;
	const char *key;
	size_t i;
	int k;

	*verdict = NULL;
	json_array_foreach(expr, i, each) {
		key = json_object_iter_key(json_object_iter((json_t *)each));
		value = key ? json_object_get(each, key) : NULL;
		if (!key)
			continue;
		for (k = 0; verdicts[k] && strcmp(key, verdicts[k]); k++)
			;
		if (verdicts[k]) {
			*verdict = verdicts[k];
			*target = value;
		} else if (!strcmp(key, "match")) {
			takes = both(takes, rule_match(value, p));
		} else if (!is_neutral(key)) {
			/* It may end the rule, or not apply. */
			takes = both(takes, ANSWER_MAYBE);
			*verdict = *verdict ? *verdict : "queue";
		}
	}
	return takes;
}

static enum fate chain_fate(struct walk *w, const struct chain *c);

static enum fate jump(struct walk *w, const struct chain *from,
		      const json_t *target)
{
	struct chain to = { from->family, from->table, word(target, "target") };
	enum fate fate = FATE_MAYBE;

	if (w->depth < JUMPS_MAX) {
		w->depth++;
		fate = chain_fate(w, &to);
		w->depth--;
	}
	return fate;
}

static enum fate verdict_fate(struct walk *w, const struct chain *c,
			      const char *verdict, const json_t *target)
{
	if (!strcmp(verdict, "drop") || !strcmp(verdict, "reject"))
		return FATE_DROP;
	if (!strcmp(verdict, "dnat") || !strcmp(verdict, "redirect"))
		return FATE_REWRITE;
	if (!strcmp(verdict, "jump") || !strcmp(verdict, "goto"))
		return jump(w, c, target);
	return !strcmp(verdict, "accept") ? FATE_ACCEPT : FATE_MAYBE;
}

static bool is_in(const json_t *rule, const struct chain *c)
{
	return rule && !strcmp(word(rule, "chain"), c->name) &&
	       !strcmp(word(rule, "table"), c->table) &&
	       !strcmp(word(rule, "family"), c->family);
}

static enum fate chain_fate(struct walk *w, const struct chain *c)
{
	bool left = false;	/* the packet may have left the chain before */
	const json_t *each, *target = NULL;
	const char *verdict;
	enum answer takes;
	enum fate fate;
	size_t i;

	json_array_foreach(w->rules, i, each) {
		const json_t *rule = json_object_get(each, "rule");

		if (!is_in(rule, c))
			continue;
		takes = look_at_rule(json_object_get(rule, "expr"), w->p,
				     &verdict, &target);
		if (takes == ANSWER_NO || !verdict)
			continue;
		if (!strcmp(verdict, "return") && takes == ANSWER_YES)
			break;
		fate = verdict_fate(w, c, verdict, target);
		if (takes == ANSWER_MAYBE || fate == FATE_MAYBE) {
			left |= fate != FATE_DROP && fate != FATE_CONTINUE;
			continue;
		}
		if (fate != FATE_CONTINUE)
			return left ? FATE_MAYBE : fate;
		if (!strcmp(verdict, "goto"))
			break;
	}
	return left ? FATE_MAYBE : FATE_CONTINUE;
}

static bool has_family(const char *family, uint16_t af)
{
	return !strcmp(family, "inet") ||
	       !strcmp(family, af == AF_INET ? "ip" : "ip6");
}

enum fate ruleset_fate(const json_t *rules, const char *type, const char *hook,
		       const struct rule_packet *p, const char **chain)
{
	struct walk w = { .rules = rules, .p = p };
	const json_t *each;
	enum fate fate;
	size_t i;

	json_array_foreach(rules, i, each) {
		const json_t *base = json_object_get(each, "chain");
		struct chain c = { word(base, "family"), word(base, "table"),
				   word(base, "name") };

		if (!base || strcmp(word(base, "hook"), hook) ||
		    strcmp(word(base, "type"), type) ||
		    !has_family(c.family, p->af))
			continue;
		*chain = c.name;
		fate = chain_fate(&w, &c);
		if (fate == FATE_CONTINUE && !strcmp(word(base, "policy"), "drop"))
			fate = FATE_DROP;
		if (fate == FATE_DROP || fate == FATE_REWRITE)
			return fate;
	}
	return FATE_MAYBE;
}
