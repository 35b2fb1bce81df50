// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads the accessed bits of a sample of the pages of suspects. The library runs the iterator
 * over all tasks, which looks for the suspects, and clears the bits afterwards.
 *
 * The page tables are those of x86-64: no interface of the kernel tells the accessed bit of a
 * single page, and those that sum it up over mappings hold the lock of the address space for as
 * long as they read. Here no lock is taken. A page table may be freed while it is read; then
 * what is read is not a page of the suspect or a stale one. That is harmless: reads of kernel
 * memory that do not succeed return zeros, and nothing is ever written. A page that the suspect
 * does not have leaves the cohort: where nothing is mapped MADV_COLD fails, and otherwise the next
 * visit does not find it.
 *
 * The accessed bit is not ours alone: reclaim and DAMON clear it too, and remember in the flags of
 * the page that it was set. So a page with such a flag has been touched as well. Clearing by
 * MADV_COLD clears them.
 *
 * Page tables contain physical addresses. They are read through the direct map of all memory,
 * whose beginning is random and not to be read by everybody who may load this program. So it is
 * found by a search: of the few places where it can begin (a multiple of 1 GiB), it is the one
 * through which the page tables translate their own address to what it should be. The array of
 * struct page is found by the stack of a task, whose pages the kernel keeps a list of.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"
#include "touch.h"

#define ENTRIES	  512
#define PRESENT	  0x001ULL
#define ACCESSED  0x020ULL
#define LEAF	  0x080ULL /* a huge page, and not the address of a table */
#define PROT_NONE 0x100ULL /* if not PRESENT: in memory, but not accessible */

/* If not 0 and of no page in memory, an entry has a type in its upper bits. */
#define TYPE_SHIFT  59
#define TYPE_MARKER 31

#define GIB_SHIFT   30

/* Where the upper half of the address space begins, with page tables of four levels and of five. */
#define LOWEST_FOUR_LEVELS 0xffff800000000000ULL
#define LOWEST_FIVE_LEVELS 0xff00000000000000ULL

struct mw_touch_control control = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MW_GROWTH_SUSPECTS_MAX);
	__type(key, struct mw_growth_key);
	__type(value, __u32);
} slots SEC(".maps");

/* The library sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MW_GROWTH_SUSPECTS);
	__type(key, __u32);
	__type(value, struct mw_touch_suspect);
} suspects SEC(".maps");

/* Copies of the tables that lead to the present page, and which suspect it is of. */
struct walk {
	__u64 table[4][ENTRIES];
	__u32 slot;
	__u32 shift;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * What loops is a global function: the verifier checks it once and not for each entry of the
 * table above. Such a function takes numbers only.
 */
int touch_page(__u64 at, __u64 entry);
int touch_region(__u64 at, __u64 entry);
int touch_middle(__u64 at, __u64 entry);
int touch_upper(__u64 at, __u64 entry);
int touch_global(__u64 at, __u64 table, __u64 entries);
int touch_all(__u64 pgd);
__u64 touch_translate(__u64 at, __u64 base, __u64 pgd);
int touch_search(__u64 pgd);

static __always_inline struct walk *get_walk(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&walks, &zero);
}

/*
 * Reads memory of the kernel. What is taken for a table may be anything, and lead to an address
 * that no memory can have. bpf_probe_read_kernel() should refuse it silently, but a kernel with
 * page tables of four levels warns of it if the processor is capable of five (seen on 5.10).
 */
static __always_inline int read_kernel(void *to, __u32 size, __u64 from)
{
	if (from < control.lowest)
		return -1;
	return bpf_probe_read_kernel(to, size, (void *)from);
}

/* Reads a field of the kernel's structure at @object into @to. */
#define READ_FIELD(to, object, field)                                                              \
	read_kernel(&(to), sizeof(to), (__u64)(object) + bpf_core_field_offset((object)->field))

static __always_inline __u64 read_entry(__u64 table, __u64 i)
{
	__u64 entry = 0;

	read_kernel(&entry, sizeof(entry), table + i * sizeof(entry));
	return entry;
}

