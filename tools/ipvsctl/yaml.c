// SPDX-License-Identifier: GPL-2.0
/* Prints what service_json() makes, with - in keys, and each server as one line. What is
 * at its default is left out.
 */
#include <stdio.h>
#include <string.h>

#include "describe.h"
#include "err.h"
#include "model.h"
#include "view.h"
#include "yaml.h"

/* Could a reader of YAML take the word for something else than text? */
static bool needs_quotes(const char *text)
{
	static const char *const words[] = {
		"true", "false", "yes", "no", "on", "off", "null", "~", "y", "n",
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(text, words[i]))
			return true;
	return !text[0] || !strchr("abcdefghijklmnopqrstuvwxyz0123456789",
				   text[0]) || strpbrk(text, "{}#\"\\,&*!|>%@`");
}

static void print_text(const char *text)
{
	printf(needs_quotes(text) ? "\"%s\"" : "%s", text);
}

static void print_key(const char *key)
{
	for (; *key; key++)
		putchar(*key == '_' ? '-' : *key);
	fputs(": ", stdout);
}

static void print_value(json_t *value, bool own_keys);

static void print_members(json_t *value, bool own_keys)
{
	const char *key, *sep = "";
	json_t *one;

	json_object_foreach(value, key, one) {
		fputs(sep, stdout);
		sep = ", ";
		if (own_keys)
			print_key(key);
		else
			printf("%s: ", key);
		print_value(one, own_keys);
	}
}

static void print_value(json_t *value, bool own_keys)
{
	const char *sep = "";
	json_t *one;
	size_t i;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		putchar('{');
		print_members(value, own_keys);
		putchar('}');
		break;
	case JSON_ARRAY:
		putchar('[');
		json_array_foreach(value, i, one) {
			fputs(sep, stdout);
			sep = ", ";
			print_value(one, own_keys);
		}
		putchar(']');
		break;
	case JSON_STRING:
		print_text(json_string_value(value));
		break;
	case JSON_INTEGER:
		printf("%lld", (long long)json_integer_value(value));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		fputs(json_is_true(value) ? "true" : "false", stdout);
		break;
	default:
		fputs("null", stdout);
	}
}

/* The keys of the service's name, and its servers, are printed in another form. */
static bool is_setting(const char *key, json_t *value)
{
	static const char *const others[] = {
		"id", "family", "protocol", "address", "prefix", "port",
		"last_port", "fwmark",
		"servers",
	};
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(key, others[i]))
			return false;
	return !json_is_null(value) &&
	       !(json_is_array(value) && !json_array_size(value));
}

static void print_server(const struct service *svc, const struct server *srv)
{
	const char *line = describe_server(&svc->id, srv);
	size_t skip = strlen("server ") + strlen(svc_text(&svc->id)) + 1;

	fputs("      - ", stdout);
	print_text(line + skip);
	putchar('\n');
}

static void print_service(const struct service *svc)
{
	json_t *o = service_json(svc, JSON_CONFIG), *value;
	const char *key;
	size_t i;

	printf("  - service: %s\n", svc_text(&svc->id));
	json_object_foreach(o, key, value) {
		if (!is_setting(key, value))
			continue;
		fputs("    ", stdout);
		print_key(key);
		print_value(value, strcmp(key, "options"));
		putchar('\n');
	}
	json_decref(o);
	if (svc->nservers)
		puts("    servers:");
	for (i = 0; i < svc->nservers; i++)
		print_server(svc, &svc->servers[i]);
}

int yaml_print(const struct service_list *list)
{
	size_t i;

	puts("version: 1");
	puts(list->n ? "services:" : "services: []");
	for (i = 0; i < list->n; i++)
		print_service(&list->v[i]);
	return RC_OK;
}
