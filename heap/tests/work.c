// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The programs that the tests profile: work NAME ARGUMENT... Each one knows what it allocated,
 * and prints it or keeps it where a killed program leaves it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap/tests/work.h"
#include "selftests/prng.h"

uint64_t work_number(char **argv, int n, uint64_t otherwise)
{
	for (int i = 0; i <= n; i++)
		if (!argv[i])
			return otherwise;
	return strtoull(argv[n], NULL, 10);
}

/*
 * mix: objects of 8 B to 100 MB, or of the one size that is named; every second one is kept.
 * Prints live bytes and objects, and allocated bytes and objects.
 */
static int work_mix(char **argv)
{
	static const struct {
		size_t size;
		size_t count;
	} classes[] = {
		{ 8, 1000000 }, { 100, 80000 },	   { 1000, 8000 },  { 10000, 800 },
		{ 100000, 80 }, { 1000000, 200 },  { 10000000, 8 }, { 100000000, 2 },
		{ 1, 1000000 }, { 1000000000, 2 },
	};
	const size_t mixed = sizeof(classes) / sizeof(classes[0]) - 2;
	size_t only = work_number(argv, 0, 0);
	uint64_t live_bytes = 0, live = 0, bytes = 0, objects = 0;
	char line[128];
	int length;

	for (size_t c = 0; c < sizeof(classes) / sizeof(classes[0]); c++) {
		if (only ? classes[c].size != only : c >= mixed)
			continue;
		for (size_t i = 0; i < classes[c].count; i++) {
			void *volatile memory = malloc(classes[c].size);

			bytes += classes[c].size;
			objects++;
			if (i % 2) {
				free(memory);
				continue;
			}
			live_bytes += classes[c].size;
			live++;
		}
	}
	/* printf() would allocate a buffer, one more live object. */
	length = snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			  live_bytes, live, bytes, objects);
	_exit(write(STDOUT_FILENO, line, (size_t)length) != length);
}

#define EXACT_SLOTS 2000

/* One random allocation, by any of the functions. */
static void *exact_allocate(struct prng *prng, size_t size)
{
	void *memory = NULL;

	switch (prng_below(prng, 8)) {
	case 0:
		return calloc(1, size);
	case 1:
		return calloc(size, 1);
	case 2:
		return aligned_alloc(64, size);
	case 3:
		return posix_memalign(&memory, 256, size) ? NULL : memory;
	case 4:
		return memalign(128, size);
	case 5:
		return reallocarray(NULL, size, 1);
	case 6:
		return realloc(NULL, size);
	default:
		return malloc(size);
	}
}

/*
 * exact: random operations; prints the objects that are live at the end, "ADDRESS SIZE" each.
 * The program's own tables are static, and stdio gets its buffer from the test.
 */
static int work_exact(char **argv)
{
	static struct {
		void *memory;
		size_t size;
	} slots[EXACT_SLOTS];
	static char buffer[1 << 16];
	struct prng prng = { work_number(argv, 0, 1) };
	uint64_t operations = work_number(argv, 1, 20000);

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	for (uint64_t i = 0; i < operations; i++) {
		size_t n = prng_below(&prng, EXACT_SLOTS), size = prng_below(&prng, 3000);

		if (!slots[n].memory) {
			slots[n].memory = exact_allocate(&prng, size);
			slots[n].size = size;
		} else if (prng_below(&prng, 4) == 0) {
			void *moved = realloc(slots[n].memory, size + 1);

			slots[n].memory = moved;
			slots[n].size = size + 1;
		} else if (prng_below(&prng, 100) == 0) {
			/* A reallocation that fails changes nothing. */
			if (realloc(slots[n].memory, PTRDIFF_MAX - 4096ul))
				abort();
		} else {
			free(slots[n].memory);
			slots[n].memory = NULL;
		}
	}
	for (size_t n = 0; n < EXACT_SLOTS; n++)
		if (slots[n].memory)
			printf("%" PRIxPTR " %zu\n", (uintptr_t)slots[n].memory, slots[n].size);
	fflush(stdout);
	_exit(0);
}

__attribute__((noipa)) static void *leak_top(size_t size)
{
	void *volatile memory = malloc(size);

	return memory;
}

__attribute__((noipa)) static void *leak_other(size_t size)
{
	void *volatile memory = malloc(size);

	return memory;
}

