/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The trace: on and off, and the writers of the threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter.h"
#include "lock.h"
#include "profile.h"
#include "runtime.h"
#include "trace-file.h"
#include "trace.h"

/* Writers that a new thread looks at for one whose thread is gone. */
#define WRITERS_TRIED 8

/* How long the two clocks are compared at the beginning. Chunks have more moments, later. */
#define CALIBRATION_NS 200000

static struct mw_trace_header header_scratch;

struct mw_trace mw_trace MW_HIDDEN = {
	.began = MW_HEAP_BEGAN_PROCESS_START,
	.header = &header_scratch,
};

static struct mw_trace_writer *writers[MW_TRACE_WRITERS_MAX];
static uint32_t writers_count;
static uint32_t writers_cursor;
static uint32_t instances;
static bool detached;

/*
 * The counter of the processor is used if the kernel takes it for a clock: it is the same on all
 * processors then, and does not stop. On other machines than x86-64 the system call is as fast.
 */
static uint32_t clock_choose(void)
{
#if defined(__x86_64__)
	static const char path[] = "/sys/devices/system/clocksource/clocksource0/"
				   "available_clocksource";
	char text[256] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i + 3 <= length; i++)
		if (!strncmp(text + i, "tsc", 3) && (!i || text[i - 1] == ' ') &&
		    (text[i + 3] == ' ' || text[i + 3] == '\n'))
			return MW_TRACE_CLOCK_CYCLES;
#endif
	return MW_TRACE_CLOCK_MONOTONIC;
}

struct mw_trace_moment mw_trace_moment_now(void)
{
	struct mw_trace_moment moment;

	moment.units = mw_trace_now();
	moment.ns = mw_runtime_now();
	return moment;
}

static void clock_calibrate(struct mw_trace_header *header)
{
	header->first = header->second = mw_trace_moment_now();
	while (header->second.ns - header->first.ns < CALIBRATION_NS)
		header->second = mw_trace_moment_now();
}

/* Returns 0 or a negative errno. */
static int trace_begin(void)
{
	struct mw_trace_header new = { .began = mw_trace.began }, *header;
	int rc;

	new.clock = mw_trace.clock = clock_choose();
	new.depth = mw_trace.depth = mw_config.trace_depth;
	new.created_ns = mw_runtime_now();
	new.created_realtime_ns = mw_profile.header->created_realtime_ns +
				  (new.created_ns - mw_profile.header->created_ns);
	new.state = MW_TRACE_STATE_ACTIVE;
	clock_calibrate(&new);
	rc = mw_trace_file_create(&new, &header);
	if (rc) {
		mw_config_log("trace", -rc);
		mw_trace.wanted = false;
		return rc;
	}
	mw_trace.header = header;
	mw_trace.streams = 0;
	mw_filter_raise();
	__atomic_store_n(&mw_trace.filter, mw_trace.filter + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&mw_trace.instance, ++instances, __ATOMIC_RELEASE);
	return 0;
}

static void state_end(enum mw_trace_state state)
{
	struct mw_trace_header *header = mw_trace.header;

	header->last = mw_trace_moment_now();
	if (__atomic_load_n(&header->state, __ATOMIC_RELAXED) == MW_TRACE_STATE_ACTIVE)
		__atomic_store_n(&header->state, state, __ATOMIC_RELEASE);
}

/* The mapping of the header stays: another thread may be about to count a lost event. */
static void trace_end(void)
{
	__atomic_store_n(&mw_trace.instance, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&mw_trace.filter, mw_trace.filter + 1, __ATOMIC_SEQ_CST);
	mw_filter_lower();
	state_end(MW_TRACE_STATE_STOPPED);
	mw_trace.began = MW_HEAP_BEGAN_LATER;
}

void mw_trace_request(bool on, uint32_t began)
{
	mw_trace.began = began;
	__atomic_store_n(&mw_trace.wanted, on, __ATOMIC_RELEASE);
}

void mw_trace_exit(void)
{
	if (mw_trace.instance)
		state_end(MW_TRACE_STATE_ENDED);
}

void mw_trace_lose(uint64_t *counter)
{
	if (mw_fork_is_settled())
		mw_count(counter, 1);
}

/* A sandbox may not permit to ask; then it lives, for all that is known. */
static bool thread_lives(const struct mw_thread *thread, uint32_t tid)
{
	int saved = errno;
	bool lives = !syscall(SYS_tgkill, thread->pid, tid, 0) || errno != ESRCH;

	errno = saved;
	return lives;
}

/* A writer whose thread is gone, or a new one; NULL if there is none. */
static struct mw_trace_writer *writer_claim(const struct mw_thread *thread)
{
	uint32_t count = __atomic_load_n(&writers_count, __ATOMIC_ACQUIRE);
	struct mw_trace_writer *writer;

