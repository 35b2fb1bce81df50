// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Makes random ioctl calls on /dev/memwatch, and checks each answer against a model of the
 * rules that the UAPI header states. What the device says about its state is compared with
 * what the calls before have set.
 *
 * Usage: ioctl-fuzz [-n CALLS] [-s SEED]; as root, in the virtual machine.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"
#include "tap.h"

#define DEVICE "/dev/memwatch"
#define NOBODY 65534

static int call_ioctl(const struct fuzz_session *session, unsigned int number, void *arg)
{
	return ioctl(session->fd, number, arg) ? errno : 0;
}

/* ---- Kinds of calls ---- */

static void call_with_argument(struct fuzz_session *session, const struct fuzz_command *command)
{
	static union fuzz_argument arg, before;
	struct fuzz_verdict verdict = { .count = 0 };
	int error;

	fuzz_argument_make(command, fuzz_model.in_force.nr_filters, &arg);
	before = arg;
	fuzz_model_predict(session, command, &arg, &verdict);
	error = call_ioctl(session, command->number, &arg);
	fuzz_model_judge(command->name, error, &verdict);
	if (!error)
		fuzz_model_update(session, command, &before, &arg);
}

/* The argument is not mapped, only its beginning is mapped, or it is read-only. */
static void call_with_bad_pointer(struct fuzz_session *session, const struct fuzz_command *command)
{
	struct fuzz_verdict verdict = { .count = 0 };
	const struct fuzz_memory *m = &fuzz_memory;
	__u32 head[2] = { command->size, 0 };
	unsigned char *at;

	fuzz_allow(&verdict, EFAULT);
	switch (fuzz_random_below(command->writes ? 4 : 3)) {
	case 0:
		at = (unsigned char *)(uintptr_t)(fuzz_random_edge() | 1ULL << 62);
		break;
	case 1:
		at = NULL;
		break;
	case 2:
		at = m->guard + m->page - (4 + fuzz_random_below(command->size - 4));
		memcpy(at, head, m->guard + m->page - at < 8 ? m->guard + m->page - at : 8);
		break;
	default:
		at = m->read_only;
		mprotect(m->read_only, m->page, PROT_READ | PROT_WRITE);
		memset(m->read_only, 0, m->page);
		memcpy(m->read_only, head, sizeof(head));
		mprotect(m->read_only, m->page, PROT_READ);
		/* The command may fail before it writes its answer. */
		if (command->number == MEMWATCH_IOC_GET_FILTER)
			fuzz_allow(&verdict, ENOENT);
		if (command->number == MEMWATCH_IOC_DUMP && !session->started)
			fuzz_allow(&verdict, ENOTCONN);
		break;
	}
	fuzz_model_judge(command->name, call_ioctl(session, command->number, at), &verdict);
}

/* The file layer of the kernel handles some numbers before the driver sees them. */
static bool is_number_of_file_layer(unsigned int number)
{
	unsigned int type = number >> 8 & 0xff;

	return type == 'T' || type == 'f' || type == 'X' || type == 0x94 || number < 0x10000;
}

static void call_unknown_command(struct fuzz_session *session)
{
	struct fuzz_verdict verdict = { .count = 0 };
	static union fuzz_argument arg;
	unsigned int number = fuzz_random();
	unsigned int i;

	if (fuzz_one_in(2))
		number = _IOC(fuzz_random_below(4), MEMWATCH_IOC_TYPE, fuzz_random_below(256),
			      fuzz_random_below(128));
	for (i = 0; i < FUZZ_COMMANDS; i++)
		if (number == fuzz_commands[i].number)
			return;
	if (is_number_of_file_layer(number))
		return;
	memset(&arg, 0, sizeof(arg));
	arg.head.size = 8;
	fuzz_allow(&verdict, ENOTTY);
	fuzz_model_judge("unknown command", call_ioctl(session, number, &arg), &verdict);
}

static void make_calls(unsigned long n)
{
	unsigned long end = fuzz_model.calls + n;

	while (fuzz_model.calls < end) {
		struct fuzz_session *session = &fuzz_model.sessions[fuzz_one_in(3)];
		const struct fuzz_command *command =
			&fuzz_commands[fuzz_random_below(FUZZ_COMMANDS)];

		fuzz_model.calls++;
		/* START and STOP take a thousand times as long as the other commands. */
		if ((command->number == MEMWATCH_IOC_START ||
		     command->number == MEMWATCH_IOC_STOP) &&
		    !fuzz_one_in(20))
			continue;
		/* Let the list of filters become long now and then. */
		if (command->number == MEMWATCH_IOC_CLEAR_FILTERS && !fuzz_one_in(10))
			continue;
		if (fuzz_one_in(10))
			call_unknown_command(session);
		else if (fuzz_one_in(10))
			call_with_bad_pointer(session, command);
		else
			call_with_argument(session, command);
	}
}

/* ---- Tests ---- */

