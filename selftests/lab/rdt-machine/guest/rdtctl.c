// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs in the guest: talks to the machine, see control.h. Most commands go
 * there as they are; "guest" and "snapshot" are completed with what only the
 * guest knows.
 */
#include <bpf/btf.h>
#include <cpuid.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CONTROL_LEAF = 0x4d570000, TEXT_MAX = 512 };

static const char usage[] =
	"Usage: rdtctl COMMAND\n"
	"  present                     succeeds if this is the simulated machine\n"
	"  guest                       from now on, tell processes apart\n"
	"  track on|off                watch memory accesses, or do not\n"
	"  snapshot [LABEL]            append the truth to /out/rdt.truth\n"
	"  every MS COUNT [LABEL]      that many, MS milliseconds apart\n"
	"  log on|off                  each operation on an RDT register to /out/rdt.msr:\n"
	"                              host_ns cpu r|w msr value [fault]\n"
	"  log truth                   and after each read of a counter, what the\n"
	"                              processes of the domain have moved and hold\n"
	"  inject error|unavailable DOMAIN RMID EVENT [TIMES]\n"
	"                              the next TIMES reads (default: all) are that\n"
	"  inject restart DOMAIN RMID EVENT\n"
	"                              unavailable once, then counting from 0\n"
	"  inject clear                no more of these\n"
	"  pqr CPU RMID CLOSID         write that CPU's PQR_ASSOC as a stranger\n"
	"DOMAIN, RMID and EVENT (occupancy, total, local) may be '*'.\n";

static int present(void)
{
	unsigned int a, b, c, d;
	char signature[13] = "";

	__cpuid_count(CONTROL_LEAF, 0, a, b, c, d);
	memcpy(signature, &b, 4);
	memcpy(signature + 4, &c, 4);
	memcpy(signature + 8, &d, 4);
	return !strcmp(signature, "memwatchrdt1");
}

static __attribute__((format(printf, 1, 2))) int say(const char *format, ...)
{
	unsigned long error = CONTROL_LEAF, text_at, length;
	char text[TEXT_MAX];
	va_list args;
	long sub = 1;

	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (length >= sizeof(text))
		return -1;
	text_at = (unsigned long)text;
	__asm__ volatile("cpuid"
			 : "+a"(error), "+b"(text_at), "+c"(sub), "+d"(length)
			 :
			 : "memory");
	if (!error)
		return 0;
	fprintf(stderr, "rdtctl: %s: %s\n", text, strerror(error));
	return -1;
}

static int snapshot(const char *label)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return say("snapshot %s %" PRIu64, label, now.tv_sec * UINT64_C(1000000000) + now.tv_nsec);
}

static int every(unsigned int ms, unsigned int count, const char *label)
{
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	while (count--) {
		if (snapshot(label))
			return -1;
		next.tv_nsec += ms % 1000 * 1000000l;
		next.tv_sec += ms / 1000 + next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return 0;
}

/* --- What the machine must know of this kernel --- */

static uint64_t symbol(const char *wanted)
{
	char name[256], line[512];
	FILE *f = fopen("/proc/kallsyms", "re");
	uint64_t at, found = 0;

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 " %*c %255s", &at, name) == 2 && !strcmp(name, wanted))
			found = at;
	if (f)
		fclose(f);
	return found;
}

/* Byte offset, or -1. */
static long offset(const struct btf *btf, const struct btf_type *t, const char *member)
{
	const struct btf_member *m = btf_members(t);
	int i;

	for (i = 0; i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, m[i].name_off), member))
			return btf_member_bit_offset(t, i) / 8;
	fprintf(stderr, "rdtctl: task_struct has no %s\n", member);
	return -1;
}

static int guest(void)
{
	static const char *const member[] = { "tgid", "group_leader", "start_boottime", "comm" };
	struct btf *btf = btf__load_vmlinux_btf();
	uint64_t current = symbol("current_task");
	long at[4];
	int id, i;

	/* 6.2 (e57ef2ed97c1) to 6.14 have it as the first of these */
	if (!current)
		current = symbol("pcpu_hot");
	if (!current || !btf) {
		fprintf(stderr, "rdtctl: no symbols of this kernel\n");
		return -1;
	}
	id = btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT);
	if (id < 0)
		return -1;
	for (i = 0; i < 4; i++) {
		at[i] = offset(btf, btf__type_by_id(btf, id), member[i]);
		if (at[i] < 0)
			return -1;
	}
	btf__free(btf);
	return say("guest 0x%" PRIx64 " 0x%" PRIx64 " %ld %ld %ld %ld", symbol("__per_cpu_offset"),
		   current, at[0], at[1], at[2], at[3]);
}

static int as_is(int argc, char **argv)
{
	char text[TEXT_MAX] = "";
	int i;

	for (i = 1; i < argc; i++)
		if (snprintf(text + strlen(text), sizeof(text) - strlen(text), i > 1 ? " %s" : "%s",
			     argv[i]) >= (int)(sizeof(text) - strlen(text)))
			break;
	return say("%s", text);
}

int main(int argc, char **argv)
{
	int ret;

	if (argc < 2 || !strcmp(argv[1], "--help")) {
		fputs(usage, argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : 0;
	}
	if (!present()) {
		fprintf(stderr, "rdtctl: not the simulated machine\n");
		return 1;
	}
	if (!strcmp(argv[1], "present"))
		ret = 0;
	else if (!strcmp(argv[1], "guest"))
		ret = guest();
	else if (!strcmp(argv[1], "snapshot"))
		ret = snapshot(argc > 2 ? argv[2] : "-");
	else if (!strcmp(argv[1], "every") && argc > 3)
		ret = every(atoi(argv[2]), atoi(argv[3]), argc > 4 ? argv[4] : "-");
	else
		ret = as_is(argc, argv);
	return ret ? 1 : 0;
}
