// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recordings when something is in the way: a full disk and a kill cost no block
 * that was written before, and what is there can be replayed.
 */
#include "recording-kit.h"

/* ------------------------------------------------------------- a full disk */

/*
 * Writes until it fails, twice, makes room with @more and goes on. Everything
 * that was taken has to be there in the end.
 */
static bool survives_full(int expected, void (*more)(void))
{
	struct memwatch_recording *recording = create_recording(REPLACE, 4096, UINT64_MAX);
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct memwatch_record_sample sample;
	uint64_t number = 0, taken;
	struct found found;
	struct stat st;
	int err = 0;

	while (!err && number < 1000000) {
		numbered(&sample, number);
		err = memwatch_recording_write(recording, &sample.h);
		number += !err;
	}
	if (err != expected || memwatch_recording_write(recording, &sample.h) != expected ||
	    memwatch_recording_flush(recording, 0) != expected) {
		tap_note("%s instead of %s", strerror(-err), strerror(-expected));
		return false;
	}
	memwatch_recording_get_stats(recording, &stats);
	taken = stats.records - stats.pending;
	found = read_numbered(1);
	if (stat(path, &st) || (uint64_t)st.st_size != stats.file_bytes ||
	    stats.records != number || found.count != taken || found.wrong || found.blocks_lost ||
	    found.stats.damaged) {
		tap_note("while full: %llu records, %llu bytes, file has %lld",
			 (unsigned long long)found.count, (unsigned long long)stats.file_bytes,
			 (long long)st.st_size);
		return false;
	}
	more();
	for (unsigned int i = 0; i < 500 && !(err = memwatch_recording_write(recording, &sample.h));
	     i++)
		numbered(&sample, ++number);
	err = memwatch_recording_close(recording);
	found = read_numbered(1);
	return !err && found.count == number && !found.wrong && !found.blocks_lost &&
	       found.stats.indexed && !found.stats.damaged;
}

static void limit_more(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
}

static bool in_child(bool (*test)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		fflush(stdout);
		_exit(test() ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       !WEXITSTATUS(status);
}

/* After a failed write the block keeps its records, and more can be added. */
static bool flush_fails(void)
{
	struct memwatch_recording *recording = create_recording(REPLACE, 0, UINT64_MAX);
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct memwatch_record_sample sample;
	struct rlimit limit;
	struct found found;
	bool good = true;

	memwatch_recording_get_stats(recording, &stats);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = stats.file_bytes + 100; /* a header, and not much more */
	setrlimit(RLIMIT_FSIZE, &limit);
	for (uint64_t i = 0; i < 200; i++) {
		numbered(&sample, i);
		good &= !memwatch_recording_write(recording, &sample.h);
		if (i == 100)
			good &= memwatch_recording_flush(recording, 1) == -EFBIG;
	}
	limit_more();
	good &= !memwatch_recording_close(recording);
	found = read_numbered(1);
	return good && found.count == 200 && !found.wrong && !found.blocks_lost;
}

static bool full_by_limit(void)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	/* in the middle of a block, wherever that is */
	limit.rlim_cur = 33333;
	setrlimit(RLIMIT_FSIZE, &limit);
	return survives_full(-EFBIG, limit_more);
}

static void mount_more(void)
{
	mount("none", directory, NULL, MS_REMOUNT, "size=8m");
}

static bool full_by_mount(void)
{
	return survives_full(-ENOSPC, mount_more);
}

/* There is room for the index, but not for the records before it. */
static bool close_fails(void)
{
	struct memwatch_recording *recording = create_recording(REPLACE, 1 << 20, UINT64_MAX);
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct memwatch_record_sample sample;
	struct rlimit limit;
	struct found found;

	for (uint64_t i = 0; i < 3000; i++) {
		numbered(&sample, i);
		if (memwatch_recording_write(recording, &sample.h) ||
		    (i == 99 && memwatch_recording_flush(recording, 0)))
			return false;
	}
	memwatch_recording_get_stats(recording, &stats);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = stats.file_bytes + 1000;
	setrlimit(RLIMIT_FSIZE, &limit);
	if (memwatch_recording_close(recording) != -EFBIG)
		return false;
	found = read_numbered(1);
	return found.count == 100 && !found.wrong && found.stats.truncated && !found.stats.damaged;
}

