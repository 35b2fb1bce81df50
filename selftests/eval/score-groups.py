#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Replays a recording of record-groups.py and compares the answer with its truth.

    score-groups.py MEMWATCHCTL TRACE        TRACE.csv.xz and TRACE.json

A leak is found by a notice about its cgroup, or about sockets of the machine where cgroups do not
count them, as early as docs/evaluation.md asks; one that is killed also needs an alert before. An
alert of a cgroup that does not leak, or of the machine, is a false alarm. Exits with 1 if a mark
is missed.
"""
import json
import lzma
import subprocess
import sys

import marks


def replay(program, trace):
    with lzma.open(trace + ".csv.xz") as file:
        done = subprocess.run([program, "--format", "json", "growth", "replay", "-"],
                              input=file.read(), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def first(rows, key, since):
    """The first time from @since on at which a notice or an alert holds."""
    return min((max(span["start_s"], since) for row in rows for span in row[key]
                if span["end_s"] is None or span["end_s"] > since), default=None)


def main():
    program, trace = sys.argv[1:]
    with open(trace + ".json", encoding="utf-8") as file:
        truth = json.load(file)
    answer = replay(program, trace)
    by_path = {}
    for row in answer["cgroups"]:
        by_path.setdefault(row["path"], []).append(row)
    sockets = [row for row in answer["host"]["classes"] if row["class"] == "sock"]
    found = leaks = alarms = 0
    for run in truth["runs"]:
        rows = by_path.get(run["path"], [])
        if run["label"] == "leak":
            leaks += 1
            if run["kind"] == "sock" and not any(row["class"] == "sock" for row in rows):
                rows = sockets
            due = run["onset_s"] + marks.notice_deadline(run["rate_bytes_per_second"]) + \
                2 * truth["cadence_s"]
            notice = first(rows, "notices", run["onset_s"])
            alert = first(rows, "alerts", run["onset_s"])
            good = notice is not None and notice <= due and \
                (run["oom_s"] is None or (alert is not None and alert < run["oom_s"]))
            found += good
            print(f"  {run['name']}: notice {notice} (due {due:.0f}), alert {alert}, "
                  f"killed {run['oom_s']}{'' if good else ': MISSED'}")
        elif any(row["alerts"] for row in rows):
            alarms += 1
            print(f"  {run['name']}: FALSE ALARM")
    if any(row["alerts"] for row in answer["host"]["classes"]):
        alarms += 1
        print("  the machine: FALSE ALARM")
    benign = len(truth["runs"]) - leaks
    print(f"cgroups: leaks that are in no process: {found} of {leaks} found; "
          f"false alarms: {alarms} in {benign} runs without a leak")
    sys.exit(found < leaks or alarms > 0)


main()
