# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Work for servers that follows the wave of a day, once a second, for record-days.py.

Each driver serves one program, in a thread of its own, so that a slow one delays no other.
"""
import math
import os
import random
import socket
import subprocess
import time

# The humps of a day: (hour, width in hours, height), on a floor.
SHAPES = {"office": (0.25, ((10, 2.2, 1.0), (15, 2.4, 0.9))),
          "evening": (0.35, ((12.5, 2.5, 0.6), (20.5, 2.2, 1.0))),
          "even": (0.45, ((14, 5, 1.0),))}


class Wave:
    """The load at an hour, 1 on average over a day, with noise; no two days are the same."""

    def __init__(self, shape, phase, seed):
        self.rng = random.Random(seed)
        self.shape, self.phase = SHAPES[shape], phase
        self.mean = sum(self.plain(h / 10) for h in range(240)) / 240
        self.days = [self.rng.gauss(1, 0.03) for _ in range(30)]
        self.noise = 0.0

    def plain(self, hour):
        floor, humps = self.shape
        return floor + sum(height * math.exp(-(((hour - at + 12) % 24 - 12) / width) ** 2 / 2)
                           for at, width, height in humps)

    def at(self, hours):
        """Must be called for ascending times: the noise is autoregressive."""
        self.noise = 0.97 * self.noise + self.rng.gauss(0, 0.02)
        day = self.days[int((hours + self.phase) // 24)]
        return self.plain((hours + self.phase) % 24) / self.mean * day * (1 + self.noise)


def letters(rng, size):
    return LETTERS[(at := rng.randrange(len(LETTERS) - size)):at + size]


LETTERS = bytes(random.Random(1).choices(b"abcdefghijklmnopqrstuvwxyz0123456789", k=1 << 18))


class Lines:
    """A program that reads the number of requests of each second."""

    def __init__(self, run):
        self.run = run

    def tick(self, count, _):
        self.run.process.stdin.write(b"%d\n" % count)
        self.run.process.stdin.flush()


class Socket:
    """A server at a local socket. Replies are thrown away."""

    def __init__(self, run):
        self.run = run
        self.peer = self.connect()
        self.rng = random.Random(run.name)

    def connect(self):
        for _ in range(300):
            try:
                peer = socket.socket(socket.AF_UNIX)
                peer.connect(self.run.work + "/socket")
                peer.settimeout(5)
                return peer
            except OSError:
                time.sleep(0.2)
        raise OSError(f"{self.run.name}: no server listens")

    @staticmethod
    def drain(peer):
        peer.settimeout(0)
        try:
            while peer.recv(1 << 20):
                pass
        except BlockingIOError:
            peer.settimeout(5)
            return
        raise OSError("closed by the server")

    def tick(self, count, load):
        parts = []
        for _ in range(count):
            parts.append(self.request())
            if len(parts) == 8:
                self.peer.sendall(b"".join(parts))
                parts = []
                self.drain(self.peer)
        self.peer.sendall(b"".join(parts))
        self.drain(self.peer)


class Redis(Socket):
    """sessions TTL BYTES, cache KEYS BYTES, churn KEYS BYTES, or hash KEYS BYTES; a leak are
    keys that never expire."""

    def __init__(self, run):
        super().__init__(run)
        self.kind, self.first, self.size = run.work_words[0], *map(int, run.work_words[1:3])

    @staticmethod
    def words(*words):
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)

    def request(self):
        self.run.number += 1
        value = letters(self.rng, self.rng.randint(self.size // 4, self.size * 7 // 4))
        if self.kind == "sessions":
            return self.words(b"SET", b"s:%d" % self.run.number, value, b"EX", b"%d" % self.first)
        if self.kind == "churn":
            scale = (1, 2, 4, 3)[self.run.number // (2 * self.first) % 4]
            key = b"k:%d" % self.rng.randrange(self.first)
            return self.words(b"SET", key, value[:len(value) * scale // 4])
        if self.kind == "hash":
            key = b"h:%d" % self.rng.randrange(50)
            field = b"%d" % self.rng.randrange(self.first // 50)
            return self.words(b"HSET", key, field, value)
        if self.rng.random() < 0.6:
            key = int(self.rng.paretovariate(0.4)) % self.first
            return self.words(b"GET", b"c:%d" % key)
        return self.words(b"SET", b"c:%d" % self.rng.randrange(self.first), value)

    def tick(self, count, load):
        super().tick(count, load)
        due = self.run.owed(load)
        while self.run.leaked < due:
            self.run.number += 1
            self.peer.sendall(self.words(b"SET", b"old:%d" % self.run.number, letters(self.rng, 900)))
            self.run.leaked += 1120
        self.drain(self.peer)


class Memcached(Socket):
    """cache KEYS BYTES, or sessions TTL BYTES."""

    def __init__(self, run):
        super().__init__(run)
        self.kind, self.first, self.size = run.work_words[0], *map(int, run.work_words[1:3])

    def request(self):
        self.run.number += 1
        value = letters(self.rng, self.rng.randint(self.size // 4, self.size * 7 // 4))
        if self.kind == "sessions":
            return b"set %d 0 %d %d\r\n%s\r\n" % (self.run.number, self.first, len(value), value)
        if self.rng.random() < 0.6:
            return b"get %d\r\n" % (int(self.rng.paretovariate(0.4)) % self.first)
        return b"set %d 0 0 %d\r\n%s\r\n" % (self.rng.randrange(self.first), len(value), value)


class Http(Socket):
    """page: requests over one connection; cached: each of a new address; clients COUNT: over as
    many connections as there is load, by clients that are slow to send the end of a request."""

    def __init__(self, run):
        super().__init__(run)
        self.kind = run.work_words[0] if run.work_words else "page"
        self.peers = [self.peer]
        if self.kind == "clients":
            self.peer.sendall(self.request()[:-4])

    def request(self):
        self.run.number += 1
        path = b"/cache/%d" % self.run.number if self.kind == "cached" else b"/"
        return b"GET %s HTTP/1.1\r\nHost: eval\r\nX-Pad: %s\r\n\r\n" % (
            path, letters(self.rng, self.rng.randint(20, 1500)))

    def tick(self, count, load):
        if self.kind != "clients":
            super().tick(count, load)
            return
        wanted = max(1, int(int(self.run.work_words[1]) * load))
        while len(self.peers) < wanted:
            self.peers.append(self.connect())
            self.peers[-1].sendall(self.request()[:-4])
        while len(self.peers) > wanted:
            self.peers.pop(self.rng.randrange(1, len(self.peers))).close()
        for _ in range(count):
            peer = self.rng.choice(self.peers)
            peer.sendall(b"\r\n\r\n" + self.request()[:-4])
        for peer in self.peers:
            self.drain(peer)


class Postgres:
    """LOW HIGH ROWS: as many connections as there is load, and a table with so many rows. A leak
    are prepared statements of a connection that stays."""

    def __init__(self, run):
        self.run = run
        self.low, self.high, self.rows = map(int, run.work_words[:3])
        self.rng = random.Random(run.name)
        self.psql = max(os.path.join(folder, "psql") for folder in
                        (f"/usr/lib/postgresql/{v}/bin" for v in os.listdir("/usr/lib/postgresql"))
                        if os.path.exists(os.path.join(folder, "psql")))
        for _ in range(120):
            if os.path.exists(run.work + "/.s.PGSQL.5432"):
                break
            time.sleep(0.5)
        time.sleep(2)
        subprocess.run(self.command() + ["-c", f"CREATE TABLE t AS SELECT k, repeat('x', 100) AS v "
                                         f"FROM generate_series(0, {self.rows}) k",
                                         "-c", "CREATE INDEX ON t(k)"],
                       check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.peers = [self.connect()]

    def command(self):
        return [self.psql, "-q", "-X", "-h", self.run.work, "-U", "eval", "postgres"]

    def connect(self):
        return subprocess.Popen(self.command(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def send(self, which, text):
        self.peers[which].stdin.write(text.encode() + b"\n")
        self.peers[which].stdin.flush()

    def tick(self, count, load):
        wanted = min(40, max(1, round(self.low + (self.high - self.low) * load / 2.5)))
        if len(self.peers) < wanted:
            self.peers.append(self.connect())
        elif len(self.peers) > wanted:
            peer = self.peers.pop()
            peer.stdin.close()
            peer.wait(5)
        for _ in range(count):
            key = self.rng.randrange(self.rows)
            self.send(self.rng.randrange(len(self.peers)),
                      f"UPDATE t SET v = md5(random()::text) WHERE k = {key}; SELECT v, count(*) "
                      f"FROM t WHERE k BETWEEN {key} AND {key + 300} GROUP BY v ORDER BY v LIMIT 9;")
        due = self.run.owed(load)
        while self.run.leaked < due:
            self.run.number += 1
            condition = " OR ".join(f"k = {self.rng.randrange(self.rows)}" for _ in range(20))
            self.send(0, f"PREPARE p{self.run.number} AS SELECT v FROM t WHERE {condition};")
            self.run.leaked += 29000


DRIVERS = {"lines": Lines, "redis": Redis, "memcached": Memcached, "http": Http,
           "postgres": Postgres}


def drive(run, clock, hours_per_second, stop):
    """Serves a run until the event stop is set or the program is gone. For a thread."""
    wave = Wave(run.shape, run.phase, run.name)
    driver, due = None, 0.0
    stop.wait(random.Random(run.name).random())
    while not stop.is_set() and run.process.poll() is None:
        begin = time.monotonic()
        load = wave.at((begin - clock) * hours_per_second)
        try:
            driver = driver or DRIVERS[run.driver](run)
            due += run.rate * load
            count, due = int(due), due - int(due)
            driver.tick(count, load)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            print(f"{time.monotonic() - clock:.0f} s: {run.name}: {error}", flush=True)
            driver = None
            stop.wait(2)
        stop.wait(max(0.05, begin + 1 - time.monotonic()))
