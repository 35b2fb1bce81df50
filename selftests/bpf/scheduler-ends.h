/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tests of how measuring without the module ends: readers that are killed at any moment, and a
 * CPU that goes offline and comes back. Included by test_scheduler.c.
 */
#ifndef _MW_SELFTESTS_BPF_SCHEDULER_ENDS_H
#define _MW_SELFTESTS_BPF_SCHEDULER_ENDS_H

#include <errno.h>

#include "../module.h"

static const char *const program_names[] = { "on_switch", "on_exec", "on_rename", "on_hotplug",
					     "on_timer" };

#define PROGRAMS (sizeof(program_names) / sizeof(program_names[0]))

/* What the kernel holds for readers of such streams: ids of programs, and of their maps. */
struct held {
	__u32 programs[64], maps[1024];
	unsigned int nr_programs, nr_maps;
};

static bool is_ours(const struct bpf_prog_info *info)
{
	for (unsigned int i = 0; i < PROGRAMS; i++)
		if (!strcmp(info->name, program_names[i]))
			return true;
	return false;
}

static void find_held(struct held *held)
{
	__u32 id = 0, maps[64];

	*held = (struct held){ 0 };
	for (;;) {
		struct bpf_prog_info info = { .nr_map_ids = 64, .map_ids = (uintptr_t)maps };

		if (!next_program(&id, &info))
			return;
		if (!is_ours(&info) || held->nr_programs == 64)
			continue;
		held->programs[held->nr_programs++] = id;
		for (__u32 i = 0; i < info.nr_map_ids && i < 64 && held->nr_maps < 1024; i++)
			held->maps[held->nr_maps++] = maps[i];
	}
}

static bool is_among(__u32 id, const __u32 *ids, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (ids[i] == id)
			return true;
	return false;
}

static bool map_exists(__u32 id)
{
	int fd = bpf_map_get_fd_by_id(id);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno != ENOENT;
}

/* How many programs there are now, and maps of those during the session, that were not before. */
static unsigned int count_left(const struct held *before, const struct held *during)
{
	unsigned int left = 0;
	struct held now;

	find_held(&now);
	for (unsigned int i = 0; i < now.nr_programs; i++)
		left += !is_among(now.programs[i], before->programs, before->nr_programs);
	for (unsigned int i = 0; i < during->nr_maps; i++)
		left += !is_among(during->maps[i], before->maps, before->nr_maps) &&
			map_exists(during->maps[i]);
	return left;
}

/*
 * Kills a reader when it is ready, or after @us. Fills in what the kernel held just before.
 * Returns what is left of it.
 */
static unsigned int kill_reader(useconds_t us, const struct held *before, struct held *during)
{
	unsigned int left = 0;
	int pipes[2];
	char byte;
	pid_t pid;

	if (pipe(pipes))
		return 1;
	pid = fork();
	if (!pid) {
		close(pipes[0]);
		if (!new_stream(MEMWATCH_STREAM_SLOT, 64) || write(pipes[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	if (us)
		usleep(us);
	else if (read(pipes[0], &byte, 1) != 1)
		left = 1;
	find_held(during);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(pipes[0]);
	if (left)
		return left;
	for (int i = 0; i < 500 && (left = count_left(before, during)); i++)
		usleep(20000);
	return left;
}

/* A reader that is killed leaves nothing, also while it loads and attaches its programs. */
static void test_killed(void)
{
	enum { KILLS = 20, APART_US = 15000 };
	unsigned int left, sum = 0, loaded = 0;
	struct held before, during;

	find_held(&before);
	left = kill_reader(0, &before, &during);
	tap_eq(during.nr_programs - before.nr_programs, PROGRAMS,
	       "killed: the programs of a reader are loaded");
	tap_ok(during.nr_maps > before.nr_maps, "killed: they have maps");
	tap_eq(left, 0, "killed: none of them is left");
	for (useconds_t i = 1; i <= KILLS; i++) {
		sum += kill_reader(i * APART_US, &before, &during);
		loaded += during.nr_programs > before.nr_programs;
	}
	tap_note("killed: of %d readers that were killed at other moments, %u had programs", KILLS,
		 loaded);
	tap_eq(sum, 0, "killed: nor when they are killed while they begin");
}

static int set_cpu_online(const char *value)
{
	int fd = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY | O_CLOEXEC);
	int err = fd < 0 || write(fd, value, 1) != 1;

	close(fd);
	return err;
}

/* CPU 1 goes offline and comes back. */
static void test_hotplug(uint32_t lives)
{
	struct memwatch_stream *stream;
	struct seen s = { 0 };
	struct storm *storm;
	uint32_t *done;
	pid_t pid, other;
	int status = -1;

	if (access("/sys/devices/system/cpu/cpu1/online", W_OK)) {
		tap_skip("hotplug", "CPU 1 cannot be taken offline");
		return;
	}
	if (!module_may_disrupt()) {
		tap_skip("hotplug", MODULE_DISRUPTIVE);
		return;
	}
	stream = open_stream(MEMWATCH_STREAM_SLOT, 256, "hotplug");
	if (!stream)
		return;
	storm = storm_start(lives, SEED_DEFAULT, &pid);
	done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!storm || done == MAP_FAILED)
		return;
	other = fork();
	if (!other) {
		int err;

		usleep(300000);
		err = set_cpu_online("0");
		usleep(300000);
		err |= set_cpu_online("1");
		usleep(1000000);
		__atomic_store_n(done, 1, __ATOMIC_RELEASE);
		_exit(err);
	}
	read_stream(stream, &s, &storm->done);
	read_stream(stream, &s, done);
	waitpid(pid, NULL, 0);
	waitpid(other, &status, 0);
	tap_eq(status, 0, "hotplug: CPU 1 is set offline and online");
	memwatch_stream_stop(stream);
	tap_eq(read_stream(stream, &s, NULL), 0, "hotplug: the stream ends");
	check_counts(stream, &s, "hotplug");
	check_cpus("hotplug");
	tap_eq(cpus[1].offline, 1, "hotplug: CPU 1 sends OFFLINE");
	tap_eq(cpus[1].online, 2,
	       "hotplug: CPU 1 sends ONLINE at the beginning and when it is back");
	memwatch_stream_unref(stream);
}

#endif /* _MW_SELFTESTS_BPF_SCHEDULER_ENDS_H */
