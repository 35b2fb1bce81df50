# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Work for servers, once a second, for record-touch.py. The words of a run are

    redis KIND RATE_KB CAP_KB SIZE PERCENT AFTER_S      KIND: keys, list, cache, sessions, hash
    memcached KIND RATE_KB CAP_KB SIZE PERCENT AFTER_S  KIND: cache
    lines                                               a line a second
"""
import random
import select
import socket
import time

LETTERS = bytes(random.Random(1).choices(b"abcdefghijklmnopqrstuvwxyz0123456789", k=1 << 17))
READ_S = 90


class Lines:
    def __init__(self, run):
        self.run = run

    def tick(self):
        self.run.process.stdin.write(b"\n")
        self.run.process.stdin.flush()


class Server:
    """Gains RATE_KB a second; PERCENT of what is held is read again, each once in READ_S."""

    def __init__(self, run):
        _, self.kind, *words = run.work.split()
        rate, cap, self.size, self.percent, self.after = map(float, words)
        self.rate, self.cap = rate * 1024, cap * 1024
        self.rng = random.Random(run.name)
        self.start = time.monotonic()
        self.owed = self.debt = 0.0
        self.number = 0
        for _ in range(100):
            try:
                self.peer = socket.socket(socket.AF_UNIX)
                self.peer.connect(run.folder_of_work + "/socket")
                break
            except OSError:
                time.sleep(0.1)
        self.peer.settimeout(0)

    def value(self):
        size = int(self.size * (0.5 + self.rng.random()))
        at = self.rng.randrange(len(LETTERS) - size)
        return LETTERS[at:at + size]

    def held(self):
        return max(1, min(self.number, int(self.cap / (self.size + 80)) if self.cap else self.number))

    def send(self, parts):
        """Throws replies away meanwhile: a server that cannot reply does not read."""
        left = memoryview(b"".join(parts))
        while left:
            readable, writable, _ = select.select([self.peer], [self.peer], [], 5)
            if readable and not self.peer.recv(1 << 20):
                raise OSError("closed by the server")
            if writable:
                left = left[self.peer.send(left):]
            if not readable and not writable:
                raise OSError("the server does not read")

    def tick(self):
        due = (time.monotonic() - self.start - self.after) * self.rate
        parts = []
        while self.owed < due:
            value = self.value()
            self.number += 1
            self.owed += len(value) + 80
            parts.append(self.write(self.number, value))
        self.debt += self.held() * self.percent / 100 / READ_S
        while self.debt >= 1 and self.number:
            self.debt -= 1
            parts.append(self.read(self.number - int(self.rng.random() * self.held())))
        self.send(parts)


class Redis(Server):
    @staticmethod
    def words(*words):
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)

    def write(self, number, value):
        if self.kind == "list":
            return self.words(b"RPUSH", b"list:%d" % (number % 4), value)
        if self.kind == "sessions":
            return self.words(b"SET", b"k:%d" % number, value, b"EX", b"240")
        if self.kind == "hash":
            slot = number % self.held() if self.number * (self.size + 80) > self.cap else number
            return self.words(b"HSET", b"h:%d" % (slot % 16), b"%d" % slot, value)
        return self.words(b"SET", b"k:%d" % number, value)

    def read(self, number):
        if self.kind == "hash":
            return self.words(b"HGET", b"h:%d" % (number % 16), b"%d" % number)
        return self.words(b"GET", b"k:%d" % number)


class Memcached(Server):
    def write(self, number, value):
        return b"set k:%d 0 0 %d\r\n%s\r\n" % (number, len(value), value)

    def read(self, number):
        return b"get k:%d\r\n" % number


class Work:
    """The load of all runs, given by one thread."""

    def __init__(self, runs):
        self.peers = []
        for run in runs:
            kind = run.work.split()[0]
            try:
                self.peers.append((run, {"lines": Lines, "redis": Redis,
                                         "memcached": Memcached}[kind](run)))
            except OSError as error:
                print(f"{run.name}: {error}", flush=True)

    def tick(self):
        for run, peer in list(self.peers):
            try:
                peer.tick()
            except OSError as error:
                print(f"{run.name}: no load any more: {error}", flush=True)
                self.peers.remove((run, peer))
