// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * attack: what a hostile user does to the module and a shell cannot do. Used by attacks.sh.
 *
 *	attack as [user=N] [group=N] [keep] [bare] [new=user,pid,mnt,net] -- COMMAND...
 *		runs COMMAND as that user and group. "keep" leaves it CAP_PERFMON, "bare"
 *		leaves root no capability at all; "new" puts it into new namespaces, with a
 *		/proc of its own if the mount namespace is one of them.
 *	attack hang DIR
 *		mounts a FUSE file system on DIR. Its only file, "page", has one page, and whoever
 *		reads it waits until this program ends. Prints "ready", and "read" for each reader.
 *	attack open FILE
 *		opens FILE, reads a byte of it unless it is a device, and prints the errno.
 *	attack page FILE set|get|argument
 *		calls the module with memory that is mapped from FILE: the mask of SET_CONFIG,
 *		the mask of GET_CONFIG, or the argument of SET_CONFIG itself.
 *	attack fault set|get|argument
 *		the same with memory whose page faults go to userfaultfd, where nobody answers.
 *		Prints "called", and "read" when the module waits in such a page fault.
 *	attack dump MILLISECONDS, attack start MILLISECONDS
 *		calls DUMP, or START and STOP, as fast as possible; prints how often.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <linux/memwatch.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEVICE	  "/dev/memwatch"
#define PAGE	  4096UL
#define NODE_FILE 2

static void fail(const char *what)
{
	fprintf(stderr, "attack: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* ------------------------------------------------------------------- as */

struct identity {
	unsigned int user, group;
	bool keep, bare;
	int new_namespaces;
};

static int parse_namespaces(const char *list)
{
	return (strstr(list, "user") ? CLONE_NEWUSER : 0) |
	       (strstr(list, "pid") ? CLONE_NEWPID : 0) | (strstr(list, "mnt") ? CLONE_NEWNS : 0) |
	       (strstr(list, "net") ? CLONE_NEWNET : 0);
}

static void write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail(path);
	close(fd);
}

/* Root of the host is root in the new user namespace: the case that looks most alike. */
static void enter_namespaces(int flags)
{
	int status;
	pid_t pid;

	if (!flags)
		return;
	if (unshare(flags))
		fail("unshare");
	if (flags & CLONE_NEWUSER) {
		write_map("/proc/self/setgroups", "deny");
		write_map("/proc/self/uid_map", "0 0 1");
		write_map("/proc/self/gid_map", "0 0 1");
	}
	/* Only children are in the new pid namespace. */
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid) {
		if (waitpid(pid, &status, 0) < 0)
			fail("waitpid");
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
	}
	if (flags & CLONE_NEWNS && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		fail("mount /");
	if (flags & CLONE_NEWNS && flags & CLONE_NEWPID && mount("proc", "/proc", "proc", 0, NULL))
		fail("mount /proc");
}

/* Leaves the process the capability @number only; none for a negative number. */
static void limit_capabilities(int number)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	int cap;

	if (number >= 0) {
		data[number / 32].permitted = 1U << number % 32;
		data[number / 32].effective = data[number / 32].permitted;
		data[number / 32].inheritable = data[number / 32].permitted;
	}
	/* A program that root executes gets everything that is in the bounding set. */
	for (cap = 0; !geteuid() && cap < 64; cap++)
		if (cap != number)
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (syscall(SYS_capset, &head, data))
		fail("capset");
	if (number >= 0 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0))
		fail("ambient capability");
}

static void take_identity(const struct identity *id)
{
	gid_t group = id->group;

	enter_namespaces(id->new_namespaces);
	if (id->user || id->group) {
		if (prctl(PR_SET_KEEPCAPS, id->keep, 0, 0, 0) || setgroups(1, &group) ||
		    setresgid(group, group, group) || setresuid(id->user, id->user, id->user))
			fail("change of user");
	}
	if (id->keep || id->bare)
		limit_capabilities(id->keep ? CAP_PERFMON : -1);
}

static int run_as(char **argv)
{
	struct identity id = { 0 };

	for (; *argv && strcmp(*argv, "--"); argv++) {
		if (!strncmp(*argv, "user=", 5))
			id.user = strtoul(*argv + 5, NULL, 10);
		else if (!strncmp(*argv, "group=", 6))
			id.group = strtoul(*argv + 6, NULL, 10);
		else if (!strncmp(*argv, "new=", 4))
			id.new_namespaces = parse_namespaces(*argv + 4);
		else if (!strcmp(*argv, "keep"))
			id.keep = true;
		else if (!strcmp(*argv, "bare"))
			id.bare = true;
	}
	if (!*argv || !argv[1])
		return 2;
	take_identity(&id);
	execvp(argv[1], argv + 1);
	fail(argv[1]);
	return 2;
}

/* ----------------------------------------------------------------- hang */

static void fuse_reply(int fd, const struct fuse_in_header *in, int error, const void *data,
		       size_t size)
{
	struct {
		struct fuse_out_header head;
		char data[256];
	} out = { .head = {
			  .len = sizeof(out.head) + size, .error = -error, .unique = in->unique } };

	if (size)
		memcpy(out.data, data, size);
	if (write(fd, &out, out.head.len) < 0)
		perror("attack: reply");
}

static struct fuse_attr fuse_describe(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.size = node == NODE_FILE ? PAGE : 0,
		.mode = node == NODE_FILE ? S_IFREG | 0666 : S_IFDIR | 0755,
		.nlink = 1,
		.blksize = PAGE,
	};
}

