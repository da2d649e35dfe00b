// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "backend.h"
#include "err.h"
#include "model.h"
#include "policy.h"
#include "snat.h"
#include "wire.h"

/* In seconds; words and keys as in `timeout set`, and sctp. */
static const struct {
	const char *word, *key;
	int attr;
} timeouts[] = {
	{ "tcp", "tcp", L4LB_POLICY_ATTR_TIMEOUT_TCP },
	{ "tcp-fin", "tcp_fin", L4LB_POLICY_ATTR_TIMEOUT_TCP_FIN },
	{ "udp", "udp", L4LB_POLICY_ATTR_TIMEOUT_UDP },
	{ "sctp", "sctp", L4LB_POLICY_ATTR_TIMEOUT_SCTP },
};

/* Numbers; "off" and 0 are the default of each. */
static const struct {
	const char *word, *key;
	int attr;
	uint32_t max;
	bool is_time;
} numbers[] = {
	{ "ramp", "ramp", L4LB_POLICY_ATTR_RAMP, L4LB_RAMP_MAX, true },
	{ "limit-rate", "limit_rate", L4LB_POLICY_ATTR_LIMIT_RATE,
	  L4LB_LIMIT_RATE_MAX, false },
	{ "limit-burst", "limit_burst", L4LB_POLICY_ATTR_LIMIT_BURST,
	  L4LB_LIMIT_RATE_MAX, false },
	{ "limit-conns", "limit_conns", L4LB_POLICY_ATTR_LIMIT_CONNS,
	  INT32_MAX, false },
};

/* Values of the choices below; the first of each is the default. */
static const char *const idle_words[] = { "forget", "reset", NULL };

static const char *const loss_words[] = {
	"default", "keep", "move", "reset", NULL
};

static const char *const drain_words[] = { "default", "keep", "move", NULL };

static const char *const guard_words[] = { "off", "reject", "drop", NULL };

static const char *const fast_path_words[] = {
	"default", "off", "on", "new", NULL
};

static const char *const sync_words[] = {
	"on", "off", "templates", "exceptions", NULL
};

static const char *const log_words[] = { "off", "on", NULL };

static const char *const state_words[] = { "eager", "lazy", NULL };

static const char *const reply_words[] = { "drop", "reset", NULL };

static const char *const priority_words[] = { "off", "las", NULL };

static const char *const protected_words[] = { "off", "on", NULL };

enum { BAND_ENDS = L4LB_BANDS - 1 };

static const struct {
	const char *word, *key;
	int attr;
	const char *const *values;
} choices[] = {
	{ "on-idle", "on_idle", L4LB_POLICY_ATTR_ON_IDLE, idle_words },
	{ "on-loss", "on_loss", L4LB_POLICY_ATTR_ON_LOSS, loss_words },
	{ "on-drain", "on_drain", L4LB_POLICY_ATTR_ON_DRAIN, drain_words },
	{ "guard", "guard", L4LB_POLICY_ATTR_GUARD, guard_words },
	{ "fast-path", "fast_path", L4LB_POLICY_ATTR_FAST_PATH,
	  fast_path_words },
	{ "sync", "sync", L4LB_POLICY_ATTR_SYNC, sync_words },
	{ "log", "log", L4LB_POLICY_ATTR_LOG, log_words },
	{ "limit-reply", "limit_reply", L4LB_POLICY_ATTR_LIMIT_REPLY,
	  reply_words },
	{ "latency", "latency", L4LB_POLICY_ATTR_LATENCY, log_words },
	{ "conn-state", "conn_state", L4LB_POLICY_ATTR_CONN_STATE, state_words },
	{ "priority", "priority", L4LB_POLICY_ATTR_PRIORITY, priority_words },
	{ "protected", "protected", POLICY_PROTECTED, protected_words },
};

static const char *const timeout_words[] = {
	"tcp", "tcp-fin", "udp", "sctp", NULL
};

static const char *const timeout_keys[] = {
	"tcp", "tcp_fin", "udp", "sctp", NULL
};

static size_t index_of(const char *word, const char *const *known)
{
	size_t i;

	for (i = 0; known[i] && strcmp(word, known[i]); i++)
		;
	return i;
}

/* The index in choices[]; its size if @word is none of them. */
static size_t choice_of(const char *word)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(choices); i++)
		if (!strcmp(word, choices[i].word))
			break;
	return i;
}

/* The index in numbers[]; its size if @word is none of them. */
static size_t number_of(const char *word)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(word, numbers[i].word))
			break;
	return i;
}

