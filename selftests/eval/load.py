#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Sends work to a server or a filter at a constant rate.

    load.py redis SOCKET RATE KEYS      SET and GET, values of 100 to 2000 bytes
    load.py memcached SOCKET RATE KEYS  set and get, values of 100 to 2000 bytes
    load.py http SOCKET RATE            GET / over one connection
    load.py lines FIFO RATE [SECONDS]   lines of 200 random letters
    load.py json FIFO RATE [SECONDS]    JSON objects, one per line
    load.py sql FIFO RATE KEYS          inserts and deletes that keep KEYS rows

RATE is per second. Ends after SECONDS, or when the other side ends.
"""
import json
import random
import socket
import sys
import time

TICK_S = 0.05
rng = random.Random(1)


def letters(low, high):
    return bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.randint(low, high)))


def redis(keys):
    key = b"key:%d" % rng.randrange(keys)
    words = [b"SET", key, letters(100, 2000)] if rng.random() < 0.7 else [b"GET", key]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def memcached(keys):
    key = b"key:%d" % rng.randrange(keys)
    if rng.random() < 0.7:
        value = letters(100, 2000)
        return b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value)
    return b"get %s\r\n" % key


def http(_):
    return b"GET / HTTP/1.1\r\nHost: eval\r\nX-Pad: %s\r\n\r\n" % letters(20, 400)


def lines(_):
    return letters(200, 200) + b"\n"


def objects(_):
    return json.dumps({"id": rng.randrange(1 << 30), "name": letters(5, 40).decode(),
                       "list": [rng.random() for _ in range(rng.randrange(20))]}).encode() + b"\n"


row = [0]


def sql(keys):
    row[0] += 1
    return b"INSERT OR REPLACE INTO t VALUES(%d, '%s'); DELETE FROM t WHERE k = %d;\n" % (
        row[0], letters(50, 500), row[0] - keys)


def connect(path):
    for _ in range(300):
        try:
            peer = socket.socket(socket.AF_UNIX)
            peer.connect(path)
            return peer
        except OSError:
            time.sleep(0.1)
    sys.exit(f"load.py: no server listens on {path}")


def over_socket(path, rate, make, keys):
    peer = connect(path)
    peer.settimeout(5)
    due = 0.0
    while True:
        due += rate * TICK_S
        count, due = int(due), due - int(due)
        peer.sendall(b"".join(make(keys) for _ in range(count)))
        time.sleep(TICK_S / 2)
        if count and not peer.recv(1 << 22):
            return
        time.sleep(TICK_S / 2)


def into_fifo(path, rate, make, keys):
    end = time.monotonic() + keys if keys and make is not sql else float("inf")
    with open(path, "wb", buffering=0) as out:
        if make is sql:
            out.write(b"CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT);\n")
        due = 0.0
        while time.monotonic() < end:
            due += rate * TICK_S
            count, due = int(due), due - int(due)
            out.write(b"".join(make(keys) for _ in range(count)))
            time.sleep(TICK_S)


KINDS = {"redis": (over_socket, redis), "memcached": (over_socket, memcached),
         "http": (over_socket, http),
         "lines": (into_fifo, lines), "json": (into_fifo, objects), "sql": (into_fifo, sql)}


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    way, make = KINDS[sys.argv[1]]
    try:
        way(sys.argv[2], float(sys.argv[3]), make, int(sys.argv[4]) if len(sys.argv) > 4 else 0)
    except OSError:
        pass


if __name__ == "__main__":
    main()
