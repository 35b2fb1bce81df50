# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Who waits for an RMID, who gets one and who loses one: rules R6 and R13."""

from .state import (ACTIVE_TICKS, FAIR_IDLE, FAIR_JIFFY, FAIR_PAUSE, FAIR_RECENT_TICKS,
                    FAIR_RESERVE, FAIR_SLICE, FAIR_TICKS, GRACE, IDLE_SLACK, REASON_PROMOTED,
                    REASON_SCAN, RECENT_TICKS, SETTLE, TICKS)
from .trace import R_REASON


class PolicyRules:
    def ripe_rmids(self, event):
        """The RMIDs that are free and have rested for the limbo time."""
        return [rmid for rmid, since in self.free.items() if since + self.limbo_ns < event[0]]

    def reserve(self):
        """How many RMIDs policy fair may leave free although processes wait."""
        return self.rmids // FAIR_RESERVE if self.policy == "fair" else 0

    def may_be_reserved(self, free):
        """If there are several users, the reserve is for those who hold less than their share."""
        return self.policy == "fair" and len(free) <= self.reserve() and \
            len({self.user[rmid] for rmid in self.owner}) > 1

    def has_rmid_for_birth(self, ripe, free):
        """Of the set free, those of the set ripe have rested: may a new process have one?"""
        return ripe and not self.may_be_reserved(free)

    def running_processes(self):
        return {cpu.thread.process for cpu in self.cpus.values() if cpu.thread is not None}

    # --------------------------------------------------- nobody waits for too long

    def check_waiting(self, cpu, event):
        """No process waits for more than two periods while an RMID is free."""
        if not self.waiters or not self.free or event[0] - self.started < SETTLE:
            cpu.wait_ticks = 0
            return
        if self.policy != "fifo":
            self.check_running_waiter(cpu, event)
            return
        if not any(process.alive for process in self.waiters):
            cpu.wait_ticks = 0
            return
        ripe = self.ripe_rmids(event)
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

    def check_running_waiter(self, cpu, event):
        """Not fifo: a waiting process that runs gets a free RMID when all CPUs have ticked."""
        process = cpu.thread.process if cpu.thread is not None else None
        ripe = self.ripe_rmids(event)
        # A process may wait for long while some are reserved; check_starving() limits for how long.
        if process not in self.waiters or not process.alive or len(ripe) <= self.reserve():
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

    def check_starving(self, cpu, process, event):
        """Not fifo: a process that runs all the time has an RMID, or soon gets its turn."""
        if process.rmid or process.kernel or self.policy == "fifo" or \
           event[0] - self.started < SETTLE:
            cpu.run_ticks = 0
            return
        cpu.run_ticks += 1
        if cpu.run_ticks % (ACTIVE_TICKS if self.policy == "active" else FAIR_TICKS) == 0:
            self.checks["R13"] += 1
            self.violation("R13", event, f"{process!r} has run for {cpu.run_ticks} ticks without "
                                         "an RMID")

    # ------------------------------------------------------------- who gets one

    def check_order(self, process, event):
        """fifo: the process that has waited for longest. Otherwise: a process that runs."""
        if event[R_REASON] == REASON_SCAN or event[0] - self.started < SETTLE:
            return
        if self.policy != "fifo":
            self.check_running_promotion(process, event)
            return
        self.checks["R13"] += 1
        mine = self.waiters.get(process, (process.born,))[0]
        for other, (since, certain) in self.waiters.items():
            if since >= mine:
                break
            # Processes that were born at the same moment on two CPUs have no order.
            if other is not process and other.alive and certain < mine - GRACE and \
               certain < event[2] - GRACE:
                self.violation("R13", event, f"{process!r} overtakes {other!r}, which has waited "
                                             f"since {since} and was born {other.born}")
                break

    def check_running_promotion(self, process, event):
        if event[R_REASON] != REASON_PROMOTED:
            return
        self.checks["R13"] += 1
        running = self.running_processes()
        recent = RECENT_TICKS
        if self.policy == "fair":
            recent = FAIR_RECENT_TICKS
            # A CPU that has stopped tells the module at its next ticks what it runs.
            running = {cpu.thread.process for cpu in self.cpus.values()
                       if cpu.thread is not None and cpu.run_ticks >= 2}
        if process in running or self.ticks_since(process.last_run) <= recent:
            return
        for other in running:
            if other in self.waiters and other.alive:
                self.violation("R13", event, f"{process!r} gets an RMID, it ran last at "
                                             f"{process.last_run}; {other!r} runs and waits")
                return

    # ------------------------------------------------------------ who loses one

    def jiffies_lag(self, since):
        """
        How far jiffies, in which the policy measures, may have been behind since then: as far as
        the ticks were late, because nothing advances them while the CPUs of the guest stand still.
        """
        return max((late for time, late in self.late_ticks if time >= since), default=0)

    def check_revoked(self, process, event):
        self.checks["R13"] += 1
        if self.policy == "fifo":
            self.violation("R13", event, f"fifo took the RMID of {process!r}")
            return
        if self.policy == "fair":
            self.check_slice(process, event)
        for cpu in self.cpus.values():
            if self.policy == "active" and \
               cpu.thread is not None and cpu.thread.process is process and \
               cpu.switch_ts is None and cpu.number != event[1] and cpu.rmid():
                self.violation("R13", event, f"{process!r} runs on CPU {cpu.number} and loses its "
                                             "RMID as idle")
                return
        self.pqr_doubts = [d for d in self.pqr_doubts if d.process is not process or d.actual]
        self.doubts = [d for d in self.doubts if d.process is not process or d.rule != "R7"]
        self.await_module(event, "revoked", (process, self.idle_since(process), event))

    def idle_since(self, process):
        """
        Time since which the process is idle for the module. Not earlier than the start of the
        session, because the module does not know what ran before it.
        """
        last_run = process.last_run if process.last_run_chosen is None else process.last_run_chosen
        if self.policy == "fair":
            last_run = max(last_run, process.alloc_ns)
        return max(last_run, self.started or 0)

    def check_slice(self, process, event):
        """Policy fair: nobody loses an RMID before its slice is over, but what the scan found."""
        held = event[2] - process.alloc_ns
        slice_ns = FAIR_SLICE - self.jiffies_lag(process.alloc_ns - FAIR_SLICE)
        if process.alloc_ns - self.started > SETTLE and held < slice_ns:
            self.violation("R13", event, f"{process!r} loses its RMID after {held} ns")

    def on_pass_begin(self, cpu, event):
        self.pass_begin = event[0]

    def on_pass_end(self, cpu, event):
        self.pass_begin = None

    def judge_revoked(self, batch):
        """A process that lost its RMID was idle for longer than each that keeps its own."""
        running = self.running_processes()
        # From the choice of an RMID to its FREE, a grace period passes. The batch is judged at
        # a later event, which is much later if the CPU was stalled.
        chosen = self.pass_begin or min(event[0] for _, _, event in batch)
        if self.policy == "fair":
            self.judge_turns(batch, running, chosen)
            return
        left = [(self.idle_since(other), other) for other in self.owner.values()
                if other not in running and other.unfinished and
                # An RMID that was allocated later could not be chosen by the policy.
                other.alloc_ns < chosen - IDLE_SLACK]
        if not left:
            return
        oldest, other = min(left, key=lambda item: item[0])
        for process, idle, event in batch:
            if oldest < idle - IDLE_SLACK:
                self.violation("R13", event, f"{process!r}, idle since {idle}, loses its RMID "
                                             f"before {other!r}, idle since {oldest}")

    def judge_turns(self, batch, running, chosen):
        """Policy fair: a process that runs keeps its RMID while another owner is idle."""
        for other in self.owner.values():
            idle = self.idle_since(other)
            # Who has not run since it got its RMID, may keep it for a while.
            limit = FAIR_IDLE if other.last_run > other.alloc_ns + FAIR_JIFFY else FAIR_PAUSE
            if other in running or not other.unfinished or chosen - idle < limit + IDLE_SLACK:
                continue
            for process, since, event in batch:
                over = min(since - idle, chosen - idle - limit) - IDLE_SLACK
                if over > 0 and over > self.jiffies_lag(idle):
                    self.violation("R13", event, f"{process!r}, idle since {since}, loses its RMID "
                                                 f"before {other!r}, idle since {idle}")
            return
