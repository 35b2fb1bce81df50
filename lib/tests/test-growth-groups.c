// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Cgroups and the machine under the detectors: growth in each class is found, it is told once and
 * of whom an operator would want to hear, and what is no news is not told.
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/groups.h>

#include "../../selftests/tap.h"

#define MIB (1ULL << 20)
#define KIB (1ULL << 10)

static struct memwatch_ctx *ctx;
static struct memwatch_growth *growth;

static void begin(void)
{
	if (memwatch_growth_new(ctx, &growth))
		exit(EXIT_FAILURE);
}

static void end(void)
{
	growth = memwatch_growth_unref(growth);
}

/* Feeds a process; @pid 0 is the cgroup itself. */
static int feed(double t, uint32_t pid, const char *cgroup, double anon, double shmem, double limit)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample, .tgid = pid, .comm = "x", .cgroup = cgroup);

	sample.time_ns = (uint64_t)(t * 1e9);
	sample.anon_bytes = (uint64_t)anon;
	sample.shmem_bytes = (uint64_t)shmem;
	sample.limit_bytes = limit > 0 ? (uint64_t)limit : MEMWATCH_GROWTH_NONE;
	return memwatch_growth_feed(growth, &sample);
}

/* Finds a class of a cgroup. Returns whether there is one. */
static bool find(const char *path, unsigned int class, struct memwatch_growth_group *group,
		 struct memwatch_growth_row *row)
{
	*group = (struct memwatch_growth_group){ .sz = sizeof(*group) };
	*row = (struct memwatch_growth_row){ .sz = sizeof(*row) };
	for (unsigned int i = 0; memwatch_growth_get_group(growth, i, group, row) == 1; i++)
		if (!strcmp(group->path, path) && group->kind == class)
			return true;
	return false;
}

static bool is_noticed(const char *path, unsigned int class)
{
	struct memwatch_growth_group group;
	struct memwatch_growth_row row;

	return find(path, class, &group, &row) && row.first_notice_ns != MEMWATCH_GROWTH_NONE;
}

static bool is_alerted(const char *path, unsigned int class)
{
	struct memwatch_growth_group group;
	struct memwatch_growth_row row;

	return find(path, class, &group, &row) && row.first_alert_ns != MEMWATCH_GROWTH_NONE;
}

/* Feeds each class of a cgroup the same growth and looks at which one is told. */
static void test_each_class(void)
{
	for (unsigned int class = 0; class < MEMWATCH_CLASSES; class ++) {
		bool told = true;

		begin();
		for (double t = 0; t <= 900; t += 5) {
			MEMWATCH_OPTS(memwatch_growth_sample, s, .cgroup = "/a",
				      .limit_bytes = MEMWATCH_GROWTH_NONE);
			__u64 grown = (__u64)t * 100 * KIB;

			s.time_ns = (__u64)(t * 1e9);
			s.anon_bytes = 50 * MIB + (class == MEMWATCH_CLASS_ANON ? grown : 0);
			s.shmem_bytes = 5 * MIB + (class == MEMWATCH_CLASS_SHMEM ? grown : 0);
			s.slab_bytes = 5 * MIB + (class == MEMWATCH_CLASS_SLAB ? grown : 0);
			s.sock_bytes = 5 * MIB + (class == MEMWATCH_CLASS_SOCK ? grown : 0);
			s.pagetables_bytes = 5 * MIB +
					     (class == MEMWATCH_CLASS_PAGETABLES ? grown : 0);
			s.kernel_bytes = 10 * MIB + s.slab_bytes + s.pagetables_bytes +
					 (class == MEMWATCH_CLASS_KERNEL ? grown : 0);
			told &= !memwatch_growth_feed(growth, &s);
		}
		for (unsigned int i = 0; i < MEMWATCH_CLASSES; i++)
			told &= is_noticed("/a", i) == (i == class);
		tap_ok(told, "growth of the class %s is told, and of no other",
		       memwatch_growth_class_name(class));
		end();
	}
}

