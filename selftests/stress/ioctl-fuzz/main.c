// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Throws ioctls at /dev/memwatch and checks each answer against a model of the
 * rules that the UAPI header states. Where several rules are broken at once any
 * of their errors is right; where the header is silent, success and EINVAL are.
 * What the device says of itself is compared with what it was told.
 *
 * Usage: ioctl-fuzz [-n CALLS] [-s SEED]; as root, in the virtual machine.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/memwatch.h>

#include "tap.h"

#define DEVICE	   "/dev/memwatch"
#define NOBODY	   65534
#define MAX_ERRORS 16
#define SUCCESS	   0

/* The errors that would be right; SUCCESS may be one of them. */
struct verdict {
	int allowed[MAX_ERRORS];
	unsigned int count;
};

struct session {
	int fd;
	int started;
};

static struct session sessions[2];
static struct memwatch_config config;
static struct memwatch_filter filters[MEMWATCH_FILTERS_MAX];
static unsigned int nr_filters;
static unsigned int nr_cpus;
static unsigned int nr_rmids;
static uint64_t prng;
static unsigned long calls, succeeded, failed, surprises;
static unsigned char *guard; /* one page, followed by one that is not mapped */
static unsigned char *read_only;
static long page;
static unsigned char *mask; /* MASK_BYTES, and then nothing is mapped */
#define MASK_BYTES 128

