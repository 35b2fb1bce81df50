// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Streams from the outside: what an application sees that has an event loop, whose session cannot
 * be stopped, that uses libbpf itself, or that reads a hostile file.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <memwatch/recording.h>
#include <memwatch/stream.h>

#include "../../selftests/tap.h"
#include "base/timemath.h"
#include "loader/libbpf.h"
#include "loader/log.h"
#include "loader/wakeup.h"
#include "stream/backend.h"

static struct memwatch_ctx *ctx;

/* ------------------------------------------------------------------ stop */

/* As a live stream whose rings are empty: it ends when it is stopped. */
static int empty_next(struct memwatch_stream *stream, const struct memwatch_record_header **ret)
{
	(void)ret;
	return stream->stopped ? 0 : -EAGAIN;
}

static int failing_stop(struct memwatch_stream *stream)
{
	(void)stream;
	return -EPERM;
}

static void nothing_to_close(struct memwatch_stream *stream)
{
	(void)stream;
}

static void test_failing_stop(void)
{
	static const struct mw_backend_ops ops = {
		.name = "test",
		.next = empty_next,
		.stop = failing_stop,
		.close = nothing_to_close,
	};
	const struct memwatch_record_header *record;
	struct memwatch_stream stream = { 0 };

	mw_stream_init(&stream, ctx, &ops);
	tap_eq(memwatch_stream_next(&stream, &record), -EAGAIN, "a stream that runs has no end");
	tap_eq(memwatch_stream_stop(&stream), -EPERM, "the failure of a stop is reported");
	tap_eq(memwatch_stream_next(&stream, &record), 0, "after a failed stop, the stream ends");
	tap_eq(memwatch_stream_stop(&stream), 0, "a second stop does nothing");
	memwatch_stream_unref(&stream);
}

/* ------------------------------------------------------------ event loops */

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, timeout_ms) == 1;
}

static void test_stream_fd(void)
{
	MEMWATCH_OPTS(memwatch_null_opts, opts, .duration_ns = 1000000);
	struct memwatch_stream *stream;
	int fd;

	if (memwatch_stream_open_null(ctx, &opts, &stream))
		return;
	fd = memwatch_stream_fd(stream);
	tap_ok(fd >= 0, "a stream that never waits has a descriptor");
	tap_ok(is_readable(fd, 0) && is_readable(fd, 0), "its descriptor is always readable");
	tap_eq(memwatch_stream_fd(stream), fd, "a stream has one descriptor");
	memwatch_stream_unref(stream);
	tap_ok(write(fd, "", 0) < 0 && errno == EBADF, "the descriptor is closed with the stream");
}

/* The rings are in an epoll descriptor, which the application need not know. */
static void test_wakeup(void)
{
	int rings = epoll_create1(0), ring = eventfd(0, EFD_NONBLOCK), fd;
	struct epoll_event event = { .events = EPOLLIN };
	struct mw_wakeup wakeup = { 0 };
	uint64_t now = mw_clock(CLOCK_MONOTONIC), number = 1;

	epoll_ctl(rings, EPOLL_CTL_ADD, ring, &event);
	mw_wakeup_arm(&wakeup, now);
	fd = mw_wakeup_open(&wakeup, rings);
	tap_ok(fd >= 0 && mw_wakeup_open(&wakeup, rings) == fd, "the descriptor is opened once");
	tap_ok(is_readable(fd, 10000), "the descriptor is readable before the first call");
	mw_wakeup_arm(&wakeup, now + 3600 * MW_NSEC_PER_SEC);
	tap_ok(!is_readable(fd, 0), "the descriptor is not readable before its time");
	if (write(ring, &number, sizeof(number)) != sizeof(number))
		return;
	tap_ok(is_readable(fd, 10000), "the descriptor is readable when a ring is");
	if (read(ring, &number, sizeof(number)) != sizeof(number))
		return;
	tap_ok(!is_readable(fd, 0), "the descriptor is not readable when the ring is empty");
	mw_wakeup_arm(&wakeup, mw_clock(CLOCK_MONOTONIC) + 1000000);
	tap_ok(is_readable(fd, 10000), "the descriptor is readable when its time has come");
	mw_wakeup_arm(&wakeup, MW_TIME_MAX);
	tap_ok(!is_readable(fd, 0), "a time that never comes is accepted");
	mw_wakeup_close(&wakeup);
	mw_wakeup_close(&wakeup);
	close(ring);
	close(rings);
}

