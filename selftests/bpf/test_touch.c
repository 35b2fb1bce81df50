// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What is found out about the pages of a growing process, on a running kernel. The kernel itself
 * is the judge: it says in smaps_rollup how much was referenced since clear_refs. Then children
 * touch a known part of what they gain. The times that the visits are given are not those of the
 * clock, so that a test of minutes takes seconds. Needs root and BTF.
 */
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "merge/merge.h"
#include "touch-rig.h"

/* Is @pages within @percent of @mib? */
static bool is_about(uint32_t pages, size_t mib, unsigned int percent)
{
	uint64_t wanted = mib * MW_GROWTH_MIB, off = wanted * percent / 100;

	return pages >= wanted - off && pages <= wanted + off;
}

static void tap_mib(uint32_t pages, size_t mib, unsigned int percent, const char *what)
{
	tap_ok(is_about(pages, mib, percent), "%s: %.1f MiB, wanted %zu within %u %%", what,
	       (double)pages / MW_GROWTH_MIB, mib, percent);
}

static size_t read_smaps(pid_t pid, const char *key)
{
	char path[64], line[256];
	size_t kb = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	file = fopen(path, "r");
	/* The area is the largest mapping, and all others are small. */
	while (file && fgets(line, sizeof(line), file)) {
		size_t value;

		if (!strncmp(line, key, strlen(key)) &&
		    sscanf(line + strlen(key), ": %zu", &value) == 1 && value > kb)
			kb = value;
	}
	if (file)
		fclose(file);
	return kb;
}

static void write_clear_refs(pid_t pid, const char *what)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/clear_refs", pid);
	file = fopen(path, "w");
	if (!file || fputs(what, file) < 0 || fclose(file))
		tap_ok(false, "clear_refs: %s", strerror(errno));
}

/*
 * "1" clears the accessed bits, but leaves the TLB of a CPU as it is, which then sets none of them.
 * "4", which clears the soft-dirty bits, flushes it.
 */
static void clear_refs(pid_t pid)
{
	write_clear_refs(pid, "1");
	write_clear_refs(pid, "4");
}

/* A visit that only reads. */
static void read_pages(void)
{
	uint32_t slot;

	if (mw_bpf_touch_begin(touch.bpf))
		tap_ok(false, "a visit begins: %s", memwatch_ctx_error(ctx));
	while (mw_bpf_touch_next(touch.bpf, &slot) > 0)
		;
}

/* The pages that the last visit found, and how many of them were touched. */
static uint32_t count_pages(uint32_t *young)
{
	const struct mw_touch_suspect *found = mw_bpf_touch_get(touch.bpf, 0);

	*young = 0;
	for (uint32_t i = 0; found && i < found->count; i++)
		*young += !!(found->page[i] & MW_TOUCH_YOUNG);
	return found ? found->count : 0;
}

/* Every page of a small process is in the sample, so the numbers must be equal. */
static void test_kernel_agrees(void)
{
	uint64_t now = 1000 * MW_GROWTH_SECOND;
	struct child c = start_child(obey);
	uint32_t all, young, referenced;

	await_byte(c.done[0]);
	tell(&c, (struct order){ .grow = 3 });
	follow(&c, 3, now);
	clear_refs(c.pid);
	read_pages();
	all = count_pages(&young);
	tap_ok(all >= 768, "all pages of a small process are looked at: %u", all);
	tap_ok(young < 64, "after clear_refs hardly any is touched: %u", young);
	tell(&c, (struct order){ .from = 1, .to = 2 });
	read_pages();
	count_pages(&young);
	referenced = (uint32_t)read_smaps(c.pid, "Referenced") / 4;
	/* DAMON may run on this machine, and clears a few at any time. */
	tap_ok(referenced >= 240 && referenced <= 256,
	       "the kernel says that about 256 pages were referenced: %u", referenced);
	tap_ok(young >= referenced && young - referenced < 64,
	       "the visit finds these, and few of other mappings: %u", young);
	end_child(&c, &now);
	tap_eq(mw_touch_count(&touch), 0, "a process that has ended is not followed any more");
}

/* The kernel marks a guard region in the page tables, but there is no memory. */
static void test_guard(void)
{
	uint64_t now = 12000 * MW_GROWTH_SECOND;
	struct child c = start_child(obey);
	uint32_t before, after, young;

	await_byte(c.done[0]);
	tell(&c, (struct order){ .grow = 3 });
	follow(&c, 3, now);
	before = count_pages(&young);
	tell(&c, (struct order){ .guard = true });
	read_pages();
	after = count_pages(&young);
	if (order->error == EINVAL)
		tap_skip("guard regions", "this kernel has none");
	else
		tap_ok(!order->error && after < before + 64,
		       "the 2048 pages of a guard region are not pages of the process: %d more",
		       (int)(after - before));
	end_child(&c, &now);
}

