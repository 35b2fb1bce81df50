#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Generates the synthetic part of the corpus: traces whose truth is known in closed form.
Each trace is NAME.csv, the input of `memwatchctl growth replay`, and NAME.json, the truth
(see docs/evaluation.md). The name of a trace seeds its random numbers, so a new class changes
no other trace. With SEED, all parameters are drawn anew.

    corpus.py DIRECTORY [SEED [PATTERN...]]
"""
import concurrent.futures
import fnmatch
import json
import math
import os
import sys

from parameters import HOUR, Trace
from shapes import (GB, KB, MB, PAGE, ar1, constant, delayed, doubling, duty, linear, logarithmic,
                    power, pulse, quickening, ramp, saturating, sawtooth, stairs, total, wave)

HEADER = "time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb"


def leak_linear(t):
    t.leak(count=30)
    anon, file = t.body()
    t.limit_above()
    t.add(anon, file, leaked=delayed(linear(t.rate), t.onset))


def leak_slow(t):
    t.leak(10 * KB, 100 * KB, 20)
    anon, file = t.body()
    t.limit_above()
    t.add(anon, file, leaked=delayed(linear(t.rate), t.onset))


def leak_stepwise(t):
    t.leak(10 * KB, 20 * MB)
    anon, file = t.body()
    t.limit_above()
    period = min(t.log_uniform(10, 120), t.left / 12)
    t.add(anon, file, leaked=delayed(stairs(t.rate, period), t.onset))


def leak_noisy(t):
    t.leak(15 * KB, 20 * MB)
    t.begin(t.uniform(120, 1500))
    growth = t.rate * min(t.left, 1800)
    anon, file = t.body(noise=min(growth * t.uniform(0.02, 0.06), 20 * MB),
                        base=t.log_uniform(100 * MB, 800 * MB))
    t.limit_above()
    t.add(anon, file, leaked=delayed(linear(t.rate), t.onset))


def leak_sawtooth(t):
    t.leak(15 * KB, 2 * MB)
    anon, file = t.body()
    amplitude = min(t.log_uniform(10 * MB, 120 * MB), t.rate * t.left / 3)
    t.limit_above(amplitude)
    saw = sawtooth(amplitude, t.log_uniform(8, 60), t.uniform(0, 1))
    t.add(total(anon, saw), file, leaked=delayed(linear(t.rate), t.onset))


def leak_bursty(t):
    t.leak(10 * KB, 5 * MB)
    anon, file = t.body()
    t.limit_above()
    on = min(t.log_uniform(5, 60), t.left / 40)
    t.add(anon, file, leaked=delayed(duty(t.rate, on, on * t.uniform(0.5, 3)), t.onset))


def leak_superlinear(t):
    t.leak(40 * KB, 20 * MB)
    anon, file = t.body()
    t.limit_above()
    t.add(anon, file, leaked=delayed(power(t.rate, t.uniform(1.3, 2.0), t.left), t.onset))


def leak_quickened(t):
    """Becomes several times as fast, as when a rare path of the program becomes a common one."""
    t.leak(20 * KB, 5 * MB)
    anon, file = t.body()
    t.limit_above()
    shape = quickening(t.rate, t.left * t.uniform(0.5, 0.9), t.log_uniform(4, 30), t.left)
    t.add(anon, file, leaked=delayed(shape, t.onset))


def leak_shmem(t):
    t.leak(10 * KB, 50 * MB)
    anon, file = t.body()
    t.limit_above()
    t.add(anon, file, leaked=delayed(linear(t.rate), t.onset), into="shmem")


def leak_swapped(t):
    """The host is short of memory: leaked pages are swapped out, and the RSS stays."""
    t.leak(15 * KB, 2 * MB)
    anon, file = t.body()
    t.limit_above()
    t.limit = 0
    t.duration = t.onset + max(t.left, 2700)
    t.add(anon, file, leaked=delayed(linear(t.rate), t.onset),
          into="swapped").resident = t.base * t.uniform(0.9, 1.0)


def leak_after_warmup(t):
    t.leak(15 * KB, 5 * MB)
    anon, file = t.body()
    warm = t.log_uniform(30 * MB, 300 * MB)
    tau = t.log_uniform(10, 120)
    t.begin(6 * tau + t.uniform(0, 600))
    t.limit_above(warm)
    t.add(total(anon, saturating(warm, tau)), file, leaked=delayed(linear(t.rate), t.onset))


def leak_after_startup(t):
    """Leaks from the end of its start-up on, and is killed soon."""
    t.leak(40 * KB, 10 * MB)
    anon, file = t.body(base=t.log_uniform(4 * MB, 30 * MB))
    t.cadence = 1
    t.left = t.log_uniform(90, 600)
    height, rise = min(t.log_uniform(5 * MB, 100 * MB), t.rate * t.left / 1.5), t.uniform(1, 25)
    t.begin(rise + t.uniform(0, 15))
    t.limit_above(height)
    t.add(total(anon, ramp(height, rise)), file, leaked=delayed(linear(t.rate), t.onset))


def leak_stacks(t):
    """Threads that are not joined: 8 MiB of address space and some pages each."""
    t.leak(16 * KB, 400 * KB)
    anon, file = t.body()
    t.limit_above()
    touched = t.rng.choice([8, 12, 24])
    reserved = t.log_uniform(10 * MB, GB)
    t.add(anon, file, leaked=delayed(stairs(t.rate, touched / t.rate), t.onset),
          reserved=total(constant(reserved),
                         delayed(stairs(t.rate / touched * 8 * MB, touched / t.rate), t.onset)))


def leak_daily(t):
    """A slow leak, and a load that follows the time of day."""
    t.leak(12 * KB, 80 * KB, longest=20 * HOUR)
    anon, file = t.body()
    t.begin(t.uniform(600, 4 * HOUR))
    t.limit_above(20 * MB)
    t.add(total(anon, wave(t.uniform(5, 20) * MB, 24 * HOUR, t.uniform(0, 1)), constant(20 * MB)),
          file,
          leaked=delayed(linear(t.rate), t.onset))
    t.base += 20 * MB


def leak_creeping(t):
    """Slower than any mark requires: some MiB per hour, for two days."""
    t.leak(KB, 9 * KB, 6)
    anon, file = t.body()
    t.left = 60 * HOUR
    t.begin(t.uniform(0, 2 * HOUR))
    t.duration = 48 * HOUR
    t.limit = int(t.base + t.rate * t.left) // PAGE * PAGE if t.index % 2 else 0
    t.add(anon, file, leaked=delayed(linear(t.rate), t.onset))


def leak_one_of_pool(t):
    """One worker of eight leaks; the others must have no alert."""
    t.leak(15 * KB, 10 * MB)
    anon, file = t.body()
    t.limit_above()
    t.add(anon, file, leaked=delayed(linear(t.rate), t.onset), comm="worker")
    for _ in range(7):
        sane = t.log_uniform(20 * MB, 200 * MB)
        t.add(total(constant(sane), ar1(t.rng, sane * 0.002, 60, t.cadence)), file, comm="worker")


def reserved_growth(t):
    """Address space only: nothing is resident, and no limit gets nearer."""
    t.leak(1 * MB, 100 * MB)
    t.label = "reserved"
    t.cadence, t.duration = 5, t.onset + HOUR
    anon, file = t.body()
    t.limit = int(t.base * 4)
    t.add(anon, file, leaked=delayed(linear(t.rate), t.onset), into="reserved")


def benign_constant(t):
    anon, file = t.body(noise=0)
    t.limit = int(t.base * t.uniform(1.1, 4))
    t.duration = t.uniform(1, 4) * HOUR
    t.add(anon, file)


def benign_idle(t):
    """Small fluctuations for a day."""
    anon, file = t.body(noise=20 * KB)
    t.duration = 24 * HOUR
    t.limit = int(t.base * t.uniform(1.1, 4))
    t.add(total(anon, wave(20 * KB, 600, t.uniform(0, 1))), file)


def benign_noise(t):
    anon, file = t.body(noise=t.log_uniform(0.5 * MB, 8 * MB), base=t.log_uniform(100 * MB, GB))
    t.limit = int(t.base * t.uniform(1.3, 4))
    t.duration = t.uniform(2, 6) * HOUR
    t.add(anon, file)


def benign_warmup(t):
    anon, file = t.body()
    height, tau = t.log_uniform(20 * MB, 600 * MB), t.log_uniform(20, 1000)
    t.duration = max(2 * HOUR, 8 * tau)
    t.roomy_limit(height)
    t.add(total(anon, saturating(height, tau)), file)


def benign_startup(t):
    anon, file = t.body(base=t.log_uniform(10 * MB, 60 * MB))
    height = t.log_uniform(100 * MB, 2 * GB)
    t.roomy_limit(height)
    t.add(total(anon, ramp(height, t.uniform(3, 60))), file)


def benign_cache_fill(t):
    """Linear up to a bound, for at most 15 minutes."""
    anon, file = t.body()
    height = t.log_uniform(16 * MB, GB)
    t.roomy_limit(height)
    t.add(total(anon, delayed(ramp(height, t.log_uniform(20, 900)), t.uniform(0, HOUR))), file)


def benign_step_resize(t):
    anon, file = t.body()
    first, times = t.log_uniform(2 * MB, 20 * MB), t.rng.randint(3, 5)
    t.duration = 4 * HOUR
    t.roomy_limit(first * 2 ** times)
    t.add(total(anon, doubling(first, t.log_uniform(20, 300), times)), file)


def benign_sawtooth(t):
    anon, file = t.body()
    amplitude = t.log_uniform(10 * MB, 300 * MB)
    t.roomy_limit(amplitude)
    t.add(total(anon, sawtooth(amplitude, t.log_uniform(5, 400), t.uniform(0, 1))), file)


def benign_two_generations(t):
    """Small garbage collections on top of large ones; each frees everything."""
    anon, file = t.body()
    small, large = t.log_uniform(5 * MB, 60 * MB), t.log_uniform(30 * MB, 200 * MB)
    t.roomy_limit(small + large)
    young = t.log_uniform(4, 30)
    t.add(total(anon, sawtooth(small, young),
                sawtooth(large, young * t.uniform(8, 25), t.uniform(0, 1))), file)


def benign_diurnal(t):
    """A load that follows the time of day, for two days; growth stays below 10 KB/s."""
    anon, file = t.body()
    t.duration = 48 * HOUR
    amplitude = t.uniform(20, 100) * MB
    t.limit = int(t.base + amplitude * 2 * t.uniform(2, 5))
    t.add(total(anon, constant(amplitude), wave(amplitude, 24 * HOUR, t.uniform(0, 1))), file)


def benign_load_cycle(t):
    """A load that rises and falls within minutes."""
    anon, file = t.body()
    amplitude = t.log_uniform(10 * MB, 200 * MB)
    t.duration = 4 * HOUR
    t.roomy_limit(2 * amplitude)
    t.add(total(anon, constant(amplitude),
                wave(amplitude, t.log_uniform(120, 1500), t.uniform(0, 1))), file)


def benign_fragmentation(t):
    anon, file = t.body()
    height, tau = t.log_uniform(10 * MB, 100 * MB), t.log_uniform(30, 300)
    t.duration = 8 * HOUR
    t.roomy_limit(height)
    t.add(total(anon, logarithmic(height, tau, 4 * HOUR)), file)


def benign_batch(t):
    anon, file = t.body()
    height, period = t.log_uniform(30 * MB, 600 * MB), t.log_uniform(300, 3600)
    busy = period * t.uniform(0.1, 0.5)
    t.duration = 4 * HOUR
    t.roomy_limit(height)
    t.add(total(anon,
                pulse(height, period, busy, min(busy * t.uniform(0.05, 0.9), 800),
                      t.uniform(0, 1))), file)


def benign_input_ends(t):
    """Reads an input into memory, then keeps it, frees it or ends."""
    anon, file = t.body()
    length, rate = t.log_uniform(30, 900), t.log_uniform(30 * KB, 20 * MB)
    height = min(length * rate, 3 * GB)
    t.roomy_limit(height)
    start = t.uniform(0, 1200)
    after = t.rng.choice(["keeps", "ends", "frees"])
    shape = total(anon, delayed(ramp(height, length), start))
    if after == "ends":
        t.duration = start + length
    elif after == "frees":
        shape = total(shape, delayed(constant(-height), start + length + t.uniform(60, 600)))
    t.add(shape, file)


def benign_fork_pool(t):
    """A parent that stays, and children that grow and are replaced."""
    anon, file = t.body(base=t.log_uniform(20 * MB, 60 * MB))
    t.limit = 8 * GB
    t.duration = HOUR
    t.add(anon, file, comm="pool")
    life, pid = t.log_uniform(40, 400), 2000
    for slot in range(4):
        begin = t.uniform(0, 30)
        while begin < t.duration:
            stop = begin + life * t.uniform(0.7, 1.3)
            growth = t.log_uniform(5 * MB, 60 * MB)
            t.add(total(constant(t.base), delayed(ramp(growth, life), begin)), file,
                  pid=pid, comm="pool", start=begin, stop=stop)
            pid, begin = pid + 1, stop + 1


def benign_file_cache(t):
    """The twin of a leak: its pages belong to files, so they can be dropped."""
    anon, file = t.body()
    t.cadence = 5
    rate = t.log_uniform(10 * KB, 10 * MB)
    t.limit = int(t.base + t.log_uniform(200 * MB, 4 * GB))
    t.add(anon, total(file, delayed(linear(rate), t.uniform(0, 600))))


def benign_shared_buffers(t):
    """A database that uses its shared buffers for the first time."""
    anon, file = t.body()
    height = t.log_uniform(32 * MB, GB)
    t.roomy_limit(height)
    t.add(anon, file, shmem=saturating(height, t.log_uniform(20, 600)))


def benign_swap_out(t):
    """Swapped out while other processes need memory, and back when used: the sum is constant."""
    anon, file = t.body()
    t.limit = int(t.base * t.uniform(1.2, 3))
    out = total(delayed(ramp(t.base * t.uniform(0.2, 0.8), t.log_uniform(20, 900)),
                        t.uniform(60, 1800)))
    back = delayed(ramp(1, t.log_uniform(20, 900)), t.uniform(3600, 5400))
    swapped = lambda s: out(s) * (1 - back(s))
    t.add(lambda s: anon(s) - swapped(s), file, swap=swapped)


def benign_huge_pages(t):
    """Small pages are collapsed into huge pages: the RSS rises in steps of 2 MiB for a while."""
    anon, file = t.body()
    pages, period = t.rng.randint(5, 60), t.log_uniform(1, 10)
    t.roomy_limit(pages * 2 * MB)
    start = t.uniform(0, 1200)
    t.add(total(anon, delayed(lambda s: 2 * MB * min(math.floor(s / period), pages), start)), file)


def confusable_fill(t):
    """Linear for an hour, then constant. Until it ends, it cannot be told from a leak."""
    t.label = "confusable"
    anon, file = t.body()
    rate = t.log_uniform(30 * KB, 300 * KB)
    t.duration = 3 * HOUR
    t.limit = int(t.base + rate * HOUR / t.uniform(0.5, 0.9))
    t.add(total(anon, ramp(rate * HOUR, HOUR)), file)


def confusable_warmup(t):
    t.label = "confusable"
    anon, file = t.body()
    height, tau = t.log_uniform(200 * MB, GB), t.uniform(1, 3) * HOUR
    t.duration = 6 * tau
    t.limit = int(t.base + height * t.uniform(1.1, 1.5))
    t.add(total(anon, saturating(height, tau)), file)


def confusable_diurnal(t):
    """The first morning of a machine with a strong daily load."""
    t.label = "confusable"
    anon, file = t.body()
    amplitude = t.uniform(400, 1500) * MB
    t.duration = 48 * HOUR
    t.limit = int(t.base + amplitude * 2.5)
    t.add(total(anon, constant(amplitude), wave(amplitude, 24 * HOUR, t.uniform(0, 1))), file)


COUNT = {
    leak_linear: 30, leak_slow: 24, leak_stepwise: 20, leak_noisy: 20, leak_sawtooth: 20,
         leak_bursty: 16,
    leak_superlinear: 16, leak_quickened: 16, leak_shmem: 18, leak_swapped: 14, leak_after_warmup: 14,
    leak_after_startup: 14, leak_stacks: 10, leak_daily: 8,
    leak_creeping: 6, leak_one_of_pool: 10, reserved_growth: 6,
    benign_constant: 10, benign_idle: 6, benign_noise: 16, benign_warmup: 24, benign_startup: 16,
    benign_cache_fill: 24, benign_step_resize: 16, benign_sawtooth: 20, benign_two_generations: 14,
    benign_diurnal: 10, benign_load_cycle: 20, benign_fragmentation: 14, benign_batch: 20,
         benign_input_ends: 24,
    benign_fork_pool: 8, benign_file_cache: 16, benign_shared_buffers: 16, benign_swap_out: 14,
    benign_huge_pages: 12,
    confusable_fill: 6, confusable_warmup: 4, confusable_diurnal: 4,
}


def names():
    for make, count in COUNT.items():
        for index in range(count):
            yield f"{make.__name__.replace('_', '-')}-{index:02d}", make


def write_rows(t, out):
    """Returns the time at which the limit was reached, or None, and that of the last row."""
    out.write(HEADER + "\n")
    step, before, last = 0, 0, 0
    while step * t.cadence <= t.duration:
        now = step * t.cadence
        held = 0
        for p in t.processes:
            if p.start <= now < p.stop:
                values = p.sample(now, t.limit)
                if p is t.processes[0]:
                    held = values[0] + values[2]
                out.write(f"{now},{p.pid},{p.comm},{','.join(map(str, values))},{t.limit}\n")
        last = now
        if t.label == "leak" and t.limit and held >= t.limit - 1 * MB:
            headroom = max(0, t.limit - 1 * MB - before)
            return now - t.cadence + t.cadence * headroom / max(held - before, 1), last
        before, step = held, step + 1
    return None, last


def leaked_line(t, end):
    """The leaked bytes as 100 points of time and bytes; empty if nothing leaks."""
    leaked = t.processes[0].leaked
    if not leaked:
        return []
    points = [t.onset + (end - t.onset) * n / 99 for n in range(100)]
    return [[round(at, 3), int(leaked(at) * 1024)] for at in points]


def generate(name, make, folder, seed):
    t = Trace(name, seed)
    make(t)
    path = os.path.join(folder, name)
    with open(path + ".csv", "w", encoding="ascii") as out:
        oom, last = write_rows(t, out)
    truth = {
        "schema": 1, "name": name, "class": t.cls, "kind": "synthetic", "label": t.label,
        "leaker_pid": t.processes[0].pid if t.onset is not None else None,
        "onset_s": t.onset, "rate_bytes_per_second": t.rate and round(t.rate * 1024),
        "oom_s": oom and round(oom, 3), "end_s": last, "cadence_s": t.cadence, "limit_kb": t.limit,
        "leaked_bytes": leaked_line(t, oom or last),
    }
    with open(path + ".json", "w", encoding="ascii") as out:
        json.dump(truth, out)
        out.write("\n")


def generate_all(folder, seed="", patterns=("*",)):
    os.makedirs(folder, exist_ok=True)
    with concurrent.futures.ProcessPoolExecutor() as pool:
        jobs = [pool.submit(generate, name, make, folder, seed) for name, make in names()
                if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
        for job in jobs:
            job.result()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    generate_all(sys.argv[1], "".join(sys.argv[2:3]), sys.argv[3:] or ["*"])


if __name__ == "__main__":
    main()
