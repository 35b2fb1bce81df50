// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The ticks: one timer per CPU, all due at the same multiples of the period.
 * The timers are hard, so on PREEMPT_RT too they run in interrupt context and
 * do not depend on scheduling. The timer of a CPU is started, stopped and
 * handled on that CPU only, with interrupts off, and therefore needs no lock.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/log2.h>
#include <linux/memwatch.h>
#include <linux/sched.h>

#include "clock.h"
#include "compat/hrtimer.h"
#include "compat/irq_work.h"
#include "compat/syscore.h"
#include "fail.h"
#include "notify.h"
#include "pqr.h"
#include "rdt-bout.h"
#include "rdt-read.h"
#include "resctrl.h"
#include "switch.h"
#include "tick.h"
#include "trace.h"

/*
 * With a longer period the next tick would come too late to program the RMID of a process
 * that is promoted while it runs. Then an IPI programs it, see refresh.h.
 */
#define RARE_NS 10000000ULL

/* Written under mw_control_lock with CPU hotplug held off. */
static struct mw_tick_config config;
static u64 period; /* in use: what was asked for, or longer */
static bool armed; /* false while a session starts and ends, too */
static bool asleep;
static enum cpuhp_state hotplug_state;
static void (*report_resctrl)(void);
static void (*report_cost)(void);
static u32 cost_max_ppm;

/* CPUs that went offline, or came online, during a session. Guarded by CPU hotplug. */
static u64 departures, arrivals;

static void tick_account_delay(struct mw_cpu *cpu, u64 delay)
{
	cpu->ticks++;
	cpu->missed += cpu->overruns;
	cpu->jitter_max = max(cpu->jitter_max, delay);
	cpu->jitter[min(ilog2(delay | 1), MW_JITTER_CLASSES - 1)]++;
}

static void tick_start_timer(struct mw_cpu *cpu)
{
	u64 next = (div64_u64(mw_now(), cpu->period_ns) + 1) * cpu->period_ns;

	cpu->overruns = 0;
	hrtimer_start(&cpu->timer, ns_to_ktime(next), HRTIMER_MODE_ABS_PINNED_HARD);
}

static enum hrtimer_restart tick_go_idle(struct mw_cpu *cpu)
{
	cpu->state = MW_TICK_IDLE;
	mw_cpu_report_state(MEMWATCH_CPU_IDLE, cpu->last_tick);
	return HRTIMER_NORESTART;
}

/*
 * The counters are left alone from the first tick on that sees a mounted resctrl,
 * because resctrl reads them through the same registers.
 */
static void tick_read_counters(struct mw_cpu *cpu, u64 expected)
{
	cpu->ticking = true;
	if (static_branch_unlikely(&mw_pqr_key) && mw_resctrl_is_mounted())
		report_resctrl();
	else
		mw_rdt_bout_tick(cpu, expected);
	cpu->ticking = false;
}

/*
 * The next tick is computed from the time when this one was due, not from the
 * time when it ran. The timer and mw_now() use clocks that differ slightly, so
 * a tick may seem to come early; it then counts as punctual.
 *
 * The record has the time of the last reading, so that the relay can send both together.
 */
static enum hrtimer_restart tick_run(struct hrtimer *timer)
{
	struct mw_cpu *cpu = container_of(timer, struct mw_cpu, timer);
	u64 expected = ktime_to_ns(hrtimer_get_expires(timer));
	struct mw_span span = mw_cpu_begin_span(cpu);
	u64 now = max(span.ns, expected);
	u64 slots_ns = (cpu->overruns + 1) * cpu->period_ns;

	tick_account_delay(cpu, now - expected);
	mw_switch_tick(cpu, slots_ns);
	mw_pqr_verify(cpu);
	tick_read_counters(cpu, expected);
	now = max(cpu->now_ns, expected);
	trace_memwatch_tick(now, expected, cpu->period_ns, cpu->overruns, cpu->owner);
	cpu->last_tick = now;
	mw_cpu_end_span(cpu, &span);
	if (mw_cost_tick(&cpu->cost, cpu->tick_ns, slots_ns, cost_max_ppm))
		report_cost();

	if (config.idle_stop && is_idle_task(current) && !mw_rdt_bout_is_behind(cpu))
		return tick_go_idle(cpu);
	cpu->overruns = hrtimer_forward(timer, ns_to_ktime(now), ns_to_ktime(cpu->period_ns)) - 1;
	return HRTIMER_RESTART;
}

static void tick_wake_timer(struct irq_work *work)
{
	struct mw_cpu *cpu = container_of(work, struct mw_cpu, wake);

	if (cpu->state == MW_TICK_ON && !hrtimer_is_queued(&cpu->timer))
		tick_start_timer(cpu);
}

