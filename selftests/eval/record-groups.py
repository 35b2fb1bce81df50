#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Records the memory of many cgroups side by side, without any code of memwatch.

    record-groups.py PROGRAM LIST SECONDS OUT

PROGRAM is the built group.c. Each line of LIST is a run: a name, "leak" or "benign", a limit in
MiB (0: none), and the arguments of PROGRAM. Each run has a cgroup of its own. Once in five seconds
the files of the cgroups, of their processes and of the machine are read. Writes OUT.csv.xz, a trace
for `memwatchctl growth replay`, and OUT.json, the truth: for each run its path, whether it leaks
since when and how fast, and when the kernel killed it. Needs root.
"""
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

PERIOD_S = 5
V1, V2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
LEGACY = os.path.exists(f"{V1}/memory.limit_in_bytes")
MOUNT = V1 if LEGACY else V2
HEADER = ("time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb,cgroup,kernel_kb,"
          "slab_kb,sock_kb,pagetables_kb")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def numbers(path, separator=None):
    """{key: number} of a file with a key and a number on each line."""
    pairs = (line.split(separator)[:2] for line in read(path).splitlines())
    return {pair[0]: int(pair[1].split()[0]) for pair in pairs if len(pair) == 2}


class Run:
    def __init__(self, line, program):
        self.name, self.label, limit, *self.arguments = line.split()
        self.limit_kb = int(limit) << 10
        self.path = f"/memwatch-eval-{self.name}"
        self.folder = MOUNT + self.path
        self.work = tempfile.mkdtemp(dir="/dev/shm")
        self.killed_s = None
        os.mkdir(self.folder)
        if self.limit_kb:
            name = "memory.limit_in_bytes" if LEGACY else "memory.max"
            with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
                file.write(str(self.limit_kb << 10))
        self.process = subprocess.Popen([program] + self.arguments, cwd=self.work,
                                        preexec_fn=self.enter, stderr=subprocess.DEVNULL)
        self.started = time.monotonic()

    def enter(self):
        with open(f"{self.folder}/cgroup.procs", "w", encoding="utf-8") as file:
            file.write("0")

    def row(self, now):
        """The line of the cgroup. Version 1 does not tell slab, page tables and sockets."""
        stat = numbers(f"{self.folder}/memory.stat")
        if LEGACY:
            kernel = int(read(f"{self.folder}/memory.kmem.usage_in_bytes"))
            classes = [kernel >> 10, "", "", ""]
            anon, shmem, swap = stat["total_rss"], stat["total_shmem"], stat.get("total_swap", 0)
        else:
            classes = [(stat["kernel"] - stat["slab_reclaimable"]) >> 10,
                       stat["slab_unreclaimable"] >> 10, stat["sock"] >> 10,
                       (stat["pagetables"] + stat.get("sec_pagetables", 0)) >> 10]
            anon, shmem = stat["anon"], stat["shmem"]
            swap = int(read(f"{self.folder}/memory.swap.current")) \
                if os.path.exists(f"{self.folder}/memory.swap.current") else 0
        return [now, 0, "", anon >> 10, 0, shmem >> 10, swap >> 10, 0, self.limit_kb or "",
                self.path] + classes

    def process_rows(self, now):
        for pid in read(f"{self.folder}/cgroup.procs").split():
            try:
                status = dict(line.split(":\t", 1)
                              for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
            except (OSError, ValueError):
                continue
            if "RssAnon" not in status:
                continue
            kb = [int(status[key].split()[0]) for key in
                  ("RssAnon", "RssFile", "RssShmem", "VmSwap", "VmSize")]
            yield [now, pid, "group", *kb, self.limit_kb or "", self.path, "", "", "", ""]

    def look(self, now):
        """Notes when the first process was killed, or the group was."""
        events = numbers(f"{self.folder}/" +
                         ("memory.oom_control" if LEGACY else "memory.events"))
        if self.killed_s is None and events.get("oom_kill"):
            self.killed_s = now

    def truth(self, start):
        kind, rate, after = self.arguments[:3]
        return {"name": self.name, "path": self.path, "label": self.label, "kind": kind,
                "onset_s": round(self.started - start + float(after), 1),
                "rate_bytes_per_second": float(rate) * 1024, "limit_kb": self.limit_kb, "oom_s": self.killed_s}

    def end(self):
        self.process.kill()
        for _ in range(100):
            for pid in read(f"{self.folder}/cgroup.procs").split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except OSError:
                    pass
            self.process.poll()
            subprocess.run(["rm", "-rf", self.work], check=False)
            try:
                os.rmdir(self.folder)
                return
            except OSError:
                time.sleep(0.1)


def host_row(now):
    mem = {key.rstrip(":"): value for key, value in numbers("/proc/meminfo", ":").items()}
    page_kb = os.sysconf("SC_PAGESIZE") >> 10
    sock = sum(int(pages) for pages in re.findall(r" mem (\d+)", read("/proc/net/sockstat")))
    tables = mem["PageTables"] + mem.get("SecPageTables", 0)
    known = sum(mem.get(key, 0) for key in
                ("MemFree", "Buffers", "Cached", "SwapCached", "AnonPages", "KReclaimable",
                 "Hugetlb"))
    kernel = mem["MemTotal"] - known
    used = mem["AnonPages"] + mem["Shmem"] + kernel + sock * page_kb
    return [now, 0, "", mem["AnonPages"], 0, mem["Shmem"], mem["SwapTotal"] - mem["SwapFree"], 0,
            used + mem["MemAvailable"] + mem["SwapFree"], "/", kernel, mem["SUnreclaim"],
            sock * page_kb, tables]


def main():
    program, path, seconds, out = sys.argv[1:]
    lines = [line.split("#")[0].strip() for line in read(path).splitlines()]
    runs = [Run(line, os.path.abspath(program)) for line in lines if line]
    start = time.monotonic()
    rows = []
    try:
        while time.monotonic() - start < float(seconds):
            now = round(time.monotonic() - start, 3)
            for run in runs:
                rows.extend(run.process_rows(now))
            rows.extend(run.row(now) for run in runs)
            rows.append(host_row(now))
            for run in runs:
                run.look(now)
            time.sleep(max(0, now + PERIOD_S - (time.monotonic() - start)))
    finally:
        for run in runs:
            run.end()
    with lzma.open(out + ".csv.xz", "wt", preset=9) as file:
        file.write(HEADER + "\n")
        for row in rows:
            file.write(",".join(map(str, row)) + "\n")
    with open(out + ".json", "w", encoding="utf-8") as file:
        json.dump({"cadence_s": PERIOD_S, "end_s": rows[-1][0],
                   "runs": [run.truth(start) for run in runs]}, file, indent=1)
        file.write("\n")


main()
