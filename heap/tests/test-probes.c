// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The USDT probes are seen by a tracer that knows nothing of memwatch: bpftrace.
 */
#include "heap/tests/kit.h"

#define SCRIPT                                                                                     \
	"usdt:%s:otel_memory:alloc { @n = count(); @w = sum(arg2); @s[arg1] = count(); } "         \
	"usdt:%s:otel_memory:free { @f = count(); } "                                              \
	"interval:s:1 { printf(\"tick\\n\"); }"

/* The number behind @mark in @text; 0 if it is not there. */
static uint64_t number_behind(const char *text, const char *mark)
{
	const char *found = strstr(text, mark);

	return found ? strtoull(found + strlen(mark), NULL, 10) : 0;
}

static pid_t tracer_start(pid_t pid, int *ret_output)
{
	char script[3 * PATH_MAX], pid_text[16];
	int ends[2];
	pid_t tracer;

	snprintf(script, sizeof(script), SCRIPT, kit.library, kit.library);
	snprintf(pid_text, sizeof(pid_text), "%d", (int)pid);
	if (pipe(ends))
		exit(1);
	tracer = fork();
	if (!tracer) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		execlp("bpftrace", "bpftrace", "-p", pid_text, "-e", script, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	*ret_output = ends[0];
	return tracer;
}

static size_t output_read(int output, char *text, size_t used, size_t size)
{
	ssize_t got = read(output, text + used, size - 1 - used);

	used += got > 0 ? (size_t)got : 0;
	text[used] = 0;
	return got > 0 ? used : 0;
}

int main(int argc, char **argv)
{
	static char text[1 << 16];
	struct kit_run run;
	size_t used = 0, more;
	uint64_t samples, weight;
	int output, status, input[2];
	pid_t tracer;
	char answer;

	(void)argc;
	tap_start();
	if (geteuid() || system("bpftrace --version >/dev/null 2>&1"))
		tap_skip_all("needs root and bpftrace");
	kit_init(argv[0]);
	if (pipe2(input, O_CLOEXEC))
		return 1;
	dup2(input[0], STDIN_FILENO);
	kit_start(&run, NULL, "MEMWATCH_HEAP_RATE=10000 MEMWATCH_HEAP_SEED=5",
		  KIT_ARGV(kit.work, "steps"));
	/* The program has started when it answers; the tracer has attached when it ticks. */
	if (write(input[1], "\n", 1) != 1 || read(run.output, &answer, 1) != 1)
		return 1;
	tracer = tracer_start(run.pid, &output);
	while (!strstr(text, "tick") && (more = output_read(output, text, used, sizeof(text))))
		used = more;
	for (int n = 0; n < 5; n++)
		if (write(input[1], "\n", 1) != 1 || read(run.output, &answer, 1) != 1)
			return 1;
	kill(tracer, SIGINT);
	while ((more = output_read(output, text, used, sizeof(text))))
		used = more;
	waitpid(tracer, &status, 0);
	close(input[1]);
	kit_finish(&run);
	samples = number_behind(text, "@n: ");
	weight = number_behind(text, "@w: ");
	/* 5 MB in objects of 1000 bytes; bounds are four standard deviations. */
	tap_ok(samples > 380 && samples < 570, "bpftrace sees the samples (%lu)",
	       (unsigned long)samples);
	tap_ok(weight > 4000000 && weight < 6000000, "their weights add up to the bytes (%lu)",
	       (unsigned long)weight);
	tap_eq(number_behind(text, "@s[1000]: "), samples, "the size is that of the request");
	if (!samples)
		tap_note("%s", text);
	return tap_done();
}
