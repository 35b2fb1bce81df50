#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Replays memory of real machines, as it was and with leaks added, and scores the alerts.

    score-machines.py MEMWATCHCTL FOLDER

FOLDER is not part of this project. Its machines.csv.zst is a trace of `growth record`, in which
each machine is a process; none of them is known to leak. `ramp.py PERCENT SEED --room GIB` in it
adds a leak of so many percent of 64 GiB an hour to each, up to a limit, and writes the truth:
pid,onset_s,rate_kb_per_s,limit_s. Exits with 1 if a mark of docs/evaluation.md is missed that was
met before.
"""
import csv
import json
import math
import pathlib
import subprocess
import sys

RATES, LIMITS_GIB = ("0.5", "1", "2"), ("72", "80", "96")
# The time to the limit misses its mark of 80 %, see docs/evaluation.md; this is what must not get
# worse, and what the interval must hold.
ESTIMATES, INTERVALS = 0.30, 0.90


def upper_bound(hits, n):
    """The upper end of Wilson's interval with 95 % confidence."""
    z, p = 1.96, hits / n
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (p + z * z / (2 * n) + half) / (1 + z * z / n)


def replay(program, trace):
    done = subprocess.run([program, "--format", "json", "growth", "replay", "-"], input=trace,
                          stdout=subprocess.PIPE, check=True)
    return {row["pid"]: row["alerts"] for row in json.loads(done.stdout)["processes"]}


def leaking(folder, trace, rate, limit):
    """The trace with a leak in each machine, and {pid: (onset, time of the limit or NaN)}."""
    done = subprocess.run([sys.executable, folder / "ramp.py", rate, "seed", "--room", limit],
                          input=trace, capture_output=True, check=True)
    rows = csv.DictReader(done.stderr.decode().splitlines())
    return done.stdout, {int(row["pid"]): (float(row["onset_s"]), float(row["limit_s"] or "nan"))
                         for row in rows}


def judge(alerts, onset, limit):
    """What is true of a machine that leaks: a set of words."""
    first = next((a for a in alerts if a["start_s"] >= onset), None)
    words = {"early"} if any(a["start_s"] < onset for a in alerts) else set()
    if first is None:
        return words
    words.add("found")
    left = limit - first["start_s"]
    if math.isnan(left) or left <= 0:
        return words
    words.add("limit")
    eta, low, high = (first[f"eta_{name}_seconds"] for name in ("oom", "low", "high"))
    if eta is not None and abs(eta - left) <= 0.25 * left:
        words.add("estimate")
    if (low or 0) <= left <= (math.inf if high is None else high):
        words.add("interval")
    return words


def is_met(what, part, whole, bound, most=False, required=None):
    """Prints a mark, and whether it is met; returns whether it is no worse than @bound."""
    share = part / whole if whole else 0
    asked = bound if required is None else required
    print(f"  mark {'met' if (share <= asked if most else share >= asked) else 'MISSED'}: {part} of "
          f"{whole} ({100 * share:.1f} %) {what}, required: at {'most' if most else 'least'} "
          f"{100 * asked:.0f} %")
    return share <= bound if most else share >= bound


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    trace = subprocess.run(["zstd", "-dc", folder / "machines.csv.zst"], stdout=subprocess.PIPE,
                           check=True).stdout
    as_they_were = replay(program, trace)
    alarms, machines = sum(bool(alerts) for alerts in as_they_were.values()), len(as_they_were)
    judged = []
    for rate in RATES:
        for limit in LIMITS_GIB:
            with_leaks, truth = leaking(folder, trace, rate, limit)
            said = replay(program, with_leaks)
            judged += [judge(said[pid], *truth[pid]) for pid in truth]
    count = {word: sum(word in words for words in judged)
             for word in ("early", "found", "limit", "estimate", "interval")}
    print(f"real machines: {machines}, and {len(judged)} leaks of {RATES[0]} to {RATES[-1]} % of 64 "
          f"GiB an hour")
    met = [
        is_met(f"machines have an alert (95 % confidence: at most "
               f"{100 * upper_bound(alarms, machines):.0f} %)", alarms, machines, 0.02, most=True),
        is_met("leaks have an alert after the onset", count["found"], len(judged), 0.9),
        is_met("have one before the onset", count["early"], len(judged), 0.01, most=True),
        is_met("estimates of the time to the limit are within 25 %", count["estimate"],
               count["limit"], ESTIMATES, required=0.8),
        is_met("intervals hold the time to the limit", count["interval"], count["limit"],
               INTERVALS),
    ]
    sys.exit(0 if all(met) else 1)


main()
