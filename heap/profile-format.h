/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The layout of a heap profile: the file that libmemwatch-heap.so maps into the program it is
 * preloaded into, and that readers open while the program runs and after it was killed.
 * docs/heap-format.md explains it. This header is shared by the writer and by the reader in
 * libmemwatch, and needs nothing but fixed-width integers.
 *
 * The rules that make a file readable at every instruction of the writer:
 *
 * - All numbers are little-endian. The writer refuses to work on a big-endian machine.
 * - The file grows in chunks of MW_HEAP_CHUNK_BYTES. A chunk is allocated on disk, zeroed and
 *   mapped before its entry in the directory becomes valid, and it never moves, shrinks or
 *   changes its kind. Chunks of one kind, in the order of their entries, form one array. An
 *   element never crosses the end of a chunk.
 * - Every element has one word that says that it is complete (`state` or `ready`). The writer
 *   stores it last, with release semantics; a reader loads it first, with acquire semantics, and
 *   ignores the element if it is 0. A process that is killed leaves its completed stores in the
 *   file, so this is enough; nothing is promised after a crash of the machine.
 * - Samples and watches are the only elements that are reused. Their `state` has a generation that
 *   changes with each use. A reader that copies one while the writer lives loads `state` before
 *   and after, and drops the copy if it changed. Every other element is immutable once it is
 *   complete, except for the sums of a stack and the last_ns of a module.
 * - Sums are written one by one, without a lock. They may differ from the samples by the samples
 *   that were being recorded or freed at that moment: at most one per thread.
 * - Every index, offset and length in the file must be checked by the reader; the file belongs to
 *   the profiled user. Unknown kinds of chunks, flags and reserved fields are ignored.
 */
#ifndef _MW_HEAP_PROFILE_FORMAT_H
#define _MW_HEAP_PROFILE_FORMAT_H

#include <stdint.h>

#define MW_HEAP_MAGIC	    "\x89MWHEAP\n" /* 8 bytes, without the terminating 0 */
#define MW_HEAP_VERSION	    1u

#define MW_HEAP_PAGE_BYTES  4096u
#define MW_HEAP_CHUNK_BYTES (256u << 10)
#define MW_HEAP_CHUNKS_MAX  255u /* entries of the directory */

/* Offsets in the file. Chunks begin behind the directory, at multiples of a page. */
#define MW_HEAP_HEADER_OFFSET	 0u
#define MW_HEAP_DIRECTORY_OFFSET 4096u
#define MW_HEAP_CHUNKS_OFFSET	 8192u

#define MW_HEAP_PATH_MAX	 1024u
#define MW_HEAP_DEPTH_MAX	 256u /* frames of one stack */
#define MW_HEAP_BUILD_ID_MAX	 32u
#define MW_HEAP_LIFETIME_BINS	 32u

/* What the elements of a chunk are. */
enum mw_heap_chunk_kind {
	MW_HEAP_CHUNK_NONE = 0,
	MW_HEAP_CHUNK_SAMPLES = 1,    /* struct mw_heap_sample */
	MW_HEAP_CHUNK_STACKS = 2,     /* struct mw_heap_stack */
	MW_HEAP_CHUNK_FRAMES = 3,     /* uint64_t, see mw_heap_frame_module() */
	MW_HEAP_CHUNK_MODULES = 4,    /* struct mw_heap_module */
	MW_HEAP_CHUNK_STRINGS = 5,    /* bytes */
	MW_HEAP_CHUNK_CODE = 6,	      /* struct mw_heap_code */
	MW_HEAP_CHUNK_CODE_BYTES = 7, /* bytes: what code objects refer to */
	MW_HEAP_CHUNK_WATCHES = 8,    /* struct mw_heap_watch */
};

/*
 * One entry of the directory. Entries are used in order. `kind` is stored last; the first entry
 * with kind 0 ends the directory. The array of a kind is made of its chunks in this order.
 */
struct mw_heap_chunk {
	uint64_t offset; /* of the chunk in the file */
	uint32_t kind;	 /* enum mw_heap_chunk_kind */
	uint32_t bytes;	 /* MW_HEAP_CHUNK_BYTES in this version; readers use this value */
};

/* What the library does; written by the library only. */
enum mw_heap_state {
	MW_HEAP_STATE_STARTING = 0,
	MW_HEAP_STATE_DORMANT = 1, /* was never started */
	MW_HEAP_STATE_ACTIVE = 2,  /* allocations are sampled */
	MW_HEAP_STATE_STOPPED = 3, /* no new samples; frees of live samples are still tracked */
	MW_HEAP_STATE_ENDED = 4,   /* the program called exit() or returned from main() */
};

