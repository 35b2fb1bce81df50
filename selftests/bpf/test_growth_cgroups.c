// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth monitor and the limits of cgroups, of the version whose memory controller is
 * mounted: the headroom is what cgroupfs says, and thousands of cgroups cost nothing. And
 * growth in cgroups that is in no process. Needs root and BTF, not the module.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "growth-groups.h"

#include "growth/survey.h"

#define PERIOD (SECOND / 2) /* of the rounds, where nothing requests more */

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		tap_note("%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* cgroup.procs of the next child's cgroup. */
static const char *planned_procs;

/* The memory hierarchy, of either version, and the names of its files. */
static const char *cgroups, *limit_file, *used_file, *files_keys[2];

static bool find_cgroups(void)
{
	if (!access("/sys/fs/cgroup/memory/memory.limit_in_bytes", F_OK)) {
		cgroups = "/sys/fs/cgroup/memory";
		limit_file = "memory.limit_in_bytes";
		used_file = "memory.usage_in_bytes";
		files_keys[0] = "total_inactive_file ";
		files_keys[1] = "total_active_file ";
		return true;
	}
	cgroups = "/sys/fs/cgroup";
	limit_file = "memory.max";
	used_file = "memory.current";
	files_keys[0] = "inactive_file ";
	files_keys[1] = "active_file ";
	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK))
		return false;
	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	return true;
}

static bool is_version1(void)
{
	return strcmp(used_file, "memory.current");
}

static const char *cgroup_path(const char *group, const char *file)
{
	static char path[4][256];
	static int at;

	at = (at + 1) % 4;
	snprintf(path[at], sizeof(path[at]), "%s/%s/%s", cgroups, group, file);
	return path[at];
}

static uint64_t read_cgroup(const char *group, const char *name, const char *key)
{
	FILE *file = fopen(cgroup_path(group, name), "r");
	uint64_t value = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			value = strtoull(line + strlen(key), NULL, 10);
	if (file)
		fclose(file);
	return value;
}

