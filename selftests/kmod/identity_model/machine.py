# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""A simulated machine that writes the log which the identity model judges.

Two CPUs run a random scheduler and a module that behaves as it should, or that has one
planted fault. It is a second description of the module, independent of the model.
"""

import random

from . import trace

MS = 1000000
LIMBO = 2 * MS
RUNNING, SLEEPING, ZOMBIE, PREEMPTED = 0, 1, 0x20, 0x100
WARM_UP = 200 * MS		# a fault is planted no earlier in the session


class SimulatedProcess:
    """tids, exited, off: its threads, those that have exited, those switched out after that."""

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


class Machine:
    """
    fault: the name of the fault to plant, see plant(); planted: how often that was done.
    events: the log. tasks: the tasks at its beginning. By CPU: current is the pid that runs,
    pqr the register, owner_on what the module last reported. pool: pairs of a free RMID and
    when it was freed, the oldest first. waiting: processes without an RMID, in order. live:
    pids that can be switched in. begun: when the session started.
    """

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
        init = SimulatedProcess(1, None, b"init", 1)
        self.processes[1] = init
        self.threads[1] = init
        self.tasks.append((1, 1, 0, 0, 0, b"S", b"init"))
        self.threads[2] = None
        self.tasks.append((2, 2, 0, 0x200000, 0, b"S", b"kthreadd"))

    # ------------------------------------------------------------- the log

    def emit(self, cpu, kind, *fields, pid=None):
        self.now += self.random.randrange(200, 100000)
        self.events.append((self.now, cpu, self.prev_ts[cpu], kind,
                            self.current[cpu] if pid is None else pid) + fields + (0,))
        self.prev_ts[cpu] = self.now

    def plant(self, fault, ready=True):
        """True once, if this is the fault to plant and the session has run for a while."""
        if self.fault != fault or self.planted or not ready or not self.module_on or \
           self.now - self.begun < WARM_UP:
            return False
        self.planted += 1
        return True

    def record(self, cpu, kind, process, rmid, generation, reason, **changed):
        values = dict(time_ns=self.now + 50, rmid=rmid, generation=generation,
                      tgid=process.tgid, parent_tgid=process.parent.tgid if process.parent else 0,
                      start_time_ns=process.start, alloc_time_ns=process.alloc, uid=0,
                      reason=reason, comm=process.comm)
        values.update(changed)
        # The time in the record lies between the previous event and the one that logs it.
        self.now += 100
        self.emit(cpu, kind, *(values[name] for name in trace.RMID_FIELDS))

    def write_pqr(self, cpu, rmid):
        value = (cpu + 1) << 32 | rmid
        if self.plant("closid"):
            value = 7 << 32 | rmid
        if value != self.pqr[cpu] or self.plant("rewrite"):
            self.emit(cpu, trace.MSR, 0xc8f, value)
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
        self.record(cpu, trace.ALLOC, process, rmid, process.generation, reason, **changed)
        return True

    def free(self, cpu, process, reason, **changed):
        rmid, generation = process.rmid, process.generation
        self.record(cpu, trace.FREE, process, rmid, generation, reason, **changed)
        process.rmid = process.generation = 0
        self.pool.append((rmid, self.now))
        if self.plant("double free"):
            self.record(cpu, trace.FREE, process, rmid, generation, reason)

    def promote(self, cpu):
        while self.waiting:
            if self.fault == "no promotion" and self.now - self.begun > WARM_UP:
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
            self.emit(cpu, trace.MWSWITCH, self.now, old, new, pid)
        self.owner_on[cpu] = new

    def tick(self, cpu):
        if not self.module_on:
            return
        expected = self.now // MS * MS
        owner = self.owner_on[cpu]
        if self.plant("tick owner", owner != 0):
            owner = 0
        self.emit(cpu, trace.TICK, expected + (self.now - expected) // 2, expected, MS, 0, owner)
        self.promote(cpu)
        if self.plant("double write"):
            self.emit(cpu, trace.MSR, 0xc8f, self.pqr[cpu])
        idle = [p for p in self.processes.values()
                if p.rmid and not p.tids & set(self.current)]
        if self.plant("revoke", bool(idle)):
            # The one that has had its RMID for the shortest time.
            victim = max(idle, key=lambda p: p.alloc)
            self.free(cpu, victim, 5)
            self.waiting.append(victim)
        if self.fault == "never told" and self.now - self.begun > WARM_UP:
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
            self.emit(other, trace.MSR, 0xc8f, value)
            self.pqr[other] = value

    # ----------------------------------------------------------- the kernel

    def switch(self, cpu, pid, state=SLEEPING):
        prev = self.current[cpu]
        if pid == prev:
            return
        self.emit(cpu, trace.SWITCH, prev, state if prev else 0, pid)
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
        process = SimulatedProcess(pid, parent, parent.comm, self.now + 10)
        self.processes[pid] = process
        self.threads[pid] = process
        self.live.append(pid)
        self.emit(cpu, trace.NEWTASK, pid, 0x1200000, parent.comm)
        self.emit(cpu, trace.FORK, self.current[cpu], pid)
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
        self.emit(cpu, trace.NEWTASK, pid, 0x10000 | 0x100, process.comm)
        self.emit(cpu, trace.FORK, self.current[cpu], pid)

    def exit(self, cpu):
        pid = self.current[cpu]
        process = self.threads[pid]
        process.exited.add(pid)
        self.live.remove(pid)
        self.emit(cpu, trace.EXIT, pid)
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
            # The kernel kills the other threads first. They run to exit, here on this CPU.
            if other in self.current:
                return
        for other in sorted(process.tids - process.exited - {pid}):
            self.switch(cpu, other)
            self.exit(cpu)
        self.switch(cpu, pid)
        process.tids, process.exited, process.off = {process.tgid}, set(), set()
        leader = process.tgid
        comm = b"prog%d" % self.random.randrange(5)
        # From here on the thread has the pid of the leader.
        self.current[cpu] = leader
        self.threads[leader] = process
        self.live.remove(pid)
        self.live.append(leader)
        self.emit(cpu, trace.RENAME, leader, comm)
        process.comm = comm
        if process.rmid and self.module_on and self.random.random() < 0.2:
            self.filter_preempted(cpu)
        self.emit(cpu, trace.EXEC, leader, pid)
        if process.rmid and self.module_on and not self.plant("exec silent"):
            changed = {"comm": b"other"} if self.plant("exec name") else {}
            self.record(cpu, trace.REXEC, process, process.rmid, process.generation, 7, **changed)
        if pid != leader:
            del self.threads[pid]
            if self.plant("exec loses", bool(process.rmid)):
                self.write_pqr(cpu, 0)
                self.fault = "exec loses now"
                rmid, process.rmid = process.rmid, 0
                self.switch(cpu, 0)
                self.switch(cpu, leader)
                process.rmid = rmid

    def filter_preempted(self, cpu):
        """The process loses its RMID some ticks later, while it is preempted."""
        pid = self.current[cpu]
        self.switch(cpu, 0, PREEMPTED)
        for _ in range(5):
            self.now += MS
            for other in range(len(self.current)):
                self.tick(other)
        self.free(cpu, self.threads[pid], 6)
        self.switch(cpu, pid)

    def rename(self, cpu):
        process = self.threads[self.current[cpu]]
        if self.current[cpu] != process.tgid:
            return
        comm = b"name%d" % self.random.randrange(5)
        self.emit(cpu, trace.RENAME, process.tgid, comm)
        process.comm = comm
        if self.plant("rename silent, filtered", bool(process.rmid)):
            self.filter_preempted(cpu)
        elif process.rmid and self.module_on and not self.plant("rename silent"):
            self.record(cpu, trace.REXEC, process, process.rmid, process.generation, 8)

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
            # The process keeps running: the model finds the wrong PQR only after some ticks.
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
