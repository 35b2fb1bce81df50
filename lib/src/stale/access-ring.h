/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of a ring of access samples: bytes in, items out. It knows nothing of perf events and
 * files, so that tests can make rings of their own.
 *
 * All events that write to the ring have MW_ACCESS_SAMPLE_TYPE and sample_id_all. So each record
 * has a known layout: that of a sample is struct access_sample in the source, and every other
 * record ends with struct access_trailer. Nothing else that the ring contains is trusted.
 */
#ifndef MW_STALE_ACCESS_RING_H
#define MW_STALE_ACCESS_RING_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/perf_event.h>

#include "merge/ring.h"

#define MW_ACCESS_SAMPLE_TYPE                                                                      \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_DATA_SRC)

/* The size of a record has 16 bits. */
#define MW_ACCESS_RECORD_ROOM 65536

enum mw_access_kind {
	MW_ACCESS_SAMPLE, /* an access to memory of a process */
	MW_ACCESS_FORK,	  /* a thread or a process begins */
	MW_ACCESS_EXIT,	  /* a thread ends */
	MW_ACCESS_COMM,	  /* a thread has a new name */
	MW_ACCESS_EXEC,	  /* a process executes another program; its name is new */
	MW_ACCESS_MAP,	  /* a process maps a file that it may execute */
	MW_ACCESS_LOST, /* records were lost, because the ring was full or the hardware lost them */
	MW_ACCESS_THROTTLED, /* the kernel stops an event until the next tick of its CPU */
};

/**
 * struct mw_access_item - an item
 * @kind: enum mw_access_kind
 * @cpu: where it happened
 * @pid, @tid: process and thread; of FORK, the new ones
 * @time_ns: CLOCK_MONOTONIC
 * @id: number of the perf event
 * @address, @ip: SAMPLE: memory that was accessed, and the instruction. An instruction in the upper
 *	half of the addresses is one of the kernel, on behalf of the thread.
 * @period: SAMPLE: how many accesses or operations it stands for
 * @data_src: SAMPLE: union perf_mem_data_src, for example whether it is a load or a store
 * @ppid, @ptid: FORK: process and thread that made the new one
 * @name: COMM, EXEC: the name; MAP: path of the file. It is valid until the next item.
 * @start, @length, @offset: MAP: the addresses, and where they are in the file
 * @major, @minor, @inode: MAP: the file
 * @prot: MAP: PROT_READ and so on
 * @lost: LOST: how many
 */
struct mw_access_item {
	enum mw_access_kind kind;
	uint32_t cpu;
	uint32_t pid;
	uint32_t tid;
	uint64_t time_ns;
	uint64_t id;
	uint64_t address;
	uint64_t ip;
	uint64_t period;
	uint64_t data_src;
	uint32_t ppid;
	uint32_t ptid;
	const char *name;
	uint64_t start;
	uint64_t length;
	uint64_t offset;
	uint64_t inode;
	uint32_t major;
	uint32_t minor;
	uint32_t prot;
	uint64_t lost;
};

/**
 * struct mw_access_counts - what was read from a ring
 * @samples: samples that became items
 * @no_address: samples without an address: with IBS, operations that access no memory
 * @kernel_address: samples of memory of the kernel, and of memory of virtual machines
 * @lost: records that did not fit into the ring, as far as the ring says it
 * @lost_in_hardware: samples that the PMU lost before (PERF_RECORD_LOST_SAMPLES)
 * @throttled: how often the kernel stopped an event because it took too many samples
 * @others: records of other kinds, which were skipped
 * @malformed: records that are not as the kernel writes them, which were skipped
 * @broken: how often the next record could not be found and the ring was emptied
 * @broken_bytes: what was skipped then
 */
struct mw_access_counts {
	uint64_t samples;
	uint64_t no_address;
	uint64_t kernel_address;
	uint64_t lost;
	uint64_t lost_in_hardware;
	uint64_t throttled;
	uint64_t others;
	uint64_t malformed;
	uint64_t broken;
	uint64_t broken_bytes;
};

/**
 * struct mw_access_reader - the reader of a ring
 * @ring: the ring
 * @at: position of the next record
 * @limit: position up to which there are records, as far as is known
 * @counts: what was read
 * @record: scratch memory of MW_ACCESS_RECORD_ROOM bytes, aligned to 8; readers that are used one
 *	after the other may share it
 */
struct mw_access_reader {
	struct mw_ring ring;
	uint64_t at, limit;
	struct mw_access_counts counts;
	void *record;
};

/* The position of the ring's reader is where reading begins. */
void mw_access_reader_init(struct mw_access_reader *reader, const struct mw_ring *ring,
			   void *record);

/*
 * Takes the next item out of the ring. Returns 1, or 0 if there is no more at present. The space
 * that was read is given back to the writer.
 */
int mw_access_reader_next(struct mw_access_reader *reader, struct mw_access_item *item);

#endif /* MW_STALE_ACCESS_RING_H */
