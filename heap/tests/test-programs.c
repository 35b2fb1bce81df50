// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Real programs do under the profiler what they do without it, and leave a profile with complete
 * stacks.
 */
#include "heap/tests/kit.h"

/* The program without the profiler. */
static void plain_run(struct kit_run *run, const char *const *argv)
{
	int ends[2];

	if (pipe(ends))
		exit(1);
	memset(run, 0, sizeof(*run));
	run->pid = fork();
	if (!run->pid) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		setenv("PYTHONMALLOC", "malloc", 1);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(ends[1]);
	run->output = ends[0];
	kit_finish(run);
}

static void check_program(const char *name, const char *const *argv)
{
	const struct mw_heap_unwinder *health;
	struct kit_run plain, profiled;
	struct profile profile;

	if (access(argv[0], X_OK)) {
		tap_skip(name, "the program is not installed");
		return;
	}
	kit_empty();
	plain_run(&plain, argv);
	kit_run(&profiled, NULL, "MEMWATCH_HEAP_RATE=4K PYTHONMALLOC=malloc", argv);
	tap_eq(profiled.status, plain.status, "%s: exits as without the profiler", name);
	tap_ok(!strcmp(plain.text, profiled.text) && *plain.text,
	       "%s: prints what it prints without the profiler (%zu bytes)", name,
	       strlen(profiled.text));
	if (tap_ok(kit_open(&profile, profiled.pid), "%s: leaves a profile", name)) {
		health = &profile.header->unwinder;
		tap_ok(health->stacks > 10 && health->stacks_complete == health->stacks,
		       "%s: %lu of %lu stacks are complete", name,
		       (unsigned long)health->stacks_complete, (unsigned long)health->stacks);
		tap_eq(profile.header->counters.unseen_frees +
			       profile.header->counters.lost_samples,
		       0, "%s: no free and no sample is lost", name);
		profile_close(&profile);
	}
	kit_free(&plain);
	kit_free(&profiled);
}

int main(int argc, char **argv)
{
	char rust[PATH_MAX];

	(void)argc;
	kit_init(argv[0]);
	tap_start();
	check_program(
		"python3",
		KIT_ARGV("/usr/bin/python3", "-c",
			 "import json, threading\n"
			 "def work(n): print(len(json.dumps([[i] * 9 for i in range(n)])))\n"
			 "for n in range(5):\n"
			 "  t = threading.Thread(target=work, args=(2000,)); t.start(); t.join()"));
	check_program(
		"python3 with subprocesses",
		KIT_ARGV("/usr/bin/python3", "-c",
			 "import subprocess\n"
			 "for n in range(3): print(subprocess.check_output(['echo', str(n)]))"));
	check_program(
		"sqlite3",
		KIT_ARGV("/usr/bin/sqlite3", ":memory:",
			 "create table t (a, b); with recursive c (x) as (select 1 union all "
			 "select x + 1 from c where x < 5000) insert into t select x, 'y' || x "
			 "from c; select b, count(*) from t group by a % 7 order by b;"));
	check_program("perl", KIT_ARGV("/usr/bin/perl", "-e",
				       "my %h = map { $_ => [$_, \"v$_\"] } 1 .. 5000; "
				       "print join ' ', map { $h{$_}[1] } sort keys %h"));
	check_program("gdb, a C++ program",
		      KIT_ARGV("/usr/bin/gdb", "-nx", "-batch", "-ex", "print 6 * 7"));
	check_program("git", KIT_ARGV("/usr/bin/git", "help", "-a"));
	check_program("java", KIT_ARGV("/usr/bin/java", "--version"));
	snprintf(rust, sizeof(rust), "%.4000s/work-rust", kit.build);
	check_program("rust", KIT_ARGV(rust));
	return tap_done();
}
