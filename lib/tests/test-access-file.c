// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Files of access samples: what was written is read again, also if the file is cut off or damaged,
 * and the replay of a recorded trace charges it by time to the object that contains the address.
 */
#include "stale-kit.h"

#include <fcntl.h>

#include "recorded-kit.h"
#include "stale/access-write.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define SEED  20261126
#define ITEMS 20000

static struct memwatch_ctx *ctx;
static char folder[] = P_tmpdir "/memwatch-accesses-XXXXXX";

static struct mw_access_item items[ITEMS];

/* Of three processes, two of which share a block of the writer; the kernel and exec in between. */
static void make_items(void)
{
	static const uint32_t pids[] = { 77, 77 + MW_ACCESS_WRITER_BLOCKS, 5 };
	struct prng prng = { SEED };

	tap_note("seed %d", SEED);
	for (int i = 0; i < ITEMS; i++) {
		struct mw_access_item *item = &items[i];

		*item = (struct mw_access_item){
			.kind = prng_below(&prng, 500) ? MW_ACCESS_SAMPLE : MW_ACCESS_EXEC,
			.pid = pids[prng_below(&prng, 3)],
			.tid = (uint32_t)(prng_below(&prng, 50) ? 100 : prng_next(&prng)),
			/* CPUs are in no order. */
			.time_ns = 1000000 + (uint64_t)i * 100 + prng_below(&prng, 5000),
			.address = prng_below(&prng, 5) ? 0x7f0000000000 + prng_below(&prng, 99999)
							: prng_next(&prng),
			.ip = prng_below(&prng, 20) ? 0x401000 + prng_below(&prng, 4000)
						    : prng_next(&prng),
		};
	}
}

static void open_writer(struct mw_access_writer *writer)
{
	if (mw_access_writer_init(writer, ctx, folder)) {
		tap_note("%s", memwatch_ctx_error(ctx));
		exit(EXIT_FAILURE);
	}
	strcpy(writer->header.event, "cpu/mem-loads/");
	writer->header.period = 1000;
}

