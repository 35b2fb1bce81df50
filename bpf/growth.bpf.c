// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Growth, measured and judged in the kernel, without the module.
 *
 *   on_task	   an iterator over all tasks: the library reads it once a round,
 *		   and every process gets one sample and one judgement
 *   on_rss_stat   sees each change of a counter, looks when an mm has gained 2 MiB,
 *		   and asks for a round when a process has grown much since the last
 *   on_exit	   deletes the state with the last thread
 *   on_test	   feeds one sample to one state, for BPF_PROG_TEST_RUN
 *
 * RACES. The state of a process is written by on_task only, and one reader
 * drives it: no lock is needed and none is possible on old kernels. The others
 * read it, or delete it whole; a deleted value stays readable until a grace
 * period has passed, because the maps are not preallocated. For the same reason
 * these are BTF-typed programs: to others old kernels refuse such maps.
 *
 * The counters that are read are the folded part of percpu_counters (from 6.2):
 * off by at most max(32, 2 * CPUs) pages a CPU, which is noise, not drift.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define MW_GROWTH_CALL(name)		    call_##name
#define call_fit_window(history, i, window) growth_fit_window(i, window)
#define call_fit_level(history, i)	    growth_fit_level(i)
#define call_update_level(g, history, i)    ((void)(g), growth_update_level(i))
#define call_judge(g, history)		    growth_judge((history) != 0)

/* 64 bits, and masks: old verifiers forget what a comparison told of a half. */
int growth_fit_window(__u64 i, __u64 window);
int growth_fit_level(__u64 i);
int growth_update_level(__u64 i);
int growth_judge(__u64 history);

#include "growth-maps.h"

#define PF_KTHREAD 0x00200000
#define ENOENT	   2
#define EOPNOTSUPP 95
#define NR_MEMBERS 4
#define RLIM_DATA  2
#define RLIM_AS	   9

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The parts of the kernel's types that are read; CO-RE finds where they are. */
#define KERNEL __attribute__((preserve_access_index))

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	__s64 counter;
} atomic_long_t;

struct percpu_counter {
	__s64 count;
} KERNEL;

struct kernfs_node {
	__u64 id;
} KERNEL;

struct cgroup {
	struct kernfs_node *kn;
} KERNEL;

struct css_set {
	struct cgroup *dfl_cgrp;
} KERNEL;

struct rlimit {
	__u64 rlim_cur;
} KERNEL;

struct signal_struct {
	atomic_t live;
	struct rlimit rlim[16];
} KERNEL;

struct mm_struct;

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	__u64 start_boottime;
	__u64 self_exec_id;
	struct signal_struct *signal;
	struct css_set *cgroups;
	char comm[16];
} KERNEL;

struct mm_struct {
	unsigned long total_vm;
	unsigned long data_vm;
	struct task_struct *owner; /* CONFIG_MEMCG */
} KERNEL;

/* Up to 6.1. */
struct mm_rss_stat {
	atomic_long_t count[NR_MEMBERS];
} KERNEL;

struct mm_struct___old {
	struct mm_rss_stat rss_stat;
} KERNEL;

/* From 6.2, f1a7941243c1 ("mm: convert mm's rss stats into percpu_counter"). */
struct mm_struct___new {
	struct percpu_counter rss_stat[NR_MEMBERS];
} KERNEL;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} KERNEL;

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} records SEC(".maps");

/* The library sets max_entries of these two. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 10000);
	__type(key, struct mw_growth_key);
	__type(value, struct mw_growth_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 10000);
	__type(key, struct mw_growth_key);
	__type(value, struct mw_growth_history);
} histories SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct mw_growth_limit);
} limits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MW_GROWTH_COUNT_MAX);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

/*
 * What is worked on: copies, because the global functions of the verifier take
 * no pointers. Nothing interrupts the iterator with another one on its CPU.
 */
struct scratch {
	struct mw_growth_process process;
	struct mw_growth_history history;
	struct mw_growth_sample sample;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* State of the test entry. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mw_growth_test);
} test SEC(".maps");

struct mw_growth_control control = {};
struct mw_growth_filter filters[MW_GROWTH_FILTERS] = {};

static __always_inline void count_event(__u32 what)
{
	__u64 *value = bpf_map_lookup_elem(&counts, &what);

	if (value)
		__sync_fetch_and_add(value, 1);
}

/* ---------------------------------------------------------------- reading */

static __always_inline __u32 to_pages(__s64 pages)
{
	/* A percpu_counter may be below zero for a moment. */
	if (pages < 0)
		return 0;
	pages <<= control.page_shift & 15;
	return pages >= MW_GROWTH_NO_LIMIT ? MW_GROWTH_NO_LIMIT - 1 : (__u32)pages;
}

