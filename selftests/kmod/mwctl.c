/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * mwctl: controls /dev/memwatch, for tests that must not depend on the library. The
 * arguments are commands. It executes them from left to right in one session, which ends
 * with the program:
 *
 *	info			print abi, schema, backend, nr_rmids
 *	start, stop		start or stop the session
 *	dump			dump; print sequence, count, unmeasured
 *	config			print the configuration
 *	period=NS limbo=NS policy=fair|fifo|active idle_stop=0|1 cpus=LIST
 *				collect settings for "set"
 *	force, default		the next command that sets or shows something is about what
 *				is in force, or about the defaults
 *	set			set the configuration to what was collected
 *	cgroup=ID uid=ID comm=NAME	add a filter
 *	filters, clear		print the filters; remove them all
 *	hold			wait until standard input ends or a signal arrives
 *	sleep=MS		wait
 *	run=COMMAND		run COMMAND with the shell and wait for it
 *
 * A leading ! means that the command must fail; its errno is printed. The program exits
 * with 1 at the first command that fails, or succeeds, unexpectedly.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/memwatch.h>

static int dev = -1;
/* The collected settings, and the CPU mask that they point to. */
static struct memwatch_config pending = { .size = sizeof(pending) };
static unsigned char pending_cpus[128];

/* MEMWATCH_CONFIG_FORCE or MEMWATCH_CONFIG_DEFAULT, for the next command. */
static unsigned int pending_flag;

static unsigned int take_pending_flag(void)
{
	unsigned int flag = pending_flag;

	pending_flag = 0;
	return flag;
}

static int command_info(void)
{
	struct memwatch_get_info info = { .size = sizeof(info) };

	if (ioctl(dev, MEMWATCH_IOC_GET_INFO, &info))
		return -1;
	printf("abi %u schema %u backend %u nr_rmids %u features %llu errata %llu\n", info.abi,
	       info.schema, info.backend, info.nr_rmids, info.features, info.errata);
	return 0;
}

static int command_start(void)
{
	struct memwatch_start arg = { .size = sizeof(arg) };

	return ioctl(dev, MEMWATCH_IOC_START, &arg);
}

static int command_stop(void)
{
	struct memwatch_stop arg = { .size = sizeof(arg) };

	return ioctl(dev, MEMWATCH_IOC_STOP, &arg);
}

static int command_dump(void)
{
	struct memwatch_dump dump = { .size = sizeof(dump) };

	if (ioctl(dev, MEMWATCH_IOC_DUMP, &dump))
		return -1;
	printf("dump %llu count %u unmeasured %u\n", dump.sequence, dump.count, dump.unmeasured);
	return 0;
}

static int command_config(void)
{
	unsigned char mask[sizeof(pending_cpus)] = { 0 };
	struct memwatch_config c = {
		.size = sizeof(c),
		.flags = take_pending_flag(),
		.cpumask = (unsigned long)mask,
		.cpumask_bytes = sizeof(mask),
	};
	unsigned int i;

	if (ioctl(dev, MEMWATCH_IOC_GET_CONFIG, &c))
		return -1;
	printf("period_ns %llu limbo_ns %llu policy %u idle_stop %u cpus", c.period_ns, c.limbo_ns,
	       c.policy, c.idle_stop);
	for (i = 0; i < sizeof(mask) * 8; i++)
		if (mask[i / 8] & 1 << i % 8)
			printf(" %u", i);
	printf("\n");
	return 0;
}

static int command_set(void)
{
	int ret, saved;

	pending.flags |= take_pending_flag();
	ret = ioctl(dev, MEMWATCH_IOC_SET_CONFIG, &pending);
	saved = errno;
	pending = (struct memwatch_config){ .size = sizeof(pending) };
	errno = saved;
	return ret;
}

static int command_force(void)
{
	pending_flag = MEMWATCH_CONFIG_FORCE;
	return 0;
}

static int command_default(void)
{
	pending_flag = MEMWATCH_CONFIG_DEFAULT;
	return 0;
}

static int command_filters(void)
{
	unsigned int flag = take_pending_flag(), i;
	struct memwatch_filter f;

	for (i = 0;; i++) {
		f = (struct memwatch_filter){ .size = sizeof(f), .flags = flag, .index = i };
		if (ioctl(dev, MEMWATCH_IOC_GET_FILTER, &f))
			return errno == ENOENT ? 0 : -1;
		printf("filter %u kind %u value %llu comm %s\n", i, f.kind, f.value, f.comm);
	}
}

