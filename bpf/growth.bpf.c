// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The BPF programs of the growth monitor. They need no kernel module.
 *
 *   on_task	   an iterator over all tasks. The library reads it once a round; it
 *		   takes one sample of each process and feeds it to the detectors.
 *   on_rss_stat   sees each change of a memory counter. When a process has grown much
 *		   since the last round, it requests a round.
 *   on_exit	   deletes the state of a process when its last thread exits.
 *   on_free	   deletes it when the process is freed, if on_exit was skipped.
 *   on_test	   feeds one sample to one state, for BPF_PROG_TEST_RUN.
 *
 * RACES. Only on_task writes the state of a process, and the library runs one iterator
 * at a time, so no lock is needed; old kernels allow none here. The other programs read
 * the state, or delete it as a whole. Since 6.1 the memory of a deleted state can be used for
 * that of another process at once. Only on_task adds states, so it never writes to a wrong
 * one; at worst on_rss_stat reads a wrong one, and the record of its request has another name.
 * The maps are not preallocated, and the programs that use them are BTF-typed, because
 * old kernels refuse such maps to programs of other tracing types.
 *
 * ACCURACY. From 6.2 on only the shared part of a percpu_counter is read. A reading is
 * off by at most max(32, 2 * CPUs) pages for each CPU. This error is bounded and does
 * not accumulate.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define MW_GROWTH_CALL(name)		    call_##name
#define call_fit_window(history, i, window) growth_fit_window(i, window)
#define call_fit_level(history, i)	    growth_fit_level(i)
#define call_update_level(g, history, i)    ((void)(g), growth_update_level(i))
#define call_update_days(g, history)	    ((void)(g), (void)(history), growth_update_days())
#define call_judge(g, history)		    growth_judge((history) != 0)

/*
 * The global functions take 64-bit numbers and mask them: old verifiers do not learn the
 * range of a 32-bit half from a comparison.
 */
int growth_fit_window(__u64 i, __u64 window);
int growth_fit_level(__u64 i);
int growth_update_level(__u64 i);
int growth_update_days(void);
int growth_judge(__u64 history);

#include "growth-counters.h"
#include "kernel.h"
#include "growth-maps.h"
#include "growth-memcg.h"
#include "growth-owner.h"
#include "growth-runs.h"
#include "growth-storage.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Reads the limits of the cgroup that the scratch names. */
__noinline int growth_read_bound(void)
{
	struct scratch *s = get_scratch();

	if (s)
		mw_growth_memcg_walk(&s->bound, control.host_swap,
				     MW_GROWTH_PAGE_SHIFT + (control.page_shift & 15));
	return 0;
}

/*
 * Sets the bound in the scratch to the nearest limit of the cgroup of @task. It often is
 * that of the process before.
 */
static __noinline int find_bound(struct task_struct *task, struct scratch *s)
{
	__u64 memcg = mw_growth_memcg_of(task);

	if (s->bound.memcg == memcg && s->bound.round == control.round)
		return 0;
	s->bound.memcg = memcg;
	s->bound.round = control.round;
	s->bound.legacy = memcg ? mw_growth_memcg_is_legacy(task, memcg) : 0;
	growth_read_bound();
	if (s->bound.deep)
		count_event(MW_GROWTH_COUNT_DEEP);
	return 0;
}

/*
 * Sets the headroom of the sample in the scratch to that of the nearest limit, and copies
 * what the state of the process there keeps of the sample.
 */
static __noinline int sample_read_headroom(struct task_struct *task, struct mm_struct *mm,
					   struct scratch *s)
{
	struct signal_struct *signal = task->signal;
	__u32 data = headroom_below(signal->rlim[RLIM_DATA].rlim_cur, mm->data_vm);
	__u32 as = headroom_below(signal->rlim[RLIM_AS].rlim_cur, mm->total_vm);
	__u32 limit = MEMWATCH_LIMIT_HOST, headroom = control.host_headroom, bound;

	find_bound(task, s);
	bound = convert_headroom(mw_growth_room_pages(&s->bound.room));
	if (bound < headroom) {
		headroom = bound;
		limit = s->bound.room.limit;
	}
	if (data < headroom) {
		headroom = data;
		limit = MEMWATCH_LIMIT_DATA;
	}
	if (as < headroom) {
		headroom = as;
		limit = MEMWATCH_LIMIT_AS;
	}
	s->sample.headroom = headroom;
	s->process.limit = limit;
	s->process.cgroup = task->cgroups->dfl_cgrp->kn->id;
	s->process.round = control.round;
	s->process.owner = s->owner;
	s->process.anon = s->sample.anon;
	s->process.swap = s->sample.swap;
	return 0;
}