/* Apply the configuration to this CPU, and report what changed. */
static void tick_apply_config(void *unused)
{
	struct mw_cpu *cpu = this_cpu_ptr(&mw_cpu);
	u32 before = cpu->state;

	if (!cpu->live)
		return;
	hrtimer_try_to_cancel(&cpu->timer);
	if (cpu->period_ns != period) {
		cpu->period_ns = period;
		mw_cost_begin(&cpu->cost, cpu->tick_ns);
	}
	if (!cpumask_test_cpu(smp_processor_id(), &config.cpus)) {
		cpu->state = MW_TICK_EXCLUDED;
		if (before != MW_TICK_EXCLUDED)
			mw_cpu_report_state(MEMWATCH_CPU_STOPPED, mw_now());
		return;
	}
	if (before == MW_TICK_IDLE && config.idle_stop)
		return;
	cpu->state = MW_TICK_ON;
	if (before == MW_TICK_IDLE)
		mw_cpu_report_state(MEMWATCH_CPU_BUSY, cpu->last_tick);
	else if (before != MW_TICK_ON)
		mw_cpu_report_state(MEMWATCH_CPU_ONLINE, mw_now());
	tick_start_timer(cpu);
}

/* ------------------------------------------------------------------ CPUs */

static bool tick_fails_cpu(unsigned int id)
{
	return (id == cpumask_first(cpu_online_mask) && mw_fail(MW_FAIL_CPU_FIRST)) ||
	       (id == cpumask_last(cpu_online_mask) && mw_fail(MW_FAIL_CPU_LAST));
}

/*
 * The ONLINE record precedes records about what the CPU is charged to. A CPU
 * that is live already is left alone.
 */
static void tick_admit_cpu(void *unused)
{
	struct mw_cpu *cpu = this_cpu_ptr(&mw_cpu);

	if (cpu->live)
		return;
	cpu->state = MW_TICK_OFF;
	cpu->period_ns = 0;
	cpu->live = ~0ULL;
	tick_apply_config(NULL);
	mw_switch_begin(cpu);
}

/* Make this CPU a part of the session. Returns 0 or a negative errno. */
static int tick_join_cpu(struct mw_cpu *cpu)
{
	unsigned long flags;
	int err;

	local_irq_save(flags);
	mw_pqr_capture(cpu);
	local_irq_restore(flags);
	err = mw_rdt_read_join(cpu);
	if (err)
		return err;
	local_irq_save(flags);
	tick_admit_cpu(NULL);
	local_irq_restore(flags);
	return 0;
}

/*
 * Runs on CPU @id in its hotplug thread. A CPU that has too few RMIDs is not
 * admitted now, but by mw_tick_admit_all() when RDT has been given up.
 */
static int tick_cpu_online(unsigned int id)
{
	int err;

	mw_fail_delay("a CPU that comes online");
	if (tick_fails_cpu(id))
		return -ENOMEM;
	err = tick_join_cpu(per_cpu_ptr(&mw_cpu, id));
	/* While a session starts, all CPUs come here. */
	if (!err && armed)
		mw_notify_readers(MEMWATCH_NOTICE_CPU_ONLINE, ++arrivals, 0);
	return err == -ERANGE ? 0 : err;
}

/*
 * RDT has been given up, so a CPU with too few RMIDs can be admitted as well. The
 * caller holds cpus_read_lock, see conflict_end_rdt().
 */
void mw_tick_admit_all(void)
{
	on_each_cpu(tick_admit_cpu, NULL, 1);
}

/* Take this CPU out of the session. Returns whether it was part of it. */
static bool tick_dismiss_cpu(struct mw_cpu *cpu)
{
	unsigned long flags;
	u64 was_live;

	local_irq_save(flags);
	was_live = cpu->live;
	hrtimer_try_to_cancel(&cpu->timer);
	mw_switch_end(cpu);
	if (mw_resctrl_is_mounted())
		mw_pqr_hand_over(cpu);
	/* Until the record is sent, what runs is charged to nobody. */
	if (cpu->domain) {
		local_irq_restore(flags);
		mw_rdt_read_leave(cpu);
		local_irq_save(flags);
	}
	cpu->state = MW_TICK_OFF;
	if (was_live)
		mw_cpu_report_state(armed ? MEMWATCH_CPU_OFFLINE : MEMWATCH_CPU_STOPPED, mw_now());
	local_irq_restore(flags);
	return was_live;
}

/*
 * Runs on CPU @id while it still runs tasks. Later its pending timers would be
 * moved to another CPU.
 */
static int tick_cpu_offline(unsigned int id)
{
	struct mw_cpu *cpu = per_cpu_ptr(&mw_cpu, id);
	bool was_live = tick_dismiss_cpu(cpu);

	irq_work_sync(&cpu->wake);
	if (was_live && armed)
		mw_notify_readers(MEMWATCH_NOTICE_CPU_OFFLINE, ++departures, 0);
	mw_fail_delay("a CPU that goes offline");
	return 0;
}

/* ----------------------------------------------------------------- sleep */

