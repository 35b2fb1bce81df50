// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * /proc/memwatch. Data is copied under mw_lock, in pieces where there may be
 * much of it, and formatted afterwards, so that reading a file delays no context
 * switch for long.
 */
#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

#include "access.h"
#include "clock.h"
#include "control.h"
#include "fail.h"
#include "owner.h"
#include "policy.h"
#include "proc.h"
#include "rdt-abmc.h"
#include "rdt-bout.h"
#include "rdt-domain.h"
#include "rdt.h"
#include "revoke.h"
#include "stretch.h"
#include "tick.h"
#include "track.h"

#define SHOW_WAITING  64
#define SHOW_SESSIONS 64
#define COPY_AT_ONCE  64

/* The backslash is escaped as well; otherwise the escapes would be ambiguous. */
static void proc_show_comm(struct seq_file *m, const char *comm)
{
	for (; *comm; comm++)
		if (*comm == '\\' || (u8)*comm < ' ' || *comm == 0x7f)
			seq_printf(m, "\\%03o", (u8)*comm);
		else
			seq_putc(m, *comm);
	seq_putc(m, '\n');
}

/* --------------------------------------------------------------- status */

/**
 * struct status - what /proc/memwatch/status shows of data under mw_lock
 * @stats: counters
 * @used: RMIDs that are owned
 * @resting: RMIDs in limbo
 * @allocs: allocations since the module was loaded
 * @frees: RMIDs freed since the module was loaded
 * @nr_waiting: number of entries in @waiting
 * @waiting: waiting processes, the one that waits longest first
 */
struct status {
	struct mw_owner_stats stats;
	u32 used;
	u32 resting;
	u64 allocs;
	u64 frees;
	u32 nr_waiting;
	struct {
		u32 tgid;
		char comm[MEMWATCH_COMM_LEN];
	} waiting[SHOW_WAITING];
};

static void proc_copy_waiting(struct status *s)
{
	struct task_struct *leader;
	struct mw_process *p;

	list_for_each_entry (p, &mw_waiters, waiters) {
		if (s->nr_waiting == SHOW_WAITING)
			break;
		leader = mw_process_leader(p);
		s->waiting[s->nr_waiting].tgid = p->tgid;
		strscpy(s->waiting[s->nr_waiting].comm, leader ? leader->comm : "",
			MEMWATCH_COMM_LEN);
		s->nr_waiting++;
	}
}

static void proc_copy_status(struct status *s)
{
	unsigned long flags;

	rcu_read_lock();
	raw_spin_lock_irqsave(&mw_lock, flags);
	s->stats = mw_owner_stats;
	s->used = mw_pool.used;
	s->allocs = mw_pool.allocs;
	s->frees = mw_pool.frees;
	proc_copy_waiting(s);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	rcu_read_unlock();
}