/* Sends a record about @p, or about a process without state (NULL). */
static __noinline int send_record(void *ctx, const struct mw_growth_process *p,
				  const struct mw_growth_key *key, __u64 now, __u32 what)
{
	/* A batch of one record, see relay.h. */
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
	rec->eta_s = MW_GROWTH_NEVER;
	if (p) {
		rec->verdict = p->growth.verdict;
		rec->confidence = p->growth.confidence;
		rec->reason = p->growth.reason;
		rec->limit = p->limit;
		rec->signal_bytes = (__u64)p->growth.signal << MW_GROWTH_PAGE_SHIFT;
		if (what == MEMWATCH_GROWTH_ALERTED) {
			rec->slope = p->growth.slope_bps;
			rec->eta_s = p->growth.eta_s;
		}
		__builtin_memcpy(rec->comm, p->comm, sizeof(rec->comm));
		/* The name was read without a lock while the process may have changed it. */
		rec->comm[sizeof(rec->comm) - 1] = '\0';
	}
	err = bpf_perf_event_output(ctx, &records, BPF_F_CURRENT_CPU, &batch.records,
				    sizeof(batch.records) + sizeof(*rec));
	if (err)
		count_event(err == -ENOENT || err == -EOPNOTSUPP ? MW_GROWTH_COUNT_NO_RING
								 : MW_GROWTH_COUNT_OUTPUT);
	return 0;
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

__noinline int growth_update_days(void)
{
	struct scratch *s = get_scratch();

	return s ? mw_growth_update_days(&s->process.growth, &s->history) : 0;
}

__noinline int growth_judge(__u64 history)
{
	struct scratch *s = get_scratch();

	if (s)
		mw_growth_judge(&s->process.growth, history ? &s->history : NULL);
	return 0;
}

/* Feeds the sample in the scratch to the state in the scratch. */
__noinline int growth_feed(__u64 history)
{
	struct scratch *s = get_scratch();

	if (!s)
		return 0;
	return history ? mw_growth_feed(&s->process.growth, &s->history, &s->sample)
		       : mw_growth_feed(&s->process.growth, NULL, &s->sample);
}

/*
 * Returns the mm if @task stands for its process and the process owns the mm, else NULL.
 * The leader stands for a process, or any thread once the leader has exited. A process
 * that shares the mm of another one (vfork, CLONE_VM) does not own it.
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

/* Begins the state of a process that is new or has called exec. */
static __noinline int begin_process(struct task_struct *task, struct scratch *s)
{
	__builtin_memset(&s->process, 0, sizeof(s->process));
	mw_growth_init(&s->process.growth, s->sample.time_ns, mw_growth_signal(&s->sample));
	s->process.exec = (__u32)task->self_exec_id;
	bpf_probe_read_kernel(s->process.comm, sizeof(s->process.comm), task->comm);
	return 0;
}

/* Sends a record for each MW_GROWTH_EVENT_* in @event. */
static __noinline int send_events(void *ctx, struct scratch *s, const struct mw_growth_key *key,
				  __u32 event)
{
	if (event & MW_GROWTH_EVENT_SETTLE)
		send_record(ctx, &s->process, key, s->sample.time_ns, MEMWATCH_GROWTH_SETTLED);
	if (event & MW_GROWTH_EVENT_CLEAR)
		send_record(ctx, &s->process, key, s->sample.time_ns, MEMWATCH_GROWTH_CLEARED);
	if (event & MW_GROWTH_EVENT_NOTICE)
		send_record(ctx, &s->process, key, s->sample.time_ns, MEMWATCH_GROWTH_NOTICED);
	if (event & MW_GROWTH_EVENT_TOUCH)
		send_record(ctx, &s->process, key, s->sample.time_ns, MEMWATCH_GROWTH_TOUCHED);
	if (event & MW_GROWTH_EVENT_ALERT)
		send_record(ctx, &s->process, key, s->sample.time_ns, MEMWATCH_GROWTH_ALERTED);
	return 0;
}

/*
 * Feeds the sample in the scratch to the process in the scratch and to its history, and
 * sends what that raised or ended.
 */
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
		/* Pairs with the order in delete_process(): no history stays without its process.
		 */
		else if (!bpf_map_lookup_elem(&processes, key))
			bpf_map_delete_elem(&histories, key);
	}
	if (event) {
		bpf_probe_read_kernel(s->process.comm, sizeof(s->process.comm), task->comm);
		send_events(ctx, s, key, event);
	}
	if (event || mw_growth_program_reaches(&s->process.growth))
		note_program(s, event);
	return 0;
}

