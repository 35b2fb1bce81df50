#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Records real programs side by side, and what `growth watch` says about them live.

    record-touch.py MEMWATCHCTL LIST MINUTES OUT

Each line of LIST is a run, see touch.list. Each has a memory cgroup of its own. `growth watch
--trace` runs beside them and follows the pages of all that grow: OUT.csv is its trace, OUT.live
what it said. At the end OUT.csv.xz and OUT.live.xz are packed, and OUT.json is the truth.

All of this belongs to a process of its own, the keeper, which goes on if this command is
interrupted or killed: the same command then waits for its end again, and packs. If the keeper was
killed too, it packs what there is. Needs root.
"""
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE + "/touch")
import clients  # noqa: E402
import packed   # noqa: E402

BUILD = os.path.realpath(os.path.join(HERE, "../..", os.environ.get("BUILD", "build"),
                                      "selftests/eval"))
V1, V2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
LEGACY = os.path.exists(f"{V1}/memory.limit_in_bytes")
MOUNT = V1 if LEGACY else V2
PREFIX = "/memwatch-touch-"
STARTS_PER_S = 8
# What must be installed for a run, by the first word of its name.
NEEDED = {"c": "gcc", "redis": "redis-check-rdb", "lua": "lua5.4", "python": "/usr/bin/python3",
          "sqlite": "/usr/bin/python3"}
WORDS = {
    "c": BUILD + "/touch-worker",
    "python": f"/usr/bin/python3 {HERE}/touch/worker.py",
    "perl": f"perl {HERE}/touch/worker.pl",
    "php": f"php {HERE}/touch/worker.php",
    "node": f"node --max-old-space-size=400 {HERE}/touch/worker.js",
    "lua": f"lua5.4 {HERE}/touch/worker.lua",
    "java": f"java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss256k -Xms8m -cp {BUILD} Memory",
    "redis": "./redis-server --port 0 --unixsocket socket --save '' --appendonly no "
             "--daemonize no",
    "memcached": "memcached -u root -s socket -t 1 -c 64",
}
PRELOADED = {"glibc": "", "jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4",
             "mimalloc": "libmimalloc.so.2", "drop": BUILD + "/drop-free.so"}
# What is kept of an event.
EVENT = ("event", "time_s", "pid", "path", "class", "reason", "gained_bytes", "cold_bytes",
         "cold_low_bytes", "cold_high_bytes", "eta_oom_seconds")
# A run is ended, the fastest leak first, when the machine has less than this.
LEAST_AVAILABLE_KB = 2 << 20


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def start_of(pid):
    """When a process was started, in ticks; None if it is gone."""
    try:
        fields = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


class Run:
    """A line of the list."""

    def __init__(self, line):
        fields = [field.strip() for field in line.split("|")]
        self.name, label, limit, self.preload, self.work, self.command = fields
        self.label, *words = label.split()
        self.rate_kb, self.after_s = (float(words[1]), float(words[2])) if words else (0, 0)
        self.by = words[0] if words else None
        self.limit_kb = int(limit) << 10
        self.program = self.name.split("-")[0]
        self.needed = NEEDED.get(self.program, self.program)
        self.path = PREFIX + self.name
        self.folder = MOUNT + self.path
        self.process = self.started = self.ended = self.folder_of_work = None

    def start(self):
        self.folder_of_work = tempfile.mkdtemp(prefix="memwatch-touch-")
        os.mkdir(self.folder)
        if self.limit_kb:
            name = "memory.limit_in_bytes" if LEGACY else "memory.max"
            with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
                file.write(str(self.limit_kb << 10))
        if self.program == "redis":
            os.symlink(shutil.which("redis-check-rdb"), self.folder_of_work + "/redis-server")
        environment = dict(os.environ)
        if self.preload != "glibc":
            environment["LD_PRELOAD"] = PRELOADED[self.preload]
        if self.preload == "drop":
            environment.update(EVAL_LEAK_PERMILLE="1000", EVAL_LEAK_AFTER=str(int(self.after_s)),
                               EVAL_LEAK_RATE=str(int(self.rate_kb * 1024)))
        command = re.sub(r"\$(\w+)", lambda m: WORDS[m.group(1)], self.command)
        with open(self.folder_of_work + "/log", "wb") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", "exec " + command], cwd=self.folder_of_work, preexec_fn=self.enter,
                stdout=log, stderr=log, env=environment, start_new_session=True,
                stdin=subprocess.PIPE if self.work == "lines" else subprocess.DEVNULL)
        self.started = time.monotonic()

    def enter(self):
        with open(f"{self.folder}/cgroup.procs", "w", encoding="utf-8") as file:
            file.write("0")

    def look(self, clock):
        """Notes when the program ended by itself, or was killed by the kernel."""
        if self.ended is None and self.process.poll() is not None:
            self.ended = round(time.monotonic() - clock, 1)
            print(f"{self.name} ended with {self.process.returncode}", flush=True)

    def stop(self):
        for _ in range(100):
            if not os.path.isdir(self.folder):
                break
            for pid in read(f"{self.folder}/cgroup.procs").split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except OSError:
                    pass
            if self.process:
                self.process.poll()
            try:
                os.rmdir(self.folder)
            except OSError:
                time.sleep(0.1)
        if self.folder_of_work:
            shutil.rmtree(self.folder_of_work, ignore_errors=True)

    def truth(self, clock):
        return {"name": self.name, "path": self.path, "label": self.label, "by": self.by,
                "program": self.program, "allocator": self.preload, "limit_kb": self.limit_kb,
                "pid": self.process.pid, "start_s": round(self.started - clock, 1),
                "onset_s": round(self.started - clock + self.after_s, 1) if self.by else None,
                "rate_bytes_per_second": round(self.rate_kb * 1024), "ended_s": self.ended}


def write_state(runs, clock, out, ended):
    state = {"keeper": os.getpid(), "keeper_start": start_of(os.getpid()), "clock": clock,
             "ended": ended, "runs": [run.truth(clock) for run in runs]}
    with open(out + ".part", "w", encoding="utf-8") as file:
        json.dump(state, file, indent=1)
    os.rename(out + ".part", out + ".state")


def make_room(runs, clock):
    """Ends the leak that is fastest, if the machine has little memory left."""
    available = int(re.search(r"MemAvailable:\s+(\d+)", read("/proc/meminfo")).group(1))
    alive = [run for run in runs if run.ended is None and run.by]
    if available > LEAST_AVAILABLE_KB or not alive:
        return
    fastest = max(alive, key=lambda run: run.rate_kb)
    print(f"{available >> 10} MiB are left: {fastest.name} is ended", flush=True)
    fastest.ended = round(time.monotonic() - clock, 1)
    fastest.stop()


def keep(runs, memwatchctl, seconds, out):
    """The keeper: runs the monitor and the programs, and gives servers their load."""
    stopped = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
    clock = time.monotonic()
    with open(out + ".live", "wb") as live:
        monitor = subprocess.Popen(
            [memwatchctl, "--format", "json", "growth", "watch", "--notices", "--no-events",
             "--no-where", "--suspects", "512", "--budget", "20000", "--trace", out + ".csv"], stdout=live)
    started = []
    try:
        time.sleep(10)
        for run in runs:
            started.append(run)
            run.start()
            time.sleep(1 / STARTS_PER_S)
        work = clients.Work([run for run in runs if run.work != "-"])
        begin = time.monotonic()
        for second in range(int(seconds)):
            if stopped:
                break
            if second % 5 == 0:
                for run in runs:
                    run.look(clock)
                make_room(runs, clock)
                write_state(runs, clock, out, False)
            work.tick()
            time.sleep(max(0, begin + second + 1 - time.monotonic()))
    finally:
        monitor.send_signal(signal.SIGINT)
        monitor.wait()
        write_state(started, clock, out, True)
        for run in started:
            run.stop()


def start_keeper(memwatchctl, path, seconds, out):
    lines = [line.split("#")[0].strip() for line in read(path).splitlines()]
    runs = [Run(line) for line in lines if line]
    for run in runs:
        if not shutil.which(run.needed):
            print(f"{run.name}: {run.needed} is not installed, left out")
    runs = [run for run in runs if shutil.which(run.needed)]
    if not LEGACY:
        with open(f"{V2}/cgroup.subtree_control", "w", encoding="utf-8") as file:
            file.write("+memory")
    if os.fork() == 0:
        os.setsid()
        with open(out + ".log", "ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        try:
            keep(runs, memwatchctl, seconds, out)
        finally:
            os._exit(0)
    for _ in range(6000):
        if os.path.exists(out + ".state"):
            return
        time.sleep(0.1)
    sys.exit(f"record-touch.py: the programs did not start, see {out}.log")


def load_state(out):
    with open(out + ".state", encoding="utf-8") as file:
        return json.load(file)


def clean_up(state):
    """After a keeper that was killed: ends what it started."""
    for run in state["runs"]:
        folder = MOUNT + run["path"]
        if not os.path.isdir(folder):
            continue
        for pid in read(f"{folder}/cgroup.procs").split():
            os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.1)
        os.rmdir(folder)


def own_lines(state, out):
    """Copies the lines of the runs to OUT.own.csv. Returns the run of each process."""
    names = {run["path"]: run["name"] for run in state["runs"]}
    pids = {}
    with open(out + ".csv", encoding="utf-8") as file, \
            open(out + ".own.csv", "w", encoding="utf-8") as own:
        own.write(next(file))
        for line in file:
            fields = line.split(",")
            if len(fields) > 9 and fields[9] in names:
                own.write(line)
                pids[fields[1]] = names[fields[9]]
    pids.pop("0", None)
    return pids


def pack_events(state, out, pids):
    """Keeps of what was said live what is about the runs, and of that what is scored."""
    paths = {run["path"] for run in state["runs"]}
    with open(out + ".live", encoding="utf-8") as live, \
            lzma.open(out + ".live.xz", "wt", preset=9) as file:
        for line in live:
            if not line.endswith("\n"):
                break
            event = json.loads(line)
            if event.get("path") in paths or str(event.get("pid")) in pids:
                file.write(json.dumps({key: event[key] for key in EVENT if key in event}) + "\n")


def pack(state, out):
    """Writes OUT.csv.xz, OUT.live.xz and OUT.json from what there is."""
    pids = own_lines(state, out)
    end = packed.pack(out + ".own.csv", out + ".csv.xz")
    os.remove(out + ".own.csv")
    pack_events(state, out, pids)
    with open(out + ".json", "w", encoding="utf-8") as file:
        json.dump({"end_s": end, "pids": pids, "runs": state["runs"]}, file,
                  separators=(",", ":"))
        file.write("\n")
    print(f"packed {end / 60:.1f} minutes of {len(state['runs'])} runs into {out}.csv.xz")


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    memwatchctl, path, minutes, out = sys.argv[1:]
    if not os.path.exists(out + ".state"):
        start_keeper(os.path.abspath(memwatchctl), path, float(minutes) * 60, out)
    else:
        print(f"{out}.state is there: this waits for the end of its recording")
    state = load_state(out)
    try:
        while start_of(state["keeper"]) == state["keeper_start"]:
            time.sleep(2)
    except KeyboardInterrupt:
        print("the programs go on: the same command waits for the end of the recording again")
        return
    state = load_state(out)
    if not state["ended"]:
        print("the recording was killed: this packs what there is")
        clean_up(state)
    pack(state, out)


main()
