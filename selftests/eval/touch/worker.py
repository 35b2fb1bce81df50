# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""worker.py KIND RATE_KB CAP_KB SIZE PERCENT AFTER_S: worker.c in Python, with dictionaries as
blocks. Besides its kinds leak, cache, load, wave, fragment and pool:

    cycles     objects that refer to themselves, which only the collector frees
    sqlite     a data base in memory: rows up to CAP_KB, of which the oldest makes room
    sqlleak    the same without a bound
"""
import collections
import math
import os
import random
import sqlite3
import sys
import time

KIND = sys.argv[1]
RATE, CAP = float(sys.argv[2]) * 1024, float(sys.argv[3]) * 1024
SIZE, PERCENT, AFTER = int(sys.argv[4]), float(sys.argv[5]), float(sys.argv[6])
READ_S, TTL_S = 90, 300
rng = random.Random(os.getpid())
start = time.monotonic()
blocks = collections.deque()
state = {"held": 0.0, "owed": 0.0, "cursor": 0, "number": 0}


def make(scale=1.0):
    size = int(SIZE * scale * (0.5 + rng.random()))
    state["number"] += 1
    return {"born": time.monotonic(), "again": rng.random() * 100 < PERCENT,
            "cost": size + 330, "id": "n%d" % state["number"], "data": b"x" * size}


def push(block):
    blocks.append(block)
    state["held"] += block["cost"]


def pop():
    state["held"] -= blocks.popleft()["cost"]


def gain(due, bound=None):
    while state["owed"] < due:
        block = make()
        state["owed"] += block["cost"]
        push(block)
        while bound and state["held"] > bound:
            pop()


def read_some(seconds):
    """A deque is slow in its middle, so it is rotated."""
    if KIND not in ("cache", "wave", "load"):
        return
    for _ in range(min(len(blocks), int(len(blocks) * seconds / READ_S) + 1)):
        if KIND == "load":
            blocks.rotate(-1)
            block = blocks[0]
        else:
            state["cursor"] = (state["cursor"] + 1) % len(blocks)
            block = blocks[state["cursor"]]
        if block["again"]:
            sum(block["data"][::512])


def tick_wave(now, seconds):
    share = (1 - math.cos((now - start) * 2 * math.pi / (CAP / 1024))) / 2
    state["owed"] = 0
    gain(RATE * seconds * share)
    while blocks and now - blocks[0]["born"] > TTL_S:
        pop()


def tick_fragment(now, due):
    scale = (0.4, 1, 0.6, 1.5, 0.8)[int((now - start) / 400) % 5]
    while state["owed"] < due:
        block = make(scale)
        state["owed"] += block["cost"]
        if len(blocks) * (SIZE + 330) < CAP:
            push(block)
        else:
            blocks[rng.randrange(len(blocks))] = block


def tick_cycles(due):
    while state["owed"] < due:
        block = make()
        block["self"] = block
        state["owed"] += block["cost"]


def live_as_worker(bound):
    begin = time.monotonic()
    blocks.clear()
    state.update(held=0, owed=0)
    while state["held"] < bound and os.getppid() > 1:
        gain((time.monotonic() - begin) * RATE)
        time.sleep(1)
    os._exit(0)


def tick_pool(alive):
    for pid in list(alive):
        if os.waitpid(pid, os.WNOHANG)[0]:
            alive.remove(pid)
    while len(alive) < 3:
        pid = os.fork()
        if pid == 0:
            live_as_worker(CAP * (0.6 + 0.15 * len(alive)))
        alive.add(pid)


def tick_base(base, due):
    while state["owed"] < due:
        state["number"] += 1
        size = int(SIZE * (0.5 + rng.random()))
        base.execute("INSERT INTO t VALUES(?, ?)", (state["number"], b"x" * size))
        state["owed"] += size + 20
        state["held"] += size + 20
        if KIND == "sqlite" and state["held"] > CAP:
            state["cursor"] += 1
            base.execute("DELETE FROM t WHERE k = ?", (state["cursor"],))
            state["held"] -= SIZE + 20
    rows = state["number"] - state["cursor"]
    for _ in range(int(rows * PERCENT / 100 / READ_S)):
        key = state["cursor"] + rng.randint(1, rows)
        base.execute("SELECT v FROM t WHERE k = ?", (key,)).fetchall()


def open_base():
    base = sqlite3.connect(":memory:", isolation_level=None)
    base.execute("CREATE TABLE t(k INTEGER PRIMARY KEY, v BLOB)")
    return base


def main():
    base = open_base() if KIND.startswith("sql") else None
    alive = set()
    before = start
    while True:
        now = time.monotonic()
        due = max(0, now - start - AFTER) * RATE
        if base:
            tick_base(base, due)
        elif KIND == "wave":
            tick_wave(now, now - before)
        elif KIND == "fragment":
            tick_fragment(now, due)
        elif KIND == "cycles":
            tick_cycles(due)
        elif KIND == "pool":
            tick_pool(alive)
        elif KIND == "load":
            gain(min(due, CAP))
        else:
            gain(due, CAP if KIND == "cache" else None)
        read_some(now - before)
        before = now
        time.sleep(1)


main()