static __always_inline void sample_read_counters(struct mm_struct *mm, struct mw_growth_sample *s)
{
	if (bpf_core_type_exists(struct mm_rss_stat)) {
		struct mm_struct___old *old = (void *)mm;
		atomic_long_t count[NR_MEMBERS] = {};

		/* An array of a typedef is what the verifier of that time cannot walk. */
		bpf_core_read(count, sizeof(count), &old->rss_stat.count);
		s->file = to_pages(count[0].counter);
		s->anon = to_pages(count[1].counter);
		s->swap = to_pages(count[2].counter);
		s->shmem = to_pages(count[3].counter);
	} else {
		struct mm_struct___new *new = (void *)mm;

		s->file = to_pages(new->rss_stat[0].count);
		s->anon = to_pages(new->rss_stat[1].count);
		s->swap = to_pages(new->rss_stat[2].count);
		s->shmem = to_pages(new->rss_stat[3].count);
	}
}

/* Pages between @used, in pages of the machine, and a limit in bytes. */
static __always_inline __u32 headroom_below(__u64 limit, __u64 used)
{
	/* RLIM_INFINITY, and what is as good as that. */
	if (limit >> 56)
		return MW_GROWTH_NO_LIMIT;
	limit >>= MW_GROWTH_PAGE_SHIFT;
	used <<= control.page_shift & 15;
	return limit > used ? (limit - used >= MW_GROWTH_NO_LIMIT ? MW_GROWTH_NO_LIMIT - 1
								  : limit - used)
			    : 0;
}

/* The nearest of all limits goes to the sample, its kind to @limit. */
static __always_inline void sample_read_headroom(struct task_struct *task, struct mm_struct *mm,
						 __u64 cgroup, struct mw_growth_sample *s,
						 __u32 *limit)
{
	struct mw_growth_limit *bound = bpf_map_lookup_elem(&limits, &cgroup);
	struct signal_struct *signal = task->signal;
	__u32 data = headroom_below(signal->rlim[RLIM_DATA].rlim_cur, mm->data_vm);
	__u32 as = headroom_below(signal->rlim[RLIM_AS].rlim_cur, mm->total_vm);

	s->headroom = control.host_headroom;
	*limit = MEMWATCH_LIMIT_HOST;
	if (bound && bound->headroom < s->headroom) {
		s->headroom = bound->headroom;
		*limit = bound->limit;
	}
	if (data < s->headroom) {
		s->headroom = data;
		*limit = MEMWATCH_LIMIT_DATA;
	}
	if (as < s->headroom) {
		s->headroom = as;
		*limit = MEMWATCH_LIMIT_AS;
	}
	s->address_headroom = data < as ? data : as;
}

/* ----------------------------------------------------------------- output */

static __noinline int send_record(void *ctx, const struct mw_growth_process *p,
				  const struct mw_growth_key *key, __u64 now, __u32 what)
{
	/* A parcel of one record, see relay.h. */
	struct {
		__u32 unsent;
		__u32 records;
		struct memwatch_record_growth rec;
	} batch = { .records = 1 };
	struct memwatch_record_growth *rec = &batch.rec;
	long err;

	rec->h.time_ns = now;
	rec->h.type = MEMWATCH_RECORD_GROWTH;
	rec->h.size = sizeof(*rec);
	rec->h.cpu = bpf_get_smp_processor_id();
	rec->start_time_ns = key->start_ns;
	rec->tgid = key->tgid;
	rec->what = what;
	if (p) {
		rec->verdict = p->growth.verdict;
		rec->confidence = p->growth.confidence;
		rec->reason = p->growth.reason;
		rec->limit = p->limit;
		rec->signal_bytes = (__u64)p->growth.signal << MW_GROWTH_PAGE_SHIFT;
		rec->slope = p->growth.slope_bps;
		rec->eta_s = p->growth.eta_s;
		__builtin_memcpy(rec->comm, p->comm, sizeof(rec->comm));
	}
	err = bpf_perf_event_output(ctx, &records, BPF_F_CURRENT_CPU, &batch.records,
				    sizeof(batch.records) + sizeof(*rec));
	if (err)
		count_event(err == -ENOENT || err == -EOPNOTSUPP ? MW_GROWTH_COUNT_NO_RING
								 : MW_GROWTH_COUNT_OUTPUT);
	return 0;
}

/* -------------------------------------------------------------- judgement */

static __always_inline struct scratch *get_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

__noinline int growth_fit_window(__u64 i, __u64 window)
{
	struct scratch *s = get_scratch();

	if (!s || window < 8 || window > MW_GROWTH_BINS)
		return 0;
	return mw_growth_fit_window(&s->history, i & (MW_GROWTH_LEVELS - 1), window);
}

__noinline int growth_fit_level(__u64 i)
{
	struct scratch *s = get_scratch();

	if (s)
		mw_growth_fit_level(&s->history, i & (MW_GROWTH_LEVELS - 1));
	return 0;
}

