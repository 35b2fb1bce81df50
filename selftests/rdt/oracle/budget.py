# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Does every tick keep its budget of register operations, and is each RMID read in time?"""

import collections
import re

from .truth import CTR, EVTSEL, PQR, domain_of_cpus, make_guest_clock, read_accesses

STATED_BUDGET = 48	# operations per tick and CPU that the manual states
STALL_NS = 10e6		# a CPU that does not tick for longer was stopped by the emulator
LONGEST_WAIT_NS = 1e9


def find_stalls(run, domain_of):
    """By domain (from, to): none of its CPUs ticked, because the emulator did not run them."""
    clock = make_guest_clock(run.snaps)
    last, stalls = {}, collections.defaultdict(list)
    for host, cpu, op, msr, _ in read_accesses(run.out("rdt.msr")):
        if msr == PQR and op == "r":
            now, d = clock(host), domain_of[cpu]
            if now - last.get(d, now) > STALL_NS:
                stalls[d].append((last[d], now))
            last[d] = now
    return stalls


def find_longest_wait(run, log):
    """
    Of the RMIDs that were in use, in each domain: the longest time between two readings, by
    the guest's clock, not counting stalls. Returns (RMIDs in use for longer than a second,
    longest time, (domain, RMID, time with stalls)). There are more processes than the
    recorder can follow: one whose end was lost has certainly lived until its last sample.
    """
    stalls = find_stalls(run, domain_of_cpus(run.snaps))
    begin = {s.label: s.time for s in run.snaps}
    most, seen = (0, None), 0
    for a in run.accounts.values():
        if not a.rmid or not a.alloc:
            continue
        first, last = max(a.alloc, begin["begin"]), min(a.free or a.seen, begin["end"])
        for d in log.domains:
            times = [r.time for r in log.reads[d, a.rmid] if first < r.time < last]
            for t0, t1 in zip([first] + times, times + [last]):
                lost = 0
                if t1 - t0 > LONGEST_WAIT_NS / 2:
                    lost = sum(max(0, min(t1, y) - max(t0, x)) for x, y in stalls[d])
                most = max(most, (t1 - t0 - lost, (d, a.rmid, t1 - t0)))
            seen += last - first > 1e9
    return seen, *most


def check_machine_counts(tap, run):
    """The machine's own counts, which do not depend on its log."""
    labels = run.labels()
    over, idle = [], []
    for cpu, b in labels["end"].cpu.items():
        a = labels["begin"].cpu[cpu]
        ops, ticks = (sum(b[k] - a[k] for k in keys) for keys in
                      (("wrmsr_evtsel", "rdmsr_ctr"), ("rdmsr_pqr",)))
        tap.note("CPU %d: %d operations in %d ticks" % (cpu, ops, ticks))
        if ops > STATED_BUDGET * ticks:
            over.append((cpu, ops, ticks))
        if not ticks:
            idle.append(cpu)
    tap.ok(not idle, "every CPU has ticks", idle)
    tap.ok(not over, "no CPU does more operations than its ticks allow, as the machine counts",
           over)


def operations_per_tick(run):
    """
    The most operations in a tick, and the number of ticks, by CPU. A tick reads PQR once and
    then counters; what lies between two such reads belongs to a tick. Three reads come
    before the first tick (at load, at start, on the CPU that starts), and then the baseline
    of all RMIDs. After the last tick the rest is read.
    """
    ops, chunks = collections.Counter(), collections.defaultdict(list)
    for _, cpu, op, msr, _ in read_accesses(run.out("rdt.msr")):
        if msr == PQR and op == "r":
            chunks[cpu].append(ops[cpu])
            ops[cpu] = 0
        elif msr in (EVTSEL, CTR):
            ops[cpu] += 1
    return ({c: max(v[4:]) for c, v in chunks.items() if len(v) > 100},
            {c: len(v) for c, v in chunks.items()})


def command_budget(tap, run):
    tap.eq(int(run.status()["rdt_budget"]), STATED_BUDGET,
           "status names the budget that the manual states")
    most, ticks = operations_per_tick(run)
    tap.note("most operations in a tick, per CPU: %s; ticks: %s" % (most, ticks))
    tap.ok(most, "at least one CPU has more than 100 ticks")
    tap.ok(all(m <= STATED_BUDGET for m in most.values()),
           "no tick exceeds its budget of register operations", most)
    tap.ok(any(m == STATED_BUDGET for m in most.values()),
           "the load is such that some ticks use up their budget", most)
    check_machine_counts(tap, run)
    seen, wait, where = find_longest_wait(run, run.register_log())
    tap.note("%d RMIDs in use for longer than a second (per domain); longest wait %.0f ms; "
             "domain, RMID, with stalls: %s" % (seen, wait / 1e6, where))
    tap.ok(seen >= 10, "at least 10 RMIDs are in use for longer than a second: %d" % seen)
    tap.ok(wait <= LONGEST_WAIT_NS, "every RMID in use is read once a second in each domain",
           where)
    waits = sum(int(n) for n in re.findall(r"rdt_waits=(\d+)", run.read_text("overhead")))
    stale = sum(n for a in run.accounts.values()
                for (_, status), n in a.status.items() if status == "stale")
    tap.ok(waits > 0, "some readings do not fit into the budget: %d" % waits)
    tap.ok(stale > 0, "values that were not read in time are marked stale: %d" % stale)