static void test_cold(void)
{
	uint64_t now = 2000 * MW_GROWTH_SECOND;
	struct child c = start_child(obey);
	struct mw_growth_touch result;

	await_byte(c.done[0]);
	tell(&c, (struct order){ .grow = 64 });
	follow(&c, 64, now);
	tell(&c, (struct order){ .grow = 32 });
	visit_times(&now, 4);
	tap_eq(measure(now).gained, 0, "after half a minute nothing is known yet");
	visit_times(&now, 8);
	result = measure(now);
	tap_mib(result.gained, 32, 15, "gained");
	tap_mib(result.cold, 32, 15, "cold of what nobody touches");
	tap_ok(result.cold_low * 10ULL >= result.gained * 9ULL, "nearly all of it surely");
	tap_eq(result.untouched_s, 60, "for a minute");
	end_child(&c, &now);
}

static void test_half(void)
{
	uint64_t now = 3000 * MW_GROWTH_SECOND;
	struct child c = start_child(obey);
	struct mw_growth_touch result;

	await_byte(c.done[0]);
	tell(&c, (struct order){ .grow = 100 });
	follow(&c, 100, now);
	tell(&c, (struct order){ .grow = 40 });
	for (int i = 0; i < 12; i++) {
		visit(&now);
		tell(&c, (struct order){ .from = 100, .to = 120 });
	}
	result = measure(now);
	tap_mib(result.gained, 40, 15, "gained");
	tap_mib(result.cold, 20, 20, "cold of what is touched by half");
	tap_ok(is_about(result.cold_low, 10, 100) && result.cold_low < result.cold &&
		       result.cold < result.cold_high && result.cold_high < result.gained,
	       "the interval is around it");
	end_child(&c, &now);
}

static void test_sweep(void)
{
	uint64_t now = 4000 * MW_GROWTH_SECOND;
	struct child c = start_child(obey);
	struct mw_growth_touch result;

	await_byte(c.done[0]);
	tell(&c, (struct order){ .grow = 16 });
	follow(&c, 16, now);
	tell(&c, (struct order){ .grow = 32 });
	for (int i = 0; i < 3; i++) {
		visit_times(&now, 6);
		tell(&c, (struct order){ .to = 48 });
	}
	visit_times(&now, 2);
	result = measure(now);
	tap_mib(result.cold, 32, 15, "cold of what a collector sweeps each minute");
	end_child(&c, &now);
}

static void test_huge(void)
{
	uint64_t now = 5000 * MW_GROWTH_SECOND;
	struct mw_growth_touch result;
	struct child c;

	order->huge = true;
	c = start_child(obey);
	await_byte(c.done[0]);
	tell(&c, (struct order){ .grow = 64 });
	if (read_smaps(c.pid, "AnonHugePages") < 32 * 1024) {
		kill(c.pid, SIGKILL);
		waitpid(c.pid, NULL, 0);
		tap_skip("huge pages", "this machine gives none");
		return;
	}
	follow(&c, 64, now);
	tell(&c, (struct order){ .grow = 128 });
	for (int i = 0; i < 12; i++) {
		visit(&now);
		tell(&c, (struct order){ .from = 64, .to = 128 });
	}
	result = measure(now);
	tap_mib(result.gained, 128, 5, "gained in huge pages");
	tap_mib(result.cold, 64, 10, "cold of huge pages of which half are touched");
	tap_ok(result.cold_high - result.cold_low >= 15 * MW_GROWTH_MIB,
	       "the interval is that of 64 observations, not of 32768: %u MiB",
	       (result.cold_high - result.cold_low) / MW_GROWTH_MIB);
	tap_ok(read_smaps(c.pid, "AnonHugePages") >= 184 * 1024, "no huge page was split");
	end_child(&c, &now);
}

/* Pages that a child shares cannot be cleared, so that they say nothing. */
static void test_shared(void)
{
	uint64_t now = 6000 * MW_GROWTH_SECOND;
	struct child c = start_child(obey);

	await_byte(c.done[0]);
	tell(&c, (struct order){ .grow = 16 });
	follow(&c, 16, now);
	tell(&c, (struct order){ .grow = 32, .fork = true });
	visit_times(&now, 12);
	tap_eq(measure(now).gained, 0, "of memory that a forked child shares nothing is said");
	end_child(&c, &now);
}

