// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Objects whose last accesses are known. Each is touched in one phase, in one of several ways, and
 * an epoch of the profiler ends behind each phase.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heap/profile-format.h"
#include "heap/tests/work.h"

#define PHASES	      8
#define OBJECTS_MOST  4000
#define EPOCHS_BEHIND 2

static struct object {
	unsigned char *at;
	size_t size;
	uint64_t before, after; /* of its last access */
} objects[OBJECTS_MOST];
static uint64_t object_count;

static const struct mw_heap_header *profile;
static int zeros, sink;
static volatile unsigned char sum;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The header of the profile of this process, to see when epochs end. */
static bool profile_map(void)
{
	char line[4096], path[4096];
	FILE *maps = fopen("/proc/self/maps", "r");
	bool found = false;
	int fd;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, ".mwheap") && sscanf(line, "%*s %*s %*s %*s %*s %4000s", path);
	if (maps)
		fclose(maps);
	fd = found ? open(path, O_RDONLY) : -1;
	if (fd < 0)
		return false;
	profile = mmap(NULL, MW_HEAP_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return profile != MAP_FAILED;
}

/* Allocates now and then, because the library notices nothing otherwise. */
static bool epochs_wait(uint64_t count)
{
	uint64_t begin = __atomic_load_n(&profile->epochs, __ATOMIC_ACQUIRE);
	uint64_t until = now_ns() + UINT64_C(60000000000);

	while (__atomic_load_n(&profile->epochs, __ATOMIC_ACQUIRE) < begin + count) {
		if (now_ns() > until)
			return false;
		free(malloc(1));
		usleep(1000);
	}
	return true;
}

/* By all functions that allocate. */
static unsigned char *object_allocate(uint64_t n, size_t size)
{
	void *memory = NULL;
	unsigned char *bytes;

	switch (n % 5) {
	case 0:
		return malloc(size);
	case 1:
		bytes = calloc(1, size);
		for (size_t i = 0; bytes && i < size; i++)
			if (bytes[i])
				abort();
		return bytes;
	case 2:
		memory = malloc(24);
		memset(memory, 0x5a, 24);
		bytes = realloc(memory, size);
		for (size_t i = 0; bytes && i < 24 && i < size; i++)
			if (bytes[i] != 0x5a)
				abort();
		return bytes;
	case 3:
		if (posix_memalign(&memory, 64, size) || (uintptr_t)memory % 64)
			abort();
		return memory;
	default:
		return aligned_alloc(4096, (size + 4095) / 4096 * 4096);
	}
}

static void objects_allocate(uint64_t count)
{
	static const size_t sizes[] = { 1, 24, 100, 1000, 4095, 4096, 5000, 20000, 65536, 300000 };

	for (uint64_t n = 0; n < count; n++) {
		struct object *object = &objects[n];

		object->size = sizes[n * 7 % (sizeof(sizes) / sizeof(sizes[0]))];
		object->at = object_allocate(n, object->size);
		if (!object->at || malloc_usable_size(object->at) < object->size)
			abort();
		memset(object->at, (int)n, object->size);
		object->before = object->after = now_ns();
	}
	object_count = count;
}

/* By system calls, which a signal may end early. */
static void bytes_pass(ssize_t (*call)(int, unsigned char *, size_t), int fd, unsigned char *at,
		       size_t bytes)
{
	while (bytes > 0) {
		ssize_t done = call(fd, at, bytes);

		if (done <= 0)
			abort();
		at += done;
		bytes -= (size_t)done;
	}
}

static ssize_t call_read(int fd, unsigned char *at, size_t bytes)
{
	return read(fd, at, bytes);
}

static ssize_t call_write(int fd, unsigned char *at, size_t bytes)
{
	return write(fd, at, bytes);
}

/* Of a large object a part is watched, so all of it is touched. */
static void object_touch(struct object *object, uint64_t way)
{
	size_t bytes = object->size > 65536 ? object->size : 1;
	size_t at = object->size > 65536 ? 0 : object->size * (way % 7) / 7;
	unsigned char *begin = object->at + at;
	static __thread unsigned char copy[300000];

	object->before = now_ns();
	switch (way % 6) {
	case 0:
		for (size_t i = 0; i < bytes; i++)
			sum += *(volatile unsigned char *)&begin[i];
		break;
	case 1:
		for (size_t i = 0; i < bytes; i++)
			*(volatile unsigned char *)&begin[i] = (unsigned char)way;
		break;
	case 2:
		bytes_pass(call_read, zeros, begin, bytes);
		break;
	case 3:
		bytes_pass(call_write, sink, begin, bytes);
		break;
	case 4:
		memcpy(copy, begin, bytes);
		break;
	default:
		memcpy(begin, copy, bytes);
	}
	object->after = now_ns();
}

struct toucher {
	pthread_t thread;
	uint64_t first, step;
};

/* Objects of each phase are those whose number has this rest. */
static void *phase_thread(void *argument)
{
	const struct toucher *toucher = argument;

	for (uint64_t n = toucher->first; n < object_count; n += toucher->step)
		object_touch(&objects[n], n / PHASES);
	return NULL;
}