bool policy_is_word(const char *word)
{
	return number_of(word) < ARRAY_SIZE(numbers) ||
	       !strcmp(word, "timeout") || !strcmp(word, "owner") ||
	       !strcmp(word, "shadow") || !strcmp(word, "snat") ||
	       choice_of(word) < ARRAY_SIZE(choices);
}

static int set_value(struct policy_opts *o, const char *object,
		     const char *word, int attr, uint32_t value)
{
	/* A setting given twice is a mistake: one value would be lost. */
	if (o->named & 1u << attr)
		return fail(RC_USAGE, object, "\"%s\" is given twice", word);
	o->named |= 1u << attr;
	o->policy.value[attr] = value;
	return RC_OK;
}

static int parse_timeout(struct args *a, const char *object, size_t i,
			 struct policy_opts *o)
{
	const char *word = timeouts[i].word, *next = arg_peek(a);
	uint32_t secs = 0;
	int rc = RC_OK;

	if (next && !strcmp(next, "default"))
		arg_next(a);
	else
		rc = arg_duration(a, object, word, L4LB_TIMEOUT_MAX, &secs);
	return rc ? rc : set_value(o, object, word, timeouts[i].attr, secs);
}

static int parse_number(struct args *a, const char *object, size_t i,
			struct policy_opts *o)
{
	const char *word = numbers[i].word, *next = arg_peek(a);
	uint32_t value = 0;
	int rc = RC_OK;

	if (next && !strcmp(next, "off"))
		arg_next(a);
	else if (numbers[i].is_time)
		rc = arg_duration(a, object, word, numbers[i].max, &value);
	else
		rc = arg_u32(a, object, word, RANGE(1, numbers[i].max), &value);
	return rc ? rc : set_value(o, object, word, numbers[i].attr, value);
}

/* One kind and its time, then any number of others. */
static int parse_timeouts(struct args *a, const char *object,
			  struct policy_opts *o)
{
	const char *word;
	size_t i;
	int rc = arg_value(a, object, "timeout", &word);

	if (rc)
		return rc;
	i = index_of(word, timeout_words);
	if (!timeout_words[i])
		return arg_unknown(object, "kind of timeout", word,
				   timeout_words);
	rc = parse_timeout(a, object, i, o);
	while (!rc && (word = arg_peek(a))) {
		i = index_of(word, timeout_words);
		if (!timeout_words[i])
			break;
		arg_next(a);
		rc = parse_timeout(a, object, i, o);
	}
	return rc;
}

/* Where the bands end, "16K,128K,1M"; if absent, the module's defaults. */
static int parse_bands(struct args *a, const char *object, bool on,
		       struct policy_opts *o)
{
	const char *word = arg_peek(a);
	uint32_t last = 0, end;
	char part[16];
	size_t i, len;

	for (i = 0; i < BAND_ENDS; i++) {
		o->named |= 1u << (L4LB_POLICY_ATTR_LAS_BYTES_0 + i);
		o->policy.value[L4LB_POLICY_ATTR_LAS_BYTES_0 + i] = 0;
	}
	if (!on || !word || word[0] < '0' || word[0] > '9')
		return RC_OK;
	arg_next(a);
	for (i = 0; i < BAND_ENDS; i++, last = end) {
		len = strcspn(word, ",");
		snprintf(part, sizeof(part), "%.*s", (int)len, word);
		if (len >= sizeof(part) || !parse_size(part, &end))
			return fail(RC_USAGE, object,
				    "bad size \"%.*s\": write bytes, or 16K, 2M, 1G; less than 4G",
				    (int)len, word);
		if (end <= last)
			return fail(RC_USAGE, object,
				    "priority las: each size must be more than the one before it");
		o->policy.value[L4LB_POLICY_ATTR_LAS_BYTES_0 + i] = end;
		if (!word[len])
			return RC_OK;
		word += len + 1;
	}
	return fail(RC_USAGE, object, "priority las takes %d sizes at most",
		    BAND_ENDS);
}

int policy_parse_owner(const char *word, const char *object, char *out)
{
	size_t len = strlen(word), i;

	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)word[i]) && !strchr("._-@", word[i]))
			break;
	if (!len || len >= L4LB_OWNER_LEN || i < len)
		return fail(RC_USAGE, object,
			    "bad owner \"%s\": write a name of 1 to %d letters, digits and . _ - @, or none",
			    word, L4LB_OWNER_LEN - 1);
	memset(out, 0, L4LB_OWNER_LEN);
	if (strcmp(word, "none"))
		memcpy(out, word, len);
	return RC_OK;
}

