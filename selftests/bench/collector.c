// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the collector does with each record, without a kernel: the null backend makes the records
 * of CPUS processors at 1 kHz, and "record" writes them as memwatchctl does; "read" only reads
 * them. collector.bench counts the instructions of both. "time" prints the CPU time that writing
 * takes, in percent of the time that the records span.
 *
 *	collector read|record|time CPUS TICKS FILE
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memwatch/memwatch.h>

#define PERIOD_NS 1000000ULL
#define PROCESSES 200

static void exit_with_error(struct memwatch_ctx *ctx, const char *what)
{
	fprintf(stderr, "collector: %s: %s\n", what, ctx ? memwatch_ctx_error(ctx) : "");
	exit(EXIT_FAILURE);
}

static double cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

/* Reads the whole stream, and writes it to @path unless that is NULL. Returns the records. */
static uint64_t copy_stream(struct memwatch_ctx *ctx, unsigned int cpus, unsigned int ticks,
			    const char *path)
{
	MEMWATCH_OPTS(memwatch_null_opts, opts, .cpus = cpus, .processes = PROCESSES, .pmu = 1,
		      .rdt = 1, .seed = 1, .period_ns = PERIOD_NS,
		      .duration_ns = ticks * PERIOD_NS);
	MEMWATCH_OPTS(memwatch_recording_opts, file, .flags = MEMWATCH_RECORDING_OVERWRITE,
		      .queue_bytes = 64 << 20);
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	const struct memwatch_record_header *record;
	struct memwatch_recording *recording = NULL;
	struct memwatch_stream *stream;
	uint64_t records = 0;

	if (memwatch_stream_open_null(ctx, &opts, &stream) ||
	    (path && memwatch_recording_create(ctx, path, memwatch_stream_get_info(stream), &file,
					       &recording)))
		exit_with_error(ctx, "start");
	while (memwatch_stream_next(stream, &record) == 1) {
		records++;
		if (recording && memwatch_recording_write(recording, record))
			exit_with_error(ctx, "write");
		/* The stream is as fast as it can be: the writer must not fall behind. */
		if (recording && records % 20000 == 0)
			memwatch_recording_flush(recording, 1);
	}
	if (recording) {
		memwatch_recording_flush(recording, 1);
		memwatch_recording_get_stats(recording, &stats);
		if (stats.lost || memwatch_recording_close(recording))
			exit_with_error(ctx, "records are lost");
		fprintf(stderr, "collector: %u CPUs: %.2f bytes per record\n", cpus,
			(double)stats.file_bytes / (double)records);
	}
	memwatch_stream_unref(stream);
	return records;
}

int main(int argc, char **argv)
{
	unsigned int cpus = argc == 5 ? (unsigned int)atoi(argv[2]) : 0;
	unsigned int ticks = argc == 5 ? (unsigned int)atoi(argv[3]) : 0;
	struct memwatch_ctx *ctx;
	double begin, read, both;
	uint64_t records;

	if (!cpus || !ticks) {
		fprintf(stderr, "usage: collector read|record|time CPUS TICKS FILE\n");
		return 2;
	}
	if (memwatch_ctx_new(NULL, &ctx))
		exit_with_error(NULL, "out of memory");
	if (strcmp(argv[1], "time") != 0) {
		records = copy_stream(ctx, cpus, ticks, argv[1][2] == 'c' ? argv[4] : NULL);
		printf("%llu\n", (unsigned long long)records);
		return EXIT_SUCCESS;
	}
	begin = cpu_ns();
	copy_stream(ctx, cpus, ticks, NULL);
	read = cpu_ns();
	copy_stream(ctx, cpus, ticks, argv[4]);
	both = cpu_ns();
	printf("%.2f\n", ((both - read) - (read - begin)) * 100 / ((double)ticks * PERIOD_NS));
	return EXIT_SUCCESS;
}