static bool phases_run(unsigned int threads)
{
	struct toucher touchers[16];

	for (uint64_t phase = 0; phase < PHASES - 1; phase++) {
		for (unsigned int t = 0; t < threads; t++) {
			touchers[t].first = phase + t * PHASES;
			touchers[t].step = (uint64_t)threads * PHASES;
			if (threads == 1)
				phase_thread(&touchers[t]);
			else if (pthread_create(&touchers[t].thread, NULL, phase_thread,
						&touchers[t]))
				return false;
		}
		for (unsigned int t = 0; threads > 1 && t < threads; t++)
			pthread_join(touchers[t].thread, NULL);
		if (!epochs_wait(EPOCHS_BEHIND))
			return false;
	}
	return true;
}

static void truth_print(void)
{
	for (uint64_t n = 0; n < object_count; n++)
		printf("%" PRIxPTR " %zu %" PRIu64 " %" PRIu64 "\n", (uintptr_t)objects[n].at,
		       objects[n].size, objects[n].before, objects[n].after);
}

/* How many mappings of this process are marked as those of watched objects. */
static unsigned int marked_count(void)
{
	static char text[16 << 20];
	int fd = open("/proc/self/smaps", O_RDONLY);
	unsigned int count = 0;
	size_t used = 0;
	ssize_t got;

	while ((got = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)got;
	close(fd);
	text[used] = 0;
	for (char *at = text; (at = strstr(at, "VmFlags:")); at++)
		count += memmem(at, strcspn(at, "\n"), " rr", 3) != NULL;
	return count;
}

/*
 * A child that writes to every second object, and lives as long as its parent. What the parent
 * watches is not marked in it any more, once it has allocated.
 */
static void child_run(int until)
{
	char byte;

	for (uint64_t n = 0; n < object_count; n += 2)
		objects[n].at[0]++;
	for (uint64_t n = 0; n < object_count; n += 3)
		free(objects[n].at);
	for (int n = 0; n < 3000; n++)
		free(malloc((size_t)n));
	if (marked_count() > 20)
		_exit(4);
	_exit(read(until, &byte, 1) != 0);
}

static pid_t child_start(int *ret_end)
{
	int ends[2];
	pid_t child;

	if (pipe(ends))
		abort();
	child = fork();
	if (!child) {
		close(ends[1]);
		child_run(ends[0]);
	}
	close(ends[0]);
	*ret_end = ends[1];
	return child;
}

static volatile sig_atomic_t alarms;

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
}

/* A signal every 200 us. */
static void storm_begin(void)
{
	struct itimerval interval = { .it_interval.tv_usec = 200, .it_value.tv_usec = 200 };
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &interval, NULL);
}

static void storm_end(void)
{
	struct itimerval interval = { 0 };

	setitimer(ITIMER_REAL, &interval, NULL);
}

/* Pages of the object that belong to it alone, if it has such pages. */
static unsigned char *object_pages(const struct object *object, size_t *ret)
{
	if ((uintptr_t)object->at % 4096 || object->size > 65536)
		return NULL;
	*ret = (object->size + 4095) / 4096 * 4096;
	return object->at;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)4095;

	(void)signal;
	(void)context;
	if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE))
		_exit(3);
}

/* A write barrier, as garbage collectors have it, for one in @every objects. */
static void objects_protect(uint64_t every)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	unsigned char *pages;
	size_t bytes;

	sigaction(SIGSEGV, &action, NULL);
	for (uint64_t n = 0; n < object_count; n += every)
		if (n / PHASES % 6 != 2 && (pages = object_pages(&objects[n], &bytes)))
			mprotect(pages, bytes, PROT_READ);
}

static int fault_fd;

static void *fault_thread(void *argument)
{
	struct uffd_msg message;

	while (read(fault_fd, &message, sizeof(message)) == sizeof(message)) {
		struct uffdio_writeprotect range = {
			.range = { message.arg.pagefault.address & ~UINT64_C(4095), 4096 },
		};

		free(malloc(10));
		ioctl(fault_fd, UFFDIO_WRITEPROTECT, &range);
	}
	return argument;
}

/* Write protection by userfaultfd, whose handler allocates, for one in @every objects. */
static bool objects_follow(uint64_t every)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	unsigned char *pages;
	pthread_t thread;
	size_t bytes;

	fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fault_fd < 0 || ioctl(fault_fd, UFFDIO_API, &api) ||
	    pthread_create(&thread, NULL, fault_thread, NULL))
		return false;
	for (uint64_t n = every - 1; n < object_count; n += every) {
		struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_WP };
		struct uffdio_writeprotect protect = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };

		pages = object_pages(&objects[n], &bytes);
		if (!pages)
			continue;
		range.range = protect.range = (struct uffdio_range){ (uintptr_t)pages, bytes };
		if (ioctl(fault_fd, UFFDIO_REGISTER, &range) ||
		    ioctl(fault_fd, UFFDIO_WRITEPROTECT, &protect))
			return false;
	}
	return true;
}