static void fuse_serve(int fd, const struct fuse_in_header *in)
{
	/* Without read-ahead the kernel reads in the page fault itself, and is not killed there. */
	struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = PAGE };
	struct fuse_entry_out entry = { .nodeid = NODE_FILE, .attr = fuse_describe(NODE_FILE) };
	struct fuse_attr_out attr = { .attr = fuse_describe(in->nodeid) };
	struct fuse_open_out opened = { .fh = 1 };

	switch (in->opcode) {
	case FUSE_INIT:
		fuse_reply(fd, in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		fuse_reply(fd, in, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		fuse_reply(fd, in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		fuse_reply(fd, in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		printf("read\n");
		fflush(stdout);
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
		fuse_reply(fd, in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		fuse_reply(fd, in, ENOSYS, NULL, 0);
	}
}

static int serve_hanging_file(const char *dir)
{
	static union {
		struct fuse_in_header head;
		char bytes[1 << 17];
	} in;
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 fd);
	if (fd < 0 || mount("attack", dir, "fuse", MS_NOSUID | MS_NODEV, options))
		fail(dir);
	printf("ready\n");
	fflush(stdout);
	while (read(fd, &in, sizeof(in)) > 0 || errno == EINTR || errno == ENOENT)
		fuse_serve(fd, &in.head);
	return 0;
}

/* ---------------------------------------------------------- open, page */

static int open_file(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY), error = fd < 0 ? errno : 0;
	char byte;

	if (!error && !fstat(fd, &st) && S_ISREG(st.st_mode) && read(fd, &byte, 1) < 0)
		error = errno;
	printf("%s\n", error ? strerrorname_np(error) : "opened");
	return error != 0;
}

static void *map_page(const char *path)
{
	int file = open(path, O_RDWR);
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (file < 0 || page == MAP_FAILED)
		fail(path);
	return page;
}

/* A child takes the page fault, and keeps it for ever. */
static void *map_fault(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = { .range = { (unsigned long)page, PAGE },
					.mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffd_msg fault;
	pid_t pid;

	if (fd < 0 || page == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &area))
		fail("userfaultfd");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid)
		return page;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(fd, &fault, sizeof(fault)) == sizeof(fault)) {
		printf("read\n");
		fflush(stdout);
	}
	for (;;)
		pause();
}

static int call_with_page(void *page, const char *what)
{
	struct memwatch_config config = { .size = sizeof(config), .cpumask_bytes = PAGE / 8 };
	struct memwatch_config *arg = &config;
	int device = open(DEVICE, O_RDWR);

	if (device < 0)
		fail(DEVICE);
	config.cpumask = (unsigned long)page;
	if (!strcmp(what, "set"))
		config.flags = MEMWATCH_CONFIG_CPUMASK;
	else if (!strcmp(what, "argument"))
		arg = page;
	printf("called\n");
	fflush(stdout);
	if (ioctl(device, strcmp(what, "get") ? MEMWATCH_IOC_SET_CONFIG : MEMWATCH_IOC_GET_CONFIG,
		  arg))
		fail(what);
	return 0;
}

/* --------------------------------------------------------- dump, start */

static unsigned long read_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000UL + now.tv_nsec / 1000000;
}

static int open_device(void)
{
	int fd = open(DEVICE, O_RDWR);

	if (fd < 0)
		fail(DEVICE);
	return fd;
}

static int repeat_dump(unsigned long milliseconds)
{
	struct memwatch_start start = { .size = sizeof(start) };
	unsigned long end = read_clock_ms() + milliseconds, good = 0, records = 0;
	int fd = open_device();

	if (ioctl(fd, MEMWATCH_IOC_START, &start))
		fail("START");
	while (read_clock_ms() < end) {
		struct memwatch_dump dump = { .size = sizeof(dump) };

		if (ioctl(fd, MEMWATCH_IOC_DUMP, &dump))
			continue;
		good++;
		records += dump.count + 2;
	}
	printf("dumps=%lu records=%lu\n", good, records);
	return 0;
}

static int repeat_start(unsigned long milliseconds)
{
	struct memwatch_start start = { .size = sizeof(start) };
	struct memwatch_stop stop = { .size = sizeof(stop) };
	unsigned long end = read_clock_ms() + milliseconds, good = 0;
	int fd = open_device();

	while (read_clock_ms() < end)
		good += !ioctl(fd, MEMWATCH_IOC_START, &start) &&
			!ioctl(fd, MEMWATCH_IOC_STOP, &stop);
	printf("starts=%lu\n", good);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (!strcmp(what, "as"))
		return run_as(argv + 2);
	if (!strcmp(what, "hang"))
		return serve_hanging_file(argv[2]);
	if (!strcmp(what, "open"))
		return open_file(argv[2]);
	if (!strcmp(what, "page") && argc > 3)
		return call_with_page(map_page(argv[2]), argv[3]);
	if (!strcmp(what, "fault"))
		return call_with_page(map_fault(), argv[2]);
	if (!strcmp(what, "dump"))
		return repeat_dump(strtoul(argv[2], NULL, 10));
	if (!strcmp(what, "start"))
		return repeat_start(strtoul(argv[2], NULL, 10));
	fprintf(stderr, "attack: see the comment at the top of attack.c\n");
	return 2;
}
