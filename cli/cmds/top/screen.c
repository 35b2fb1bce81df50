// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * top on a terminal: drawing the screen, and the keys.
 */
#include <errno.h>
#include <inttypes.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/interrupt.h"
#include "common/library.h"
#include "common/message.h"
#include "cmds/top/top.h"
#include "text/escape.h"

enum mode { MODE_TABLE, MODE_HELP, MODE_FILTER };

struct screen {
	struct top *top;
	enum mode mode;
	bool paused;
	bool ended;	  /* the end of the recording was reached */
	bool read_failed; /* the library has the reason */
	bool quit;
	size_t scroll;
	char filter[64];
	uint64_t shown; /* number of intervals shown so far */
	/* The messages that were printed meanwhile, in memory; NULL: they do not go to a terminal.
	 */
	FILE *messages;
	char *text;
	size_t text_size, seen; /* @seen: how many bytes of them a key was pressed after */
};

#define NAME_WIDTH 16

/* Whether a column fits into the @left characters of a line; the name always does. */
static bool is_shown(const struct screen *s, size_t column, int *left)
{
	int width = mw_top_layout.width[column];

	if (s->top->columns[column].flags & MW_COLUMN_HIDDEN || *left < width + NAME_WIDTH)
		return false;
	*left -= width;
	return true;
}

