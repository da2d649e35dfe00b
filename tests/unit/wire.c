// SPDX-License-Identifier: GPL-2.0
/*
 * The messages of connection synchronisation as a user-space program.  Each line of
 * input is a command:
 *
 *	read ID HEX		reads a message as the backup with this sync id;
 *				prints "record RECORD" and "error NUMBER" in the
 *				order in which they are found, then "."
 *	write VERSION ID SIZE RECORD...
 *				writes records; prints how many there was room for,
 *				and the message
 *	size VERSION RECORD	prints the bytes that it needs at most
 *	state_of PROTOCOL NUMBER, state_to PROTOCOL STATE
 *				prints the translation
 *	fuzz SEED COUNT FILE...	plays the files, and mixtures of them that are
 *				damaged at random
 *
 * A RECORD is the fields of struct l4lb_sync_record in its order, with commas.
 */
#include "wire.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "sync/wire_state.h"

#define INPUT_MAX	65536
#define FILES_MAX	256

static void print_addr(u8 af, const union nf_inet_addr *addr)
{
	char text[INET6_ADDRSTRLEN];

	printf(",%s", inet_ntop(af, addr, text, sizeof(text)));
}

static void print_record(void *arg, const struct l4lb_sync_record *r)
{
	printf("record %u,%u,%u,%u,%u,%u,%u,%u,%u", r->af, r->proto, r->state, r->flags,
	       ntohs(r->cport), ntohs(r->vport), ntohs(r->dport), r->fwmark, r->timeout);
	print_addr(r->af, &r->caddr);
	print_addr(r->af, &r->vaddr);
	print_addr(r->af, &r->daddr);
	printf(",%u,%u,%u,%u,%u,%u,%d,%u,%d\n", r->in.init, r->in.delta, r->in.previous,
	       r->out.init, r->out.delta, r->out.previous, r->has_pe, r->left,
	       r->gone);
}

static void print_error(void *arg, enum l4lb_sync_error error)
{
	printf("error %d\n", error);
}

static u32 number(char **text)
{
	char *end;
	u32 value = strtoul(*text, &end, 0);

	assert(end != *text);
	*text = *end ? end + 1 : end;
	return value;
}

static void parse_addr(char **text, u8 af, union nf_inet_addr *addr)
{
	char *one = strsep(text, ",");

	assert(inet_pton(af, one, addr) == 1);
}

static struct l4lb_sync_record parse_record(char *text)
{
	struct l4lb_sync_record r = { };

	r.af = number(&text);
	r.proto = number(&text);
	r.state = number(&text);
	r.flags = number(&text);
	r.cport = htons(number(&text));
	r.vport = htons(number(&text));
	r.dport = htons(number(&text));
	r.fwmark = number(&text);
	r.timeout = number(&text);
	parse_addr(&text, r.af, &r.caddr);
	parse_addr(&text, r.af, &r.vaddr);
	parse_addr(&text, r.af, &r.daddr);
	r.in.init = number(&text);
	r.in.delta = number(&text);
	r.in.previous = number(&text);
	r.out.init = number(&text);
	r.out.delta = number(&text);
	r.out.previous = number(&text);
	r.has_pe = number(&text);
	r.left = number(&text);
	r.gone = number(&text);
	assert(!*text);
	return r;
}

static char *word(void)
{
	return strtok(NULL, " \n");
}

static u32 next(void)
{
	char *text = word();

	return number(&text);
}

/* The message has exactly the room that it needs, for the sanitizer. */
static void read_one(void)
{
	const struct l4lb_sync_reader reader = { print_record, print_error };
	u8 id = next();
	char *hex = word();
	size_t len = hex ? strlen(hex) / 2 : 0, i;
	u8 *data = malloc(len);

	for (i = 0; i < len; i++)
		assert(sscanf(hex + 2 * i, "%2hhx", &data[i]) == 1);
	l4lb_sync_read(&reader, data, len, id);
	free(data);
	puts(".");
}

