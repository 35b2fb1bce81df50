# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""What PQR_ASSOC held, from the MSR events: rules R1, R2, R3, R11 and R12."""

from .state import CPU_STOPPED, GRACE, JIFFY, MS, REASON_EXIT, START, TICKS, Change
from .trace import R_REASON
from .verdicts import PqrDoubt

MSR_PQR_ASSOC = 0xc8f


class PqrRules:
    def judge_switch(self, cpu, event):
        """The switch is complete: does PQR hold the RMID of the process that runs now?"""
        begin = cpu.switch_ts
        cpu.switch_ts = None
        if cpu.leaving is not None:
            cpu.leaving.gone = True
            cpu.leaving = None
        if self.is_stopping():
            return
        if not cpu.armed and self.started is not None and begin - self.started < START:
            # The session's start has not reached this CPU yet.
            return
        process = cpu.thread.process
        if not process.known:
            return
        self.checks["R1"] += 1
        if process.exec_by_thread is not None:
            self.checks["R9"] += 1
        actual = cpu.rmid()
        if actual == process.rmid:
            return
        end = event[0]
        for change in process.changes:
            if change.begin <= end and change.end >= begin and actual in (change.old, change.new):
                self.stats["R1 switches inside a change"] += 1
                return
        self.doubt_pqr(cpu, event, process)

    def doubt_pqr(self, cpu, event, process):
        self.pqr_doubts.append(PqrDoubt(event[0], event, process, cpu.rmid(), process.rmid,
                                        list(cpu.events)))

    def note_change(self, cpu, process, old, new, event):
        """A record says that the process has another RMID: explain the doubts that fit."""
        # Several changes may be followed by their records in one batch.
        if event[2] != cpu.record_ts:
            cpu.record_begin = event[2]
        cpu.record_ts = event[0]
        begin = min(cpu.record_begin, event[0] - GRACE)
        change = Change(old, new, begin, event[-1])
        process.changes = [c for c in process.changes if c.end > self.now - 1000 * MS][-7:]
        process.changes.append(change)
        cpu.open_changes.append(change)
        if self.pqr_doubts:
            self.pqr_doubts = [d for d in self.pqr_doubts
                               if not (d.process is process and begin <= d.time and
                                       d.actual in (old, new))]
        if self.doubts and event[R_REASON] != REASON_EXIT:
            # The RMID was taken since begin, by a CPU that has reported it only now.
            self.doubts = [d for d in self.doubts
                           if not (d.process is process and begin <= d.time and d.rmid == old)]

    @staticmethod
    def close_changes(cpu, event):
        """The CPU has done something else: its changes were complete by now."""
        end, level = event[0] + GRACE, event[-1]
        for change in cpu.open_changes:
            if level <= change.level:
                change.end = end
        cpu.open_changes = [c for c in cpu.open_changes if level > c.level]

    def on_msr(self, cpu, event):
        if event[5] != MSR_PQR_ASSOC:
            return
        value = event[6]
        old = cpu.pqr
        self.checks["R2"] += 1
        if value >> 32 != cpu.number + 1:
            self.violation("R2", event, f"CLOSID is {value >> 32}, must be {cpu.number + 1}")
        self.checks["R3"] += 1
        if value == old:
            self.violation("R3", event, f"{value:#x} is written again")
        rmid = value & 0xffffffff
        self.checks["R11"] += 1
        if rmid > self.rmids:
            self.violation("R11", event, f"PQR holds RMID {rmid}, there are {self.rmids}")
        before = old & 0xffffffff
        if before:
            used = event[0] if cpu.switch_ts is None else cpu.switch_ts
            if used > self.last_use.get(before, 0):
                self.last_use[before] = used
        cpu.pqr = value
        if cpu.thread is not None and rmid == cpu.thread.process.rmid:
            cpu.stale_ticks = 0

    def on_cpu_state(self, cpu, event):
        if event[6] == CPU_STOPPED and self.started is not None:
            # The first sign that the session stops: from now on the rules end one by one.
            self.stopping = event[0]

    # ---------------------------------------------------------- ticks, switch records

    def on_tick(self, cpu, event):
        cpu.ticks += 1
        cpu.tick_times.append(event[0])
        if event[5] - event[6] > JIFFY:
            self.late_ticks.append((event[0], event[5] - event[6]))
        if self.is_stopping() or self.started is None:
            return
        cpu.armed = True
        if self.pqr_doubts or self.birth_doubts or self.doubts:
            self.settle_doubts()
        self.check_owner("tick", cpu, event[9], event)
        self.checks["R12"] += 1
        if event[6] % event[7]:
            self.violation("R12", event, "the tick was not expected at a multiple of the period")
        elif not event[6] <= event[5] <= event[0]:
            self.violation("R12", event, "the tick came before it was expected, or in the future")
        thread = cpu.thread
        if thread is not None and thread.process.known and cpu.switch_ts is None:
            process = thread.process
            # Who has logged that it gives an RMID may be stopped before it does so.
            if cpu.rmid() == process.rmid or \
               any(c.end >= event[0] and c.old == cpu.rmid() for c in process.changes):
                cpu.stale_ticks = 0
            else:
                cpu.stale_ticks += 1
                if cpu.stale_ticks == TICKS:
                    self.doubt_pqr(cpu, event, process)
            self.check_starving(cpu, process, event)
        if cpu.await_free:
            self.check_await_free(cpu, event)
        self.check_waiting(cpu, event)

    def check_owner(self, what, cpu, owner, event):
        """The owner of a record has the RMID in PQR, and the newest generation of it."""
        self.checks["R12"] += 1
        rmid, generation = owner & 0xffffffff, owner >> 32
        newest = self.generation.get(rmid, 0)
        if cpu.owner is not None and owner != cpu.owner and what == "tick":
            self.violation("R12", event, f"the tick names RMID {rmid} generation {generation}, the "
                                         f"last switch named {cpu.owner & 0xffffffff} "
                                         f"{cpu.owner >> 32}")
        if rmid != cpu.rmid():
            self.violation("R12", event, f"the {what} names RMID {rmid}, PQR holds {cpu.rmid()}")
        if not rmid:
            if generation:
                self.violation("R12", event, f"RMID 0 has generation {generation}")
        elif not newest - 1 <= generation <= newest + 1:
            self.violation("R12", event, f"the {what} names generation {generation} of RMID "
                                         f"{rmid}, the newest is {self.generation.get(rmid)}")

    def on_mwswitch(self, cpu, event):
        if self.is_stopping() or self.started is None:
            cpu.owner = event[7]
            return
        cpu.armed = True
        self.checks["R12"] += 1
        if cpu.owner is not None and event[6] != cpu.owner:
            self.violation("R12", event, f"the switch leaves owner {event[6]:#x}, the one before "
                                         f"entered {cpu.owner:#x}")
        cpu.owner = event[7]
        self.check_owner("switch", cpu, event[7], event)
