# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""What a synthetic trace consists of, and how its parameters are drawn."""
import math
import random

from shapes import GB, KB, MB, PAGE, ar1, constant, ramp, total

HOUR = 3600
NAMES = ["api-server", "worker", "indexer", "gatewayd", "python3", "java", "node", "mysqld",
         "scheduler", "etl"]


class Process:
    """One process of a trace. Its parts are shapes in KiB. `leaked` is the part that leaks;
    `into` says what it leaks into: anon, shmem, swapped or reserved."""

    def __init__(self, anon, file, shmem=None, swap=None, reserved=None, leaked=None, into="anon",
                 pid=0, comm="", start=0, stop=math.inf):
        self.anon, self.file = anon, file
        self.shmem = shmem or constant(0)
        self.swap = swap or constant(0)
        self.reserved = reserved or constant(0)
        self.leaked, self.into = leaked, into
        self.pid, self.comm, self.start, self.stop = pid, comm, start, stop
        self.vsz_peak = 0

    def sample(self, t, limit):
        anon, shmem, swap = self.anon(t), self.shmem(t), self.swap(t)
        reserved = self.reserved(t)
        leaked = self.leaked(t) if self.leaked else 0
        if self.into == "shmem":
            shmem += leaked
        elif self.into == "reserved":
            reserved += leaked
        else:
            anon += leaked
        if self.into == "swapped":          # resident up to a level, the rest is swapped out
            out = max(0, anon - self.resident)
            anon, swap = anon - out, swap + out
        file = self.file(t)
        if limit:                           # reclaim drops file pages first
            file = max(1 * MB, min(file, limit - anon - shmem))
        anon, file, shmem, swap = (max(0, int(v)) // PAGE * PAGE
                                   for v in (anon, file, shmem, swap))
        # freed memory keeps its address space
        self.vsz_peak = max(self.vsz_peak, anon + file + shmem + swap)
        return anon, file, shmem, swap, self.vsz_peak + int(reserved) // PAGE * PAGE


class Trace:
    """The parameters of one trace, set by the function of its class below."""

    def __init__(self, name, seed):
        self.name = name
        self.cls = name.rsplit("-", 1)[0]
        self.index = int(name.rsplit("-", 1)[1])
        self.rng = random.Random(name + seed)
        self.label = "benign"
        self.cadence = 5
        self.duration = 2 * HOUR
        self.limit = 0
        self.onset = None
        self.rate = None            # KiB/s, mean
        self.processes = []

    def log_uniform(self, low, high):
        return math.exp(self.rng.uniform(math.log(low), math.log(high)))

    def uniform(self, low, high):
        return self.rng.uniform(low, high)

    def body(self, noise=None, base=None):
        """Shapes that each process has: a level with small noise, and its libraries."""
        base = base or self.log_uniform(20 * MB, 800 * MB)
        sd = noise if noise is not None else min(base * self.log_uniform(0.0002, 0.004), 1 * MB)
        self.base = base
        shape = total(constant(base), ar1(self.rng, sd, self.uniform(20, 300), self.cadence))
        libraries = self.log_uniform(4 * MB, 60 * MB)
        file = total(constant(libraries), ramp(self.uniform(0, 2 * MB), self.uniform(5, 60)))
        return shape, file

    def add(self, anon, file, **more):
        first = len(self.processes)
        more.setdefault("pid", 1000 + first)
        more.setdefault("comm", self.rng.choice(NAMES))
        more.setdefault("reserved", constant(self.log_uniform(10 * MB, 30 * GB)))
        process = Process(anon, file, **more)
        self.processes.append(process)
        return process

    def spread_rate(self, low, high, count):
        """A rate such that those of a class cover the decades evenly."""
        step = (self.index * 0.618034 + 0.5 * self.uniform(0, 1) / count) % 1
        return low * (high / low) ** step

    # --- leaks ---

    def leak(self, low=10 * KB, high=100 * MB, count=12, longest=5 * HOUR):
        """Chooses the rate, the onset, and the time from there to the limit."""
        self.label = "leak"
        self.rate = self.spread_rate(low, high, count)
        self.cadence = 1 if self.rate >= 1 * MB else 5
        if self.rate < 100 * KB:
            left = self.log_uniform(2400, longest)
        elif self.rate < 1 * MB:
            left = self.log_uniform(600, 2 * HOUR)
        elif self.rate < 10 * MB:
            left = self.log_uniform(120, 1200)
        else:
            left = self.log_uniform(15, 150)
        self.left = left
        self.begin(0 if self.index % 3 == 0 else self.uniform(120, 1500))

    def begin(self, onset):
        self.onset = round(onset)
        self.duration = self.onset + self.left * 1.5

    def limit_above(self, extra=0):
        """Sets the limit such that the leak meets it `left` seconds after its onset. One leak in
        six has no limit, and ends without a kill."""
        limit = int(self.base + extra + self.rate * self.left) // PAGE * PAGE
        self.limit = 0 if self.index % 6 == 5 else limit
        if not self.limit:
            self.duration = self.onset + max(self.left, 2700)

    # --- benign runs: growth ends before half of the headroom is used ---

    def roomy_limit(self, growth):
        headroom = growth / self.uniform(0.2, 0.4) + 8 * MB
        self.limit = 0 if self.index % 4 == 3 else int(self.base + headroom) // PAGE * PAGE
