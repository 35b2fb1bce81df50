# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""The identity model: what the module must have done, told from the kernel's log.

Who is a thread of which process comes from the task and sched events alone. What
PQR_ASSOC held comes from the MSR events alone. The module's own records are
claims: they say which RMID a process was given, and each one is checked.

Time. The CPUs of an emulated machine stop for milliseconds whenever the host has
something better to do, between any two instructions. Verdicts therefore rest on
the order of events, not on durations, wherever that is possible:

  - What a CPU did to the state, and then logged, it did at some moment between
    the event before and the event after on that CPU, interrupts of it aside: the
    window of the change. A second CPU that looked inside this window may have
    seen either value.
  - "Soon" is counted in ticks of the CPU that has to act, not in time.

Durations are used only as lower bounds (limbo), which a stall cannot break.
"""

import collections

from .trace import (ALLOC, DUMP_BEGIN, DUMP_END, EXEC, EXISTING, EXIT, FORK, FREE, MSR, MWSWITCH,
                     NEWTASK, R_ALLOC, R_COMM, R_GEN, R_PARENT, R_REASON, R_RMID, R_START, R_TGID,
                     R_TIME, RENAME, REXEC, SWITCH, TASKFREE, TICK, CPU_STATE)

RULES = {
    "R1": "PQR is the RMID of the process that runs",
    "R2": "the CLOSID never changes",
    "R3": "no write of an unchanged value",
    "R4": "one owner at a time, generations count up by one",
    "R5": "limbo between last use and next owner",
    "R6": "a free RMID goes to a newborn at once, to a waiting process soon",
    "R7": "the last thread frees, soon and not before",
    "R8": "an exec or rename is reported under the right name",
    "R9": "exec by another thread than the leader keeps the RMID",
    "R10": "records carry the identity of the process",
    "R11": "RMID 0 is never given, and none beyond the last",
    "R12": "tick and switch records name the owner that PQR names",
    "R13": "the policy picks the right process",
    "R14": "a stopped session leaves nothing behind",
}

CLONE_THREAD = 0x10000
CLONE_PARENT = 0x8000
PF_KTHREAD = 0x200000
DEAD_STATES = 0x30		# EXIT_DEAD, EXIT_ZOMBIE as sched_switch prints them
PREEMPTED = 0x100

REASON_FORK, REASON_SCAN, REASON_PROMOTED, REASON_EXIT, REASON_REVOKED = 1, 2, 3, 4, 5
REASON_FILTERED, REASON_EXEC, REASON_COMM, REASON_STOP = 6, 7, 8, 9

STATE_STOPPED = 5

FOREVER = 1 << 62
MS = 1000000
GRACE = 1 * MS			# accepted between a change and a switch, on top of the window
TICKS = 3			# the third tick after it proves that two whole periods passed
START = 500 * MS		# by then every CPU must have heard of a session's start
SETTLE = 100 * MS		# around the start and the stop of a session
ACTIVE_TICKS = 40		# active policy: a process that runs this long must have an RMID
IDLE_SLACK = 20 * MS		# active policy: how exactly "longest idle" is taken
LATELY = 20			# active policy: who ran within so many ticks of every CPU counts as running

RUNNABLE_CLAIMS = frozenset((MSR, MWSWITCH, ALLOC, FREE, REXEC, EXISTING, CPU_STATE))
# What the module says about the fork, exec or exit that was logged just before.
ECHOES = frozenset((MSR, MWSWITCH, ALLOC, FREE, REXEC, EXISTING, CPU_STATE))


class Thread:
    __slots__ = ("pid", "process", "exited", "done", "member", "undead")

    def __init__(self, pid, process):
        self.pid = pid
        self.process = process
        self.exited = False
        self.done = False
        self.undead = False
        self.member = True	# until an exec by another thread ends it


class Change:
    """An RMID given or taken, and when that may have become visible."""
    __slots__ = ("old", "new", "begin", "end", "level")

    def __init__(self, old, new, begin, level):
        self.level = level
        self.old = old
        self.new = new
        self.begin = begin
        self.end = FOREVER


class Process:
    __slots__ = ("tgid", "kernel", "comm", "old_comm", "renamed_at", "parent", "born", "start_ns",
                 "start_ticks", "threads", "alive", "undone", "rmid", "generation", "alloc_ns",
                 "changes", "renamed_end", "exec_pending", "comm_pending", "freed", "last_run", "known",
                 "nonleader", "off_ns", "off_cpu", "really_gone", "chosen")

    def __init__(self, tgid, parent, kernel, comm, born):
        self.tgid = tgid
        self.parent = parent
        self.kernel = kernel
        self.comm = comm
        self.old_comm = comm
        self.renamed_at = -FOREVER
        self.born = born
        self.start_ns = None
        self.start_ticks = None
        self.threads = {}
        self.alive = 0		# threads without an exit event
        self.undone = 0		# threads that may run again
        self.rmid = 0
        self.generation = 0
        self.alloc_ns = 0
        self.changes = []
        self.renamed_end = -FOREVER
        self.exec_pending = None
        self.comm_pending = None
        self.freed = False
        self.last_run = born
        self.chosen = None	# last_run when the policy took its RMID, if it ran since
        self.known = True
        self.nonleader = None
        self.off_ns = 0
        self.off_cpu = None
        self.really_gone = False

    def __repr__(self):
        return f"{self.tgid}({self.comm.decode('latin-1')})"


class Cpu:
    __slots__ = ("number", "pqr", "thread", "switch_ts", "switch_next", "last_ts", "ticks",
                 "stale_ticks", "open_changes", "await_free", "wait_ticks", "owner",
                 "run_ticks", "events", "armed", "leaving", "claim_ts", "claim_begin",
                 "wait_process", "wait_from", "last_task_ts", "tick_times")

    def __init__(self, number, pqr):
        self.number = number
        self.pqr = pqr
        self.thread = None
        self.switch_ts = None	# a switch whose PQR write is still to come
        self.switch_next = 0
        self.last_ts = 0
        self.ticks = 0
        self.stale_ticks = 0
        self.open_changes = []
        self.await_free = []
        self.wait_ticks = 0
        self.owner = None
        self.run_ticks = 0
        self.events = collections.deque(maxlen=12)
        self.armed = False	# has spoken since the session began
        self.leaving = None
        self.claim_ts = -1	# the last claim, and where the batch that it ends began
        self.claim_begin = 0
        self.wait_process = None
        self.wait_from = None
        self.last_task_ts = 0	# of the last event that was not in an interrupt
        self.tick_times = collections.deque(maxlen=LATELY + 1)


class Model:
    def __init__(self, rmids, limbo_ns=2 * MS, policy="fifo", first_session=True, keep=5):
        self.rmids = rmids
        self.limbo_ns = limbo_ns
        self.policy = policy
        self.first_session = first_session
        self.keep = keep
        self.cpus = {}
        self.threads = {}
        self.leaders = {}
        self.owner = {}
        self.generation = {}
        self.free = {rmid: -FOREVER for rmid in range(1, rmids + 1)}
        self.last_use = {}
        self.waiters = {}
        self.deferred = []
        self.birth_doubts = []
        self.unsettled = {}	# pid: what it did and the module has not answered yet
        self.doubts = []	# (rule, time, event, process, RMID, text, context)
        self.last_start = {}
        self.started = None
        self.stopping = None
        self.now = 0
        self.checks = collections.Counter()
        self.violations = collections.Counter()
        self.examples = collections.defaultdict(list)
        self.stats = collections.Counter()
        self.snapshots_invalid = None
        self.last_tick_ts = 0
        self.promote_worst = 0
        self.tasks_until = 0
        self.idle = Process(0, None, True, b"swapper", 0)
        self.dispatch = {
            SWITCH: self.on_switch, NEWTASK: self.on_newtask, FORK: self.on_fork,
            EXEC: self.on_exec, EXIT: self.on_exit, RENAME: self.on_rename, MSR: self.on_msr,
            ALLOC: self.on_alloc, FREE: self.on_free, REXEC: self.on_rexec,
            EXISTING: self.on_existing, TICK: self.on_tick, MWSWITCH: self.on_mwswitch,
            TASKFREE: self.on_nothing, DUMP_BEGIN: self.on_nothing, DUMP_END: self.on_nothing,
            CPU_STATE: self.on_cpu_state,
        }

    # ------------------------------------------------------------ verdicts

    def violation(self, rule, event, text):
        self.violations[rule] += 1
        if len(self.examples[rule]) < self.keep:
            ts, number = event[0], event[1]
            context = [f"    {self.describe(e)}" for e in self.cpus[number].events]
            self.examples[rule].append(f"{rule} at {ts} on CPU {number}: {text}\n" +
                                       "\n".join(context))

    @staticmethod
    def describe(event):
        from .trace import FIELDS
        for name, (kind, fields) in FIELDS.items():
            if kind == event[3]:
                values = " ".join(f"{field.split('|')[0]}={value}"
                                  for field, value in zip(fields, event[5:]))
                return f"{event[0]} cpu{event[1]} pid={event[4]} {name.split('.')[1]}: {values}"
        return str(event)

    # ---------------------------------------------------------- population

    def add_task(self, pid, tgid, ppid, flags, start_ticks, comm):
        """A task that existed when the capture began."""
        process = self.leaders.get(tgid)
        if process is None or pid == tgid:
            if process is None:
                process = Process(tgid, None, bool(flags & PF_KTHREAD), comm, -1)
                self.leaders[tgid] = process
            if pid == tgid:
                process.comm = process.old_comm = comm
                process.start_ticks = start_ticks
                process.parent = ppid
        self.add_thread(process, pid)

    def link_parents(self):
        for process in self.leaders.values():
            if isinstance(process.parent, int):
                process.parent = self.leaders.get(process.parent)

    def add_thread(self, process, pid):
        thread = Thread(pid, process)
        process.threads[pid] = thread
        process.alive += 1
        process.undone += 1
        self.threads[pid] = thread
        return thread

    def thread_of(self, pid):
        thread = self.threads.get(pid)
        if thread is None:
            if pid == 0:
                process = self.idle
            else:
                process = Process(pid, None, False, b"?", self.now)
                process.known = False
                self.stats["unknown tasks"] += 1
                if self.started is not None:
                    self.stats["unknown tasks in a session"] += 1
            thread = self.add_thread(process, pid)
        return thread

    # --------------------------------------------------------------- driver

    def feed(self, event):
        number = event[1]
        kind = event[3]
        self.now = event[0]
        cpu = self.cpus.get(number)
        if cpu is None:
            cpu = self.cpus[number] = Cpu(number, (number + 1) << 32)
        if cpu.open_changes and kind not in (MSR, MWSWITCH):
            self.close_changes(cpu, event)
        # The hook still runs as the task that leaves, whose pid may just have changed
        # hands in an exec: whatever is not logged by the next task is the hook's.
        if cpu.switch_ts is not None and not (event[4] != cpu.switch_next and
                                              kind in RUNNABLE_CLAIMS):
            self.judge_switch(cpu, event)
        if not event[-1]:
            # A probe may be preempted between the log's line and the module's turn.
            if event[4] in self.unsettled and kind not in ECHOES and \
               not (kind == SWITCH and event[6] & PREEMPTED):
                self.step(cpu, event)
            cpu.last_task_ts = event[0]
        cpu.events.append(event)
        self.dispatch[kind](cpu, event)
        cpu.last_ts = event[0]

    def step(self, cpu, event):
        """The task goes on with its work: whatever it did before is complete."""
        items = self.unsettled.pop(event[4])
        revoked = [item for what, item in items if what == "revoked"]
        if revoked:
            self.judge_revoked(revoked)
        for what, item in items:
            if what == "revoked":
                continue
            if what == "birth":
                self.judge_birth(cpu, event, *item)
            elif what == "rename":
                item.renamed_end = event[0]
            elif item[0].exec_pending is item[1]:
                self.exec_missing(item[0], event)

    def unsettle(self, event, what, item):
        self.unsettled.setdefault(event[4], []).append((what, item))

    def run(self, events):
        feed = self.feed
        for event in events:
            feed(event)
        self.finish()

    def on_nothing(self, cpu, event):
        pass

    def on_cpu_state(self, cpu, event):
        if event[6] == STATE_STOPPED and self.started is not None:
            # The first sign of the end: from here on the promises end one by one.
            self.stopping = event[0]

    @staticmethod
    def close_changes(cpu, event):
        end, level = event[0] + GRACE, event[-1]
        for change in cpu.open_changes:
            if level <= change.level:
                change.end = end
        cpu.open_changes = [c for c in cpu.open_changes if level > c.level]

    def quiet(self):
        """Between the first record of a stop and its end nothing is promised."""
        if self.stopping is None:
            return False
        if self.now - self.stopping > SETTLE:
            self.end_session()
            return False
        return True

    def end_session(self):
        self.stopping = None
        if not self.owner:
            self.started = None
        self.waiters.clear()
        for cpu in self.cpus.values():
            cpu.owner = None
            cpu.armed = False
            cpu.await_free.clear()

    # ------------------------------------------------------------ R1, R2, R3

    def judge_switch(self, cpu, event):
        """The switch is over: what does PQR hold while the new task runs?"""
        begin = cpu.switch_ts
        cpu.switch_ts = None
        if cpu.leaving is not None:
            cpu.leaving.really_gone = True
            cpu.leaving = None
        if self.quiet():
            return
        if not cpu.armed and self.started is not None and begin - self.started < START:
            # The session's start has not reached this CPU yet.
            return
        process = cpu.thread.process
        if not process.known:
            return
        self.checks["R1"] += 1
        if process.nonleader is not None:
            self.checks["R9"] += 1
        actual = cpu.pqr & 0xffffffff
        if actual == process.rmid:
            return
        end = event[0]
        for change in process.changes:
            if change.begin <= end and change.end >= begin and actual in (change.old, change.new):
                self.stats["R1 switches inside a change"] += 1
                return
        self.deferred.append((end, event, process, actual, process.rmid, cpu.number,
                              list(cpu.events)))

    def settle(self):
        """Doubts that no later event can remove any more become violations."""
        horizon = min(cpu.last_task_ts for cpu in self.cpus.values()) - GRACE
        if self.deferred and self.deferred[0][0] < horizon:
            rest = []
            for doubt in self.deferred:
                if doubt[0] < horizon and not self.may_be_revoked(doubt):
                    self.deferred_violation(doubt)
                else:
                    rest.append(doubt)
            self.deferred = rest
        if self.doubts and self.doubts[0][1] < horizon:
            rest = []
            for doubt in self.doubts:
                if doubt[1] < horizon and not self.may_be_undead(doubt):
                    self.doubt_violation(doubt)
                else:
                    rest.append(doubt)
            self.doubts = rest
        if self.birth_doubts and self.birth_doubts[0][0] < horizon:
            rest = []
            for doubt in self.birth_doubts:
                if doubt[0] >= horizon:
                    rest.append(doubt)
                elif doubt[2]:
                    self.birth_violation(doubt)
            self.birth_doubts = rest

    def may_be_revoked(self, doubt):
        """An owner that runs on RMID 0: the policy's worker has still to say that it chose it."""
        return self.policy == "active" and doubt[3] == 0 and self.ticks_since(doubt[0]) <= LATELY

    def may_be_undead(self, doubt):
        """PREEMPT_RT: what left the CPU dead may have waited for a lock, and comes again."""
        return doubt[0] == "R7" and self.ticks_since(doubt[1]) <= LATELY

    def deferred_violation(self, doubt):
        _, event, process, actual, expected, number, context = doubt
        saved = self.cpus[number].events
        self.cpus[number].events = context
        self.violation("R1", event, f"{process!r} runs with RMID {actual}, its own is {expected}")
        if process.nonleader is not None:
            self.violation("R9", event, f"{process!r} lost its RMID by an exec of a thread")
        self.cpus[number].events = saved

    def doubt_violation(self, doubt):
        rule, _, event, _, _, text, context = doubt
        cpu = self.cpus[event[1]]
        saved, cpu.events = cpu.events, context
        self.violation(rule, event, text)
        cpu.events = saved

    def birth_violation(self, doubt):
        _, event, ripe, process = doubt
        self.violation("R6", event,
                       f"{process!r} was born without an RMID while {sorted(ripe)} were free")

    def change(self, cpu, process, old, new, event):
        # One batch of records may follow one batch of changes.
        if event[2] != cpu.claim_ts:
            cpu.claim_begin = event[2]
        cpu.claim_ts = event[0]
        begin = min(cpu.claim_begin, event[0] - GRACE)
        change = Change(old, new, begin, event[-1])
        process.changes = [c for c in process.changes if c.end > self.now - 1000 * MS][-7:]
        process.changes.append(change)
        cpu.open_changes.append(change)
        if self.deferred:
            self.deferred = [d for d in self.deferred
                             if not (d[2] is process and begin <= d[0] and d[3] in (old, new))]
        if self.doubts and event[R_REASON] != REASON_EXIT:
            # It was taken away at some moment since then, by a CPU that was slow to say so.
            self.doubts = [d for d in self.doubts
                           if not (d[3] is process and begin <= d[1] and d[4] == old)]

    def on_msr(self, cpu, event):
        if event[5] != 0xc8f:
            return
        value = event[6]
        old = cpu.pqr
        self.checks["R2"] += 1
        if value >> 32 != cpu.number + 1:
            self.violation("R2", event, f"CLOSID is {value >> 32}, must be {cpu.number + 1}")
        self.checks["R3"] += 1
        if value == old:
            self.violation("R3", event, f"{value:#x} written again")
        rmid = value & 0xffffffff
        self.checks["R11"] += 1
        if rmid > self.rmids:
            self.violation("R11", event, f"PQR holds RMID {rmid} of {self.rmids}")
        before = old & 0xffffffff
        if before:
            used = event[0] if cpu.switch_ts is None else cpu.switch_ts
            if used > self.last_use.get(before, 0):
                self.last_use[before] = used
        cpu.pqr = value
        if cpu.thread is not None and rmid == cpu.thread.process.rmid:
            cpu.stale_ticks = 0

    # ------------------------------------------------------ life of processes

    def on_switch(self, cpu, event):
        ts, prev_pid, prev_state, next_pid = event[0], event[5], event[6], event[7]
        # Whoever we saw coming: its pid may be another one since, after an exec.
        prev = cpu.thread or self.thread_of(prev_pid)
        process = prev.process
        if not process.rmid or cpu.pqr & 0xffffffff:
            process.chosen = None
        elif process.chosen is None:
            # An owner on RMID 0: it was chosen as idle before it came here.
            process.chosen = process.last_run
        process.last_run = ts
        if process.rmid and self.last_use.get(process.rmid, 0) < ts:
            self.last_use[process.rmid] = ts
        dead = prev_state & DEAD_STATES and not prev_state & PREEMPTED
        if dead and not prev.exited:
            # The dead leader, under the number of the thread that took its own.
            leader = process.threads.get(process.tgid)
            if leader is not None and leader.exited and not leader.done:
                prev = leader
        if dead and prev.exited:
            if not prev.done and prev.member:
                prev.done = True
                process.undone -= 1
                process.off_ns = ts
                if not process.undone:
                    self.on_gone(cpu, process, event)
        thread = self.threads.get(next_pid) or self.thread_of(next_pid)
        if thread.done and thread.exited and thread.member:
            self.on_undead(cpu, thread, event)
        cpu.thread = thread
        cpu.switch_ts = ts
        cpu.switch_next = next_pid
        cpu.stale_ticks = 0
        if thread.process is not process:
            cpu.run_ticks = 0
            cpu.wait_process = None
        if thread.process.freed:
            self.violation("R7", event, f"{thread.process!r} runs again after its RMID was freed")

    def on_gone(self, cpu, process, event):
        """Its last thread has left the CPU for the last time."""
        self.stats["processes gone"] += 1
        self.waiters.pop(process, None)
        process.off_cpu = cpu
        cpu.leaving = process
        if process.rmid and self.started is not None and not self.quiet():
            cpu.await_free.append((process, process.generation, event))

    def on_undead(self, cpu, thread, event):
        """Was switched out dead, or its pid is back before our log says so."""
        thread.done = False
        thread.undead = True
        thread.process.undone += 1
        thread.process.really_gone = False
        self.stats["dead threads that ran again"] += 1
        self.doubts = [d for d in self.doubts if d[0] != "R7" or d[3] is not thread.process]

    def on_newtask(self, cpu, event):
        parent_thread = self.thread_of(event[4])
        pid, flags, comm = event[5], event[6], event[7]
        parent = parent_thread.process
        if flags & CLONE_THREAD:
            self.add_thread(parent, pid)
            self.stats["threads born"] += 1
            return
        if flags & CLONE_PARENT:
            parent = parent.parent
        creator = parent_thread.process
        process = Process(pid, parent, creator.kernel, comm, event[0])
        process.known = creator.known
        self.leaders[pid] = process
        self.add_thread(process, pid)
        if not process.kernel:
            self.stats["processes born"] += 1

    def on_fork(self, cpu, event):
        thread = self.threads.get(event[6])
        if thread is None or thread.process.tgid != event[6] or thread.process.kernel:
            return
        process = thread.process
        if self.quiet() or self.started is None:
            return
        if event[0] - self.started < SETTLE:
            # Born into the start-up scan, which may or may not know it yet.
            self.wait(process, event[0])
            return
        ripe = None
        if not self.waiters:
            ripe = {rmid for rmid, since in self.free.items() if since + self.limbo_ns < event[0]}
        self.unsettle(event, "birth", (process, ripe, event))

    def judge_birth(self, cpu, event, process, ripe, born):
        if ripe is not None:
            self.checks["R6"] += 1
        if process.rmid or process.freed or self.started is None:
            return
        if process.undone:
            self.wait(process, born[0], event[0])
        if ripe:
            # Another CPU may have taken them before we looked, and say so later.
            self.birth_doubts.append((event[0], born, ripe, process))

    def wait(self, process, since, certain=None):
        if process.rmid or process.kernel or not process.known or process in self.waiters:
            return
        # It waits since some moment between the two.
        self.waiters[process] = (since, since if certain is None else certain)

    def on_exec(self, cpu, event):
        pid, old_pid = event[5], event[6]
        thread = self.threads.get(old_pid)
        process = self.leaders.get(pid)
        if process is None:
            process = self.thread_of(pid).process
        if old_pid != pid and thread is not None and thread.process is process:
            # The thread has taken the leader's place and number. The others have
            # exited, but some may still be on their way off a CPU.
            self.stats["execs by another thread"] += 1
            del self.threads[old_pid]
            others = [other for other in process.threads.values() if other is not thread]
            for other in others:
                # It was not the dead leader that ran, but its successor.
                other.done |= other.undead
                other.undead = False
                other.member = not other.done
                if other.pid == pid and other.member:
                    # The leader goes on to die under the number that is free now.
                    other.pid = old_pid
                    self.threads[old_pid] = other
            process.threads = {pid: thread}
            thread.pid = pid
            self.threads[pid] = thread
            cpu.thread = thread
            process.nonleader = process.generation
            self.checks["R9"] += 1
            if self.leaders.get(pid) is not process or thread.exited:
                self.violation("R9", event, f"{process!r} executes but is not alive")
        else:
            thread = self.threads.get(pid) or self.thread_of(pid)
            others = [other for other in process.threads.values() if other is not thread]
            process.threads = {pid: thread}
            process.nonleader = None
        process.alive = 1
        process.undone = 1 + sum(not other.done for other in others)
        process.really_gone = False
        self.stats["execs"] += 1
        process.comm_pending = None
        if process.kernel:
            # A helper that the kernel started: from now on it is a user's process.
            process.kernel = False
            self.stats["kernel threads that executed"] += 1
            if self.started is not None:
                self.wait(process, event[0])
        elif self.started is not None and not self.quiet():
            # Without an RMID it may get one before the module sees this exec.
            process.exec_pending = (process.comm, event, process.rmid)
            self.unsettle(event, "exec", (process, process.exec_pending))

    def on_exit(self, cpu, event):
        thread = self.threads.get(event[5])
        if thread is None:
            return
        if thread.pid != event[5] or thread.exited:
            # The old leader's number, taken by the thread that will execute.
            thread = cpu.thread if cpu.thread is not None else thread
        if thread.exited:
            return
        thread.exited = True
        process = thread.process
        process.alive -= 1
        if thread.pid == process.tgid and process.alive > 0:
            self.stats["leaders that left first"] += 1

    def on_rename(self, cpu, event):
        pid, comm = event[5], event[6]
        process = self.leaders.get(pid)
        if process is None:
            return
        self.rename_missing(process, event)
        process.old_comm = process.comm
        process.comm = comm
        process.renamed_at = event[0]
        process.renamed_end = FOREVER
        self.unsettle(event, "rename", process)
        if process.rmid and self.started is not None and not self.quiet() and process.undone:
            process.comm_pending = (comm, cpu.number, cpu.ticks, event)
            self.stats["leader renames"] += 1

    # ---------------------------------------------------------------- claims

    def identity(self, process, event):
        """What every record about a process must say."""
        self.checks["R10"] += 1
        if process.tgid != event[R_TGID]:
            self.violation("R10", event, f"tgid {event[R_TGID]} is not {process!r}")
        if process.start_ns is None:
            process.start_ns = event[R_START]
            ticks = process.start_ticks
            if ticks is not None and event[R_START] // 10000000 != ticks:
                self.violation("R10", event, f"{process!r} started at {ticks} ticks, not "
                                             f"{event[R_START]} ns")
            if process.born > 0 and not process.born - 1000 * MS < event[R_START] <= process.born:
                self.violation("R10", event, f"{process!r} was born before {process.born}, not at "
                                             f"{event[R_START]}")
            if self.last_start.get(process.tgid, -1) >= event[R_START]:
                self.violation("R10", event, f"{process!r} started no later than the process that "
                                             "had its tgid before")
            self.last_start[process.tgid] = event[R_START]
        elif process.start_ns != event[R_START]:
            self.violation("R10", event, f"{process!r} started at {process.start_ns}, not "
                                         f"{event[R_START]}")
        if event[R_COMM] != process.comm and not (
                event[R_COMM] == process.old_comm and
                event[2] - GRACE <= process.renamed_end):
            self.violation("R10", event, f"the name is {process.comm}, not {event[R_COMM]}")

    def parentage(self, process, event):
        parent = process.parent
        if parent is None:
            return
        if event[R_PARENT] == parent.tgid:
            return
        if not parent.alive or parent.undone <= 0:
            # Reparented: to whichever ancestor was asked to take orphans.
            while parent is not None:
                if parent.tgid == event[R_PARENT]:
                    return
                parent = parent.parent
            if event[R_PARENT] <= 1:
                return
        self.violation("R10", event, f"the parent of {process!r} is {process.parent!r}, not "
                                     f"{event[R_PARENT]}")

    def in_range(self, event):
        self.checks["R11"] += 1
        if not 1 <= event[R_RMID] <= self.rmids:
            self.violation("R11", event, f"RMID {event[R_RMID]} of {self.rmids} is claimed")

    def on_alloc(self, cpu, event):
        ts, rmid, generation = event[0], event[R_RMID], event[R_GEN]
        reason = event[R_REASON]
        if self.stopping is not None and reason == REASON_SCAN:
            self.end_session()
        if self.started is None:
            self.started = ts
            for process in self.leaders.values():
                if process.alive:
                    self.wait(process, -1)
        self.in_range(event)
        process = self.leaders.get(event[R_TGID])
        if process is None:
            self.violation("R10", event, f"there is no process {event[R_TGID]}")
            process = self.thread_of(event[R_TGID]).process
            self.leaders[event[R_TGID]] = process
        if process.kernel:
            self.violation("R10", event, f"{process!r} is a kernel thread")
        self.identity(process, event)
        self.parentage(process, event)

        self.checks["R4"] += 1
        if self.owner.get(rmid) is not None:
            self.violation("R4", event, f"RMID {rmid} is owned by {self.owner[rmid]!r}")
        if process.rmid:
            self.violation("R4", event, f"{process!r} has RMID {process.rmid} already")
            self.owner.pop(process.rmid, None)
        last = self.generation.get(rmid, 0 if self.first_session else generation - 1)
        if generation != last + 1:
            self.violation("R4", event, f"generation {generation} of RMID {rmid} follows {last}")
        if not event[2] - GRACE <= event[R_TIME] <= ts:
            self.violation("R10", event, f"given at {event[R_TIME]}, logged between {event[2]} "
                                         f"and {ts}")
        if event[R_ALLOC] != event[R_TIME]:
            self.violation("R10", event, "alloc_time_ns is not the time of the allocation")

        self.checks["R5"] += 1
        used = self.last_use.get(rmid)
        if used is not None and min(ts, event[R_TIME]) - used < self.limbo_ns:
            self.violation("R5", event, f"RMID {rmid} was in use {event[R_TIME] - used} ns ago")
        for other in self.cpus.values():
            if other.pqr & 0xffffffff == rmid and other.thread is not None and \
               other.thread.process is not process:
                self.violation("R5", event, f"RMID {rmid} is still in PQR of CPU {other.number}")

        if reason not in (REASON_FORK, REASON_SCAN, REASON_PROMOTED):
            self.violation("R10", event, f"an allocation for reason {reason}")
        if process.really_gone:
            self.violation("R7", event, f"{process!r} is gone and gets an RMID")
        elif not process.undone:
            # Its switch-out is logged, the module's hook after it is still to come.
            off = process.off_cpu
            off.await_free.append((process, generation, event))
        self.check_order(process, event)
        waited = self.waiters.pop(process, None)
        if waited is not None and waited[0] > 0:
            self.promote_worst = max(self.promote_worst, ts - waited[0])
        self.stats["allocs"] += 1
        self.stats[f"allocs for reason {reason}"] += 1

        self.change(cpu, process, process.rmid, rmid, event)
        begin = min(event[2], ts - GRACE)
        for doubt in self.birth_doubts:
            if begin <= doubt[0]:
                doubt[2].discard(rmid)
        for other in self.cpus.values():
            other.wait_ticks = 0
            other.wait_process = None
        for items in self.unsettled.values():
            for what, item in items:
                if what == "birth" and item[1]:
                    # Its hook may still be on the way, and come too late for this one.
                    item[1].discard(rmid)
        self.owner[rmid] = process
        self.free.pop(rmid, None)
        self.generation[rmid] = generation
        process.rmid = rmid
        process.generation = generation
        process.alloc_ns = event[R_ALLOC]
        process.freed = False
        process.chosen = None
        if any(other.thread is not None and other.thread.process is process
               for other in self.cpus.values()):
            process.last_run = ts

    def check_order(self, process, event):
        """fifo: who came first is served first. active: who runs."""
        if event[R_REASON] == REASON_SCAN or event[0] - self.started < SETTLE:
            return
        if self.policy == "active":
            self.check_active_promotion(process, event)
            return
        self.checks["R13"] += 1
        mine = self.waiters.get(process, (process.born,))[0]
        for other, (since, certain) in self.waiters.items():
            if since >= mine:
                break
            # Those born at the same moment on two CPUs have no order.
            if other is not process and other.alive and certain < mine - GRACE and \
               certain < event[2] - GRACE:
                self.violation("R13", event, f"{process!r} overtakes {other!r}, which waits since "
                                             f"{since} and was born {other.born}")
                break

    def check_active_promotion(self, process, event):
        if event[R_REASON] != REASON_PROMOTED:
            return
        self.checks["R13"] += 1
        running = {cpu.thread.process for cpu in self.cpus.values() if cpu.thread is not None}
        if process in running or self.ticks_since(process.last_run) <= LATELY:
            return
        for other in running:
            if other in self.waiters and other.alive:
                self.violation("R13", event, f"{process!r} gets an RMID, it ran last at "
                                             f"{process.last_run}; {other!r} runs and waits")
                return

    def ticks_since(self, ts):
        """The machine's own time: a host that stops a CPU stops its ticks, and the policy too."""
        return min(sum(tick > ts for tick in cpu.tick_times) for cpu in self.cpus.values())

    def on_free(self, cpu, event):
        ts, rmid, generation = event[0], event[R_RMID], event[R_GEN]
        reason = event[R_REASON]
        self.in_range(event)
        self.checks["R4"] += 1
        process = self.owner.get(rmid)
        if process is None:
            self.violation("R4", event, f"RMID {rmid} is freed and had no owner")
            return
        if process.generation != generation:
            self.violation("R4", event, f"generation {generation} is freed, {process.generation} "
                                        f"is in use")
        self.identity(process, event)
        if event[R_ALLOC] != process.alloc_ns:
            self.violation("R10", event, f"alloc_time_ns changed since {process.alloc_ns}")
        self.stats["frees"] += 1
        self.stats[f"frees for reason {reason}"] += 1
        if reason == REASON_EXIT:
            self.check_exit_free(process, event)
        elif reason == REASON_REVOKED:
            self.check_revoked(process, event)
        elif reason == REASON_STOP:
            self.stopping = ts
        elif reason != REASON_FILTERED:
            self.violation("R10", event, f"a free for reason {reason}")
        self.rename_missing(process, event)
        process.exec_pending = None
        self.change(cpu, process, rmid, 0, event)
        del self.owner[rmid]
        self.free[rmid] = ts
        process.rmid = 0
        process.generation = 0
        if reason == REASON_REVOKED and process.undone:
            self.wait(process, ts)

    def check_exit_free(self, process, event):
        self.checks["R7"] += 1
        if process.alive:
            self.violation("R7", event, f"{process!r} still has {process.alive} live threads")
            if process.nonleader is not None:
                self.violation("R9", event, f"{process!r} lost its RMID by an exec of a thread")
        elif process.undone:
            self.violation("R7", event, f"{process.undone} threads of {process!r} have not left "
                                        "the CPU yet")
        elif event[R_TIME] < process.off_ns:
            self.violation("R7", event, f"limbo of {process!r} counts from {event[R_TIME]}, before "
                                        f"its last switch-out at {process.off_ns}")
        if event[R_TIME] > event[0]:
            self.violation("R7", event, "freed in the future")
        process.freed = True
        if process.nonleader is not None:
            self.checks["R9"] += 1
            if process.nonleader and process.nonleader != process.generation:
                self.violation("R9", event, f"{process!r} changed generation by an exec")

    def check_revoked(self, process, event):
        self.checks["R13"] += 1
        if self.policy == "fifo":
            self.violation("R13", event, f"fifo took the RMID of {process!r}")
            return
        for cpu in self.cpus.values():
            if cpu.thread is not None and cpu.thread.process is process and \
               cpu.switch_ts is None and cpu.number != event[1] and cpu.pqr & 0xffffffff:
                self.violation("R13", event, f"{process!r} runs on CPU {cpu.number} and loses its "
                                             "RMID as idle")
                return
        self.deferred = [d for d in self.deferred if d[2] is not process or d[3]]
        self.unsettle(event, "revoked", (process, self.idle_since(process), event))

    def idle_since(self, process):
        """Nobody can know who ran before the session began."""
        last_run = process.last_run if process.chosen is None else process.chosen
        return max(last_run, self.started or 0)

    def judge_revoked(self, batch):
        """Whoever was taken in one batch was idle for longer than whoever was not."""
        running = {other.thread.process for other in self.cpus.values() if other.thread is not None}
        left = [(self.idle_since(other), other) for other in self.owner.values()
                if other not in running and other.undone and
                # Not those that got theirs when the choice was made already.
                other.alloc_ns < self.now - IDLE_SLACK]
        if not left:
            return
        oldest, other = min(left, key=lambda item: item[0])
        for process, idle, event in batch:
            if oldest < idle - IDLE_SLACK:
                self.violation("R13", event, f"{process!r}, idle since {idle}, is taken before "
                                             f"{other!r}, idle since {oldest}")

    def on_rexec(self, cpu, event):
        self.in_range(event)
        self.checks["R8"] += 1
        process = self.owner.get(event[R_RMID])
        if process is None or process.generation != event[R_GEN]:
            self.violation("R8", event, f"RMID {event[R_RMID]} generation {event[R_GEN]} is not "
                                        "in use")
            return
        self.identity(process, event)
        if event[R_REASON] == REASON_EXEC:
            if process.exec_pending is None:
                if event[0] - (self.started or 0) > SETTLE:
                    self.violation("R8", event, f"{process!r} did not execute anything")
            elif process.exec_pending[0] != event[R_COMM]:
                self.violation("R8", event, f"executed as {process.exec_pending[0]}, reported as "
                                            f"{event[R_COMM]}")
            process.exec_pending = None
            process.comm_pending = None
        elif event[R_REASON] == REASON_COMM:
            if event[R_COMM] != process.comm:
                self.violation("R8", event, f"renamed to {process.comm}, reported as "
                                            f"{event[R_COMM]}")
            process.comm_pending = None
        else:
            self.violation("R8", event, f"an exec for reason {event[R_REASON]}")

    def rename_missing(self, process, event):
        """Judged late: only an exec event tells that a rename was part of an exec."""
        pending, process.comm_pending = process.comm_pending, None
        if pending is None or pending[0] == process.old_comm or \
           self.cpus[pending[1]].ticks - pending[2] < TICKS and pending[1] != event[1]:
            return
        self.checks["R8"] += 1
        self.violation("R8", event, f"{process!r} took the name {pending[0]} at "
                                    f"{pending[3][0]}, which was not reported")

    def exec_missing(self, process, event):
        pending, process.exec_pending = process.exec_pending, None
        if pending[2]:
            # Unless it was about to lose its RMID, which a later record may tell.
            self.doubts.append(("R8", event[0], event, process, pending[2],
                                f"{process!r} executed at {pending[1][0]}, which was not reported",
                                self.cpus[event[1]].events.copy()))

    def on_existing(self, cpu, event):
        self.in_range(event)
        process = self.owner.get(event[R_RMID])
        if process is not None and process.generation == event[R_GEN]:
            self.identity(process, event)

    # -------------------------------------------------------- ticks, switches

    def on_tick(self, cpu, event):
        cpu.ticks += 1
        cpu.tick_times.append(event[0])
        self.last_tick_ts = event[0]
        if self.quiet() or self.started is None:
            return
        cpu.armed = True
        if self.deferred or self.birth_doubts or self.doubts:
            self.settle()
        self.check_owner("tick", cpu, event[9], event)
        self.checks["R12"] += 1
        if event[6] % event[7] or not event[6] <= event[5] <= event[0]:
            self.violation("R12", event, "the tick is not aligned, or before it was due")
        thread = cpu.thread
        if thread is not None and thread.process.known and cpu.switch_ts is None:
            process = thread.process
            if cpu.pqr & 0xffffffff != process.rmid:
                cpu.stale_ticks += 1
                if cpu.stale_ticks == TICKS:
                    self.deferred.append((event[0], event, process, cpu.pqr & 0xffffffff,
                                          process.rmid, cpu.number, list(cpu.events)))
            else:
                cpu.stale_ticks = 0
            self.check_starving(cpu, process, event)
        if cpu.await_free:
            self.check_await_free(cpu, event)
        self.check_waiting(cpu, event)

    def check_starving(self, cpu, process, event):
        if process.rmid or process.kernel or self.policy != "active" or \
           event[0] - self.started < SETTLE:
            cpu.run_ticks = 0
            return
        cpu.run_ticks += 1
        if cpu.run_ticks % ACTIVE_TICKS == 0:
            self.checks["R13"] += 1
            self.violation("R13", event, f"{process!r} has run for {cpu.run_ticks} ticks without "
                                         "an RMID")

    def check_await_free(self, cpu, event):
        rest = []
        for item in cpu.await_free:
            process, generation, gone = item
            if process.generation != generation or not process.rmid:
                continue
            if process.undone:
                continue
            # Of every CPU: the hook of another thread's last switch may be the one that is late.
            if self.ticks_since(gone[0]) >= TICKS:
                self.checks["R7"] += 1
                self.doubts.append(("R7", event[0], event, process, process.rmid,
                                    f"{process!r} is gone since {gone[0]} and still holds RMID "
                                    f"{process.rmid}", cpu.events.copy()))
            else:
                rest.append(item)
        cpu.await_free = rest

    def check_waiting(self, cpu, event):
        """Nobody waits while something is free, except for two periods."""
        if not self.waiters or not self.free or event[0] - self.started < SETTLE:
            cpu.wait_ticks = 0
            return
        if self.policy == "active":
            self.check_running_waiter(cpu, event)
            return
        if not any(process.alive for process in self.waiters):
            cpu.wait_ticks = 0
            return
        ripe = self.ripe(event)
        if not ripe:
            for other in self.cpus.values():
                other.wait_ticks = 0
            return
        self.checks["R6"] += 1
        cpu.wait_ticks += 1
        if min(other.wait_ticks for other in self.cpus.values()) >= TICKS:
            for other in self.cpus.values():
                other.wait_ticks = 0
            waiter = next(iter(self.waiters))
            self.violation("R6", event, f"{waiter!r} waits since {self.waiters[waiter][0]} while "
                                        f"{sorted(ripe)} are free")

    def ripe(self, event):
        return [rmid for rmid, since in self.free.items() if since + self.limbo_ns < event[0]]

    def check_running_waiter(self, cpu, event):
        """active: who runs without one, while one is free, gets it when all CPUs have ticked."""
        process = cpu.thread.process if cpu.thread is not None else None
        ripe = self.ripe(event)
        if process not in self.waiters or not process.alive or not ripe:
            cpu.wait_process = None
            return
        self.checks["R6"] += 1
        if cpu.wait_process is not process or not set(ripe) & cpu.wait_from[1]:
            cpu.wait_process = process
            cpu.wait_from = ({other: other.ticks for other in self.cpus.values()}, set(ripe))
            return
        cpu.wait_from[1].intersection_update(ripe)
        if min(other.ticks - ticks for other, ticks in cpu.wait_from[0].items()) >= TICKS:
            cpu.wait_process = None
            self.violation("R6", event, f"{process!r} runs and waits since "
                                        f"{self.waiters[process][0]} while {sorted(ripe)} are free")

    def check_owner(self, what, cpu, owner, event):
        """A record's owner is PQR's, and its generation the one in force."""
        self.checks["R12"] += 1
        rmid, generation = owner & 0xffffffff, owner >> 32
        if cpu.owner is not None and owner != cpu.owner and what == "tick":
            self.violation("R12", event, f"the tick says RMID {rmid} generation {generation}, the "
                                         f"last switch said {cpu.owner & 0xffffffff} "
                                         f"{cpu.owner >> 32}")
        if rmid != cpu.pqr & 0xffffffff:
            self.violation("R12", event, f"the {what} says RMID {rmid}, PQR holds "
                                         f"{cpu.pqr & 0xffffffff}")
        if not rmid:
            if generation:
                self.violation("R12", event, f"RMID 0 has generation {generation}")
        elif not self.generation.get(rmid, 0) - 1 <= generation <= self.generation.get(rmid, 0) + 1:
            self.violation("R12", event, f"the {what} says generation {generation} of RMID {rmid}, "
                                         f"in force is {self.generation.get(rmid)}")

    def on_mwswitch(self, cpu, event):
        if self.quiet() or self.started is None:
            cpu.owner = event[7]
            return
        cpu.armed = True
        self.checks["R12"] += 1
        if cpu.owner is not None and event[6] != cpu.owner:
            self.violation("R12", event, f"leaves owner {event[6]:#x}, entered {cpu.owner:#x}")
        cpu.owner = event[7]
        self.check_owner("switch", cpu, event[7], event)

    # -------------------------------------------------------------------- end

    def finish(self):
        for doubt in self.deferred:
            self.deferred_violation(doubt)
        for doubt in self.birth_doubts:
            if doubt[2]:
                self.birth_violation(doubt)
        for doubt in self.doubts:
            self.doubt_violation(doubt)
        self.doubts = []
        self.deferred = []
        self.birth_doubts = []
        if self.stats["frees for reason 9"]:
            self.checks["R14"] += 1
            end = (self.now, next(iter(self.cpus)))
            for rmid, process in self.owner.items():
                self.violation("R14", end, f"{process!r} still owns RMID {rmid} at the end")
            for cpu in self.cpus.values():
                if cpu.pqr & 0xffffffff:
                    self.violation("R14", (self.now, cpu.number), f"PQR of CPU {cpu.number} holds "
                                                                  f"{cpu.pqr:#x} at the end")
