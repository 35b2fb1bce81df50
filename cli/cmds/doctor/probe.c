// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The probes. They close everything that they open.
 */
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <memwatch/memwatch.h>

#include "cmds/doctor/probe.h"
#include "common/root.h"

/* Finds the line of a probe in the file "probes" below --root. */
static bool find_scripted_result(const struct mw_cli *cli, const char *name, char *rest,
				 size_t size)
{
	size_t len = strlen(name);
	bool found = false;
	char line[256];
	FILE *file;

	rest[0] = '\0';
	file = mw_root_open(cli, "/probes");
	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, name, len) || line[len] != ' ')
			continue;
		snprintf(rest, size, "%.*s", (int)size - 1, line + len + 1);
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}

/* Returns the first number of that line, or @otherwise if there is no line. */
static int scripted_result(const struct mw_cli *cli, const char *name, int otherwise)
{
	char rest[256];

	return find_scripted_result(cli, name, rest, sizeof(rest)) ? atoi(rest) : otherwise;
}

void mw_probe_cpuid(const struct mw_cli *cli, uint32_t leaf, uint32_t subleaf, struct mw_cpuid *ret)
{
	char name[32], rest[256];

	memset(ret, 0, sizeof(*ret));
	if (!cli->root) {
		__cpuid_count(leaf, subleaf, ret->eax, ret->ebx, ret->ecx, ret->edx);
		return;
	}
	snprintf(name, sizeof(name), "cpuid.%x.%x", leaf, subleaf);
	if (find_scripted_result(cli, name, rest, sizeof(rest)))
		sscanf(rest, "%" SCNx32 " %" SCNx32 " %" SCNx32 " %" SCNx32, &ret->eax, &ret->ebx,
		       &ret->ecx, &ret->edx);
}

static int load_empty_program(void)
{
	/* r0 = 0; exit */
	struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = sizeof(program) / sizeof(program[0]);
	attr.license = (uintptr_t) "GPL";
	fd = syscall(__NR_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	return fd < 0 ? -errno : (int)fd;
}

int mw_probe_bpf_load(const struct mw_cli *cli)
{
	int fd;

	if (cli->root)
		return scripted_result(cli, "bpf_load", 0);
	fd = load_empty_program();
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int mw_probe_bpf_attach(const struct mw_cli *cli)
{
	union bpf_attr attr;
	int program, err = 0;
	long fd;

	if (cli->root)
		return scripted_result(cli, "bpf_attach", 0);
	program = load_empty_program();
	if (program < 0)
		return program;
	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = (uintptr_t) "task_newtask";
	attr.raw_tracepoint.prog_fd = (uint32_t)program;
	fd = syscall(__NR_bpf, BPF_RAW_TRACEPOINT_OPEN, &attr, sizeof(attr));
	if (fd < 0)
		err = -errno;
	else
		close((int)fd);
	close(program);
	return err;
}

static int open_counter(unsigned int counter, int cpu)
{
	const struct memwatch_metric_info *metric = memwatch_metric_find(MEMWATCH_METRIC_COUNTER,
									 counter);
	struct perf_event_attr attr = {
		.type = metric->event_type,
		.size = sizeof(attr),
		.config = metric->event_config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	long fd = syscall(__NR_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

int mw_probe_counter(const struct mw_cli *cli, unsigned int counter, int *cpus)
{
	int online = mw_probe_cpus(cli), err = 0;
	char name[64];

	*cpus = 0;
	if (cli->root) {
		snprintf(name, sizeof(name), "counter.%s", memwatch_counter_name(counter));
		err = scripted_result(cli, name, 0);
		*cpus = err ? 0 : online;
		return err;
	}
	for (int cpu = 0; cpu < CPU_SETSIZE && *cpus < online; cpu++) {
		int fd = open_counter(counter, cpu);

		if (fd == -ENODEV) /* offline */
			continue;
		if (fd < 0) {
			err = fd;
			break;
		}
		close(fd);
		++*cpus;
	}
	return err;
}

static void spin_for(long ns)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < ns);
}

int mw_probe_counter_share(const struct mw_cli *cli)
{
	int fds[MEMWATCH_COUNTER_MAX], share = 100, opened = 0, cpu = sched_getcpu();

	if (cli->root)
		return scripted_result(cli, "counter_share", 100);
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		fds[i] = open_counter(i, cpu);
		opened += fds[i] >= 0;
	}
	/* Multiplexed counters are switched at the timer tick, so wait for several ticks. */
	spin_for(20000000);
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		uint64_t value[3];

		if (fds[i] < 0)
			continue;
		if (read(fds[i], value, sizeof(value)) == sizeof(value) && value[1] &&
		    (int)(value[2] * 100 / value[1]) < share)
			share = (int)(value[2] * 100 / value[1]);
		close(fds[i]);
	}
	return opened ? share : -ENOENT;
}

int mw_probe_pqr(const struct mw_cli *cli, int cpu, uint64_t *ret)
{
	char name[64], rest[256];
	int fd, err = 0;

	if (cli->root) {
		snprintf(name, sizeof(name), "pqr.%d", cpu);
		if (!find_scripted_result(cli, name, rest, sizeof(rest)))
			return -ENOENT;
		*ret = strtoull(rest, NULL, 0);
		return 0;
	}
	snprintf(name, sizeof(name), "/dev/cpu/%d/msr", cpu);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (pread(fd, ret, sizeof(*ret), 0xc8f) != sizeof(*ret))
		err = -EIO;
	close(fd);
	return err;
}

uint64_t mw_probe_memlock(const struct mw_cli *cli)
{
	struct rlimit limit;
	char rest[256];

	if (cli->root)
		return find_scripted_result(cli, "memlock", rest, sizeof(rest))
			       ? strtoull(rest, NULL, 0)
			       : UINT64_MAX;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

int mw_probe_cpus(const struct mw_cli *cli)
{
	if (cli->root)
		return scripted_result(cli, "cpus", 1);
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}
