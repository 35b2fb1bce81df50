// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A confined child process. What it gives up, it gives up before it looks at any input:
 * its user and groups if that is root, new privileges by exec, files, memory and processor
 * time without bound, and by a filter all system calls but those that read files, manage
 * memory and write to files that are open already. Who reads profiles with privileges can give
 * up nearly as much, and then start such children.
 */
#include "heap/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <memwatch/heap.h>

#include "base/context.h"
#include "heap/elfutils.h"

#define NOBODY 65534
/* How often it is looked, every 5 ms, whether a child that was killed has ended. */
#define STOP_STEPS 400

#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

/* What a parser of files needs. openat() is here for reading only. */
static const int allowed_calls[] = {
	__NR_read,	     __NR_pread64,	   __NR_readv,	      __NR_write,
	__NR_writev,	     __NR_close,	   __NR_fstat,	      __NR_newfstatat,
	__NR_statx,	     __NR_lseek,	   __NR_mmap,	      __NR_munmap,
	__NR_mprotect,	     __NR_mremap,	   __NR_madvise,      __NR_brk,
	__NR_faccessat,	     __NR_faccessat2,	   __NR_readlinkat,   __NR_getcwd,
	__NR_getdents64,     __NR_fcntl,	   __NR_dup,	      __NR_futex,
	__NR_getrandom,	     __NR_clock_gettime,   __NR_getpid,	      __NR_gettid,
	__NR_getuid,	     __NR_geteuid,	   __NR_getgid,	      __NR_getegid,
	__NR_uname,	     __NR_sysinfo,	   __NR_sched_yield,  __NR_rt_sigaction,
	__NR_rt_sigprocmask, __NR_sigaltstack,	   __NR_rt_sigreturn, __NR_exit,
	__NR_exit_group,     __NR_restart_syscall,
#ifdef __NR_stat
	__NR_stat,	     __NR_lstat,	   __NR_access,	      __NR_readlink,
#endif
};

/* What the caller of mw_confined_start() needs too, and what its output needs. */
static const int parent_calls[] = {
	__NR_pwrite64,
	__NR_clone,
	__NR_pipe2,
	__NR_dup3,
	__NR_close_range,
	__NR_prctl,
	__NR_seccomp,
	__NR_prlimit64,
	__NR_setgroups,
	__NR_setresuid,
	__NR_setresgid,
	__NR_wait4,
	__NR_kill,
	__NR_ppoll,
	__NR_sendto,
	__NR_sendmsg,
	__NR_recvmsg,
	__NR_recvfrom,
	__NR_nanosleep,
	__NR_clock_nanosleep,
	__NR_getppid,
	__NR_set_robust_list,
	__NR_set_tid_address,
#ifdef __NR_rseq
	__NR_rseq,
#endif
#ifdef __NR_fork
	__NR_fork,
	__NR_poll,
	__NR_dup2,
	__NR_getrlimit,
	__NR_setrlimit,
#endif
};

#define NR_ALLOWED (sizeof(allowed_calls) / sizeof(allowed_calls[0]))
#define NR_PARENT  (sizeof(parent_calls) / sizeof(parent_calls[0]))
/* 3 for the architecture, 6 each for openat() and ioctl(), 1 for the rest, and 2 for each call */
#define FILTER_LENGTH (16 + 2 * (NR_ALLOWED + NR_PARENT))

#define LOAD(member)                                                                               \
	(struct sock_filter)                                                                       \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define SKIP_UNLESS(value, skip)                                                                   \
	(struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip))
#define ANSWER(value) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, (value))

#ifdef THIS_ARCH
/* The parts of a filter; each returns how many instructions there are then. */
static unsigned short allow_calls(struct sock_filter *filter, unsigned short n, const int *calls,
				  size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		filter[n++] = SKIP_UNLESS((unsigned int)calls[i], 1);
		filter[n++] = ANSWER(SECCOMP_RET_ALLOW);
	}
	return n;
}

static unsigned short allow_open_for_reading(struct sock_filter *filter, unsigned short n)
{
	filter[n++] = SKIP_UNLESS(__NR_openat, 4);
	filter[n++] = LOAD(args[2]);
	filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
						   O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 1, 0);
	filter[n++] = ANSWER(SECCOMP_RET_ALLOW);
	filter[n++] = ANSWER(SECCOMP_RET_ERRNO | EPERM);
	return n;
}

/* Whether the output is a terminal, and how wide. Nothing can be typed into it: TIOCSTI. */
static unsigned short allow_ask_terminal(struct sock_filter *filter, unsigned short n)
{
	filter[n++] = SKIP_UNLESS(__NR_ioctl, 5);
	filter[n++] = LOAD(args[1]);
	filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCGETS, 1, 0);
	filter[n++] = SKIP_UNLESS(TIOCGWINSZ, 1);
	filter[n++] = ANSWER(SECCOMP_RET_ALLOW);
	filter[n++] = ANSWER(SECCOMP_RET_ERRNO | EPERM);
	return n;
}
#endif

