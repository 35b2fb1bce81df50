// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The first process of a lab guest. It mounts what a usual Linux system has, runs one
 * command, looks for memory leaks, and writes the success word to the second serial port
 * if all of that went well. To the host, every other end of the guest is a failure.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MODULES	 "/lab/modules.list"
#define ARGV	 "/lab/argv"
#define KMEMLEAK "/sys/kernel/debug/kmemleak"

__attribute__((format(printf, 1, 2))) static void print_line(const char *fmt, ...)
{
	va_list ap;

	printf("lab: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

static void end_guest(void) __attribute__((noreturn));

static void end_guest(void)
{
	sync();
	/* QEMU runs with -no-reboot, so this ends it. */
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void end_with_error(const char *what)
{
	print_line("%s: %s", what, strerror(errno));
	end_guest();
}

/* A kernel may lack what is not @required; otherwise an error ends the guest. */
static void mount_on(const char *type, const char *dir, const char *options, int required)
{
	if (mkdir(dir, 0755) && errno != EEXIST && required)
		end_with_error(dir);
	if (mount(type, dir, type, MS_NOSUID, options) && required)
		end_with_error(dir);
}

/* Returns 0, also if this kernel has no such file, or -1. */
static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	ssize_t wrote;

	if (fd < 0)
		return 0;
	wrote = write(fd, text, strlen(text));
	if (wrote < 0)
		print_line("%s: %s", path, strerror(errno));
	close(fd);
	return wrote < 0 ? -1 : 0;
}

/* The kernel may have started us without a console, because /dev was empty. */
static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR);

	if (fd < 0)
		return;
	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
	if (fd > 2)
		close(fd);
}

static void load_modules(void)
{
	char path[256];
	FILE *list = fopen(MODULES, "re");
	int fd;

	if (!list)
		end_with_error(MODULES);
	while (fgets(path, sizeof(path), list)) {
		path[strcspn(path, "\n")] = 0;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			end_with_error(path);
		if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
			end_with_error(path);
		close(fd);
	}
	fclose(list);
}

static void bring_up_loopback(void)
{
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr))
		print_line("lo: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void make_system(void)
{
	struct rlimit core = { 0, 0 };

	umask(022);
	mount_on("proc", "/proc", NULL, 1);
	mount_on("sysfs", "/sys", NULL, 1);
	mount_on("devtmpfs", "/dev", "mode=0755", 1);
	open_console();
	mount_on("devpts", "/dev/pts", "ptmxmode=0666", 0);
	mount_on("tmpfs", "/dev/shm", "mode=1777", 1);
	mount_on("tmpfs", "/run", "mode=0755", 1);
	mount_on("tmpfs", "/tmp", "mode=1777", 1);
	mount_on("debugfs", "/sys/kernel/debug", NULL, 0);
	mount_on("tracefs", "/sys/kernel/tracing", NULL, 0);
	mount_on("bpf", "/sys/fs/bpf", "mode=0700", 0);
	mount_on("cgroup2", "/sys/fs/cgroup", NULL, 0);
	mkdir("/run/lock", 01777);
	if (symlink("/proc/self/fd", "/dev/fd") && errno != EEXIST)
		end_with_error("/dev/fd");

	write_file("/proc/sys/kernel/panic_on_rcu_stall", "1");
	write_file("/proc/sys/kernel/hung_task_panic", "1");
	write_file("/proc/sys/kernel/kptr_restrict", "0");
	setrlimit(RLIMIT_CORE, &core);

	load_modules();
	bring_up_loopback();
	if (mkdir("/out", 0755) && errno != EEXIST)
		end_with_error("/out");
	if (mount("out", "/out", "9p", 0,
		  "trans=virtio,version=9p2000.L,msize=512000,cache=none,access=any"))
		end_with_error("/out");
}

/* The length of KEY=VALUE on the kernel's command line, or 0 if it is not there. */
static int read_kernel_parameter(const char *key, char *value, size_t size)
{
	char line[4096], *at;
	FILE *f = fopen("/proc/cmdline", "re");
	size_t len = strlen(key);

	if (!f || !fgets(line, sizeof(line), f))
		end_with_error("/proc/cmdline");
	fclose(f);
	for (at = strtok(line, " \n"); at; at = strtok(NULL, " \n"))
		if (!strncmp(at, key, len) && at[len] == '=')
			return snprintf(value, size, "%s", at + len + 1);
	return 0;
}

/* The file holds the words of the command, each ended by a NUL. */
static char **read_argv(void)
{
	static char words[65536];
	static char *argv[1024];
	int fd = open(ARGV, O_RDONLY | O_CLOEXEC), n = 0;
	ssize_t got;
	char *at;

	got = fd < 0 ? -1 : read(fd, words, sizeof(words) - 1);
	if (got <= 0)
		end_with_error(ARGV);
	close(fd);
	for (at = words; at < words + got && n < 1023; at += strlen(at) + 1)
		argv[n++] = at;
	return argv;
}

static void redirect_to_file(int to, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);

	if (fd < 0 || dup2(fd, to) < 0)
		_exit(126);
	close(fd);
}

