#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Tests the identity model on synthetic logs: a small machine with a module that
behaves, and the same machine with one fault planted. A clean log must pass, each
fault must be found under its rule, and a log that lost something must be refused.
"""

import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from identity_model import trace as mt		# noqa: E402
from identity_model.model import RULES, Model	# noqa: E402

MS = 1000000
LIMBO = 2 * MS
RUNNING, SLEEPING, ZOMBIE = 0, 1, 0x20


class SimProcess:
    def __init__(self, tgid, parent, comm, start):
        self.tgid = tgid
        self.parent = parent
        self.comm = comm
        self.start = start
        self.tids = {tgid}
        self.exited = set()
        self.off = set()
        self.rmid = 0
        self.generation = 0
        self.alloc = 0


class World:
    """Two CPUs, a scheduler without a plan, and the module as it should be."""

    def __init__(self, seed, rmids, fault=None, ncpu=2):
        self.random = random.Random(seed)
        self.now = 10 * MS
        self.rmids = rmids
        self.fault = fault
        self.planted = 0
        self.events = []
        self.prev_ts = [0] * ncpu
        self.current = [0] * ncpu
        self.pqr = [(cpu + 1) << 32 for cpu in range(ncpu)]
        self.owner_on = [0] * ncpu
        self.next_tick = [0] * ncpu
        self.threads = {0: None}
        self.processes = {}
        self.next_pid = 100
        self.pool = [(rmid, -LIMBO) for rmid in range(1, rmids + 1)]
        self.generation = {}
        self.waiting = []
        self.module_on = False
        self.begun = 0
        self.tasks = []
        self.live = [1, 2]
        init = SimProcess(1, None, b"init", 1)
        self.processes[1] = init
        self.threads[1] = init
        self.tasks.append((1, 1, 0, 0, 0, b"S", b"init"))
        self.threads[2] = None
        self.tasks.append((2, 2, 0, 0x200000, 0, b"S", b"kthreadd"))

    # ------------------------------------------------------------- mechanics

    def emit(self, cpu, kind, *fields, pid=None):
        self.now += self.random.randrange(200, 100000)
        self.events.append((self.now, cpu, self.prev_ts[cpu], kind,
                            self.current[cpu] if pid is None else pid) + fields + (0,))
        self.prev_ts[cpu] = self.now

    def plant(self, fault, ready=True):
        """True once, for the fault of this world, when the machine is warm."""
        if self.fault != fault or self.planted or not ready or not self.module_on or \
           self.now - self.begun < 200 * MS:
            return False
        self.planted += 1
        return True

    def record(self, cpu, kind, process, rmid, generation, reason, **changed):
        values = dict(time_ns=self.now + 50, rmid=rmid, generation=generation,
                      tgid=process.tgid, parent_tgid=process.parent.tgid if process.parent else 0,
                      start_time_ns=process.start, alloc_time_ns=process.alloc, uid=0,
                      reason=reason, comm=process.comm)
        values.update(changed)
        # The record's own time lies between the last event and its logging.
        self.now += 100
        self.emit(cpu, kind, *(values[name] for name in mt.RMID_FIELDS))

    def write_pqr(self, cpu, rmid):
        value = (cpu + 1) << 32 | rmid
        if self.plant("closid"):
            value = 7 << 32 | rmid
        if value != self.pqr[cpu] or self.plant("rewrite"):
            self.emit(cpu, mt.MSR, 0xc8f, value)
            self.pqr[cpu] = value

    # ----------------------------------------------------------- the module

    def alloc(self, cpu, process, reason):
        if self.plant("owned twice", any(p.rmid for p in self.processes.values())):
            other = next(p for p in self.processes.values() if p.rmid)
            rmid = other.rmid
        else:
            ripe = [item for item in self.pool if item[1] + LIMBO <= self.now]
            if not ripe:
                early = [item for item in self.pool if item[1] + LIMBO > self.now + 500000]
                if not self.plant("no limbo", bool(early)):
                    return False
                ripe = early
            if self.plant("no birth rmid", reason == 1):
                return False
            self.pool.remove(ripe[0])
            rmid = ripe[0][0]
        if self.plant("rmid zero"):
            rmid = 0
        step = 2 if self.plant("generation skips", rmid in self.generation) else 1
        self.generation[rmid] = self.generation.get(rmid, 0) + step
        process.rmid = rmid
        process.generation = self.generation[rmid]
        process.alloc = self.now + 50
        changed = {}
        if self.plant("wrong tgid", len(self.processes) > 2):
            changed["tgid"] = 999999
        if self.plant("wrong start", reason == 1):
            changed["start_time_ns"] = process.start + 50 * MS
        if self.plant("wrong comm"):
            changed["comm"] = b"nobody"
        if self.plant("wrong parent", reason == 1 and process.parent.tgid != 1):
            changed["parent_tgid"] = 4242
        self.record(cpu, mt.ALLOC, process, rmid, process.generation, reason, **changed)
        return True

    def free(self, cpu, process, reason, **changed):
        rmid, generation = process.rmid, process.generation
        self.record(cpu, mt.FREE, process, rmid, generation, reason, **changed)
        process.rmid = process.generation = 0
        self.pool.append((rmid, self.now))
        if self.plant("double free"):
            self.record(cpu, mt.FREE, process, rmid, generation, reason)

    def promote(self, cpu):
        while self.waiting:
            if self.fault == "no promotion" and self.now - self.begun > 200 * MS:
                self.planted = 1
                return
            i = 0
            ripe = any(item[1] + LIMBO <= self.now for item in self.pool)
            if self.plant("overtake", ripe and len(self.waiting) > 3):
                i = len(self.waiting) - 1
            if not self.alloc(cpu, self.waiting[i], 3):
                return
            self.waiting.pop(i)

    def owner(self, pid):
        process = self.threads.get(pid)
        return process.generation << 32 | process.rmid if process is not None else 0

    def set_owner(self, cpu, pid, force=False):
        new, old = self.owner(pid), self.owner_on[cpu]
        if not self.module_on:
            return
        if self.plant("no write", new & 0xffffffff != self.pqr[cpu] & 0xffffffff):
            pass
        else:
            self.write_pqr(cpu, new & 0xffffffff)
        if force or new != old:
            self.emit(cpu, mt.MWSWITCH, self.now, old, new, pid)
        self.owner_on[cpu] = new

    def tick(self, cpu):
        if not self.module_on:
            return
        expected = self.now // MS * MS
        owner = self.owner_on[cpu]
        if self.plant("tick owner", owner != 0):
            owner = 0
        self.emit(cpu, mt.TICK, expected + (self.now - expected) // 2, expected, MS, 0, owner)
        self.promote(cpu)
        if self.plant("double write"):
            self.emit(cpu, mt.MSR, 0xc8f, self.pqr[cpu])
        if self.plant("revoke"):
            victim = next((p for p in self.processes.values()
                           if p.rmid and not p.tids & set(self.current)), None)
            if victim:
                self.free(cpu, victim, 5)
                self.waiting.append(victim)
        if self.fault == "never told" and self.now - self.begun > 200 * MS:
            self.planted = 1
            return
        self.set_owner(cpu, self.current[cpu])

    def start(self, cpu):
        self.module_on = True
        self.begun = self.now
        for process in self.processes.values():
            if not self.alloc(cpu, process, 2):
                self.waiting.append(process)

    def stop(self, cpu):
        for process in self.processes.values():
            if process.rmid and not self.plant("leftover"):
                self.free(cpu, process, 9)
        self.module_on = False
        for other in range(len(self.current)):
            value = (other + 1) << 32
            if self.pqr[other] == value:
                continue
            if self.fault == "pqr left":
                self.planted += 1
                continue
            self.emit(other, mt.MSR, 0xc8f, value)
            self.pqr[other] = value

    # ----------------------------------------------------------- the kernel

    def switch(self, cpu, pid, state=SLEEPING):
        prev = self.current[cpu]
        if pid == prev:
            return
        self.emit(cpu, mt.SWITCH, prev, state if prev else 0, pid)
        process = self.threads.get(prev)
        gone = False
        if process is not None and prev in process.exited:
            process.off.add(prev)
            gone = process.exited == process.off and not process.tids - process.exited
        self.set_owner(cpu, pid, force=True)
        if gone:
            if process in self.waiting:
                self.waiting.remove(process)
            if process.rmid and self.module_on and not self.plant("never freed"):
                self.free(cpu, process, 1 + 3)
            del self.processes[process.tgid]
        self.current[cpu] = pid

    def fork(self, cpu):
        parent = self.threads[self.current[cpu]]
        pid = self.next_pid
        self.next_pid += 1
        process = SimProcess(pid, parent, parent.comm, self.now + 10)
        self.processes[pid] = process
        self.threads[pid] = process
        self.live.append(pid)
        self.emit(cpu, mt.NEWTASK, pid, 0x1200000, parent.comm)
        self.emit(cpu, mt.FORK, self.current[cpu], pid)
        if self.module_on and (self.waiting or not self.alloc(cpu, process, 1)):
            if self.fault != "no birth rmid" or not self.planted:
                self.waiting.append(process)

    def clone_thread(self, cpu):
        process = self.threads[self.current[cpu]]
        pid = self.next_pid
        self.next_pid += 1
        process.tids.add(pid)
        self.threads[pid] = process
        self.live.append(pid)
        self.emit(cpu, mt.NEWTASK, pid, 0x10000 | 0x100, process.comm)
        self.emit(cpu, mt.FORK, self.current[cpu], pid)

    def exit(self, cpu):
        pid = self.current[cpu]
        process = self.threads[pid]
        process.exited.add(pid)
        self.live.remove(pid)
        self.emit(cpu, mt.EXIT, pid)
        if self.plant("leader frees", bool(process.rmid and pid == process.tgid and
                                           process.tids - process.exited)):
            self.free(cpu, process, 4)
        if self.plant("exit frees", bool(process.rmid and not process.tids - process.exited)):
            self.free(cpu, process, 4)
        self.switch(cpu, 0, ZOMBIE)

    def execute(self, cpu):
        pid = self.current[cpu]
        process = self.threads[pid]
        for other in sorted(process.tids - process.exited - {pid}):
            # Whoever else lives is killed first, and runs to do so.
            if other in self.current:
                return
        for other in sorted(process.tids - process.exited - {pid}):
            self.switch(cpu, other)
            self.exit(cpu)
        self.switch(cpu, pid)
        process.tids, process.exited, process.off = {process.tgid}, set(), set()
        leader = process.tgid
        comm = b"prog%d" % self.random.randrange(5)
        # de_thread: from here the thread is the leader, whatever it was called.
        self.current[cpu] = leader
        self.threads[leader] = process
        self.live.remove(pid)
        self.live.append(leader)
        self.emit(cpu, mt.RENAME, leader, comm)
        process.comm = comm
        self.emit(cpu, mt.EXEC, leader, pid)
        if process.rmid and self.module_on and not self.plant("exec silent"):
            changed = {"comm": b"other"} if self.plant("exec name") else {}
            self.record(cpu, mt.REXEC, process, process.rmid, process.generation, 7, **changed)
        if pid != leader:
            del self.threads[pid]
            if self.plant("exec loses", bool(process.rmid)):
                self.write_pqr(cpu, 0)
                self.fault = "exec loses now"
                rmid, process.rmid = process.rmid, 0
                self.switch(cpu, 0)
                self.switch(cpu, leader)
                process.rmid = rmid

    def rename(self, cpu):
        process = self.threads[self.current[cpu]]
        if self.current[cpu] != process.tgid:
            return
        comm = b"name%d" % self.random.randrange(5)
        self.emit(cpu, mt.RENAME, process.tgid, comm)
        process.comm = comm
        if process.rmid and self.module_on and not self.plant("rename silent"):
            self.record(cpu, mt.REXEC, process, process.rmid, process.generation, 8)

    def step(self):
        for cpu in range(len(self.current)):
            if self.now // MS > self.next_tick[cpu]:
                self.next_tick[cpu] = self.now // MS
                self.tick(cpu)
        cpu = self.random.randrange(len(self.current))
        pid = self.current[cpu]
        process = self.threads.get(pid)
        choice = self.random.random()
        if self.fault == "never told" and self.planted and \
           self.owner(pid) & 0xffffffff != self.pqr[cpu] & 0xffffffff:
            # Only a process that goes on running shows that nobody tells the CPU.
            self.now += MS // 2
            return
        population = len(self.processes)
        if process is None or choice < 0.35:
            ready = [p for p in self.live if p not in self.current]
            if choice < 0.1 or not ready:
                self.switch(cpu, 0)
            else:
                self.switch(cpu, self.random.choice(ready))
        elif choice < 0.55 and population < self.rmids + 6:
            self.fork(cpu)
        elif choice < 0.65:
            if len(process.tids - process.exited) < 4:
                self.clone_thread(cpu)
        elif choice < 0.85 and pid != 1 and process.tgid != 1:
            self.exit(cpu)
        elif choice < 0.92 and process.tgid != 1:
            self.execute(cpu)
        elif choice < 0.95:
            self.rename(cpu)
        else:
            self.now += self.random.randrange(400000)

    def play(self, steps):
        for i in range(steps):
            if i == 200:
                self.start(0)
            self.step()
        for cpu, pid in enumerate((1, 0)):
            self.switch(cpu, pid)
        self.stop(0)
        return self.events


# Fault -> the rule that must find it, and whether RMIDs must be plenty or scarce.
FAULTS = {
    "no write": ("R1", 12), "never told": ("R1", 6), "closid": ("R2", 12),
    "rewrite": ("R3", 12), "double write": ("R3", 12),
    "owned twice": ("R4", 12), "generation skips": ("R4", 12), "double free": ("R4", 12),
    "no limbo": ("R5", 6), "no birth rmid": ("R6", 40), "no promotion": ("R6", 6),
    "leader frees": ("R7", 40), "exit frees": ("R7", 12), "never freed": ("R7", 12),
    "exec silent": ("R8", 40), "exec name": ("R8", 40), "rename silent": ("R8", 40),
    "exec loses": ("R9", 40), "wrong tgid": ("R10", 12), "wrong start": ("R10", 40),
    "wrong comm": ("R10", 12), "wrong parent": ("R10", 40), "rmid zero": ("R11", 12),
    "tick owner": ("R12", 40), "overtake": ("R13", 6), "revoke": ("R13", 12),
    "leftover": ("R14", 12), "pqr left": ("R14", 12),
}


def judge(world, events, policy="fifo"):
    model = Model(world.rmids, LIMBO, policy)
    for pid, tgid, ppid, flags, start, _, comm in world.tasks:
        model.add_task(pid, tgid, ppid, flags, start, comm)
    model.link_parents()
    model.run(events)
    return model


# ------------------------------------------------------------------ raw pages

def field_sizes(kind):
    text = {mt.NEWTASK: ("comm",), mt.RENAME: ("newcomm",)}.get(kind, ())
    if kind in (mt.ALLOC, mt.FREE, mt.REXEC, mt.EXISTING):
        text = ("comm",)
    return text


def write_capture(directory, world, events, page_size=4096):
    """The same events as tracecap would have written them."""
    layouts = {}
    for number, (name, (kind, fields)) in enumerate(mt.FIELDS.items(), 1000):
        lines = [f"name: {name.split('.')[1]}", f"ID: {number}", "format:",
                 "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;",
                 "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;",
                 "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;"]
        code, at = "<HHi", 8
        for field in fields:
            field = field.split("|")[0]
            if field in field_sizes(kind):
                lines.append(f"\tfield:char {field}[16];\toffset:{at};\tsize:16;\tsigned:0;")
                code += "16s"
                at += 16
            else:
                lines.append(f"\tfield:u64 {field};\toffset:{at};\tsize:8;\tsigned:0;")
                code += "Q"
                at += 8
        layouts[kind] = (number, struct.Struct(code))
        with open(os.path.join(directory, "format." + name), "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
    for cpu in range(len(world.current)):
        pages, data, base, last = [], b"", None, 0

        def close():
            if data:
                pages.append((struct.pack("<QQ", base, len(data)) + data).ljust(page_size, b"\0"))

        for event in events:
            if event[1] != cpu:
                continue
            number, layout = layouts[event[3]]
            payload = layout.pack(number, 0, *event[4:-1])
            payload = payload.ljust((len(payload) + 3) // 4 * 4, b"\0")
            if base is None or len(data) + len(payload) + 20 > page_size - 16:
                close()
                data, base, last = b"", event[0], event[0]
            delta = event[0] - last
            if delta >= 1 << 27:
                data += struct.pack("<II", 30 | (delta & (1 << 27) - 1) << 5, delta >> 27)
                delta = 0
            if len(payload) <= 112:
                data += struct.pack("<I", len(payload) // 4 | delta << 5) + payload
            else:
                data += struct.pack("<II", delta << 5, len(payload) + 4) + payload
            last = event[0]
        close()
        with open(os.path.join(directory, f"cpu{cpu}.raw"), "wb") as out:
            out.write(b"".join(pages))
        with open(os.path.join(directory, f"cpu{cpu}.stats"), "w", encoding="utf-8") as out:
            out.write("entries: 0\noverrun: 0\ncommit overrun: 0\ndropped events: 0\n")
    with open(os.path.join(directory, "meta"), "w", encoding="utf-8") as out:
        out.write(f"page_size {page_size}\n")
    with open(os.path.join(directory, "tasks"), "wb") as out:
        for pid, tgid, ppid, flags, start, state, comm in world.tasks:
            out.write(b"%d %d %d %d %d %s %s\n" % (pid, tgid, ppid, flags, start, state, comm))


def run_program(directory, *more):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model-check")
    return subprocess.run([sys.executable, program, "--rmids", "12", *more, directory],
                          capture_output=True, text=True, check=False)


class Tap:
    def __init__(self):
        self.count = self.failures = 0

    def ok(self, good, what, details=""):
        self.count += 1
        self.failures += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {what}")
        if not good and details:
            print("\n".join("# " + line for line in details.split("\n")[:40]))


def test_pages(tap):
    world = World(5, 12)
    events = world.play(6000)
    with tempfile.TemporaryDirectory() as directory:
        write_capture(directory, world, events)
        read = list(mt.read_events(directory))
        tap.ok(sorted(events) == read, "pages: what was written is read back")
        clean = run_program(directory, "--optional", "R13")
        tap.ok(clean.returncode == 0, "pages: a clean capture passes", clean.stdout + clean.stderr)
        few = run_program(directory, "--optional", "R13", "--min-lifetimes", "1000000")
        tap.ok(few.returncode == 1 and "INVALID: only" in few.stdout,
               "pages: too few lifetimes are refused")
        path = os.path.join(directory, "cpu1.stats")
        with open(path, "w", encoding="utf-8") as out:
            out.write("entries: 0\noverrun: 3\ndropped events: 0\n")
        lost = run_program(directory)
        tap.ok(lost.returncode == 1 and "INVALID: CPU 1 lost events" in lost.stdout,
               "pages: an overrun in the counters is refused")
        with open(path, "w", encoding="utf-8") as out:
            out.write("overrun: 0\n")
        path = os.path.join(directory, "cpu0.raw")
        with open(path, "r+b") as out:
            out.seek(4096 + 8)
            commit, = struct.unpack("<Q", out.read(8))
            out.seek(4096 + 8)
            out.write(struct.pack("<Q", commit | 1 << 31))
        lost = run_program(directory)
        tap.ok(lost.returncode == 1 and "lost events before" in lost.stdout,
               "pages: a page that tells of lost events is refused")
        with open(path, "r+b") as out:
            out.truncate(os.path.getsize(path) - 100)
        cut = run_program(directory)
        tap.ok(cut.returncode == 1 and "INVALID" in cut.stdout,
               "pages: a capture cut short is refused")
        os.unlink(os.path.join(directory, "format.msr.write_msr"))
        missing = run_program(directory)
        tap.ok(missing.returncode == 1 and "has no event msr.write_msr" in missing.stdout,
               "pages: a capture without the MSR log is refused")


def main():
    tap = Tap()
    print("TAP version 13")
    print(f"1..{7 + 8 + len(FAULTS) + 2}")
    for seed, rmids in ((1, 6), (2, 6), (3, 12), (4, 12), (5, 24), (6, 40), (7, 40), (8, 8)):
        world = World(seed, rmids)
        model = judge(world, world.play(8000))
        text = "\n".join(e for rule in RULES for e in model.examples[rule])
        tap.ok(not sum(model.violations.values()), f"clean log {seed} with {rmids} RMIDs passes",
               text)
    found = set()
    for fault, (rule, rmids) in FAULTS.items():
        for seed in range(20):
            world = World(seed, rmids, fault)
            events = world.play(8000)
            if world.planted:
                break
        model = judge(world, events)
        good = world.planted and model.violations[rule] > 0
        if good:
            found.add(rule)
        tap.ok(good, f"fault '{fault}' is found by {rule}",
               f"planted {world.planted}, violations {dict(model.violations)}")
    world = World(2, 6)
    model = judge(world, world.play(8000), "active")
    tap.ok(model.violations["R13"] > 0, "a module that serves in order is not taken for active")
    tap.ok(found == set(RULES), "every rule has found a fault", f"{sorted(set(RULES) - found)}")
    test_pages(tap)
    return 1 if tap.failures else 0


if __name__ == "__main__":
    sys.exit(main())