static int open_file(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void remove_file(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unlink(path);
}

static bool is_same(const struct mw_access_record *record, const struct mw_access_item *item)
{
	uint64_t ip = item->ip >> 63 ? 0 : item->ip;

	if (item->kind == MW_ACCESS_EXEC)
		return record->is_exec && record->time_ns == item->time_ns;
	return !record->is_exec && record->time_ns == item->time_ns && record->tid == item->tid &&
	       record->address == item->address && record->ip == ip;
}

/* How many items of a process come back as they were. */
static uint64_t read_back(int fd, uint32_t pid, uint64_t *wrong)
{
	struct mw_access_record record;
	struct mw_access_file file;
	uint64_t read = 0;
	int next = 0;

	*wrong = 0;
	if (mw_access_file_init(&file, ctx, fd, pid)) {
		mw_access_file_uninit(&file);
		return 0;
	}
	while (mw_access_file_next(&file, &record) == 1) {
		while (next < ITEMS && items[next].pid != pid)
			next++;
		*wrong += next == ITEMS || !is_same(&record, &items[next]);
		next += next < ITEMS;
		read++;
	}
	*wrong += file.damaged;
	mw_access_file_uninit(&file);
	return read;
}

static void test_round(void)
{
	struct mw_access_writer writer;
	uint64_t read = 0, wrong, all_wrong = 0, kept;

	make_items();
	open_writer(&writer);
	for (int i = 0; i < ITEMS; i++) {
		mw_access_writer_add(&writer, &items[i]);
		if (i % 3000 == 0)
			tap_eq(mw_access_writer_flush(&writer), 0, "what was sampled is written");
	}
	mw_access_writer_flush(&writer);
	kept = read_back(open_file("accesses.mwaccess"), 77, &wrong);
	read = kept;
	all_wrong = wrong;
	read += read_back(open_file("accesses.mwaccess"), 77 + MW_ACCESS_WRITER_BLOCKS, &wrong);
	all_wrong += wrong;
	read += read_back(open_file("accesses.mwaccess"), 5, &wrong);
	tap_eq(read, ITEMS, "each process has its samples");
	tap_eq(all_wrong + wrong, 0, "they are as they were");
	tap_note("%.1f bytes for each sample", (double)writer.size / ITEMS);
	mw_access_writer_uninit(&writer);
	open_writer(&writer);
	tap_ok(open_file("accesses-2.mwaccess") >= 0, "a second recorder has a file of its own");
	tap_eq(read_back(open_file("accesses.mwaccess"), 77, &wrong), kept,
	       "it leaves the first one as it is");
	mw_access_writer_uninit(&writer);
	remove_file("accesses-2.mwaccess");
}

/* A copy of the file, @len bytes of it, as a descriptor. */
static int copy_of(size_t len, char **bytes, size_t *size)
{
	static char content[4 << 20];
	static size_t have;
	int fd;

	if (!have) {
		fd = open_file("accesses.mwaccess");
		have = (size_t)read(fd, content, sizeof(content));
		close(fd);
	}
	*bytes = content;
	*size = have;
	return memory_file(content, len && len < have ? len : have);
}

static void test_cut(void)
{
	uint64_t wrong, shrinks = 0, last = 0, all_wrong = 0;
	char *bytes;
	size_t size;

	close(copy_of(0, &bytes, &size));
	for (size_t len = 1; len < size; len += len < 4000 ? 7 : 40093) {
		uint64_t n = read_back(copy_of(len, &bytes, &size), 77, &wrong);

		shrinks += n < last;
		last = n;
		all_wrong += wrong;
	}
	tap_eq(all_wrong, 0, "a file that is cut off has nothing wrong");
	tap_eq(shrinks, 0, "a longer one has more samples");
}

static void test_damage(void)
{
	struct mw_access_record record;
	struct mw_access_file file;
	struct mw_access_block head;
	uint64_t n = 0;
	char *bytes;
	size_t size;
	int fd = copy_of(0, &bytes, &size);

	/* The first record of the first block, which is one of each process. */
	memcpy(&head, bytes + sizeof(file.header), sizeof(head));
	if (pwrite(fd, "\xff", 1, sizeof(file.header) + sizeof(head)) != 1 ||
	    mw_access_file_init(&file, ctx, fd, head.pid))
		exit(EXIT_FAILURE);
	while (mw_access_file_next(&file, &record) == 1)
		n++;
	tap_ok(file.damaged == 1 && n > 1000, "behind a damaged block, the next one is read");
	mw_access_file_uninit(&file);
	fd = copy_of(0, &bytes, &size);
	head.bytes = 1;
	if (pwrite(fd, &head, sizeof(head), sizeof(file.header)) != sizeof(head) ||
	    mw_access_file_init(&file, ctx, fd, head.pid))
		exit(EXIT_FAILURE);
	tap_ok(mw_access_file_next(&file, &record) == 0 && file.damaged == 1,
	       "an impossible size ends the file");
	mw_access_file_uninit(&file);
	fd = copy_of(0, &bytes, &size);
	if (pwrite(fd, "\x02", 1, 8) != 1)
		exit(EXIT_FAILURE);
	tap_eq(mw_access_file_init(&file, ctx, fd, 1), -EPROTO, "a newer version is refused");
	mw_access_file_uninit(&file);
	tap_eq(mw_access_file_init(&file, ctx, memory_file("a trace", 7), 1), -ENOMSG,
	       "another file is refused");
	mw_access_file_uninit(&file);
	remove_file("accesses.mwaccess");
}

/* ---------------------------------------------------------------- replay */

/* Object 1 is accessed twice, object 2 before its birth, and 3 by another program. */
static void add_accesses(struct memwatch_stale *stale, bool same_boot)
{
	struct mw_access_item list[] = {
		{ MW_ACCESS_SAMPLE, .tid = 9, .time_ns = 2500, .address = 4100, .ip = 0x401000 },
		{ MW_ACCESS_SAMPLE, .tid = 9, .time_ns = 1500, .address = 4096, .ip = 0x401000 },
		{ MW_ACCESS_SAMPLE, .tid = 9, .time_ns = 1999, .address = 8200, .ip = 0x401000 },
		{ MW_ACCESS_SAMPLE, .tid = 9, .time_ns = 2700, .address = 9000, .ip = 0x401000 },
		{ MW_ACCESS_SAMPLE, .tid = 9, .time_ns = 2600, .address = 4100, .ip = 1ULL << 63 },
		{ MW_ACCESS_EXEC, .time_ns = 3500 },
		{ MW_ACCESS_SAMPLE, .tid = 9, .time_ns = 3600, .address = 12288, .ip = 0x401000 },
		{ MW_ACCESS_SAMPLE, .tid = 9, .time_ns = 900, .address = 4096, .ip = 0x401000 },
	};
	struct mw_access_writer writer;
	int fd;

	open_writer(&writer);
	if (same_boot)
		memcpy(stale->file.header.boot_id, writer.header.boot_id, 16);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		list[i].pid = 77;
		mw_access_writer_add(&writer, &list[i]);
		list[i].pid = 78;
		mw_access_writer_add(&writer, &list[i]);
	}
	mw_access_writer_flush(&writer);
	mw_access_writer_uninit(&writer);
	fd = open_file("accesses.mwaccess");
	tap_eq(memwatch_stale_add_accesses_fd(stale, fd), 0, "accesses are added to a trace");
	close(fd);
	remove_file("accesses.mwaccess");
}