struct leak_arguments {
	struct work_truth *truth;
	uint64_t bytes_per_second; /* 0: as fast as it goes */
	uint64_t seed;
};

/* Most bytes are kept by leak_top(), fewer by leak_other(), and many objects are freed. */
static void *leak_thread(void *argument)
{
	struct leak_arguments *arguments = argument;
	struct work_truth *truth = arguments->truth;
	struct prng prng = { arguments->seed };

	for (uint64_t i = 0;; i++) {
		size_t size = 16 + prng_below(&prng, 4000);

		if (leak_top(size))
			__atomic_fetch_add(&truth->top_bytes, size, __ATOMIC_RELAXED);
		if (i % 4 == 0 && leak_other(size))
			__atomic_fetch_add(&truth->other_bytes, size, __ATOMIC_RELAXED);
		free(leak_other(size));
		if (__atomic_load_n(&truth->top_bytes, __ATOMIC_RELAXED) > truth->stop_bytes)
			pause();
		if (arguments->bytes_per_second)
			usleep((useconds_t)(size * 1000000 / arguments->bytes_per_second));
	}
	return NULL;
}

/* leak TRUTH-FILE THREADS BYTES-PER-SECOND STOP-BYTES SEED: leaks until it is killed. */
static int work_leak(char **argv)
{
	int fd = open(argv[0], O_RDWR);
	static struct leak_arguments arguments[256];
	uint64_t threads = work_number(argv, 1, 1);
	struct work_truth *truth;

	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (truth == MAP_FAILED)
		return 1;
	truth->stop_bytes = work_number(argv, 3, UINT64_C(1) << 30);
	truth->top_site = (uintptr_t)leak_top;
	truth->other_site = (uintptr_t)leak_other;
	for (uint64_t n = 0; n < threads && n < 256; n++) {
		pthread_t thread;

		arguments[n] = (struct leak_arguments){ truth, work_number(argv, 2, 0),
							work_number(argv, 4, 1) * 1000 + n };
		if (n + 1 == threads)
			leak_thread(&arguments[n]);
		if (pthread_create(&thread, NULL, leak_thread, &arguments[n]))
			return 1;
	}
	return 0;
}

static unsigned int errno_changes;

static void *churn_thread(void *argument)
{
	struct prng prng = { (uintptr_t)argument };
	void *slots[64] = { NULL };

	for (int i = 0; i < 20000; i++) {
		size_t n = prng_below(&prng, 64);

		errno = EXDEV;
		free(slots[n]);
		if (errno != EXDEV)
			__atomic_fetch_add(&errno_changes, 1, __ATOMIC_RELAXED);
		slots[n] = malloc(prng_below(&prng, 5000));
	}
	for (size_t n = 0; n < 64; n++)
		free(slots[n]);
	return NULL;
}

/*
 * threads COUNT ROUNDS: threads that come and go, and free all they allocate. Fails if free()
 * changes errno.
 */
static int work_threads(char **argv)
{
	uint64_t count = work_number(argv, 0, 64), rounds = work_number(argv, 1, 4);
	static pthread_t threads[256];

	for (uint64_t round = 0; round < rounds; round++) {
		for (uint64_t n = 0; n < count; n++)
			pthread_create(&threads[n], NULL, churn_thread, (void *)(n + 1));
		for (uint64_t n = 0; n < count; n++)
			pthread_join(threads[n], NULL);
	}
	printf("%" PRIu64 "\n", count * rounds);
	return errno_changes != 0;
}

/* Objects that one thread allocates and another one frees. */
static void *shared_slots[512];

static void *swap_thread(void *argument)
{
	struct prng prng = { (uintptr_t)argument };

	for (int i = 0; i < 100000; i++) {
		void **slot = &shared_slots[prng_below(&prng, 512)];
		void *fresh = malloc(prng_below(&prng, 3000));

		free(__atomic_exchange_n(slot, fresh, __ATOMIC_ACQ_REL));
	}
	return NULL;
}

/* swap THREADS: prints the live objects at the end, as exact does. */
static int work_swap(char **argv)
{
	uint64_t count = work_number(argv, 0, 8);
	static pthread_t threads[64];

	for (uint64_t n = 0; n < count; n++)
		pthread_create(&threads[n], NULL, swap_thread, (void *)(n + 1));
	for (uint64_t n = 0; n < count; n++)
		pthread_join(threads[n], NULL);
	for (size_t n = 0; n < 512; n++)
		if (shared_slots[n])
			printf("%" PRIxPTR " 0\n", (uintptr_t)shared_slots[n]);
	fflush(stdout);
	_exit(0);
}

