// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The commands of the guest, the snapshots of the truth, and the log.
 */
#include "control.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "clock.h"
#include "guest.h"
#include "rdt.h"

enum { TEXT_MAX = 512, WORDS_MAX = 16 };

/* Serialises commands. It is taken before the lock of rdt.c. */
static pthread_mutex_t command_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int sequence; /* of snapshots */

/* Protects the log. It is taken inside the lock of rdt.c, so it must not be command_lock. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *msr_log;
static bool log_truth;
static struct traffic
	*logged[MAX_DOMAINS]; /* by domain and owner: the values that were logged last */

static FILE *open_in_dir(const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", machine.dir, name);
	return fopen(path, "ae");
}

/* --- Snapshots --- */

static void print_traffic(FILE *f, const struct traffic *t)
{
	fprintf(f,
		" occupancy=%" PRIu64 " total=%" PRIu64 " local=%" PRIu64 " fills=%" PRIu64
		" writebacks=%" PRIu64 " switch_fills=%" PRIu64 "\n",
		t->lines << LINE_SHIFT, total_bytes(t), local_bytes(t), t->fills, t->writebacks,
		t->switch_fills);
}

static void print_cpu(FILE *f, unsigned int cpu)
{
	static const char *const name[] = { "evtsel", "ctr", "pqr" };
	struct rdt_use use = rdt_use(cpu);
	int i;

	fprintf(f,
		"cpu %u domain=%u rmid=%u closid=%u instructions_user=%" PRIu64
		" instructions_kernel=%" PRIu64 " references=%" PRIu64 " misses=%" PRIu64,
		cpu, domain_of_cpu(cpu), use.rmid, use.closid, machine_instructions(cpu, false),
		machine_instructions(cpu, true),
		cache_references(cpu, false) + cache_references(cpu, true),
		cache_misses(cpu, false) + cache_misses(cpu, true));
	for (i = 0; i < 3; i++)
		fprintf(f, " rdmsr_%s=%" PRIu64 " wrmsr_%s=%" PRIu64, name[i], use.reads[i],
			name[i], use.writes[i]);
	fprintf(f, " faults=%" PRIu64 "\n", use.faults);
}

static void print_owner(FILE *f, unsigned int domain, unsigned int n)
{
	struct owner o = guest_owner(n);
	char *c;

	/* The name must be one word. */
	o.comm[COMM_LEN - 1] = 0;
	for (c = o.comm; *c; c++)
		if (*c <= ' ' || *c >= 127)
			*c = '_';
	if (n == UNKNOWN_OWNER)
		fprintf(f, "process %u tgid=-1 start=0 comm=unknown", domain);
	else
		fprintf(f, "process %u tgid=%u start=%" PRIu64 " comm=%s", domain, o.tgid, o.start,
			o.comm);
	print_traffic(f, cache_of_owner(domain, n));
}

static bool traffic_is_zero(const struct traffic *t)
{
	return !t->fills && !t->writebacks && !t->lines;
}

/* Nothing changes while the caches are locked, so that all sums agree. */
static void print_caches(FILE *f)
{
	unsigned int d, i, owners = guest_owners();

	cache_lock();
	for (d = 0; d < machine.domains; d++) {
		fprintf(f, "domain %u", d);
		print_traffic(f, cache_of_domain(d));
		for (i = 0; i < MAX_RMIDS; i++) {
			if (traffic_is_zero(cache_of_rmid(d, i)))
				continue;
			fprintf(f, "rmid %u %u", d, i);
			print_traffic(f, cache_of_rmid(d, i));
		}
		for (i = 0; i < owners; i++)
			if (!traffic_is_zero(cache_of_owner(d, i)))
				print_owner(f, d, i);
	}
	cache_unlock();
}

