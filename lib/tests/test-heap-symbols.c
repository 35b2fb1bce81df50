// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Symbols of heap profiles, found in this very program, and what the child that finds them
 * can no longer do.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memwatch/heap.h>

#include "heap/confine.h"
#include "heap/model.h"
#include "heap/perf-map.h"
#include "heap/resolve.h"
#include "../../selftests/tap.h"

static struct memwatch_ctx *ctx;

/* Functions without debug information, whose names are mangled as C++ and Rust do it. */
__asm__(".text\n"
	".globl _ZN3foo3barEi\n.type _ZN3foo3barEi, @function\n"
	"_ZN3foo3barEi: nop\nnop\n.size _ZN3foo3barEi, .-_ZN3foo3barEi\n"
	".globl _RNvC6_123foo3bar\n.type _RNvC6_123foo3bar, @function\n"
	"_RNvC6_123foo3bar: nop\nnop\n.size _RNvC6_123foo3bar, .-_RNvC6_123foo3bar\n");
extern char cxx_function[] __asm__("_ZN3foo3barEi");
extern char rust_function[] __asm__("_RNvC6_123foo3bar");

static uintptr_t here;

static inline __attribute__((always_inline)) void inner_function(void)
{
	__asm__ volatile("lea 0f(%%rip), %0\n0: nop\n" : "=r"(here));
}

static __attribute__((noinline)) void outer_function(void)
{
	inner_function();
	__asm__ volatile("");
}

/* A profile of gperftools with one stack for each address and the mappings of this process. */
static struct memwatch_heap *profile_of(const uintptr_t *addresses, int nr)
{
	struct memwatch_heap *heap = NULL;
	int fd = memfd_create("profile", MFD_CLOEXEC);
	FILE *maps = fopen("/proc/self/maps", "r"), *out = fdopen(dup(fd), "w");
	char line[4096];

	fprintf(out, "heap profile: 1: 1 [1: 1] @ heapprofile\n");
	for (int i = 0; i < nr; i++)
		fprintf(out, "1: %d [1: 1] @ %#lx\n", 100 - i, (unsigned long)addresses[i] + 1);
	fprintf(out, "MAPPED_LIBRARIES:\n");
	while (fgets(line, sizeof(line), maps))
		fputs(line, out);
	fclose(maps);
	fclose(out);
	lseek(fd, 0, SEEK_SET);
	if (memwatch_heap_new(ctx, NULL, &heap) || memwatch_heap_add_fd(heap, fd, "self") < 0)
		exit(EXIT_FAILURE);
	close(fd);
	return heap;
}

static void test_this_program(void)
{
	uintptr_t addresses[3];
	struct memwatch_heap_view *view;
	struct memwatch_heap *heap;
	MEMWATCH_OPTS(memwatch_heap_frame, frame);

	outer_function();
	addresses[0] = here;
	addresses[1] = (uintptr_t)cxx_function;
	addresses[2] = (uintptr_t)rust_function;
	heap = profile_of(addresses, 3);
	if (!tap_eq(memwatch_heap_symbolize(heap, NULL), 0, "symbols are found"))
		tap_note("%s", memwatch_ctx_error(ctx));
	if (memwatch_heap_view_new(heap, NULL, &view))
		exit(EXIT_FAILURE);
	tap_eq(memwatch_heap_view_get_frame(view, 0, 0, &frame), 1, "the first stack has a frame");
	tap_str_eq(frame.function, "inner_function", "an inlined function is found");
	tap_eq(frame.inlined, 1, "an inlined function is marked");
	tap_ok(strstr(frame.file, "test-heap-symbols.c") != NULL, "the source file is found");
	tap_ok(frame.line > 0, "the line is found");
	tap_eq(memwatch_heap_view_get_frame(view, 0, 1, &frame), 1,
	       "the caller is a frame of its own");
	tap_str_eq(frame.function, "outer_function", "the caller of an inlined function is found");
	memwatch_heap_view_get_frame(view, 1, 0, &frame);
	tap_str_eq(frame.function, "foo::bar(int)", "names of C++ are demangled");
	memwatch_heap_view_get_frame(view, 2, 0, &frame);
	tap_str_eq(frame.function, "123foo::bar", "names of Rust are demangled");
	memwatch_heap_view_unref(view);
	tap_eq(memwatch_heap_symbolize(heap, NULL), 0, "symbols can be asked for again");
	memwatch_heap_unref(heap);
}

/* Opens this program wherever it is said to be. */
static int open_this_program(void *data, uint32_t profile, const char *path)
{
	uint32_t *calls = data;

	++*calls;
	return profile == 0 && !strcmp(path, "/srv/hidden") ? open("/proc/self/exe", O_RDONLY) : -1;
}