void work_allocate(size_t bytes)
{
	for (size_t done = 0; done < bytes; done += 1000) {
		void *volatile memory = malloc(1000);

		(void)memory;
	}
}

static volatile uint64_t signal_count;

/* Not allowed by POSIX, and done by real programs. The allocator below is not entered twice. */
static void signal_handler(int number)
{
	(void)number;
	signal_count++;
}

/* signals: interrupts a program that allocates, ten thousand times a second. */
static int work_signals(char **argv)
{
	struct timespec interval = { 0, 100000 };
	struct itimerspec timing = { interval, interval };
	struct sigaction action = { .sa_handler = signal_handler, .sa_flags = SA_RESTART };
	timer_t timer;

	sigaction(SIGALRM, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, NULL, &timer) || timer_settime(timer, 0, &timing, NULL))
		return 1;
	for (uint64_t i = 0; i < work_number(argv, 0, 20); i++)
		churn_thread((void *)(uintptr_t)(i + 1));
	printf("%" PRIu64 "\n", signal_count);
	return 0;
}

/* dlopen LIBRARY COUNT: a library that allocates is loaded and unloaded again and again. */
static int work_dlopen(char **argv)
{
	for (uint64_t i = 0; i < work_number(argv, 1, 100); i++) {
		void *library = dlopen(argv[0], RTLD_NOW);
		void *(*keep)(size_t) = library ? (void *(*)(size_t))dlsym(library, "plugin_keep")
						: NULL;

		if (!keep || !keep(1000))
			return 1;
		dlclose(library);
	}
	puts("done");
	fflush(stdout);
	_exit(0);
}

/*
 * operators LIBRARY: its operator new may be called by others, and is the one of a library that it
 * needs. Something else takes the place of that one if it is unloaded with it.
 */
