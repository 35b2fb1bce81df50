// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads the files of /proc/memwatch while processes start and exit: in pieces of random
 * sizes and at random offsets, with several readers at once, and without privilege. A
 * reader that reads a file from its beginning to its end must always see consistent text.
 *
 * Usage: proc-fuzz [-n ROUNDS] [-s SEED]; as root, in the virtual machine, with the
 * module loaded. It starts a session of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
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

#include "prng.h"
#include "tap.h"

#define NOBODY	  65534
#define FILE_SIZE (1 << 20)
#define READERS	  3

enum { FILE_STATUS, FILE_RMIDS, FILE_OVERHEAD, NR_FILES };

static const char *const files[NR_FILES] = {
	[FILE_STATUS] = "/proc/memwatch/status",
	[FILE_RMIDS] = "/proc/memwatch/rmids",
	[FILE_OVERHEAD] = "/proc/memwatch/overhead",
};

/* clang-format off */
static const char *const status_keys[] = {
	"version", "abi", "schema", "backend", "backend_reason", "sessions",
	"sessions_started", "period_ns", "limbo_ns", "policy", "idle_stop", "cpumask",
	"filters", "rmids_total", "rmids_used", "rmids_limbo", "rmids_free", "processes",
	"processes_measured", "processes_waiting", "processes_filtered", "allocs", "frees",
	"promotions", "revocations", "exhausted", "untracked",
};
/* clang-format on */

static struct prng prng;
static char text[FILE_SIZE]; /* of the file that was read last */
/* Nothing is mapped here. Volatile, so that the compiler does not warn about it. */
static volatile uintptr_t bad_address = 0x10;

static unsigned int random_below(unsigned int n)
{
	return prng_below(&prng, n);
}

/*
 * Read a file into @text, in pieces of @piece bytes, or of random sizes if it is 0. Returns
 * the length, or -1 with errno.
 */
static ssize_t read_file(const char *file, unsigned int piece)
{
	size_t used = 0;
	ssize_t n;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	do {
		unsigned int want = piece ? piece : 1 + random_below(300);

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

/* The value of "KEY: VALUE" in @text; NULL if there is no such line. */
static const char *status_value(const char *key)
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

/* ULONG_MAX if there is no such line. */
static unsigned long status_number(const char *key)
{
	const char *found = status_value(key);

	return found ? strtoul(found, NULL, 10) : ~0UL;
}

/* Each of these returns NULL, or what is wrong with @text. */
static const char *check_status_text(void)
{
	unsigned int i;
	char *line, *end;

	for (i = 0; i < sizeof(status_keys) / sizeof(status_keys[0]); i++)
		if (!status_value(status_keys[i]))
			return status_keys[i];
	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			return "the last line has no newline";
		if (!memchr(line, ':', end - line))
			return "a line has no key";
	}
	if (status_number("rmids_total") != status_number("rmids_used") +
						    status_number("rmids_limbo") +
						    status_number("rmids_free"))
		return "rmids_total is not the sum of used, limbo and free";
	if (status_number("processes") != status_number("processes_measured") +
						  status_number("processes_waiting") +
						  status_number("processes_filtered"))
		return "processes is not the sum of measured, waiting and filtered";
	return NULL;
}

static const char *check_rmids_text(void)
{
	static unsigned char seen[65536];
	unsigned long rows = 0, count, rmid;
	char *line, *end, *p;

	memset(seen, 0, sizeof(seen));
	if (strncmp(text, "# ", 2))
		return "the header is missing";
	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			return "the last line has no newline";
		if (line == text)
			continue;
		if (*line == '#') {
			if (sscanf(line, "# end %lu\n", &count) != 1)
				return "a comment is not the end line";
			if (end[1])
				return "text follows the end line";
			return count == rows ? NULL : "the end line counts other than the lines";
		}
		rmid = strtoul(line, &p, 10);
		if (!rmid || rmid > 65535 || *p != '\t')
			return "a line does not begin with an RMID";
		if (seen[rmid]++)
			return "an RMID appears twice";
		for (count = 0, p = line; p < end; p++)
			count += *p == '\t';
		if (count != 8)
			return "a line does not have 9 columns";
		rows++;
	}
	return "the end line is missing";
}

static const char *check_overhead_text(void)
{
	char *line, *end;

	if (strncmp(text, "cpu 0: ticks=", 13))
		return "the line of CPU 0 is missing";
	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			return "the last line has no newline";
		if (!memchr(line, ':', end - line))
			return "a line has no key";
	}
	return NULL;
}

/* Read files from beginning to end; returns how often the text was inconsistent. */
static unsigned int read_in_order(unsigned int rounds)
{
	static const char *(*const check_text[NR_FILES])(void) = {
		[FILE_STATUS] = check_status_text,
		[FILE_RMIDS] = check_rmids_text,
		[FILE_OVERHEAD] = check_overhead_text,
	};
	unsigned int i, wrong = 0;

	for (i = 0; i < rounds; i++) {
		unsigned int file = random_below(NR_FILES);
		const char *why;

		/* Only "rmids" is consistent also if it takes several reads. */
		if (read_file(files[file], file == FILE_RMIDS && random_below(2) ? 0 : FILE_SIZE) <
		    0)
			why = strerror(errno);
		else
			why = check_text[file]();
		if (why && wrong++ < 5)
			printf("# %s: %s\n", files[file], why);
	}
	return wrong;
}