static void test_blame(void)
{
	struct memwatch_growth_group group;
	struct memwatch_growth_row row;

	begin();
	for (double t = 0; t <= 1200; t += 5) {
		double leak = t * 200 * KIB;

		feed(t, 0, "/", 900.0 * MIB + leak, 0, 4e9);
		feed(t, 0, "/a", 100.0 * MIB + leak, 0, 0);
		feed(t, 0, "/a/b", 90.0 * MIB + leak, 0, 0);
		feed(t, 0, "/ab", 90.0 * MIB, 0, 0);
	}
	tap_ok(is_noticed("/a/b", MEMWATCH_CLASS_ANON), "the deepest cgroup is blamed");
	tap_ok(!is_noticed("/a", MEMWATCH_CLASS_ANON) && !is_noticed("/", MEMWATCH_CLASS_ANON),
	       "neither the cgroup above nor the machine is, for the same bytes");
	end();

	begin();
	for (double t = 0; t <= 1200; t += 5) {
		feed(t, 9, "/a/b", 90.0 * MIB + t * 200 * KIB, 0, 0);
		feed(t, 0, "/a", 100.0 * MIB + t * 200 * KIB, 0, 0);
	}
	tap_ok(!is_noticed("/a", MEMWATCH_CLASS_ANON),
	       "a process that holds the growth is judged by itself");
	tap_ok(find("/a", MEMWATCH_CLASS_ANON, &group, &row) &&
		       row.verdict == MEMWATCH_GROWTH_GROWING,
	       "the cgroup of such a process is shown as growing");
	end();

	begin();
	for (double t = 0; t <= 1200; t += 5) {
		feed(t, 9, "/a", 90.0 * MIB + t * 120 * KIB, 0, 0);
		feed(t, 0, "/a", 100.0 * MIB + t * 200 * KIB, 0, 0);
	}
	tap_ok(is_noticed("/a", MEMWATCH_CLASS_ANON) &&
		       find("/a", MEMWATCH_CLASS_ANON, &group, &row) && group.by_tgid == 9 &&
		       !strcmp(group.by_comm, "x"),
	       "a process that holds most of the growth is named");
	end();

	begin();
	for (double t = 0; t <= 1200; t += 5) {
		feed(t, 9, "/a", 90.0 * MIB + t * 200 * KIB, 0, 0);
		feed(t, 0, "/a", 100.0 * MIB + t * 200 * KIB, t * 200 * KIB, 0);
	}
	tap_ok(is_noticed("/a", MEMWATCH_CLASS_SHMEM),
	       "a process that grows in one class does not hide a tmpfs that fills");
	end();
}

/* The signal of a child depends on its age only; there are more and more of them. */
static void test_pool(void)
{
	begin();
	for (double t = 0; t <= 3000; t += 5) {
		int children = 20 + (int)(t / 30);

		for (int i = 0; i < children; i++) {
			double age = fmod(t + i * 37, 200);
			uint32_t pid = 100 + (uint32_t)i * 1000 + (uint32_t)((t + i * 37) / 200);

			feed(t, pid, "/pool", 3.0 * MIB + (age > 10 ? MIB : 0), 0, 0);
		}
		feed(t, 0, "/pool", children * 4.0 * MIB, 0, 400.0 * MIB);
	}
	tap_ok(is_noticed("/pool", MEMWATCH_CLASS_ANON),
	       "a pool of more and more short-lived children is told");
	tap_ok(is_alerted("/pool", MEMWATCH_CLASS_ANON), "before its limit there is an alert");
	end();
}

/* What a class had gained when it was first seen counts, however old its cgroup is. */
static void test_new_class(void)
{
	begin();
	for (double t = 0; t <= 2 * 3600; t += 5)
		feed(t, 0, "/a", 100.0 * MIB, t < 6000 ? 0 : 20.0 * MIB, 0);
	tap_ok(is_noticed("/a", MEMWATCH_CLASS_SHMEM),
	       "the first growth of a class is told in a cgroup that is older than an hour");
	end();
}