/*
 * When the system goes to sleep (suspend to RAM, hibernation), all CPUs go offline but one,
 * which loses its registers all the same. So it leaves the session, too, and joins it when
 * it wakes up. In both callbacks this CPU is the only one that is online, interrupts are
 * off, and processes are frozen. Suspend to idle keeps the registers and does not call them.
 */
static int tick_suspend(MW_SYSCORE_PARAMETERS)
{
	struct mw_cpu *cpu = this_cpu_ptr(&mw_cpu);

	asleep = cpu->live;
	if (!asleep)
		return 0;
	tick_dismiss_cpu(cpu);
	/*
	 * Those who read the records may have raised irq_works. Their interrupt would be lost
	 * with the state of the local APIC, and no irq_work would raise another one.
	 */
	irq_work_run();
	return 0;
}

/* Its domain exists already, so no memory is allocated. */
static void tick_resume(MW_SYSCORE_PARAMETERS)
{
	if (asleep)
		tick_join_cpu(this_cpu_ptr(&mw_cpu));
}

MW_DEFINE_SYSCORE(tick_syscore, tick_suspend, tick_resume);

/* ------------------------------------------------------ start, stop, change */

static void tick_set_idle_key(bool on)
{
	if (on)
		static_branch_enable(&mw_idle_stop_key);
	else
		static_branch_disable(&mw_idle_stop_key);
}

/**
 * mw_tick_arm - let all CPUs tick
 * @on_resctrl: called in each tick that sees a mounted resctrl, until RDT is given up
 * @on_cost: called in a tick of a CPU that spends too much time in ticks, see cost.h
 * @max_ppm: how much is too much, in millionths of its time; 0, nothing is
 *
 * Return: 0 or a negative errno
 */
int mw_tick_arm(void (*on_resctrl)(void), void (*on_cost)(void), u32 max_ppm)
{
	unsigned int id;
	int ret;

	report_resctrl = on_resctrl;
	report_cost = on_cost;
	cost_max_ppm = max_ppm;
	for_each_possible_cpu (id) {
		struct mw_cpu *cpu = per_cpu_ptr(&mw_cpu, id);

		hrtimer_setup(&cpu->timer, tick_run, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
		cpu->wake = IRQ_WORK_INIT_HARD(tick_wake_timer);
	}
	mw_rdt_bout_arm();
	tick_set_idle_key(config.idle_stop);
	/* No CPU goes offline between this and "armed". */
	cpus_read_lock();
	ret = cpuhp_setup_state_cpuslocked(CPUHP_AP_ONLINE_DYN, "memwatch:online", tick_cpu_online,
					   tick_cpu_offline);
	armed = ret >= 0;
	cpus_read_unlock();
	if (ret < 0) {
		tick_set_idle_key(false);
		return ret;
	}
	hotplug_state = ret;
	register_syscore(&tick_syscore);
	return 0;
}

static void tick_set_period(u64 ns)
{
	WRITE_ONCE(period, ns);
	mw_rdt_bout_configure(ns, cpumask_subset(cpu_possible_mask, &config.cpus));
}

/* Does nothing if the ticks are not armed. */
void mw_tick_disarm(void)
{
	if (!armed)
		return;
	armed = false;
	cpuhp_remove_state(hotplug_state);
	unregister_syscore(&tick_syscore);
	tick_set_idle_key(false);
	tick_set_period(config.period_ns);
}

/* A period that was lengthened remains so, unless @new asks for another one. */
void mw_tick_configure(const struct mw_tick_config *new)
{
	u64 now = new->period_ns == config.period_ns ? period : new->period_ns;

	/* The key is on before the first CPU stops its tick, and off after the last resumed. */
	if (armed && new->idle_stop)
		tick_set_idle_key(true);
	cpus_read_lock();
	config = *new;
	tick_set_period(now);
	if (armed)
		on_each_cpu(tick_apply_config, NULL, 1);
	cpus_read_unlock();
	if (armed && !new->idle_stop)
		tick_set_idle_key(false);
}

/* Double the period. Returns false if it is as long as it may be. */
bool mw_tick_lengthen(void)
{
	u64 longer = mw_cost_longer_period(period, MEMWATCH_PERIOD_LENGTHENED_MAX_NS);

	if (!armed || longer == period)
		return false;
	cpus_read_lock();
	tick_set_period(longer);
	on_each_cpu(tick_apply_config, NULL, 1);
	cpus_read_unlock();
	return true;
}

bool mw_tick_is_lengthened(void)
{
	return period != config.period_ns;
}

/* The period in use. */
u64 mw_tick_period(void)
{
	return READ_ONCE(period);
}

/* Is the next tick of CPU @id far away, or will there be none? */
bool mw_tick_is_rare_on(unsigned int id)
{
	return mw_tick_period() > RARE_NS ||
	       READ_ONCE(per_cpu(mw_cpu, id).state) == MW_TICK_EXCLUDED;
}

/* Is it so on some CPU? */
bool mw_tick_is_rare(void)
{
	return mw_tick_period() > RARE_NS || !cpumask_subset(cpu_online_mask, &config.cpus);
}