/* When sampling began, see header.began. */
enum mw_heap_began {
	MW_HEAP_BEGAN_NOT = 0,
	MW_HEAP_BEGAN_PROCESS_START = 1, /* before main(): nothing is missing */
	MW_HEAP_BEGAN_LATER = 2,	 /* switched on in a running process */
	MW_HEAP_BEGAN_FORK = 3,		 /* child: objects from before the fork are its parent's */
};

/*
 * What other processes ask for: the low bits of header.control (samples) and header.trace_control
 * (a trace, see trace-format.h). The bits above count, so that a request differs from the one
 * before, also if it asks for the same. The library looks at both words with each sample, and while
 * it takes none, whenever a thread has allocated another MW_HEAP_CONTROL_BYTES.
 */
enum mw_heap_control {
	MW_HEAP_CONTROL_NONE = 0, /* as configured by the environment */
	MW_HEAP_CONTROL_START = 1,
	MW_HEAP_CONTROL_STOP = 2,
};
#define MW_HEAP_CONTROL_MASK  0xffu
#define MW_HEAP_CONTROL_BYTES (64u << 10)

/* Why the library made a copy of the profile; header.snapshot_reason of the copy. */
enum mw_heap_snapshot_reason {
	MW_HEAP_SNAPSHOT_NONE = 0,    /* not a copy, or one that a reader made */
	MW_HEAP_SNAPSHOT_REQUEST = 1, /* snapshot_wanted */
	MW_HEAP_SNAPSHOT_BYTES = 2,   /* so many bytes were allocated since the last one */
	MW_HEAP_SNAPSHOT_INTERVAL = 3,
	MW_HEAP_SNAPSHOT_PEAK = 4, /* the live size is higher than it ever was */
	MW_HEAP_SNAPSHOT_EXIT = 5,
};

/* Bits of header.limits: why the profile is less complete than asked for. */
#define MW_HEAP_LIMIT_NO_SPACE	   0x01u /* the file system is full or the quota is used up */
#define MW_HEAP_LIMIT_FILE_SIZE	   0x02u /* the file reached the configured maximum */
#define MW_HEAP_LIMIT_SAMPLES_FULL 0x04u /* samples were thinned out: see thinnings */
#define MW_HEAP_LIMIT_STACKS_FULL  0x08u /* further stacks are counted in stack 0 */
#define MW_HEAP_LIMIT_MODULES_FULL 0x10u /* frames of further modules are raw addresses */
#define MW_HEAP_LIMIT_SNAPSHOTS	   0x40u /* one could not be written, or there are enough */
#define MW_HEAP_LIMIT_CODE_FULL	   0x80u /* frames of further code objects have no name */

/* Bits of header.python: what is known about the CPython in the process. */
#define MW_HEAP_PYTHON_SEEN	0x1u /* it was in a stack */
#define MW_HEAP_PYTHON_FRAMES	0x2u /* its frames are in the stacks */
#define MW_HEAP_PYTHON_PYMALLOC 0x4u /* it has an allocator of its own above malloc() */

/* Counters only grow. Bytes and objects are estimates of all allocations, not only sampled ones. */
struct mw_heap_counters {
	uint64_t samples;	  /* sampled allocations, kept or lost */
	uint64_t sampled_frees;	  /* frees of kept samples */
	uint64_t allocated_bytes; /* sum of the weights of all samples */
	uint64_t freed_bytes; /* sum of the weights of freed samples, see struct mw_heap_stack */
	uint64_t thinnings;   /* how often the rate was doubled and samples dropped */
	uint64_t thinned_samples; /* dropped by that */
	uint64_t lost_samples;	  /* not stored; the next two say why, the weight is in: */
	uint64_t lost_bytes;
	uint64_t lost_no_room;	  /* no slot was free, and none could be made at once */
	uint64_t lost_reentrant;  /* (reserved) */
	uint64_t unseen_frees;	  /* an address was allocated again without having been freed */
	uint64_t false_lookups;	  /* frees that passed the filter and were not sampled */
	uint64_t peak_live_bytes; /* highest estimate of live bytes so far */
	uint64_t peak_live_ns;	  /* and when it was reached */
	uint64_t sample_ns;	  /* time spent in recording samples */
	uint64_t sample_ns_max;
	uint64_t reserved[8];
};