static const struct command {
	const char *name;
	unsigned int number;
	unsigned int size;
	int writes;
} commands[] = {
	{ "GET_INFO", MEMWATCH_IOC_GET_INFO, sizeof(struct memwatch_get_info), 1 },
	{ "START", MEMWATCH_IOC_START, sizeof(struct memwatch_start), 0 },
	{ "STOP", MEMWATCH_IOC_STOP, sizeof(struct memwatch_stop), 0 },
	{ "GET_CONFIG", MEMWATCH_IOC_GET_CONFIG, sizeof(struct memwatch_config), 1 },
	{ "SET_CONFIG", MEMWATCH_IOC_SET_CONFIG, sizeof(struct memwatch_config), 0 },
	{ "ADD_FILTER", MEMWATCH_IOC_ADD_FILTER, sizeof(struct memwatch_filter), 0 },
	{ "GET_FILTER", MEMWATCH_IOC_GET_FILTER, sizeof(struct memwatch_filter), 1 },
	{ "CLEAR_FILTERS", MEMWATCH_IOC_CLEAR_FILTERS, sizeof(struct memwatch_clear_filters), 0 },
	{ "DUMP", MEMWATCH_IOC_DUMP, sizeof(struct memwatch_dump), 1 },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

union argument {
	struct {
		__u32 size;
		__u32 flags;
	} head;
	struct memwatch_get_info info;
	struct memwatch_config config;
	struct memwatch_filter filter;
	struct memwatch_dump dump;
	unsigned char bytes[8192];
};

static uint64_t draw(void)
{
	prng ^= prng >> 12;
	prng ^= prng << 25;
	prng ^= prng >> 27;
	return prng * 0x2545F4914F6CDD1DULL;
}

static unsigned int below(unsigned int n)
{
	return (draw() >> 32) % n;
}

static int one_in(unsigned int n)
{
	return !below(n);
}

/* A number near the edges of things. */
static uint64_t odd_number(void)
{
	static const uint64_t edges[] = {
		0,
		1,
		2,
		3,
		7,
		64,
		100000,
		99999,
		1000000,
		1000000000,
		1000000001,
		0x7fffffff,
		0x80000000,
		0xffffffff,
		0x100000000,
		UINT64_MAX,
		UINT64_MAX - 1,
		1ULL << 63,
	};

	if (one_in(3))
		return draw() >> below(64);
	return edges[below(sizeof(edges) / sizeof(edges[0]))];
}

/* The same, but never the address of something: the kernel may write there. */
static uint64_t bad_number(void)
{
	uint64_t n = odd_number();

	return n < 4096 ? n : n | 1ULL << 62;
}

static void allow(struct verdict *verdict, int error)
{
	if (verdict->count < MAX_ERRORS)
		verdict->allowed[verdict->count++] = error;
}

static int is_allowed(const struct verdict *verdict, int error)
{
	unsigned int i;

	for (i = 0; i < verdict->count; i++)
		if (verdict->allowed[i] == error)
			return 1;
	return 0;
}

static int any_byte(const unsigned char *bytes, size_t begin, size_t end)
{
	for (; begin < end; begin++)
		if (bytes[begin])
			return 1;
	return 0;
}

static int other_started(const struct session *session)
{
	return sessions[session == sessions].started;
}

/* ------------------------------------------------------- rules of commands */

static void rules_get_config(const union argument *arg, struct verdict *verdict, int *unclear)
{
	const struct memwatch_config *c = &arg->config;

	if (c->reserved)
		allow(verdict, EINVAL);
	if (!c->cpumask_bytes)
		return;
	if (c->cpumask_bytes < (nr_cpus + 7) / 8)
		allow(verdict, ENOSPC);
	if (c->cpumask != (uintptr_t)mask || c->cpumask_bytes > MASK_BYTES) {
		allow(verdict, EFAULT);
		*unclear = 1;
	}
}

static void rules_set_config(const struct session *session, const union argument *arg,
			     struct verdict *verdict, int *unclear)
{
	const struct memwatch_config *c = &arg->config;

	if (c->reserved)
		allow(verdict, EINVAL);
	if (c->flags & MEMWATCH_CONFIG_PERIOD &&
	    (c->period_ns < MEMWATCH_PERIOD_MIN_NS || c->period_ns > MEMWATCH_PERIOD_MAX_NS))
		allow(verdict, EINVAL);
	if (c->flags & MEMWATCH_CONFIG_LIMBO && c->limbo_ns > MEMWATCH_LIMBO_MAX_NS)
		allow(verdict, EINVAL);
	if (c->flags & MEMWATCH_CONFIG_POLICY && c->policy > MEMWATCH_POLICY_ACTIVE)
		allow(verdict, EINVAL);
	if (c->flags & MEMWATCH_CONFIG_IDLE_STOP && c->idle_stop > 1)
		allow(verdict, EINVAL);
	if (c->flags & MEMWATCH_CONFIG_CPUMASK) {
		/* Masks that are empty, or larger than the machine, are not described. */
		*unclear = 1;
		if (c->cpumask != (uintptr_t)mask || c->cpumask_bytes > MASK_BYTES)
			allow(verdict, EFAULT);
	}
	if (other_started(session) && !(c->flags & MEMWATCH_CONFIG_FORCE))
		allow(verdict, EBUSY);
}

static int same_filter(const struct memwatch_filter *a, const struct memwatch_filter *b)
{
	return a->kind == b->kind && a->value == b->value &&
	       !strncmp(a->comm, b->comm, sizeof(a->comm));
}

static void rules_add_filter(const union argument *arg, struct verdict *verdict, int *unclear)
{
	const struct memwatch_filter *f = &arg->filter;
	unsigned int i;

	if (f->index || f->kind < MEMWATCH_FILTER_CGROUP || f->kind > MEMWATCH_FILTER_COMM)
		allow(verdict, EINVAL);
	if (f->kind == MEMWATCH_FILTER_COMM) {
		size_t length = strnlen(f->comm, sizeof(f->comm));

		if (f->value || length == sizeof(f->comm))
			allow(verdict, EINVAL);
		if (!length || any_byte((const unsigned char *)f->comm, length, sizeof(f->comm)))
			*unclear = 1;
	} else if (any_byte((const unsigned char *)f->comm, 0, sizeof(f->comm))) {
		allow(verdict, EINVAL);
	}
	if (f->kind == MEMWATCH_FILTER_UID && f->value > UINT32_MAX)
		allow(verdict, EINVAL);
	if (f->kind == MEMWATCH_FILTER_UID && f->value == UINT32_MAX)
		*unclear = 1;
	if (f->kind == MEMWATCH_FILTER_CGROUP && !f->value)
		*unclear = 1;
	for (i = 0; i < nr_filters; i++)
		if (same_filter(&filters[i], f))
			allow(verdict, EEXIST);
	if (nr_filters == MEMWATCH_FILTERS_MAX)
		allow(verdict, ENOSPC);
}

/* What the header says about this call; *unclear: success is not certain. */
static void rules(const struct session *session, const struct command *command,
		  const union argument *arg, struct verdict *verdict, int *unclear)
{
	unsigned int known = command->number == MEMWATCH_IOC_SET_CONFIG ? MEMWATCH_CONFIG_ALL : 0;
	unsigned int size = arg->head.size;

	if (size < command->size) {
		allow(verdict, EINVAL);
		return;
	}
	if (size > command->size &&
	    any_byte(arg->bytes, command->size, size < sizeof(*arg) ? size : sizeof(*arg)))
		allow(verdict, E2BIG);
	if (size > 4096) {
		/* Longer than any structure will be: it may be refused, or not be there. */
		allow(verdict, E2BIG);
		allow(verdict, EFAULT);
		allow(verdict, EINVAL);
		*unclear = 1;
	}
	if (arg->head.flags & ~known)
		allow(verdict, EOPNOTSUPP);
	switch (command->number) {
	case MEMWATCH_IOC_START:
		if (session->started)
			allow(verdict, EALREADY);
		break;
	case MEMWATCH_IOC_STOP:
		if (!session->started)
			allow(verdict, EALREADY);
		break;
	case MEMWATCH_IOC_GET_CONFIG:
		rules_get_config(arg, verdict, unclear);
		break;
	case MEMWATCH_IOC_SET_CONFIG:
		rules_set_config(session, arg, verdict, unclear);
		break;
	case MEMWATCH_IOC_ADD_FILTER:
		rules_add_filter(arg, verdict, unclear);
		break;
	case MEMWATCH_IOC_GET_FILTER:
		if (arg->filter.index >= nr_filters)
			allow(verdict, ENOENT);
		break;
	case MEMWATCH_IOC_DUMP:
		if (!session->started)
			allow(verdict, ENOTCONN);
		break;
	default:
		break;
	}
}

/* -------------------------------------------------- state after a success */

static void surprise(const char *name, const char *format, unsigned long long a,
		     unsigned long long b)
{
	if (surprises++ < 20) {
		printf("# call %lu, %s: ", calls, name);
		printf(format, a, b);
		printf("\n");
	}
}

static void took_config(const struct memwatch_config *c)
{
	if (c->flags & MEMWATCH_CONFIG_PERIOD)
		config.period_ns = c->period_ns;
	if (c->flags & MEMWATCH_CONFIG_LIMBO)
		config.limbo_ns = c->limbo_ns;
	if (c->flags & MEMWATCH_CONFIG_POLICY)
		config.policy = c->policy;
	if (c->flags & MEMWATCH_CONFIG_IDLE_STOP)
		config.idle_stop = c->idle_stop;
}

static void check_config(const struct memwatch_config *c)
{
	if (c->period_ns != config.period_ns)
		surprise("GET_CONFIG", "period %llu, set was %llu", c->period_ns, config.period_ns);
	if (c->limbo_ns != config.limbo_ns)
		surprise("GET_CONFIG", "limbo %llu, set was %llu", c->limbo_ns, config.limbo_ns);
	if (c->policy != config.policy)
		surprise("GET_CONFIG", "policy %llu, set was %llu", c->policy, config.policy);
	if (c->idle_stop != config.idle_stop)
		surprise("GET_CONFIG", "idle_stop %llu, set was %llu", c->idle_stop,
			 config.idle_stop);
}

static void after(struct session *session, const struct command *command,
		  const union argument *before, const union argument *arg)
{
	switch (command->number) {
	case MEMWATCH_IOC_GET_INFO:
		if (arg->info.abi != MEMWATCH_ABI || arg->info.schema != MEMWATCH_SCHEMA ||
		    arg->info.nr_rmids != nr_rmids)
			surprise("GET_INFO", "abi %llu, %llu RMIDs", arg->info.abi,
				 arg->info.nr_rmids);
		break;
	case MEMWATCH_IOC_START:
		session->started = 1;
		break;
	case MEMWATCH_IOC_STOP:
		session->started = 0;
		break;
	case MEMWATCH_IOC_GET_CONFIG:
		check_config(&arg->config);
		break;
	case MEMWATCH_IOC_SET_CONFIG:
		took_config(&before->config);
		break;
	case MEMWATCH_IOC_ADD_FILTER:
		filters[nr_filters++] = before->filter;
		break;
	case MEMWATCH_IOC_GET_FILTER:
		if (!same_filter(&arg->filter, &filters[before->filter.index]))
			surprise("GET_FILTER", "filter %llu is of kind %llu", before->filter.index,
				 arg->filter.kind);
		break;
	case MEMWATCH_IOC_CLEAR_FILTERS:
		nr_filters = 0;
		break;
	default:
		break;
	}
	if (command->writes && any_byte(arg->bytes, command->size, sizeof(*arg)) &&
	    !any_byte(before->bytes, command->size, sizeof(*before)))
		surprise(command->name, "wrote beyond its %llu bytes%.0llu", command->size, 0);
}

/* ----------------------------------------------------------- kinds of calls */

static void fill(const struct command *command, union argument *arg)
{
	memset(arg, 0, sizeof(*arg));
	arg->head.size = command->size;
	switch (command->number) {
	case MEMWATCH_IOC_SET_CONFIG:
		arg->config.flags = draw() & (one_in(2) ? MEMWATCH_CONFIG_FORCE | 0xf : 0xf);
		arg->config.period_ns = one_in(4) ? odd_number() : 100000 + below(5000000);
		arg->config.limbo_ns = one_in(4) ? odd_number() : below(5000000);
		arg->config.policy = one_in(4) ? odd_number() : below(2);
		arg->config.idle_stop = one_in(4) ? odd_number() : below(2);
		if (one_in(8)) {
			memset(mask, below(256), MASK_BYTES);
			arg->config.flags |= MEMWATCH_CONFIG_CPUMASK;
			arg->config.cpumask = one_in(4) ? bad_number() : (uintptr_t)mask;
			arg->config.cpumask_bytes = one_in(4) ? odd_number() : below(MASK_BYTES);
		}
		break;
	case MEMWATCH_IOC_GET_CONFIG:
		if (one_in(2)) {
			arg->config.cpumask = one_in(4) ? bad_number() : (uintptr_t)mask;
			arg->config.cpumask_bytes = below(MASK_BYTES);
		}
		break;
	case MEMWATCH_IOC_ADD_FILTER:
		arg->filter.kind = one_in(8) ? odd_number() : 1 + below(3);
		if (arg->filter.kind == MEMWATCH_FILTER_COMM)
			snprintf(arg->filter.comm, sizeof(arg->filter.comm), "name-%u", below(100));
		else
			arg->filter.value = one_in(8) ? odd_number() : below(100);
		if (one_in(16))
			memset(arg->filter.comm, 'x', sizeof(arg->filter.comm));
		arg->filter.index = one_in(16);
		break;
	case MEMWATCH_IOC_GET_FILTER:
		arg->filter.index = one_in(8) ? odd_number() : below(nr_filters + 1);
		break;
	default:
		break;
	}
	/* Then damage it, most often not at all. */
	if (one_in(6))
		arg->head.size = one_in(2) ? odd_number() : below(command->size * 3);
	if (one_in(10))
		arg->head.flags ^= 1U << below(32);
	if (one_in(10)) {
		arg->bytes[below(command->size)] ^= draw();
		if (arg->config.cpumask && arg->config.cpumask != (uintptr_t)mask &&
		    (command->number == MEMWATCH_IOC_GET_CONFIG ||
		     command->number == MEMWATCH_IOC_SET_CONFIG))
			arg->config.cpumask |= 1ULL << 62;
	}
	if (one_in(10))
		arg->bytes[command->size + below(64)] = draw();
	if (one_in(20))
		arg->config.reserved = draw();
	if (command->number != MEMWATCH_IOC_SET_CONFIG &&
	    command->number != MEMWATCH_IOC_GET_CONFIG && command->size < sizeof(arg->config) &&
	    arg->head.size <= command->size)
		memset(arg->bytes + command->size, 0, 64);
}

static void judge(const char *name, int error, const struct verdict *verdict, int unclear)
{
	int good;

	if (error)
		failed++;
	else
		succeeded++;
	if (!verdict->count)
		good = !error || (unclear && error == EINVAL);
	else
		good = is_allowed(verdict, error) || (unclear && (!error || error == EINVAL));
	/* Memory may be short, and memory alone. */
	if (error == ENOMEM)
		good = 1;
	if (!good)
		surprise(name,
			 verdict->count ? "errno %llu, %llu is right"
					: "errno %llu, success is right (%llu)",
			 error, verdict->count ? verdict->allowed[0] : 0);
}

static void structured(struct session *session, const struct command *command)
{
	static union argument arg, before;
	struct verdict verdict = { .count = 0 };
	int unclear = 0, error;

	fill(command, &arg);
	before = arg;
	rules(session, command, &arg, &verdict, &unclear);
	error = ioctl(session->fd, command->number, &arg) ? errno : 0;
	judge(command->name, error, &verdict, unclear);
	if (!error)
		after(session, command, &before, &arg);
}

/* The structure ends where memory does, or begins there, or may not be written. */
static void bad_pointer(struct session *session, const struct command *command)
{
	struct verdict verdict = { .count = 0 };
	unsigned char *at;
	__u32 head[2] = { command->size, 0 };
	int error;

	allow(&verdict, EFAULT);
	switch (below(command->writes ? 4 : 3)) {
	case 0:
		at = (unsigned char *)(uintptr_t)(odd_number() | 1ULL << 62);
		break;
	case 1:
		at = NULL;
		break;
	case 2:
		at = guard + page - (4 + below(command->size - 4));
		memcpy(at, head, guard + page - at < 8 ? guard + page - at : 8);
		break;
	default:
		at = read_only;
		mprotect(read_only, page, PROT_READ | PROT_WRITE);
		memset(read_only, 0, page);
		memcpy(read_only, head, sizeof(head));
		mprotect(read_only, page, PROT_READ);
		/* The command itself may fail first. */
		if (command->number == MEMWATCH_IOC_GET_FILTER && !nr_filters)
			allow(&verdict, ENOENT);
		if (command->number == MEMWATCH_IOC_DUMP && !session->started)
			allow(&verdict, ENOTCONN);
		break;
	}
	error = ioctl(session->fd, command->number, at) ? errno : 0;
	judge(command->name, error, &verdict, 0);
}

static void unknown_command(struct session *session)
{
	struct verdict verdict = { .count = 0 };
	static union argument arg;
	unsigned int number = draw();
	unsigned int i;

	if (one_in(2))
		number = _IOC(below(4), MEMWATCH_IOC_TYPE, below(256), below(128));
	for (i = 0; i < NR_COMMANDS; i++)
		if (number == commands[i].number)
			return;
	/* These belong to the file layer, not to the driver. */
	if ((number & 0xff00) == 'T' << 8 || (number & 0xff00) == 'f' << 8 ||
	    (number & 0xff00) == 'X' << 8 || (number & 0xff00) == 0x94 << 8 || number < 0x10000)
		return;
	memset(&arg, 0, sizeof(arg));
	arg.head.size = 8;
	allow(&verdict, ENOTTY);
	judge("unknown command", ioctl(session->fd, number, &arg) ? errno : 0, &verdict, 0);
}

static void fuzz(unsigned long n)
{
	unsigned long end = calls + n;

	while (calls < end) {
		struct session *session = &sessions[one_in(3)];
		const struct command *command = &commands[below(NR_COMMANDS)];

		calls++;
		/* Starting and stopping takes a thousand times as long as the rest. */
		if ((command->number == MEMWATCH_IOC_START ||
		     command->number == MEMWATCH_IOC_STOP) &&
		    !one_in(20))
			continue;
		if (command->number == MEMWATCH_IOC_CLEAR_FILTERS && !one_in(10))
			continue;
		if (one_in(10))
			unknown_command(session);
		else if (one_in(10))
			bad_pointer(session, command);
		else
			structured(session, command);
	}
}

static void learn(void)
{
	struct memwatch_get_info info = { .size = sizeof(info) };

	config = (struct memwatch_config){ .size = sizeof(config) };
	ioctl(sessions[0].fd, MEMWATCH_IOC_GET_CONFIG, &config);
	if (!ioctl(sessions[0].fd, MEMWATCH_IOC_GET_INFO, &info))
		nr_rmids = info.nr_rmids;
}

static void open_sessions(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		sessions[i].fd = open(DEVICE, O_RDWR | O_CLOEXEC);
		sessions[i].started = 0;
	}
}