/* Reads all of a sample but the headroom. */
static __noinline int read_counters(struct mm_struct *mm, struct scratch *s)
{
	sample_read_counters(mm, &s->sample);
	s->sample.vsz = convert_pages(mm->total_vm);
	s->sample.time_ns = bpf_ktime_get_ns();
	return 0;
}

/* Sets s->owner to the user that @task counts for. */
static __noinline int find_owner_of(struct task_struct *task, struct scratch *s)
{
	__u32 uid = mw_growth_owner_of(task);

	if (!bpf_map_lookup_elem(&owners, &uid) &&
	    bpf_map_update_elem(&owners, &uid, &new_owner, BPF_NOEXIST))
		uid = MW_GROWTH_OWNER_OTHERS;
	s->owner = uid;
	return 0;
}

/* Sends that the notice and the alert of a program have ended, which has called exec. */
static __noinline int end_program(void *ctx, struct scratch *s, struct mw_growth_key *key)
{
	struct mw_growth *g = &s->process.growth;
	__u32 event = (g->flags & MW_GROWTH_F_NOTICE ? MW_GROWTH_EVENT_SETTLE : 0) |
		      (g->flags & MW_GROWTH_F_ALERT ? MW_GROWTH_EVENT_CLEAR : 0);

	g->reason = MW_GROWTH_NONE;
	g->verdict = MW_GROWTH_INSUFFICIENT;
	return send_events(ctx, s, key, event);
}

/* Copies the state @p of a process to the scratch, or begins a state there. */
static __noinline int load_process(void *ctx, struct task_struct *task, struct scratch *s,
				   struct mw_growth_key *key, struct mw_growth_process *p)
{
	if (!p)
		return begin_process(task, s);
	__builtin_memcpy(&s->process, p, sizeof(s->process));
	if (p->exec != (__u32)task->self_exec_id) {
		end_program(ctx, s, key);
		bpf_map_delete_elem(&histories, key);
		bpf_map_delete_elem(&touches, key);
		begin_process(task, s);
		count_event(MW_GROWTH_COUNT_EXECS);
	} else if (!p->round) {
		/* From a file, which may say anything. */
		bpf_probe_read_kernel(s->process.comm, sizeof(s->process.comm), task->comm);
	}
	return 0;
}

/* Adds to the sample in the scratch what is known of the pages of the process. */
static __noinline int read_touch(struct scratch *s, struct mw_growth_key *key)
{
	struct mw_growth_touch *touch = NULL;

	if (s->process.growth.flags & MW_GROWTH_F_NOTICE)
		touch = bpf_map_lookup_elem(&touches, key);
	if (touch)
		s->sample.touch = *touch;
	else
		__builtin_memset(&s->sample.touch, 0, sizeof(s->sample.touch));
	return 0;
}

/* Writes the state in the scratch to the map, in which it is new if @p is NULL. */
static __noinline int store_process(struct scratch *s, struct mw_growth_key *key,
				    struct mw_growth_process *p, struct mw_growth_owner *owner)
{
	if (p) {
		__builtin_memcpy(p, &s->process, sizeof(*p));
	} else if (bpf_map_update_elem(&processes, key, &s->process, BPF_NOEXIST)) {
		count_event(MW_GROWTH_COUNT_FULL);
		owner->refused++;
		owner->above++;
		return 0;
	} else {
		owner->admitted++;
		if (control.quota != MW_GROWTH_NO_LIMIT)
			owner->cursor = key->tgid;
	}
	owner->states++;
	return 0;
}

/*
 * What does not call the detectors is not inlined here, because the detectors need nearly
 * all of the stack.
 */
SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct mw_growth_owner *owner;
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
	find_owner_of(task, s);
	owner = bpf_map_lookup_elem(&owners, &s->owner);
	if (!owner)
		return 0;
	mw_growth_owner_begin(owner, control.round);
	if (!p && !mw_growth_owner_admit(owner, control.quota, key.tgid)) {
		count_event(MW_GROWTH_COUNT_FULL);
		return 0;
	}

	read_counters(mm, s);
	load_process(ctx, task, s, &key, p);
	read_touch(s, &key);
	sample_read_headroom(task, mm, s);
	/* The process has exited meanwhile: its counters may be those of a freed mm. */
	if (task->mm != mm)
		return 0;
	count_event(MW_GROWTH_COUNT_SAMPLES);
	sample_process(ctx, task, s, &key);
	store_process(s, &key, p, owner);
	return 0;
}

