# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""The module's records about RMIDs are claims: rules R4, R5, and R7 to R11."""

from .state import (GRACE, MS, REASON_COMM, REASON_EXEC, REASON_EXIT, REASON_FILTERED,
                    REASON_FORK, REASON_PROMOTED, REASON_REVOKED, REASON_SCAN, REASON_STOP,
                    SETTLE, TICKS)
from .trace import (R_ALLOC, R_COMM, R_GEN, R_PARENT, R_REASON, R_RMID, R_START, R_TGID, R_TIME,
                    R_UID)
from .verdicts import Doubt

TICK_OF_STAT_NS = 10000000	# /proc/PID/stat has the start time in units of 10 ms


class RecordRules:
    # ------------------------------------------------- what every record must say

    def check_identity(self, process, event):
        self.checks["R10"] += 1
        if process.tgid != event[R_TGID]:
            self.violation("R10", event, f"tgid {event[R_TGID]} is not {process!r}")
        if process.start_ns is None:
            self.check_start_time(process, event)
        elif process.start_ns != event[R_START]:
            self.violation("R10", event, f"{process!r} started at {process.start_ns}, not "
                                         f"{event[R_START]}")
        if event[R_COMM] != process.comm and not (
                event[R_COMM] == process.old_comm and
                event[2] - GRACE <= process.renamed_end):
            self.violation("R10", event, f"the name is {process.comm}, not {event[R_COMM]}")

    def check_start_time(self, process, event):
        """The first record of the process: does the start time fit what else is known?"""
        start = process.start_ns = event[R_START]
        ticks = process.start_ticks
        if ticks is not None and start // TICK_OF_STAT_NS != ticks:
            self.violation("R10", event, f"{process!r} started at {ticks} ticks, not {start} ns")
        if process.born > 0 and not process.born - 1000 * MS < start <= process.born:
            self.violation("R10", event, f"{process!r} was born before {process.born}, not at "
                                         f"{start}")
        if self.last_start.get(process.tgid, -1) >= start:
            self.violation("R10", event, f"{process!r} started no later than the process that "
                                         "had its tgid before")
        self.last_start[process.tgid] = start

    def check_parent(self, process, event):
        parent = process.parent
        if parent is None:
            return
        if event[R_PARENT] == parent.tgid:
            return
        if not parent.alive or parent.unfinished <= 0:
            # An ancestor that takes orphans has become the parent.
            while parent is not None:
                if parent.tgid == event[R_PARENT]:
                    return
                parent = parent.parent
            if event[R_PARENT] <= 1:
                return
        self.violation("R10", event, f"the parent of {process!r} is {process.parent!r}, not "
                                     f"{event[R_PARENT]}")

    def check_range(self, event):
        self.checks["R11"] += 1
        if not 1 <= event[R_RMID] <= self.rmids:
            self.violation("R11", event, f"RMID {event[R_RMID]} is recorded, valid are 1 to "
                                         f"{self.rmids}")

    # ---------------------------------------------------------- an RMID is given

    def on_alloc(self, cpu, event):
        rmid, generation, reason = event[R_RMID], event[R_GEN], event[R_REASON]
        if self.stopping is not None and reason == REASON_SCAN:
            self.end_session()
        if self.started is None:
            self.begin_session(event[0])
        self.check_range(event)
        process = self.leaders.get(event[R_TGID])
        if process is None:
            self.violation("R10", event, f"there is no process {event[R_TGID]}")
            process = self.thread_of(event[R_TGID]).process
            self.leaders[event[R_TGID]] = process
        if process.kernel:
            self.violation("R10", event, f"{process!r} is a kernel thread")
        self.check_identity(process, event)
        self.check_parent(process, event)
        self.check_single_owner(process, event)
        self.check_alloc_time(event)
        self.check_limbo(process, event)
        if reason not in (REASON_FORK, REASON_SCAN, REASON_PROMOTED):
            self.violation("R10", event, f"an RMID is given for reason {reason}")
        if process.gone:
            self.violation("R7", event, f"{process!r} is gone and gets an RMID")
        elif not process.unfinished:
            # Its last switch is logged, the module's hook in that switch has still to run.
            process.off_cpu.await_free.append((process, generation, event))
        self.check_order(process, event)
        waited = self.waiters.pop(process, None)
        if waited is not None and waited[0] > 0:
            self.promote_worst = max(self.promote_worst, event[0] - waited[0])
        self.stats["allocs"] += 1
        self.stats[f"allocs for reason {reason}"] += 1
        self.give_rmid(cpu, process, event)

    def check_single_owner(self, process, event):
        rmid, generation = event[R_RMID], event[R_GEN]
        self.checks["R4"] += 1
        if self.owner.get(rmid) is not None:
            self.violation("R4", event, f"RMID {rmid} is owned by {self.owner[rmid]!r}")
        if process.rmid:
            self.violation("R4", event, f"{process!r} has RMID {process.rmid} already")
            self.owner.pop(process.rmid, None)
        last = self.generation.get(rmid, 0 if self.first_session else generation - 1)
        if generation != last + 1:
            self.violation("R4", event, f"generation {generation} of RMID {rmid} follows {last}")

    def check_alloc_time(self, event):
        ts = event[0]
        if not event[2] - GRACE <= event[R_TIME] <= ts:
            self.violation("R10", event, f"given at {event[R_TIME]}, logged between {event[2]} "
                                         f"and {ts}")
        if event[R_ALLOC] != event[R_TIME]:
            self.violation("R10", event, "alloc_time_ns is not the time of the allocation")

    def check_limbo(self, process, event):
        rmid = event[R_RMID]
        self.checks["R5"] += 1
        used = self.last_use.get(rmid)
        if used is not None and min(event[0], event[R_TIME]) - used < self.limbo_ns:
            self.violation("R5", event, f"RMID {rmid} was in use {event[R_TIME] - used} ns ago")
        for other in self.cpus.values():
            if other.rmid() == rmid and other.thread is not None and \
               other.thread.process is not process:
                self.violation("R5", event, f"RMID {rmid} is still in PQR of CPU {other.number}")

    def give_rmid(self, cpu, process, event):
        rmid, ts = event[R_RMID], event[0]
        self.note_change(cpu, process, process.rmid, rmid, event)
        begin = min(event[2], ts - GRACE)
        for doubt in self.birth_doubts:
            if begin <= doubt.time:
                doubt.ripe.discard(rmid)
                doubt.free.discard(rmid)
        for other in self.cpus.values():
            other.wait_ticks = 0
            other.wait_process = None
        for items in self.unanswered.values():
            for what, item in items:
                if what == "birth" and item[1]:
                    # The hook of that birth may not have run yet, and will not find this RMID.
                    item[1].discard(rmid)
                    item[2].discard(rmid)
        self.owner[rmid] = process
        self.user[rmid] = event[R_UID]
        self.free.pop(rmid, None)
        self.generation[rmid] = event[R_GEN]
        process.rmid = rmid
        process.generation = event[R_GEN]
        process.alloc_ns = event[R_ALLOC]
        process.freed = False
        process.last_run_chosen = None
        if process in self.running_processes():
            process.last_run = ts

    # ---------------------------------------------------------- an RMID is freed

    def on_free(self, cpu, event):
        ts, rmid, generation = event[0], event[R_RMID], event[R_GEN]
        reason = event[R_REASON]
        self.check_range(event)
        self.checks["R4"] += 1
        process = self.owner.get(rmid)
        if process is None:
            self.violation("R4", event, f"RMID {rmid} is freed and had no owner")
            return
        if process.generation != generation:
            self.violation("R4", event, f"generation {generation} is freed, {process.generation} "
                                        f"is in use")
        self.check_identity(process, event)
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
            self.violation("R10", event, f"an RMID is freed for reason {reason}")
        self.check_rename_reported(process, event, freed=True)
        process.exec_pending = None
        self.note_change(cpu, process, rmid, 0, event)
        del self.owner[rmid]
        self.free[rmid] = ts
        process.rmid = 0
        process.generation = 0
        if reason == REASON_REVOKED and process.unfinished:
            self.add_waiter(process, ts)

    def check_exit_free(self, process, event):
        self.checks["R7"] += 1
        if process.alive:
            self.violation("R7", event, f"{process!r} still has {process.alive} live threads")
            if process.exec_by_thread is not None:
                self.violation("R9", event, f"{process!r} lost its RMID when a thread executed")
        elif process.unfinished:
            self.violation("R7", event, f"{process.unfinished} threads of {process!r} have not "
                                        "left the CPU yet")
        elif event[R_TIME] < process.off_ns:
            self.violation("R7", event, f"limbo of {process!r} counts from {event[R_TIME]}, before "
                                        f"its last thread was switched out at {process.off_ns}")
        if event[R_TIME] > event[0]:
            self.violation("R7", event, "the RMID is freed in the future")
        process.freed = True
        if process.exec_by_thread is not None:
            self.checks["R9"] += 1
            if process.exec_by_thread and process.exec_by_thread != process.generation:
                self.violation("R9", event, f"{process!r} changed generation by an exec")

    def check_await_free(self, cpu, event):
        """Processes that are gone must have lost their RMID after some ticks."""
        rest = []
        for item in cpu.await_free:
            process, generation, gone = item
            if process.generation != generation or not process.rmid:
                continue
            if process.unfinished:
                continue
            # Ticks of every CPU, because another thread's last switch may be the late one.
            if self.ticks_since(gone[0]) >= TICKS:
                self.checks["R7"] += 1
                self.doubts.append(Doubt("R7", event[0], event, process, process.rmid,
                                         f"{process!r} has been gone since {gone[0]} and "
                                         f"still has RMID {process.rmid}", cpu.events.copy()))
            else:
                rest.append(item)
        cpu.await_free = rest

    # ----------------------------------------------- an owner executes or is renamed

    def on_rexec(self, cpu, event):
        self.check_range(event)
        self.checks["R8"] += 1
        process = self.owner.get(event[R_RMID])
        if process is None or process.generation != event[R_GEN]:
            self.violation("R8", event, f"RMID {event[R_RMID]} generation {event[R_GEN]} is not "
                                        "in use")
            return
        self.user[event[R_RMID]] = event[R_UID]
        self.check_identity(process, event)
        if event[R_REASON] == REASON_EXEC:
            self.check_exec_record(process, event)
            process.exec_pending = None
            process.comm_pending = None
        elif event[R_REASON] == REASON_COMM:
            if event[R_COMM] != process.comm:
                self.violation("R8", event, f"renamed to {process.comm}, reported as "
                                            f"{event[R_COMM]}")
            process.comm_pending = None
        else:
            self.violation("R8", event, f"an exec is recorded for reason {event[R_REASON]}")

    def check_exec_record(self, process, event):
        if process.exec_pending is None:
            if event[0] - (self.started or 0) > SETTLE:
                self.violation("R8", event, f"{process!r} did not execute anything")
        elif process.exec_pending[0] != event[R_COMM]:
            self.violation("R8", event, f"executed as {process.exec_pending[0]}, reported as "
                                        f"{event[R_COMM]}")

    def check_rename_reported(self, process, event, freed=False):
        """
        Called late, because only a later exec event tells that a rename was part of it. A
        process that is freed in between reports neither.
        """
        self.settle_rename_doubt(process)
        pending, process.comm_pending = process.comm_pending, None
        if pending is None or pending[0] == process.old_comm or \
           self.cpus[pending[1]].ticks - pending[2] < TICKS and pending[1] != event[1]:
            return
        self.checks["R8"] += 1
        process.rename_doubt = Doubt("R8", event[0], event, process, process.rmid,
                                     f"{process!r} took the name {pending[0]} at "
                                     f"{pending[3][0]}, which was not reported",
                                     self.cpus[event[1]].events.copy())
        if not freed:
            self.settle_rename_doubt(process)

    def settle_rename_doubt(self, process):
        """The rename was not part of an execve(), which would have ended before this."""
        doubt, process.rename_doubt = process.rename_doubt, None
        if doubt:
            self.violation(doubt.rule, doubt.event, doubt.text, doubt.context)

    def doubt_exec_reported(self, process, event):
        """The task goes on and no record has reported its exec."""
        pending, process.exec_pending = process.exec_pending, None
        if pending[2]:
            # A later record may tell that the process was about to lose its RMID.
            self.doubts.append(Doubt("R8", event[0], event, process, pending[2],
                                     f"{process!r} executed at {pending[1][0]}, which was not "
                                     "reported", self.cpus[event[1]].events.copy()))

    def on_existing(self, cpu, event):
        self.check_range(event)
        process = self.owner.get(event[R_RMID])
        if process is not None and process.generation == event[R_GEN]:
            self.check_identity(process, event)
