// SPDX-License-Identifier: GPL-2.0
/* One snapshot an interval; keys and changes of the terminal's size only draw what
 * is there again.
 */
#include <curses.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "err.h"
#include "opt.h"
#include "repeat.h"
#include "top_conns.h"
#include "top_data.h"
#include "top_screen.h"
#include "top_text.h"

enum { SECS_MAX = 60, SILENT_MAX = 20, NAMES_MAX = 1000, KEY_ESC = 27 };
enum { PAIR_GOOD = 1, PAIR_WARN, PAIR_BAD };
enum view { VIEW_RANKING, VIEW_CONNS, VIEW_COUNTERS, VIEW_HELP };

static struct {
	struct top_data *data;
	struct top_layout layout;
	enum view view;
	size_t selected, first;	/* rows: chosen, and at the top of the screen */
	bool moved;		/* the choice follows its service */
	size_t skipped;		/* counters above the first one on the screen */
	struct svc_id service;	/* chosen */
	struct srv_id server;
	bool has_server;
	bool editing;		/* the pattern is being typed */
	bool color;
	struct top_conns conns;
} ui;

static const char *const help[] = {
	"up, down, PgUp, PgDn, Home, End  choose a row, or scroll counters",
	"Enter  connections of the service or server",
	"s      sort by the next column: conns, packets, bytes, active, name",
	"r      reverse the order",
	"/      show only names that have this in them; Esc: all again",
	"e      with or without real servers",
	"d      all counters: drops, fast path, synchronisation",
	"p      pause, and go on",
	"+ -    longer or shorter interval",
	"q      quit",
	"",
	"!  no server takes connections   D  draining   F  at its threshold",
	"SHARE: of all services, or of the service, by the sorted column",
	"P99 ms: 99 % of the answers came as soon (\"latency on\")",
	NULL
};

static int rows_on_screen(void)
{
	int head = LINES >= 9 ? TOP_HEAD_LINES : LINES >= 6 ? 1 : 0;
	int rows = LINES - head - 2;

	return rows > 0 ? rows : 0;
}

/* ---- which row is chosen ---- */

static void remember(void)
{
	const struct ranking *r = &ui.data->ranking;
	const struct ranked *row;

	if (ui.selected >= r->n)
		return;
	row = &r->rows[ui.selected];
	ui.service = row->svc->id;
	ui.has_server = row->srv;
	if (!row->srv)
		return;
	ui.server.af = row->srv->af;
	ui.server.addr = row->srv->addr;
	ui.server.port = row->srv->port;
	ui.server.has_port = true;
}

static bool is_chosen(const struct ranked *row)
{
	return svc_id_equal(&row->svc->id, &ui.service) &&
	       !!row->srv == ui.has_server &&
	       (!row->srv || (row->srv->af == ui.server.af &&
			      row->srv->port == ui.server.port &&
			      ip_equal(&row->srv->addr, &ui.server.addr)));
}

/* After the rows have changed. */
static void follow(void)
{
	const struct ranking *r = &ui.data->ranking;
	size_t i, rows = (size_t)rows_on_screen();

	for (i = 0; ui.moved && i < r->n; i++)
		if (is_chosen(&r->rows[i])) {
			ui.selected = i;
			break;
		}
	if (ui.selected >= r->n)
		ui.selected = r->n ? r->n - 1 : 0;
	if (ui.first > ui.selected)
		ui.first = ui.selected;
	if (rows && ui.selected >= ui.first + rows)
		ui.first = ui.selected - rows + 1;
	if (ui.first + rows > r->n)
		ui.first = r->n > rows ? r->n - rows : 0;
}

static void move_to(long place)
{
	long last = (long)ui.data->ranking.n - 1;

	ui.moved = place > 0;
	ui.selected = (size_t)(place < 0 || last < 0 ? 0
					: place > last ? last : place);
	remember();
	follow();
}

/* ---- drawing ---- */

