// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * TCG plugin that counts the instructions that a guest executes in the text of one kernel
 * module, per function and per invocation. It checks budgets such as "a switch that does
 * not change the owner costs at most N instructions", for which clocks are useless under
 * emulation.
 *
 * The argument is dir=DIR. When the guest has loaded its module, it writes the module's
 * lines of /proc/kallsyms to DIR/insns.sym. The plugin then creates DIR/insns.ready and
 * begins to count. At exit it writes DIR/insns.json, one line for each function.
 *
 * An invocation lasts from the first instruction of a function to its return. It counts
 * the instructions in the text of the module, including those of functions that it calls
 * there, and not those of the kernel or of other modules. The plugin interface has no
 * registers; so calls and returns are derived from the kind of each instruction and from
 * the instruction of the module that follows on the same virtual CPU. That is exact for
 * code that does not sleep and is not interrupted by the module itself, such as hooks and
 * timers. The figures of other functions are good but not exact.
 *
 * It also counts how often an invocation stores to a cache line to which another virtual CPU
 * stored last, in the text of the module as well. On a real machine, such a line has to come from
 * the other CPU each time.
 *
 * The plugin recognises modules by their address: boot with nokaslr.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qemu-plugin-api.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

#define MODULES_FIRST 0xffffffffa0000000ull
#define MODULES_LAST  0xffffffffff000000ull
#define DEPTH	      64
/* Longer invocations are counted in the last slot of the histogram. */
#define SLOTS 8192
/* Assumed size of the last function of a section, which no other symbol ends. */
#define TAIL_BYTES 16384
#define LINE_BYTES 64
/* Cache lines of which the last writer is known. */
#define LINES 65536

enum kind { PLAIN, CALL, RETURN, JUMP, BRANCH, JUMP_INDIRECT };

struct insn {
	uint64_t at;
	uint64_t target; /* of a direct call, jump or branch */
	uint8_t size;
	uint8_t kind;
	atomic_int sym; /* index, NONE, or UNKNOWN before it is looked up */
};

#define UNKNOWN (-2)
#define NONE	(-1)

struct sym {
	uint64_t start;
	uint64_t end;
	char *name;
	bool text;
	int whole; /* index of "f" if this is "f.cold", else of itself */
};

struct figures {
	uint64_t instructions; /* without those of called functions */
	uint64_t invocations;
	uint64_t lost;	  /* invocations of which no return was seen */
	uint64_t fetched; /* stores to lines of another CPU */
	uint64_t max;
	uint32_t *histogram;
};

struct frame {
	int sym;
	bool tail;	/* entered by a jump: returns together with its caller */
	bool interrupt; /* entered by an interrupt: does not count for the frame below */
	uint64_t count;
	uint64_t fetched;
};

struct vcpu {
	const struct insn *last;
	int depth;
	struct frame stack[DEPTH];
	struct figures *figures;
};

static struct sym *syms;
static int nsyms;
static struct vcpu *vcpus;
static int nvcpus;
static atomic_bool active;
static char *dir;
/* The number of a line and its last writer; lines with the same place displace each other. */
static _Atomic uint64_t writers[LINES];

static char *path_in_dir(const char *name)
{
	size_t size = strlen(dir) + strlen(name) + 2;
	char *path = malloc(size);

	if (!path)
		abort();
	snprintf(path, size, "%s/%s", dir, name);
	return path;
}

/* --- Symbols --- */

/* Of several symbols at one address the lowest rank is kept: the usual name. */
static int symbol_rank(const struct sym *s)
{
	return !s->text * 4 + !strncmp(s->name, "__pfx_", 6) * 2 +
	       (!strcmp(s->name, "init_module") || !strcmp(s->name, "cleanup_module"));
}

static int compare_symbols(const void *a, const void *b)
{
	const struct sym *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return symbol_rank(x) - symbol_rank(y);
}

static int symbol_find(uint64_t at)
{
	int low = 0, high = nsyms - 1;

	while (low <= high) {
		int mid = (low + high) / 2;

		if (at < syms[mid].start)
			high = mid - 1;
		else if (at >= syms[mid].end)
			low = mid + 1;
		else
			return syms[mid].text ? mid : NONE;
	}
	return NONE;
}

