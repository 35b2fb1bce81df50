// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The register PQR_ASSOC of a machine with RDT, as the driver msr reads it: while a session runs,
 * a CPU has the RMID of the process that runs on it, and afterwards each CPU has what it had
 * before. The class of cache allocation is never changed.
 */
#ifndef _GNU_SOURCE /* the lib.mk of recent kernels defines it */
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/memwatch.h>

#include "../module.h"
#include "kselftest_harness.h"

#define PQR_ASSOC 0xc8f
#define CPUS_MAX  8192
#define RMIDS	  "/proc/memwatch/rmids"

static int cpus;

/* Returns false if the CPU is offline. */
static bool pqr_read(int cpu, uint32_t *rmid, uint32_t *closid)
{
	uint64_t value = 0;
	char path[64];
	bool good;
	int fd;

	snprintf(path, sizeof(path), "/dev/cpu/%d/msr", cpu);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	good = fd >= 0 && pread(fd, &value, sizeof(value), PQR_ASSOC) == sizeof(value);
	if (fd >= 0)
		close(fd);
	*rmid = (uint32_t)value;
	*closid = value >> 32;
	return good;
}

static bool file_has(const char *path, const char *word)
{
	FILE *file = fopen(path, "re");
	size_t room = 0;
	char *line = NULL;
	bool found = false;

	while (file && !found && getline(&line, &room, file) > 0)
		found = strstr(line, word);
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* The RMID that the module says the process has, or 0. */
static unsigned int rmid_of(pid_t pid)
{
	unsigned int rmid, generation;
	FILE *file = fopen(RMIDS, "re");
	char line[512];
	int tgid;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%u %u %d", &rmid, &generation, &tgid) == 3 && tgid == pid) {
			fclose(file);
			return rmid;
		}
	}
	if (file)
		fclose(file);
	return 0;
}

static const char *rdt_obstacle(void)
{
	uint32_t rmid, closid;

	if (!file_has("/proc/cpuinfo", " cqm_occup_llc"))
		return "this CPU has no RDT monitoring (cqm_occup_llc)";
	if (file_has("/proc/mounts", " resctrl "))
		return "resctrl is mounted and may be in use";
	if (!pqr_read(0, &rmid, &closid))
		return "the driver msr is not loaded (modprobe msr)";
	for (cpus = 0; cpus < CPUS_MAX && pqr_read(cpus, &rmid, &closid); cpus++)
		if (rmid)
			return "another program uses RMIDs";
	return NULL;
}

/*
 * Before main(), because the harness of 6.1 runs a test although its set-up was skipped, and
 * prints a skip without the name of the test, which is no KTAP.
 */
static void __attribute__((constructor)) skip_without_rdt(void)
{
	const char *obstacle = rdt_obstacle();

	if (!obstacle)
		obstacle = module_obstacle();
	if (!obstacle)
		return;
	ksft_print_header();
	ksft_exit_skip("%s\n", obstacle);
}

FIXTURE(pqr)
{
	int session;
	pid_t spinner;
	int cpu;
	uint32_t closids[CPUS_MAX];
};

FIXTURE_SETUP(pqr)
{
	struct memwatch_start start = { .size = sizeof(start) };
	uint32_t rmid;
	cpu_set_t set;

	self->session = -1;
	self->spinner = 0;
	for (int cpu = 0; cpu < cpus; cpu++)
		ASSERT_TRUE(pqr_read(cpu, &rmid, &self->closids[cpu]));
	self->cpu = cpus - 1;
	self->spinner = fork();
	ASSERT_GE(self->spinner, 0);
	if (!self->spinner) {
		CPU_ZERO(&set);
		CPU_SET(self->cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
		for (;;)
			;
	}
	ASSERT_EQ(0, module_load());
	self->session = open("/dev/memwatch", O_RDWR | O_CLOEXEC);
	ASSERT_GE(self->session, 0);
	ASSERT_EQ(0, ioctl(self->session, MEMWATCH_IOC_START, &start));
}

FIXTURE_TEARDOWN(pqr)
{
	if (self->session >= 0)
		close(self->session);
	if (self->spinner > 0) {
		kill(self->spinner, SIGKILL);
		waitpid(self->spinner, NULL, 0);
	}
	module_unload();
}

/* Another process may run for a moment, so that not every reading is that of the spinning one. */
TEST_F(pqr, running_process_has_its_rmid)
{
	unsigned int wanted = rmid_of(self->spinner), hits = 0;
	uint32_t rmid, closid;

	ASSERT_NE(0, wanted);
	for (int i = 0; i < 100; i++) {
		ASSERT_TRUE(pqr_read(self->cpu, &rmid, &closid));
		hits += rmid == wanted;
		usleep(2000);
	}
	EXPECT_GE(hits, 50);
}

TEST_F(pqr, class_is_kept_during_a_session)
{
	uint32_t rmid, closid;

	for (int i = 0; i < 20; i++) {
		for (int cpu = 0; cpu < cpus; cpu++) {
			ASSERT_TRUE(pqr_read(cpu, &rmid, &closid));
			EXPECT_EQ(self->closids[cpu], closid);
		}
		usleep(5000);
	}
}

TEST_F(pqr, register_is_restored_after_a_session)
{
	uint32_t rmid, closid;

	usleep(100000);
	close(self->session);
	self->session = -1;
	ASSERT_TRUE(module_unload());
	for (int cpu = 0; cpu < cpus; cpu++) {
		ASSERT_TRUE(pqr_read(cpu, &rmid, &closid));
		EXPECT_EQ(0, rmid);
		EXPECT_EQ(self->closids[cpu], closid);
	}
}

TEST_HARNESS_MAIN