/* Other system calls fail with EPERM, so that a parser that tries one can go on. */
static int install_filter(bool parent)
{
#ifdef THIS_ARCH
	struct sock_filter filter[FILTER_LENGTH];
	struct sock_fprog program = { .filter = filter };
	unsigned short n = 0;

	filter[n++] = LOAD(arch);
	filter[n++] = SKIP_UNLESS(THIS_ARCH, 1);
	filter[n++] = LOAD(nr);
	/* The jump of a foreign architecture ends here, with its number as system call. */
	n = allow_calls(filter, n, allowed_calls, NR_ALLOWED);
	if (parent) {
		n = allow_calls(filter, n, parent_calls, NR_PARENT);
		n = allow_ask_terminal(filter, n);
	}
	n = allow_open_for_reading(filter, n);
	filter[n++] = ANSWER(SECCOMP_RET_ERRNO | EPERM);
	program.len = n;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
#else
	(void)parent;
	return 0;
#endif
}

static int limit_resource(__rlimit_resource_t resource, rlim_t most)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return -errno;
	if (limit.rlim_max > most)
		limit.rlim_max = most;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) ? -errno : 0;
}

static int limit_resources(const struct mw_confinement *may, bool network)
{
	int err = limit_resource(RLIMIT_CORE, 0);

	if (!err)
		err = limit_resource(RLIMIT_CPU, 300);
	if (!err)
		err = limit_resource(RLIMIT_NOFILE, 256);
#ifndef HAS_SANITIZER
	/* The address sanitizer reserves terabytes of addresses. */
	if (!err)
		err = limit_resource(RLIMIT_AS, 8ULL << 30);
#endif
	if (!err && !network)
		err = limit_resource(RLIMIT_FSIZE, may->file_bytes);
	return err;
}

static int drop_root(void)
{
	if (geteuid() && getuid())
		return 0;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		return -errno;
	return 0;
}

/* The child may not write to the terminal or the output of the program, but only to its answer. */
static int close_standard_files(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null < 0)
		return -errno;
	for (int fd = 0; fd < 3; fd++) {
#ifdef HAS_SANITIZER
		if (fd == 2)
			continue;
#endif
		if (dup2(null, fd) < 0)
			return -errno;
	}
	return 0;
}

/*
 * Gives the descriptors that the child keeps fixed numbers, so that all others can be closed: 3 is
 * the answer. They are moved out of the way first, because one may have the number of another.
 */
static int move_files(const struct mw_confinement *may, int answer)
{
	int first = 4 + (int)may->nr_keep;

	answer = fcntl(answer, F_DUPFD_CLOEXEC, first);
	if (answer < 0)
		return -errno;
	for (uint32_t i = 0; i < may->nr_keep; i++) {
		if (*may->keep[i] >= 0)
			*may->keep[i] = fcntl(*may->keep[i], F_DUPFD_CLOEXEC, first);
	}
	if (dup3(answer, 3, O_CLOEXEC) != 3)
		return -errno;
	for (uint32_t i = 0; i < may->nr_keep; i++) {
		if (*may->keep[i] >= 0)
			*may->keep[i] = dup3(*may->keep[i], 4 + (int)i, O_CLOEXEC);
	}
	return syscall(SYS_close_range, first, ~0U, 0) && errno != ENOSYS ? -errno : 0;
}

/* Gives everything up. Returns 0 or a negative errno; the child must then end. */
static int confine_self(const struct mw_confinement *may, bool network, int answer)
{
	int err = move_files(may, answer);

	if (err)
		return err;
	err = close_standard_files();
	if (err)
		return err;
	err = drop_root();
	if (err)
		return err;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	err = limit_resources(may, network);
	if (!err && !network)
		err = install_filter(false);
	return err;
}

int memwatch_heap_confine(struct memwatch_ctx *ctx)
{
	int err;

	/* A file with code cannot be opened afterwards. Without symbols there is still a profile.
	 */
	mw_elfutils_load(NULL);
	err = drop_root();

	if (!err && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)))
		err = -errno;
	if (!err)
		err = install_filter(true);
	return err ? mw_fail(ctx, err, "privileges cannot be given up: %s", strerror(-err)) : 0;
}

int mw_confined_start(struct memwatch_ctx *ctx, void (*run)(void *data, int answer), void *data,
		      const struct mw_confinement *may, struct mw_confined *ret)
{
	bool network = may->network && geteuid() && getuid();
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return mw_fail(ctx, -errno, "heap: no pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0) {
		int err = -errno;

		close(ends[0]);
		close(ends[1]);
		return mw_fail(ctx, err, "heap: no child process: %s", strerror(-err));
	}
	if (!pid) {
		int err;

		if (may->prepare)
			may->prepare(data);
		err = confine_self(may, network, ends[1]);
		if (!err)
			run(data, 3);
		/* Without the handlers of the program that uses the library. */
		syscall(SYS_exit_group, err ? 1 : 0);
	}
	close(ends[1]);
	*ret = (struct mw_confined){ .pid = pid, .answer = ends[0] };
	return 0;
}

/* A child that waits for a file system of a user may not end even then; it is left alone. */
void mw_confined_stop(struct mw_confined *child)
{
	const struct timespec step = { .tv_nsec = 5000000 };

	close(child->answer);
	kill(child->pid, SIGKILL);
	for (int i = 0; i < STOP_STEPS; i++) {
		pid_t pid = waitpid(child->pid, NULL, WNOHANG);

		if (pid > 0 || (pid < 0 && errno != EINTR))
			break;
		nanosleep(&step, NULL);
	}
}