/* Holds 64 MiB, and 48 MiB of a file in the page cache, in the planned cgroup. */
static void hold_in_cgroup(struct child *c)
{
	static char block[1 << 20];
	int fd = open("growth-cached.tmp", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	write_file(planned_procs, "0");
	map_touched(64 * MIB, MAP_PRIVATE);
	for (int i = 0; i < 48; i++)
		if (write(fd, block, sizeof(block)) < 0)
			break;
	fsync(fd);
	unlink("growth-cached.tmp");
	send_byte(c->done[1]);
	await_byte(c->go[0]);
}

/* Pages of such files cannot be reclaimed. */
static bool is_in_memory(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

static void test_cgroup_limit(void)
{
	struct memwatch_growth_row row = { 0 };
	struct memwatch_watch_stats before;
	uint64_t want = 0, files = 0;
	struct child c;

	if (!find_cgroups()) {
		tap_skip("the limit of a cgroup is read", "no memory controller is mounted");
		return;
	}
	mkdir(cgroup_path("memwatch-limit", ""), 0755);
	if (!strcmp(limit_file, "memory.max"))
		write_file(cgroup_path("memwatch-limit", "cgroup.subtree_control"), "+memory");
	mkdir(cgroup_path("memwatch-limit", "below"), 0755);
	write_file(cgroup_path("memwatch-limit", limit_file), "400M");
	planned_procs = cgroup_path("memwatch-limit/below", "cgroup.procs");
	c = start_child(hold_in_cgroup);
	await_byte(c.done[0]);
	watch = open_watch(0, PERIOD);
	/* The kernel adds up what can be reclaimed every two seconds, or later if it is busy. */
	for (int tries = 0; tries < 10; tries++) {
		run_rounds_for(4 * SECOND);
		find_process(c.pid, &row, NULL);
		files = read_cgroup("memwatch-limit", "memory.stat", files_keys[0]) +
			read_cgroup("memwatch-limit", "memory.stat", files_keys[1]);
		want = 400 * MIB - read_cgroup("memwatch-limit", used_file, "") + files;
		if (row.room_bytes + 8 * MIB > want)
			break;
	}
	before = read_stats();
	tap_eq(row.limit, MEMWATCH_LIMIT_CGROUP_MAX,
	       "the limit of the cgroup above is the nearest");
	if (is_in_memory("."))
		tap_skip("the cgroup has a file in its page cache",
			 "the files of this folder are only in memory");
	else
		tap_ok(files > 30 * MIB, "the cgroup has a file in its page cache: %llu MiB",
		       (unsigned long long)files >> 20);
	tap_ok(row.room_bytes + 8 * MIB > want && row.room_bytes < want + 8 * MIB + (1ULL << 40),
	       "the headroom does not count the page cache as used: %llu MiB, cgroupfs says %llu",
	       (unsigned long long)row.room_bytes >> 20, (unsigned long long)want >> 20);
	if (!has_swap())
		tap_ok(row.room_bytes < want + 8 * MIB, "the headroom is that of cgroupfs");
	else
		tap_skip("the headroom is that of cgroupfs", "there is swap, which adds to it");
	tap_eq(before.deep_cgroups, 0, "all ancestors of every cgroup were read");
	stop_child(&c);
	memwatch_watch_unref(watch);
	rmdir(cgroup_path("memwatch-limit", "below"));
	rmdir(cgroup_path("memwatch-limit", ""));
}

#define OUTER	   "memwatch-swap"
#define INNER	   OUTER "/below"
#define MEMORY_MAX (200 * MIB)
#define SWAP_MAX   (16 * MIB)

/* Is @bytes what may grow below a limit of the memory of @group and a limit of swap? */
static bool is_room_of(uint64_t bytes, const char *group)
{
	uint64_t used = read_cgroup(group, used_file, "");

	for (int i = 0; i < 2; i++)
		used -= read_cgroup(group, "memory.stat", files_keys[i]);
	tap_note("%s: %llu MiB used, %llu MiB left", group, (unsigned long long)used >> 20,
		 (unsigned long long)bytes >> 20);
	return bytes + used + 8 * MIB > MEMORY_MAX + SWAP_MAX &&
	       bytes + used < MEMORY_MAX + SWAP_MAX + 8 * MIB;
}

/* What is left to the cgroup, as its last sample says. */
static uint64_t room_of_group(const char *path)
{
	struct memwatch_growth_sample s;

	if (!find_group(path, &s))
		return 0;
	return s.limit_bytes - s.anon_bytes - s.shmem_bytes - s.kernel_bytes - s.sock_bytes;
}

/* One cgroup has a limit of memory, and the one above or below it has one of swap. */
static void test_swap_limit(const char *limited, const char *unswappable, const char *where)
{
	struct memwatch_growth_row row = { 0 };
	struct child c;
	char bytes[32];

	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)MEMORY_MAX);
	write_file(cgroup_path(limited, limit_file), bytes);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)SWAP_MAX);
	write_file(cgroup_path(unswappable, "memory.swap.max"), bytes);
	planned_group = cgroup_path(INNER, "cgroup.procs");
	planned_growth = grow_anon;
	c = start_child(grow_in_group);
	await_byte(c.done[0]);
	watch = open_watch(0, PERIOD);
	run_rounds_for(2 * SECOND);
	find_process(c.pid, &row, NULL);
	tap_ok(is_room_of(row.room_bytes, limited),
	       "a process may use what a cgroup %s its limit lets it swap", where);
	tap_ok(is_room_of(room_of_group("/" INNER), limited),
	       "a cgroup may use what a cgroup %s its limit lets it swap", where);
	stop_child(&c);
	memwatch_watch_unref(watch);
	write_file(cgroup_path(limited, limit_file), "max");
	write_file(cgroup_path(unswappable, "memory.swap.max"), "max");
}

static void test_swap_limits(void)
{
	const char *reason = NULL;

	if (!find_cgroups())
		reason = "no memory controller is mounted";
	else if (is_version1())
		reason = "version 1 limits it together with memory";
	else if (!has_swap())
		reason = "no swap here";
	if (reason) {
		tap_skip("how much of a cgroup may be in swap is part of its room", reason);
		return;
	}
	mkdir(cgroup_path(OUTER, ""), 0755);
	write_file(cgroup_path(OUTER, "cgroup.subtree_control"), "+memory");
	mkdir(cgroup_path(INNER, ""), 0755);
	test_swap_limit(OUTER, INNER, "below");
	test_swap_limit(INNER, OUTER, "above");
	rmdir(cgroup_path(INNER, ""));
	rmdir(cgroup_path(OUTER, ""));
}

