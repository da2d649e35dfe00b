// SPDX-License-Identifier: GPL-2.0
/*
 * Trailers, windows and control messages of kernel/sync as a user-space program.
 * Each line of input is a command; each prints one line.
 *
 *	trailer SENDER SEQUENCE BACKLOG FLAGS STREAM HEX
 *				the message with this trailer
 *	read HEX		SENDER SEQUENCE BACKLOG FLAGS STREAM, or "none"
 *	control TYPE HEX	the control message with this body, without trailer
 *	body HEX		TYPE HEX, or "none"
 *	hello NONCE ECHO GENERATION STATE [NEWEST OLDEST]...
 *	hello? HEX		the same numbers, or "none"
 *	nack [STREAM FIRST LAST]...
 *	nack? HEX		the same numbers, or "none"
 *	window NEWEST		begins a window
 *	take SEQUENCE		KIND LOST
 *	extend NEWEST		LOST
 *	give_up OLDEST		LOST
 *	gaps FROM LAST		FIRST END...
 */
#include <stdio.h>
#include <stdlib.h>

#include "sync/control.h"
#include "sync/window.h"

#define INPUT_MAX	(1 << 20)

/* Of exactly the size that is used, for the sanitizer. */
struct bytes {
	u8	*data;
	size_t	len;
};

static char *word(void)
{
	return strtok(NULL, " \n");
}

static bool number(u64 *value)
{
	char *text = word();

	if (!text)
		return false;
	*value = strtoull(text, NULL, 0);
	return true;
}

static u64 next(void)
{
	u64 value = 0;

	assert(number(&value));
	return value;
}

/* @room: bytes to have behind them. */
static struct bytes hex(size_t room)
{
	char *text = word();
	struct bytes b = { .len = text ? strlen(text) / 2 : 0 };
	size_t i;

	b.data = malloc(b.len + room);
	for (i = 0; i < b.len; i++)
		assert(sscanf(text + 2 * i, "%2hhx", &b.data[i]) == 1);
	return b;
}

static void print(const u8 *data, size_t len)
{
	while (len--)
		printf("%02x", *data++);
}

static void put_trailer(void)
{
	struct l4lb_sync_trailer t;
	struct bytes b;
	size_t len;

	t.sender = next();
	t.sequence = next();
	t.backlog = next();
	t.flags = next();
	t.stream = next();
	b = hex(L4LB_SYNC_ALIGN - 1 + L4LB_SYNC_TRAILER);
	len = l4lb_sync_trailer_put(b.data, b.len, &t);
	assert(len == l4lb_sync_with_trailer(b.len));
	print(b.data, len);
	free(b.data);
}

static void read_trailer(void)
{
	struct bytes b = hex(0);
	struct l4lb_sync_trailer t;

	if (!l4lb_sync_trailer_read(&t, b.data, b.len))
		printf("none");
	else
		printf("%llu %llu %u %u %u", (unsigned long long)t.sender,
		       (unsigned long long)t.sequence, t.backlog, t.flags, t.stream);
	free(b.data);
}

static void put_control(void)
{
	u8 data[L4LB_SYNC_CONTROL_MAX];
	u8 type = next();
	struct bytes b = hex(0);

	memcpy(data + L4LB_SYNC_BODY_AT, b.data, b.len);
	print(data, l4lb_sync_control_put(data, type, b.len));
	free(b.data);
}

static void read_control(void)
{
	struct bytes b = hex(0);
	const u8 *body;
	size_t len;
	u8 type;

	body = l4lb_sync_control_read(b.data, b.len, &type, &len);
	if (body) {
		printf("%u ", type);
		print(body, len);
	} else {
		printf("none");
	}
	free(b.data);
}

static void put_hello(void)
{
	struct l4lb_sync_hello hello = { };
	u8 body[L4LB_SYNC_BODY_MAX];
	u64 newest;

	hello.nonce = next();
	hello.echo = next();
	hello.generation = next();
	hello.state = next();
	while (number(&newest))
		l4lb_sync_hello_put(body, hello.n++, newest, next());
	print(body, l4lb_sync_hello_write(body, &hello));
}

static void read_hello(void)
{
	struct bytes b = hex(0);
	struct l4lb_sync_hello hello;
	u64 newest, oldest;
	unsigned int i;

	if (!l4lb_sync_hello_read(&hello, b.data, b.len)) {
		printf("none");
		goto out;
	}
	printf("%llu %llu %u %u", (unsigned long long)hello.nonce,
	       (unsigned long long)hello.echo, hello.generation, hello.state);
	for (i = 0; i < hello.n; i++) {
		l4lb_sync_hello_stream(b.data, i, &newest, &oldest);
		printf(" %llu %llu", (unsigned long long)newest, (unsigned long long)oldest);
	}
out:
	free(b.data);
}

static void put_nack(void)
{
	u8 body[L4LB_SYNC_BODY_MAX];
	struct l4lb_sync_range range;
	unsigned int n = 0;
	size_t len = 0;
	u64 stream;

	while (number(&stream)) {
		range.stream = stream;
		range.first = next();
		range.last = next();
		len = l4lb_sync_nack_put(body, n++, &range);
	}
	print(body, len);
}

static void read_nack(void)
{
	struct bytes b = hex(0);
	struct l4lb_sync_range ranges[L4LB_SYNC_RANGES_MAX];
	unsigned int i, n = l4lb_sync_nack_read(ranges, b.data, b.len);

	if (!n)
		printf("none");
	for (i = 0; i < n; i++)
		printf("%s%u %llu %llu", i ? " " : "", ranges[i].stream,
		       (unsigned long long)ranges[i].first, (unsigned long long)ranges[i].last);
	free(b.data);
}

static struct l4lb_sync_window window;

static void begin(void)
{
	l4lb_sync_window_init(&window, next());
}

static void take(void)
{
	u64 lost = 0;
	int kind = l4lb_sync_window_take(&window, next(), &lost);

	printf("%d %llu", kind, (unsigned long long)lost);
}

static void extend(void)
{
	printf("%llu", (unsigned long long)l4lb_sync_window_extend(&window, next()));
}

static void give_up(void)
{
	printf("%llu", (unsigned long long)l4lb_sync_window_give_up(&window, next()));
}

static void gaps(void)
{
	u64 from = next(), last = next(), end;

	while ((from = l4lb_sync_window_gap(&window, from, last, &end))) {
		assert(from <= end && end <= last);
		printf("%llu %llu ", (unsigned long long)from, (unsigned long long)end);
		from = end + 1;
	}
}

static const struct {
	const char	*name;
	void		(*run)(void);
} commands[] = {
	{ "trailer", put_trailer }, { "read", read_trailer },
	{ "control", put_control }, { "body", read_control },
	{ "hello", put_hello }, { "hello?", read_hello },
	{ "nack", put_nack }, { "nack?", read_nack },
	{ "window", begin }, { "take", take }, { "extend", extend },
	{ "give_up", give_up }, { "gaps", gaps },
};

int main(void)
{
	static char line[INPUT_MAX];
	unsigned int i;
	char *name;

	while (fgets(line, sizeof(line), stdin)) {
		name = strtok(line, " \n");
		for (i = 0; strcmp(commands[i].name, name); i++)
			;
		commands[i].run();
		printf("\n");
	}
	return 0;
}
