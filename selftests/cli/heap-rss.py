#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""heap report --rss on programs of which it is known why they use memory (rss-answers.c).

	heap-rss.py [KIND...]

The oracle is independent: the programs count what they have requested and not freed, smaps is
read here, and malloc_trim() is called at the end and its effect measured. Speaks TAP. All programs
run at the same time, and each is judged as soon as the figures in its profile are younger than
what it has done.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from tap import Tap  # noqa: E402

TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(TOP, os.environ.get("BUILD", "build"))
CTL = os.path.join(BUILD, "cli/memwatchctl")
LIBRARY = os.path.join(BUILD, "heap/libmemwatch-heap.so")
SCHEMA = os.path.join(TOP, "cli/tests/schema.py")
PROGRAM = os.path.join(BUILD, "selftests/rss-answers")
MIB = 1 << 20
WAIT_S = 180

# Of each kind: the verdict, the part that is largest, and how large it is at least.
ANSWERS = {
    "leak": ("leak", "live", 40 * MIB),
    "table": ("in-use", "live", 200 * MIB),
    "hoard": ("hoarded", "free", 190 * MIB),
    "arenas": ("hoarded", "free", 145 * MIB),
    "pinned": ("fragmented", "free", 180 * MIB),
    "partly": ("hoarded", "free", 185 * MIB),
    "mmap": ("other", "anonymous", 160 * MIB),
    "file": ("other", "files", 150 * MIB),
    "tmpfs": ("other", "shared", 150 * MIB),
    "stacks": ("other", "stacks", 144 * MIB),
    "blocks": ("other", "anonymous", 160 * MIB),
}
# What a part may have more than what the program has put there.
SLACK = 8 * MIB


def smaps(pid):
    """Resident bytes, and by what the line of the mapping ends in."""
    total, files = 0, 0
    name = ""
    for line in open(f"/proc/{pid}/smaps"):
        if re.match(r"[0-9a-f]+-", line):
            name = line.rstrip("\n")[73:]
        elif line.startswith("Rss:"):
            size = int(line.split()[1]) << 10
            total += size
            files += size if name.startswith("/") and not name.startswith(("/memfd:", "/dev/zero")) else 0
    return total, files


class Program:
    def __init__(self, kind, folder):
        self.kind = kind
        self.folder = os.path.join(folder, kind)
        os.mkdir(self.folder)
        env = dict(os.environ, LD_PRELOAD=LIBRARY, MEMWATCH_HEAP_DIR=self.folder, MEMWATCH_HEAP_SEED="7")
        self.process = subprocess.Popen([PROGRAM, kind, self.folder], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ready = None

    def read(self, word):
        line = self.process.stdout.readline().split()
        return int(line[1]) if line and line[0] == word else None

    def wait_ready(self):
        line = self.process.stdout.readline()
        self.ready = time.monotonic() if line == "ready\n" else None
        # The stack of a thread that runs cannot be told from other memory: only a thread that waits
        # has a stack pointer in /proc.
        while self.ready and self.threads_run() and time.monotonic() < self.ready + 10:
            time.sleep(0.01)

    def threads_run(self):
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/stat"):
            with open(path) as file:
                if file.read().rpartition(")")[2].split()[0] == "R":
                    return True
        return False

    def live(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.read("live")

    def report(self):
        done = subprocess.run([CTL, "--format", "json", "heap", "report", "--rss", "--no-symbols", "--top", "1",
                               str(self.process.pid)], stdout=subprocess.PIPE, text=True)
        self.answer = done.stdout
        return json.loads(done.stdout)["rss"] if done.returncode == 0 else None

    def check_schema(self):
        path = os.path.join(self.folder, "answer.json")
        with open(path, "w") as file:
            file.write(self.answer)
        return subprocess.run([sys.executable, SCHEMA, "heap-rss", path], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)


def judge_parts(tap, kind, rss, seen):
    parts = {name: part["value"] for name, part in rss["parts"].items()}
    verdict, largest, least = ANSWERS[kind]
    tap.eq(rss["verdict"], verdict, f"{kind}: the verdict is {verdict}")
    tap.ok(least * 0.98 <= parts[largest] <= least * 1.02 + SLACK or kind == "leak",
           f"{kind}: {largest} is {parts[largest] / MIB:.1f} MiB", rss)
    total, files = seen
    tap.ok(abs(rss["rss_bytes"] - total) <= 0.02 * total + MIB,
           f"{kind}: the resident set is that of smaps, {total / MIB:.1f} MiB", rss)
    tap.ok(abs(parts["files"] - files) <= MIB, f"{kind}: files are those of smaps, {files / MIB:.1f} MiB", rss)
    tap.ok(abs(sum(parts.values()) - rss["rss_bytes"]) < 10, f"{kind}: the parts add up", parts)
    share = parts["unexplained"] / rss["rss_bytes"]
    tap.ok(abs(share) <= 0.03, f"{kind}: {100 * share:.2f} % are unexplained", rss)


def judge(tap, program):
    kind = program.kind
    first = program.live("look")
    rss = program.report()
    seen = smaps(program.process.pid)
    if not tap.ok(rss is not None and rss["has_figures"], f"{kind}: it is reported"):
        return
    tap.note(f"{kind}: the figures are {rss['figures_age_seconds']:.1f} s old; {rss['sentence']}")
    checked = program.check_schema()
    tap.ok(checked.returncode == 0, f"{kind}: the JSON has the documented members", checked.stdout)
    judge_parts(tap, kind, rss, seen)
    last = program.live("trim")
    trimmed = program.read("trimmed")
    live = rss["parts"]["live"]
    if kind != "blocks":  # half of them is not resident
        tap.ok(live["low"] - MIB <= last and first <= live["high"] + MIB,
               f"{kind}: {first / MIB:.1f} MiB are live; estimated {live['low'] / MIB:.1f} to "
               f"{live['high'] / MIB:.1f} MiB", rss)
    # Where hardly anything can be returned, a share of it means nothing.
    error = abs(rss["trim_bytes"]["value"] - trimmed)
    tap.ok(error <= max(0.1 * trimmed, 0.005 * rss["rss_bytes"]),
           f"{kind}: malloc_trim() returned {trimmed / MIB:.1f} MiB, predicted "
           f"{rss['trim_bytes']['value'] / MIB:.1f} MiB", rss)


def is_fresh(program):
    """Whether the figures were taken after the program had done what it does."""
    waited = time.monotonic() - program.ready
    rss = program.report()
    return waited > WAIT_S or (rss and rss["has_figures"] and rss["figures_age_seconds"] < waited - 0.2)


def main():
    kinds = sys.argv[1:] or list(ANSWERS)
    tap = Tap()
    folder = tempfile.mkdtemp(prefix="heap-rss-", dir=os.environ.get("TMPDIR", "/var/tmp"))
    programs = []
    try:
        programs = [Program(kind, folder) for kind in kinds]
        for program in programs:
            program.wait_ready()
        waiting = [p for p in programs if tap.ok(p.ready, f"{p.kind}: the program runs")]
        while waiting:
            for program in [p for p in waiting if is_fresh(p)]:
                judge(tap, program)
                waiting.remove(program)
            time.sleep(0.5)
        for program in programs:
            program.end()
    finally:
        for program in programs:
            program.process.kill()
        shutil.rmtree(folder, ignore_errors=True)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