static void test_full(void)
{
	tap_ok(in_child(full_by_limit),
	       "a file that reaches its size limit keeps its whole blocks, and a retry works");
	tap_ok(in_child(flush_fails), "a failed flush loses no records");
	tap_ok(in_child(close_fails), "closing a recording on a full disk fails, and the file "
				      "shows that it is incomplete");
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", directory, "tmpfs", 0, "size=40k")) {
		tap_skip("full disk: cut back to whole blocks, retry works", "cannot mount tmpfs");
		return;
	}
	tap_ok(in_child(full_by_mount), "full disk: cut back to whole blocks, retry works");
	umount(directory);
}

/* ------------------------------------------------------------------- kills */

/* @written: records that are surely in the file, told by the writer */
static void write_for_ever(uint64_t *written)
{
	struct memwatch_recording *recording = create_recording(
		REPLACE, 4096 + 4096 * (uint32_t)dice(20), 0);
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct memwatch_record_sample sample;

	for (uint64_t i = 0;; i++) {
		numbered(&sample, i);
		if (memwatch_recording_write(recording, &sample.h))
			_exit(EXIT_FAILURE);
		memwatch_recording_get_stats(recording, &stats);
		__atomic_store_n(written, stats.records - stats.pending, __ATOMIC_RELEASE);
	}
}

