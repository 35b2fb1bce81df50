// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The decision, on heaps whose leaks are known: rare leaks of a site that frees most of its
 * objects, sites that free nothing, tables, caches, idle programs, what was lost long ago, and what
 * the guards are for.
 */
#include <math.h>

#include "stale-kit.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define SEED	20261123
#define STEPS	4000
#define STEP_NS 100000

static struct memwatch_ctx *ctx;

/*
 * A program that handles a request in each step: it takes memory at "request", which lives for
 * some steps. @leaks: every so many requests leak. @keeps: every so many steps, "static" leaks.
 * @loads: the first so many steps, "load" takes memory that stays.
 */
struct work {
	uint64_t leaks, keeps, bytes_kept;
	uint64_t loads;
	uint64_t looks;	 /* every so many steps, one object of "load" is used */
	uint64_t nodes;	 /* objects of "node" that stay as well, for each of "load" */
	uint64_t tables; /* objects of "table", which are allocated at the start */
	uint64_t pause;	 /* after half of the steps, in nanoseconds */
	bool late;	 /* the pause is before the last step */
	bool same;	 /* all requests take the same time */
	bool slow;	 /* every second request takes up to an eighth of the time */
	bool unseen;	 /* no access is in the trace */
	bool alone;	 /* "load" takes memory beside 19 requests only */
	bool freed;	 /* 30 objects of "load" are freed at the end */
};

#define SLOW (STEPS / 8)

static uint64_t address_of(uint64_t step, uint64_t kind)
{
	return (kind << 40) + step * 65536;
}

__attribute__((format(printf, 3, 4))) static void
write_access(struct trace *trace, const struct work *w, const char *format, ...)
{
	va_list args;

	if (w->unseen)
		return;
	va_start(args, format);
	vfprintf(trace->out, format, args);
	va_end(args);
}

static void write_load(struct trace *trace, const struct work *w, uint64_t step, uint64_t now)
{
	if (w->freed && step == STEPS - 1) {
		for (uint64_t i = 0; i < 30; i++)
			trace_line(trace, "f %lu 1 %#lx unload", now, address_of(i, 4));
	} else if (step < w->loads) {
		trace_line(trace, "m %lu 1 %#lx 100 load", now, address_of(step, 4));
		write_access(trace, w, "a %lu 1 %#lx fill\n", now, address_of(step, 4));
		for (uint64_t i = 0; i < w->nodes; i++)
			trace_line(trace, "m %lu 1 %#lx 100 node", now,
				   address_of(step * 8 + i, 5));
	} else if (w->looks && step % w->looks == 0) {
		write_access(trace, w, "a %lu 1 %#lx look\n", now,
			     address_of(step * 7919 % w->loads, 4));
	}
}

static void write_requests(struct trace *trace, const struct work *w)
{
	static uint64_t end[STEPS];
	struct prng prng = { SEED };
	uint64_t now = 1000;

	for (uint64_t i = 0; i < STEPS; i++) {
		uint64_t life = w->same ? 3 : 1 + prng_below(&prng, w->slow && i % 2 ? SLOW : 6);

		now += STEP_NS;
		if (i == (w->late ? STEPS - 1 : STEPS / 2))
			now += w->pause;
		end[i] = w->leaks && i % w->leaks == w->leaks / 2 ? 0 : i + life;
		if (!w->alone || i >= 2 * w->loads || i % 55 == 0) {
			trace_line(trace, "m %lu 1 %#lx 100 request", now, address_of(i, 1));
			write_access(trace, w, "a %lu 1 %#lx parse\n", now + 10, address_of(i, 1));
		}
		if (w->keeps && i % w->keeps == 0) {
			trace_line(trace, "m %lu 2 %#lx %lu static", now + 20, address_of(i, 2),
				   w->bytes_kept);
			write_access(trace, w, "a %lu 2 %#lx store\n", now + 30, address_of(i, 2));
		}
		write_load(trace, w, i, now + 35);
		for (uint64_t j = i > SLOW ? i - SLOW : 0; j < i; j++)
			if (end[j] == i)
				trace_line(trace, "f %lu 1 %#lx done", now + 40, address_of(j, 1));
	}
}

static struct memwatch_stale *judge(const struct work *w, const struct memwatch_stale_opts *opts)
{
	struct memwatch_stale *stale;
	struct trace trace;
	int err;