static int row_attr(const struct ranked *row, char mark)
{
	int attr = row->srv ? 0 : A_BOLD;

	if (ui.color && mark != ' ')
		attr |= COLOR_PAIR(mark == '!' ? PAIR_BAD : PAIR_WARN);
	return attr;
}

/* Bytes of @text that fit; of UTF-8, what comes after a first byte has no width. */
static int fitting(const char *text)
{
	int columns = 0, n;

	for (n = 0; text[n]; n++)
		if ((text[n] & 0xc0) != 0x80 && columns++ == COLS)
			break;
	return n;
}

static void draw_line(int y, int attr, const char *text)
{
	attrset(attr);
	move(y, 0);
	addnstr(text, fitting(text));
	if (attr & A_REVERSE)
		chgat(-1, A_REVERSE, 0, NULL);
	attrset(0);
}

static int draw_ranking(int y)
{
	const struct ranking *r = &ui.data->ranking;
	size_t i, end = ui.first + (size_t)rows_on_screen();
	char buf[TOP_LINE_BYTES];

	top_layout(&ui.layout, COLS, ui.data, 0, NAMES_MAX);
	top_text_columns(&ui.layout, ui.data, buf);
	draw_line(y++, A_REVERSE, buf);
	if (!r->n)
		draw_line(y, 0, ui.data->by.pattern[0] ? "nothing has this in its name"
						       : "no services");
	for (i = ui.first; i < r->n && i < end; i++) {
		top_text_row(&ui.layout, ui.data, &r->rows[i], buf);
		draw_line(y++, row_attr(&r->rows[i], buf[0]) |
			  (i == ui.selected ? A_REVERSE : 0), buf);
	}
	return y;
}

static size_t counters_shown(void)
{
	size_t i, n = 0;

	for (i = 0; i < ui.data->now.ncounters; i++)
		n += ui.data->now.counters[i].value > 0;
	return n;
}

static void scroll_to(long place)
{
	long last = (long)counters_shown() - rows_on_screen();

	if (place > last)
		place = last;
	ui.skipped = place > 0 ? (size_t)place : 0;
}

/* Those that @grow, or those that do not but are not 0, without the first @skip. */
static int draw_some_counters(int y, bool grow, size_t *skip)
{
	char buf[TOP_LINE_BYTES];
	size_t i;

	for (i = 0; i < ui.data->now.ncounters && y < LINES - 1; i++) {
		bool grows = ui.data->rates.counters[i] > 0;

		if (!ui.data->now.counters[i].value || grows != grow)
			continue;
		if (*skip) {
			--*skip;
			continue;
		}
		top_text_counter(&ui.layout, ui.data, i, buf);
		draw_line(y++, grow ? A_BOLD : 0, buf);
	}
	return y;
}

static void draw_counters(int y)
{
	size_t skip;

	scroll_to((long)ui.skipped);
	skip = ui.skipped;
	draw_line(y++, A_REVERSE, "COUNTERS OF /proc/net/l4lb");
	if (!ui.data->now.ncounters)
		draw_line(y, 0, "this module has none");
	y = draw_some_counters(y, true, &skip);
	draw_some_counters(y, false, &skip);
}

static void draw_lines(int y, const char *title, const char *const *lines)
{
	draw_line(y++, A_REVERSE, title);
	for (; *lines && y < LINES - 1; lines++)
		draw_line(y++, 0, *lines);
}

/* As many as fit, the most important ones first. */
static void draw_keys(void)
{
	static const char *const ranking_keys[] = {
		"q quit", "s sort", "/ filter", "p pause", "? help",
		"Enter conns", "d drops", "e servers", "r reverse", NULL
	};
	static const char *const counter_keys[] = {
		"q quit", "Esc back", "p pause", "PgUp PgDn more", NULL
	};
	static const char *const other_keys[] = {
		"q quit", "Esc back", "p pause", NULL
	};
	const char *const *key = ui.view == VIEW_RANKING ? ranking_keys :
				 ui.view == VIEW_COUNTERS ? counter_keys :
							    other_keys;
	char buf[TOP_LINE_BYTES] = "";
	size_t used = 0;

	if (ui.editing) {
		snprintf(buf, sizeof(buf), "/%s_", ui.data->by.pattern);
	} else {
		for (; *key && used + strlen(*key) < (size_t)COLS; key++)
			used += (size_t)snprintf(buf + used, sizeof(buf) - used,
						 "%s  ", *key);
	}
	draw_line(LINES - 1, A_REVERSE, buf);
}