static struct memwatch_stale *replay_accesses(bool same_boot)
{
	struct memwatch_stale *stale;
	struct recorded r;
	int fd;

	recorded_begin(&r, 512);
	recorded_header(&r)->created_ns = 1000;
	recorded_add_chunk(&r, 0, 0, 1, 1000);
	recorded_malloc(&r, 1, 1000, 1, 10, 4096);
	recorded_malloc(&r, 1, 2000, 1, 10, 8192);
	recorded_malloc(&r, 1, 3000, 1, 10, 12288);
	recorded_malloc(&r, 1, 4000, 1, 10, 16384);
	fd = memory_file((char *)r.bytes, r.len);
	free(r.bytes);
	if (memwatch_stale_new(ctx, NULL, &stale) || memwatch_stale_open_fd(stale, fd))
		exit(EXIT_FAILURE);
	close(fd);
	add_accesses(stale, same_boot);
	while (memwatch_stale_step(stale) == 1)
		;
	memwatch_stale_judge(stale);
	return stale;
}

static void test_charges(void)
{
	MEMWATCH_OPTS(memwatch_stale_info, info);
	MEMWATCH_OPTS(memwatch_stale_object, object);
	MEMWATCH_OPTS(memwatch_stale_place, place);
	struct memwatch_stale *stale = replay_accesses(true);
	uint64_t first = 0;

	memwatch_stale_get_info(stale, &info);
	tap_eq(info.accesses, 5, "accesses before the trace and behind an exec do not count");
	tap_eq(info.misses, 2, "an access before the birth of an object, or beside it, is a miss");
	tap_str_eq(info.access_event, "cpu/mem-loads/", "it is known how accesses were sampled");
	tap_eq(info.access_period, 1000, "it is known how many accesses a sample stands for");
	for (uint64_t i = 0; memwatch_stale_get_object(stale, i, &object) == 1; i++)
		if (object.address == 4096)
			first = i;
	memwatch_stale_get_object(stale, first, &object);
	tap_ok(object.accessed_ns == 2600 && object.accesses == 3,
	       "an object has the accesses to its memory, in the order of time");
	tap_str_eq(object.last_access, "[kernel]", "an access of the kernel has no instruction");
	tap_ok(memwatch_stale_get_place(stale, MEMWATCH_STALE_SITE_ACCESS, object.site, 0,
					&place) == 1 &&
		       place.count == 2,
	       "a site has the places of its accesses");
	tap_eq(memwatch_stale_add_accesses_fd(stale, 0), -EBUSY, "accesses cannot be added later");
	memwatch_stale_unref(stale);
	stale = replay_accesses(false);
	memwatch_stale_get_info(stale, &info);
	tap_eq(info.accesses, 0, "accesses of another boot are left out");
	memwatch_stale_unref(stale);
}

int main(void)
{
	if (memwatch_ctx_new(NULL, &ctx) || !mkdtemp(folder))
		return EXIT_FAILURE;
	test_round();
	test_cut();
	test_damage();
	test_charges();
	rmdir(folder);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