/* ------------------------------------------------------ libbpf's messages */

static unsigned int heard; /* messages that the application has got */

static int application_print(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	heard++;
	return 0;
}

static int other_print(enum libbpf_print_level level, const char *format, va_list args)
{
	return application_print(level, format, args);
}

static libbpf_print_fn_t current_print(void)
{
	libbpf_print_fn_t now = libbpf_set_print(NULL);

	libbpf_set_print(now);
	return now;
}

static pthread_barrier_t barrier;

/* Is inside libbpf for the library while the main thread enters, and leaves after it. */
static void *other_thread(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	mw_bpf_log_begin(ctx);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	mw_bpf_log_end();
	return NULL;
}

static __attribute__((format(printf, 2, 3))) void call_print(libbpf_print_fn_t print,
							     const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(LIBBPF_WARN, format, args);
	va_end(args);
}

static void test_print(void)
{
	libbpf_print_fn_t before;
	pthread_t thread;

	if (mw_libbpf_load(ctx, "this test"))
		return;
	before = libbpf_set_print(application_print);
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, other_thread, NULL))
		return;
	mw_bpf_log_begin(ctx);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	call_print(current_print(), "a message of the %s\n", "library");
	tap_eq(heard, 0, "a message of the library does not reach the application");
	mw_bpf_log_end();
	call_print(current_print(), "a message of the %s\n", "application");
	tap_eq(heard, 1, "the application hears its own messages while another thread is inside");
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	tap_ok(current_print() == application_print,
	       "after concurrent use, libbpf's print function is that of the application");
	mw_bpf_log_begin(ctx);
	libbpf_set_print(other_print);
	mw_bpf_log_end();
	tap_ok(current_print() == other_print, "a print function that was set meanwhile stays");
	libbpf_set_print(before);
	pthread_barrier_destroy(&barrier);
}

/* ------------------------------------------------------------------ texts */

static void test_text(void)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .flags = MEMWATCH_RECORDING_NO_SYNC);
	MEMWATCH_OPTS(memwatch_stream_info, info, .hostname = "h", .kernel = "k", .backend = "b");
	struct memwatch_record_rmid r = {
		.h = { 1000, MEMWATCH_RECORD_RMID_ALLOC, sizeof(r), 0, 0 },
		.rmid = 1,
		.generation = 1,
	};
	char folder[] = "/tmp/XXXXXX", path[64];
	const struct memwatch_record_header *record = NULL;
	struct memwatch_recording *recording;
	struct memwatch_stream *stream;

	if (!mkdtemp(folder))
		return;
	snprintf(path, sizeof(path), "%s/file.mwr", folder);
	memset(r.comm, 'x', sizeof(r.comm));
	if (!memwatch_recording_create(ctx, path, &info, &opts, &recording)) {
		memwatch_recording_write(recording, &r.h);
		memwatch_recording_close(recording);
	}
	if (!memwatch_stream_open_file(ctx, path, &stream)) {
		tap_eq(memwatch_stream_next(stream, &record), 1, "the stream has the record");
		tap_eq(strnlen(((const struct memwatch_record_rmid *)record)->comm, sizeof(r.comm)),
		       sizeof(r.comm) - 1, "a name that fills its member is cut by its last byte");
		memwatch_stream_unref(stream);
	}
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	tap_start();
	memwatch_ctx_new(NULL, &ctx);
	test_failing_stop();
	test_stream_fd();
	test_wakeup();
	test_print();
	test_text();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