static void draw_headings(const struct screen *s, int y)
{
	size_t sorted = mw_top_layout.sort_column[s->top->config.sort];
	int left = COLS;

	attron(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	move(y, 0);
	for (size_t c = 0; c < mw_top_layout.name; c++) {
		if (!is_shown(s, c, &left))
			continue;
		if (c == sorted)
			attron(A_BOLD);
		printw("%*s", mw_top_layout.width[c] - 1, s->top->columns[c].title);
		attroff(A_BOLD);
		addch(c == sorted ? (s->top->reverse ? '^' : 'v') : ' ');
	}
	if (sorted == mw_top_layout.name)
		attron(A_BOLD);
	addstr(s->top->columns[mw_top_layout.name].title);
	attroff(A_REVERSE | A_BOLD);
}

static void draw_row(const struct screen *s, int y, const struct mw_cell *row)
{
	const struct top *top = s->top;
	size_t name = mw_top_layout.name;
	char buf[512];
	int left = COLS;

	move(y, 0);
	for (size_t c = 0; c < name; c++) {
		bool grows = c == TOP_GROWTH && row[c].real > 0 && !row[c].missing &&
			     mw_status_has_value(row[c].status);
		int width = mw_top_layout.width[c] - 1;

		if (!is_shown(s, c, &left))
			continue;
		if (grows)
			attron(A_BOLD);
		printw("%*.*s ", width, width,
		       mw_cell_human(&top->columns[c], &row[c], buf, sizeof(buf)));
		attroff(A_BOLD);
	}
	addnstr(mw_cell_human(&top->columns[name], &row[name], buf, sizeof(buf)), left);
}

static void draw_summary(const struct screen *s)
{
	const struct memwatch_stream_info *info = memwatch_stream_get_info(s->top->feed.stream);
	const struct top *top = s->top;
	struct mw_cell unassigned = mw_top_unassigned(top);
	char interval[32], state[96] = "", clock[16], text[512];
	time_t now = time(NULL);
	struct tm tm;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
	if (top->replay)
		snprintf(state, sizeof(state), "  replay at %.1f s%s",
			 top->end_ns ? (double)(top->end_ns - top->feed.first_ns) / 1e9 : 0.0,
			 s->ended ? ", end" : "");
	mvprintw(0, 0, "memwatch top  %s  every %s  %u CPUs  %s%s", clock,
		 mw_human_uint(top->config.delay, MW_UNIT_NS, interval, sizeof(interval)),
		 info->nr_cpus, mw_escape(info->backend, text, sizeof(text)), state);
	if (s->paused) {
		attron(A_BOLD);
		addstr("  PAUSED");
		attroff(A_BOLD);
	}
	mvprintw(1, 0, "unassigned %s  records %" PRIu64 "  lost %" PRIu64 "  late %" PRIu64,
		 mw_cell_human(&mw_top_unassigned_column, &unassigned, text, sizeof(text)),
		 (uint64_t)top->stats.delivered, (uint64_t)top->stats.lost,
		 (uint64_t)top->stats.late);
	if (*s->filter)
		printw("  filter \"%s\"", mw_escape(s->filter, text, sizeof(text)));
}

/* A line for each cgroup with a notice or an alert, below the summary. Returns the next line. */
static int draw_groups(const struct screen *s)
{
	char sentence[TOP_SENTENCE], text[4 * TOP_SENTENCE];
	int y = 2;

	for (size_t i = 0; i < s->top->nr_groups && y < LINES / 3; i++) {
		const struct top_group *group = &s->top->groups[i];

		mw_top_group_sentence(group, sentence, sizeof(sentence));
		if (group->row.verdict == MEMWATCH_GROWTH_LEAK)
			attron(A_BOLD);
		mvaddnstr(y++, 0, mw_escape(sentence, text, sizeof(text)), COLS);
		attroff(A_BOLD);
	}
	return y + 1;
}

/* The last message after which no key was pressed, with its newline, or NULL. */
static const char *find_message(const struct screen *s)
{
	const char *line, *end;

	if (!s->messages || fflush(s->messages) || s->text_size == s->seen)
		return NULL;
	line = s->text + s->seen;
	while ((end = strchr(line, '\n')) && end[1])
		line = end + 1;
	return line;
}

static void draw_last_line(const struct screen *s)
{
	const char *message = find_message(s);
	int len = message ? (int)strcspn(message, "\n") : 0;
	char text[512];

	move(LINES - 1, 0);
	attron(message && s->mode != MODE_FILTER ? A_BOLD : A_DIM);
	if (s->mode == MODE_FILTER)
		printw("show only names with: %s_", mw_escape(s->filter, text, sizeof(text)));
	else if (message)
		addnstr(message, len < COLS ? len : COLS - 1);
	else
		addnstr("q quit  h help  < > sort  r reverse  / filter  g group  p pause  + - "
			"delay",
			COLS - 1);
	attroff(A_BOLD | A_DIM);
}

static void draw_table(struct screen *s)
{
	struct top *top = s->top;
	size_t skipped = 0, matching = 0;
	int y = draw_groups(s);

	draw_summary(s);
	draw_headings(s, y++);
	for (size_t i = 0; i < top->table.nr_rows; i++) {
		const struct mw_cell *row = top->table.cells + i * mw_top_layout.nr_columns;

		if (!mw_top_matches(top, row))
			continue;
		matching++;
		if (skipped < s->scroll) {
			skipped++;
			continue;
		}
		if (y < LINES - 1)
			draw_row(s, y++, row);
	}
	if (s->scroll && s->scroll >= matching)
		s->scroll = matching ? matching - 1 : 0;
	if (!top->table.nr_rows)
		mvaddstr(y + 1, 2, s->shown ? "no process ran in this interval" : "measuring...");
	draw_last_line(s);
}

/* Explains the columns of the metrics, as many as fit above the last line. */
static void draw_metric_help(int y)
{
	for (size_t c = TOP_FIRST_METRIC; c < mw_top_layout.name && y < LINES - 1; c++, y++)
		mvprintw(y, 0, "  %-10s %.*s", mw_top_layout.columns[c].title,
			 COLS > 14 ? COLS - 13 : 1, mw_top_layout.metric[c]->help);
}

static void draw_help(void)
{
	static const char *const lines[] = {
		"  q            quit                  p, space   pause",
		"  < >          sort by the column before or after",
		"  c m n l t    sort by CPU, RSS, growth, LLC, memory traffic",
		"  i x          sort by IPC, LLC misses",
		"  r            reverse the order     /          filter by name",
		"  g            group by process or by cgroup",
		"  + -          longer or shorter interval",
		"  up, down     scroll                h, ?       this help",
		"",
		"\"-\" is not measured on this machine: memwatchctl doctor says why.",
		"\"~\" is not exact. \"!\" could not always be read.",
		"",
		"  CPU        Share of one CPU",
		"  GROWTH/s   Change of RSS each second",
	};
	int y = 0;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && y < LINES - 1; i++, y++)
		mvaddnstr(y, 0, lines[i], COLS);
	draw_metric_help(y);
	mvaddnstr(LINES - 1, 0, "Press any key to go back.", COLS);
}