static int write_snapshot(uint64_t tsc, const char *label, const char *guest_ns)
{
	FILE *f = open_in_dir("rdt.truth");
	unsigned int cpu;

	if (!f)
		return EIO;
	fprintf(f,
		"truth label=%s sequence=%u tsc=%" PRIu64 " host_ns=%" PRIu64
		" monotonic_ns=%s tracking=%d wakes=%u\n",
		label, sequence++, tsc, clock_host_ns(), guest_ns, machine_tracking(),
		machine_wakes());
	for (cpu = 0; cpu < machine.cpus; cpu++)
		print_cpu(f, cpu);
	print_caches(f);
	fprintf(f, "end\n");
	return fclose(f) ? EIO : 0;
}

/* --- The log --- */

static int set_log(bool on, bool truth)
{
	FILE *new = on ? open_in_dir("rdt.msr") : NULL, *old;
	unsigned int d;

	if (on && !new)
		return EIO;
	pthread_mutex_lock(&log_lock);
	for (d = 0; truth && d < machine.domains; d++) {
		free(logged[d]);
		logged[d] = calloc(MAX_OWNERS, sizeof(*logged[d]));
		if (!logged[d])
			abort();
	}
	old = msr_log;
	msr_log = new;
	log_truth = truth;
	pthread_mutex_unlock(&log_lock);
	return old && fclose(old) ? EIO : 0;
}

/*
 * Log the values of those processes of the domain that have changed since they were logged
 * last. Between two reads that is a few of hundreds.
 */
static void log_processes(unsigned int domain)
{
	unsigned int i, owners = guest_owners();

	cache_lock();
	for (i = 0; i < owners; i++) {
		const struct traffic *t = cache_of_owner(domain, i);

		if (!memcmp(&logged[domain][i], t, sizeof(*t)))
			continue;
		logged[domain][i] = *t;
		print_owner(msr_log, domain, i);
	}
	cache_unlock();
}

void control_log(unsigned int cpu, char what, uint32_t msr, uint64_t value, bool fault)
{
	if (!msr_log)
		return;
	pthread_mutex_lock(&log_lock);
	if (msr_log)
		fprintf(msr_log, "%" PRIu64 " %u %c %x %" PRIx64 "%s\n", clock_host_ns(), cpu, what,
			msr, value, fault ? " fault" : "");
	if (msr_log && log_truth && what == 'r' && msr == MSR_CTR)
		log_processes(domain_of_cpu(cpu));
	pthread_mutex_unlock(&log_lock);
}

/* --- Commands --- */

static bool parse_number(const char *word, uint64_t *n)
{
	char *end;

	errno = 0;
	*n = strtoull(word, &end, 0);
	return !errno && end != word && !*end;
}

static bool parse_number_or_any(const char *word, int *n)
{
	uint64_t value;

	*n = ANY;
	if (!strcmp(word, "*"))
		return true;
	if (!parse_number(word, &value) || value > MAX_RMIDS)
		return false;
	*n = value;
	return true;
}

static bool parse_event_or_any(const char *word, int *event)
{
	static const char *const name[EVENTS] = {
		[OCCUPANCY] = "occupancy", [TOTAL] = "total", [LOCAL] = "local"
	};

	*event = ANY;
	if (!strcmp(word, "*"))
		return true;
	for (*event = OCCUPANCY; *event < EVENTS; ++*event)
		if (!strcmp(word, name[*event]))
			return true;
	return false;
}

/* inject KIND DOMAIN RMID EVENT [TIMES] */
static int do_inject(int words, char **word)
{
	static const char *const kind[] = {
		[FAULT_ERROR] = "error",
		[FAULT_UNAVAILABLE] = "unavailable",
		[FAULT_RESTART] = "restart",
		[FAULT_FOREIGN] = "foreign",
	};
	int domain, rmid, event;
	uint64_t times = UINT32_MAX;
	unsigned int k;

	if (words == 2 && !strcmp(word[1], "clear")) {
		rdt_clear();
		return 0;
	}
	if (words < 5 || words > 6 || !parse_number_or_any(word[2], &domain) ||
	    !parse_number_or_any(word[3], &rmid) || !parse_event_or_any(word[4], &event) ||
	    (words == 6 && (!parse_number(word[5], &times) || times > UINT32_MAX)))
		return EINVAL;
	for (k = 0; k < sizeof(kind) / sizeof(kind[0]); k++)
		if (!strcmp(word[1], kind[k]))
			return rdt_inject(k, domain, rmid, event, times) ? 0 : EINVAL;
	return EINVAL;
}

