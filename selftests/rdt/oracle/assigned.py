# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""
Are the values honest where there are fewer bandwidth counters than RMIDs that run?

What an RMID moves while no counter is assigned to it is lost. A value must then be a lower
bound and say so, and whatever was counted must be charged to somebody.
"""

from .recording import NAMES
from .registers import BANDWIDTH
from .truth import MIB
from .values import SLACK, lifetime_bytes, machine_moved, sum_accounts, summary, switching_bytes


def check_loads(tap, run, log):
    too_much, not_honest, shares, statuses = [], [], [], set()
    reported = {(p["tgid"], p["start_time_ns"]): p for p in run.report["processes"]}
    for key, parts in sorted(run.processes().items()):
        if not parts[0].is_load():
            continue
        slack = switching_bytes(run, key) + SLACK
        for event in BANDWIDTH:
            want = lifetime_bytes(run, parts, log, event)
            report = reported.get(key, {}).get(NAMES[event], {})
            got, status = report.get("value") or 0, report.get("status")
            row = (parts[0].comm, key[0], event, want, got, status)
            tap.note("%-12s pid %-5d %-5s truth %11d report %11d %s" % row)
            if got > want * 1.01 + slack:
                too_much.append(row)
            if abs(got - want) > want / 100 + slack and status != "estimated":
                not_honest.append(row)
            if event == "total" and want >= MIB:
                shares.append(got / want)
                statuses.add(status)
    tap.ok(len(shares) >= 6, "at least 6 loads are compared: %d" % len(shares))
    tap.ok(not too_much, "no process has more bytes than it moved", summary(too_much))
    tap.ok(not not_honest, "a value that is not right within 1 % is estimated",
           summary(not_honest))
    tap.ok("estimated" in statuses, "some loads had no counters for a part of the time")
    tap.ok(shares and min(shares) > 0.1,
           "each load was counted for a part of what it moved, the least: %.0f %%" %
           (100 * min(shares, default=0)))


def check_counted(tap, run, log):
    per, _ = sum_accounts(run, log)
    counted = told = 0
    for (d, rmid), reads in log.reads.items():
        counted += reads[-1].moved["total"] * log.scale
        told += per[d, rmid, "total"]
    tap.note("total that the counters counted: %d, that memwatch charged: %d" % (counted, told))
    tap.ok(counted > 0, "the counters moved")
    tap.eq(told, counted, "the sum over all processes and RMID 0 is what the counters counted")
    machine = machine_moved(run, "unloaded")
    tap.note("the machine moved %d, of which %.0f %% were counted" %
             (machine, 100 * counted / machine))
    tap.ok(counted <= machine, "no more was counted than the machine moved")


def check_without_counters(tap, run):
    seen = sum(a.status["total", "unavailable"] for a in run.accounts.values())
    tap.ok(seen > 0, "an RMID that ran without counters reads as unavailable: %d times" % seen)
    lost = [a.comm for a in run.accounts.values()
            if a.is_load() and a.status["occupancy", "unavailable"]]
    tap.ok(not lost, "occupancy is known without counters", lost)


def command_assigned(tap, run):
    losses = run.report["losses"]
    tap.eq(losses["lost"] + losses["malformed"], 0, "no record was lost or malformed")
    log = run.register_log()
    check_loads(tap, run, log)
    check_counted(tap, run, log)
    check_without_counters(tap, run)
