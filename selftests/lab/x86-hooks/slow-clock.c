/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compiled into QEMU, which calls it for each reading of a clock of the guest, and for PAUSE.
 */
#include "qemu/osdep.h"
#include <sched.h>
#include "qemu/atomic.h"
#include "qemu/timer.h"
#include "qemu/qemu-plugin.h"
#include "slow-clock.h"

/* Since a change of the factor: the times of host and guest at the change. */
struct pace {
	int64_t factor;
	int64_t host_ns, guest_ns;
	int64_t host_ticks, guest_ticks;
};

static const struct pace real_time = { .factor = 1 };
static const struct pace *pace = &real_time;

int64_t slow_clock_ns(int64_t host_ns)
{
	const struct pace *p = qatomic_rcu_read(&pace);

	return p->guest_ns + (host_ns - p->host_ns) / p->factor;
}

int64_t slow_clock_ticks(int64_t host_ticks)
{
	const struct pace *p = qatomic_rcu_read(&pace);

	return p->guest_ticks + (host_ticks - p->host_ticks) / p->factor;
}

void slow_clock_pause(void)
{
	if (qatomic_rcu_read(&pace)->factor > 1)
		sched_yield();
}

/*
 * The clocks go on from where they are. Another thread may still be using the last pace, so
 * that is never freed; a guest changes it a few times.
 */
void qemu_plugin_slow_clocks(unsigned int factor)
{
	struct pace *p = g_new(struct pace, 1);

	p->factor = factor;
	p->host_ns = get_clock();
	p->guest_ns = slow_clock_ns(p->host_ns);
	p->host_ticks = cpu_get_host_ticks();
	p->guest_ticks = slow_clock_ticks(p->host_ticks);
	qatomic_rcu_set(&pace, p);
}
