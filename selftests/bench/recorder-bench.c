// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What a recording costs: bytes a record on disk, without counters (as in a
 * virtual machine) and with random ones (the worst there is), and the memory of
 * a collector that records, cuts slots and sums up 34 000 records a second: a
 * minute of them, as fast as they can be made. Prints one line per budget: NAME
 * value unit budget ok|over.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <memwatch/memwatch.h>

#define SECONDS 60

struct result {
	double bytes_per_record;
	double records_per_second; /* of the stream's own time */
	double nanoseconds;	   /* of CPU time a record */
};

static void die(struct memwatch_ctx *ctx, const char *what)
{
	fprintf(stderr, "recorder-bench: %s: %s\n", what, memwatch_ctx_error(ctx));
	exit(4);
}

static double cpu_seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static void collect(struct memwatch_ctx *ctx, const char *path, bool pmu, struct result *result)
{
	/* 4 CPUs, a tick each millisecond, about eight samples in it */
	MEMWATCH_OPTS(memwatch_null_opts, source, .cpus = 4, .processes = 200,
		      .samples_per_tick = 19, .pmu = pmu, .duration_ns = SECONDS * 1000000000ULL);
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .flags = MEMWATCH_RECORDING_OVERWRITE |
							      MEMWATCH_RECORDING_NO_SYNC);
	const struct memwatch_record_header *record;
	const struct memwatch_slot *slot;
	struct memwatch_recording *recording;
	struct memwatch_summary *summary;
	struct memwatch_stream *stream;
	struct memwatch_slots *slots;
	double start = cpu_seconds();
	struct stat status;
	double count = 0;

	if (memwatch_stream_open_null(ctx, &source, &stream) ||
	    memwatch_recording_create(ctx, path, memwatch_stream_info(stream), &opts, &recording) ||
	    memwatch_slots_new(ctx, NULL, NULL, &slots) ||
	    memwatch_summary_new(ctx, NULL, &summary))
		die(ctx, "open");
	while (memwatch_stream_next(stream, &record) == 1) {
		count++;
		if (memwatch_recording_write(recording, record) ||
		    memwatch_slots_feed(slots, record) < 0)
			die(ctx, "write");
		while (memwatch_slots_next(slots, &slot) == 1)
			memwatch_summary_feed(summary, slot);
	}
	if (memwatch_recording_close(recording) || stat(path, &status))
		die(ctx, "close");
	result->bytes_per_record = (double)status.st_size / count;
	result->records_per_second = count / SECONDS;
	result->nanoseconds = (cpu_seconds() - start) / count * 1e9;
	memwatch_summary_unref(summary);
	memwatch_slots_unref(slots);
	memwatch_stream_unref(stream);
}

static double peak_mib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	double kib = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "VmHWM: %lf kB", &kib) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kib / 1024;
}

static bool report(const char *name, double value, const char *unit, double budget)
{
	printf("%s %.3f %s %.3f %s\n", name, value, unit, budget, value <= budget ? "ok" : "over");
	return value <= budget;
}

int main(void)
{
	struct result plain, pmu;
	struct memwatch_ctx *ctx;
	char folder[80], path[96];
	bool ok;

	snprintf(folder, sizeof(folder), "%s/memwatch-bench-XXXXXX", P_tmpdir);
	if (!mkdtemp(folder) || memwatch_ctx_new(NULL, &ctx))
		return 4;
	snprintf(path, sizeof(path), "%s/recording", folder);
	collect(ctx, path, false, &plain);
	collect(ctx, path, true, &pmu);
	unlink(path);
	rmdir(folder);

	ok = report("recorder_bytes_per_record", plain.bytes_per_record, "B", 12);
	ok &= report("recorder_bytes_per_record_random_counters", pmu.bytes_per_record, "B", 12);
	ok &= report("collector_rss", peak_mib(), "MiB", 30);
	fprintf(stderr, "recorder-bench: %.0f records a second, %.0f ns of CPU time each\n",
		pmu.records_per_second, pmu.nanoseconds);
	memwatch_ctx_unref(ctx);
	return ok ? 0 : 1;
}