	for (uint32_t i = 0; i < WRITERS_TRIED && i < count; i++) {
		uint32_t n = __atomic_fetch_add(&writers_cursor, 1, __ATOMIC_RELAXED), owner;

		writer = __atomic_load_n(&writers[n % count], __ATOMIC_ACQUIRE);
		if (!writer)
			continue;
		owner = __atomic_load_n(&writer->owner, __ATOMIC_ACQUIRE);
		if (owner && owner != thread->tid && thread_lives(thread, owner))
			continue;
		if (__atomic_compare_exchange_n(&writer->owner, &owner, thread->tid, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return writer;
	}
	if (count == MW_TRACE_WRITERS_MAX)
		return NULL;
	writer = mmap(NULL, sizeof(*writer), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (writer == MAP_FAILED)
		return NULL;
	writer->owner = thread->tid;
	count = __atomic_fetch_add(&writers_count, 1, __ATOMIC_ACQ_REL);
	if (count < MW_TRACE_WRITERS_MAX) {
		__atomic_store_n(&writers[count], writer, __ATOMIC_RELEASE);
		return writer;
	}
	__atomic_store_n(&writers_count, MW_TRACE_WRITERS_MAX, __ATOMIC_RELEASE);
	munmap(writer, sizeof(*writer));
	return NULL;
}

/* Gives @thread a writer for this trace. */
static void writer_attach(struct mw_thread *thread)
{
	struct mw_trace_writer *writer = thread->writer ?: writer_claim(thread);

	thread->writer = writer;
	if (!writer || writer->instance == mw_trace.instance)
		return;
	mw_trace_file_release(&writer->window);
	writer->chunk = NULL;
	writer->at = NULL;
	writer->sequence = 0;
	writer->time = 0;
	writer->stream = __atomic_fetch_add(&mw_trace.streams, 1, __ATOMIC_RELAXED);
	/* The signal handler that comes in between finds no chunk. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	writer->instance = mw_trace.instance;
}

void mw_trace_release(struct mw_thread *thread)
{
	if (!thread->traced)
		return;
	thread->traced = false;
	thread->countdown = thread->held;
}

static bool trace_is_followed(uint32_t request)
{
	bool wanted = __atomic_load_n(&mw_trace.wanted, __ATOMIC_ACQUIRE);

	return wanted == (mw_trace.instance != 0) &&
	       request == mw_profile.header->trace_control_seen;
}

static bool trace_is_full(void)
{
	return __atomic_load_n(&mw_trace.header->state, __ATOMIC_RELAXED) == MW_TRACE_STATE_FULL;
}

/* Begins or ends the trace, and says whether that worked. Caller holds the maintenance lock. */
static void request_follow(uint32_t request)
{
	struct mw_heap_header *header = mw_profile.header;
	int rc = 0;

	if (request != header->trace_control_seen) {
		/* One that is full records nothing any more: whoever asks gets another one. */
		if (mw_trace.instance && trace_is_full())
			trace_end();
		mw_trace_request((request & MW_HEAP_CONTROL_MASK) == MW_HEAP_CONTROL_START,
				 MW_HEAP_BEGAN_LATER);
	}
	if (mw_trace.wanted && !mw_trace.instance)
		rc = trace_begin();
	else if (!mw_trace.wanted && mw_trace.instance)
		trace_end();
	header->trace_error = (uint32_t)-rc;
	__atomic_store_n(&header->trace_control_seen, request, __ATOMIC_RELEASE);
}

void mw_trace_follow(struct mw_thread *thread)
{
	const uint32_t *control = &mw_profile.header->trace_control;

	if (mw_unlikely(!trace_is_followed(__atomic_load_n(control, __ATOMIC_ACQUIRE))) &&
	    mw_lock_try(&mw_maintenance)) {
		request_follow(__atomic_load_n(control, __ATOMIC_ACQUIRE));
		mw_lock_end(&mw_maintenance);
	}
	if (!mw_trace.instance) {
		mw_trace_release(thread);
		return;
	}
	writer_attach(thread);
	if (!thread->traced) {
		thread->held = thread->countdown;
		thread->traced = true;
	}
	thread->countdown = 0;
}

/* The window and the header are not mapped in a child; what was interrupted goes on with memory. */
static void memory_replace(void *address, size_t bytes)
{
	if (address)
		mmap(address, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

void mw_trace_detach(void)
{
	const struct mw_thread *thread = &mw_thread;

	if (!mw_trace.instance || detached)
		return;
	detached = true;
	memory_replace(mw_trace.header, MW_TRACE_CHUNKS_OFFSET);
	if (thread->writer)
		memory_replace(thread->writer->window.memory,
			       mw_trace_window_bytes(&thread->writer->window));
}

void mw_trace_forget(void)
{
	struct mw_thread *thread = &mw_thread;

	if (detached) {
		munmap(mw_trace.header, MW_TRACE_CHUNKS_OFFSET);
		if (thread->writer)
			mw_trace_file_release(&thread->writer->window);
	}
	detached = false;
	for (uint32_t i = 0; i < writers_count && i < MW_TRACE_WRITERS_MAX; i++) {
		if (writers[i])
			munmap(writers[i], sizeof(*writers[i]));
		writers[i] = NULL;
	}
	writers_count = writers_cursor = 0;
	mw_trace_release(thread);
	thread->writer = NULL;
	memset(&header_scratch, 0, sizeof(header_scratch));
	mw_trace.header = &header_scratch;
	mw_trace.instance = 0;
	mw_trace.filter += mw_trace.filter & 1;
	mw_trace.began = MW_HEAP_BEGAN_FORK;
}