/* A profile of this program at a path where no file is. */
static struct memwatch_heap *profile_of_hidden(void)
{
	struct memwatch_heap *heap = profile_of(&here, 1);
	struct mw_prof_mapping *mapping = &heap->mappings[heap->locations[0].mapping];

	if (mw_strings_add_text(&heap->strings, "/srv/hidden", 11, &mapping->path))
		exit(EXIT_FAILURE);
	return heap;
}

static void test_opened_files(void)
{
	uint32_t calls = 0;
	MEMWATCH_OPTS(memwatch_heap_symbol_opts, opts, .open_module = open_this_program,
		      .data = &calls);
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	struct memwatch_heap *heap = profile_of_hidden();
	struct memwatch_heap_view *view;

	tap_eq(memwatch_heap_symbolize(heap, NULL), 0, "a file that does not exist is no failure");
	tap_str_eq(memwatch_heap_unread_module(heap, 0), "/srv/hidden",
		   "a file that does not exist is named");
	tap_ok(!memwatch_heap_unread_module(heap, 1), "a file that does not exist is named once");
	memwatch_heap_unref(heap);

	heap = profile_of_hidden();
	tap_eq(memwatch_heap_symbolize(heap, &opts), 0, "symbols of an open file are found");
	tap_eq(calls, 1, "the caller opens a file once");
	tap_ok(!memwatch_heap_unread_module(heap, 0), "a file that the caller opens is read");
	if (memwatch_heap_view_new(heap, NULL, &view) ||
	    memwatch_heap_view_get_frame(view, 0, 0, &frame) != 1)
		exit(EXIT_FAILURE);
	tap_str_eq(frame.function, "inner_function", "a file that the caller opens has symbols");
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
}

/* Opens nothing. */
static int count_requests(void *data, uint32_t profile, const char *path)
{
	uint32_t *calls = data;

	(void)profile;
	(void)path;
	++*calls;
	return -1;
}

/* However many addresses need a file, it is asked for once. */
static void test_absent_files(void)
{
	static const uintptr_t nowhere[] = { 0x10, 0x20, 0x30 };
	uintptr_t addresses[] = { here, (uintptr_t)cxx_function, (uintptr_t)rust_function };
	uint32_t calls = 0;
	MEMWATCH_OPTS(memwatch_heap_symbol_opts, opts, .open_module = count_requests,
		      .data = &calls);
	struct memwatch_heap *heap = profile_of(addresses, 3);

	memwatch_heap_symbolize(heap, &opts);
	tap_eq(calls, 1, "an absent file with three addresses is asked for once");
	memwatch_heap_unref(heap);

	calls = 0;
	heap = profile_of(nowhere, 3);
	heap->profiles[0].info.pid = 1;
	memwatch_heap_symbolize(heap, &opts);
	tap_eq(calls, 1, "an absent map of perf is asked for once");
	memwatch_heap_unref(heap);
}

static void test_other_files(void)
{
	char name[] = "/tmp/XXXXXX";
	int fd = mkstemp(name);
	struct mw_resolver *resolver;

	tap_ok(!mw_resolver_open(-1, "/proc/self/exe", "00112233445566778899"),
	       "a file with another build id is not used");
	resolver = mw_resolver_open(-1, "/proc/self/exe", "");
	tap_ok(resolver != NULL, "without a build id a file is used");
	mw_resolver_close(resolver);
	tap_ok(!mw_resolver_open(-1, "/dev/zero", ""), "a device is not opened");
	tap_ok(!mw_resolver_open(-1, "/proc/self", ""), "a directory is not opened");
	if (write(fd, "\177ELF and then nothing", 21) != 21)
		exit(EXIT_FAILURE);
	tap_ok(!mw_resolver_open(-1, name, ""), "a damaged file is not used");
	close(fd);
	unlink(name);
}