static void draw(void)
{
	int y, head = LINES >= 9 ? TOP_HEAD_LINES : LINES >= 6 ? 1 : 0;
	char buf[TOP_LINE_BYTES];

	follow();
	erase();
	top_layout(&ui.layout, COLS, ui.data, 0, 0);
	for (y = 0; y < head; y++) {
		top_text_head(&ui.layout, ui.data, y, buf);
		draw_line(y, 0, buf);
	}
	if (ui.view == VIEW_RANKING)
		draw_ranking(y);
	else if (ui.view == VIEW_COUNTERS)
		draw_counters(y);
	else if (ui.view == VIEW_HELP)
		draw_lines(y, "KEYS", help);
	else
		draw_lines(y, ui.conns.title,
			   (const char *const *)ui.conns.lines);
	draw_keys();
	refresh();
}

/* ---- keys ---- */

static int read_conns(void)
{
	return top_conns_read(&ui.conns, &ui.service,
			      ui.has_server ? &ui.server : NULL,
			      (size_t)(LINES > 2 ? LINES - 2 : 0));
}

static void edit(int key)
{
	char *pattern = ui.data->by.pattern;
	size_t n = strlen(pattern);

	if (key == KEY_ESC)
		pattern[0] = '\0';
	if (key == KEY_ESC || key == '\n' || key == KEY_ENTER)
		ui.editing = false;
	else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && n)
		pattern[n - 1] = '\0';
	else if (key >= ' ' && key < 127 && n + 1 < sizeof(ui.data->by.pattern))
		strcpy(&pattern[n], (char[]){ (char)key, '\0' });
	top_data_arrange(ui.data);
}

/* @at and @last are rows, and @to gets another one. False: @key moves nothing. */
static bool move_key(int key, long at, long last, long *to)
{
	long page = rows_on_screen();

	switch (key) {
	case KEY_UP: case 'k':
		*to = at - 1;
		return true;
	case KEY_DOWN: case 'j':
		*to = at + 1;
		return true;
	case KEY_PPAGE:
		*to = at - page;
		return true;
	case KEY_NPAGE: case ' ':
		*to = at + page;
		return true;
	case KEY_HOME:
		*to = 0;
		return true;
	case KEY_END:
		*to = last;
		return true;
	}
	return false;
}

static void order_key(int key)
{
	struct rank_by *by = &ui.data->by;

	switch (key) {
	case 's':
		by->key = rank_word(by->key + 1) ? by->key + 1 : 0;
		break;
	case 'r':
		by->reverse = !by->reverse;
		break;
	case 'e':
		by->servers = !by->servers;
		break;
	case '/':
		by->pattern[0] = '\0';
		ui.editing = true;
		break;
	case KEY_ESC:
		by->pattern[0] = '\0';
		break;
	default:
		return;
	}
	top_data_arrange(ui.data);
}

/* Keys that every view has. */
static void common_key(int key)
{
	unsigned int *secs = &ui.data->secs;

	if (key == 'p')
		ui.data->paused = !ui.data->paused;
	else if (key == '?' || key == 'h')
		ui.view = VIEW_HELP;
	else if (key == 'd')
		ui.view = VIEW_COUNTERS;
	else if (key == '+' && *secs < SECS_MAX)
		++*secs;
	else if (key == '-' && *secs > 1)
		--*secs;
}

static bool is_back(int key)
{
	return key == KEY_ESC || key == KEY_LEFT || key == '\n' ||
	       key == KEY_BACKSPACE || key == 127;
}

