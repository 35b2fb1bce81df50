// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The core of the plugin: its options, the calls from translated code into the simulated
 * caches, and the hooks of the processor.
 */
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qemu-plugin.h>

#include "cache.h"
#include "control.h"
#include "machine.h"
#include "pmu.h"
#include "rdt.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

struct machine machine = {
	.domains = 1,
	.snc = 1,
	.rmids = { 64 },
	.closids = MAX_CLOSIDS,
	.llc_mib = 8,
	.mem_mib = 1024,
	.scale = 1 << LINE_SHIFT,
	.width = 44,
	.dir = ".",
};

/* Of one vCPU; the translated code itself adds to it. */
struct executed {
	uint64_t instructions[2];
};

static qemu_plugin_id_t plugin;
static struct qemu_plugin_scoreboard *executed;
static bool tracking, never_tracks, sleeping;
static unsigned int wakes;

/* Linux writes it first when it resumes, before other CPUs are started. */
enum { MSR_MCG_CTL = 0x17b };

/* --- The translated code --- */

static void instrument_block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	/* The upper half of the address space belongs to the kernel. */
	bool kernel = qemu_plugin_tb_vaddr(tb) >> 63;
	size_t i, n = qemu_plugin_tb_n_insns(tb);

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
		tb, QEMU_PLUGIN_INLINE_ADD_U64,
		(qemu_plugin_u64){ executed, kernel * sizeof(uint64_t) }, n);
	if (!machine_tracking())
		return;
	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		void *mode = kernel ? &machine : NULL;

		qemu_plugin_register_vcpu_mem_cb(insn, cache_load, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_R, mode);
		qemu_plugin_register_vcpu_mem_cb(insn, cache_store, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_W, mode);
	}
}

static void register_callbacks(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, instrument_block);
}

/* Let QEMU translate all code again, with or without calls for memory accesses. */
void machine_track(bool on)
{
	on = on && !never_tracks;
	if (__atomic_exchange_n(&tracking, on, __ATOMIC_SEQ_CST) != on)
		qemu_plugin_reset(plugin, register_callbacks);
}

bool machine_tracking(void)
{
	return __atomic_load_n(&tracking, __ATOMIC_RELAXED);
}

void machine_sleep(void)
{
	__atomic_store_n(&sleeping, true, __ATOMIC_SEQ_CST);
}

/* The caches come first, since what they write back is counted before power goes off. */
static void machine_wake(void)
{
	if (!__atomic_exchange_n(&sleeping, false, __ATOMIC_SEQ_CST))
		return;
	cache_flush();
	rdt_reset();
	pmu_reset();
	__atomic_fetch_add(&wakes, 1, __ATOMIC_SEQ_CST);
}

unsigned int machine_wakes(void)
{
	return __atomic_load_n(&wakes, __ATOMIC_SEQ_CST);
}

uint64_t machine_instructions(unsigned int cpu, bool kernel)
{
	struct executed *e = qemu_plugin_scoreboard_find(executed, cpu);

	return e->instructions[kernel];
}

bool machine_read(uint64_t address, void *to, unsigned int size)
{
	static __thread GByteArray *bytes;

	if (!bytes)
		bytes = g_byte_array_new();
	if (!qemu_plugin_read_memory_vaddr(address, bytes, size))
		return false;
	memcpy(to, bytes->data, size);
	return true;
}

/* --- The processor --- */

static void on_cpuid(unsigned int cpu, struct x86_hook_cpuid *c)
{
	rdt_cpuid(cpu, c);
	pmu_cpuid(c);
	control_cpuid(cpu, c);
}

static enum x86_hook_answer on_rdmsr(unsigned int cpu, uint32_t msr, uint64_t *value)
{
	enum x86_hook_answer answer = rdt_rdmsr(cpu, msr, value);

	return answer == X86_HOOK_PASS ? pmu_rdmsr(cpu, msr, value) : answer;
}

static enum x86_hook_answer on_wrmsr(unsigned int cpu, uint32_t msr, uint64_t value)
{
	enum x86_hook_answer answer = rdt_wrmsr(cpu, msr, value);