/* Waits until there are records in the file, for ten seconds at most. */
static void await_records(const uint64_t *written)
{
	for (int i = 0; i < 10000 && !__atomic_load_n(written, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
}

static void test_killed(void)
{
	uint64_t *written = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
				 0);
	unsigned int wrong = 0, useful = 0;

	if (written == MAP_FAILED)
		abort();
	for (unsigned int i = 0; i < 60; i++) {
		struct found found;
		pid_t pid;

		unlink(path);
		dice(2);
		*written = 0;
		pid = fork();
		if (!pid)
			write_for_ever(written);
		/* Half of them are killed while they write, the others perhaps before. */
		if (i % 2)
			await_records(written);
		usleep((useconds_t)dice(3000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		if (access(path, F_OK))
			continue;
		found = read_numbered(1);
		if (found.open && !*written)
			continue; /* killed before it had begun */
		useful += found.count > 0;
		if ((found.open || found.end || found.wrong || found.blocks_lost ||
		     found.stats.damaged || !found.stats.truncated || found.count < *written ||
		     found.count != found.stats.records) &&
		    !wrong++)
			tap_note("open %d, %llu records of %llu, %llu damaged", found.open,
				 (unsigned long long)found.count, (unsigned long long)*written,
				 (unsigned long long)found.stats.damaged);
	}
	tap_eq(wrong, 0, "all whole blocks of a killed writer are read");
	tap_ok(useful > 20, "more than 20 killed writers left a file with records (%u)", useful);
	munmap(written, 4096);
}

/* ------------------------------------------------------------------ replay */

/* Two CPUs, a loss, and a type that the library does not know. */
static void write_replay_file(struct batch *batch)
{
	struct memwatch_record_lost *lost;

	batch_add(batch, MEMWATCH_RECORD_TICK, 48, 100, 5);
	batch_add(batch, MEMWATCH_RECORD_TICK, 48, 200, 65535);
	lost = batch_add(batch, MEMWATCH_RECORD_LOST, 32, 250, 5);
	lost->count = 17;
	lost->h.flags = MEMWATCH_RECORD_F_FORCED;
	batch_add(batch, 999, 24, 300, 5);
	((struct memwatch_record_header *)batch_add(batch, 999, 24, 260, 5))->flags =
		MEMWATCH_RECORD_F_LATE;
	write_batch(batch, 0);
}

static void test_replay(const struct batch *batch)
{
	MEMWATCH_OPTS(memwatch_stream_stats, stats);
	MEMWATCH_OPTS(memwatch_stream_cpu_stats, cpu);
	const struct memwatch_record_header *record;
	struct memwatch_stream *stream;
	size_t at = 0;
	int err;

	if (memwatch_stream_open_file(ctx, path, &stream)) {
		tap_ok(false, "replay: %s", memwatch_ctx_error(ctx));
		return;
	}
	while (memwatch_stream_poll(stream, -1) == 1 &&
	       (err = memwatch_stream_next(stream, &record)) == 1 && at < batch->len &&
	       !memcmp(record, batch->bytes + at, record->size))
		at += record->size;
	tap_eq(err, 0, "a replay reaches the end");
	tap_eq(at, batch->len, "a replay delivers the records with their flags");
	memwatch_stream_get_stats(stream, &stats);
	tap_eq(stats.delivered, 4, "a replay counts delivered records");
	tap_eq(stats.produced, 4, "a replay counts produced records");
	tap_eq(stats.lost, 17, "a replay counts lost records");
	tap_eq(stats.late, 1, "a replay counts late records");
	tap_eq(stats.forced, 0, "a replay counts forced records");
	tap_eq(stats.watermark_ns, 300, "the watermark of a replay is the last time in order");
	tap_eq(stats.rings, 2, "a replay counts the CPUs of the records");
	tap_eq(stats.truncated, 0, "a replay of a whole file is not truncated");
	tap_eq(stats.malformed, 0, "a replay of a whole file has no malformed records");
	tap_ok(stats.memory_bytes, "a replay says how much memory it uses");
	tap_eq(memwatch_stream_get_cpu_stats(stream, 0, &cpu), 1, "a replay has a first CPU");
	tap_eq(cpu.cpu, 5, "the first CPU of a replay has its number");
	tap_eq(cpu.lost, 17, "a replay counts lost records by CPU");
	tap_eq(cpu.delivered, 3, "a replay counts delivered records by CPU");
	tap_eq(cpu.newest_ns, 300, "a replay knows the newest record of a CPU");
	tap_eq(memwatch_stream_get_cpu_stats(stream, 1, &cpu), 1, "a replay has a second CPU");
	tap_eq(cpu.cpu, 65535, "the second CPU of a replay has its number");
	tap_eq(memwatch_stream_get_cpu_stats(stream, 2, &cpu), 0, "a replay has no third CPU");
	memwatch_stream_unref(stream);
}

static void test_replay_cut_off(void)
{
	MEMWATCH_OPTS(memwatch_stream_stats, stats);
	const struct memwatch_record_header *record;
	struct memwatch_stream *stream;
	struct stat st;

	if (stat(path, &st) || truncate(path, st.st_size - 5) ||
	    memwatch_stream_open_file(ctx, path, &stream))
		abort();
	memwatch_stream_get_stats(stream, &stats);
	tap_ok(stats.truncated, "a replay of a file that was cut off says so");
	tap_eq(memwatch_stream_next(stream, &record), 1,
	       "a replay of a file that was cut off delivers records");
	tap_eq(memwatch_stream_stop(stream), 0, "a replay can be stopped");
	tap_eq(memwatch_stream_next(stream, &record), 0, "a replay that was stopped has ended");
	memwatch_stream_unref(stream);
}

int main(void)
{
	struct batch batch = { 0 };

	tap_start();
	if (!kit_open())
		return EXIT_FAILURE;
	test_killed();
	write_replay_file(&batch);
	test_replay(&batch);
	test_replay_cut_off();
	batch_free(&batch);
	test_full();
	kit_close();
	return tap_done();
}