static int work_operators(char **argv)
{
	for (int n = 0; n < 2; n++) {
		void *library = dlopen(argv[0], RTLD_NOW | RTLD_GLOBAL);
		int (*use)(void) = library ? (int (*)(void))dlsym(library, "plugin_use") : NULL;
		uintptr_t code = library ? (uintptr_t)dlsym(library, "_Znwm") : 0;

		if (!use || use())
			return 1;
		dlclose(library);
		mmap((void *)(code & ~(uintptr_t)4095), 4096, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	}
	return 0;
}

/* fill BYTES: keeps objects of 100 bytes; for profiles that are full. Prints bytes and objects. */
static int work_fill(char **argv)
{
	uint64_t bytes = work_number(argv, 0, 1000000), objects = 0;

	for (uint64_t done = 0; done < bytes; done += 100, objects++)
		leak_top(100);
	printf("%" PRIu64 " %" PRIu64 "\n", objects * 100, objects);
	fflush(stdout);
	_exit(0);
}

/* steps: waits for a line before each step, and allocates; for starting and stopping. */
static int work_steps(char **argv)
{
	char line[16];

	while (read(STDIN_FILENO, line, sizeof(line)) > 0) {
		work_allocate(work_number(argv, 0, 1000000));
		if (write(STDOUT_FILENO, "x", 1) != 1)
			return 1;
	}
	_exit(0);
}

/* fds: closes all descriptors, as daemons do, and goes on allocating. */
static int work_fds(char **argv)
{
	for (int fd = 3; fd < 4096; fd++)
		close(fd);
	for (int n = 0; n < 100; n++)
		if (open("/dev/null", O_RDONLY) < 0)
			return 1;
	return work_fill(argv);
}

/* daemon BYTES: gives up its privileges first, as daemons do, and has no descriptor of ours. */
static int work_daemon(char **argv)
{
	if (setresuid(65534, 65534, 65534))
		return 1;
	for (int fd = 3; fd < 4096; fd++) {
		char name[32], target[512];
		ssize_t length;

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		length = readlink(name, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = 0;
		if (strstr(target, ".mwheap"))
			return 1;
	}
	return work_fill(argv);
}

/* worker BYTES: the same in a forked child, which does nothing before. Prints its id, too. */
static int work_worker(char **argv)
{
	pid_t child = fork();

	if (!child)
		return work_daemon(argv);
	waitpid(child, NULL, 0);
	printf("%d\n", (int)child);
	fflush(stdout);
	_exit(child < 0);
}

/* No thread may end, and leave its arena to another one, before each has one. */
static pthread_barrier_t arenas_are_taken;

/* Leaves free chunks of many sizes in the arena of this thread, each between two that are used. */
static void *arena_thread(void *argument)
{
	uint64_t chunks = (uintptr_t)argument;
	void **freed = malloc(chunks * sizeof(*freed));

	pthread_barrier_wait(&arenas_are_taken);
	for (uint64_t n = 0; n < chunks; n++) {
		freed[n] = malloc(1100 + n * 16 % 4096);
		work_allocate(1);
	}
	for (uint64_t n = 0; n < chunks; n++)
		free(freed[n]);
	free(freed);
	return NULL;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * arenas COUNT CHUNKS: prints the number of free chunks, and the CPU time of mallinfo2(); then
 * allocates until the input ends.
 */
static int work_arenas(char **argv)
{
	uint64_t count = work_number(argv, 0, 64), least = UINT64_MAX;
	static pthread_t threads[256];
	struct mallinfo2 info;

	mallopt(M_ARENA_MAX, (int)count);
	pthread_barrier_init(&arenas_are_taken, NULL, (unsigned int)count);
	for (uint64_t n = 0; n < count; n++)
		pthread_create(&threads[n], NULL, arena_thread,
			       (void *)(uintptr_t)work_number(argv, 1, 1000));
	for (uint64_t n = 0; n < count; n++)
		pthread_join(threads[n], NULL);
	for (int n = 0; n < 20; n++) {
		uint64_t begin = cpu_ns(), took;

		info = mallinfo2();
		took = cpu_ns() - begin;
		least = took < least ? took : least;
	}
	printf("%zu %" PRIu64 "\n", info.ordblks, least);
	fflush(stdout);
	return work_steps(argv + 2);
}

/*
 * heap COUNT: random allocations and frees; prints what the heap of the C library has then: its
 * end, its size, what is in use, and what is mapped.
 */
static int work_heap(char **argv)
{
	uint64_t count = work_number(argv, 0, 100000);
	struct prng prng = { 1 };
	static void *objects[1000];
	char *begin = sbrk(0);
	struct mallinfo2 info;

	for (uint64_t n = 0; n < count; n++) {
		size_t which = prng_below(&prng, 1000);

		free(objects[which]);
		objects[which] = malloc(prng_below(&prng, n % 100 ? 5000 : 300000));
	}
	info = mallinfo2();
	printf("%zu %zu %zu %zu %zu\n", (size_t)((char *)sbrk(0) - begin), info.arena,
	       info.uordblks, info.fordblks, info.hblkhd);
	return 0;
}

/* secure: prints whether the program has more privileges than its caller, and its user. */
static int work_secure(char **argv)
{
	(void)argv;
	work_allocate(3000000);
	printf("%lu %u\n", getauxval(AT_SECURE), (unsigned int)geteuid());
	return 0;
}

static const struct {
	const char *name;
	int (*run)(char **argv);
} works[] = {
	{ "mix", work_mix },	       { "exact", work_exact },		{ "leak", work_leak },
	{ "threads", work_threads },   { "swap", work_swap },		{ "fork", work_fork },
	{ "storm", work_storm },       { "signals", work_signals },	{ "dlopen", work_dlopen },
	{ "fill", work_fill },	       { "mmap", work_mmap },		{ "arenas", work_arenas },
	{ "secure", work_secure },     { "stress", work_stress },	{ "steps", work_steps },
	{ "fds", work_fds },	       { "daemon", work_daemon },	{ "sigfork", work_sigfork },
	{ "stepfork", work_stepfork }, { "touch", work_touch },		{ "end", work_end },
	{ "guards", work_guards },     { "sites", work_sites },		{ "many", work_many },
	{ "small", work_small },       { "heap", work_heap },		{ "bounds", work_bounds },
	{ "cancel", work_cancel },     { "operators", work_operators }, { "errno", work_errno },
	{ "worker", work_worker },     { "region", work_region },	{ "plugins", work_plugins },
	{ "handler", work_handler },   { "sandbox", work_sandbox },	{ "halves", work_halves },
	{ "remap", work_remap },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(works) / sizeof(works[0]); i++)
		if (!strcmp(argv[1], works[i].name))
			return works[i].run(argv + 2);
	return 2;
}
