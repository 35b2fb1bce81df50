// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Asks the opener of "heap report" for files, as a reader would that a hostile profile has taken
 * over: it must get no other file than the map of perf of the process that the profile is of.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmds/heap/opener.h"
#include "tap.h"

#define OWNER	 12345
#define STRANGER 12346
#define TMP	 P_tmpdir

enum { PROFILE_IN_FILE, PROFILE_OF_PROCESS };

static struct memwatch_ctx *ctx;
/* The root directory of the process, and of the profiles in files if it is the sysroot. */
static char root[] = TMP "/memwatch-opener.XXXXXX";

static const char *below_root(const char *path)
{
	static char full[4096];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return full;
}

static void must(int result, const char *what)
{
	if (result >= 0)
		return;
	printf("Bail out! %s: %m\n", what);
	exit(EXIT_FAILURE);
}

static void make_file(const char *path, uid_t owner, mode_t mode)
{
	int fd = open(below_root(path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	must(fd, path);
	must((int)write(fd, "1000 10 secret\n", 15), path);
	must(fchown(fd, owner, owner), path);
	close(fd);
}

static void make_folder(const char *path)
{
	must(mkdir(below_root(path), 0755), path);
}

/* As root of the tests sees it: an absolute link leads out of the root directory of the process. */
static void make_link(const char *path, const char *to)
{
	must(symlink(to, below_root(path)), path);
}

static void remake_tmp(const char *link)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", below_root(TMP));
	must(system(command), "rm");
	if (link)
		make_link(TMP, link);
	else
		make_folder(TMP);
}

/* What the opener answers to one request. */
static bool is_opened(const char *sysroot, uint32_t pid, uint32_t profile, const char *path)
{
	const struct heap_owner owners[] = {
		[PROFILE_IN_FILE] = { .uid = OWNER, .gid = OWNER },
		[PROFILE_OF_PROCESS] = { .pid = pid, .uid = OWNER, .gid = OWNER },
	};
	struct heap_opener opener;
	int fd;

	must(heap_opener_start(&opener, ctx, sysroot, owners, 2), "heap_opener_start");
	fd = heap_opener_open(&opener, profile, path);
	heap_opener_stop(&opener);
	while (wait(NULL) < 0)
		;
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool is_opened_in_file(const char *path)
{
	return is_opened(root, 0, PROFILE_IN_FILE, below_root(path));
}

static void test_owners(void)
{
	make_file(TMP "/perf-7.map", OWNER, 0600);
	tap_ok(is_opened_in_file(TMP "/perf-7.map"), "a map of the owner of the profile is opened");
	make_file(TMP "/perf-8.map", STRANGER, 0644);
	tap_ok(!is_opened_in_file(TMP "/perf-8.map"), "a map of another user is not opened");
	make_file(TMP "/perf-9.map", 0, 0644);
	tap_ok(is_opened_in_file(TMP "/perf-9.map"),
	       "a map of root that everybody may read is opened");
	make_file(TMP "/perf-10.map", 0, 0600);
	tap_ok(!is_opened_in_file(TMP "/perf-10.map"),
	       "a map of root that its owner alone may read is not opened");
}

static void test_kinds(void)
{
	make_link(TMP "/perf-11.map", "perf-7.map");
	tap_ok(!is_opened_in_file(TMP "/perf-11.map"), "a symbolic link to a map is not opened");
	must(mkfifo(below_root(TMP "/perf-12.map"), 0666), "mkfifo");
	must(chown(below_root(TMP "/perf-12.map"), OWNER, OWNER), "chown");
	tap_ok(!is_opened_in_file(TMP "/perf-12.map"),
	       "a pipe with the name of a map is not opened");
	make_folder(TMP "/perf-13.map");
	must(chown(below_root(TMP "/perf-13.map"), OWNER, OWNER), "chown");
	tap_ok(!is_opened_in_file(TMP "/perf-13.map"),
	       "a folder with the name of a map is not opened");
}

static void test_places(void)
{
	make_folder("/home");
	make_folder(TMP "/home");
	make_file("/home/perf-7.map", OWNER, 0600);
	make_file(TMP "/home/perf-7.map", OWNER, 0600);
	make_file(TMP "/perf-7.map.map", OWNER, 0600);
	tap_ok(!is_opened_in_file("/home/perf-7.map"), "a map outside /tmp is not opened");
	tap_ok(!is_opened_in_file(TMP "/home/perf-7.map"),
	       "a map in a folder of /tmp is not opened");
	tap_ok(!is_opened_in_file(TMP "/../home/perf-7.map"), "a path with .. is not opened");
	tap_ok(!is_opened_in_file(TMP "/perf-7.map.map"),
	       "a name with more at its end is not opened");
	tap_ok(!is_opened_in_file(TMP "/perf-+7.map"), "a name without a number is not opened");
	tap_ok(!is_opened(root, 0, PROFILE_IN_FILE, TMP "/perf-7.map"),
	       "with a sysroot, nothing outside it is opened");
	tap_ok(!is_opened(NULL, 0, PROFILE_IN_FILE, below_root(TMP "/perf-7.map")),
	       "without a sysroot, only the map in /tmp is opened");
}

/* A process decides what /tmp is in its root directory. */
static void test_links(void)
{
	char outside[64];

	snprintf(outside, sizeof(outside), "%s/home", root);
	remake_tmp(outside);
	tap_ok(!is_opened_in_file(TMP "/perf-7.map"),
	       "a link in place of /tmp does not lead out of the sysroot");
	remake_tmp("/home");
	tap_ok(is_opened_in_file(TMP "/perf-7.map"),
	       "a link in place of /tmp leads to a folder in the sysroot");
	remake_tmp(NULL);
}

/* A process in this root directory. Returns its number. */
static pid_t start_process(void)
{
	int ends[2];
	pid_t pid;
	char byte;

	must(pipe2(ends, O_CLOEXEC), "pipe");
	pid = fork();
	must(pid, "fork");
	if (!pid) {
		must(chroot(root), "chroot");
		must(chdir("/"), "chdir");
		must((int)write(ends[1], "", 1), "write");
		pause();
		_exit(0);
	}
	close(ends[1]);
	must(read(ends[0], &byte, 1) == 1 ? 0 : -1, "the process in another root directory");
	close(ends[0]);
	return pid;
}

static void test_process(void)
{
	pid_t pid = start_process();
	char own[64], other[64];

	snprintf(own, sizeof(own), TMP "/perf-%d.map", (int)pid);
	snprintf(other, sizeof(other), TMP "/perf-%d.map", (int)pid + 1);
	make_file(own, OWNER, 0600);
	make_file(other, OWNER, 0600);
	tap_ok(is_opened(NULL, (uint32_t)pid, PROFILE_OF_PROCESS, own),
	       "the map of a process is opened in its root directory");
	tap_ok(!is_opened(NULL, (uint32_t)pid, PROFILE_OF_PROCESS, other),
	       "the map of another process in this directory is not opened");
	tap_ok(!is_opened(NULL, (uint32_t)pid, PROFILE_OF_PROCESS, below_root(own)),
	       "the same map by its path outside the directory is not opened");
	tap_ok(is_opened(root, (uint32_t)pid, PROFILE_OF_PROCESS, below_root(own)),
	       "the map of a process is opened in a sysroot");
	snprintf(other, sizeof(other), "/perf-%d.map", (int)pid);
	make_file(other, OWNER, 0600);
	remake_tmp(root);
	tap_ok(!is_opened(NULL, (uint32_t)pid, PROFILE_OF_PROCESS, own),
	       "a link in place of /tmp does not lead out of the root directory of a process");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tap_ok(!is_opened(NULL, (uint32_t)pid, PROFILE_OF_PROCESS, own),
	       "of a process that has ended, no map is opened");
}

int main(void)
{
	char command[128];

	tap_start();
	if (geteuid()) {
		tap_skip("the opener", "only root opens files for another user");
		return tap_done();
	}
	if (!mkdtemp(root) || chmod(root, 0755) || memwatch_ctx_new(NULL, &ctx))
		must(-1, "setup");
	make_folder(TMP);
	test_owners();
	test_kinds();
	test_places();
	test_links();
	test_process();
	memwatch_ctx_unref(ctx);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	must(system(command), "rm");
	return tap_done();
}
