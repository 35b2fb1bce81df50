// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The call stack that holds the growth, in the profile of this process, which maps a file that is
 * built here as the profiler does.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <memwatch/heap-process.h>

#include "heap/memory.h"
#include "../../selftests/tap.h"
#include "heap-header.h"

#define CHUNK  65536
#define CHUNKS 5
#define BYTES  (MW_HEAP_CHUNKS_OFFSET + CHUNKS * CHUNK)
#define SECOND 1000000000ULL
#define MIB    (1UL << 20)

/* Where code lies that is in no file, and the name of its map in a pid namespace of its own. */
#define COMPILED_AT 0x10000000
#define OWN_MAP	    P_tmpdir "/perf-1.map"

static struct memwatch_ctx *ctx;
static char directory[] = "/tmp/XXXXXX";
static uint64_t bias;

/* Where the samples come from, as far as their symbols say. */
void leak_here(void);
void __attribute__((noinline)) leak_here(void)
{
	__asm__ volatile("");
}

static uint64_t clock_now(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static int find_bias(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	bias = info->dlpi_addr;
	return 1; /* the first object is the program */
}

static void *chunk_at(void *file, uint32_t kind)
{
	return (char *)file + MW_HEAP_CHUNKS_OFFSET + (kind - 1) * CHUNK;
}

static void fill_header(struct mw_heap_header *h)
{
	struct mw_heap_chunk *directory_of = (void *)((char *)h + MW_HEAP_DIRECTORY_OFFSET);

	heap_header_begin(h);
	h->pid = (uint32_t)getpid();
	h->created_ns = clock_now(CLOCK_MONOTONIC) - 100 * SECOND;
	h->created_realtime_ns = clock_now(CLOCK_REALTIME) - 100 * SECOND;
	h->began = MW_HEAP_BEGAN_PROCESS_START;
	h->began_ns = h->created_ns;
	h->state = MW_HEAP_STATE_ACTIVE;
	h->rate_bytes = 1;
	for (uint32_t i = 0; i < CHUNKS; i++)
		directory_of[i] = (struct mw_heap_chunk){
			.offset = MW_HEAP_CHUNKS_OFFSET + i * CHUNK, .kind = i + 1, .bytes = CHUNK
		};
}

/* Stack 1 leaks a block every 3 s; stack 2 has more, but only of the last 5 s. */
static void fill_samples(void *file)
{
	struct mw_heap_sample *samples = chunk_at(file, MW_HEAP_CHUNK_SAMPLES);
	uint64_t now = clock_now(CLOCK_MONOTONIC);

	for (uint64_t i = 0; i < 60; i++)
		samples[i] = (struct mw_heap_sample){
			.state = 1 << 2 | MW_HEAP_SAMPLE_LIVE,
			.address = 0x10000 * (i + 1),
			.size = MIB,
			.rate = 1,
			.time_ns = now - (i < 20 ? 1 + 3 * i : 1 + i % 4) * SECOND,
			.stack = i < 20 ? 1 : 2,
		};
}

/* @leak: the address of the code that leaks in no file, or 0 for leak_here(). */
static void *map_profile(const char *path, uint64_t leak)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	struct mw_heap_module *module;
	struct mw_heap_stack *stacks;
	uint64_t *frames;
	char *strings;
	void *file;
	ssize_t len;

	if (fd < 0 || ftruncate(fd, BYTES))
		exit(EXIT_FAILURE);
	file = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		exit(EXIT_FAILURE);
	fill_header(file);
	fill_samples(file);
	stacks = chunk_at(file, MW_HEAP_CHUNK_STACKS);
	for (uint32_t i = 0; i < 3; i++)
		stacks[i] = (struct mw_heap_stack){ .ready = 1, .depth = i ? 1 : 0, .frames = i };
	dl_iterate_phdr(find_bias, NULL);
	frames = chunk_at(file, MW_HEAP_CHUNK_FRAMES);
	frames[1] = leak ?: 1ULL << 48 | ((uint64_t)(uintptr_t)leak_here - bias);
	frames[2] = 1ULL << 48 | ((uint64_t)(uintptr_t)map_profile - bias);
	strings = chunk_at(file, MW_HEAP_CHUNK_STRINGS);
	len = readlink("/proc/self/exe", strings, 1000);
	module = chunk_at(file, MW_HEAP_CHUNK_MODULES);
	*module = (struct mw_heap_module){ .ready = 1,
					   .bias = bias,
					   .path_bytes = (uint32_t)(len > 0 ? len : 0) };
	return file;
}

static int wait_answer(struct memwatch_heap_suspect *suspect,
		       struct memwatch_heap_suspect_info *info)
{
	int rc = 0;

