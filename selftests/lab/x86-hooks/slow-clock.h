/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The clocks of the guest, which a plugin can slow. The host has fewer processors than the
 * guest has CPUs, and emulates each of them slowly. If a second of the guest takes long
 * enough on the host, every CPU of the guest gets its work done in the time that a processor
 * of its own would take, and the guest measures times as on such a machine.
 */
#ifndef LAB_SLOW_CLOCK_H
#define LAB_SLOW_CLOCK_H

#include <stdint.h>

/* The time of the guest at a time of the host, in nanoseconds and in ticks of its counter. */
int64_t slow_clock_ns(int64_t host_ns);
int64_t slow_clock_ticks(int64_t host_ticks);

/*
 * A vCPU executes PAUSE, and so may wait for another one. All have the same real-time priority,
 * and the host lets none of them run before those that run make way.
 */
void slow_clock_pause(void);

#endif
