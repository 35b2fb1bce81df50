# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""A service in Python. Each line of its input is the number of requests of one second.

    server.py sessions TTL_S BYTES     each request makes a session that lives for TTL_S
    server.py lru ENTRIES BYTES        a cache with a bound; half of the requests look up
    server.py fragment ENTRIES BYTES   objects of changing sizes replace each other
    server.py dataset MIB SECONDS      loads so much in this time, then has sessions of a minute
    server.py sqlite ROWS BYTES        a data base on disk, with 8 MiB of cache, that keeps ROWS
    server.py pool WORKERS REQUESTS    forked workers, each replaced after so many requests

LEAK_KB_S, LEAK_AFTER_S and LEAK_BY ("time" or "load", with LOAD_MEAN requests a second) make it
leak. A pool leaks the files in a tmpfs that each worker leaves behind. INJECTED=1: a preloaded
library leaks, not this program.
"""
import collections
import os
import random
import signal
import sqlite3
import sys
import time

KIND, FIRST, SECOND = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
RATE = 0 if os.environ.get("INJECTED") else float(os.environ.get("LEAK_KB_S", 0)) * 1024
AFTER = float(os.environ.get("LEAK_AFTER_S", 0))
BY_LOAD = os.environ.get("LEAK_BY") == "load"
MEAN = float(os.environ.get("LOAD_MEAN", 1))
rng = random.Random(KIND)
start = time.monotonic()
leaked = []
sessions = collections.OrderedDict()
number = 0


class Leak:
    """How many bytes are to be leaked by now."""

    def __init__(self):
        self.due = 0.0
        self.before = AFTER

    def owed(self, requests):
        now = time.monotonic() - start
        if RATE and now > AFTER:
            self.due += RATE * requests / MEAN if BY_LOAD else RATE * (now - self.before)
            self.before = now
        return self.due


leak = Leak()


def session(size):
    half = size // 2
    return {"user": rng.randrange(1 << 30), "basket": [str(number) * 20 + str(i) for i in range(half // 200)],
            "page": os.urandom(half // 2).hex()}


def serve_sessions(requests, ttl, size):
    global number
    now = time.monotonic()
    for _ in range(requests):
        number += 1
        sessions[number] = (now + ttl, session(rng.randint(size // 4, size * 7 // 4)))
    while sessions and next(iter(sessions.values()))[0] < now:
        sessions.popitem(last=False)


def serve_lru(requests, entries, size):
    for _ in range(requests):
        key = int(rng.paretovariate(0.6))
        if key in sessions:
            sessions.move_to_end(key)
        else:
            sessions[key] = session(size)
            if len(sessions) > entries:
                sessions.popitem(last=False)


def serve_fragment(requests, entries, size):
    global number
    for _ in range(requests):
        number += 1
        scale = (0.3, 1, 0.6, 1.4, 0.8)[number // (3 * entries) % 5]
        sessions[rng.randrange(entries)] = b"x" * int(rng.uniform(0.2, 1.8) * size * scale)


def serve_dataset(requests, mib, seconds):
    share = min(1, (time.monotonic() - start) / max(1, seconds))
    while len(leaked) < mib * share:
        leaked.append([os.urandom(1000) for _ in range(1010)])
    serve_sessions(requests, 60, 2000)


def open_base():
    base = sqlite3.connect("base", isolation_level=None)
    for word in ("journal_mode=off", "synchronous=off", "cache_size=-8192"):
        base.execute("PRAGMA " + word)
    base.execute("CREATE TABLE IF NOT EXISTS t(k INTEGER PRIMARY KEY, v TEXT)")
    return base


def serve_base(base, requests, rows, size):
    global number
    for _ in range(requests):
        number += 1
        base.execute("INSERT OR REPLACE INTO t VALUES(?, ?)",
                     (number % rows, "x" * rng.randint(size // 2, size)))
        base.execute("SELECT v FROM t WHERE k = ?", (rng.randrange(rows),)).fetchall()
        for row in base.execute("SELECT k, v FROM t WHERE k > ? ORDER BY v LIMIT 50",
                                (rng.randrange(rows),)):
            row[1].upper()


def worker(pipe, bound):
    """Keeps a little of each request, as programs do for which workers are replaced."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    done = 0
    with os.fdopen(pipe) as lines:
        for line in lines:
            for _ in range(int(line)):
                done += 1
                leaked.append(session(20000))
                session(20000)
            if done >= bound:
                return


class Pool:
    def __init__(self, count, bound):
        self.bound = bound
        self.application = [session(5000) for _ in range(1500)]
        self.workers = {}
        self.files = 0
        self.written = 0.0
        for _ in range(count):
            self.fork()

    def fork(self):
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(into)
            for other in self.workers.values():
                os.close(other)
            worker(out, int(self.bound * rng.uniform(0.8, 1.2)))
            os._exit(0)
        os.close(out)
        self.workers[pid] = into

    def leave_file(self):
        """What a worker leaves behind: the files that it would have had to remove."""
        size = int(leak.owed(0) - self.written)
        if size > 0:
            self.files += 1
            with open(f"{os.environ['SHM']}/{self.files}", "wb") as file:
                file.write(b"x" * size)
            self.written += size

    def serve(self, requests):
        leak.owed(requests)
        for pid, pipe in list(self.workers.items()):
            share = requests // len(self.workers) + (rng.random() < 0.5)
            try:
                os.write(pipe, b"%d\n" % share)
            except BrokenPipeError:
                os.close(pipe)
                del self.workers[pid]
                os.waitpid(pid, 0)
                self.leave_file()
                self.fork()


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    served = {"sessions": serve_sessions, "lru": serve_lru, "fragment": serve_fragment,
              "dataset": serve_dataset}
    base = open_base() if KIND == "sqlite" else None
    pool = Pool(FIRST, SECOND) if KIND == "pool" else None
    kept = 0.0
    for line in sys.stdin:
        requests = int(line)
        if pool:
            pool.serve(requests)
            continue
        if base:
            serve_base(base, requests, FIRST, SECOND)
        else:
            served[KIND](requests, FIRST, SECOND)
        owed = leak.owed(requests)
        while kept < owed:
            leaked.append(os.urandom(960))
            kept += 1001 + 8


main()