__noinline int growth_update_level(__u64 i)
{
	struct scratch *s = get_scratch();

	if (!s)
		return 0;
	return mw_growth_update_level(&s->process.growth, &s->history, i & (MW_GROWTH_LEVELS - 1));
}

__noinline int growth_judge(__u64 history)
{
	struct scratch *s = get_scratch();

	if (s)
		mw_growth_judge(&s->process.growth, history ? &s->history : NULL);
	return 0;
}

/* The sample in the scratch into the state in the scratch. */
__noinline int growth_feed(__u64 history)
{
	struct scratch *s = get_scratch();

	if (!s)
		return 0;
	return history ? mw_growth_feed(&s->process.growth, &s->history, &s->sample)
		       : mw_growth_feed(&s->process.growth, NULL, &s->sample);
}

/* -------------------------------------------------------------- iterator */

/*
 * The task that stands for its process: the leader, or any thread once the
 * leader is gone. A process that only borrows an mm (vfork, CLONE_VM) has none
 * of its own to be judged by: the mm counts for its owner.
 */
static __always_inline struct mm_struct *find_own_mm(struct task_struct *task)
{
	struct mm_struct *mm = task->mm;
	struct task_struct *owner;

	if (!mm || task->flags & PF_KTHREAD)
		return NULL;
	if (task->pid != task->tgid && task->group_leader->mm)
		return NULL;
	if (bpf_core_field_exists(mm->owner)) {
		owner = mm->owner;
		if (owner && owner->tgid != task->tgid)
			return NULL;
	}
	return mm;
}

/* A process that is new, or another program than it was. */
static __noinline int begin_process(struct task_struct *task, struct scratch *s)
{
	__builtin_memset(&s->process, 0, sizeof(s->process));
	mw_growth_init(&s->process.growth, s->sample.time_ns, mw_growth_signal(&s->sample));
	s->process.exec = task->self_exec_id;
	bpf_probe_read_kernel(s->process.comm, sizeof(s->process.comm), task->comm);
	return 0;
}

/* State and scratch are as the last round left them: the sample makes them new. */
static __noinline int sample_process(void *ctx, struct task_struct *task, struct scratch *s,
				     struct mw_growth_key *key)
{
	struct mw_growth_history *d = bpf_map_lookup_elem(&histories, key);
	__u32 event;

	if (d)
		bpf_probe_read_kernel(&s->history, sizeof(s->history), d);
	event = growth_feed(d != NULL);
	if (d) {
		bpf_probe_read_kernel(d, sizeof(*d), &s->history);
	} else if (s->process.growth.flags & MW_GROWTH_F_HISTORY) {
		mw_growth_history_init(&s->history, &s->process.growth);
		if (bpf_map_update_elem(&histories, key, &s->history, BPF_NOEXIST))
			count_event(MW_GROWTH_COUNT_HISTORY_FULL);
	}
	if (event) {
		bpf_probe_read_kernel(s->process.comm, sizeof(s->process.comm), task->comm);
		send_record(ctx, &s->process, key, s->sample.time_ns,
			    event & MW_GROWTH_EVENT_ALERT ? MEMWATCH_GROWTH_ALERTED
							  : MEMWATCH_GROWTH_CLEARED);
	}
	return 0;
}

SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct mw_growth_key key = {};
	struct mw_growth_process *p;
	struct scratch *s = get_scratch();
	struct mm_struct *mm;

	if (!task || !s)
		return 0;
	mm = find_own_mm(task);
	if (!mm)
		return 0;
	key.tgid = task->tgid;
	key.start_ns = task->group_leader->start_boottime;
	p = bpf_map_lookup_elem(&processes, &key);
	if (p && p->round == control.round)
		return 0;

	sample_read_counters(mm, &s->sample);
	s->sample.vsz = to_pages(mm->total_vm);
	s->sample.time_ns = bpf_ktime_get_ns();
	if (p) {
		__builtin_memcpy(&s->process, p, sizeof(s->process));
		if (p->exec != task->self_exec_id) {
			bpf_map_delete_elem(&histories, &key);
			begin_process(task, s);
			count_event(MW_GROWTH_COUNT_EXECS);
		}
	} else {
		begin_process(task, s);
	}
	s->process.cgroup = task->cgroups->dfl_cgrp->kn->id;
	sample_read_headroom(task, mm, s->process.cgroup, &s->sample, &s->process.limit);
	/* It exited while we read: what was read may be of nobody. */
	if (task->mm != mm)
		return 0;
	s->process.round = control.round;
	s->process.anon = s->sample.anon;
	s->process.swap = s->sample.swap;
	s->process.shmem = s->sample.shmem;
	count_event(MW_GROWTH_COUNT_SAMPLES);
	sample_process(ctx, task, s, &key);
	if (p)
		__builtin_memcpy(p, &s->process, sizeof(*p));
	else if (bpf_map_update_elem(&processes, &key, &s->process, BPF_NOEXIST))
		count_event(MW_GROWTH_COUNT_FULL);
	return 0;
}