static bool symbols_read(const char *path)
{
	char name[256], type;
	FILE *f = fopen(path, "re");
	uint64_t at;
	int i, n = 0, room = 0;

	if (!f)
		return false;
	while (fscanf(f, "%" SCNx64 " %c %255s%*[^\n]", &at, &type, name) == 3) {
		if (n == room) {
			room = room ? room * 2 : 256;
			syms = realloc(syms, room * sizeof(*syms));
			if (!syms)
				abort();
		}
		syms[n++] = (struct sym){
			.start = at,
			.name = strdup(name),
			.text = type == 't' || type == 'T',
		};
	}
	fclose(f);
	if (!n)
		return false;
	qsort(syms, n, sizeof(*syms), compare_symbols);
	for (i = 1, nsyms = 1; i < n; i++)
		if (syms[i].start != syms[nsyms - 1].start)
			syms[nsyms++] = syms[i];
	for (i = 0; i < nsyms; i++) {
		uint64_t next = i + 1 < nsyms ? syms[i + 1].start : UINT64_MAX;
		char *dot = strstr(syms[i].name, ".cold");
		int j;

		syms[i].end = next - syms[i].start < TAIL_BYTES ? next : syms[i].start + TAIL_BYTES;
		syms[i].whole = i;
		for (j = 0; dot && j < nsyms; j++)
			if (!strncmp(syms[j].name, syms[i].name, dot - syms[i].name) &&
			    !syms[j].name[dot - syms[i].name])
				syms[i].whole = j;
	}
	for (i = 0; i < nvcpus; i++) {
		vcpus[i].figures = calloc(nsyms, sizeof(struct figures));
		if (!vcpus[i].figures)
			abort();
	}
	return true;
}

static void *symbols_wait(void *unused)
{
	char *path = path_in_dir("insns.sym"), *ready = path_in_dir("insns.ready");
	FILE *f;

	(void)unused;
	while (!symbols_read(path))
		usleep(50000);
	atomic_store(&active, true);
	f = fopen(ready, "we");
	if (f)
		fclose(f);
	free(path);
	free(ready);
	return NULL;
}

/* --- What an instruction is --- */

static int64_t read_displacement(const uint8_t *p, int bytes)
{
	int32_t value;

	if (bytes == 1)
		return (int8_t)*p;
	memcpy(&value, p, 4);
	return value;
}

static void insn_classify(struct insn *i, const uint8_t *bytes)
{
	const uint8_t *p = bytes, *end = bytes + i->size;
	uint64_t next = i->at + i->size;

	i->kind = PLAIN;
	while (p < end &&
	       (*p == 0x66 || *p == 0x67 || *p == 0x2e || *p == 0x36 || *p == 0x3e || *p == 0x26 ||
		*p == 0x64 || *p == 0x65 || *p == 0xf2 || *p == 0xf3 || (*p & 0xf0) == 0x40))
		p++;
	if (p >= end)
		return;
	if (*p == 0xc3 || *p == 0xc2) {
		i->kind = RETURN;
	} else if (*p == 0xe8 && p + 5 <= end) {
		i->kind = CALL;
		i->target = next + read_displacement(p + 1, 4);
	} else if (*p == 0xe9 && p + 5 <= end) {
		i->kind = JUMP;
		i->target = next + read_displacement(p + 1, 4);
	} else if (*p == 0xeb && p + 2 <= end) {
		i->kind = JUMP;
		i->target = next + read_displacement(p + 1, 1);
	} else if ((*p & 0xf0) == 0x70 && p + 2 <= end) {
		i->kind = BRANCH;
		i->target = next + read_displacement(p + 1, 1);
	} else if (*p == 0x0f && p + 6 <= end && (p[1] & 0xf0) == 0x80) {
		i->kind = BRANCH;
		i->target = next + read_displacement(p + 2, 4);
	} else if (*p == 0xff && p + 2 <= end) {
		if ((p[1] & 0x38) == 0x10)
			i->kind = CALL;
		else if ((p[1] & 0x38) == 0x20)
			i->kind = JUMP_INDIRECT;
	}
}