/* pqr CPU RMID CLOSID */
static int do_pqr(int words, char **word)
{
	uint64_t cpu, rmid, closid;

	if (words != 4 || !parse_number(word[1], &cpu) || !parse_number(word[2], &rmid) ||
	    !parse_number(word[3], &closid) || cpu >= machine.cpus || rmid >> 32)
		return EINVAL;
	return rdt_set_pqr(cpu, closid << 32 | rmid) ? 0 : EINVAL;
}

/* guest per_cpu_offset current tgid group_leader start_boottime comm */
static int do_guest(int words, char **word)
{
	struct guest_layout l;
	uint64_t *const field[] = { &l.per_cpu_offset, &l.current_task,	  &l.tgid,
				    &l.group_leader,   &l.start_boottime, &l.comm };
	int i;

	if (words != 7)
		return EINVAL;
	for (i = 0; i < 6; i++)
		if (!parse_number(word[i + 1], field[i]))
			return EINVAL;
	return guest_learn(&l) ? 0 : EFAULT;
}

static int do_slow(int words, char **word)
{
	uint64_t factor;

	if (words != 2 || !parse_number(word[1], &factor) || !factor || factor > MAX_SLOWDOWN)
		return EINVAL;
	return clock_slow(factor);
}

static int parse_on_or_off(int words, char **word, bool *on)
{
	if (words != 2)
		return EINVAL;
	*on = !strcmp(word[1], "on");
	return *on || !strcmp(word[1], "off") ? 0 : EINVAL;
}

static int run_command(uint64_t tsc, char *text)
{
	char *word[WORDS_MAX], *rest;
	int words = 0, error;
	bool on;

	for (; words < WORDS_MAX; words++, text = NULL)
		if (!(word[words] = strtok_r(text, " \n", &rest)))
			break;
	if (!words)
		return EINVAL;
	if (!strcmp(word[0], "snapshot"))
		return words == 3 ? write_snapshot(tsc, word[1], word[2]) : EINVAL;
	if (!strcmp(word[0], "inject"))
		return do_inject(words, word);
	if (!strcmp(word[0], "pqr"))
		return do_pqr(words, word);
	if (!strcmp(word[0], "guest"))
		return do_guest(words, word);
	if (!strcmp(word[0], "slow"))
		return do_slow(words, word);
	if (!strcmp(word[0], "sleep") && words == 1) {
		machine_sleep();
		return 0;
	}
	if (!strcmp(word[0], "log") && words == 2 && !strcmp(word[1], "truth"))
		return set_log(true, true);
	error = parse_on_or_off(words, word, &on);
	if (error)
		return error;
	if (!strcmp(word[0], "log"))
		return set_log(on, false);
	if (strcmp(word[0], "track"))
		return EINVAL;
	machine_track(on);
	return 0;
}

static int run_command_of_guest(const struct x86_hook_cpuid *c)
{
	char text[TEXT_MAX + 1] = { 0 };
	int error;

	if (!c->rdx || c->rdx > TEXT_MAX)
		return EINVAL;
	if (!machine_read(c->rbx, text, c->rdx))
		return EFAULT;
	pthread_mutex_lock(&command_lock);
	error = run_command(c->tsc, text);
	pthread_mutex_unlock(&command_lock);
	return error;
}

void control_cpuid(unsigned int cpu, struct x86_hook_cpuid *c)
{
	(void)cpu;
	if (c->leaf != CONTROL_LEAF)
		return;
	if (c->subleaf == 1) {
		c->eax = run_command_of_guest(c);
		return;
	}
	c->eax = 1;
	memcpy(&c->ebx, "memw", 4);
	memcpy(&c->ecx, "atch", 4);
	memcpy(&c->edx, "rdt1", 4);
}
