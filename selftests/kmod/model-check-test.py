#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Tests the identity model on the logs of a simulated machine. A log without a fault must
pass, each planted fault must be found under its rule, and a capture that has lost something
must be refused. Prints TAP.
"""

import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from identity_model import trace			# noqa: E402
from identity_model.capture import PAGE_SIZE, write_capture	# noqa: E402
from identity_model.model import RULES, Model		# noqa: E402
from identity_model.machine import LIMBO, Machine		# noqa: E402
from tap import Tap					# noqa: E402

CLEAN = ((1, 6), (2, 6), (3, 12), (4, 12), (5, 24), (6, 40), (7, 40), (8, 8))	# seed, RMIDs
STEPS = 8000			# of the simulated machine
SEEDS = 20			# tried until the fault is planted

# Fault: (the rule that must find it, the number of RMIDs: few if processes have to wait).
FAULTS = {
    "no write": ("R1", 12), "never told": ("R1", 6), "closid": ("R2", 12),
    "rewrite": ("R3", 12), "double write": ("R3", 12),
    "owned twice": ("R4", 12), "generation skips": ("R4", 12), "double free": ("R4", 12),
    "no limbo": ("R5", 6), "no birth rmid": ("R6", 40), "no promotion": ("R6", 6),
    "leader frees": ("R7", 40), "exit frees": ("R7", 12), "never freed": ("R7", 12),
    "exec silent": ("R8", 40), "exec name": ("R8", 40), "rename silent": ("R8", 40),
    "rename silent, filtered": ("R8", 40),
    "exec loses": ("R9", 40), "wrong tgid": ("R10", 12), "wrong start": ("R10", 40),
    "wrong comm": ("R10", 12), "wrong parent": ("R10", 40), "rmid zero": ("R11", 12),
    "tick owner": ("R12", 40), "overtake": ("R13", 6), "revoke": ("R13", 12),
    "leftover": ("R14", 12), "pqr left": ("R14", 12),
}

# The log of a machine, whose module follows fifo: what rule finds where another policy is expected.
POLICIES = (
    ("active", Machine(2, 6), "R13",
     "a module that follows policy fifo where policy active is expected"),
    ("fair", Machine(3, 6), "R13",
     "a module that follows policy fifo where policy fair is expected"),
    ("fair", Machine(1, 40, "no birth rmid"), "R6",
     "under policy fair that a process is born without an RMID"),
    ("fair", Machine(2, 12, "revoke"), "R13",
     "under policy fair that a process loses its RMID too early"),
)


def judge_log(machine, events, policy="fifo"):
    model = Model(machine.rmids, LIMBO, policy)
    for pid, tgid, ppid, flags, start, _, comm in machine.tasks:
        model.add_task(pid, tgid, ppid, flags, start, comm)
    model.link_parents()
    model.run(events)
    return model


def run_model_check(directory, *more):
    program = os.path.join(HERE, "model-check")
    return subprocess.run([sys.executable, program, "--rmids", "12", *more, directory],
                          capture_output=True, text=True, check=False)


def check_refused(tap, directory, reason, title, *more):
    """model-check must fail and name the reason."""
    done = run_model_check(directory, *more)
    tap.eq(done.returncode, 1, f"model-check fails on {title}")
    tap.ok(reason in done.stdout, f"model-check gives the reason for failing on {title}",
           f"expected: {reason}\n{done.stdout}{done.stderr}")


def lose_page(path):
    """Set the flag of the second page which says that events before it were lost."""
    with open(path, "r+b") as out:
        out.seek(PAGE_SIZE + 8)
        commit, = struct.unpack("<Q", out.read(8))
        out.seek(PAGE_SIZE + 8)
        out.write(struct.pack("<Q", commit | trace.MISSED_EVENTS))


def test_captures(tap):
    machine = Machine(5, 12)
    events = machine.play(6000)
    with tempfile.TemporaryDirectory() as directory:
        write_capture(directory, machine, events)
        tap.ok(sorted(events) == list(trace.read_events(directory)),
               "the reader returns the events that were written")
        clean = run_model_check(directory, "--policy", "fifo", "--optional", "R13")
        tap.ok(clean.returncode == 0, "model-check passes a capture without a fault",
               clean.stdout + clean.stderr)
        check_refused(tap, directory, "INVALID: only", "a capture with too few lifetimes",
                      "--optional", "R13", "--min-lifetimes", "1000000")
        stats = os.path.join(directory, "cpu1.stats")
        with open(stats, "w", encoding="utf-8") as out:
            out.write("entries: 0\noverrun: 3\ndropped events: 0\n")
        check_refused(tap, directory, "INVALID: CPU 1 lost events",
                      "a capture whose counters show an overrun")
        with open(stats, "w", encoding="utf-8") as out:
            out.write("overrun: 0\n")
        raw = os.path.join(directory, "cpu0.raw")
        lose_page(raw)
        check_refused(tap, directory, "lost events before",
                      "a page that says that events were lost")
        with open(raw, "r+b") as out:
            out.truncate(os.path.getsize(raw) - 100)
        check_refused(tap, directory, "INVALID", "a capture that is cut short")
        os.unlink(os.path.join(directory, "format.msr.write_msr"))
        check_refused(tap, directory, "has no event msr.write_msr",
                      "a capture without the log of MSR writes")


def test_clean_logs(tap):
    for seed, rmids in CLEAN:
        machine = Machine(seed, rmids)
        model = judge_log(machine, machine.play(STEPS))
        text = "\n".join(e for rule in RULES for e in model.examples[rule])
        tap.ok(not sum(model.violations.values()),
               f"a log without a fault passes, seed {seed} with {rmids} RMIDs", text)


def test_faults(tap):
    found = set()
    for fault, (rule, rmids) in FAULTS.items():
        for seed in range(SEEDS):
            machine = Machine(seed, rmids, fault)
            events = machine.play(STEPS)
            if machine.planted:
                break
        model = judge_log(machine, events)
        tap.ok(machine.planted, f"the fault '{fault}' can be planted")
        if tap.ok(model.violations[rule] > 0, f"the fault '{fault}' is found by rule {rule}",
                  f"planted {machine.planted} times, violations {dict(model.violations)}"):
            found.add(rule)
    for policy, machine, rule, what in POLICIES:
        model = judge_log(machine, machine.play(STEPS), policy)
        tap.ok(model.violations[rule] > 0, f"rule {rule} finds {what}")
    tap.eq(sorted(set(RULES) - found), [], "every rule has found a fault")


def main():
    tap = Tap(2 + 2 * 5 + len(CLEAN) + 2 * len(FAULTS) + len(POLICIES) + 1)
    test_clean_logs(tap)
    test_faults(tap)
    test_captures(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