static __always_inline int read_table(__u64 *copy, __u64 table)
{
	return read_kernel(copy, ENTRIES * sizeof(*copy), table);
}

/* Adds the page at @at to those of the suspect. */
static __always_inline void add_page(__u32 slot, __u64 page)
{
	struct mw_touch_suspect *suspect = bpf_map_lookup_elem(&suspects, &slot);
	__u32 count;

	if (!suspect)
		return;
	count = suspect->count;
	if (count >= MW_TOUCH_PAGES) {
		suspect->missed++;
		return;
	}
	suspect->page[count & (MW_TOUCH_PAGES - 1)] = page;
	suspect->count = count + 1;
}

/* Returns the first page of the folio that @page belongs to, which is @page if there is no other.
 */
static __always_inline struct page *find_head(struct page *page)
{
	struct page___info *new = (void *)page;
	__u64 info = 0;

	if (bpf_core_field_exists(page->compound_head))
		READ_FIELD(info, page, compound_head);
	else if (bpf_core_field_exists(new->compound_info))
		READ_FIELD(info, new, compound_info);
	if (!(info & 1))
		return page;
	/* No address of a page has these bits. */
	if (info >> 32 == 0xffffffff)
		return (void *)((__u64)page & info);
	return (void *)(info - 1);
}

/* Has the page been touched since its bits were cleared last? */
static __always_inline int is_young(__u64 entry, struct page *page)
{
	__u64 flags = 0, touched = 1ULL << bpf_core_enum_value(enum pageflags, PG_referenced) |
				   1ULL << bpf_core_enum_value(enum pageflags, PG_active);

	if (entry & ACCESSED)
		return 1;
	if (bpf_core_enum_value_exists(enum pageflags, PG_young))
		touched |= 1ULL << bpf_core_enum_value(enum pageflags, PG_young);
	read_kernel(&flags, sizeof(flags), (__u64)page);
	return !!(flags & touched);
}

/*
 * The physical address of the page of the present @entry. If the page is not accessible, the
 * kernel stores the address inverted, so that no processor speculates with it (pgtable-invert.h).
 * The lower bits of a @huge page are none of its address.
 */
static __always_inline __u64 page_address(__u64 entry, int huge)
{
	__u64 address = (entry & PRESENT ? entry : ~entry) & control.mask;

	return huge ? address >> MW_TOUCH_REGION_SHIFT << MW_TOUCH_REGION_SHIFT : address;
}

/*
 * Returns the bits MW_TOUCH_* of the page of the present @entry; MW_TOUCH_NONE if it is not
 * anonymous memory.
 */
static __always_inline __u64 present_page(__u64 entry, int huge)
{
	__u64 mapping = 0;
	struct page *page, *head;
	int mapcount = 0;

	if (!control.pages)
		return entry & ACCESSED ? MW_TOUCH_YOUNG : 0;
	page = (void *)(control.pages + (page_address(entry, huge) >> MW_GROWTH_PAGE_SHIFT) *
						bpf_core_type_size(struct page));
	head = find_head(page);
	READ_FIELD(mapping, head, mapping);
	if (!(mapping & 1))
		return MW_TOUCH_NONE;
	/* What a folio of several pages has here is not how often it is mapped. */
	READ_FIELD(mapcount, page, _mapcount.counter);
	if (head == page && !huge && mapcount > 0)
		return MW_TOUCH_SHARED;
	return is_young(entry, head) ? MW_TOUCH_YOUNG : 0;
}

/*
 * Does @entry, which is of no page in memory, say that there is no memory (a guard region, a page
 * that was lost), and not where it is? The last type says so since there are markers.
 */
static __always_inline int is_marker(__u64 entry)
{
	return bpf_core_type_exists(pte_marker) && entry >> TYPE_SHIFT == TYPE_MARKER;
}

/*
 * Adds the page of @entry, if it is one of the suspect. @at is its address, and MW_TOUCH_HUGE if it
 * is of 2 MiB.
 */
