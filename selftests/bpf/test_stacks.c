// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Where a growing process takes its memory, on a running kernel. Children take memory in functions
 * of this program that have a name. The times that the library is given are those of a test of
 * some seconds. Needs root and BTF.
 */
#include <sys/prctl.h>

#include <bpf/bpf.h>
#include <fcntl.h>
#include <poll.h>

#include "growth-key.h"
#include "growth/stacks.h"
#include "heap/elfutils.h"
#include "merge/merge.h"

/* Not merged with their callers, and with the call stack that their names say. */
#define APART __attribute__((noinline, noclone, optimize("no-optimize-sibling-calls")))

static struct mw_bpf_growth *growth;
static struct mw_stacks stacks;
static uint64_t now = 1000 * MW_GROWTH_SECOND;

static void *volatile kept;

APART static void take_objects(void)
{
	for (int i = 0; i < 200; i++) {
		char *object = malloc(1000);

		*object = 1;
		kept = object;
	}
}

APART static void take_pages(void)
{
	volatile char *pages = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < 64; i++)
		pages[i * 4096] = 1;
}

/* Needs ten times as much, but gives it back. */
APART static void borrow_pages(void)
{
	volatile char *pages = mmap(NULL, 160 * 4096, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < 160; i++)
		pages[i * 4096] = 1;
	munmap((void *)pages, 160 * 4096);
}

/* What a child does, again and again. */
static void (*volatile deed)(void);

/* Shared with it: while it borrows pages, they are there. So it rests before somebody looks. */
static struct pause {
	volatile bool wanted, reached;
} * rest;