/* --- Following the calls --- */

static void frame_push(struct vcpu *v, int sym, bool tail, bool interrupt)
{
	if (v->depth == DEPTH) {
		/* So many frames pile up only if some never return: drop the oldest. */
		v->figures[v->stack[0].sym].lost++;
		memmove(v->stack, v->stack + 1, sizeof(v->stack[0]) * (DEPTH - 1));
		v->depth--;
	}
	v->stack[v->depth++] = (struct frame){
		.sym = sym,
		.tail = tail,
		.interrupt = interrupt,
	};
}

static void frame_pop(struct vcpu *v)
{
	struct frame *done = &v->stack[--v->depth];
	struct figures *f = &v->figures[done->sym];

	f->invocations++;
	f->fetched += done->fetched;
	if (done->count > f->max)
		f->max = done->count;
	if (!f->histogram) {
		f->histogram = calloc(SLOTS, sizeof(*f->histogram));
		if (!f->histogram)
			abort();
	}
	f->histogram[done->count < SLOTS ? done->count : SLOTS - 1]++;
	if (v->depth && !done->interrupt) {
		done[-1].count += done->count;
		done[-1].fetched += done->fetched;
	}
}

/* @sym has returned. The frames above it were abandoned, for example by sleeping. */
static void frame_leave(struct vcpu *v, int sym)
{
	int at = v->depth - 1;
	bool tail;

	while (at >= 0 && v->stack[at].sym != sym)
		at--;
	if (at < 0)
		return;
	while (v->depth - 1 > at)
		v->figures[v->stack[--v->depth].sym].lost++;
	do {
		tail = v->stack[v->depth - 1].tail;
		frame_pop(v);
	} while (tail && v->depth);
}

static int insn_symbol(struct insn *i)
{
	int sym = atomic_load_explicit(&i->sym, memory_order_relaxed);

	if (sym == UNKNOWN) {
		sym = symbol_find(i->at);
		atomic_store_explicit(&i->sym, sym, memory_order_relaxed);
	}
	return sym;
}

static void count_insn(unsigned int cpu, void *data)
{
	struct insn *i = data;
	struct vcpu *v = &vcpus[cpu];
	const struct insn *last = v->last;
	int sym, part;

	if (!atomic_load_explicit(&active, memory_order_acquire))
		return;
	part = insn_symbol(i);
	if (part == NONE)
		return;
	sym = syms[part].whole;

	/* The last instruction may have left the module, or may not have been taken. */
	if (last && (last->kind == BRANCH || last->kind == JUMP_INDIRECT)) {
		int from = syms[last->sym].whole;
		bool stayed = last->kind == BRANCH
				      ? i->at == last->at + last->size || i->at == last->target
				      : i->at == syms[part].start || sym == from;

		if (!stayed && (last->kind == JUMP_INDIRECT || symbol_find(last->target) == NONE))
			frame_leave(v, from);
	}

	if (i->at == syms[part].start && part == sym) {
		bool jumped = last && v->depth &&
			      (last->kind == JUMP_INDIRECT ||
			       ((last->kind == JUMP || last->kind == BRANCH) &&
				last->target == i->at));
		bool interrupt = last && v->depth && !jumped && last->kind != CALL;

		if (!jumped || syms[last->sym].whole != sym)
			frame_push(v, sym, jumped, interrupt);
	}

	v->figures[sym].instructions++;
	if (v->depth)
		v->stack[v->depth - 1].count++;

	/* A jump out of the module is a return thunk or a tail call. */
	if (i->kind == RETURN || (i->kind == JUMP && symbol_find(i->target) == NONE))
		frame_leave(v, sym);
	v->last = i;
}

/* Called after count_insn() for the same instruction. */
static void count_store(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	uint64_t line = address / LINE_BYTES, now = line << 8 | (cpu + 1), before;
	struct vcpu *v = &vcpus[cpu];

	/* QEMU 7.2 calls it for loads, too. */
	if (!qemu_plugin_mem_is_store(info) ||
	    !atomic_load_explicit(&active, memory_order_acquire) || insn_symbol(data) == NONE)
		return;
	before = atomic_exchange_explicit(&writers[line % LINES], now, memory_order_relaxed);
	if (v->depth && before != now && before >> 8 == line << 8 >> 8)
		v->stack[v->depth - 1].fetched++;
}