static int parse_owner(struct args *a, const char *object,
		       struct policy_opts *o)
{
	const char *word;
	int rc = arg_value(a, object, "owner", &word);

	if (!rc && o->named & POLICY_OWNER)
		rc = fail(RC_USAGE, object, "\"owner\" is given twice");
	o->named |= POLICY_OWNER;
	return rc ? rc : policy_parse_owner(word, object, o->policy.owner);
}

/* The name of a scheduler; "none" is "". */
static int parse_shadow_name(const char *word, const char *object, char *out)
{
	size_t len = strlen(word);
	int rc;

	if (!len || len >= L4LB_NAME_LEN ||
	    strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_-") != len) {
		rc = fail(RC_USAGE, object, "bad name of a shadow \"%s\"", word);
		hint("write a scheduler, or none; try: ipvsctl scheduler list");
		return rc;
	}
	memset(out, 0, L4LB_NAME_LEN);
	if (strcmp(word, "none"))
		memcpy(out, word, len);
	return RC_OK;
}

static int parse_shadow(struct args *a, const char *object, struct policy_opts *o)
{
	const char *word;
	int rc = arg_value(a, object, "shadow", &word);

	if (!rc && o->named & POLICY_SHADOW)
		rc = fail(RC_USAGE, object, "\"shadow\" is given twice");
	o->named |= POLICY_SHADOW;
	return rc ? rc : parse_shadow_name(word, object, o->policy.shadow);
}

static int parse_snat(struct args *a, const char *object, struct policy_opts *o)
{
	const char *word;
	int rc = arg_value(a, object, "snat", &word);

	if (!rc)
		rc = set_value(o, object, "snat", L4LB_POLICY_ATTR_SNAT, 0);
	return rc ? rc : snat_parse(word, object, &o->policy);
}

int policy_parse(struct args *a, const char *object, const char *word,
		 struct policy_opts *o)
{
	size_t n, i = choice_of(word);
	const char *value;
	int rc;

	if (!strcmp(word, "owner"))
		return parse_owner(a, object, o);
	if (!strcmp(word, "shadow"))
		return parse_shadow(a, object, o);
	if (!strcmp(word, "snat"))
		return parse_snat(a, object, o);
	if (number_of(word) < ARRAY_SIZE(numbers))
		return parse_number(a, object, number_of(word), o);
	if (i == ARRAY_SIZE(choices))
		return parse_timeouts(a, object, o);
	rc = arg_value(a, object, word, &value);
	if (rc)
		return rc;
	n = index_of(value, choices[i].values);
	if (!choices[i].values[n])
		return arg_unknown(object, word, value, choices[i].values);
	rc = set_value(o, object, word, choices[i].attr, (uint32_t)n);
	if (rc || choices[i].attr != L4LB_POLICY_ATTR_PRIORITY)
		return rc;
	return parse_bands(a, object, n, o);
}

void policy_apply(struct policy *policy, const struct policy_opts *o)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(policy->value); i++)
		if (o->named & 1u << i)
			policy->value[i] = o->policy.value[i];
	if (o->named & 1u << L4LB_POLICY_ATTR_SNAT)
		memcpy(policy->snat, o->policy.snat, sizeof(policy->snat));
	if (o->named & POLICY_OWNER)
		memcpy(policy->owner, o->policy.owner, sizeof(policy->owner));
	if (o->named & POLICY_SHADOW)
		memcpy(policy->shadow, o->policy.shadow, sizeof(policy->shadow));
}

uint32_t policy_band_end(const struct policy *policy, size_t band)
{
	static const uint32_t usual[BAND_ENDS] = L4LB_LAS_BYTES;
	const uint32_t *own = &policy->value[L4LB_POLICY_ATTR_LAS_BYTES_0];

	if (band >= BAND_ENDS)
		return 0;
	return own[0] ? own[band] : usual[band];
}

bool policy_equal(const struct policy *a, const struct policy *b)
{
	return !memcmp(a, b, sizeof(*a));
}

bool policy_has_values(const struct policy *policy)
{
	size_t i;

	for (i = 1; i <= L4LB_POLICY_ATTR_MAX; i++)
		if (policy->value[i])
			return true;
	return false;
}

bool policy_is_default(const struct policy *policy)
{
	static const struct policy none;

	return policy_equal(policy, &none);
}

/* NULL for a value that only another version of the module knows. */
static const char *choice_text(const struct policy *policy, size_t i)
{
	uint32_t value = policy->value[choices[i].attr];
	size_t n;

	for (n = 0; choices[i].values[n]; n++)
		if (n == value)
			break;
	return choices[i].values[n];
}