/* How well stacks are unwound. Counted when a sample is taken, not when a stack is new. */
struct mw_heap_unwinder {
	uint64_t stacks;	    /* stacks walked */
	uint64_t frames;	    /* frames in them */
	uint64_t frames_cfi;	    /* found by call frame information (.eh_frame) */
	uint64_t frames_fp;	    /* found by frame pointers */
	uint64_t stacks_complete;   /* reached the first frame of the thread */
	uint64_t stacks_cfi_only;   /* complete and without a frame found by a frame pointer */
	uint64_t stacks_fp_only;    /* without a frame found by CFI above the library's own */
	uint64_t stacks_truncated;  /* all that are not complete; the reasons follow */
	uint64_t truncated_depth;   /* MW_HEAP_DEPTH_MAX or the configured depth */
	uint64_t truncated_no_cfi;  /* no CFI for a pc, and the frame pointer is not plausible */
	uint64_t truncated_bad_cfi; /* CFI that is damaged or not supported */
	uint64_t truncated_memory;  /* a stack slot could not be read */
	uint64_t cache_misses;	    /* pcs whose CFI had to be interpreted */
	uint64_t remote_reads; /* reads of stacks that are not the thread's own: system calls */
	uint64_t reserved[2];
};

/*
 * What the allocator says about itself, as mallinfo2() returns it, and the memory of the process
 * at that moment. header.figures has two of them: the valid one is figures[figures_valid & 1] if
 * figures_valid is not 0. The writer fills the other one and then adds 1 to figures_valid.
 */
struct mw_heap_figures {
	uint64_t time_ns;      /* CLOCK_MONOTONIC; 0: never taken */
	uint64_t took_ns;      /* CPU time that taking them cost */
	uint64_t arena;	       /* bytes from brk() and in non-main arenas */
	uint64_t hblkhd;       /* bytes in blocks of mmap() */
	uint64_t uordblks;     /* bytes in use, hblkhd not included */
	uint64_t fordblks;     /* bytes free inside the allocator */
	uint64_t keepcost;     /* bytes that malloc_trim() can return at the top */
	uint64_t fsmblks;      /* bytes in fast bins */
	uint64_t ordblks;      /* number of free chunks */
	uint64_t hblks;	       /* number of blocks of mmap() */
	uint64_t rss_bytes;    /* /proc/self/statm: resident */
	uint64_t shared_bytes; /* /proc/self/statm: shared; resident file and shmem pages */
	uint64_t live_bytes;   /* estimate of the live heap at that moment */
	/* These are from malloc_info(), and 0 without it. */
	uint64_t trim_bytes; /* whole pages in free chunks: malloc_trim() returns them */
	uint64_t arenas;
	uint64_t reserved;
};

enum mw_heap_allocator {
	MW_HEAP_ALLOCATOR_UNKNOWN = 0,
	MW_HEAP_ALLOCATOR_GLIBC = 1,
	MW_HEAP_ALLOCATOR_JEMALLOC = 2,
	MW_HEAP_ALLOCATOR_TCMALLOC = 3,
	MW_HEAP_ALLOCATOR_MIMALLOC = 4,
};