	trace_begin(&trace);
	for (uint64_t i = 0; i < w->tables; i++)
		trace_line(&trace, "m %lu 1 %#lx 4096 table", 1 + i, address_of(i, 3));
	write_requests(&trace, w);
	trace_end(&trace);
	err = replay_text(ctx, opts, trace.text, trace.len, &stale);
	if (err)
		tap_note("error %d", err);
	free(trace.text);
	return stale;
}

/* The site with this name. */
static struct memwatch_stale_site site_named(const struct memwatch_stale *stale, const char *name)
{
	MEMWATCH_OPTS(memwatch_stale_site, site);

	for (uint32_t i = 0; memwatch_stale_get_site(stale, i, &site) == 1; i++)
		if (!strcmp(site.site, name))
			return site;
	return (struct memwatch_stale_site){ .site = "missing" };
}

static uint64_t leaked(const struct memwatch_stale *stale)
{
	MEMWATCH_OPTS(memwatch_stale_info, info);

	memwatch_stale_get_info(stale, &info);
	return info.leaked_objects;
}

static void test_local(void)
{
	struct work none = { 0 }, rare = { .leaks = 100 }, same = { .leaks = 100, .same = true };
	MEMWATCH_OPTS(memwatch_stale_opts, global, .scheme = MEMWATCH_STALE_GLOBAL);
	struct memwatch_stale *stale = judge(&none, NULL);
	struct memwatch_stale_site site;

	tap_eq(leaked(stale), 0, "a program without a leak is not blamed");
	memwatch_stale_unref(stale);
	stale = judge(&rare, NULL);
	site = site_named(stale, "request");
	tap_eq(leaked(stale), STEPS / 100, "one leak in 100 requests is found, and nothing else");
	tap_ok(site.leak && site.scheme == MEMWATCH_STALE_LOCAL &&
		       site.growth == MEMWATCH_STALE_GROWING,
	       "its site is judged by itself");
	memwatch_stale_unref(stale);
	stale = judge(&same, NULL);
	tap_eq(leaked(stale), STEPS / 100, "also if all other objects have the same staleness");
	memwatch_stale_unref(stale);
	stale = judge(&rare, &global);
	tap_ok(leaked(stale) && site_named(stale, "request").scheme == MEMWATCH_STALE_GLOBAL,
	       "the global scheme can be chosen");
	memwatch_stale_unref(stale);
}

static void test_global(void)
{
	struct work keeps = { .keeps = 40, .bytes_kept = 200 };
	struct work small = { .keeps = 40, .bytes_kept = 1, .tables = 100 };
	struct work most = { .keeps = 1, .bytes_kept = 200 };
	MEMWATCH_OPTS(memwatch_stale_opts, local, .scheme = MEMWATCH_STALE_LOCAL);
	MEMWATCH_OPTS(memwatch_stale_opts, all, .share = -1);
	MEMWATCH_OPTS(memwatch_stale_distribution, d);
	struct memwatch_stale *stale = judge(&keeps, NULL);
	struct memwatch_stale_site site = site_named(stale, "static");

	tap_ok(site.leak && site.scheme == MEMWATCH_STALE_GLOBAL && site.stale_objects >= 95,
	       "a site that frees nothing is judged by all objects");
	tap_ok(!site_named(stale, "request").leak, "other sites are not blamed for it");
	memwatch_stale_unref(stale);
	stale = judge(&keeps, &local);
	tap_ok(!site_named(stale, "static").leak, "the local scheme cannot find it");
	memwatch_stale_unref(stale);
	stale = judge(&small, NULL);
	tap_ok(!site_named(stale, "static").leak, "it is not judged so if it has little memory");
	memwatch_stale_unref(stale);
	stale = judge(&small, &all);
	tap_ok(site_named(stale, "static").leak, "that share of the memory is a parameter");
	memwatch_stale_unref(stale);
	stale = judge(&most, NULL);
	memwatch_stale_get_distribution(stale, MEMWATCH_STALE_ALL_SITES, &d);
	tap_ok(d.basis == MEMWATCH_STALE_BASIS_FREED && site_named(stale, "static").leak,
	       "a leak of half of all objects does not hide itself");
	memwatch_stale_unref(stale);
}

