# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""The identity model: what the module must have done, derived from the kernel's log.

The model knows which thread belongs to which process from the task and sched events alone.
It knows what PQR_ASSOC held from the MSR events alone. The module's own records are claims:
they say which RMID a process was given, and the model checks each of them.

Time. The CPUs of an emulated machine stop for milliseconds, between any two instructions,
whenever the host runs something else. Wherever possible, verdicts therefore rest on the
order of events and not on durations:

  - A CPU changes something and logs it afterwards. The change happened at some moment
    between the CPU's previous event and its next one, not counting events of interrupts.
    This is the window of the change. Another CPU that looked during the window may have
    seen either value.
  - "Soon" is counted in ticks of the CPU that has to act, not in time.

Durations are used only as lower bounds (limbo), which a stopped CPU cannot break.
"""

import collections

from .pqr import PqrRules
from .policy import PolicyRules
from .records import RecordRules
from .state import FOREVER, MS, PREEMPTED, SETTLE, Cpu, Process
from .tasks import TaskEvents
from .trace import (ALLOC, CPU_STATE, DUMP_BEGIN, DUMP_END, EXEC, EXISTING, EXIT, FORK, FREE, MSR,
                    MWSWITCH, NEWTASK, PASS_BEGIN, PASS_END, RENAME, REXEC, SWITCH, TASKFREE, TICK)
from .verdicts import RULES, Verdicts

__all__ = ["RULES", "Model"]

# The events that the module's hooks cause.
MODULE_EVENTS = frozenset((MSR, MWSWITCH, ALLOC, FREE, REXEC, EXISTING, CPU_STATE))


class Model(Verdicts, PqrRules, TaskEvents, RecordRules, PolicyRules):
    def __init__(self, rmids, limbo_ns=2 * MS, policy="fifo", first_session=True, keep=5):
        super().__init__(keep)
        self.rmids = rmids
        self.limbo_ns = limbo_ns
        self.policy = policy
        self.first_session = first_session	# generations start at 1
        self.now = 0
        self.started = None			# the session's first record
        self.stopping = None			# the first record of its stop
        self.stats = collections.Counter()
        self.promote_worst = 0			# longest wait for an RMID, in ns
        self.cpus = {}				# number: Cpu
        self.threads = {}			# pid: Thread
        self.leaders = {}			# tgid: Process
        self.idle = Process(0, None, True, b"swapper", 0)
        self.owner = {}				# RMID: Process
        self.user = {}				# RMID: the user id of its newest owner
        self.generation = {}			# RMID: the newest one
        self.free = {rmid: -FOREVER for rmid in range(1, rmids + 1)}	# RMID: since
        self.last_use = {}			# RMID: the last time that it was in PQR
        self.last_start = {}			# tgid: start time of its newest process
        self.waiters = {}			# Process: see add_waiter()
        self.pass_begin = None			# of the pass that takes RMIDs, while it lasts
        self.late_ticks = collections.deque(maxlen=1024)	# time and delay, see jiffies_lag()
        self.unanswered = {}			# pid: what it did, see await_module()
        self.dispatch = {
            SWITCH: self.on_switch, NEWTASK: self.on_newtask, FORK: self.on_fork,
            EXEC: self.on_exec, EXIT: self.on_exit, RENAME: self.on_rename, MSR: self.on_msr,
            ALLOC: self.on_alloc, FREE: self.on_free, REXEC: self.on_rexec,
            EXISTING: self.on_existing, TICK: self.on_tick, MWSWITCH: self.on_mwswitch,
            TASKFREE: self.on_nothing, DUMP_BEGIN: self.on_nothing, DUMP_END: self.on_nothing,
            CPU_STATE: self.on_cpu_state, PASS_BEGIN: self.on_pass_begin,
            PASS_END: self.on_pass_end,
        }

    def run(self, events):
        feed = self.feed
        for event in events:
            feed(event)
        self.finish()

    def feed(self, event):
        number = event[1]
        kind = event[3]
        self.now = event[0]
        cpu = self.cpus.get(number)
        if cpu is None:
            cpu = self.cpus[number] = Cpu(number, (number + 1) << 32)
        if cpu.open_changes and kind not in (MSR, MWSWITCH):
            self.close_changes(cpu, event)
        # The hook of a switch runs as the task that leaves, whose pid an exec may just have
        # changed. So a module event belongs to the switch unless the next task logged it.
        if cpu.switch_ts is not None and not (event[4] != cpu.switch_next and
                                              kind in MODULE_EVENTS):
            self.judge_switch(cpu, event)
        if not event[-1]:
            # The task may be preempted between the log's probe and the module's.
            if event[4] in self.unanswered and kind not in MODULE_EVENTS and \
               not (kind == SWITCH and event[6] & PREEMPTED):
                self.judge_unanswered(event)
            cpu.task_ts = event[0]
        cpu.events.append(event)
        self.dispatch[kind](cpu, event)

    def await_module(self, event, what, item):
        """The current task did something; until its next event the module may answer it."""
        self.unanswered.setdefault(event[4], []).append((what, item))

    def judge_unanswered(self, event):
        """The task goes on: the module has answered everything that it did before."""
        items = self.unanswered.pop(event[4])
        revoked = [item for what, item in items if what == "revoked"]
        if revoked:
            self.judge_revoked(revoked)
        for what, item in items:
            if what == "revoked":
                continue
            if what == "birth":
                self.judge_birth(event, *item)
            elif what == "rename":
                item.renamed_end = event[0]
            elif item[0].exec_pending is item[1]:
                self.doubt_exec_reported(item[0], event)

    def on_nothing(self, cpu, event):
        pass

    # ------------------------------------------------------------- the session

    def begin_session(self, ts):
        self.started = ts
        for process in self.leaders.values():
            if process.alive:
                self.add_waiter(process, -1)

    def is_stopping(self):
        """Between the first record of a stop and its end no rule holds."""
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

    def finish(self):
        """The log has ended."""
        self.settle_all_doubts()
        if not self.stats["frees for reason 9"]:
            return
        self.checks["R14"] += 1
        end = (self.now, next(iter(self.cpus)))
        for rmid, process in self.owner.items():
            self.violation("R14", end, f"{process!r} still owns RMID {rmid} at the end")
        for cpu in self.cpus.values():
            if cpu.rmid():
                self.violation("R14", (self.now, cpu.number), f"PQR of CPU {cpu.number} holds "
                                                              f"{cpu.pqr:#x} at the end")