/* The first page of the file. A file whose magic is not there yet is being created. */
struct mw_heap_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes; /* sizeof(struct mw_heap_header): fields beyond it are absent */
	/* Distance of two elements of an array; records grow at their end. */
	uint32_t sample_bytes;
	uint32_t stack_bytes;
	uint32_t module_bytes;
	uint32_t code_bytes;

	/* Which process. */
	uint32_t pid;		   /* in its own pid namespace */
	uint32_t parent_pid;	   /* for began == FORK: whose profile has the older objects */
	uint64_t start_time_ticks; /* field 22 of /proc/PID/stat */
	uint64_t pid_namespace;	   /* inode of /proc/self/ns/pid */
	uint8_t boot_id[16];	   /* /proc/sys/kernel/random/boot_id; zeros: unknown */
	uint16_t machine;	   /* e_machine: EM_X86_64, EM_AARCH64 */
	uint16_t address_bits;	   /* 64 */
	uint32_t system_page_bytes;
	char comm[16];
	char exe[MW_HEAP_PATH_MAX]; /* /proc/self/exe, cut if longer; ends in 0 */

	/* Clocks. Every *_ns is CLOCK_MONOTONIC; these three were read together. */
	uint64_t created_ns;
	uint64_t created_realtime_ns;
	uint64_t created_boottime_ns;

	/* What the library does. */
	uint32_t state; /* enum mw_heap_state */
	uint32_t began; /* enum mw_heap_began */
	uint64_t began_ns;
	uint64_t state_ns;	  /* when state changed last */
	uint64_t rate_bytes;	  /* mean distance of samples now; each sample has its own */
	uint64_t configured_rate; /* what was asked for: lower than rate_bytes after thinning */
	uint64_t file_bytes_max;
	uint32_t depth_max;
	uint32_t limits;    /* MW_HEAP_LIMIT_* */
	uint32_t allocator; /* enum mw_heap_allocator: whose malloc is below */
	uint32_t figures_valid;

	/* Requests of other processes: rate first (0: as configured), then control. */
	uint64_t control_rate;
	uint32_t control;      /* enum mw_heap_control */
	uint32_t control_seen; /* the library's copy of the last control it followed */

	/* How many elements have been handed out; the newest may be incomplete. */
	uint64_t sample_slots;
	uint64_t stacks;
	uint64_t frames;
	uint64_t modules;
	uint64_t string_bytes;
	uint64_t code_objects;

	uint64_t live_bytes; /* estimate: sum of the weights of the live samples */
	uint64_t live_samples;

	/*
	 * Copies that the library makes. Other processes ask for one by adding 1 to
	 * snapshot_wanted; the library looks at it when it looks at control, and stores what it
	 * has seen in snapshot_seen.
	 */
	uint64_t snapshots; /* made so far */
	uint32_t snapshot_wanted;
	uint32_t snapshot_seen;
	/* Only in a copy that the library made. */
	uint64_t snapshot_ns;
	uint32_t snapshot_reason; /* enum mw_heap_snapshot_reason */
	uint32_t snapshot_number; /* 1, 2, 3, ... */

	uint64_t code_bytes_used; /* of MW_HEAP_CHUNK_CODE_BYTES, as above */
	uint32_t python;	  /* MW_HEAP_PYTHON_* */
	uint32_t python_version;  /* Py_Version, 0xMMmmppLs; 0: unknown, older than 3.11 */

	/*
	 * Accesses to samples, see struct mw_heap_watch. Epoch n ends when it is found out for the
	 * n-th time what was touched. Both times are 0 before the end of the first one.
	 */
	uint32_t watch_max;	  /* most watches at a time; 0: nothing is watched */
	uint32_t watch_shift;	  /* of new watches */
	uint64_t epochs;	  /* so far */
	uint64_t epoch_ns;	  /* when the last one ended */
	uint64_t epoch_before_ns; /* when the one before it ended */
	uint64_t epoch_cpu_ns;	  /* CPU time that all of them took */
	uint64_t watch_refused;	  /* samples that were chosen and could not be watched */
	uint64_t watch_lost;	  /* watches that ended because nothing could be seen any more */
	uint64_t watch_least;	  /* smaller objects are never chosen */

	uint32_t trace_control;	     /* enum mw_heap_control */
	uint32_t trace_control_seen; /* the last one that the library has followed */
	uint32_t trace_error;	     /* 0, or the errno with which a trace could not be created */
	uint32_t reserved32;

	struct mw_heap_counters counters;
	struct mw_heap_unwinder unwinder;
	struct mw_heap_figures figures[2];
};

/* The low bits of sample.state; the rest is a generation. */
#define MW_HEAP_SAMPLE_FREE    0u
#define MW_HEAP_SAMPLE_WRITING 1u
#define MW_HEAP_SAMPLE_LIVE    2u
#define MW_HEAP_SAMPLE_MASK    3u

/* Which function allocated: sample.source. */
enum mw_heap_source {
	MW_HEAP_SOURCE_MALLOC = 0,
	MW_HEAP_SOURCE_CALLOC = 1,
	MW_HEAP_SOURCE_REALLOC = 2,
	MW_HEAP_SOURCE_ALIGNED = 3,
	MW_HEAP_SOURCE_NEW = 4,
	MW_HEAP_SOURCE_MMAP = 5, /* not an object of the heap: anonymous memory of mmap() */
};

/*
 * One live sampled object. An allocation of s bytes is sampled with probability
 * p = 1 - exp(-max(s, 1) / rate). The sample stands for s / p bytes and 1 / p objects. Sums over
 * samples are unbiased, and their variances are the sums of s^2 (1 - p) / p^2 and (1 - p) / p^2.
 * With a rate of 1 every allocation is sampled: p = 1.
 */