	if (msr == MSR_MCG_CTL)
		machine_wake();
	return answer == X86_HOOK_PASS ? pmu_wrmsr(cpu, msr, value) : answer;
}

static void on_cr3(unsigned int cpu, uint64_t value)
{
	(void)value;
	cache_empty_l1(cpu);
}

static const struct x86_hooks hooks = {
	.cpuid = on_cpuid,
	.rdmsr = on_rdmsr,
	.wrmsr = on_wrmsr,
	.rdpmc = pmu_rdpmc,
	.cr3 = on_cr3,
};

/* --- Options --- */

/* "64", or one for each domain: "64/32". */
static bool parse_rmids(const char *text)
{
	unsigned int d;
	char *end;

	for (d = 0; d < MAX_DOMAINS; d++) {
		unsigned long n = strtoul(text, &end, 10);

		if (end == text || n < 1 || n > MAX_RMIDS)
			return false;
		machine.rmids[d] = n;
		if (*end == '/')
			text = end + 1;
		else if (*end)
			return false;
	}
	return true;
}

static bool parse_number_option(const char *key, const char *text)
{
	const struct {
		const char *key;
		unsigned int *to;
		unsigned int min, max;
	} known[] = {
		{ "domains", &machine.domains, 1, MAX_DOMAINS },
		{ "snc", &machine.snc, 1, MAX_DOMAINS },
		{ "closids", &machine.closids, 0, MAX_CLOSIDS },
		{ "llc", &machine.llc_mib, 1, 512 },
		{ "scale", &machine.scale, 1, 1 << 24 },
		{ "width", &machine.width, 24, 62 },
		{ "overflow", &machine.overflow, 0, 1 },
		{ "abmc", &machine.abmc, 0, 32 },
		{ "delay", &machine.delay, 0, 1000000 },
	};
	unsigned long long n;
	unsigned int i;
	char *end;

	n = strtoull(text, &end, 0);
	if (end == text || *end)
		return false;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(key, known[i].key)) {
			*known[i].to = n;
			return n >= known[i].min && n <= known[i].max;
		}
	if (!strcmp(key, "mem"))
		machine.mem_mib = n;
	else if (!strcmp(key, "start"))
		machine.start = n;
	else
		return false;
	return true;
}

static bool parse_option(const char *option)
{
	char *key = strdup(option), *value = strchr(key, '=');
	bool ok = value != NULL;

	if (ok)
		*value++ = 0;
	if (!ok)
		;
	else if (!strcmp(key, "dir"))
		ok = (machine.dir = strdup(value));
	else if (!strcmp(key, "vendor"))
		ok = (machine.amd = !strcmp(value, "amd")) || !strcmp(value, "intel");
	else if (!strcmp(key, "track"))
		ok = (tracking = !strcmp(value, "boot")) ||
		     (never_tracks = !strcmp(value, "never")) || !strcmp(value, "demand");
	else if (!strcmp(key, "rmids"))
		ok = parse_rmids(value);
	else
		ok = parse_number_option(key, value);
	free(key);
	return ok;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	int i;

	if (!info->system_emulation || strcmp(info->target_name, "x86_64")) {
		fprintf(stderr, "rdt-machine: needs an x86_64 system\n");
		return -1;
	}
	parse_rmids("64/64/64/64/64/64/64/64");
	for (i = 0; i < argc; i++)
		if (!parse_option(argv[i])) {
			fprintf(stderr, "rdt-machine: invalid option: %s\n", argv[i]);
			return -1;
		}
	machine.cpus = info->system.max_vcpus;
	if (machine.cpus > MAX_CPUS || machine.cpus % (machine.domains * machine.snc)) {
		fprintf(stderr, "rdt-machine: %u CPUs cannot be divided among %u domains\n",
			machine.cpus, machine.domains);
		return -1;
	}
	plugin = id;
	executed = qemu_plugin_scoreboard_new(sizeof(struct executed));
	cache_init();
	rdt_init();
	qemu_plugin_set_x86_hooks(&hooks);
	register_callbacks(id);
	return 0;
}