static void test_guards(void)
{
	struct work half = { .leaks = 2 }, tables = { .tables = 500 };
	struct work rare_table = { .tables = 500, .leaks = 100 };
	MEMWATCH_OPTS(memwatch_stale_opts, any, .flags = MEMWATCH_STALE_ANY_GROWTH);
	MEMWATCH_OPTS(memwatch_stale_distribution, d);
	struct memwatch_stale *stale = judge(&half, NULL);

	memwatch_stale_get_distribution(stale, 0, &d);
	tap_ok(leaked(stale) > STEPS / 2 - 100 && d.basis == MEMWATCH_STALE_BASIS_FREED,
	       "a site that leaks half of its objects does not hide itself");
	memwatch_stale_unref(stale);
	stale = judge(&tables, NULL);
	tap_eq(leaked(stale), 0, "a table that is never used again is not blamed");
	tap_eq(site_named(stale, "table").growth, MEMWATCH_STALE_STOPPED,
	       "because it does not grow");
	memwatch_stale_unref(stale);
	stale = judge(&tables, &any);
	tap_ok(site_named(stale, "table").leak, "unless growth does not matter");
	memwatch_stale_unref(stale);
	stale = judge(&rare_table, NULL);
	tap_ok(site_named(stale, "request").leak && !site_named(stale, "table").leak,
	       "a leak beside a large table is found");
	memwatch_stale_unref(stale);
}

/* Whether memory that is taken in the first steps and stays is taken for a leak. */
static bool is_lost(const struct work *w)
{
	struct memwatch_stale *stale = judge(w, NULL);
	struct memwatch_stale_site site = site_named(stale, "load");

	memwatch_stale_unref(stale);
	if (site.leak && (site.scheme != MEMWATCH_STALE_GLOBAL || site.stale_objects < w->loads))
		tap_note("scheme %u, %lu stale objects", site.scheme, (long)site.stale_objects);
	return site.leak;
}

/* A site that has stopped long ago. */
static void test_abandoned(void)
{
	struct work lost = { .loads = STEPS / 4 }, short_time = { .loads = STEPS / 20 };
	struct work in_use = lost, unseen = lost, beside = lost, alone = lost, freed = lost;

	in_use.looks = 20;
	unseen.unseen = true;
	beside.nodes = 1;
	alone.alone = true;
	freed.freed = true;
	tap_ok(is_lost(&lost), "what is not used any more leaks, although it has stopped to grow");
	tap_ok(!is_lost(&in_use), "it does not if it is looked up now and then");
	tap_ok(!is_lost(&unseen), "it does not if no access is known");
	tap_ok(!is_lost(&beside), "it does not if others keep what they took at that time");
	tap_ok(!is_lost(&alone), "it does not if hardly anything else was taken at that time");
	tap_ok(!is_lost(&freed), "it does not if its site has freed others after as long a time");
	tap_ok(!is_lost(&short_time), "it does not if it was taken in a short time");
}

/* The global fence is longer than the whole time. */
static void test_beyond(void)
{
	struct work keeps = { .keeps = 40, .bytes_kept = 2000, .slow = true }, unseen = keeps;
	MEMWATCH_OPTS(memwatch_stale_distribution, d);
	MEMWATCH_OPTS(memwatch_stale_info, info);
	struct memwatch_stale *stale = judge(&keeps, NULL);
	struct memwatch_stale_site site = site_named(stale, "static");

	memwatch_stale_get_distribution(stale, MEMWATCH_STALE_ALL_SITES, &d);
	memwatch_stale_get_info(stale, &info);
	tap_ok(d.threshold > (double)info.active_ns, "a fence can be longer than the whole time");
	tap_ok(site.leak && site.threshold_ns < SLOW * STEP_NS && site.stale_objects > 80,
	       "what is staler than nearly all objects that were freed is stale then");
	memwatch_stale_unref(stale);
	unseen.unseen = true;
	stale = judge(&unseen, NULL);
	tap_eq(leaked(stale), 0, "it is not stale if no access is known");
	memwatch_stale_unref(stale);
}

static void test_few(void)
{
	MEMWATCH_OPTS(memwatch_stale_distribution, d);
	struct memwatch_stale *stale;
	struct trace trace;

	trace_begin(&trace);
	for (int i = 0; i < 19; i++)
		trace_line(&trace, "m %d 1 %#x 8 few", 1 + i * 1000000, 4096 + i * 16);
	trace_end(&trace);
	replay_text(ctx, NULL, trace.text, trace.len, &stale);
	memwatch_stale_get_distribution(stale, MEMWATCH_STALE_ALL_SITES, &d);
	tap_ok(d.basis == MEMWATCH_STALE_BASIS_NONE && isnan(d.threshold) && d.objects == 19 &&
		       !leaked(stale),
	       "nothing can be told from 19 objects");
	memwatch_stale_unref(stale);
	free(trace.text);
}