static void sessions_open(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		fuzz_model.sessions[i].fd = open(DEVICE, O_RDWR | O_CLOEXEC);
		fuzz_model.sessions[i].started = false;
		fuzz_model.sessions[i].has_own = false;
	}
}

static void sessions_close(void)
{
	close(fuzz_model.sessions[0].fd);
	close(fuzz_model.sessions[1].fd);
}

/* The model starts from what the device says. */
static void model_read_device(void)
{
	struct memwatch_get_info info = { .size = sizeof(info) };
	struct memwatch_config *config = &fuzz_model.defaults.config;

	*config = (struct memwatch_config){ .size = sizeof(*config) };
	ioctl(fuzz_model.sessions[0].fd, MEMWATCH_IOC_GET_CONFIG, config);
	if (!ioctl(fuzz_model.sessions[0].fd, MEMWATCH_IOC_GET_INFO, &info))
		fuzz_model.nr_rmids = info.nr_rmids;
}

/*
 * Make calls in a child that runs as nobody, on the descriptors that root opened. Returns
 * 0 if all answers were right and the child could not open the device itself.
 */
static int make_calls_as_nobody(unsigned long n)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd;

		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(2);
		fd = open(DEVICE, O_RDWR);
		if (fd >= 0 || (errno != EACCES && errno != EPERM))
			_exit(3);
		fuzz_model.mismatches = 0;
		fuzz_model.administrator = false;
		make_calls(n);
		printf("# as nobody, on root's descriptors: %lu calls, %lu wrong answers\n", n,
		       fuzz_model.mismatches);
		fflush(stdout);
		_exit(fuzz_model.mismatches ? 4 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_device_file(void)
{
	struct stat st = { .st_mode = 0 };

	tap_eq(stat(DEVICE, &st), 0, "the device file exists");
	tap_ok(S_ISCHR(st.st_mode), "the device file is a character device");
	tap_eq(st.st_mode & 0777, 0600, "the device file has mode 0600");
}

static void test_open(void)
{
	sessions_open();
	tap_ok(fuzz_model.sessions[0].fd >= 0, "root opens a first session");
	tap_ok(fuzz_model.sessions[1].fd >= 0, "root opens a second session");
	model_read_device();
	tap_ok(fuzz_model.nr_rmids > 0, "GET_INFO says how many RMIDs there are");
	tap_ok(fuzz_model.defaults.config.period_ns > 0, "GET_CONFIG says what the period is");
}

static void test_root(unsigned long n)
{
	make_calls(n);
	tap_note("%lu calls by root: %lu succeeded, %lu failed", fuzz_model.calls,
		 fuzz_model.succeeded, fuzz_model.failed);
	tap_eq(fuzz_model.mismatches, 0, "every call by root returns what the header documents");
	tap_ok(fuzz_model.succeeded > n / 20, "more than a twentieth of the calls succeeded");
	tap_ok(fuzz_model.failed > n / 20, "more than a twentieth of the calls failed");
}

static void test_nobody(unsigned long n)
{
	sessions_close();
	tap_eq(make_calls_as_nobody(0), 0, "a user without privilege cannot open the device");
	sessions_open();
	model_read_device();
	tap_eq(make_calls_as_nobody(n), 0,
	       "every call on a descriptor of root returns what the header documents, "
	       "if a user without privilege makes it");
	sessions_close();
}

/* The last close ends everything, so a new session finds an idle device. */
static void test_after_close(void)
{
	struct memwatch_stop stop = { .size = sizeof(stop) };
	struct memwatch_clear_filters clear = { .size = sizeof(clear) };

	sessions_open();
	tap_eq(call_ioctl(&fuzz_model.sessions[0], MEMWATCH_IOC_STOP, &stop), EALREADY,
	       "STOP of a new session returns EALREADY");
	tap_eq(call_ioctl(&fuzz_model.sessions[0], MEMWATCH_IOC_CLEAR_FILTERS, &clear), 0,
	       "a new session can clear the filters");
}

/* All its bytes can be read and are zero, so only its size is wrong. */
static void test_long_argument(void)
{
	size_t bytes = 2 * fuzz_memory.page;
	struct memwatch_get_info *info = calloc(1, bytes);
	int fd = open(DEVICE, O_RDWR);
	bool refused;

	if (info)
		info->size = bytes;
	refused = info && fd >= 0 && ioctl(fd, MEMWATCH_IOC_GET_INFO, info) && errno == E2BIG;
	tap_ok(refused, "an argument of more than a page is refused");
	close(fd);
	free(info);
}

int main(int argc, char **argv)
{
	unsigned long n = 40000;
	uint64_t seed = 1;
	int option;

	while ((option = getopt(argc, argv, "n:s:")) != -1) {
		if (option == 'n')
			n = strtoul(optarg, NULL, 0);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	fuzz_random_seed(seed);
	fuzz_model.administrator = true;
	fuzz_model.nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	if (!fuzz_memory_map())
		return 1;
	tap_plan(15);
	test_device_file();
	test_long_argument();
	test_open();
	test_root(n);
	test_nobody(n / 8);
	test_after_close();
	return tap_done();
}
