# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""memory.py KIND RATE_KB AFTER_S: ways of a Python program to hold memory."""
import collections
import functools
import mmap
import sys
import time

kind, rate, after = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
start = time.monotonic()
kept = {"list": [], "deque": collections.deque(maxlen=20000), "churn": [], "shm": []}.get(kind)


def record(n):
    return {"id": n, "payload": "x" * 500 + str(n)}


@functools.lru_cache(maxsize=20000)
def cached(n):
    return record(n)


done = 0
while True:
    due = (time.monotonic() - start - after) * rate * 1024
    while done + 860 <= due:        # a record with its dictionary, as Python 3.11 keeps it
        done += 860
        if kind == "lru":
            cached(done)
        elif kind == "shm":
            if done % 65536 < 860:
                area = mmap.mmap(-1, 65536)
                area.write(b"x" * 65536)
                kept.append(area)
        else:
            kept.append(record(done))
            if kind == "churn" and len(kept) > 30000:
                kept.clear()
    time.sleep(0.05)