/* In a child without privilege: what it can do is in its exit status. */
static int as_nobody(unsigned long n)
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
		surprises = 0;
		fuzz(n);
		printf("# as nobody, on root's descriptors: %lu calls, %lu surprises\n", n,
		       surprises);
		fflush(stdout);
		_exit(surprises ? 4 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
	unsigned long n = 40000;
	struct stat st;
	int option, ret;

	prng = 1;
	while ((option = getopt(argc, argv, "n:s:")) != -1) {
		if (option == 'n')
			n = strtoul(optarg, NULL, 0);
		else if (option == 's')
			prng = strtoull(optarg, NULL, 0) | 1;
		else
			return 2;
	}
	page = sysconf(_SC_PAGESIZE);
	nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	guard = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mask = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	read_only = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (guard == MAP_FAILED || mask == MAP_FAILED || read_only == MAP_FAILED ||
	    munmap(guard + page, page) || munmap(mask + page, page))
		return 1;
	mask += page - MASK_BYTES;

	tap_plan(9);
	memset(&st, 0, sizeof(st));
	ret = stat(DEVICE, &st);
	tap_ok(!ret && S_ISCHR(st.st_mode) && (st.st_mode & 0777) == 0660,
	       "the device has mode 0660 (%o)", st.st_mode & 0777);
	open_sessions();
	tap_ok(sessions[0].fd >= 0 && sessions[1].fd >= 0, "root opens two sessions");
	learn();
	tap_ok(nr_rmids > 0 && config.period_ns, "info and configuration are there");
	fuzz(n);
	tap_ok(!surprises, "%lu calls by root: %lu succeeded, %lu failed, %lu surprises", calls,
	       succeeded, failed, surprises);
	tap_ok(succeeded > n / 20 && failed > n / 20, "both outcomes were common");
	close(sessions[0].fd);
	close(sessions[1].fd);
	ret = as_nobody(0);
	tap_ok(ret == 0, "nobody may not open the device (%d)", ret);
	open_sessions();
	learn();
	ret = as_nobody(n / 8);
	tap_ok(ret == 0, "nobody with root's descriptors: the documented errno each time (%d)",
	       ret);
	close(sessions[0].fd);
	close(sessions[1].fd);
	/* The last close has ended everything: a first session finds a quiet device. */
	open_sessions();
	ret = ioctl(sessions[0].fd, MEMWATCH_IOC_STOP,
		    &(struct memwatch_stop){ .size = sizeof(struct memwatch_stop) });
	tap_ok(ret < 0 && errno == EALREADY, "a new session is not started");
	ret = ioctl(
		sessions[0].fd, MEMWATCH_IOC_CLEAR_FILTERS,
		&(struct memwatch_clear_filters){ .size = sizeof(struct memwatch_clear_filters) });
	tap_ok(!ret, "filters are cleared");
	return tap_done();
}