/* One access at a random offset; false if it has an effect that it must not have. */
static bool access_at_random(int fd)
{
	static char buffer[70000];
	off_t at = random_below(4) ? random_below(5000)
				   : (off_t)random_below(1 << 30) << random_below(30);

	switch (random_below(4)) {
	case 0:
		return lseek(fd, at, SEEK_SET) >= 0 || errno == EINVAL;
	case 1:
		return lseek(fd, -1, SEEK_SET) < 0 && errno == EINVAL;
	case 2:
		return read(fd, buffer, random_below(sizeof(buffer))) >= 0 || errno == EINVAL;
	default:
		return pread(fd, buffer, random_below(sizeof(buffer)), at) >= 0 || errno == EINVAL;
	}
}

/* Returns how many accesses had an effect that they must not have. */
static unsigned int read_at_random(unsigned int rounds)
{
	unsigned int i, j, wrong = 0;

	for (i = 0; i < rounds; i++) {
		int fd = open(files[random_below(NR_FILES)], O_RDONLY | O_CLOEXEC);

		if (fd < 0) {
			wrong++;
			continue;
		}
		for (j = 0; j < 10; j++)
			wrong += !access_at_random(fd);
		if (read(fd, (void *)bad_address, 100) > 0)
			wrong++;
		if (write(fd, "x", 1) >= 0)
			wrong++;
		close(fd);
	}
	return wrong;
}

static pid_t spawn_reader(unsigned int (*reader)(unsigned int), unsigned int rounds,
			  unsigned int seed)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	prng.state = seed;
	_exit(reader(rounds) ? 1 : 0);
}

/*
 * A process that forks all the time. It closes @device: the last child may outlive us, and
 * must not keep the session open.
 */
static pid_t spawn_forking_process(int device)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	close(device);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		pid_t child = fork();

		if (!child) {
			/* The files must escape this name. */
			prctl(PR_SET_NAME, "a\tb\\c\nd");
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

static bool exits_with_success(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       !WEXITSTATUS(status);
}

/* A child without privilege must get EACCES for each file. */
static bool nobody_gets_eacces(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		unsigned int i;

		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(2);
		for (i = 0; i < NR_FILES; i++)
			if (open(files[i], O_RDONLY) >= 0 || errno != EACCES)
				_exit(3 + i);
		_exit(0);
	}
	return exits_with_success(pid);
}

static void test_permissions(void)
{
	struct stat st;
	unsigned int i;

	for (i = 0; i < NR_FILES; i++) {
		memset(&st, 0xff, sizeof(st));
		tap_eq(stat(files[i], &st), 0, "%s exists", files[i]);
		tap_eq(st.st_mode & 07777, 0400, "%s has mode 0400", files[i]);
		tap_eq(st.st_uid, 0, "%s belongs to root", files[i]);
		tap_ok(read_file(files[i], FILE_SIZE) >= 0, "root reads %s without a session",
		       files[i]);
	}
	tap_ok(nobody_gets_eacces(), "a user without privilege gets EACCES for every file");
}

static int test_session(void)
{
	struct memwatch_start start = { .size = sizeof(start) };
	int device = open("/dev/memwatch", O_RDWR | O_CLOEXEC);

	tap_ok(device >= 0, "root opens the device");
	tap_eq(ioctl(device, MEMWATCH_IOC_START, &start), 0, "a session starts");
	tap_ok(read_file(files[FILE_STATUS], FILE_SIZE) > 0, "status can be read in a session");
	tap_eq(status_number("sessions_started"), 1, "status counts the started session");
	return device;
}

static void test_readers(unsigned int rounds, unsigned int seed)
{
	pid_t readers[READERS];
	unsigned int i;

	tap_eq(read_in_order(rounds), 0,
	       "%u files read from beginning to end are consistent while processes fork", rounds);
	tap_eq(read_at_random(rounds), 0,
	       "%u files accept reads at random offsets, and refuse writes and bad addresses",
	       rounds);
	for (i = 0; i < READERS; i++)
		readers[i] = spawn_reader(i % 2 ? read_at_random : read_in_order, rounds,
					  seed + 1 + i);
	for (i = 0; i < READERS; i++)
		tap_ok(exits_with_success(readers[i]), "reader %u of %u at the same time succeeds",
		       i + 1, READERS);
}

static void test_after_close(void)
{
	tap_ok(read_file(files[FILE_STATUS], FILE_SIZE) > 0,
	       "status can be read after the last close");
	tap_eq(status_number("sessions"), 0, "no session is open after the last close");
	tap_eq(status_number("rmids_used"), 0, "no RMID is in use after the last close");
	tap_ok(read_file(files[FILE_RMIDS], 1) > 0, "rmids can be read byte by byte");
	tap_str_eq(check_rmids_text(), NULL, "an empty rmids file has a header and an end line");
}

int main(int argc, char **argv)
{
	unsigned int rounds = 300, seed = 1;
	int option, device;
	pid_t forks;

	while ((option = getopt(argc, argv, "n:s:")) != -1) {
		if (option == 'n')
			rounds = strtoul(optarg, NULL, 0);
		else if (option == 's')
			seed = strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	prng.state = seed;
	tap_plan(4 * NR_FILES + 1 + 4 + 2 + READERS + 5);
	test_permissions();
	device = test_session();
	forks = spawn_forking_process(device);
	test_readers(rounds, seed);
	kill(forks, SIGKILL);
	waitpid(forks, NULL, 0);
	close(device);
	test_after_close();
	return tap_done();
}