/* The kernel makes memory inaccessible too, to see on which NUMA node it is used. */
static void test_hidden(bool huge)
{
	uint64_t now = 11000 * MW_GROWTH_SECOND;
	struct mw_growth_touch result;
	struct child c;

	order->huge = huge;
	c = start_child(obey);
	await_byte(c.done[0]);
	tell(&c, (struct order){ .grow = 64 });
	if (huge && read_smaps(c.pid, "AnonHugePages") < 32 * 1024) {
		kill(c.pid, SIGKILL);
		waitpid(c.pid, NULL, 0);
		tap_skip("huge pages that are not accessible", "this machine gives none");
		return;
	}
	follow(&c, 64, now);
	tell(&c, (struct order){ .grow = 32 });
	visit_times(&now, 2);
	tell(&c, (struct order){ .hide = true });
	visit_times(&now, 12);
	result = measure(now);
	tap_mib(result.gained, 32, 15,
		huge ? "gained in huge pages that became inaccessible"
		     : "gained in pages that became inaccessible");
	tap_mib(result.cold, 32, 15,
		huge ? "cold in huge pages that became inaccessible"
		     : "cold in pages that became inaccessible");
	end_child(&c, &now);
}

static void test_locked(void)
{
	uint64_t now = 7000 * MW_GROWTH_SECOND;
	struct child c = start_child(obey);

	await_byte(c.done[0]);
	tell(&c, (struct order){ .grow = 16 });
	follow(&c, 16, now);
	tell(&c, (struct order){ .grow = 16, .lock = true });
	visit_times(&now, 12);
	tap_eq(measure(now).gained, 0, "of locked memory nothing is said");
	tap_eq(mw_touch_count(&touch), 1, "a process with locked memory is still followed");
	end_child(&c, &now);
}

/* A process of 1 GiB of which the sample is coarse: the interval must still contain the truth. */
static void test_large(void)
{
	uint64_t now = 8000 * MW_GROWTH_SECOND;
	struct child c = start_child(obey);
	struct mw_growth_touch result;

	await_byte(c.done[0]);
	tell(&c, (struct order){ .grow = 64 });
	follow(&c, 64, now);
	tell(&c, (struct order){ .grow = 960 });
	visit_times(&now, 12);
	result = measure(now);
	tap_mib(result.gained, 960, 10, "gained by a process that has become sixteen times larger");
	tap_mib(result.cold, 960, 10, "cold");
	tap_ok(touch.stall_ns > 0, "the time that the lock of its address space was held is known");
	end_child(&c, &now);
}

/* However many processes have a notice, visits have their budget. */
static void test_budget(void)
{
	uint64_t now = 13000 * MW_GROWTH_SECOND;
	struct child one = start_child(obey), two = start_child(obey);

	await_byte(one.done[0]);
	await_byte(two.done[0]);
	follow(&one, 3, now);
	note(&two, 3, now + MW_GROWTH_SECOND / 10);
	tap_eq(mw_touch_count(&touch), 2, "another suspect comes soon after a visit");
	tap_ok(touch.next_ns >= now + MW_GROWTH_SECOND,
	       "it is visited no earlier than a second after that visit");
	tap_ok(touch.next_ns < now + STEP || touch.cpu_ns >= STEP / 200,
	       "it is visited earlier than after ten seconds");
	end_child(&two, &now);
	end_child(&one, &now);
}

static uint32_t count_visited(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < MW_GROWTH_SUSPECTS; i++)
		count += touch.follow[i].pidfd >= 0 && touch.follow[i].visited;
	return count;
}

/* The monitor may have real-time priority, so that nothing else runs on its CPU during a call. */
static void test_pauses(void)
{
	uint64_t now = 14000 * MW_GROWTH_SECOND, begin;
	struct child c[3];

	for (int i = 0; i < 3; i++) {
		c[i] = start_child(obey);
		await_byte(c[i].done[0]);
	}
	follow(&c[0], 3, now);
	note(&c[1], 3, now);
	now = touch.next_ns;
	for (uint32_t i = 1; i <= 2; i++) {
		mw_touch_run(&touch, now);
		tap_eq(count_visited(), i, "one suspect is visited in one call");
		tap_eq(touch.next_ns - now, 10000000, "there is a pause before the next one");
		now = touch.next_ns;
	}
	note(&c[2], 3, now);
	begin = touch.begun_ns;
	tap_eq(touch.next_ns, now, "one that comes meanwhile does not shorten the pause");
	mw_touch_run(&touch, now);
	tap_eq(touch.visiting, false, "the visit ends after the last suspect");
	tap_eq(mw_touch_count(&touch), 3, "the visited suspects and the new one are followed");
	tap_ok(touch.next_ns >= begin + MW_GROWTH_SECOND && touch.next_ns < begin + STEP,
	       "the next visit is earlier, for the one that came");
	visit(&now);
	tap_eq(count_visited(), 3, "it finds all three");
	for (int i = 0; i < 3; i++)
		end_child(&c[i], &now);
	tap_eq(mw_touch_count(&touch), 0, "all of them have ended");
}