/* Everything is used before the program sleeps for an hour; then it goes on. */
static void test_idle(void)
{
	struct work waits = { .leaks = 100, .pause = 8000000, .late = true };
	MEMWATCH_OPTS(memwatch_stale_opts, wall,
		      .flags = MEMWATCH_STALE_WALL_TIME | MEMWATCH_STALE_ANY_GROWTH);
	MEMWATCH_OPTS(memwatch_stale_info, info);
	struct memwatch_stale *stale;
	struct trace trace;
	uint64_t now = 0;

	trace_begin(&trace);
	for (int i = 0; i < 3000; i++) {
		now += 1000000;
		trace_line(&trace, "m %lu 1 %#x 64 session", now, 4096 + i * 64);
		if (i >= 100)
			trace_line(&trace, "f %lu 1 %#x close", now + 1, 4096 + (i - 100) * 64);
	}
	now += 3600 * 1000000000UL;
	trace_line(&trace, "a %lu 1 4096 wake", now);
	trace_end(&trace);
	replay_text(ctx, NULL, trace.text, trace.len, &stale);
	memwatch_stale_get_info(stale, &info);
	tap_ok(info.last_ns - info.first_ns > 3600 * 1000000000UL && info.active_ns < 3100000000UL,
	       "the clock of an idle process stands still");
	tap_eq(leaked(stale), 0, "a program that is idle is not blamed");
	memwatch_stale_unref(stale);
	replay_text(ctx, &wall, trace.text, trace.len, &stale);
	tap_ok(leaked(stale) > 0, "its objects are stale if the clock counts all time");
	memwatch_stale_unref(stale);
	free(trace.text);
	stale = judge(&waits, NULL);
	tap_eq(leaked(stale), STEPS / 100,
	       "what lives during a pause at the end is not blamed for it");
	memwatch_stale_unref(stale);
}

/* The results come in the order that the header promises. */
static void test_lists(void)
{
	struct work w = { .leaks = 100, .tables = 500 };
	MEMWATCH_OPTS(memwatch_stale_object, object);
	MEMWATCH_OPTS(memwatch_stale_place, place);
	MEMWATCH_OPTS(memwatch_stale_point, point);
	MEMWATCH_OPTS(memwatch_stale_site, site);
	struct memwatch_stale *stale = judge(&w, NULL);
	uint64_t last = UINT64_MAX, count = 0, wrong = 0, time_ns = 0, points = 0;
	bool leak = true;

	for (; memwatch_stale_get_object(stale, count, &object) == 1; count++) {
		wrong += object.leak && !leak;
		wrong += object.leak == leak && object.active_ns > last;
		leak = object.leak;
		last = object.active_ns;
	}
	tap_ok(!wrong && count > 500, "leaked objects come first, and then the stalest");
	memwatch_stale_get_site(stale, 0, &site);
	tap_str_eq(site.site, "request", "sites with leaks come first");
	memwatch_stale_get_place(stale, MEMWATCH_STALE_SITE_FREES, 0, 0, &place);
	tap_ok(!strcmp(place.place, "done") && place.count == site.freed_objects,
	       "a site has the places where its other objects are freed");
	memwatch_stale_get_place(stale, MEMWATCH_STALE_SITE_ACCESS, 0, 0, &place);
	tap_ok(!strcmp(place.place, "parse") && place.count == STEPS,
	       "a site has the places where its objects are used");
	for (; memwatch_stale_get_point(stale, 0, (uint32_t)points, &point) == 1; points++) {
		wrong += point.time_ns <= time_ns || point.live_bytes != 100 * point.live_objects;
		time_ns = point.time_ns;
	}
	tap_ok(!wrong && points >= MW_CURVE_POINTS / 2 && point.live_objects > 30,
	       "the live memory of a site is known at several times");
	memwatch_stale_unref(stale);
}

int main(void)
{
	tap_plan(36);
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_local();
	test_global();
	test_guards();
	test_abandoned();
	test_beyond();
	test_few();
	test_idle();
	test_lists();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
