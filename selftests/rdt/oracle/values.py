# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Are the values right: over a life, in slices of 100 ms, occupancy, residue and sums?

With "rdtctl log truth" the machine logs, after each read of a counter, what each process
has moved and holds at that moment. These checks compare memwatch with that, read by read,
so that the load of the host makes no difference.
"""

import collections

from .recording import NAMES
from .registers import BANDWIDTH, SLACK_NS
from .truth import MIB

LINE = 64
SLACK = 64 * LINE	# at the begin and end of a life, and when an RMID gets another owner


def next_owner_read(run, log, domain, account):
    """The first read of the counters for the next owner of the RMID; None if there is none."""
    later = [a for a in run.accounts.values()
             if a.rmid == account.rmid and a.generation > account.generation]
    for a in sorted(later, key=lambda a: a.generation):
        rows = log.match_readings(domain, a.rmid, a.readings.get(domain, []))
        if rows:
            return rows[0][3]
    return None


def lifetime_bytes(run, parts, log, event):
    """
    What a process moved from its birth until another process had its last RMID, or to the last
    read of a counter in the recording. What is written back later has the RMID of the other one.
    """
    return sum(log.truth_at(d, parts[0], next_owner_read(run, log, d, parts[-1]), event)
               for d in log.domains)


def missed_bytes(parts, log):
    """Bytes of complete wraps of a counter between two reads, in the life of a process."""
    return sum(missed_between(log, d, a, log.match_readings(d, a.rmid, readings))
               for a in parts for d, readings in a.readings.items())


def missed_between(log, domain, account, rows):
    """Bytes of complete wraps between the first and the last of some matched readings."""
    return sum(log.missed_wraps(domain, account, r0[3], r1[3]) for r0, r1 in zip(rows, rows[1:]))


def switching_bytes(run, key):
    """
    Module and machine do not see a switch at the same instruction: what is filled in between
    has the RMID of one process and is accounted to the other. The machine counts these
    lines. Each may be written back later.
    """
    return 2 * LINE * run.snaps[-1].of_process(key, "switch_fills")


def is_right(want, got, status, slack, assigned):
    """
    Within 0.1 %. Where counters are assigned, a process that has ended may lose them while
    its lines are still in the cache: its value is then a lower bound, and says so.
    """
    slack += want / 1000 + SLACK
    if assigned and status == "estimated":
        return want * 0.9 <= got <= want + slack
    return status == "ok" and abs(got - want) <= slack


def check_lifetime(tap, run, log):
    """
    What a process has written is written back after it has ended, and belongs to it until
    another process gets its RMID.
    """
    assigned = int(run.status()["rdt_counters"])
    bad, seen, worst = [], 0, 0.0
    reported = {(p["tgid"], p["start_time_ns"]): p for p in run.report["processes"]}
    for key, parts in sorted(run.processes().items()):
        if not parts[0].is_load():
            continue
        missed = missed_bytes(parts, log)
        if missed:
            tap.note("%s pid %d: a counter wrapped unseen: %d bytes" %
                     (parts[0].comm, key[0], missed))
        switching = switching_bytes(run, key)
        for event in BANDWIDTH:
            want = lifetime_bytes(run, parts, log, event) - missed
            report = reported.get(key, {}).get(NAMES[event], {})
            got = report.get("value") or 0
            row = (parts[0].comm, key[0], event, want, got, report.get("status"),
                   switching)
            tap.note("%-16s pid %-5d %-5s truth %11d report %11d %s, %d while switching" % row)
            if want >= MIB:
                seen += 1
                worst = max(worst, abs(got - want) / want)
            if not is_right(want, got, report.get("status"), switching, assigned):
                bad.append(row)
    tap.note("life: %d values of a MiB and more, off by %.2f %% at worst" % (seen, worst * 100))
    tap.ok(seen >= 12, "at least 12 values of a life are compared: %d" % seen)
    tap.ok(not bad, "the bytes of each process over its life are right within 0.1 %, 4 KiB and "
           "what was filled while it was switched in or out", bad)


def uncounted_bytes(run, parts, log):
    """What of its lifetime_bytes() a process moved after the last reading with a counter."""
    count = 0
    for d in log.domains:
        reads = [row[3] for a in parts
                 for row in log.match_readings(d, a.rmid, a.readings.get(d, []))
                 if "total" in row[1]]
        if reads:
            end = next_owner_read(run, log, d, parts[-1])
            count += log.truth_at(d, parts[0], end, "total") - \
                log.truth_at(d, parts[0], reads[-1], "total")
    return count


def check_children(tap, run, log, comm):
    """
    Where counters are assigned, a process that has ended may lose them while its lines are
    still in the cache. What is written back later is not counted, and its value says so.
    """
    assigned = int(run.status()["rdt_counters"])
    reported = {(p["tgid"], p["start_time_ns"]): p for p in run.report["processes"]}
    want = got = n = uncounted = missed = 0
    for key, parts in run.processes().items():
        if parts[0].comm != comm or not parts[0].free:
            continue
        want += lifetime_bytes(run, parts, log, "total")
        got += sum(sum(a.final("total").values()) for a in parts)
        missed += missed_bytes(parts, log)
        if assigned and reported.get(key, {}).get(NAMES["total"], {}).get("status") == "estimated":
            uncounted += uncounted_bytes(run, parts, log)
        n += 1
    tap.note("%d short-lived children: truth %d memwatch %d, without counters %d, in whole wraps %d" %
             (n, want, got, uncounted, missed))
    tap.ok(n >= 5, "at least 5 short-lived children are compared: %d" % n)
    tap.ok(abs(got - (want - uncounted - missed)) <= want / 100,
           "the bytes of all short-lived children together are right within 1 %",
           "got %d, expected %d" % (got, want - uncounted - missed))


def matched_loads(run, log):
    """(account, domain, matched readings) of the loads."""
    for account in run.accounts.values():
        if account.is_load():
            for domain, readings in account.readings.items():
                yield account, domain, log.match_readings(domain, account.rmid, readings)


def summary(bad, most=8):
    return "%d: %s" % (len(bad), bad[:most])


def check_readings(tap, run, log):
    """A record says what the registers said at its own time, to the byte."""
    wrong, seen, late = [], 0, 0
    for a, d, rows in matched_loads(run, log):
        for before, row in zip([None] + rows, rows):
            seen += 1
            if not before or row[3] is not before[3]:
                late = max(late, row[0] - row[3].time)
            if not log.fits(before, row[1], row[3]):
                wrong.append((a.comm, a.tgid, d, round(row[0] / 1e6, 3), row[1], row[3].value))
    tap.note("%d readings of loads; the longest time from register to record: %.3f ms" %
             (seen, late / 1e6))
    tap.ok(seen >= 1000, "at least 1000 readings are compared with the registers: %d" % seen)
    tap.ok(not wrong, "each reading is exactly what the registers said at its time",
           summary(wrong))


def check_slices(tap, run, log):
    """What the process moved between two readings that are at least 100 ms apart."""
    bad, seen, worst = [], 0, 0.0
    for a, d, rows in matched_loads(run, log):
        rows = [r for r in rows if "total" in r[1]]
        first = rows[0] if rows else None
        for row in rows:
            if row[0] - first[0] < 100e6:
                continue
            want = log.truth_between(d, a, first[3], row[3], "total")
            want -= missed_between(log, d, a, rows[rows.index(first):rows.index(row) + 1])
            got = row[1]["total"] - first[1]["total"]
            if want >= MIB // 4 and row[0] - first[0] < 200e6:
                seen += 1
                worst = max(worst, abs(got - want) / want)
                if abs(got - want) > want / 20:
                    bad.append((a.comm, a.tgid, d, round(first[0] / 1e6, 1),
                                round(row[0] / 1e6, 1), want, got))
            first = row
    tap.note("slices: %d of 100 ms, off by %.2f %% at worst" % (seen, worst * 100))
    tap.ok(seen >= 50, "at least 50 slices of 100 ms are compared: %d" % seen)
    tap.ok(not bad, "the bytes of each process per 100 ms are right within 5 %", summary(bad))


def check_occupancy(tap, run, log):
    """What earlier owners of the RMID left in the cache is part of its occupancy."""
    bad, seen, worst = [], 0, 0.0
    for a, d, rows in matched_loads(run, log):
        if any(domain == d for _, domain, _ in a.residue):
            continue
        for time, value, _, read in rows:
            want, got = log.truth_at(d, a, read, "occupancy"), value.get("occupancy", 0)
            if "occupancy" not in value or max(want, got) < MIB // 4:
                continue
            seen += 1
            worst = max(worst, abs(got - want) / max(want, 1))
            if abs(got - want) > want / 100 + SLACK:
                bad.append((a.comm, a.tgid, d, round(time / 1e6, 1), want, got))
    tap.note("occupancy: %d readings, off by %.2f %% at worst" % (seen, worst * 100))
    tap.ok(seen >= 1000, "at least 1000 readings of occupancy are compared: %d" % seen)
    tap.ok(not bad, "the occupancy of each process is right within 1 % and 4 KiB", summary(bad, 10))


def check_residue(tap, run, log):
    """The residue of an RMID is its last reading before it was given; the report has the sum."""
    wrong, wrong_sums, seen = [], [], 0
    for a in run.accounts.values():
        for t, d, v in a.residue:
            seen += 1
            before = [r for r in log.reads[d, a.rmid] if r.time <= t + SLACK_NS][-2:]
            if v not in [r.value.get("occupancy", -1) * log.scale for r in before]:
                wrong.append((a.comm, a.tgid, d, v, [r.value for r in before]))
    by = run.processes()
    for p in run.report["processes"]:
        parts = by.get((p["tgid"], p["start_time_ns"]), [])
        got = p["llc_residue_bytes"]["value"]
        if parts and all(a.alloc for a in parts) and got is not None and \
                got != sum(v for a in parts for _, _, v in a.residue):
            wrong_sums.append((p["comm"], p["tgid"], got, [a.residue for a in parts]))
    tap.note("%d RMIDs had residue when they were given to a process" % seen)
    tap.ok(not wrong, "the residue of an RMID is what its registers said before", summary(wrong))
    tap.ok(not wrong_sums, "the report has the sum of the residue of each process",
           summary(wrong_sums))


def sum_accounts(run, log):
    """
    Bytes by (domain, RMID, event) that memwatch attributes, and the bytes of total that it
    attributes to nobody: an RMID moved them while its owner changed between two reads. Such
    a reading has the status "estimated".
    """
    per, nobodys = collections.Counter(), 0
    for (rmid, _), a in run.accounts.items():
        for event in BANDWIDTH:
            for d, v in a.final(event).items():
                per[d, rmid, event] += v
        for d, readings in a.readings.items():
            if not any(r[2] for r in readings):
                continue
            last, before = {}, None
            for _, value, estimated, read in log.match_readings(d, rmid, readings):
                # A record without a new read repeats the last one, and its status.
                for event in estimated if read is not before else ():
                    moved = log.moved_since_previous(d, rmid, read, event)
                    moved = max(0, moved - (value[event] - last.get(event, 0)))
                    per[d, rmid, event] += moved
                    nobodys += event == "total" and moved
                last.update(value)
                before = read
    return per, nobodys


def machine_moved(run, label):
    """Bytes from the first snapshot to the one of this label."""
    first = run.snaps[0]
    last = next(s for s in run.snaps if s.label == label)
    return sum(last.domain[d]["total"] - first.domain[d]["total"] for d in last.domain)


def check_sums(tap, run, log):
    """The sum of what memwatch says is what the registers said, read by read."""
    per, nobodys = sum_accounts(run, log)
    bad, moved, told = [], 0, 0
    for (d, rmid), reads in log.reads.items():
        for event, units in reads[-1].moved.items():
            want, got = units * log.scale, per[d, rmid, event]
            if event == "total":
                moved += want
                told += got
            if want != got:
                bad.append((d, rmid, event, want, got))
    tap.note("moved while the owner of an RMID changed, and marked estimated: %d" % nobodys)
    tap.ok(nobodys <= moved / 1000, "less than a thousandth is attributed to nobody",
           "%d of %d bytes" % (nobodys, moved))
    tap.note("total between first and last reading: registers %d, memwatch %d" % (moved, told))
    tap.ok(moved > 0, "the counters moved")
    tap.ok(not bad, "the sum over all owners of each RMID is exactly what its counter moved", bad)
    tap.eq(told, moved, "the sum over all processes and RMID 0 is that of all counters")
    live, end = (machine_moved(run, label) for label in ("live", "end"))
    missed = sum(missed_bytes(parts, log) for parts in run.processes().values())
    tap.ok(live * 0.99 <= moved + missed and moved <= end * 1.01,
           "the counters moved within 1 % of what the machine did, until a moment between the "
           "snapshots before and after the end of the session",
           "machine %d to %d, counters %d, in whole wraps %d" % (live, end, moved, missed))


def command_values(tap, run):
    tap.note("%d snapshots, %d processes" % (len(run.snaps), len(run.processes())))
    losses = run.report["losses"]
    tap.eq(losses["lost"] + losses["malformed"], 0, "no record was lost or malformed")
    log = run.register_log()
    check_lifetime(tap, run, log)
    check_children(tap, run, log, "memload-child")
    check_readings(tap, run, log)
    check_slices(tap, run, log)
    check_occupancy(tap, run, log)
    check_sums(tap, run, log)
    check_residue(tap, run, log)