__noinline int touch_page(__u64 at, __u64 entry)
{
	struct walk *walk = get_walk();
	__u64 state = MW_TOUCH_SWAPPED;

	if (entry & (PRESENT | PROT_NONE))
		state = present_page(entry, !!(at & MW_TOUCH_HUGE));
	else if (is_marker(entry))
		state = MW_TOUCH_NONE;
	if (walk && state != MW_TOUCH_NONE)
		add_page(walk->slot, at | state);
	return 0;
}

/* Samples the 2 MiB at @at, of which @entry is the entry. */
__noinline int touch_region(__u64 at, __u64 entry)
{
	__u64 hash = mw_touch_hash(at), table, page, i, n;
	struct walk *walk = get_walk();
	__u32 step;

	if (!walk || !mw_touch_samples_region(hash, walk->shift))
		return 0;
	if (entry & LEAF)
		return touch_page(at | MW_TOUCH_HUGE, entry);
	table = control.base + (entry & control.mask);
	step = mw_touch_step(walk->shift);
	i = hash & (step - 1);
	for (n = 0; n < ENTRIES; n++) {
		if (i >= ENTRIES)
			break;
		page = read_entry(table, i);
		if (page)
			touch_page(at + (i << MW_GROWTH_PAGE_SHIFT), page);
		i += step;
	}
	return 0;
}

/* Walks the 1 GiB at @at. */
__noinline int touch_middle(__u64 at, __u64 entry)
{
	struct walk *walk = get_walk();
	__u64 i, next;

	/* Pages of 1 GiB are not allocated by growing. */
	if (!walk || entry & LEAF ||
	    read_table(walk->table[0], control.base + (entry & control.mask)))
		return 0;
	for (i = 0; i < ENTRIES; i++) {
		next = walk->table[0][i];
		if (next & (PRESENT | PROT_NONE))
			touch_region(at + (i << MW_TOUCH_REGION_SHIFT), next);
	}
	return 0;
}

/* Walks the 512 GiB at @at. */
__noinline int touch_upper(__u64 at, __u64 entry)
{
	struct walk *walk = get_walk();
	__u64 i, next;

	if (!walk || read_table(walk->table[1], control.base + (entry & control.mask)))
		return 0;
	for (i = 0; i < ENTRIES; i++) {
		next = walk->table[1][i];
		if (next & PRESENT)
			touch_middle(at + (i << GIB_SHIFT), next);
	}
	return 0;
}

/* Walks the first @entries of 512 GiB each of @table, which map memory from @at on. */
__noinline int touch_global(__u64 at, __u64 table, __u64 entries)
{
	struct walk *walk = get_walk();
	__u64 i, next;

	if (!walk || read_table(walk->table[2], table))
		return 0;
	for (i = 0; i < ENTRIES; i++) {
		if (i >= entries)
			break;
		next = walk->table[2][i];
		if (next & PRESENT)
			touch_upper(at + (i << (GIB_SHIFT + 9)), next);
	}
	return 0;
}

/* Page tables have five levels if the direct map begins below where it can with four. */
static __always_inline int has_five_levels(__u64 address)
{
	return address < LOWEST_FOUR_LEVELS;
}

/* Walks the lower half of the address space, which is that of the process. */
__noinline int touch_all(__u64 pgd)
{
	struct walk *walk = get_walk();
	__u64 i, next;

	if (!walk)
		return 0;
	if (!has_five_levels(pgd))
		return touch_global(0, pgd, ENTRIES / 2);
	if (read_table(walk->table[3], pgd))
		return 0;
	for (i = 0; i < ENTRIES / 2; i++) {
		next = walk->table[3][i];
		if (next & PRESENT)
			touch_global(i << (GIB_SHIFT + 18), control.base + (next & control.mask),
				     ENTRIES);
	}
	return 0;
}

/*
 * Translates the address @at of the kernel by the page tables at @pgd, if the direct map is at
 * @base. Returns 0 if it cannot be translated.
 */