/* The buffer has had another message. */
static void write_one(void)
{
	u8 version = next(), id = next();
	struct l4lb_sync_buffer buf = { .size = next(), .len = 99, .n = 9 };
	size_t len, i, n = 0;
	char *text;

	buf.data = malloc(buf.size);
	memset(buf.data, 0xa5, buf.size);
	l4lb_sync_begin(&buf, version, id);
	while ((text = word())) {
		struct l4lb_sync_record record = parse_record(text);

		if (!l4lb_sync_append(&buf, &record))
			break;
		n++;
	}
	len = l4lb_sync_finish(&buf);
	printf("%zu ", n);
	for (i = 0; i < len; i++)
		printf("%02x", buf.data[i]);
	puts("");
	free(buf.data);
}

static void size_one(void)
{
	u8 version = next();
	struct l4lb_sync_record record = parse_record(word());

	printf("%zu\n", l4lb_sync_record_size(&record, version));
}

/* ---- at random ---- */

static u64 state;

static u32 chance(u32 below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % below;
}

struct input {
	u8	*data;
	size_t	size;
};

static void damage(struct input *input)
{
	static const u8 numbers[] = { 0, 1, 2, 3, 24, 35, 36, 37, 72, 0x40, 0x80, 255 };
	u32 n = 1 + chance(4);
	size_t at;

	while (n-- && input->size) {
		at = chance(input->size);
		if (!chance(6))
			input->size = at + chance(4);
		else if (chance(2))
			input->data[at] = numbers[chance(sizeof(numbers))];
		else
			input->data[at] ^= 1 << chance(8);
	}
}

/* The beginning of one input with the end of another. */
static void mix(struct input *to, const struct input *a, const struct input *b)
{
	size_t head = chance(a->size + 1), tail = chance(b->size + 1);

	if (head + tail > INPUT_MAX - 4)
		tail = 0;
	memcpy(to->data, a->data, head);
	memcpy(to->data + head, b->data + b->size - tail, tail);
	memset(to->data + head + tail, 0, 4);
	to->size = head + tail;
}

static struct input load(const char *name)
{
	struct input input = { malloc(INPUT_MAX) };
	FILE *file = fopen(name, "rb");

	assert(file);
	input.size = fread(input.data, 1, INPUT_MAX - 4, file);
	fclose(file);
	return input;
}

static void fuzz(void)
{
	struct input files[FILES_MAX], input = { malloc(INPUT_MAX) };
	u32 n_files = 0, count;
	char *name;

	state = next();
	count = next();
	for (; (name = word()) && n_files < FILES_MAX; n_files++) {
		files[n_files] = load(name);
		LLVMFuzzerTestOneInput(files[n_files].data, files[n_files].size);
	}
	assert(n_files);
	while (count--) {
		mix(&input, &files[chance(n_files)], &files[chance(n_files)]);
		damage(&input);
		LLVMFuzzerTestOneInput(input.data, input.size);
	}
	while (n_files)
		free(files[--n_files].data);
	free(input.data);
	puts(".");
}

static void translate(bool to)
{
	u8 proto = next();
	u32 number = next();

	printf("%d\n", to ? l4lb_sync_state_to(proto, number) : l4lb_sync_state_of(proto, number));
}

static void run(const char *command)
{
	if (!strcmp(command, "read"))
		read_one();
	else if (!strcmp(command, "write"))
		write_one();
	else if (!strcmp(command, "size"))
		size_one();
	else if (!strcmp(command, "fuzz"))
		fuzz();
	else if (!strcmp(command, "state_of"))
		translate(false);
	else if (!strcmp(command, "state_to"))
		translate(true);
	else
		assert(!"a command of those at the head of wire.c");
}

int main(void)
{
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0)
		run(strtok(line, " \n"));
	free(line);
	return 0;
}