struct mw_heap_sample {
	uint64_t state; /* generation << 2 | MW_HEAP_SAMPLE_* */
	uint64_t address;
	uint64_t size;		   /* as requested */
	uint64_t rate;		   /* in bytes, when it was sampled or thinned last */
	uint64_t time_ns;	   /* of the allocation */
	uint64_t allocated_before; /* counters.allocated_bytes at that time: an age in bytes */
	uint32_t stack;		   /* index into the stacks */
	uint32_t tid;		   /* thread that allocated */
	uint16_t source;	   /* enum mw_heap_source */
	uint16_t watch; /* index into the watches + 1; 0: none. It may be of another sample now */
	/* The writer's own, which mean nothing to a reader. */
	union {
		uint32_t free_link; /* of a free slot: the next one */
		uint32_t guard;	    /* of a live sample: of mw_isolate_allocate() */
	};
};

#define MW_HEAP_WATCH_PART 0x1u /* only a part of the object is watched */

/*
 * Of which sample it is known when it was touched last. A sample that is chosen for this gets whole
 * pages of its own when it is allocated, so that what touches them touches the object; or it is so
 * large that some of its pages are watched where they are. It is chosen with a probability of
 * 2^-shift, which depends on nothing but the time. A watch belongs to the live sample that has its
 * address and time.
 *
 * The last access was between touched_after_ns and touched_ns. At first, both are the time of the
 * allocation, which counts as an access.
 */
struct mw_heap_watch {
	uint64_t state;	  /* as that of a sample */
	uint64_t address; /* of the sample */
	uint64_t time_ns; /* of its allocation */
	uint64_t begin;	  /* the pages that are watched */
	uint32_t bytes;
	uint16_t shift;
	uint16_t flags; /* MW_HEAP_WATCH_* */
	uint64_t touched_ns;
	uint64_t touched_after_ns;
	uint64_t reserved;
};

/* Bits of stack.flags. */
#define MW_HEAP_STACK_TRUNCATED 0x1u  /* does not reach the first frame of its thread */
#define MW_HEAP_STACK_FP	0x2u  /* at least one frame was found by a frame pointer */
#define MW_HEAP_STACK_CODE	0x4u  /* has frames of an interpreter */
#define MW_HEAP_STACK_MMAP	0x10u /* its samples are anonymous memory of mmap() */
#define MW_HEAP_STACK_OVERFLOW	0x8u  /* stands for all stacks that found no room: index 0 */

/*
 * A distinct stack and the sums over all its samples, dead ones included. Index 0 is reserved
 * for stacks that could not be stored; it has no frames. alloc_* use the rate of a sample at its
 * allocation, free_* the rate at its free, so both are unbiased although thinning may have
 * raised the rate between the two. A sample that thinning drops is no free. For what is live, the
 * sum over the live samples has the smaller variance.
 */
struct mw_heap_stack {
	uint32_t ready;	 /* 1: complete */
	uint32_t depth;	 /* number of frames */
	uint64_t frames; /* index of the first (innermost) frame in FRAMES */
	uint32_t flags;	 /* MW_HEAP_STACK_* */
	uint32_t reserved32;
	uint64_t first_ns; /* first sample */

	uint64_t alloc_samples;
	uint64_t alloc_bytes;
	double alloc_objects;
	double alloc_bytes_variance;   /* bytes^2 */
	double alloc_objects_variance; /* objects^2 */
	uint64_t free_samples;
	uint64_t free_bytes;
	double free_objects;
	/*
	 * Lifetimes of freed samples, in samples: bin 0 is below 2^10 ns, bin i is from
	 * 2^(i + 9) to 2^(i + 10) ns, the last one has everything longer (from 18 minutes on).
	 */
	uint32_t lifetime[MW_HEAP_LIFETIME_BINS];
	uint64_t reserved[4];
};

/*
 * A frame: an address inside the call instruction (return address - 1), or the exact address
 * where a signal interrupted. The upper 16 bits name the module, the lower 48 are the address
 * minus the module's load bias, which is the address in its ELF symbol table. So the frames of
 * a library that was unloaded, or loaded again elsewhere, stay what they are.
 */