#define MANY 2000

static const char *name_of_many(int i)
{
	static char name[32];

	snprintf(name, sizeof(name), "memwatch-many-%d", i);
	return name;
}

/* Makes cgroups with a limit. Returns how many there are. */
static int make_cgroups(void)
{
	int made = 0;

	while (made < MANY && !mkdir(cgroup_path(name_of_many(made), ""), 0755)) {
		write_file(cgroup_path(name_of_many(made), limit_file), "1G");
		made++;
	}
	return made;
}

/* CPU time of reading the limit of each of them, as a monitor without BPF must do in each round. */
static uint64_t cost_of_reading(void)
{
	uint64_t before = cpu_ns();

	for (int i = 0; i < MANY; i++)
		read_cgroup(name_of_many(i), limit_file, "");
	return cpu_ns() - before;
}

/* CPU time of a round, the least of some. */
static uint64_t cost_of_round(void)
{
	uint64_t least = UINT64_MAX, before;

	watch = open_watch(0, SECOND);
	run_rounds(1);
	for (int i = 0; i < 5; i++) {
		before = read_stats().cpu_ns;
		run_rounds(0);
		before = read_stats().cpu_ns - before;
		least = before < least ? before : least;
	}
	memwatch_watch_unref(watch);
	return least;
}

static void test_many_cgroups(void)
{
	uint64_t few, many, reading;

	if (!find_cgroups()) {
		tap_skip("limits of many cgroups cost nothing", "no memory controller is mounted");
		return;
	}
	few = cost_of_round();
	tap_eq(make_cgroups(), MANY, "%d cgroups with a limit are made", MANY);
	many = cost_of_round();
	reading = cost_of_reading();
	for (int i = 0; i < MANY; i++)
		rmdir(cgroup_path(name_of_many(i), ""));
	tap_ok(many < few + reading / 10,
	       "limits of many cgroups cost nothing: a round takes %llu us, %llu without them, "
	       "reading the limits %llu",
	       (unsigned long long)many / 1000, (unsigned long long)few / 1000,
	       (unsigned long long)reading / 1000);
}

#define GROUP "memwatch-grow"

/* Starts a child that grows, one step for each byte, in a cgroup of its own. */
static struct child start_growing(void (*growth)(int step))
{
	struct child c;

	mkdir(cgroup_path(GROUP, ""), 0755);
	planned_group = cgroup_path(GROUP, "cgroup.procs");
	planned_growth = growth;
	c = start_child(grow_in_group);
	await_byte(c.done[0]);
	return c;
}

static void take_step(const struct child *c)
{
	send_byte(c->go[1]);
	await_byte(c->done[0]);
}

static void remove_group(struct child *c)
{
	stop_child(c);
	for (int tries = 0; tries < 100 && rmdir(cgroup_path(GROUP, "")); tries++)
		usleep(50000);
}

/* Compares what is read of a cgroup with what is in it, and with cgroupfs if that says it. */
static void test_group_memory(void)
{
	static const char *const keys[] = { "anon ", "shmem ", "slab_unreclaimable ", "pagetables ",
					    "sock " };
	struct memwatch_growth_sample s = { 0 };
	struct child c = start_growing(grow_shmem);
	bool agree = true;

	for (int step = 0; step < 16; step++)
		take_step(&c);
	watch = open_watch(0, PERIOD);
	/* The kernel adds up every two seconds. */
	for (int tries = 0; tries < 10 && s.shmem_bytes < 31 * MIB; tries++) {
		run_rounds_for(2 * SECOND);
		find_group("/" GROUP, &s);
	}
	tap_ok(s.shmem_bytes > 31 * MIB && s.shmem_bytes < 34 * MIB,
	       "files in memory are counted: %llu of 32 MiB",
	       (unsigned long long)s.shmem_bytes >> 20);
	/* Before 5.13 the sums lack up to 32 pages of each CPU (2d146aa3aa84). */
	tap_ok(s.anon_bytes + MIB > 4 * MIB && s.anon_bytes < 8 * MIB,
	       "the memory of processes is counted: %llu MiB, of 4 and what a process needs",
	       (unsigned long long)s.anon_bytes >> 20);
	if (is_version1()) {
		tap_skip("the classes are those of memory.stat", "version 1 does not tell them");
	} else {
		const uint64_t have[] = { s.anon_bytes, s.shmem_bytes, s.slab_bytes,
					  s.pagetables_bytes, s.sock_bytes };

		for (int i = 0; i < 5; i++) {
			uint64_t want = read_cgroup(GROUP, "memory.stat", keys[i]);

			tap_note("%s%llu, read %llu", keys[i], (unsigned long long)want,
				 (unsigned long long)have[i]);
			agree &= have[i] + MIB > want && have[i] < want + MIB;
		}
		tap_ok(agree, "the classes are those of memory.stat");
	}
	memwatch_watch_unref(watch);
	remove_group(&c);
}