/* They are words of `priority las`, and stand behind it. */
static size_t put_bands(const struct policy *policy, char *text, size_t size)
{
	size_t i, used = 0;

	for (i = 0; i < BAND_ENDS; i++) {
		uint32_t end = policy->value[L4LB_POLICY_ATTR_LAS_BYTES_0 + i];

		if (end)
			used += (size_t)snprintf(text + used, size - used, "%s%s",
						 i ? "," : " ", size_text(end));
	}
	return used;
}

const char *policy_text(const struct policy *policy)
{
	const char *sep = "timeout ";
	static char line[640];
	size_t i, used = 0;

	line[0] = '\0';
	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		uint32_t secs = policy->value[timeouts[i].attr];

		if (!secs)
			continue;
		used += (size_t)snprintf(line + used, sizeof(line) - used,
					 "%s%s %u", sep, timeouts[i].word,
					 secs);
		sep = " ";
	}
	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		if (policy->value[numbers[i].attr])
			used += (size_t)snprintf(line + used,
						 sizeof(line) - used, "%s%s %u",
						 used ? " " : "",
						 numbers[i].word,
						 policy->value[numbers[i].attr]);
	for (i = 0; i < ARRAY_SIZE(choices); i++) {
		const char *text = choice_text(policy, i);

		if (!text || !policy->value[choices[i].attr])
			continue;
		used += (size_t)snprintf(line + used, sizeof(line) - used,
					 "%s%s %s", used ? " " : "",
					 choices[i].word, text);
		if (choices[i].attr == L4LB_POLICY_ATTR_PRIORITY)
			used += put_bands(policy, line + used,
					  sizeof(line) - used);
	}
	if (snat_text(policy))
		used += (size_t)snprintf(line + used, sizeof(line) - used,
					 "%ssnat %s", used ? " " : "",
					 snat_text(policy));
	if (policy->owner[0])
		used += (size_t)snprintf(line + used, sizeof(line) - used,
					 "%sowner %s", used ? " " : "",
					 policy->owner);
	if (policy->shadow[0])
		snprintf(line + used, sizeof(line) - used, "%sshadow %s",
			 used ? " " : "", policy->shadow);
	return line;
}

static void bands_to_json(json_t *o, const struct policy *policy)
{
	json_t *ends = json_array();
	size_t i;

	for (i = 0; i < BAND_ENDS; i++) {
		uint32_t end = policy->value[L4LB_POLICY_ATTR_LAS_BYTES_0 + i];

		if (end)
			json_array_append_new(ends, json_integer(end));
	}
	if (json_array_size(ends))
		json_object_set(o, "las_bytes", ends);
	json_decref(ends);
}

void policy_to_json(json_t *o, const struct policy *policy)
{
	json_t *secs = json_object();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		uint32_t n = policy->value[timeouts[i].attr];

		if (n)
			json_object_set_new(secs, timeouts[i].key,
					    json_integer(n));
	}
	if (json_object_size(secs))
		json_object_set(o, "timeout", secs);
	json_decref(secs);
	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		if (policy->value[numbers[i].attr])
			json_object_set_new(o, numbers[i].key,
					    json_integer(policy->value[numbers[i].attr]));
	for (i = 0; i < ARRAY_SIZE(choices); i++) {
		const char *text = choice_text(policy, i);

		if (text && policy->value[choices[i].attr])
			json_object_set_new(o, choices[i].key,
					    json_string(text));
	}
	bands_to_json(o, policy);
	if (snat_text(policy))
		json_object_set_new(o, "snat", json_string(snat_text(policy)));
	if (policy->owner[0])
		json_object_set_new(o, "owner", json_string(policy->owner));
	if (policy->shadow[0])
		json_object_set_new(o, "shadow", json_string(policy->shadow));
}

static int owner_from_json(json_t *o, const char *object, struct policy *policy)
{
	json_t *v = json_object_get(o, "owner");

	if (!v)
		return RC_OK;
	if (!json_is_string(v))
		return fail(RC_USAGE, object, "\"owner\" must be a string");
	return policy_parse_owner(json_string_value(v), object, policy->owner);
}

static int shadow_from_json(json_t *o, const char *object, struct policy *policy)
{
	json_t *v = json_object_get(o, "shadow");

	if (!v)
		return RC_OK;
	if (!json_is_string(v))
		return fail(RC_USAGE, object, "\"shadow\" must be a string");
	return parse_shadow_name(json_string_value(v), object, policy->shadow);
}