static bool is_enter(int key)
{
	return key == '\n' || key == KEY_ENTER || key == KEY_RIGHT;
}

/* Returns an exit code; repeat_stopped() after "quit". */
static int take_key(int key)
{
	bool ranking = ui.view == VIEW_RANKING;
	long to;

	if (ui.editing) {
		edit(key);
		return RC_OK;
	}
	if (ranking && is_enter(key) && ui.data->ranking.n) {
		remember();
		ui.view = VIEW_CONNS;
		return read_conns();
	}
	if (key == 'q' || key == 'Q')
		repeat_stop();
	else if (!ranking && is_back(key))
		ui.view = VIEW_RANKING;
	else if (ranking && move_key(key, (long)ui.selected,
				     (long)ui.data->ranking.n - 1, &to))
		move_to(to);
	else if (ranking)
		order_key(key);
	else if (ui.view == VIEW_COUNTERS &&
		 move_key(key, (long)ui.skipped, (long)counters_shown(), &to))
		scroll_to(to);
	common_key(key);
	return RC_OK;
}

/* ---- the loop ---- */

static int read_next(void)
{
	int rc = top_data_read(ui.data);

	if (!rc && ui.view == VIEW_CONNS)
		rc = read_conns();
	return rc;
}

/* Waits for keys up to @ms; a terminal that has gone away ends it. */
static int wait_keys(int64_t ms)
{
	static int silent;
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
	int key, seen = 0, rc = RC_OK;

	if (repeat_poll(&in, 1, &left) > 0 &&
	    (in.revents & (POLLHUP | POLLERR | POLLNVAL)))
		repeat_stop();
	while (!rc && !repeat_stopped() && (key = getch()) != ERR) {
		rc = take_key(key);
		seen++;
	}
	/* Readable, but there is nothing to read: its end. */
	silent = in.revents && !seen ? silent + 1 : 0;
	if (silent > SILENT_MAX)
		repeat_stop();
	return rc;
}

static int loop(void)
{
	int64_t next = clock_ms(CLOCK_MONOTONIC);
	int rc = RC_OK;

	while (!rc && !repeat_stopped()) {
		int64_t now = clock_ms(CLOCK_MONOTONIC);

		if (now >= next) {
			if (!ui.data->paused || !ui.data->now.when_ms)
				rc = read_next();
			while (next <= now)
				next += 1000 * (int64_t)ui.data->secs;
		}
		if (!rc) {
			draw();
			now = clock_ms(CLOCK_MONOTONIC);
			rc = wait_keys(next > now ? next - now : 0);
		}
	}
	return rc;
}

static void set_up(void)
{
	const char *no = getenv("NO_COLOR");

	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	ui.color = has_colors() && opt.color != COLOR_NEVER &&
		   (opt.color == COLOR_ALWAYS || !(no && no[0]));
	if (!ui.color)
		return;
	start_color();
	use_default_colors();
	init_pair(PAIR_GOOD, COLOR_GREEN, -1);
	init_pair(PAIR_WARN, COLOR_YELLOW, -1);
	init_pair(PAIR_BAD, COLOR_RED, -1);
}

int top_screen_run(struct top_data *d)
{
	const char *term = getenv("TERM");
	SCREEN *screen;
	int rc;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		rc = fail(RC_USAGE, NULL, "top needs a terminal to draw on");
		hint("try: ipvsctl top -b");
		return rc;
	}
	/* What cannot be read is said before the screen is cleared. */
	rc = top_data_read(d);
	if (rc)
		return rc;
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		rc = fail(RC_USAGE, NULL, "the terminal's type \"%s\" is not known",
			  term ? term : "");
		hint("try: ipvsctl top -b, or set TERM");
		return rc;
	}
	ui.data = d;
	repeat_catch();
	set_up();
	rc = loop();
	endwin();
	delscreen(screen);
	top_conns_free(&ui.conns);
	return rc;
}