	for (int i = 0; i < 600 && !rc; i++) {
		struct pollfd fd = { .fd = memwatch_heap_suspect_fd(suspect), .events = POLLIN };

		poll(&fd, 1, 100);
		rc = memwatch_heap_suspect_poll(suspect, info);
	}
	return rc;
}

static void test_answer(void)
{
	uint64_t since = clock_now(CLOCK_MONOTONIC) - 60 * SECOND;
	MEMWATCH_OPTS(memwatch_heap_suspect_info, info);
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	int copy = memfd_create("copy", MFD_CLOEXEC);
	struct memwatch_heap_suspect *suspect;
	struct stat st;

	if (!tap_eq(memwatch_heap_suspect_new(ctx, (uint32_t)getpid(), since, copy, &suspect), 0,
		    "a search begins"))
		return;
	tap_eq(wait_answer(suspect, &info), 1, "there is an answer");
	tap_ok(fabs(info.growth.value - 20 * MIB) <= 2 * MIB,
	       "what is replaced all the time is no growth (%.0f bytes)", info.growth.value);
	tap_ok(info.window_ns >= 59 * SECOND && info.window_ns <= 130 * SECOND,
	       "the time of growth is that of the alert");
	tap_eq(memwatch_heap_suspect_get_frame(suspect, 0, &frame), 1, "the stack has a frame");
	tap_str_eq(frame.function, "leak_here", "it is the function that leaks");
	tap_eq(memwatch_heap_suspect_get_frame(suspect, info.frames, &frame), 0,
	       "the stack has an end");
	tap_ok(!fstat(copy, &st) && st.st_size == BYTES, "the profile was copied");
	memwatch_heap_suspect_unref(suspect);
	close(copy);
}

/* The clock of the day is an hour later or earlier than it would be if nobody had set it. */
static void test_clock_was_set(struct mw_heap_header *header, bool forward)
{
	uint64_t since = clock_now(CLOCK_MONOTONIC) - 60 * SECOND;
	const char *title = forward ? "the clock was set forward" : "the clock was set back";
	uint64_t realtime = header->created_realtime_ns;
	MEMWATCH_OPTS(memwatch_heap_suspect_info, info);
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	struct memwatch_heap_suspect *suspect;

	header->created_realtime_ns = forward ? realtime - 3600 * SECOND : realtime + 3600 * SECOND;
	if (memwatch_heap_suspect_new(ctx, (uint32_t)getpid(), since, -1, &suspect))
		exit(EXIT_FAILURE);
	tap_eq(wait_answer(suspect, &info), 1, "%s: there is an answer", title);
	tap_ok(info.window_ns >= 59 * SECOND && info.window_ns <= 130 * SECOND,
	       "%s: the time of growth is that of the alert", title);
	memwatch_heap_suspect_get_frame(suspect, 0, &frame);
	tap_str_eq(frame.function ?: "", "leak_here", "%s: the function that leaks is found",
		   title);
	memwatch_heap_suspect_unref(suspect);
	header->created_realtime_ns = realtime;
}

/* What cannot be read is said, and who does not wait for the answer leaves nothing behind. */
static void test_failures(struct mw_heap_header *header)
{
	MEMWATCH_OPTS(memwatch_heap_suspect_info, info);
	struct memwatch_heap_suspect *suspect;
	uint32_t own = (uint32_t)getpid();

	if (memwatch_heap_suspect_new(ctx, own, clock_now(CLOCK_MONOTONIC), -1, &suspect))
		return;
	tap_eq(wait_answer(suspect, &info), -ENODATA, "what does not grow is said");
	memwatch_heap_suspect_unref(suspect);
	header->magic[0] = 'x';
	if (memwatch_heap_suspect_new(ctx, own, 0, -1, &suspect))
		return;
	tap_eq(wait_answer(suspect, &info), -ENOMSG, "a file that is no profile is said");
	memwatch_heap_suspect_unref(suspect);
	if (memwatch_heap_suspect_new(ctx, own, 0, -1, &suspect))
		return;
	memwatch_heap_suspect_unref(suspect);
	munmap(header, BYTES);
	tap_eq(memwatch_heap_suspect_new(ctx, own, 0, -1, &suspect), -ENODATA,
	       "a process without a profile is said");
}

static bool write_map(const char *name)
{
	int fd = open(OWN_MAP, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return false;
	dprintf(fd, "%x 100 %s\n", COMPILED_AT, name);
	close(fd);
	return true;
}

/* Process 1 of its pid namespace, with a /tmp of its own, leaks in code that it has compiled. */
static void run_in_container(int ready)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/container.1.mwheap", directory);
	map_profile(path, COMPILED_AT);
	unlink(path);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", P_tmpdir, "tmpfs", 0, NULL) || !write_map("compiled") ||
	    write(ready, "", 1) != 1)
		_exit(EXIT_FAILURE);
	pause();
	_exit(EXIT_SUCCESS);
}

