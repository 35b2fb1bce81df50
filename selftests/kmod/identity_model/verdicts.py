# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""The rules, the violations of them, and doubts.

A doubt is a violation that a later event may still explain, because CPUs log what they
did some time after they did it. It becomes a violation when no such event can come any
more: when every CPU has logged something newer.
"""

import collections

from .state import GRACE, RECENT_TICKS
from .trace import FIELDS

RULES = {
    "R1": "PQR holds the RMID of the process that runs",
    "R2": "the CLOSID never changes",
    "R3": "PQR is not written again with the value that it already holds",
    "R4": "an RMID has one owner at a time, and its generations count up by one",
    "R5": "an RMID rests for the limbo time between its last use and its next owner",
    "R6": "a new process gets a free RMID at once, a waiting process gets it soon",
    "R7": "an RMID is freed soon after the last thread has exited, and not before",
    "R8": "an exec or a rename is reported with the right name",
    "R9": "a process keeps its RMID when a thread other than the leader executes",
    "R10": "records carry the identity of the process",
    "R11": "RMID 0 is never given to a process, nor is one beyond the last",
    "R12": "tick and switch records name the owner of the RMID in PQR",
    "R13": "the policy picks the right process",
    "R14": "nothing is left behind when a session has stopped",
}

# A process ran with another RMID than its own.
PqrDoubt = collections.namedtuple("PqrDoubt", "time event process actual expected context")
# A process was born without an RMID although those of the set @ripe had rested, of the set @free.
BirthDoubt = collections.namedtuple("BirthDoubt", "time event ripe free process")
# Something was not reported, or an RMID not freed.
Doubt = collections.namedtuple("Doubt", "rule time event process rmid text context")


def describe_event(event):
    for name, (kind, fields) in FIELDS.items():
        if kind == event[3]:
            values = " ".join(f"{field.split('|')[0]}={value}"
                              for field, value in zip(fields, event[5:]))
            return f"{event[0]} cpu{event[1]} pid={event[4]} {name.split('.')[1]}: {values}"
    return str(event)


class Verdicts:
    """The part of the model that counts checks and violations."""

    def __init__(self, keep):
        self.keep = keep		# examples of violations to keep for each rule
        self.checks = collections.Counter()
        self.violations = collections.Counter()
        self.examples = collections.defaultdict(list)
        self.pqr_doubts = []
        self.birth_doubts = []
        self.doubts = []

    def violation(self, rule, event, text, context=None):
        """context: the events of that CPU, if not the newest ones."""
        self.violations[rule] += 1
        if len(self.examples[rule]) < self.keep:
            ts, number = event[0], event[1]
            if context is None:
                context = self.cpus[number].events
            lines = [f"    {describe_event(e)}" for e in context]
            self.examples[rule].append(f"{rule} at {ts} on CPU {number}: {text}\n" +
                                       "\n".join(lines))

    def settle_doubts(self):
        """Turn the doubts that no later event can explain any more into violations."""
        horizon = min(cpu.task_ts for cpu in self.cpus.values()) - GRACE
        if self.pqr_doubts and self.pqr_doubts[0].time < horizon:
            rest = []
            for doubt in self.pqr_doubts:
                if doubt.time < horizon and not self.may_be_revoked(doubt):
                    self.pqr_violation(doubt)
                else:
                    rest.append(doubt)
            self.pqr_doubts = rest
        if self.doubts and self.doubts[0].time < horizon:
            rest = []
            for doubt in self.doubts:
                if doubt.time < horizon and not self.may_run_again(doubt):
                    self.violation(doubt.rule, doubt.event, doubt.text, doubt.context)
                else:
                    rest.append(doubt)
            self.doubts = rest
        if self.birth_doubts and self.birth_doubts[0].time < horizon:
            rest = []
            for doubt in self.birth_doubts:
                if doubt.time >= horizon:
                    rest.append(doubt)
                elif self.has_rmid_for_birth(doubt.ripe, doubt.free):
                    self.birth_violation(doubt)
            self.birth_doubts = rest

    def settle_all_doubts(self):
        """The log has ended."""
        for doubt in self.pqr_doubts:
            self.pqr_violation(doubt)
        for doubt in self.birth_doubts:
            if self.has_rmid_for_birth(doubt.ripe, doubt.free):
                self.birth_violation(doubt)
        for doubt in self.doubts:
            self.violation(doubt.rule, doubt.event, doubt.text, doubt.context)
        for process in self.leaders.values():
            self.settle_rename_doubt(process)
        self.doubts = []
        self.pqr_doubts = []
        self.birth_doubts = []

    def may_be_revoked(self, doubt):
        """An owner ran with RMID 0: the policy may have taken its RMID and report it later."""
        return doubt.actual == 0 and self.may_be_chosen(doubt)

    def may_run_again(self, doubt):
        """
        With PREEMPT_RT, a dead thread that waits for a lock is switched out and in again. An
        RMID that the policy has chosen stays with a process that exits before its FREE.
        """
        return doubt.rule == "R7" and (self.ticks_since(doubt.time) <= RECENT_TICKS or
                                       self.may_be_chosen(doubt))

    def may_be_chosen(self, doubt):
        """The pass that is not over may have chosen the RMID before, and report that later."""
        return self.pass_begin is not None and self.pass_begin - GRACE <= doubt.time

    def pqr_violation(self, doubt):
        self.violation("R1", doubt.event, f"{doubt.process!r} runs with RMID {doubt.actual}, its "
                                          f"own is {doubt.expected}", doubt.context)
        if doubt.process.exec_by_thread is not None:
            self.violation("R9", doubt.event, f"{doubt.process!r} lost its RMID when a thread "
                                              "executed", doubt.context)

    def birth_violation(self, doubt):
        self.violation("R6", doubt.event, f"{doubt.process!r} was born without an RMID while "
                                          f"{sorted(doubt.ripe)} were free")

    def ticks_since(self, ts):
        """
        The smallest number of ticks of a CPU since then. This is the machine's own time: a
        host that stops a virtual CPU stops its ticks as well.
        """
        return min(sum(tick > ts for tick in cpu.tick_times) for cpu in self.cpus.values())