/* Gives the pages behind some objects the advice that theirs have, so that the kernel joins them.
 */
static void objects_join(void)
{
	unsigned char *pages;
	size_t bytes;

	for (uint64_t n = 0; n < object_count; n += 16)
		if ((pages = object_pages(&objects[n], &bytes)) &&
		    madvise(pages + bytes, 4096, MADV_RANDOM))
			abort();
}

/* Moves all objects, and frees them. Content must stay. */
static void objects_end(void)
{
	for (uint64_t n = 0; n < object_count; n++) {
		size_t size = objects[n].size, wanted = n % 2 ? size / 2 + 1 : 2 * size + 5000;
		unsigned char *copy = malloc(size), *moved;

		memcpy(copy, objects[n].at, size);
		moved = realloc(objects[n].at, wanted);
		if (!moved || malloc_usable_size(moved) < wanted ||
		    memcmp(copy, moved, size < wanted ? size : wanted))
			abort();
		memset(moved, 1, wanted);
		free(copy);
		objects[n].at = moved;
	}
	for (uint64_t n = 0; n < object_count; n++)
		free(objects[n].at);
}

/*
 * end COUNT: objects of which nothing is left at the end; prints how many mappings are still
 * marked.
 */
int work_end(char **argv)
{
	if (!profile_map())
		return 1;
	objects_allocate(work_number(argv, 0, 600));
	if (marked_count() < object_count / 2 || !epochs_wait(1))
		return 1;
	objects_end();
	printf("%u\n", marked_count());
	return 0;
}

/* Whether an object has one of the bytes in front of a page that a vector may have as well. */
static bool is_in_front(const struct object *object, const unsigned char *page)
{
	return object->at < page && object->at + malloc_usable_size(object->at) > page - 64;
}

/*
 * guards COUNT: small objects, of which some have pages of their own; then others take what is
 * free around these. Prints how many have pages, how many of them have another object's last bytes
 * in front of them, and how much more of the heap is in use when all were freed.
 */
int work_guards(char **argv)
{
	uint64_t paged = 0, beside = 0;
	size_t used;

	setvbuf(stdout, NULL, _IONBF, 0);
	used = mallinfo2().uordblks;
	object_count = work_number(argv, 0, 2000);
	for (uint64_t n = 0; n < object_count; n++)
		objects[n].at = malloc(16 + n * 7 % 300);
	for (uint64_t n = 0; n < object_count; n++) {
		bool is_beside = false;

		if (!object_pages(&objects[n], &(size_t){ 0 }))
			continue;
		for (uint64_t other = 0; other < object_count; other++)
			is_beside |= is_in_front(&objects[other], objects[n].at);
		paged++;
		beside += is_beside;
	}
	for (uint64_t n = 0; n < object_count; n++)
		free(objects[n].at);
	printf("%lu %lu %ld\n", paged, beside, (long)(mallinfo2().uordblks - used));
	return 0;
}

/* many COUNT: objects that stay. */
int work_many(char **argv)
{
	objects_allocate(work_number(argv, 0, 600));
	return 0;
}

/* small COUNT TIMES: objects of 24 bytes, allocated so often; prints the largest resident set, KiB.
 */
int work_small(char **argv)
{
	uint64_t count = work_number(argv, 0, 1000), times = work_number(argv, 1, 1);
	void **small = calloc(count, sizeof(*small));
	struct rusage usage;

	for (uint64_t n = 0; n < times * count; n++) {
		free(small[n % count]);
		small[n % count] = malloc(24);
		memset(small[n % count], 1, 24);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%ld\n", usage.ru_maxrss);
	return 0;
}

/*
 * touch COUNT HOW: prints the address, the size and the last access of each object. HOW is "plain"
 * or what the program does besides.
 */
int work_touch(char **argv)
{
	const char *how = argv[0] && argv[1] ? argv[1] : "plain";
	int child_end = -1, status = 0;
	bool all, fine;

	zeros = open("/dev/zero", O_RDONLY);
	sink = open("/dev/shm", O_TMPFILE | O_WRONLY, 0600);
	if (zeros < 0 || sink < 0 || !profile_map())
		return 1;
	objects_allocate(work_number(argv, 0, 600));
	if (!epochs_wait(1))
		return 1;
	all = !strcmp(how, "all");
	if (all || !strcmp(how, "fork"))
		child_start(&child_end);
	if (all || !strcmp(how, "protect"))
		objects_protect(all ? 2 : 1);
	if ((all || !strcmp(how, "follow")) && !objects_follow(all ? 2 : 1))
		return WORK_UNSUPPORTED;
	if (!strcmp(how, "join"))
		objects_join();
	if (all || !strcmp(how, "storm"))
		storm_begin();
	fine = phases_run(all || !strcmp(how, "threads") ? 4 : 1);
	storm_end();
	if (child_end >= 0) {
		close(child_end);
		wait(&status);
	}
	truth_print();
	return !fine || status;
}
