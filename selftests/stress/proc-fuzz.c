// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads /proc/memwatch in every clumsy way while processes come and go: pieces
 * of odd sizes at odd places, several readers at once, no privilege. A reader
 * that goes through a file in order must always see a whole, consistent one.
 *
 * Usage: proc-fuzz [-n ROUNDS] [-s SEED]; as root, in the virtual machine, with
 * the module loaded. It starts a session of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/memwatch.h>

#include "tap.h"

#define NOBODY	  65534
#define FILE_SIZE (1 << 20)
#define READERS	  3

static const char *const files[] = {
	"/proc/memwatch/status",
	"/proc/memwatch/rmids",
	"/proc/memwatch/overhead",
};

static const char *const status_keys[] = {
	"version",
	"abi",
	"schema",
	"backend",
	"backend_reason",
	"sessions",
	"sessions_started",
	"period_ns",
	"limbo_ns",
	"policy",
	"idle_stop",
	"cpumask",
	"filters",
	"rmids_total",
	"rmids_used",
	"rmids_limbo",
	"rmids_free",
	"processes",
	"processes_measured",
	"processes_waiting",
	"processes_filtered",
	"allocs",
	"frees",
	"promotions",
	"revocations",
	"exhausted",
	"untracked",
};

static uint64_t prng = 1;
static char text[FILE_SIZE];
/* Nothing is mapped there; volatile, or the compiler knows too. */
static volatile uintptr_t bad_address = 0x10;

static unsigned int below(unsigned int n)
{
	prng ^= prng >> 12;
	prng ^= prng << 25;
	prng ^= prng >> 27;
	return (prng * 0x2545F4914F6CDD1DULL >> 32) % n;
}

/* Reads it all, in pieces of at most that many bytes; -1 and errno on failure. */
static ssize_t slurp(const char *file, unsigned int piece)
{
	size_t used = 0;
	ssize_t n;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	do {
		unsigned int want = piece ? piece : 1 + below(300);

		if (want > sizeof(text) - 1 - used)
			want = sizeof(text) - 1 - used;
		n = read(fd, text + used, want);
		if (n > 0)
			used += n;
	} while (n > 0);
	close(fd);
	text[used] = 0;
	return n < 0 ? -1 : (ssize_t)used;
}

static const char *value(const char *key)
{
	static char line[256];
	size_t length = strlen(key);
	char *at = text, *end;

	for (; at && *at; at = end ? end + 1 : NULL) {
		end = strchr(at, '\n');
		if (!strncmp(at, key, length) && at[length] == ':') {
			at += length + 1;
			at += strspn(at, " \t");
			snprintf(line, sizeof(line), "%.*s", end ? (int)(end - at) : 250, at);
			return line;
		}
	}
	return NULL;
}

static unsigned long number(const char *key)
{
	const char *found = value(key);

	return found ? strtoul(found, NULL, 10) : ~0UL;
}

/* NULL, or what is wrong with the text of "status". */
static const char *bad_status(void)
{
	unsigned int i;
	char *line, *end;

	for (i = 0; i < sizeof(status_keys) / sizeof(status_keys[0]); i++)
		if (!value(status_keys[i]))
			return status_keys[i];
	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			return "the last line does not end";
		if (!memchr(line, ':', end - line))
			return "a line without a key";
	}
	if (number("rmids_total") !=
	    number("rmids_used") + number("rmids_limbo") + number("rmids_free"))
		return "total is not used + limbo + free";
	if (number("processes") != number("processes_measured") + number("processes_waiting") +
					   number("processes_filtered"))
		return "processes is not measured + waiting + filtered";
	return NULL;
}

static const char *bad_rmids(void)
{
	static unsigned char seen[65536];
	unsigned long rows = 0, count, rmid;
	char *line, *end, *p;

	memset(seen, 0, sizeof(seen));
	if (strncmp(text, "# ", 2))
		return "no header";
	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			return "the last line does not end";
		if (line == text)
			continue;
		if (*line == '#') {
			if (sscanf(line, "# end %lu\n", &count) != 1)
				return "a comment that is not the end";
			if (end[1])
				return "text after the end";
			return count == rows ? NULL : "the count is not that of the lines";
		}
		rmid = strtoul(line, &p, 10);
		if (!rmid || rmid > 65535 || *p != '\t')
			return "a line without an RMID";
		if (seen[rmid]++)
			return "an RMID twice";
		for (count = 0, p = line; p < end; p++)
			count += *p == '\t';
		if (count != 8)
			return "a line without 9 columns";
		rows++;
	}
	return "no end";
}

static const char *bad_overhead(void)
{
	char *line, *end;

	if (strncmp(text, "cpu 0: ticks=", 13))
		return "no line of CPU 0";
	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			return "the last line does not end";
		if (!memchr(line, ':', end - line))
			return "a line without a key";
	}
	return NULL;
}