static void test_perf_map(void)
{
	static const char text[] = "1000 10 first\n2000 20 second part\nno line\n2000 8 third\n";
	char name[] = "/tmp/XXXXXX";
	int fd = mkstemp(name);
	struct mw_perf_map *map;

	if (write(fd, text, sizeof(text) - 1) != sizeof(text) - 1)
		exit(EXIT_FAILURE);
	map = mw_perf_map_open(-1, name, getuid());
	if (tap_ok(map != NULL, "a map of perf is read")) {
		tap_str_eq(mw_perf_map_find(map, 0x100f), "first", "an address in a function");
		tap_ok(!mw_perf_map_find(map, 0x1010), "an address behind a function");
		tap_ok(!mw_perf_map_find(map, 0xfff), "an address before all functions");
		tap_str_eq(mw_perf_map_find(map, 0x2007), "third",
			   "a later line replaces an earlier one");
	}
	mw_perf_map_close(map);
	if (!getuid()) {
		if (fchown(fd, 12345, 12345))
			exit(EXIT_FAILURE);
		tap_ok(!mw_perf_map_open(-1, name, 0), "the map of another user is not read");
		tap_ok(!mw_perf_map_open(fd, name, 0), "the open map of another user is not read");
	}
	close(fd);
	unlink(name);
}

struct attempts {
	int uid, open_read, open_write, create, socket_call, fork_call, signal_call;
};

static void attempt(void *data, int answer)
{
	const char *path = data;
	struct attempts a = { .uid = (int)geteuid() };
	pid_t parent = getpid();

	a.open_read = open("/etc/passwd", O_RDONLY) < 0 ? errno : 0;
	a.open_write = open(path, O_WRONLY) < 0 ? errno : 0;
	a.create = open("/tmp/MUST-NOT-EXIST", O_RDONLY | O_CREAT, 0600) < 0 ? errno : 0;
	a.socket_call = socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0;
	a.fork_call = fork() < 0 ? errno : 0;
	a.signal_call = kill(parent, 0) ? errno : 0;
	if (write(answer, &a, sizeof(a)) != sizeof(a))
		return;
}

static void test_confinement(void)
{
	char name[] = "/tmp/XXXXXX";
	int fd = mkstemp(name);
	struct mw_confined child;
	struct attempts a = { 0 };

	fchmod(fd, 0666);
	/* Root is refused the network that it asks for. */
	if (mw_confined_start(ctx, attempt, name, &(struct mw_confinement){ .network = !geteuid() },
			      &child))
		exit(EXIT_FAILURE);
	tap_eq(read(child.answer, &a, sizeof(a)), sizeof(a), "a confined child can answer");
	mw_confined_stop(&child);
	if (geteuid())
		tap_eq(a.uid, geteuid(), "a child of a user remains this user");
	else
		tap_eq(a.uid, 65534, "a child of root is nobody");
	if (mw_confined_start(ctx, attempt, name, &(struct mw_confinement){ 0 }, &child))
		exit(EXIT_FAILURE);
	tap_eq(read(child.answer, &a, sizeof(a)), sizeof(a), "a child without network can answer");
	tap_eq(a.open_read, 0, "it can read files");
	tap_eq(a.open_write, EPERM, "it cannot open files for writing");
	tap_eq(a.create, EPERM, "it cannot create files");
	tap_eq(a.socket_call, EPERM, "it cannot open sockets");
	tap_eq(a.fork_call, EPERM, "it cannot start processes");
	tap_eq(a.signal_call, EPERM, "it cannot send signals");
	mw_confined_stop(&child);
	close(fd);
	unlink(name);
}

/* A program that reads profiles of others confines itself, and still finds symbols. */
static void test_confined_reader(void)
{
	struct memwatch_heap *heap = profile_of(&here, 1);
	char name[] = "/tmp/XXXXXX";
	int fd = mkstemp(name), ends[2], status;
	struct attempts a = { 0 };
	pid_t pid;

	fchmod(fd, 0666);
	if (pipe(ends))
		exit(EXIT_FAILURE);
	pid = fork();
	if (!pid) {
		if (memwatch_heap_confine(ctx))
			_exit(1);
		attempt(name, ends[1]);
		_exit(memwatch_heap_symbolize(heap, NULL) ? 2 : 0);
	}
	close(ends[1]);
	tap_eq(read(ends[0], &a, sizeof(a)), sizeof(a), "a confined reader goes on");
	waitpid(pid, &status, 0);
	tap_eq(status, 0, "a confined reader finds symbols");
	tap_eq(a.open_read, 0, "a confined reader can read files");
	tap_eq(a.open_write, EPERM, "a confined reader cannot open files for writing");
	tap_eq(a.create, EPERM, "a confined reader cannot create files");
	tap_eq(a.socket_call, EPERM, "a confined reader cannot open sockets");
	if (!geteuid())
		tap_eq(a.uid, 65534, "a confined reader that was root is nobody");
	close(ends[0]);
	close(fd);
	unlink(name);
	memwatch_heap_unref(heap);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_this_program();
	test_opened_files();
	test_absent_files();
	test_other_files();
	test_perf_map();
	test_confinement();
	test_confined_reader();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