static void do_deeds(struct child *c)
{
	(void)c;
	/* A huge page is one fault, so there would be few samples of what is kept. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (;;) {
		deed();
		usleep(20000);
		while (rest->wanted) {
			rest->reached = true;
			usleep(1000);
		}
	}
}

static void let_rest(void)
{
	rest->reached = false;
	rest->wanted = true;
	while (!rest->reached)
		usleep(1000);
}

static void do_both(void)
{
	borrow_pages();
	take_objects();
}

static int zeros;

APART static void read_into_memory(void)
{
	size_t bytes = 64 * 4096;
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (read(zeros, pages, bytes) != (ssize_t)bytes)
		_exit(1);
}

static struct child start_deed(void (*what)(void))
{
	deed = what;
	return start_child(do_deeds);
}

/* Lets a second pass, also for the library. */
static void pass_second(void)
{
	poll(NULL, 0, 1000);
	now += MW_GROWTH_SECOND;
	mw_stacks_run(&stacks, now);
}

static struct mw_growth_key follow(const struct child *c, int seconds)
{
	struct mw_growth_key key = key_of(growth, c);

	mw_stacks_begin(&stacks, &key, now);
	now += 2 * MW_GROWTH_SECOND;
	mw_stacks_run(&stacks, now);
	while (seconds--)
		pass_second();
	return key;
}

static struct mw_where_samples samples;

/* Searches in the samples of a process. Returns NULL if there is no answer. */
static struct memwatch_where *search(const struct mw_growth_key *key)
{
	struct memwatch_where *where;
	int rc = mw_stacks_get(&stacks, key, &samples);

	if (!rc)
		rc = mw_where_search_new(ctx, key->tgid, &samples, &where);
	if (rc) {
		tap_ok(false, "a search begins: %s", memwatch_ctx_error(ctx));
		return NULL;
	}
	while (!(rc = memwatch_where_poll(where)))
		poll(NULL, 0, 10);
	if (rc == 1)
		return where;
	tap_ok(false, "a search ends: %s", memwatch_ctx_error(ctx));
	return memwatch_where_unref(where);
}

/* Is the function of most samples @name, and does it have at least @percent of them? */
static void tap_site(const struct memwatch_where *where, unsigned int kind, const char *name,
		     unsigned int percent, const char *what)
{
	MEMWATCH_OPTS(memwatch_where_site, site);
	MEMWATCH_OPTS(memwatch_heap_frame, frame, .function = "");

	if (where && memwatch_where_get_site(where, kind, &site) == 1)
		memwatch_where_get_frame(where, kind, site.first, &frame);
	if (mw_elfutils_load(NULL))
		tap_skip(what, "elfutils is not installed, so there are no names");
	else
		tap_ok(!strcmp(frame.function, name) && site.share * 100 >= percent,
		       "%s: %s, %.0f %% of %u samples", what, frame.function, site.share * 100,
		       site.of_samples);
}

static void end_child(struct child *c)
{
	stop_child(c);
	pass_second();
}

static void test_touched(void)
{
	static const struct {
		void (*deed)(void);
		const char *name, *what;
	} cases[] = {
		{ take_pages, "take_pages", "who writes to pages first is named" },
		{ take_objects, "take_objects", "who calls malloc() is named, and not malloc()" },
		{ do_both, "take_objects", "what was given back does not count" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct child c = start_deed(cases[i].deed);
		struct mw_growth_key key = follow(&c, 4);
		struct memwatch_where *where;

		let_rest();
		where = search(&key);
		tap_site(where, MEMWATCH_WHERE_TOUCHED, cases[i].name, 90, cases[i].what);
		rest->wanted = false;
		memwatch_where_unref(where);
		end_child(&c);
	}
}

/* Without a name there is still the place in the program. */
static void test_module(void)
{
	struct child c = start_deed(take_pages);
	struct mw_growth_key key = follow(&c, 3);
	MEMWATCH_OPTS(memwatch_heap_frame, frame, .module = "");
	struct memwatch_where *where = search(&key);

	if (where)
		memwatch_where_get_frame(where, MEMWATCH_WHERE_TOUCHED, 0, &frame);
	tap_ok(strstr(frame.module, "test_stacks"), "the module is named: %s", frame.module);
	memwatch_where_unref(where);
	end_child(&c);
}

static void test_kernel_writes(void)
{
	struct child c = start_deed(read_into_memory);
	struct mw_growth_key key = follow(&c, 4);

	/* Up to 5.14 the registers of a process in the kernel are not found. */
	if (mw_stacks_get(&stacks, &key, &samples) == -ENODATA ||
	    samples.counts[MW_WHERE_TOUCHED] < 8) {
		tap_skip("memory that the kernel writes to", "this kernel does not tell who calls");
	} else {
		struct memwatch_where *where = search(&key);

		tap_site(where, MEMWATCH_WHERE_TOUCHED, "read_into_memory", 90,
			 "who calls read() with new memory is named");
		memwatch_where_unref(where);
	}
	end_child(&c);
}

static void test_asked(void)
{
	struct child c = start_deed(take_pages);
	struct mw_growth_key key = follow(&c, 3);
	struct memwatch_where *where = search(&key);

	if (!samples.counts[MW_WHERE_ASKED])
		tap_skip("calls of mmap()",
			 "this kernel does not let programs be attached there, or only once");
	else
		tap_site(where, MEMWATCH_WHERE_ASKED, "take_pages", 90,
			 "who calls mmap() is named");
	memwatch_where_unref(where);
	end_child(&c);
}

/* Samples are those of the suspect, also if another process has nearly all page faults. */
static void test_filter(void)
{
	struct child other = start_deed(borrow_pages), c = start_deed(take_pages);
	struct mw_growth_key key = follow(&c, 4), of_other = key_of(growth, &other);
	struct memwatch_where *where = search(&key);

	tap_site(where, MEMWATCH_WHERE_TOUCHED, "take_pages", 90,
		 "another process does not get into the samples");
	memwatch_where_unref(where);
	tap_eq(mw_stacks_get(&stacks, &of_other, &samples), -ENODATA,
	       "there are no samples of that process");
	stop_child(&other);
	end_child(&c);
}

static void fault_all_the_time(struct child *c)
{
	(void)c;
	for (;;)
		borrow_pages();
}

static void test_rate(void)
{
	struct child c = start_child(fault_all_the_time);
	uint64_t before;

	follow(&c, 4);
	tap_ok(stacks.period > 64,
	       "the rate adapts to a process that faults all the time: 1 in %llu",
	       (unsigned long long)stacks.period);
	before = mw_bpf_where_faults(stacks.bpf);
	pass_second();
	before = mw_bpf_where_faults(stacks.bpf) - before;
	tap_ok(before < 2000, "few page faults are looked at after that: %llu in a second",
	       (unsigned long long)before);
	end_child(&c);
	tap_eq(mw_stacks_count(&stacks), 0, "a process that has ended is not followed any more");
	tap_ok(!mw_bpf_where_is_attached(stacks.bpf),
	       "nothing is attached when nobody is followed");
}

static void test_short(void)
{
	struct child c = start_deed(take_pages);
	struct mw_growth_key key = key_of(growth, &c);

	mw_stacks_begin(&stacks, &key, now);
	now += MW_GROWTH_SECOND;
	mw_stacks_run(&stacks, now);
	tap_ok(!mw_bpf_where_is_attached(stacks.bpf),
	       "nothing is attached for what may be a start");
	mw_stacks_end(&stacks, &key);
	now += 5 * MW_GROWTH_SECOND;
	mw_stacks_run(&stacks, now);
	tap_ok(!mw_bpf_where_is_attached(stacks.bpf), "nothing is attached after it has settled");
	stop_child(&c);
}

/* How many programs of the name that the one at page faults has are in the kernel. */
static unsigned int count_programs(void)
{
	unsigned int count = 0;
	uint32_t id = 0;

	while (!bpf_prog_get_next_id(id, &id)) {
		struct bpf_prog_info info = { 0 };
		uint32_t size = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &size))
			count += !strcmp(info.name, "on_fault");
		close(fd);
	}
	return count;
}

