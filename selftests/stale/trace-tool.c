// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A tool for valgrind that writes the trace that "memwatchctl stale report" reads: every
 * allocation and free, and one memory access in --period, whose distances are random. It stands
 * for a processor that samples accesses. Time is the number of accesses so far.
 *
 * Memory is never given out again, so that each object has an address of its own, and frees can be
 * taken out of the trace. A site is the addresses of the innermost --frames callers.
 */
#include "pub_tool_basics.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_hashtable.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_replacemalloc.h"
#include "pub_tool_stacktrace.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_vki.h"

#define FRAMES_MAX 16

typedef struct {
	struct _VgHashNode *next;
	UWord start;
	SizeT size;
} Block;

static VgHashTable *blocks;
static VgFile *out;
static ULong now, due;
static UInt seed = 20261123;

static const HChar *option_out = "trace.txt";
static Int option_period = 100, option_frames = 3;

static ULong next_distance(void)
{
	return 1 + VG_(random)(&seed) % (2 * (UInt)option_period - 1);
}

static VG_REGPARM(2) void on_access(UWord address, UWord place)
{
	now++;
	if (now < due)
		return;
	due = now + next_distance();
	VG_(fprintf)(out, "a %llu %u 0x%lx 0x%lx\n", now, VG_(get_running_tid)(), address, place);
}

static void add_access(IRSB *sb, IRExpr *address, Addr place)
{
	IRExpr **args = mkIRExprVec_2(address, mkIRExpr_HWord(place));
	IRDirty *call = unsafeIRDirty_0_N(2, "on_access", VG_(fnptr_to_fnentry)(&on_access), args);

	addStmtToIRSB(sb, IRStmt_Dirty(call));
}

/* Adds calls for the accesses of one statement of the program. */
static void add_accesses(IRSB *sb, const IRStmt *st, Addr place)
{
	switch (st->tag) {
	case Ist_WrTmp:
		if (st->Ist.WrTmp.data->tag == Iex_Load)
			add_access(sb, st->Ist.WrTmp.data->Iex.Load.addr, place);
		break;
	case Ist_Store:
		add_access(sb, st->Ist.Store.addr, place);
		break;
	case Ist_CAS:
		add_access(sb, st->Ist.CAS.details->addr, place);
		break;
	case Ist_LLSC:
		add_access(sb, st->Ist.LLSC.addr, place);
		break;
	case Ist_Dirty:
		if (st->Ist.Dirty.details->mFx != Ifx_None)
			add_access(sb, st->Ist.Dirty.details->mAddr, place);
		break;
	default:
		break;
	}
}

static IRSB *mw_instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
			   const VexGuestExtents *extents, const VexArchInfo *host,
			   IRType guest_word, IRType host_word)
{
	IRSB *sb = deepCopyIRSBExceptStmts(in);
	Addr place = 0;

	(void)closure;
	(void)layout;
	(void)extents;
	(void)host;
	(void)guest_word;
	(void)host_word;
	for (Int i = 0; i < in->stmts_used; i++) {
		IRStmt *st = in->stmts[i];

		if (!st || st->tag == Ist_NoOp)
			continue;
		if (st->tag == Ist_IMark)
			place = st->Ist.IMark.addr;
		add_accesses(sb, st, place);
		addStmtToIRSB(sb, st);
	}
	return sb;
}

/* The callers of the allocator, whose own frame is the first one. */
static void write_site(ThreadId tid)
{
	Addr frames[FRAMES_MAX + 1];
	UInt count = VG_(get_StackTrace)(tid, frames, (UInt)option_frames + 1, NULL, NULL, 0);

	for (UInt i = 1; i < count; i++)
		VG_(fprintf)(out, "%s0x%lx", i > 1 ? ";" : "", frames[i]);
	VG_(fprintf)(out, count < 2 ? "unknown\n" : "\n");
}

