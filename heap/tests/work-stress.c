// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Everything at once, for a while: threads that free each other's objects, threads that come and
 * go, children, signals, libraries that are loaded and unloaded, mappings, pages that are protected
 * or followed.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heap/tests/work.h"
#include "selftests/prng.h"

#define SLOTS	    4096
#define THREADS_MAX 256

static void *slots[SLOTS];
static const char *plugin;
static volatile bool ended;
static uint64_t operations, children, failures, loads, signals;

static void count(uint64_t *counter, uint64_t by)
{
	__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

static void *allocate(struct prng *prng)
{
	size_t size = 1 + prng_below(prng, 3000);
	void *memory = NULL;

	switch (prng_below(prng, 5)) {
	case 0:
		return calloc(1, size);
	case 1:
		return realloc(malloc(size), 2 * size);
	case 2:
		return posix_memalign(&memory, 64, size) ? NULL : memory;
	case 3:
		return memalign(4096, size);
	default:
		return malloc(size);
	}
}

static void map_and_unmap(struct prng *prng)
{
	size_t size = 4096 * (2 + prng_below(prng, 50));
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || munmap(memory, 4096) || munmap(memory + 4096, size - 4096))
		count(&failures, 1);
}

/* Some of the objects are freed by other threads. */
static void churn(struct prng *prng, unsigned int rounds)
{
	for (unsigned int n = 0; n < rounds; n++) {
		void **slot = &slots[prng_below(prng, SLOTS)];

		free(__atomic_exchange_n(slot, allocate(prng), __ATOMIC_ACQ_REL));
		free(allocate(prng));
	}
	map_and_unmap(prng);
	count(&operations, rounds);
}

static void *churn_thread(void *argument)
{
	struct prng prng = { (uintptr_t)argument };

	while (!ended)
		churn(&prng, 100);
	return NULL;
}

static void *short_thread(void *argument)
{
	struct prng prng = { (uintptr_t)argument };

	churn(&prng, 10);
	return NULL;
}

static void *spawning_thread(void *argument)
{
	for (uintptr_t n = (uintptr_t)argument; !ended; n++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, short_thread, (void *)n) ||
		    pthread_join(thread, NULL))
			count(&failures, 1);
	}
	return NULL;
}

/* A child leaves a profile, which would fill the disk after a while. */
static void profile_remove(pid_t pid)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/work.%d.mwheap", getenv("MEMWATCH_HEAP_DIR"), (int)pid);
	unlink(path);
}