static void draw_screen(struct screen *s)
{
	erase();
	if (s->mode == MODE_HELP)
		draw_help();
	else
		draw_table(s);
	refresh();
}

/* ------------------------------------------------------------------ keys */

static void key_filter(struct screen *s, int key)
{
	size_t len = strlen(s->filter);

	if (key == '\n' || key == KEY_ENTER || key == 27) {
		if (key == 27)
			s->filter[0] = '\0';
		s->mode = MODE_TABLE;
	} else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && len) {
		s->filter[len - 1] = '\0';
	} else if (key >= ' ' && key < 127 && len + 1 < sizeof(s->filter)) {
		s->filter[len] = (char)key;
		s->filter[len + 1] = '\0';
	}
	s->top->config.filter = s->filter;
}

static void sort_by(struct screen *s, int sort)
{
	int nr = mw_top_layout.nr_sorts;

	s->top->config.sort = (sort + nr) % nr;
	mw_top_sort(s->top);
}

static void key_sort(struct screen *s, int key)
{
	static const struct {
		int key;
		const char *sort_name;
	} keys[] = {
		{ 'c', "cpu" },	      { 'm', "rss" }, { 'n', "growth" },     { 'l', "llc" },
		{ 't', "mbm-total" }, { 'i', "ipc" }, { 'x', "llc-misses" },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (key == keys[i].key)
			sort_by(s, mw_top_find_sort(keys[i].sort_name));
}

static void change_delay(struct screen *s, int key)
{
	static const uint64_t steps[] = { 100000000,  200000000,  500000000,  1000000000,
					  2000000000, 5000000000, 10000000000 };
	const size_t nr = sizeof(steps) / sizeof(steps[0]);
	uint64_t *delay = &s->top->config.delay;

	/* --delay may be beyond the steps. */
	for (size_t i = 0; i < nr; i++) {
		uint64_t step = steps[key == '-' ? nr - 1 - i : i];

		if (key == '-' ? step < *delay : step > *delay) {
			*delay = step;
			return;
		}
	}
}

static int key_table(struct screen *s, int key)
{
	struct top *top = s->top;

	switch (key) {
	case 'q':
		s->quit = true;
		break;
	case 'h':
	case '?':
		s->mode = MODE_HELP;
		break;
	case 'p':
	case ' ':
		s->paused = !s->paused;
		break;
	case '/':
		s->mode = MODE_FILTER;
		break;
	case 'r':
		top->reverse = !top->reverse;
		mw_top_sort(top);
		break;
	case '<':
	case '>':
		sort_by(s, top->config.sort + (key == '<' ? -1 : 1));
		break;
	case 'g':
		top->config.by = top->config.by == MEMWATCH_BY_PROCESS ? MEMWATCH_BY_CGROUP
								       : MEMWATCH_BY_PROCESS;
		return mw_top_regroup(top);
	case '+':
	case '-':
		change_delay(s, key);
		break;
	case KEY_DOWN:
		s->scroll++;
		break;
	case KEY_UP:
		s->scroll -= s->scroll > 0;
		break;
	case KEY_NPAGE:
		s->scroll += (size_t)(LINES > 6 ? LINES - 6 : 1);
		break;
	case KEY_PPAGE:
		s->scroll -= s->scroll < (size_t)LINES ? s->scroll : (size_t)(LINES - 6);
		break;
	default:
		key_sort(s, key);
	}
	return 0;
}

static int handle_keys(struct screen *s)
{
	bool any = false;
	int key, err = 0;

	while (!err && (key = getch()) != ERR) {
		any = true;
		s->seen = s->text_size;
		if (s->mode == MODE_HELP)
			s->mode = MODE_TABLE;
		else if (s->mode == MODE_FILTER)
			key_filter(s, key);
		else
			err = key_table(s, key);
	}
	if (any)
		draw_screen(s);
	return err;
}

/* ------------------------------------------------------------------ loop */

/* The time up to which records are shown: a recording is shown at its own speed. */
static uint64_t replay_time(const struct screen *s, uint64_t wall_begin, uint64_t record_begin)
{
	uint64_t now = mw_clock_ns(CLOCK_MONOTONIC);

	return s->top->replay && record_begin ? now - wall_begin + record_begin : now;
}

static int read_records(struct screen *s, uint64_t until)
{
	int more = mw_top_read(s->top, until, 50);

	s->read_failed = more < 0;
	return more;
}

static int run_step(struct screen *s, uint64_t now)
{
	struct top *top = s->top;
	uint64_t due = mw_top_due(top), ahead = now + 50000000;
	int more, err;

	if (top->replay && !top->begin_ns) /* the first record sets the clock */
		return (more = read_records(s, 0)) < 0 ? more : (s->ended = !more, 0);
	if (s->ended) {
		napms(50);
		return 0;
	}
	if (top->replay && top->feed.last_ns > now) {
		napms(50); /* the newest record is to be shown later */
		return 0;
	}
	more = read_records(s, ahead < due ? ahead : due);
	if (more < 0)
		return more;
	s->ended = !more;
	if (s->ended && (err = mw_top_finish(top)))
		return err;
	if (!s->ended && (!mw_top_is_due(top) || (top->replay && top->feed.last_ns > ahead)))
		return 0;
	/* While paused, intervals end as usual but are not shown. */
	if (s->paused) {
		mw_top_skip(top, mw_top_closed_ns(top));
		return 0;
	}
	err = mw_top_cut(top, s->ended ? top->feed.last_ns : mw_top_closed_ns(top));
	s->shown++;
	draw_screen(s);
	return err;
}

/* A message must not be written into the screen, which the next one would overwrite in part. */
static void keep_messages(struct screen *s)
{
	if (isatty(STDERR_FILENO))
		s->messages = open_memstream(&s->text, &s->text_size);
	mw_message_redirect(s->messages);
}

static void print_kept_messages(struct screen *s)
{
	mw_message_redirect(NULL);
	if (!s->messages)
		return;
	fclose(s->messages);
	fputs(s->text, stderr);
	free(s->text);
}

static int report_terminal(void)
{
	const char *term = getenv("TERM");

	mw_error(MW_EXIT_FAILED, "top", "cannot set up the terminal (TERM=%s)", term ? term : "");
	mw_hint("set TERM to a terminal that this machine knows, or use --batch");
	return MW_EXIT_FAILED;
}

int mw_top_screen(struct top *top)
{
	struct screen s = { .top = top };
	uint64_t wall = mw_clock_ns(CLOCK_MONOTONIC), origin = 0;
	SCREEN *terminal;
	int err = 0;

	if (top->config.filter)
		snprintf(s.filter, sizeof(s.filter), "%s", top->config.filter);
	mw_interrupt_init();
	/* initscr() would end the program if it does not know the terminal. */
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return report_terminal();
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	keep_messages(&s);
	draw_screen(&s);
	while (!err && !s.quit && !mw_interrupted() &&
	       (!top->config.iterations || s.shown < top->config.iterations)) {
		if (!origin && top->replay)
			origin = top->begin_ns;
		err = run_step(&s, replay_time(&s, wall, origin)) ?: handle_keys(&s);
	}
	endwin();
	delscreen(terminal);
	print_kept_messages(&s);
	if (err)
		return s.read_failed ? mw_module_failed(top->ctx, err, "top", NULL)
				     : mw_error_errno(err, "top");
	return top->replay ? mw_check_damage(top->cli, top->feed.stream, top->config.replay)
			   : MW_EXIT_DONE;
}