/* Rounds of in-order reads; returns how many saw something inconsistent. */
static unsigned int read_whole(unsigned int rounds)
{
	static const char *(*const bad[])(void) = { bad_status, bad_rmids, bad_overhead };
	unsigned int i, wrong = 0;

	for (i = 0; i < rounds; i++) {
		unsigned int file = below(3);
		const char *why;

		/* "status" need only be consistent where one read takes all of it. */
		if (slurp(files[file], file == 1 && below(2) ? 0 : FILE_SIZE) < 0)
			why = strerror(errno);
		else
			why = bad[file]();
		if (why && wrong++ < 5)
			printf("# %s: %s\n", files[file], why);
	}
	return wrong;
}

static unsigned int read_anywhere(unsigned int rounds)
{
	static char buffer[70000];
	unsigned int i, wrong = 0;

	for (i = 0; i < rounds; i++) {
		int fd = open(files[below(3)], O_RDONLY | O_CLOEXEC);
		unsigned int j;

		if (fd < 0) {
			wrong++;
			continue;
		}
		for (j = 0; j < 10; j++) {
			off_t at = below(4) ? below(5000) : (off_t)below(1 << 30) << below(30);
			ssize_t n;

			switch (below(4)) {
			case 0:
				if (lseek(fd, at, SEEK_SET) < 0 && errno != EINVAL)
					wrong++;
				break;
			case 1:
				if (lseek(fd, -1, SEEK_SET) >= 0 || errno != EINVAL)
					wrong++;
				break;
			case 2:
				n = read(fd, buffer, below(sizeof(buffer)));
				if (n < 0 && errno != EINVAL)
					wrong++;
				break;
			default:
				n = pread(fd, buffer, below(sizeof(buffer)), at);
				if (n < 0 && errno != EINVAL)
					wrong++;
				break;
			}
		}
		if (read(fd, (void *)bad_address, 100) > 0)
			wrong++;
		if (write(fd, "x", 1) >= 0)
			wrong++;
		close(fd);
	}
	return wrong;
}

static pid_t spawn_reader(unsigned int (*body)(unsigned int), unsigned int rounds,
			  unsigned int seed)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	prng = seed * 77ULL | 1;
	_exit(body(rounds) ? 1 : 0);
}

/* Without @device: the last child may outlive us, and must not hold the session. */
static pid_t spawn_forks(int device)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	close(device);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		pid_t child = fork();

		if (!child) {
			/* A name that needs escaping. */
			prctl(PR_SET_NAME, "a\tb\\c\nd");
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

static int wait_for(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       !WEXITSTATUS(status);
}

/* Exit status 0: every file refused with the right error. */
static int nobody_may_not_read(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		unsigned int i;

		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(2);
		for (i = 0; i < 3; i++)
			if (open(files[i], O_RDONLY) >= 0 || errno != EACCES)
				_exit(3 + i);
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	struct memwatch_start start = { .size = sizeof(start) };
	unsigned int rounds = 300, i, seed = 1;
	pid_t readers[READERS], forks;
	struct stat st;
	int option, device, good = 1;

	while ((option = getopt(argc, argv, "n:s:")) != -1) {
		if (option == 'n')
			rounds = strtoul(optarg, NULL, 0);
		else if (option == 's')
			seed = strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	prng = seed * 2 + 1;
	tap_plan(10);
	for (i = 0; i < 3; i++)
		good &= !stat(files[i], &st) && (st.st_mode & 07777) == 0440 && !st.st_uid;
	tap_ok(good, "the files have mode 0440 and belong to root");
	tap_ok(nobody_may_not_read(), "nobody gets EACCES");
	for (i = 0, good = 1; i < 3; i++)
		good &= slurp(files[i], FILE_SIZE) >= 0;
	tap_ok(good, "root reads all of them without a session");

	device = open("/dev/memwatch", O_RDWR | O_CLOEXEC);
	tap_ok(device >= 0 && !ioctl(device, MEMWATCH_IOC_START, &start), "a session starts");
	tap_ok(slurp(files[0], FILE_SIZE) > 0 && number("sessions_started") == 1,
	       "status knows of the session");
	forks = spawn_forks(device);
	tap_ok(!read_whole(rounds), "%u reads in order are consistent while processes fork",
	       rounds);
	tap_ok(!read_anywhere(rounds), "%u files read at random places", rounds);
	for (i = 0; i < READERS; i++)
		readers[i] = spawn_reader(i % 2 ? read_anywhere : read_whole, rounds, seed + i);
	for (i = 0, good = 1; i < READERS; i++)
		good &= wait_for(readers[i]);
	tap_ok(good, "%d readers at once", READERS);
	kill(forks, SIGKILL);
	waitpid(forks, NULL, 0);
	close(device);
	tap_ok(slurp(files[0], FILE_SIZE) > 0 && !number("sessions") && !number("rmids_used"),
	       "nothing is in use after the last close");
	tap_ok(slurp(files[1], 1) > 0 && !bad_rmids(), "an empty table has a header and an end");
	return tap_done();
}