/* Waits until the child runs the new program: its name changes after its memory. */
static void await_exec(const struct child *c)
{
	char path[64], name[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/comm", c->pid);
	for (int i = 0; i < 60000 && strcmp(name, "sleep\n"); i++) {
		FILE *file = fopen(path, "r");

		if (!file || !fgets(name, sizeof(name), file))
			i = 60000;
		if (file)
			fclose(file);
		usleep(1000);
	}
	if (strcmp(name, "sleep\n"))
		tap_ok(false, "the child runs another program within a minute, and not %s", name);
}

static void test_exec(void)
{
	uint64_t now = 9000 * MW_GROWTH_SECOND;
	struct child c = start_child(obey);

	await_byte(c.done[0]);
	tell(&c, (struct order){ .grow = 16 });
	follow(&c, 16, now);
	tell(&c, (struct order){ .grow = 8, .exec = true });
	visit_times(&now, 3);
	tap_eq(touch.state, MEMWATCH_TOUCH_ACTIVE, "an exec does no harm");
	await_exec(&c);
	follow(&c, 1, now);
	tap_eq(touch.follow[0].cohort.start_ns, now, "the new program begins with a new cohort");
	end_child(&c, &now);
}

static void set_effective(uint32_t remove, uint32_t add)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	syscall(SYS_capget, &header, data);
	data[0].effective = (data[0].effective & ~remove) | add;
	syscall(SYS_capset, &header, data);
}

static void test_not_permitted(void)
{
	uint64_t now = 10000 * MW_GROWTH_SECOND;
	struct child c = start_child(obey);

	await_byte(c.done[0]);
	tell(&c, (struct order){ .grow = 16 });
	follow(&c, 16, now);
	tell(&c, (struct order){ .grow = 8 });
	set_effective(1U << CAP_SYS_NICE, 0);
	visit_times(&now, 2);
	set_effective(0, 1U << CAP_SYS_NICE);
	tap_eq(touch.state, MEMWATCH_TOUCH_IMPOSSIBLE, "without CAP_SYS_NICE it is impossible");
	tap_eq(touch.error, EPERM, "because it is not permitted");
	tap_ok(strstr(memwatch_ctx_error(ctx), "CAP_SYS_NICE"),
	       "the message says which capability is missing");
	tap_eq(mw_touch_count(&touch), 0, "nothing is followed then");
	kill(c.pid, SIGKILL);
	waitpid(c.pid, NULL, 0);
}

/*
 * Opens @touch while most of the memory of the lab's guest holds what leads to addresses that no
 * memory can have, if it is taken for a page table. The lab fails if the kernel warns of that.
 */
static int open_among_garbage(void)
{
	size_t size = 2560 * MIB;
	struct sysinfo info;
	void *garbage;
	int err;

	if (!sysinfo(&info) && size > info.freeram / 10 * 9 * info.mem_unit)
		size = info.freeram / 10 * 9 * info.mem_unit;
	/* Each word is an entry that is present and leads to another table. */
	garbage = map_touched(size, MAP_PRIVATE);
	err = mw_touch_open(&touch);
	munmap(garbage, size);
	return err;
}

int main(void)
{
	struct mw_merge_opts merge_opts = { .grace_ns = 200000, .silent_ns = 1000000 };
	struct mw_merge *merge;

	start_rig();
	order = mmap(NULL, sizeof(*order), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (mw_merge_new(&merge_opts, &merge) || mw_bpf_growth_open(ctx, 10000, merge, &growth)) {
		tap_ok(false, "the growth programs are loaded: %s", memwatch_ctx_error(ctx));
		return tap_done();
	}
	mw_touch_init(&touch, ctx, growth, 0, true);
	if (open_among_garbage()) {
		tap_ok(false, "page tables can be read: %s", memwatch_ctx_error(ctx));
		return tap_done();
	}
	test_kernel_agrees();
	test_guard();
	test_cold();
	test_half();
	test_sweep();
	test_huge();
	test_shared();
	test_hidden(false);
	test_hidden(true);
	test_locked();
	test_large();
	test_budget();
	test_pauses();
	test_exec();
	test_not_permitted();
	mw_touch_uninit(&touch);
	mw_bpf_growth_close(growth);
	mw_merge_free(merge);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