static void *forking_thread(void *argument)
{
	struct prng prng = { (uintptr_t)argument };

	while (!ended) {
		int status = -1;
		pid_t child = fork();

		if (!child) {
			churn(&prng, 100);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			count(&failures, 1);
		profile_remove(child);
		count(&children, 1);
	}
	return NULL;
}

static void *loading_thread(void *argument)
{
	(void)argument;
	while (!ended) {
		void *library = dlopen(plugin, RTLD_NOW);
		void *(*keep)(size_t) = library ? (void *(*)(size_t))dlsym(library, "plugin_keep")
						: NULL;

		if (!keep) {
			count(&failures, 1);
			return NULL;
		}
		free(keep(1000));
		dlclose(library);
		count(&loads, 1);
	}
	return NULL;
}

#define PAGE_BYTES 4096

static unsigned char *pages_allocate(struct prng *prng, size_t *ret)
{
	*ret = PAGE_BYTES * (1 + prng_below(prng, 4));
	return memset(memalign(PAGE_BYTES, *ret), 1, *ret);
}

/* Counts a failure if the content is not what pages_allocate() has written. */
static void pages_free(unsigned char *pages, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (pages[i] != 1) {
			count(&failures, 1);
			break;
		}
	free(pages);
}

/* Takes away all access to pages of the heap, and gives it back. */
static void *protecting_thread(void *argument)
{
	struct prng prng = { (uintptr_t)argument };

	while (!ended) {
		size_t bytes;
		unsigned char *pages = pages_allocate(&prng, &bytes);

		if (mprotect(pages, bytes, PROT_NONE))
			count(&failures, 1);
		churn(&prng, 10);
		if (mprotect(pages, bytes, PROT_READ | PROT_WRITE))
			count(&failures, 1);
		pages_free(pages, bytes);
	}
	return NULL;
}

static int fault_fd = -1;

/* Has no end, because the descriptor has none. */
static void *fault_thread(void *argument)
{
	struct uffd_msg message;

	while (read(fault_fd, &message, sizeof(message)) == sizeof(message)) {
		struct uffdio_writeprotect range = {
			.range = { message.arg.pagefault.address & ~(uint64_t)(PAGE_BYTES - 1),
				   PAGE_BYTES },
		};

		free(malloc(10));
		ioctl(fault_fd, UFFDIO_WRITEPROTECT, &range);
	}
	return argument;
}

/* False where the kernel does not permit it. */
static bool faults_begin(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	pthread_t thread;

	fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	return fault_fd >= 0 && !ioctl(fault_fd, UFFDIO_API, &api) &&
	       !pthread_create(&thread, NULL, fault_thread, NULL);
}

/* Writes to pages of the heap whose writes are followed by userfaultfd. */
static void *following_thread(void *argument)
{
	struct prng prng = { (uintptr_t)argument };

	if (!faults_begin())
		return NULL;
	while (!ended) {
		struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_WP };
		struct uffdio_writeprotect protect = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
		size_t bytes;
		unsigned char *pages = pages_allocate(&prng, &bytes);

		range.range = protect.range = (struct uffdio_range){ (uintptr_t)pages, bytes };
		if (ioctl(fault_fd, UFFDIO_REGISTER, &range) ||
		    ioctl(fault_fd, UFFDIO_WRITEPROTECT, &protect))
			count(&failures, 1);
		churn(&prng, 10);
		memset(pages, 1, bytes);
		if (ioctl(fault_fd, UFFDIO_UNREGISTER, &range.range))
			count(&failures, 1);
		pages_free(pages, bytes);
	}
	return NULL;
}

static void signal_handler(int number)
{
	(void)number;
	count(&signals, 1);
}

static bool signals_begin(void)
{
	const struct itimerspec timing = { { 0, 500000 }, { 0, 500000 } };
	struct sigaction action = { .sa_handler = signal_handler, .sa_flags = SA_RESTART };
	timer_t timer;

	return !sigaction(SIGALRM, &action, NULL) && !timer_create(CLOCK_MONOTONIC, NULL, &timer) &&
	       !timer_settime(timer, 0, &timing, NULL);
}

/* stress PLUGIN THREADS SECONDS: frees everything at the end; prints what it has done. */
int work_stress(char **argv)
{
	static void *(*const others[])(void *) = { forking_thread,    forking_thread,
						   loading_thread,    spawning_thread,
						   protecting_thread, following_thread };
	const size_t others_count = sizeof(others) / sizeof(others[0]);
	static pthread_t threads[THREADS_MAX];
	uint64_t wanted = work_number(argv, 1, 64);
	time_t end = time(NULL) + (time_t)work_number(argv, 2, 10);

	plugin = argv[0];
	if (!signals_begin())
		return 1;
	for (uint64_t n = 0; n < wanted && n < THREADS_MAX; n++)
		if (pthread_create(&threads[n], NULL, n < others_count ? others[n] : churn_thread,
				   (void *)(uintptr_t)(n * 1000003 + 1)))
			return 1;
	while (time(NULL) < end)
		usleep(10000);
	ended = true;
	for (uint64_t n = 0; n < wanted && n < THREADS_MAX; n++)
		pthread_join(threads[n], NULL);
	for (size_t n = 0; n < SLOTS; n++)
		free(slots[n]);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", operations,
	       children, loads, signals, failures);
	fflush(stdout);
	_exit(0);
}
