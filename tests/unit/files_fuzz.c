// SPDX-License-Identifier: GPL-2.0
/*
 * What must hold for any bytes in a file that apply or restore reads.  An entry for
 * libFuzzer ("make fuzz-files"); with files as arguments, main() below plays them, and
 * says how many were taken as JSON, YAML and rules.
 *
 * Each reader either takes the text and has nothing to say, or it refuses it with one
 * message.  What it takes can be written in each format that is complete, and is read
 * again as the same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "args.h"
#include "compact.h"
#include "config.h"
#include "declare.h"
#include "err.h"
#include "keyfile.h"
#include "opt.h"
#include "rules.h"
#include "rules_print.h"
#include "source.h"
#include "view.h"
#include "yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_key_from_file(const char *name, const char *object, size_t len,
			 const uint8_t **key);

/* An input may name any file of this machine. */
int __wrap_key_from_file(const char *name, const char *object, size_t len,
			 const uint8_t **key)
{
	(void)len;
	(void)key;
	return fail(RC_USAGE, object, "cannot read %s", name);
}

static char *copy(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* One message if the text was refused, otherwise none.  It is printed if the text was
 * @written here.
 */
static bool took(int rc, const char *written)
{
	char *said = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&said, &len), *err = stderr;

	assert(out);
	stderr = out;
	err_flush();
	err_forget();
	stderr = err;
	fclose(out);
	assert(rc == RC_OK || rc == RC_USAGE);
	assert(!rc == !len);
	assert(!rc || said[len - 1] == '\n');
	if (rc && written)
		fprintf(stderr, "%s%s\n", said, written);
	free(said);
	return !rc;
}

/* ---- what was read ---- */

static char *as_json(const struct service_list *list)
{
	json_t *services = json_array(), *doc;
	char *text;
	size_t i;

	for (i = 0; i < list->n; i++)
		json_array_append_new(services,
				      service_json(&list->v[i], JSON_CONFIG));
	doc = json_pack("{s:o}", "services", services);
	text = json_dumps(doc, JSON_COMPACT);
	assert(text);
	json_decref(doc);
	return text;
}

static char *as_compact(const struct service_list *list)
{
	char *text = NULL;
	size_t i, len = 0;
	FILE *f = open_memstream(&text, &len);

	assert(f);
	fputs("{\"services\":[", f);
	for (i = 0; i < list->n; i++) {
		fputs(i ? "," : "", f);
		compact_print(f, &list->v[i]);
	}
	fputs("]}", f);
	fclose(f);
	return text;
}

static char *printed(const struct service_list *list,
		     int (*print)(const struct service_list *list))
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len), *out = stdout;

	assert(f);
	stdout = f;
	print(list);
	stdout = out;
	fclose(f);
	return text;
}

static void read_yaml(char *text, struct service_list *list)
{
	struct source s = { .name = "written", .text = text, .len = strlen(text) };
	struct declaration d;

	assert(took(declare_read(&s, &d), text));
	*list = d.services;
	memset(&d.services, 0, sizeof(d.services));
	declaration_free(&d);
}

enum form { JSON, YAML, RULES };

/* @text is one form of what @want is the JSON of. */
static void same(const char *want, char *text, enum form form)
{
	struct service_list list = { .n = 0 };
	char *got, *words = strdup(text);

	if (form == YAML)
		read_yaml(text, &list);
	else if (form == JSON)
		assert(took(config_read("written", text, strlen(text), &list),
			    text));
	else
		assert(took(rules_read("written", words, &list), text));
	free(words);
	got = as_json(&list);
	if (strcmp(got, want))
		fprintf(stderr, "%s\n%s\n%s\n", want, text, got);
	assert(!strcmp(got, want));
	service_list_free(&list);
	free(got);
	free(text);
}

/* Keys are written as numbers that are made of them. */
static bool has_key(const struct service_list *list)
{
	size_t i, j;

	for (i = 0; i < list->n; i++)
		for (j = 0; j < list->v[i].noptions; j++)
			if (list->v[i].options[j].key)
				return true;
	return false;
}

/* Only JSON has drains. */
static bool has_drain(const struct service_list *list)
{
	size_t i, j;

	for (i = 0; i < list->n; i++)
		for (j = 0; j < list->v[i].nservers; j++)
			if (list->v[i].servers[j].drain.known)
				return true;
	return false;
}

static void round_trips(const struct service_list *list)
{
	char *json;

	if (has_key(list))
		return;
	json = as_json(list);
	same(json, strdup(json), JSON);
	same(json, as_compact(list), JSON);
	if (!has_drain(list)) {
		same(json, printed(list, yaml_print), YAML);
		same(json, printed(list, rules_print), RULES);
	}
	free(json);
}

/* ---- readers ---- */

/* How many texts each reader took that name a service. */
static unsigned int taken[3];

static void declare(const uint8_t *data, size_t size)
{
	struct source s = { .name = "input", .text = copy(data, size), .len = size };
	struct declaration d;

	if (took(declare_read(&s, &d), NULL)) {
		round_trips(&d.services);
		taken[YAML] += !!d.services.n;
	}
	declaration_free(&d);
	free(s.text);
}

static void restore(const uint8_t *data, size_t size, bool json)
{
	struct service_list list = { .n = 0 };
	char *text = copy(data, size);
	int rc;

	/* restore refuses it before. */
	if (strlen(text) != size) {
		free(text);
		return;
	}
	rc = json ? config_read("input", text, size, &list)
		  : rules_read("input", text, &list);
	if (took(rc, NULL)) {
		round_trips(&list);
		taken[json ? JSON : RULES] += !!list.n;
	}
	service_list_free(&list);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	opt.quiet = true;
	declare(data, size);
	restore(data, size, true);
	restore(data, size, false);
	return 0;
}

#ifdef PLAY
int main(int argc, char **argv)
{
	struct source s;
	int i;

	for (i = 1; i < argc; i++) {
		printf("%s\n", argv[i]);
		fflush(stdout);
		if (source_read(argv[i], DECLARE_BYTES, &s))
			return 1;
		LLVMFuzzerTestOneInput((const uint8_t *)s.text, s.len);
		source_free(&s);
	}
	printf("%u %u %u\n", taken[JSON], taken[YAML], taken[RULES]);
	return 0;
}
#endif
