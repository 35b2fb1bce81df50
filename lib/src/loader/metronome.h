/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Timers that expire on each CPU just after multiples of the period. The programs that measure
 * without the module tick with them: on_timer in bpf/scheduler.bpf.c.
 *
 * Each is the hrtimer of a perf event that counts nothing. BPF has timers of its own, but only
 * since 5.15, and since 6.7 on a given CPU.
 */
#ifndef MW_LOADER_METRONOME_H
#define MW_LOADER_METRONOME_H

#include <stdint.h>

/*
 * Starts the timer of @cpu. Returns a descriptor, or a negative errno. The timer runs until it
 * is closed, or the CPU goes offline. Takes up to 80 ms: eight attempts of 10 ms, until the timer
 * is not late.
 */
int mw_metronome_open(unsigned int cpu, uint64_t period_ns);

#endif /* MW_LOADER_METRONOME_H */