/* Something grows in the cgroup: notices about @path, of which it is a part, are of one class. */
static void test_group_growth(const char *path, void (*growth)(int step), unsigned int class,
			      const char *what)
{
	struct child c = start_growing(growth);
	unsigned int told = 0;

	watch = open_watch(0, PERIOD);
	run_rounds_for(3 * SECOND);
	take_notices(path);
	for (int step = 0; step < STEPS; step++) {
		take_step(&c);
		/* Less than a period, so that this is one round where nothing requests more. */
		run_rounds_for(PERIOD * 4 / 5);
		told |= take_notices(path);
	}
	for (int tries = 0; tries < 12 && class < MEMWATCH_CLASSES && !told; tries++) {
		run_rounds_for(PERIOD);
		told |= take_notices(path);
	}
	/* Other things grow on a machine, too. */
	if (!strcmp(path, "/"))
		told &= 1U << class;
	tap_eq(told, class < MEMWATCH_CLASSES ? 1U << class : 0, "%s", what);
	memwatch_watch_unref(watch);
	remove_group(&c);
}

/* Visits all cgroups @after the last time. */
static void visit_after(struct mw_survey *survey, uint64_t *now, uint64_t after)
{
	*now += after;
	if (mw_survey_visit(survey, *now, SECOND, 1000000))
		tap_note("visit: %s", memwatch_ctx_error(ctx));
}

/* How many ids the list has for the cgroup of the tests. */
static int count_ids(const struct mw_survey *survey)
{
	int nr = 0;

	for (uint32_t i = 0; i < survey->nr_ids; i++)
		nr += !strcmp(survey->ids[i].group->path, "/" GROUP);
	return nr;
}

/* A unit that is restarted has the same path, and each time another cgroup. */
static void test_restarted_group(void)
{
	struct mw_survey *survey;
	struct child c;
	uint64_t now;

	watch = open_watch(0, PERIOD);
	survey = mw_watch_survey(watch);
	now = survey->next_ns;
	for (int start = 0; start < 3; start++) {
		c = start_growing(grow_anon);
		visit_after(survey, &now, 10 * SECOND);
		if (start < 2)
			remove_group(&c);
	}
	tap_eq(count_ids(survey), 3, "a cgroup that is made again is known by its new id");
	visit_after(survey, &now, 700 * SECOND);
	tap_eq(count_ids(survey), 1, "the ids of the earlier cgroups of a path are forgotten");
	memwatch_watch_unref(watch);
	remove_group(&c);
}

static void test_groups(void)
{
	if (!find_cgroups()) {
		tap_skip("growth of cgroups is found", "no memory controller is mounted");
		return;
	}
	test_group_memory();
	test_restarted_group();
	test_group_growth("/" GROUP, grow_shmem, MEMWATCH_CLASS_SHMEM,
			  "a file in memory that grows is told of the cgroup");
	test_group_growth("/" GROUP, grow_slab, MEMWATCH_CLASS_SLAB,
			  "pipes that are never closed are told of the cgroup");
	/* Version 1 counts them for the machine only. */
	test_group_growth(
		is_version1() ? "/" : "/" GROUP, grow_sockets, MEMWATCH_CLASS_SOCK,
		"connections that nobody reads are told of the cgroup, or of the machine");
	test_group_growth("/" GROUP, grow_pool, MEMWATCH_CLASS_ANON,
			  "a pool whose children are replaced is told of the cgroup");
	test_group_growth("/" GROUP, grow_anon, MEMWATCH_CLASSES,
			  "of a process that grows by itself nothing is told of the cgroup");
}

int main(void)
{
	start_rig();
	test_groups();
	test_cgroup_limit();
	test_swap_limits();
	test_many_cgroups();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