#define MW_HEAP_FRAME_ADDRESS_BITS 48
#define MW_HEAP_FRAME_ADDRESS_MASK ((UINT64_C(1) << MW_HEAP_FRAME_ADDRESS_BITS) - 1)
/* Module 0: no module (JIT code, for example); the lower bits are an address of the process. */
#define MW_HEAP_FRAME_NO_MODULE 0u
/*
 * A frame of an interpreter. Bits 47..24 are an index into CODE, or MW_HEAP_CODE_NONE. Bits 23..0
 * are the number of the instruction that is being executed, counted from 1, which is looked up in
 * mw_heap_code.lines; or a line, if the code object has no table of lines. 0: unknown, and the
 * first line of the code object stands for it.
 *
 * The frames of one interpreter loop are followed by the native frame of the loop itself, as its
 * callers; this is what it takes to merge both.
 */
#define MW_HEAP_FRAME_CODE	 0xffffu
#define MW_HEAP_FRAME_PLACE_BITS 24
#define MW_HEAP_FRAME_PLACE_MASK ((UINT64_C(1) << MW_HEAP_FRAME_PLACE_BITS) - 1)
/* A code object for which there was no room. */
#define MW_HEAP_CODE_NONE 0xffffffu
/* Highest module number; module n is element n - 1 of MODULES. */
#define MW_HEAP_FRAME_MODULE_MAX 0xfff0u

static inline uint32_t mw_heap_frame_module(uint64_t frame)
{
	return (uint32_t)(frame >> MW_HEAP_FRAME_ADDRESS_BITS);
}

static inline uint64_t mw_heap_frame_address(uint64_t frame)
{
	return frame & MW_HEAP_FRAME_ADDRESS_MASK;
}

#define MW_HEAP_MODULE_VDSO 0x1u /* no file: path is "[vdso]" */
#define MW_HEAP_MODULE_EXE  0x2u

/*
 * An ELF object that was seen in a stack. The same file loaded again is the same module; its
 * bias, start and end are those of the first time it was seen.
 */
struct mw_heap_module {
	uint32_t ready;
	uint32_t flags; /* MW_HEAP_MODULE_* */
	uint64_t bias;	/* address in memory - address in the ELF file's headers */
	uint64_t start; /* first and last + 1 address of its mappings */
	uint64_t end;
	uint64_t first_ns;	 /* first seen in a stack */
	uint64_t last_ns;	 /* seen as newly loaded for the last time */
	uint64_t path;		 /* index into STRINGS */
	uint32_t path_bytes;	 /* without a terminating 0 */
	uint32_t build_id_bytes; /* 0: none */
	uint8_t build_id[MW_HEAP_BUILD_ID_MAX];
	uint64_t reserved[4];
};

/*
 * A function of an interpreter: a code object of CPython 3.11. Two code objects that say the same
 * are one element, and one that changes is another one, whatever their addresses are. Texts are
 * UTF-8 and may be cut off at MW_HEAP_PATH_MAX bytes.
 */
struct mw_heap_code {
	uint32_t ready;
	uint32_t first_line;
	uint64_t file; /* indexes into CODE_BYTES */
	uint64_t name; /* qualified */
	uint32_t file_bytes;
	uint32_t name_bytes;
	uint64_t first_ns;
	uint64_t lines;	      /* co_linetable as it is: the lines of the instructions */
	uint32_t lines_bytes; /* 0: no table, because it was larger than MW_HEAP_LINES_MAX */
	uint32_t reserved32;
	uint64_t reserved;
};
#define MW_HEAP_LINES_MAX (64u << 10)

#ifdef __cplusplus
#define MW_HEAP_ASSERT(condition) static_assert(condition, #condition)
#else
#define MW_HEAP_ASSERT(condition) _Static_assert(condition, #condition)
#endif
MW_HEAP_ASSERT(sizeof(struct mw_heap_header) <= MW_HEAP_PAGE_BYTES);
MW_HEAP_ASSERT(sizeof(struct mw_heap_chunk) == 16);
MW_HEAP_ASSERT(sizeof(struct mw_heap_counters) == 192);
MW_HEAP_ASSERT(sizeof(struct mw_heap_unwinder) == 128);
MW_HEAP_ASSERT(sizeof(struct mw_heap_figures) == 128);
MW_HEAP_ASSERT(sizeof(struct mw_heap_sample) == 64);
MW_HEAP_ASSERT(sizeof(struct mw_heap_watch) == 64);
MW_HEAP_ASSERT(sizeof(struct mw_heap_stack) == 256);
MW_HEAP_ASSERT(sizeof(struct mw_heap_module) == 128);
MW_HEAP_ASSERT(sizeof(struct mw_heap_code) == 64);

#endif