/* The owner of @mm: reclaim and ptrace change the counters of other processes. */
static __always_inline struct task_struct *find_owner(struct mm_struct *mm)
{
	struct task_struct *task;

	if (bpf_core_field_exists(mm->owner))
		return mm->owner;
	task = (struct task_struct *)bpf_get_current_task();
	return BPF_CORE_READ(task, mm) == mm ? task : NULL;
}

/*
 * Requests a round if the owner of @mm has grown much since the last one: by
 * control.request_pages, or by a sixteenth of its headroom.
 */
static __noinline int request_round(void *ctx, struct mm_struct *mm)
{
	struct mw_growth_sample sample = {};
	struct mw_growth_key key = {};
	struct mw_growth_process *p;
	struct task_struct *owner;
	__u32 grown, signal, headroom;
	__u64 now = bpf_ktime_get_ns();

	/* Another CPU may have requested one since @now. */
	if ((__s64)(now - control.request_ns) < (__s64)control.request_gap_ns)
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
	if (grown < control.request_pages && grown < headroom / 16)
		return 0;
	control.request_ns = now;
	count_event(MW_GROWTH_COUNT_REQUESTS);
	send_record(ctx, p, &key, now, MEMWATCH_GROWTH_POKED);
	return 0;
}

/* Requests a round if the counters of @mm have changed often enough, and it has grown much. */
static __always_inline void filter_change(void *ctx, struct mm_struct *mm,
					  struct mw_growth_filter *filter)
{
	struct mm_struct___new *new = (void *)mm;
	__s64 seen;

	/*
	 * Up to 6.1 an event stands for up to 64 pages. Later there is one for each page
	 * or huge page, so pages are counted instead.
	 */
	if (bpf_core_type_exists(struct mm_rss_stat))
		seen = filter->seen + 1;
	else
		seen = new->rss_stat[1].count + new->rss_stat[3].count;
	/* An interrupt in between may change the filter: that delays one examination. */
	if (filter->mm != (__u64)mm || seen < filter->seen) {
		filter->mm = (__u64)mm;
		filter->seen = bpf_core_type_exists(struct mm_rss_stat) ? 0 : seen;
		return;
	}
	if (bpf_core_type_exists(struct mm_rss_stat)) {
		filter->seen = seen;
		if (seen < control.width)
			return;
		filter->seen = 0;
	} else {
		if (seen - filter->seen < control.width)
			return;
		filter->seen = seen;
	}
	request_round(ctx, mm);
}

SEC("tp_btf/rss_stat")
int BPF_PROG(on_rss_stat, struct mm_struct *mm)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct mw_growth_filter *filter = bpf_map_lookup_elem(&filters, &cpu);
	__u64 begin;

	if (!filter)
		return 0;
	begin = mw_growth_run_begin(filter);
	filter_change(ctx, mm, filter);
	mw_growth_run_end(filter, begin);
	return 0;
}

static __always_inline void delete_process(struct task_struct *leader)
{
	struct mw_growth_owner *owner = NULL;
	struct mw_growth_key key = {};
	struct mw_growth_process *p;

	key.tgid = leader->tgid;
	key.start_ns = leader->start_boottime;
	p = bpf_map_lookup_elem(&processes, &key);
	if (p)
		owner = bpf_map_lookup_elem(&owners, &p->owner);
	if (owner)
		__sync_fetch_and_add(&owner->exits, 1);
	if (!bpf_map_delete_elem(&processes, &key))
		count_event(MW_GROWTH_COUNT_EXITS);
	bpf_map_delete_elem(&histories, &key);
	bpf_map_delete_elem(&touches, &key);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	(void)ctx;
	if (!task->signal->live.counter)
		delete_process(task->group_leader);
	return 0;
}

/*
 * From 7.0 on (a46023d5616e, "tracing: Guard __DECLARE_TRACE() use of __DO_TRACE_CALL() with
 * SRCU-fast") on_exit can be preempted, and the kernel skips it for all other tasks of the CPU
 * until it goes on: in a storm of exits that was a third of them. A task is freed in a softirq,
 * which is not preempted. A leader that an exec in another thread has replaced is none any more.
 */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	(void)ctx;
	if (task->group_leader == task)
		delete_process(task);
	return 0;
}

/* Feeds the sample in the map "test" to the state there. */
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