/* Clocks are those of the name space in which a process is. */
static void run_later(int ready)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/later.1.mwheap", directory);
	map_profile(path, 0);
	unlink(path);
	if (write(ready, "", 1) != 1)
		_exit(EXIT_FAILURE);
	pause();
	_exit(EXIT_SUCCESS);
}

static bool offsets_set(void)
{
	static const char offsets[] = "monotonic 100000 500000000\nboottime 100000 0\n";
	int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	bool set = fd >= 0 && write(fd, offsets, sizeof(offsets) - 1) > 0;

	if (fd >= 0)
		close(fd);
	return set;
}

/* @run in other name spaces. Returns its number here; -1 if there can be no such process. */
static pid_t start_container(int flags, void (*run)(int ready))
{
	int ends[2], told[2];
	pid_t starter, pid = -1;
	char byte;

	if (pipe(ends) || pipe(told))
		return -1;
	starter = fork();
	if (!starter) {
		close(ends[0]);
		if (unshare(flags) || (flags & CLONE_NEWTIME && !offsets_set()))
			_exit(EXIT_FAILURE);
		pid = fork();
		if (!pid)
			run(ends[1]);
		if (write(told[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(EXIT_FAILURE);
		_exit(EXIT_SUCCESS);
	}
	close(ends[1]);
	close(told[1]);
	if (read(told[0], &pid, sizeof(pid)) != sizeof(pid) || read(ends[0], &byte, 1) != 1)
		pid = -1;
	close(ends[0]);
	close(told[0]);
	waitpid(starter, NULL, 0);
	return pid;
}

static void check_container(pid_t pid, const char *name, const char *title)
{
	uint64_t since = clock_now(CLOCK_MONOTONIC) - 60 * SECOND;
	MEMWATCH_OPTS(memwatch_heap_suspect_info, info);
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	struct memwatch_heap_suspect *suspect;

	if (memwatch_heap_suspect_new(ctx, (uint32_t)pid, since, -1, &suspect)) {
		tap_ok(false, "%s: %s", title, memwatch_ctx_error(ctx));
		return;
	}
	if (wait_answer(suspect, &info) != 1)
		tap_note("%s", memwatch_ctx_error(ctx));
	memwatch_heap_suspect_get_frame(suspect, 0, &frame);
	tap_str_eq(frame.function ?: "", name, "%s", title);
	memwatch_heap_suspect_unref(suspect);
}

static void test_container(void)
{
	const char *title =
		"code that a process in a container has compiled has the name of its own map";
	pid_t pid = geteuid() ? -1 : start_container(CLONE_NEWPID | CLONE_NEWNS, run_in_container);
	char map[64];
	bool decoy;

	if (pid < 0) {
		tap_skip(title, "only root can make a container");
		return;
	}
	decoy = write_map("another_process");
	check_container(pid, "compiled", title);
	snprintf(map, sizeof(map), "/proc/%d/root" OWN_MAP, (int)pid);
	unlink(map);
	check_container(pid, "",
			"without it, the map of another process with its number is not used");
	if (decoy)
		unlink(OWN_MAP);
	kill(pid, SIGKILL);
}

static void test_time_namespace(void)
{
	const char *title = "growth is found in a process with another clock";
	struct memwatch_heap_memory *memory;
	pid_t pid = geteuid() ? -1 : start_container(CLONE_NEWTIME, run_later);

	if (pid < 0) {
		tap_skip(title, "only root can make a container, with a clock since Linux 5.6");
		return;
	}
	check_container(pid, "leak_here", title);
	if (tap_eq(memwatch_heap_memory_new(ctx, (uint32_t)pid, &memory), 0,
		   "the mappings of a process with another clock are read")) {
		uint64_t now = clock_now(CLOCK_MONOTONIC) + 100000 * SECOND + SECOND / 2;

		tap_ok(memory->time_ns <= now && memory->time_ns > now - 10 * SECOND,
		       "the time of its mappings is on the clock of the process");
		memwatch_heap_memory_unref(memory);
	}
	kill(pid, SIGKILL);
}

int main(void)
{
	char path[128];
	void *file;

	tap_start();
	if (memwatch_ctx_new(NULL, &ctx) || !mkdtemp(directory))
		return EXIT_FAILURE;
	snprintf(path, sizeof(path), "%s/test.1.mwheap", directory);
	file = map_profile(path, 0);
	test_answer();
	test_clock_was_set(file, true);
	test_clock_was_set(file, false);
	test_failures(file);
	test_container();
	test_time_namespace();
	unlink(path);
	rmdir(directory);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
