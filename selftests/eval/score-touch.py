#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Replays a recording of record-touch.py and compares the answer with its truth and with what
`growth watch` said live.

    score-touch.py [--live] [--explain] MEMWATCHCTL TRACE    TRACE.csv.xz, .live.xz and .json

--live scores what was said live, by the detectors of that day; else the trace is replayed. A run
that leaks is found by an alert about its processes or its cgroup within 45 minutes of the onset. An
alert about a run that does not leak is a false alarm. Exits with 1 if a mark is missed that was met
before, see docs/evaluation.md.
"""
import collections
import json
import lzma
import subprocess
import sys

import packed

ALERT_S, SHARE_S = 45 * 60, 180
# What the recording of 2026-11-26 gave, live and replayed: marks that are missed are not lost any
# further.
WORST = {"native": 19 / 27, "managed": 10 / 13, "alarms": 2}


def of(part, whole):
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "0 of 0"


class Said:
    """What was said about a run: [(start, end, reason)] of notices and of alerts."""

    def __init__(self):
        self.notices, self.alerts, self.share_s = [], [], None


def live(trace, truth):
    """{name of the run: Said} of the events that were printed, one on a line."""
    by_path = {run["path"]: run["name"] for run in truth["runs"]}
    pids = {int(pid): name for pid, name in truth["pids"].items()}
    said = collections.defaultdict(Said)
    open_spans = {}
    with lzma.open(trace + ".live.xz", "rt") as file:
        for line in file:
            event = json.loads(line)
            name = by_path.get(event.get("path")) or pids.get(event.get("pid"))
            if name is None:
                continue
            when, run = event["time_s"], said[name]
            key = (name, event.get("pid"), event.get("class"))
            what = event["event"]
            if what in ("notice", "alert"):
                span = [when, None, event["reason"]]
                (run.notices if what == "notice" else run.alerts).append(span)
                open_spans[key, what] = span
            elif what in ("settle", "clear"):
                span = open_spans.pop((key, "notice" if what == "settle" else "alert"), None)
                if span:
                    span[1] = when
            elif what == "touch" and run.share_s is None and run.notices:
                run.share_s = when - run.notices[0][0]
    return said


def replayed(program, trace, truth):
    """The same by the answer of `growth replay`; the first cold share is that of the trace."""
    times, series = packed.unpack(trace + ".csv.xz")
    done = subprocess.run([program, "--format", "json", "growth", "replay", "-"],
                          input="".join(packed.trace(times, series)).encode(),
                          stdout=subprocess.PIPE, check=True)
    answer = json.loads(done.stdout)
    by_path = {run["path"]: run["name"] for run in truth["runs"]}
    paths, shares = {}, {}
    for (number, _, path), (at, columns) in series.items():
        if number > 0:
            paths[number] = path
            known = [i for i, kb in enumerate(columns.get("gained_kb", ())) if kb]
            shares[number] = times[at + known[0]] if known else None
    said = collections.defaultdict(Said)
    for row in answer["processes"] + answer["cgroups"]:
        path = row.get("path") or paths[row["pid"]]
        run = said[by_path[path]]
        for spans, kept in ((row["notices"], run.notices), (row["alerts"], run.alerts)):
            kept += [[span["start_s"], span["end_s"], span.get("reason")] for span in spans]
        share = shares.get(row.get("pid"))
        if share is not None and row["notices"]:
            since = max((s["start_s"] for s in row["notices"] if s["start_s"] <= share), default=None)
            if since is not None and run.share_s is None:
                run.share_s = share - since
    return said


def first_alert(run, said):
    return min((span[0] for span in said[run["name"]].alerts), default=None)


def kind_of(run):
    """The row of the table: for benign runs the second word of the name."""
    return run["by"] or ("long" if run["label"] == "long" else run["name"].split("-")[1])


def print_leaks(truth, said, explain):
    met = {}
    for kind in ("native", "managed"):
        runs = [run for run in truth["runs"] if run["by"] == kind and run["counts"]]
        alerts = {run["name"]: first_alert(run, said) for run in runs}
        good = [run for run in runs if alerts[run["name"]] is not None and
                run["onset_s"] <= alerts[run["name"]] <= run["onset_s"] + ALERT_S]
        delays = sorted((alerts[run["name"]] - run["onset_s"]) / 60 for run in good)
        shares = [said[run["name"]].share_s for run in runs]
        soon = sum(share is not None and share <= SHARE_S for share in shares)
        middle = f"{delays[len(delays) // 2]:.1f} min" if delays else "-"
        print(f"  {kind} leaks of {min(r['rate_bytes_per_second'] for r in runs) // 1024} to "
              f"{max(r['rate_bytes_per_second'] for r in runs) // 1024} KiB/s: alert within 45 "
              f"minutes {of(len(good), len(runs))}, median after {middle}; cold share "
              f"within {SHARE_S} s of the notice {of(soon, len(runs))}")
        met[kind] = len(good) / len(runs)
        if explain:
            for run in runs:
                if run not in good:
                    print(f"    {run['name']}: alert {alerts[run['name']]}, MISSED")
    return met


def print_benign(truth, said, explain):
    table = collections.OrderedDict()
    for run in truth["runs"]:
        if not run["by"] and run["counts"]:
            row = table.setdefault(kind_of(run), [0, 0, collections.Counter()])
            row[0] += 1
            alerts = said[run["name"]].alerts
            row[1] += bool(alerts)
            row[2].update({span[2] for span in alerts})
            if explain and alerts:
                print(f"    {run['name']}: FALSE ALARM {alerts}")
    for kind, (runs, alarms, reasons) in table.items():
        why = ", ".join(f"{n} {reason}" for reason, n in sorted(reasons.items()))
        print(f"  {kind}: {alarms} of {runs} runs have an alert{' (' + why + ')' if why else ''}")
    runs = sum(row[0] for kind, row in table.items() if kind != "long")
    alarms = sum(row[1] for kind, row in table.items() if kind != "long")
    print(f"  all that do not leak, but cold caches that fill for longer than 40 minutes: "
          f"{alarms} of {runs} have an alert")
    return alarms


def compare(runs, said, spoken):
    """How many runs have the same rules in the replay as they had live."""
    differ = []
    for run in runs:
        pair = [sorted({span[2] for span in what[run["name"]].alerts}) for what in (said, spoken)]
        if pair[0] != pair[1]:
            differ.append(f"{run['name']} ({'/'.join(pair[0]) or 'none'}, live "
                          f"{'/'.join(pair[1]) or 'none'})")
    print(f"  replay and live agree on the alerts of {len(runs) - len(differ)} of {len(runs)} runs"
          + (": not of " + ", ".join(differ) if differ else ""))


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    program, trace = words
    with open(trace + ".json", encoding="utf-8") as file:
        truth = json.load(file)
    for run in truth["runs"]:
        run["counts"] = run["ended_s"] is None or (run["by"] and run["ended_s"] > run["onset_s"] + ALERT_S)
    spoken = live(trace, truth)
    said = spoken if "--live" in sys.argv else replayed(program, trace, truth)
    print(f"touch: {len(truth['runs'])} runs of real programs side by side for "
          f"{truth['end_s'] / 60:.0f} minutes, {'live' if said is spoken else 'replayed'}:")
    met = print_leaks(truth, said, "--explain" in sys.argv)
    alarms = print_benign(truth, said, "--explain" in sys.argv)
    ended = [run["name"] for run in truth["runs"] if not run["counts"]]
    if ended:
        print(f"  not counted, because they ended too early: {', '.join(ended)}")
    if said is not spoken:
        compare([run for run in truth["runs"] if run["counts"]], said, spoken)
    sys.exit(any(met[kind] < WORST[kind] for kind in met) or alarms > WORST["alarms"])


main()