/* In pieces, because there may be 65535. The owners change meanwhile. */
static u32 proc_count_resting(void)
{
	u32 rmid = 1, end, count = 0;
	unsigned long flags;
	u64 now;

	while (rmid <= mw_pool.nr) {
		end = min(mw_pool.nr, rmid + COPY_AT_ONCE - 1);
		raw_spin_lock_irqsave(&mw_lock, flags);
		now = mw_now();
		for (; rmid <= end; rmid++)
			count += mw_rmid_is_resting(&mw_pool, rmid, now);
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
	return count;
}

static u64 proc_sum_foreign_writes(void)
{
	unsigned int id;
	u64 sum = 0;

	for_each_possible_cpu (id)
		sum += READ_ONCE(per_cpu(mw_cpu, id).foreign_writes);
	return sum;
}

/* These lines answer who uses the module when rmmod says that it is in use. */
static void proc_show_sessions(struct seq_file *m)
{
	const struct mw_session *session;
	u32 left = SHOW_SESSIONS;

	list_for_each_entry (session, &mw_session_list, link) {
		if (!left--)
			break;
		seq_printf(m, "session: %u %s ", session->tgid,
			   session->started ? "started" : "open");
		proc_show_comm(m, session->comm);
	}
}

/* Who made these settings: the answer to why a session measures what it does. */
static void proc_show_setter(struct seq_file *m, const char *key, const struct mw_settings *s)
{
	seq_printf(m, "%s: %u ", key, s->tgid);
	proc_show_comm(m, s->tgid ? s->comm : "-");
}

/* Caller holds mw_control_lock, so no session starts or ends. */
static void proc_show_rdt(struct seq_file *m)
{
	const struct mw_rdt_format *f = &mw_rdt.format;

	seq_printf(m, "rdt_budget: %u\nrdt_domains: %u\n", mw_rdt_bout_budget(),
		   mw_rdt_domain_count());
	seq_printf(m, "rdt_scale_bytes: %u\nrdt_width_bits: %u\n", f->events ? f->scale : 0,
		   f->events ? f->width : 0);
	seq_printf(m, "rdt_counters: %u\nrdt_counted_rmids: %u\nrdt_counter_turns: %llu\n",
		   f->events ? mw_rdt.counters : 0, mw_rdt_abmc_sets(), mw_rdt_domain_turns());
}

static void proc_show_period(struct seq_file *m)
{
	char reason[MW_STRETCH_REASON_LEN];

	mw_stretch_describe(reason);
	seq_printf(m, "period_ns: %llu\nperiod_asked_ns: %llu\nperiod_reason: %s\n",
		   mw_tick_period(), mw_settings_in_force.config.tick.period_ns, reason);
}

static int proc_show_config(struct seq_file *m)
{
	const struct mw_config *c = &mw_settings_in_force.config;

	if (mutex_lock_killable(&mw_control_lock))
		return -EINTR;
	mw_control_review();
	seq_printf(m, "backend: %s\nbackend_reason: %s\n", mw_rdt_backend_name(mw_rdt.backend),
		   mw_rdt.reason);
	proc_show_rdt(m);
	seq_printf(m, "sessions: %u\nsessions_started: %u\n", mw_sessions, mw_sessions_started);
	proc_show_sessions(m);
	proc_show_period(m);
	seq_printf(m, "limbo_ns: %llu\n", c->limbo_ns);
	seq_printf(m, "policy: %s\nidle_stop: %d\n", mw_policy_name(c->policy), c->tick.idle_stop);
	seq_printf(m, "cpumask: %*pbl\n", cpumask_pr_args(&c->tick.cpus));
	seq_printf(m, "filters: %u\n", mw_settings_in_force.filters.nr);
	proc_show_setter(m, "settings_by", &mw_settings_in_force);
	proc_show_setter(m, "defaults_by", &mw_settings_default);
	mutex_unlock(&mw_control_lock);
	return 0;
}

static void proc_show_counts(struct seq_file *m, const struct status *s)
{
	const u32 *state = s->stats.state;

	seq_printf(m, "rmids_total: %u\nrmids_used: %u\nrmids_limbo: %u\nrmids_free: %u\n",
		   mw_rmid_total(&mw_pool), s->used, s->resting,
		   mw_rmid_total(&mw_pool) - s->used - s->resting);
	seq_printf(m, "processes: %u\nprocesses_measured: %u\n",
		   state[MW_PROCESS_MEASURED] + state[MW_PROCESS_WAITING] +
			   state[MW_PROCESS_FILTERED] + state[MW_PROCESS_RETIRING],
		   state[MW_PROCESS_MEASURED]);
	/* A process whose RMID is being taken away counts as waiting already. */
	seq_printf(m, "processes_waiting: %u\nprocesses_filtered: %u\n",
		   state[MW_PROCESS_WAITING] + state[MW_PROCESS_RETIRING],
		   state[MW_PROCESS_FILTERED]);
	seq_printf(m, "allocs: %llu\nfrees: %llu\npromotions: %llu\nrevocations: %llu\n", s->allocs,
		   s->frees, s->stats.promotions, s->stats.revocations);
	seq_printf(m, "exhausted: %llu\nuntracked: %llu\nforeign_writes: %llu\n",
		   s->stats.exhausted, mw_track_missed(), proc_sum_foreign_writes());
}

static int proc_show_status(struct seq_file *m, void *v)
{
	struct status *s = kzalloc(sizeof(*s), GFP_KERNEL);
	u32 i;
	int err;

	if (!s)
		return -ENOMEM;
	proc_copy_status(s);
	/* RMIDs may have been freed and allocated since, and there are not more than these. */
	s->resting = min(proc_count_resting(), mw_rmid_total(&mw_pool) - s->used);
	seq_printf(m, "version: %s\nabi: %u\nschema: %u\n", MW_VERSION, MEMWATCH_ABI,
		   MEMWATCH_SCHEMA);
	err = proc_show_config(m);
	proc_show_counts(m, s);
	for (i = 0; i < s->nr_waiting; i++) {
		seq_printf(m, "waiting: %u ", s->waiting[i].tgid);
		proc_show_comm(m, s->waiting[i].comm);
	}
	kfree(s);
	return err;
}

/* ---------------------------------------------------------------- rmids */

/*
 * Copy the owners of RMIDs in use to @to and their RMIDs to @ids. Start at
 * *@rmid, look at COPY_AT_ONCE RMIDs at most, and advance *@rmid. Returns the
 * number copied.
 */
static u32 proc_copy_owners(struct mw_owner *to, u32 *ids, u32 *rmid)
{
	u32 end = min(mw_pool.nr, *rmid + COPY_AT_ONCE - 1), nr = 0;
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	for (; *rmid <= end; ++*rmid)
		if (mw_rmid_in_use(&mw_pool, *rmid)) {
			ids[nr] = *rmid;
			to[nr++] = mw_owners[*rmid];
		}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return nr;
}

static int proc_show_rmids(struct seq_file *m, void *v)
{
	struct mw_owner *owners = kvmalloc_array(mw_pool.nr, sizeof(*owners), GFP_KERNEL);
	u32 *ids = kvmalloc_array(mw_pool.nr, sizeof(*ids), GFP_KERNEL);
	u32 rmid = 1, nr = 0, i;

	if (!owners || !ids) {
		kvfree(owners);
		kvfree(ids);
		return -ENOMEM;
	}
	while (rmid <= mw_pool.nr)
		nr += proc_copy_owners(owners + nr, ids + nr, &rmid);

	seq_puts(m, "# rmid\tgeneration\ttgid\tparent_tgid\tstart_time_ns\talloc_time_ns\t"
		    "cgroup_id\tuid\tcomm\n");
	for (i = 0; i < nr; i++) {
		const struct mw_owner *o = &owners[i];

		seq_printf(m, "%u\t%u\t%u\t%u\t%llu\t%llu\t%llu\t%u\t", ids[i], o->generation,
			   o->tgid, o->parent_tgid, o->start_time_ns, o->alloc_time_ns,
			   o->cgroup_id, o->uid);
		proc_show_comm(m, o->comm);
	}
	seq_printf(m, "# end %u\n", nr);
	kvfree(owners);
	kvfree(ids);
	return 0;
}

/* ------------------------------------------------------------- overhead */

/* The time that @cycles of the ticks of @cpu took; 0 if there is no counter of cycles. */
static u64 proc_convert_cycles(const struct mw_cpu *cpu, u64 cycles)
{
	u64 all = READ_ONCE(cpu->tick_cycles);

	return all ? mul_u64_u64_div_u64(READ_ONCE(cpu->tick_ns), cycles, all) : 0;
}

static void proc_show_cpu(struct seq_file *m, unsigned int id)
{
	const struct mw_cpu *cpu = per_cpu_ptr(&mw_cpu, id);

	seq_printf(
		m,
		"cpu %u: ticks=%llu missed=%llu jitter_max_ns=%llu switches=%llu pqr_writes=%llu",
		id, READ_ONCE(cpu->ticks), READ_ONCE(cpu->missed), READ_ONCE(cpu->jitter_max),
		READ_ONCE(cpu->switches), READ_ONCE(cpu->pqr_writes));
	seq_printf(m, " switch_cycles=%llu switch_sampled=%llu tick_cycles=%llu",
		   READ_ONCE(cpu->switch_cycles), READ_ONCE(cpu->switch_sampled),
		   READ_ONCE(cpu->tick_cycles));
	seq_printf(m, " rdt_ops=%llu rdt_ops_max=%llu rdt_reads=%llu rdt_waits=%llu",
		   READ_ONCE(cpu->rdt_ops), READ_ONCE(cpu->rdt_ops_max), READ_ONCE(cpu->rdt_reads),
		   READ_ONCE(cpu->rdt_waits));
	seq_printf(m, " rdt_ns=%llu rdt_sync_ns=%llu rdt_busy=%llu rdt_age_max_ns=%llu",
		   proc_convert_cycles(cpu, READ_ONCE(cpu->rdt_cycles)),
		   proc_convert_cycles(cpu, READ_ONCE(cpu->rdt_sync_cycles)),
		   READ_ONCE(cpu->rdt_busy), READ_ONCE(cpu->rdt_age_max));
	seq_printf(m, " irqs_off_max_ns=%llu tick_ns=%llu tick_ppm=%u\n",
		   READ_ONCE(cpu->irqs_off_max), READ_ONCE(cpu->tick_ns), READ_ONCE(cpu->cost.ppm));
}

static u64 proc_sum_jitter(unsigned int class)
{
	unsigned int id;
	u64 sum = 0;

	for_each_possible_cpu (id)
		sum += READ_ONCE(per_cpu(mw_cpu, id).jitter[class]);
	return sum;
}

static int proc_show_overhead(struct seq_file *m, void *v)
{
	unsigned int id, class;

	for_each_possible_cpu (id)
		if (cpu_online(id) || READ_ONCE(per_cpu(mw_cpu, id).switches))
			proc_show_cpu(m, id);
	for (class = 0; class < MW_JITTER_CLASSES; class ++)
		seq_printf(m, "jitter_ns %llu-%llu: %llu\n", class ? 1ULL << class : 0,
			   (2ULL << class) - 1, proc_sum_jitter(class));
	if (mutex_lock_killable(&mw_control_lock))
		return -EINTR;
	seq_printf(m, "memory_bytes: %zu\n",
		   mw_owner_memory() + mw_track_memory() + mw_revoke_memory() +
			   mw_rdt_domain_memory() + num_possible_cpus() * sizeof(struct mw_cpu));
	mutex_unlock(&mw_control_lock);
	return 0;
}

/* ----------------------------------------------------------------- files */

static int proc_open(struct file *file, int (*show)(struct seq_file *, void *))
{
	return mw_access_may_read() ? single_open(file, show, NULL) : -EPERM;
}

#define DEFINE_PROC_FILE(name)                                                                     \
	static int proc_open_##name(struct inode *inode, struct file *file)                        \
	{                                                                                          \
		return proc_open(file, proc_show_##name);                                          \
	}                                                                                          \
                                                                                                   \
	static const struct proc_ops proc_ops_##name = {                                           \
		.proc_open = proc_open_##name,                                                     \
		.proc_read_iter = seq_read_iter,                                                   \
		.proc_lseek = seq_lseek,                                                           \
		.proc_release = single_release,                                                    \
	}

DEFINE_PROC_FILE(status);
DEFINE_PROC_FILE(rmids);
DEFINE_PROC_FILE(overhead);

static const struct {
	const char *name;
	const struct proc_ops *ops;
} proc_files[] = {
	{ "status", &proc_ops_status },
	{ "rmids", &proc_ops_rmids },
	{ "overhead", &proc_ops_overhead },
};

static bool proc_make_files(struct proc_dir_entry *dir)
{
	kgid_t readers = mw_access_group();
	bool group = gid_valid(readers);
	struct proc_dir_entry *entry;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(proc_files); i++) {
		entry = proc_create(proc_files[i].name, group ? 0440 : 0400, dir,
				    proc_files[i].ops);
		if (!entry)
			return false;
		proc_set_user(entry, GLOBAL_ROOT_UID, group ? readers : GLOBAL_ROOT_GID);
	}
	return true;
}

int mw_proc_init(void)
{
	struct proc_dir_entry *dir = mw_fail(MW_FAIL_PROC) ? NULL : proc_mkdir("memwatch", NULL);

	if (dir && proc_make_files(dir))
		return 0;
	mw_proc_uninit();
	return -ENOMEM;
}

void mw_proc_uninit(void)
{
	remove_proc_subtree("memwatch", NULL);
}