static void *allocate(ThreadId tid, SizeT align, SizeT size, Bool zero)
{
	Block *block;
	void *memory;

	if ((SSizeT)size < 0)
		return NULL;
	memory = VG_(cli_malloc)(align, size);
	if (!memory)
		return NULL;
	if (zero)
		VG_(memset)(memory, 0, size);
	block = VG_(malloc)("mwtrace.block", sizeof(*block));
	block->start = (UWord)memory;
	block->size = size;
	VG_(HT_add_node)(blocks, block);
	VG_(fprintf)(out, "m %llu %u 0x%lx %lu ", ++now, tid, (UWord)memory, size);
	write_site(tid);
	return memory;
}

static void release(ThreadId tid, void *memory)
{
	Block *block = VG_(HT_remove)(blocks, (UWord)memory);

	if (!block)
		return;
	VG_(fprintf)(out, "f %llu %u 0x%lx ", ++now, tid, (UWord)memory);
	write_site(tid);
	VG_(free)(block);
}

static void *on_malloc(ThreadId tid, SizeT size)
{
	return allocate(tid, VG_(clo_alignment), size, False);
}

static void *on_new_aligned(ThreadId tid, SizeT size, SizeT align)
{
	return allocate(tid, align, size, False);
}

static void *on_memalign(ThreadId tid, SizeT align, SizeT size)
{
	return allocate(tid, align, size, False);
}

static void *on_calloc(ThreadId tid, SizeT count, SizeT size)
{
	return allocate(tid, VG_(clo_alignment), count * size, True);
}

static void on_free_aligned(ThreadId tid, void *memory, SizeT align)
{
	(void)align;
	release(tid, memory);
}

static void *on_realloc(ThreadId tid, void *memory, SizeT size)
{
	Block *block = VG_(HT_lookup)(blocks, (UWord)memory);
	void *moved;

	if (!memory)
		return on_malloc(tid, size);
	if (!block)
		return NULL;
	moved = allocate(tid, VG_(clo_alignment), size, False);
	if (!moved)
		return NULL;
	VG_(memcpy)(moved, memory, block->size < size ? block->size : size);
	release(tid, memory);
	return moved;
}

static SizeT on_usable_size(ThreadId tid, void *memory)
{
	Block *block = VG_(HT_lookup)(blocks, (UWord)memory);

	(void)tid;
	return block ? block->size : 0;
}

static Bool mw_option(const HChar *arg)
{
	if VG_STR_CLO (arg, "--out", option_out) {
	} else if VG_BINT_CLO (arg, "--period", option_period, 1, 1000000000) {
	} else if VG_BINT_CLO (arg, "--frames", option_frames, 1, FRAMES_MAX) {
	} else {
		return VG_(replacement_malloc_process_cmd_line_option)(arg);
	}
	return True;
}

static void mw_usage(void)
{
	VG_(printf)
	("    --out=FILE      the trace [trace.txt]\n"
	 "    --period=N      mean number of accesses between two samples [100]\n"
	 "    --frames=N      callers that make a site [3]\n");
}

static void mw_debug_usage(void)
{
	VG_(printf)("    (none)\n");
}

static void mw_start(void)
{
	out = VG_(fopen)(option_out, VKI_O_CREAT | VKI_O_TRUNC | VKI_O_WRONLY, 0600);
	if (!out) {
		VG_(umsg)("cannot write %s\n", option_out);
		VG_(exit)(1);
	}
	due = next_distance();
}

static void mw_end(Int status)
{
	(void)status;
	VG_(fclose)(out);
}

static void mw_init(void)
{
	VG_(details_name)("mwtrace");
	VG_(details_version)(NULL);
	VG_(details_description)("a writer of traces for memwatchctl stale");
	VG_(details_copyright_author)("Copyright (C) 2026 The memwatch authors");
	VG_(details_bug_reports_to)("the memwatch authors");
	VG_(basic_tool_funcs)(mw_start, mw_instrument, mw_end);
	VG_(needs_libc_freeres)();
	VG_(needs_command_line_options)(mw_option, mw_usage, mw_debug_usage);
	VG_(needs_malloc_replacement)
	(on_malloc, on_malloc, on_new_aligned, on_malloc, on_new_aligned, on_memalign, on_calloc,
	 release, release, on_free_aligned, release, on_free_aligned, on_realloc, on_usable_size,
	 0);
	blocks = VG_(HT_construct)("mwtrace.blocks");
}

VG_DETERMINE_INTERFACE_VERSION(mw_init)