__noinline __u64 touch_translate(__u64 at, __u64 base, __u64 pgd)
{
	__u64 table = pgd, entry, below;
	__u32 shift = has_five_levels(pgd) ? GIB_SHIFT + 18 : GIB_SHIFT + 9;
	int level;

	for (level = 0; level < 5; level++) {
		entry = read_entry(table, at >> (shift & 63) & (ENTRIES - 1));
		if (!(entry & PRESENT))
			return 0;
		below = (1ULL << (shift & 63)) - 1;
		if (shift == MW_GROWTH_PAGE_SHIFT || (shift <= GIB_SHIFT && entry & LEAF))
			return (entry & control.mask & ~below) + (at & below);
		table = base + (entry & control.mask);
		shift -= 9;
	}
	return 0;
}

/* Searches for the direct map at some more places. */
__noinline int touch_search(__u64 pgd)
{
	__u64 base = (pgd >> GIB_SHIFT) - control.candidate;
	int i;

	for (i = 0; i < (int)MW_TOUCH_CANDIDATES; i++) {
		if (touch_translate(pgd, base << GIB_SHIFT, pgd) == pgd - (base << GIB_SHIFT)) {
			control.base = base << GIB_SHIFT;
			return 0;
		}
		base--;
	}
	return 0;
}

/* As a number: a global function takes no pointer. */
static __always_inline __u64 read_pgd(struct mm_struct *mm)
{
	__u64 pgd = 0;

	bpf_core_read(&pgd, sizeof(pgd), &mm->pgd);
	return pgd;
}

/* Finds the array of struct page by the first page of the stack of @task. */
static __noinline int find_pages(struct task_struct *task, __u64 pgd)
{
	__u64 stack = 0, list = 0, page = 0, at;
	struct vm_struct *area;

	if (!bpf_core_field_exists(task->stack_vm_area))
		return 0;
	area = task->stack_vm_area;
	bpf_core_read(&stack, sizeof(stack), &area->addr);
	bpf_core_read(&list, sizeof(list), &area->pages);
	bpf_probe_read_kernel(&page, sizeof(page), (void *)list);
	at = touch_translate(stack, control.base, pgd);
	if (at && page)
		control.pages = page -
				(at >> MW_GROWTH_PAGE_SHIFT) * bpf_core_type_size(struct page);
	return 0;
}

/* What is written makes the library's read() return, before any other suspect is visited. */
static __always_inline int visit_suspect(struct seq_file *seq, struct task_struct *task,
					 struct mm_struct *mm, __u32 slot)
{
	struct mw_touch_suspect *suspect = bpf_map_lookup_elem(&suspects, &slot);
	struct walk *walk = get_walk();

	if (!suspect || !walk || suspect->visit == control.visit)
		return 0;
	walk->slot = slot;
	walk->shift = suspect->shift;
	suspect->count = suspect->missed = 0;
	touch_all(read_pgd(mm));
	/* The process has exited meanwhile: its page tables may have been freed. */
	if (task->mm == mm)
		suspect->visit = control.visit;
	bpf_seq_write(seq, &slot, sizeof(slot));
	return 0;
}

SEC("iter/task")
int on_visit(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct mw_growth_key key = {};
	struct mm_struct *mm;
	__u32 *slot;
	__u64 pgd;

	if (!task)
		return 0;
	mm = task->mm;
	/* Any thread stands for a process whose leader has exited. */
	if (!mm || task->flags & PF_KTHREAD || (task->pid != task->tgid && task->group_leader->mm))
		return 0;
	if (!control.base) {
		pgd = read_pgd(mm);
		control.lowest = has_five_levels(pgd) ? LOWEST_FIVE_LEVELS : LOWEST_FOUR_LEVELS;
		if (!control.searched)
			touch_search(pgd);
		control.searched = 1;
		if (control.base)
			find_pages(task, pgd);
		return 0;
	}
	key.tgid = task->tgid;
	key.start_ns = task->group_leader->start_boottime;
	slot = bpf_map_lookup_elem(&slots, &key);
	return slot ? visit_suspect(ctx->meta->seq, task, mm, *slot) : 0;
}