static void monitor_until_killed(struct child *c)
{
	static struct mw_stacks own;

	mw_stacks_init(&own, ctx, true);
	if (!mw_stacks_open(&own) && !mw_bpf_where_attach(own.bpf, 16))
		send_byte(c->done[1]);
	for (;;)
		pause();
}

static void test_killed(void)
{
	unsigned int before = count_programs();
	struct child c = start_child(monitor_until_killed);

	await_byte(c.done[0]);
	tap_eq(count_programs(), before + 1, "another monitor has attached its programs");
	stop_child(&c);
	/* The kernel removes them a little later. */
	for (int i = 0; i < 100 && count_programs() > before; i++)
		poll(NULL, 0, 100);
	tap_eq(count_programs(), before, "after a kill nothing is left of them");
}

static void test_unwanted(void)
{
	static struct mw_stacks unwanted;
	struct child c = start_deed(take_pages);
	struct mw_growth_key key = key_of(growth, &c);

	mw_stacks_init(&unwanted, ctx, false);
	tap_eq(mw_stacks_open(&unwanted), 0, "if it is not wanted, nothing is loaded");
	mw_stacks_begin(&unwanted, &key, now);
	tap_eq(mw_stacks_count(&unwanted), 0, "nobody is followed if it is not wanted");
	mw_stacks_uninit(&unwanted);
	stop_child(&c);
}

int main(void)
{
	struct mw_merge_opts merge_opts = { .grace_ns = 200000, .silent_ns = 1000000 };
	struct mw_merge *merge;

	start_rig();
	zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	rest = mmap(NULL, sizeof(*rest), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (rest == MAP_FAILED)
		return EXIT_FAILURE;
	if (mw_merge_new(&merge_opts, &merge) || mw_bpf_growth_open(ctx, 10000, merge, &growth)) {
		tap_ok(false, "the growth programs are loaded: %s", memwatch_ctx_error(ctx));
		return tap_done();
	}
	mw_stacks_init(&stacks, ctx, true);
	if (mw_stacks_open(&stacks)) {
		tap_ok(false, "the programs are loaded: %s", memwatch_ctx_error(ctx));
		return tap_done();
	}
	test_touched();
	test_module();
	test_kernel_writes();
	test_asked();
	test_filter();
	test_rate();
	test_short();
	test_killed();
	test_unwanted();
	mw_stacks_uninit(&stacks);
	mw_bpf_growth_close(growth);
	mw_merge_free(merge);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