/* ----------------------------------------------------------------- events */

/* Who owns @mm; reclaim and ptrace change counters that are not their own. */
static __always_inline struct task_struct *find_owner(struct mm_struct *mm)
{
	struct task_struct *task;

	if (bpf_core_field_exists(mm->owner))
		return mm->owner;
	task = (struct task_struct *)bpf_get_current_task();
	return BPF_CORE_READ(task, mm) == mm ? task : NULL;
}

static __noinline int request_round(void *ctx, struct mm_struct *mm)
{
	struct mw_growth_sample sample = {};
	struct mw_growth_key key = {};
	struct mw_growth_process *p;
	struct task_struct *owner;
	__u32 grown, signal, headroom;
	__u64 now;

	now = bpf_ktime_get_ns();
	if (now - control.request_ns < control.request_gap_ns)
		return 0;
	owner = find_owner(mm);
	if (!owner)
		return 0;
	key.tgid = BPF_CORE_READ(owner, tgid);
	key.start_ns = BPF_CORE_READ(owner, group_leader, start_boottime);
	sample_read_counters(mm, &sample);
	signal = mw_growth_signal(&sample);
	p = bpf_map_lookup_elem(&processes, &key);
	grown = mw_growth_sub_sat(signal, p ? p->growth.signal : 0);
	headroom = p ? p->growth.headroom : control.host_headroom;
	/* Much, or a sixteenth of what is left. */
	if (grown < control.request_pages && grown < headroom / 16)
		return 0;
	control.request_ns = now;
	count_event(MW_GROWTH_COUNT_REQUESTS);
	send_record(ctx, p, &key, now, MEMWATCH_GROWTH_POKED);
	return 0;
}

SEC("tp_btf/rss_stat")
int BPF_PROG(on_rss_stat, struct mm_struct *mm)
{
	struct mw_growth_filter *filter =
		&filters[bpf_get_smp_processor_id() & (MW_GROWTH_FILTERS - 1)];

	struct mm_struct___new *new = (void *)mm;
	__s64 seen;

	/* One event is one page, or a huge one: pages are what counts. */
	if (bpf_core_type_exists(struct mm_rss_stat))
		seen = filter->seen + 1;
	else
		seen = new->rss_stat[1].count + new->rss_stat[3].count;
	/* An interrupt in between moves a bound: it is a filter, not a sum. */
	if (filter->mm != (__u64)mm || seen < filter->seen) {
		filter->mm = (__u64)mm;
		filter->seen = bpf_core_type_exists(struct mm_rss_stat) ? 0 : seen;
		return 0;
	}
	if (bpf_core_type_exists(struct mm_rss_stat)) {
		filter->seen = seen;
		if (seen < control.width)
			return 0;
		filter->seen = 0;
	} else {
		if (seen - filter->seen < control.width)
			return 0;
		filter->seen = seen;
	}
	return request_round(ctx, mm);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct mw_growth_key key = {};

	(void)ctx;
	if (task->signal->live.counter)
		return 0;
	key.tgid = task->tgid;
	key.start_ns = task->group_leader->start_boottime;
	bpf_map_delete_elem(&histories, &key);
	if (!bpf_map_delete_elem(&processes, &key))
		count_event(MW_GROWTH_COUNT_EXITS);
	return 0;
}

/* ------------------------------------------------------------------- test */

/* One sample from the map "test" into the state there. */
SEC("raw_tp/memwatch_growth_test")
int on_test(void *ctx)
{
	__u32 zero = 0;
	struct mw_growth_test *t = bpf_map_lookup_elem(&test, &zero);
	struct scratch *s = get_scratch();

	(void)ctx;
	if (!t || !s)
		return 0;
	__builtin_memcpy(&s->sample, &t->sample, sizeof(s->sample));
	__builtin_memcpy(&s->process.growth, &t->growth, sizeof(t->growth));
	bpf_probe_read_kernel(&s->history, sizeof(s->history), &t->history);
	if (!t->started)
		mw_growth_init(&s->process.growth, t->sample.time_ns, mw_growth_signal(&t->sample));
	t->started = 1;
	t->event = growth_feed(t->has_history);
	if (!t->has_history && s->process.growth.flags & MW_GROWTH_F_HISTORY) {
		mw_growth_history_init(&s->history, &s->process.growth);
		t->has_history = 1;
	}
	__builtin_memcpy(&t->growth, &s->process.growth, sizeof(t->growth));
	bpf_probe_read_kernel(&t->history, sizeof(t->history), &s->history);
	return 0;
}