static void take_console(void)
{
	int fd;

	setsid();
	fd = open("/dev/ttyS0", O_RDWR);
	if (fd < 0)
		_exit(126);
	ioctl(fd, TIOCSCTTY, 0);
	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
}

static int run_command(char **argv, int console)
{
	pid_t pid = fork(), got;
	int status = 0;

	if (pid < 0)
		end_with_error("fork");
	if (!pid) {
		if (console) {
			take_console();
		} else {
			setsid();
			close(0);
			open("/dev/null", O_RDONLY);
			redirect_to_file(1, "/out/stdout.log");
			redirect_to_file(2, "/out/stderr.log");
		}
		if (chdir("/lab"))
			_exit(126);
		execvp(argv[0], argv);
		dprintf(2, "lab: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	/* We are the parent of orphans, too. */
	do
		got = wait(&status);
	while (got != pid && (got > 0 || errno == EINTR));
	if (got != pid)
		end_with_error("wait");
	if (WIFSIGNALED(status)) {
		print_line("the command was ended by signal %d", WTERMSIG(status));
		return 0;
	}
	print_line("the command exited with %d", WEXITSTATUS(status));
	return WEXITSTATUS(status) == 0;
}

/* Copy @from up to its end to @to; returns the number of bytes, or -1. */
static long copy_file(const char *from, const char *to, int flags)
{
	static char buf[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC | flags);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t got = -1;
	long sum = 0;

	if (in >= 0 && out >= 0) {
		/* EPIPE: the kernel log was overwritten meanwhile; go on with what it has. */
		while ((got = read(in, buf, sizeof(buf))) > 0 ||
		       (got < 0 && (errno == EPIPE || errno == EINTR))) {
			if (got < 0)
				continue;
			if (write(out, buf, got) != got) {
				got = -1;
				break;
			}
			sum += got;
		}
		if (got < 0 && errno == EAGAIN)
			got = 0;
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return got < 0 ? -1 : sum;
}

/*
 * kmemleak reports an object that is older than five seconds, if one scan finds no pointer
 * to it and its contents are the same in the next scan. When it had no memory for its own
 * objects, it turns itself off, finds nothing any more, and refuses to scan.
 */
static int kmemleak_is_empty(void)
{
	char word[16] = "";

	read_kernel_parameter("kmemleak", word, sizeof(word));
	if (access(KMEMLEAK, F_OK) || !strcmp(word, "off"))
		return 1;
	print_line("looking for memory leaks");
	sleep(6);
	if (write_file(KMEMLEAK, "scan") || write_file(KMEMLEAK, "scan"))
		return 0;
	return !copy_file(KMEMLEAK, "/out/kmemleak.log", 0);
}

static void report_success(const char *word)
{
	int fd = open("/dev/ttyS1", O_WRONLY | O_NOCTTY);

	if (fd < 0 || dprintf(fd, "%s\n", word) < 0)
		print_line("ttyS1: %s", strerror(errno));
	/* close() waits until the word is sent. */
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	char word[64] = "", mode[16] = "";
	int console, good;

	if (getpid() != 1)
		return 1;
	setenv("PATH", "/lab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/root", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	setenv("TERM", "linux", 0);
	setenv("MEMWATCH_DISRUPTIVE", "yes", 1); /* the machine is there for tests only */
	make_system();
	sethostname("lab", 3);
	read_kernel_parameter("lab.word", word, sizeof(word));
	console = read_kernel_parameter("lab.mode", mode, sizeof(mode)) && !strcmp(mode, "shell");

	good = run_command(read_argv(), console);
	if (!console) {
		if (!kmemleak_is_empty()) {
			print_line("kmemleak found memory leaks, see kmemleak.log, or cannot scan");
			good = 0;
		}
		if (copy_file("/dev/kmsg", "/out/dmesg.log", O_NONBLOCK) < 0) {
			print_line("/dev/kmsg: %s", strerror(errno));
			good = 0;
		}
	}
	sync();
	if (good && *word)
		report_success(word);
	end_guest();
}
