#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Records the memory of real servers side by side, under the load of days that are compressed in
time, without any code of memwatch.

    record-days.py LIST HOURS OUT [FACTOR]

Each line of LIST is a run, see days.list. Each has a memory cgroup of its own, and a load that
follows the wave of a day; a day of the load lasts 24 h / FACTOR (60). Once a second the files of
the cgroups and of their processes are read and added to OUT.csv, a trace for `memwatchctl growth
replay` at the speed of the recording. At the end, after HOURS of load, OUT.csv.xz is packed, and
OUT.json is the truth.

The programs and their load belong to a process of their own, the keeper. After Ctrl-C, or if the
recorder is killed, they go on for ten minutes: the same command continues the recording then,
with a gap. Later, it packs what there is. Needs root.
"""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE + "/days")
import drive    # noqa: E402
import packed   # noqa: E402

PERIOD_S = 1
ABANDONED_S = 600
DROP_FREE = os.path.realpath(os.path.join(HERE, "../..", os.environ.get("BUILD", "build"),
                                          "selftests/eval/drop-free.so"))
V1, V2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
LEGACY = os.path.exists(f"{V1}/memory.limit_in_bytes")
MOUNT = V1 if LEGACY else V2
# The program that must be installed for a run, by the first word of its name.
NEEDED = {"redis": "redis-check-rdb", "postgres": "pg_ctlcluster", "java": "javac",
          "python": "/usr/bin/python3", "sqlite": "/usr/bin/python3"}
SHELL = {
    "days": HERE + "/days",
    "redis": 'ln -s /usr/bin/redis-check-rdb redis-server; exec ./redis-server --port 0 '
             '--unixsocket socket --save "" --appendonly no --daemonize no',
    "postgres": 'bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1); chown postgres .; '
                'p="setpriv --reuid=postgres --regid=postgres --init-groups"; '
                '$p $bin/initdb -D data -A trust -U eval >/dev/null; '
                'exec $p $bin/postgres -D data -k "$PWD" -c listen_addresses= -c fsync=off -c dynamic_shared_memory_type=mmap',
    "java": f'javac -d . {HERE}/days/Server.java; exec java -XX:+UseSerialGC '
            '-XX:TieredStopAtLevel=1 -Xss256k',
    "python": f"exec /usr/bin/python3 {HERE}/days/server.py",
}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def numbers(path):
    """{key: number} of a file with a key and a number on each line."""
    pairs = (line.split()[:2] for line in read(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def start_of(pid):
    """When a process was started, in ticks; None if it is gone."""
    try:
        fields = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


class Run:
    """A line of the list."""

    def __init__(self, line, factor):
        fields = [field.strip() for field in line.split("|")]
        self.name, label, limit, day, work, rate, self.command = fields
        self.program = self.name.split("-")[0]
        self.needed = NEEDED.get(self.program, self.program)
        words = label.split()
        self.label, self.limit_kb, self.rate = words[0], int(limit) << 10, float(rate)
        self.percent, self.onset_h = (float(words[1]), float(words[2])) if words[1:] else (0, 0)
        self.by = words[3] if words[1:] else None
        self.shape, phase = day.split()
        self.phase = float(phase)
        self.driver, *self.work_words = work.split()
        self.path = f"/memwatch-days-{self.name}"
        self.folder = MOUNT + self.path
        self.leak_kb_s = self.percent / 100 * self.limit_kb * factor / 3600
        self.after_s = self.onset_h * 3600 / factor
        self.work = self.shm = self.process = self.started = None
        self.number, self.leaked = 0, 0.0      # of the driver
        self.due, self.before = 0.0, self.after_s

    def environment(self):
        extra = {"LEAK_KB_S": str(self.leak_kb_s), "LEAK_AFTER_S": str(self.after_s),
                 "LEAK_BY": self.by or "", "LOAD_MEAN": str(self.rate), "SHM": self.shm}
        if self.by == "inject":
            extra.update(LD_PRELOAD=DROP_FREE, INJECTED="1", EVAL_LEAK_PERMILLE="500", EVAL_COUNTER=self.work + "/counter",
                         EVAL_LEAK_RATE=str(round(self.leak_kb_s * 1024)),
                         EVAL_LEAK_AFTER=str(round(self.after_s)))
        return {**os.environ, **extra}

    def start(self):
        self.work = tempfile.mkdtemp(prefix="memwatch-days-")
        self.shm = tempfile.mkdtemp(dir="/dev/shm", prefix="memwatch-days-")
        os.chmod(self.work, 0o755)
        os.mkdir(self.folder)
        name = "memory.limit_in_bytes" if LEGACY else "memory.max"
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(str(self.limit_kb << 10))
        command = re.sub(r"\$(\w+)", lambda m: SHELL[m.group(1)], self.command)
        with open(self.work + "/log", "wb") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", command], cwd=self.work, preexec_fn=self.enter, stdout=log,
                stderr=log, env=self.environment(), start_new_session=True,
                stdin=subprocess.PIPE if self.driver == "lines" else subprocess.DEVNULL)
        self.started = time.monotonic()

    def enter(self):
        with open(f"{self.folder}/cgroup.procs", "w", encoding="utf-8") as file:
            file.write("0")

    def owed(self, load):
        """The bytes that the driver is to leak by now, if it is the driver that leaks."""
        now = time.monotonic() - self.started
        if self.label == "leak" and now > self.after_s:
            weight = load if self.by == "load" else 1
            self.due += self.leak_kb_s * 1024 * (now - self.before) * weight
            self.before = now
        return self.due

    def state(self, clock):
        return {"name": self.name, "path": self.path, "label": self.label,
                "program": self.program, "by": self.by,
                "onset_s": round(self.started - clock + self.after_s, 1) if self.by else None,
                "rate_bytes_per_second": round(self.leak_kb_s * 1024),
                "percent_per_hour": self.percent, "limit_kb": self.limit_kb,
                "folders": [self.work, self.shm]}


def end_programs(state):
    """Ends all processes of a run and removes its cgroup and its folders."""
    folder = MOUNT + state["path"]
    for _ in range(100):
        if not os.path.isdir(folder):
            break
        for pid in read(f"{folder}/cgroup.procs").split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass
        try:
            os.rmdir(folder)
        except OSError:
            time.sleep(0.1)
    subprocess.run(["rm", "-rf"] + state["folders"], check=False)


def keep(runs, out, factor):
    """The keeper: starts the programs, writes OUT.state and gives them their load, until it is
    told to end or nobody has recorded for ten minutes."""
    stop = threading.Event()
    resource.setrlimit(resource.RLIMIT_NOFILE, (16384, 16384))      # connections of clients
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    clock = time.monotonic()
    started = []
    try:
        for run in runs:
            run.start()
            started.append(run)
        state = {"keeper": os.getpid(), "keeper_start": start_of(os.getpid()), "clock": clock,
                 "factor": factor, "runs": [run.state(clock) for run in runs]}
        with open(out + ".part", "w", encoding="utf-8") as file:
            json.dump(state, file, indent=1)
        os.rename(out + ".part", out + ".state")
        threads = [threading.Thread(target=drive.drive, args=(run, clock, factor / 3600, stop),
                                    daemon=True) for run in runs]
        for thread in threads:
            thread.start()
        while not stop.wait(5):
            if time.time() - os.stat(out + ".csv").st_mtime > ABANDONED_S:
                print("nobody has recorded for ten minutes: the programs are ended", flush=True)
                break
        stop.set()
    finally:
        for run in started:
            end_programs(run.state(clock))


def start_keeper(path, out, factor):
    lines = [line.split("#")[0].strip() for line in read(path).splitlines()]
    runs = [Run(line, factor) for line in lines if line]
    for run in runs:
        if not shutil.which(run.needed):
            print(f"{run.name}: {run.needed} is not installed, left out")
    runs = [run for run in runs if shutil.which(run.needed)]
    if not os.path.exists(DROP_FREE):
        sys.exit(f"record-days.py: {DROP_FREE} is missing: run \"make eval-programs\"")
    if not LEGACY:
        with open(f"{V2}/cgroup.subtree_control", "w", encoding="utf-8") as file:
            file.write("+memory")
    with open(out + ".csv", "w", encoding="utf-8") as file:
        file.write(packed.HEADER + "\n")
    if os.fork() == 0:
        os.setsid()
        with open(out + ".log", "ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        try:
            keep(runs, out, factor)
        finally:
            os._exit(0)
    for _ in range(600):
        if os.path.exists(out + ".state"):
            return
        time.sleep(0.1)
    sys.exit(f"record-days.py: the programs did not start, see {out}.log")


def group_row(run, now):
    """The line of a cgroup. Version 1 does not tell slab, page tables and sockets."""
    folder = MOUNT + run["path"]
    stat = numbers(f"{folder}/memory.stat")
    if LEGACY:
        kernel = int(read(f"{folder}/memory.kmem.usage_in_bytes"))
        classes = [kernel >> 10, "", "", ""]
        anon, shmem, swap = stat["total_rss"], stat["total_shmem"], stat.get("total_swap", 0)
    else:
        classes = [(stat["kernel"] - stat["slab_reclaimable"]) >> 10,
                   stat["slab_unreclaimable"] >> 10, stat["sock"] >> 10,
                   (stat["pagetables"] + stat.get("sec_pagetables", 0)) >> 10]
        anon, shmem = stat["anon"], stat["shmem"]
        swap = int(read(f"{folder}/memory.swap.current")) \
            if os.path.exists(f"{folder}/memory.swap.current") else 0
    return [now, 0, "", anon >> 10, 0, shmem >> 10, swap >> 10, 0, run["limit_kb"],
            run["path"]] + classes


def process_rows(run, now):
    for pid in read(f"{MOUNT}{run['path']}/cgroup.procs").split():
        try:
            status = dict(line.split(":\t", 1)
                          for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
        except (OSError, ValueError):
            continue
        if "RssAnon" not in status:
            continue
        kb = [int(status[key].split()[0]) for key in
              ("RssAnon", "RssFile", "RssShmem", "VmSwap", "VmSize")]
        yield [now, pid, re.sub(r"[^\w.-]", "_", status["Name"]), *kb, run["limit_kb"],
               run["path"], "", "", "", ""]


def kills(run):
    name = "memory.oom_control" if LEGACY else "memory.events"
    return numbers(f"{MOUNT}{run['path']}/{name}").get("oom_kill", 0)


def record(state, out, seconds):
    """Adds to OUT.csv until the time is over, or the keeper is gone. A kill is a line of
    OUT.kills."""
    clock = state["clock"]
    killed = set()
    with open(out + ".csv", "a", encoding="utf-8") as file, \
            open(out + ".kills", "a+", encoding="utf-8") as killed_file:
        killed_file.seek(0)
        killed.update(line.split()[1] for line in killed_file)
        while (begin := time.monotonic()) - clock < seconds and is_kept(state):
            now = round(begin - clock, 3)
            rows = []
            for run in state["runs"]:
                rows.extend(process_rows(run, now))
                rows.append(group_row(run, now))
                if run["name"] not in killed and kills(run):
                    killed.add(run["name"])
                    killed_file.write(f"{now} {run['name']}\n")
                    killed_file.flush()
            file.write("".join(",".join(map(str, row)) + "\n" for row in rows))
            file.flush()
            time.sleep(max(0, begin + PERIOD_S - time.monotonic()))


def is_kept(state):
    return start_of(state["keeper"]) == state["keeper_start"]


def pack(state, out):
    """Writes OUT.csv.xz and OUT.json from what there is."""
    first = {}
    if os.path.exists(out + ".kills"):
        for line in read(out + ".kills").splitlines():
            when, name = line.split()
            first.setdefault(name, float(when))
    end = packed.pack(out + ".csv", out + ".csv.xz")
    if end is None:
        sys.exit(f"record-days.py: nothing was recorded, see {out}.log")
    for run in state["runs"]:
        run["oom_s"] = first.get(run["name"])
        run.pop("folders", None)
    with open(out + ".json", "w", encoding="utf-8") as file:
        json.dump({"factor": state["factor"], "cadence_s": PERIOD_S, "end_s": end,
                   "quantum_kb": packed.QUANTUM_KB, "runs": state["runs"]}, file, indent=1)
        file.write("\n")
    print(f"packed {end / 3600 * state['factor']:.1f} hours into {out}.csv.xz")


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    path, hours, out = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    factor = float(sys.argv[4]) if sys.argv[4:] else 60
    if not os.path.exists(out + ".state"):
        if os.path.exists(out + ".csv"):
            sys.exit(f"record-days.py: {out}.csv is of a recording that did not start: remove it")
        start_keeper(path, out, factor)
    else:
        print(f"{out}.state is there: this continues its recording")
    with open(out + ".state", encoding="utf-8") as file:
        state = json.load(file)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        record(state, out, hours * 3600 / state["factor"])
    except KeyboardInterrupt:
        pack(state, out)
        print("the programs go on for ten minutes: the same command continues the recording")
        return
    except FileNotFoundError:       # a cgroup, because the keeper has just ended
        pass
    if is_kept(state):
        os.kill(state["keeper"], signal.SIGTERM)
    else:
        print("the programs have no load any more, so nothing is added: they are ended")
        for run in state["runs"]:
            end_programs(run)
    pack(state, out)


main()