static void instrument_block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	uint64_t at = qemu_plugin_tb_vaddr(tb);
	size_t n, count;

	(void)id;
	if (at < MODULES_FIRST || at >= MODULES_LAST)
		return;
	count = qemu_plugin_tb_n_insns(tb);
	for (n = 0; n < count; n++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, n);
		/* Never freed: the code may run until the guest ends. */
		struct insn *i = calloc(1, sizeof(*i));

		if (!i)
			abort();
		i->at = qemu_plugin_insn_vaddr(insn);
		i->size = qemu_plugin_insn_size(insn);
		atomic_init(&i->sym, UNKNOWN);
		insn_classify(i, qemu_plugin_insn_data(insn));
		qemu_plugin_register_vcpu_insn_exec_cb(insn, count_insn, QEMU_PLUGIN_CB_NO_REGS, i);
		qemu_plugin_register_vcpu_mem_cb(insn, count_store, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_W, i);
	}
}

/* --- The report --- */

static void write_function(FILE *f, int sym)
{
	static uint64_t slots[SLOTS];
	uint64_t own = 0, calls = 0, lost = 0, fetched = 0, max = 0, seen = 0, median = 0;
	uint64_t min = 0;
	const char *comma = "";
	int c, n;

	memset(slots, 0, sizeof(slots));
	for (c = 0; c < nvcpus; c++) {
		struct figures *g = &vcpus[c].figures[sym];

		own += g->instructions;
		calls += g->invocations;
		lost += g->lost;
		fetched += g->fetched;
		if (g->max > max)
			max = g->max;
		for (n = 0; g->histogram && n < SLOTS; n++)
			slots[n] += g->histogram[n];
	}
	if (!own)
		return;
	for (n = SLOTS - 1; n >= 0; n--)
		if (slots[n])
			min = n;
	for (n = 0; n < SLOTS && calls; n++) {
		seen += slots[n];
		if (seen * 2 >= calls) {
			median = n;
			break;
		}
	}
	fprintf(f,
		"{\"function\": \"%s\", \"invocations\": %" PRIu64 ", \"unfinished\": %" PRIu64
		", \"own_instructions\": %" PRIu64 ", \"fetched_lines\": %" PRIu64
		", \"min\": %" PRIu64 ", \"median\": %" PRIu64 ", \"max\": %" PRIu64
		", \"histogram\": [",
		syms[sym].name, calls, lost, own, fetched, min, median, max);
	for (n = 0; n < SLOTS; n++) {
		if (!slots[n])
			continue;
		fprintf(f, "%s[%d, %" PRIu64 "]", comma, n, slots[n]);
		comma = ", ";
	}
	fprintf(f, "]}\n");
}

static void write_report(qemu_plugin_id_t id, void *unused)
{
	char *path = path_in_dir("insns.json");
	FILE *f;
	int i;

	(void)id;
	(void)unused;
	if (atomic_load(&active)) {
		f = fopen(path, "we");
		for (i = 0; f && i < nsyms; i++)
			write_function(f, i);
		if (!f || fclose(f))
			fprintf(stderr, "insn-count: cannot write %s\n", path);
	}
	free(path);
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	pthread_t thread;
	int i;

	for (i = 0; i < argc; i++)
		if (!strncmp(argv[i], "dir=", 4))
			dir = strdup(argv[i] + 4);
	if (!dir || !info->system_emulation || strcmp(info->target_name, "x86_64")) {
		fprintf(stderr, "insn-count: needs dir=DIR and an x86_64 system\n");
		return -1;
	}
	nvcpus = info->system.max_vcpus;
	vcpus = calloc(nvcpus, sizeof(*vcpus));
	if (!vcpus || pthread_create(&thread, NULL, symbols_wait, NULL))
		return -1;
	pthread_detach(thread);
	qemu_plugin_register_vcpu_tb_trans_cb(id, instrument_block);
	qemu_plugin_register_atexit_cb(id, write_report, NULL);
	return 0;
}