static int snat_from_json(json_t *o, const char *object, struct policy *policy)
{
	json_t *v = json_object_get(o, "snat");

	if (!v)
		return RC_OK;
	if (!json_is_string(v))
		return fail(RC_USAGE, object, "\"snat\" must be a string");
	return snat_parse(json_string_value(v), object, policy);
}

static int bands_from_json(json_t *o, const char *object, struct policy *policy)
{
	json_t *ends = json_object_get(o, "las_bytes"), *v;
	json_int_t last = 0, n;
	size_t i;

	if (!ends)
		return RC_OK;
	if (!json_is_array(ends) || json_array_size(ends) > BAND_ENDS)
		return fail(RC_USAGE, object,
			    "\"las_bytes\" must be an array of %d sizes at most",
			    BAND_ENDS);
	json_array_foreach(ends, i, v) {
		n = json_integer_value(v);
		if (!json_is_integer(v) || n <= last || n > UINT32_MAX)
			return fail(RC_USAGE, object,
				    "\"las_bytes\" must be growing numbers from 1 to %u",
				    UINT32_MAX);
		policy->value[L4LB_POLICY_ATTR_LAS_BYTES_0 + i] = (uint32_t)n;
		last = n;
	}
	return RC_OK;
}

static int timeouts_from_json(json_t *secs, const char *object,
			      struct policy *policy)
{
	const char *key;
	json_t *value;

	if (!json_is_object(secs))
		return fail(RC_USAGE, object, "\"timeout\" must be an object");
	json_object_foreach(secs, key, value) {
		size_t i = index_of(key, timeout_keys);
		json_int_t n = json_integer_value(value);

		if (!timeout_keys[i])
			return arg_unknown(object, "kind of timeout", key,
					   timeout_keys);
		if (!json_is_integer(value) || n < 1 || n > L4LB_TIMEOUT_MAX)
			return fail(RC_USAGE, object,
				    "timeout \"%s\" must be seconds from 1 to %u",
				    key, L4LB_TIMEOUT_MAX);
		policy->value[timeouts[i].attr] = (uint32_t)n;
	}
	return RC_OK;
}

static int number_from_json(json_t *o, const char *object, size_t i,
			    struct policy *policy)
{
	json_t *v = json_object_get(o, numbers[i].key);
	json_int_t n = json_integer_value(v);

	if (!v)
		return RC_OK;
	if (!json_is_integer(v) || n < 1 || n > numbers[i].max)
		return fail(RC_USAGE, object,
			    "\"%s\" must be a number from 1 to %u",
			    numbers[i].key, numbers[i].max);
	policy->value[numbers[i].attr] = (uint32_t)n;
	return RC_OK;
}

static int choice_from_json(json_t *o, const char *object, size_t i,
			    struct policy *policy)
{
	json_t *v = json_object_get(o, choices[i].key);
	const char *word = json_string_value(v);
	size_t n;

	if (!v)
		return RC_OK;
	if (!word)
		return fail(RC_USAGE, object, "\"%s\" must be a string",
			    choices[i].key);
	n = index_of(word, choices[i].values);
	if (!choices[i].values[n])
		return arg_unknown(object, choices[i].key, word,
				   choices[i].values);
	policy->value[choices[i].attr] = (uint32_t)n;
	return RC_OK;
}

int policy_from_json(json_t *o, const char *object, struct policy *policy)
{
	json_t *secs = json_object_get(o, "timeout");
	int rc = RC_OK;
	size_t i;

	if (secs)
		rc = timeouts_from_json(secs, object, policy);
	for (i = 0; i < ARRAY_SIZE(numbers) && !rc; i++)
		rc = number_from_json(o, object, i, policy);
	for (i = 0; i < ARRAY_SIZE(choices) && !rc; i++)
		rc = choice_from_json(o, object, i, policy);
	if (!rc)
		rc = owner_from_json(o, object, policy);
	if (!rc)
		rc = shadow_from_json(o, object, policy);
	if (!rc)
		rc = snat_from_json(o, object, policy);
	return rc ? rc : bands_from_json(o, object, policy);
}

int policy_settle(const struct service *svc)
{
	const char *text = policy_text(&svc->policy);
	int rc;

	if (policy_is_default(&svc->policy) || wire_has_own())
		return RC_OK;
	rc = fail(RC_BACKEND, svc_text(&svc->id),
		  "\"%s\": the services of %s have no such setting", text,
		  backend_name());
	hint_module();
	return rc;
}