static void test_no_news(void)
{
	begin();
	for (double t = 0; t <= 1200; t += 5) {
		MEMWATCH_OPTS(memwatch_growth_sample, s, .cgroup = "/a",
			      .limit_bytes = MEMWATCH_GROWTH_NONE);

		s.time_ns = (__u64)(t * 1e9);
		s.anon_bytes = 100 * MIB + (__u64)t * 20 * MIB;
		s.kernel_bytes = s.pagetables_bytes = 2 * MIB + (__u64)t * 40 * KIB;
		memwatch_growth_feed(growth, &s);
	}
	tap_ok(!is_noticed("/a", MEMWATCH_CLASS_PAGETABLES),
	       "page tables that grow with the memory that they map are not told");
	end();

	begin();
	for (double t = 0; t <= 90; t += 1) {
		feed(t, 0, "/a", 10.0 * MIB, 0, 800.0 * MIB);
		feed(t, 0, "/b", 10.0 * MIB, 0, 800.0 * MIB);
		feed(t, 0, "/c", (10.0 + t / 17) * MIB, 0, 800.0 * MIB);
	}
	for (double t = 91; t <= 300; t += 1) {
		double grown = (t < 180 ? t - 90 : 90) * 7 * MIB;

		feed(t, 0, "/a", 10.0 * MIB + grown, 0, 800.0 * MIB);
		feed(t, 0, "/c", (10.0 + 90.0 / 17) * MIB + grown, 0, 800.0 * MIB);
		feed(t, 0, "/b", 10.0 * MIB + (t - 90) * 3 * MIB, 0, 800.0 * MIB);
	}
	tap_ok(!is_alerted("/a", MEMWATCH_CLASS_ANON),
	       "processes that start in a cgroup and fill 80 %% of its limit are no alert");
	tap_ok(!is_alerted("/c", MEMWATCH_CLASS_ANON),
	       "processes that start in a cgroup that grows slowly are no alert");
	tap_ok(is_alerted("/b", MEMWATCH_CLASS_ANON), "growth that goes on for longer is one");
	end();

	/* A leak of 1 MiB/s that becomes ten times as fast, and reaches the limit 225 s later. */
	begin();
	for (double t = 0; t <= 1800; t += 5)
		feed(t, 0, "/a", (50 + t) * MIB, 0, 4096.0 * MIB);
	tap_ok(!is_alerted("/a", MEMWATCH_CLASS_ANON), "a leak is no alert as long as it is slow");
	for (double t = 1805; t <= 1800 + 112; t += 5)
		feed(t, 0, "/a", (50 + t + 9 * (t - 1800)) * MIB, 0, 4096.0 * MIB);
	tap_ok(is_alerted("/a", MEMWATCH_CLASS_ANON),
	       "a leak of a cgroup that becomes fast is an alert in the first half of its time");
	end();

	begin();
	for (double t = 0; t < 4 * 86400; t += 60) {
		double wave = sin(t / 700) * 150 + sin(t / 13000) * 250;

		feed(t, 0, "/", (6600 + wave) * MIB, (200 - wave / 4) * MIB, 8000.0 * MIB);
	}
	tap_ok(!is_alerted("/", MEMWATCH_CLASS_ANON) && !is_alerted("/", MEMWATCH_CLASS_SHMEM),
	       "a machine that is full for days does not alert on each wobble");
	end();
}

static void test_errors(void)
{
	MEMWATCH_OPTS(memwatch_growth_group, group);
	MEMWATCH_OPTS(memwatch_growth_row, row);

	begin();
	tap_eq(feed(5, 0, "/a", 5.0 * MIB, 0, 0), 0, "a sample of a cgroup has no event");
	tap_eq(feed(4, 0, "/a", 5.0 * MIB, 0, 0), -EINVAL, "time does not go back");
	tap_eq(memwatch_growth_get_group(growth, 0, &group, &row), 1, "there is one class");
	tap_eq(memwatch_growth_get_group(growth, 1, &group, &row), 0, "there is no other");
	group.sz = 0;
	tap_eq(memwatch_growth_get_group(growth, 0, &group, &row), -EINVAL, "a size is needed");
	tap_ok(!strcmp(memwatch_growth_class_name(MEMWATCH_CLASSES), "unknown"),
	       "an unknown class has a name too");
	end();
}

int main(void)
{
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_each_class();
	test_blame();
	test_pool();
	test_new_class();
	test_no_news();
	test_errors();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