static int command_clear(void)
{
	struct memwatch_clear_filters arg = { .size = sizeof(arg), .flags = take_pending_flag() };

	return ioctl(dev, MEMWATCH_IOC_CLEAR_FILTERS, &arg);
}

static int command_hold(void)
{
	char c;

	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} commands[] = {
	{ "info", command_info },   { "start", command_start },	    { "stop", command_stop },
	{ "dump", command_dump },   { "config", command_config },   { "set", command_set },
	{ "force", command_force }, { "filters", command_filters }, { "clear", command_clear },
	{ "hold", command_hold },   { "default", command_default },
};

static int add_filter(unsigned int kind, const char *value)
{
	struct memwatch_filter f = { .size = sizeof(f),
				     .flags = take_pending_flag(),
				     .kind = kind };

	if (kind == MEMWATCH_FILTER_COMM)
		strncpy(f.comm, value, sizeof(f.comm) - 1);
	else
		f.value = strtoull(value, NULL, 0);
	return ioctl(dev, MEMWATCH_IOC_ADD_FILTER, &f);
}

/* @list: as in "0,2-3". */
static int collect_cpus(const char *list)
{
	unsigned long first, last;
	char *end;

	memset(pending_cpus, 0, sizeof(pending_cpus));
	for (; *list; list = *end ? end + 1 : end) {
		first = last = strtoul(list, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < sizeof(pending_cpus) * 8; first++)
			pending_cpus[first / 8] |= 1 << first % 8;
	}
	pending.cpumask = (unsigned long)pending_cpus;
	pending.cpumask_bytes = sizeof(pending_cpus);
	pending.flags |= MEMWATCH_CONFIG_CPUMASK;
	return 0;
}

static int run_assignment(const char *name, const char *value)
{
	if (!strcmp(name, "period")) {
		pending.period_ns = strtoull(value, NULL, 0);
		pending.flags |= MEMWATCH_CONFIG_PERIOD;
	} else if (!strcmp(name, "limbo")) {
		pending.limbo_ns = strtoull(value, NULL, 0);
		pending.flags |= MEMWATCH_CONFIG_LIMBO;
	} else if (!strcmp(name, "policy")) {
		pending.policy = !strcmp(value, "fair")	    ? MEMWATCH_POLICY_FAIR
				 : !strcmp(value, "active") ? MEMWATCH_POLICY_ACTIVE
							    : MEMWATCH_POLICY_FIFO;
		pending.flags |= MEMWATCH_CONFIG_POLICY;
	} else if (!strcmp(name, "idle_stop")) {
		pending.idle_stop = strtoul(value, NULL, 0);
		pending.flags |= MEMWATCH_CONFIG_IDLE_STOP;
	} else if (!strcmp(name, "cpus")) {
		return collect_cpus(value);
	} else if (!strcmp(name, "cgroup")) {
		return add_filter(MEMWATCH_FILTER_CGROUP, value);
	} else if (!strcmp(name, "uid")) {
		return add_filter(MEMWATCH_FILTER_UID, value);
	} else if (!strcmp(name, "comm")) {
		return add_filter(MEMWATCH_FILTER_COMM, value);
	} else if (!strcmp(name, "sleep")) {
		unsigned long ms = strtoul(value, NULL, 0);

		nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
	} else if (!strcmp(name, "run")) {
		fflush(stdout);
		return system(value) ? (errno = ECHILD, -1) : 0;
	} else {
		fprintf(stderr, "mwctl: there is no command '%s'\n", name);
		exit(2);
	}
	return 0;
}

static int run_command(char *command)
{
	char *value = strchr(command, '=');
	size_t i;

	if (value) {
		*value = 0;
		return run_assignment(command, value + 1);
	}
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, command))
			return commands[i].run();
	fprintf(stderr, "mwctl: there is no command '%s'\n", command);
	exit(2);
}

int main(int argc, char **argv)
{
	int i;

	dev = open("/dev/memwatch", O_RDWR | O_CLOEXEC);
	if (dev < 0) {
		perror("mwctl: /dev/memwatch");
		return 1;
	}
	for (i = 1; i < argc; i++) {
		int must_fail = argv[i][0] == '!';
		char *name = argv[i] + must_fail;
		int err = run_command(name) ? errno : 0;

		if (err)
			printf("%s: %s\n", name, strerrorname_np(err));
		if ((err == 0) == must_fail) {
			fprintf(stderr, "mwctl: %s: %s\n", name,
				err ? strerror(err) : "succeeded, must fail");
			return 1;
		}
	}
	return 0;
}
