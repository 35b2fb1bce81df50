// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Runs in the guest and sends commands to the simulated machine, see control.h. Most
 * commands are sent as they are. To "guest" and "snapshot" it adds what only the guest
 * knows.
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
	"  guest                       attribute traffic to processes from now on\n"
	"  track on|off                start or stop watching memory accesses\n"
	"  snapshot [LABEL]            append what each owner moved to /out/rdt.truth\n"
	"  every MS COUNT [LABEL]      COUNT snapshots, MS milliseconds apart\n"
	"  log on|off                  log each access to an RDT register in /out/rdt.msr:\n"
	"                              host_ns cpu r|w msr value [fault]\n"
	"  log truth                   the same, and after each read of a counter what the\n"
	"                              processes of the domain have moved and hold\n"
	"  inject error|unavailable DOMAIN RMID EVENT [TIMES]\n"
	"                              the next TIMES reads (default: all) fail like that\n"
	"  inject foreign DOMAIN RMID EVENT [TIMES]\n"
	"                              other software selects RMID 0 after each of the next TIMES\n"
	"                              selections of this counter\n"
	"  inject restart DOMAIN RMID EVENT\n"
	"                              unavailable once, then counting from 0\n"
	"  inject clear                remove all injected faults\n"
	"  pqr CPU RMID CLOSID         write PQR_ASSOC of that CPU as other software would\n"
	"  sleep                       reset all registers of RDT and of the PMU, and empty the\n"
	"                              caches, when the guest resumes (writes IA32_MCG_CTL)\n"
	"  slow FACTOR                 a second of the guest takes FACTOR seconds of the host\n"
	"DOMAIN, RMID and EVENT (occupancy, total, local) may be '*'.\n";

static int machine_is_present(void)
{
	unsigned int a, b, c, d;
	char signature[13] = "";

	__cpuid_count(CONTROL_LEAF, 0, a, b, c, d);
	memcpy(signature, &b, 4);
	memcpy(signature + 4, &c, 4);
	memcpy(signature + 8, &d, 4);
	return !strcmp(signature, "memwatchrdt1");
}

static __attribute__((format(printf, 1, 2))) int send_command(const char *format, ...)
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

static int send_snapshot(const char *label)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return send_command("snapshot %s %" PRIu64, label,
			    now.tv_sec * UINT64_C(1000000000) + now.tv_nsec);
}

static int send_snapshots(unsigned int ms, unsigned int count, const char *label)
{
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	while (count--) {
		if (send_snapshot(label))
			return -1;
		next.tv_nsec += ms % 1000 * 1000000l;
		next.tv_sec += ms / 1000 + next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return 0;
}

/* --- The layout of this kernel --- */

static uint64_t find_symbol(const char *wanted)
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

/* The offset of a member in bytes, or -1. */
static long member_offset(const struct btf *btf, const struct btf_type *t, const char *member)
{
	const struct btf_member *m = btf_members(t);
	int i;

	for (i = 0; i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, m[i].name_off), member))
			return btf_member_bit_offset(t, i) / 8;
	fprintf(stderr, "rdtctl: task_struct has no %s\n", member);
	return -1;
}

static int send_guest_layout(void)
{
	static const char *const member[] = { "tgid", "group_leader", "start_boottime", "comm" };
	struct btf *btf = btf__load_vmlinux_btf();
	uint64_t current = find_symbol("current_task");
	long at[4];
	int id, i;

	/* From 6.2 (commit e57ef2ed97c1) to 6.14 it is the first member of pcpu_hot. */
	if (!current)
		current = find_symbol("pcpu_hot");
	if (!current || !btf) {
		fprintf(stderr, "rdtctl: cannot read the symbols or the BTF of this kernel\n");
		return -1;
	}
	id = btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT);
	if (id < 0)
		return -1;
	for (i = 0; i < 4; i++) {
		at[i] = member_offset(btf, btf__type_by_id(btf, id), member[i]);
		if (at[i] < 0)
			return -1;
	}
	btf__free(btf);
	return send_command("guest 0x%" PRIx64 " 0x%" PRIx64 " %ld %ld %ld %ld",
			    find_symbol("__per_cpu_offset"), current, at[0], at[1], at[2], at[3]);
}

static int send_words(int argc, char **argv)
{
	char text[TEXT_MAX] = "";
	int i;

	for (i = 1; i < argc; i++)
		if (snprintf(text + strlen(text), sizeof(text) - strlen(text), i > 1 ? " %s" : "%s",
			     argv[i]) >= (int)(sizeof(text) - strlen(text)))
			break;
	return send_command("%s", text);
}

int main(int argc, char **argv)
{
	int ret;

	if (argc < 2 || !strcmp(argv[1], "--help")) {
		fputs(usage, argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : 0;
	}
	if (!machine_is_present()) {
		fprintf(stderr, "rdtctl: this is not the simulated machine\n");
		return 1;
	}
	if (!strcmp(argv[1], "present"))
		ret = 0;
	else if (!strcmp(argv[1], "guest"))
		ret = send_guest_layout();
	else if (!strcmp(argv[1], "snapshot"))
		ret = send_snapshot(argc > 2 ? argv[2] : "-");
	else if (!strcmp(argv[1], "every") && argc > 3)
		ret = send_snapshots(atoi(argv[2]), atoi(argv[3]), argc > 4 ? argv[4] : "-");
	else
		ret = send_words(argc, argv);
	return ret ? 1 : 0;
}
