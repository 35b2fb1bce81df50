#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Replays a recording of record-days.py, with its times multiplied by the factor by which the
days were compressed, and compares the answer with its truth.

    score-days.py MEMWATCHCTL TRACE        TRACE.csv.xz and TRACE.json

A leak is told by a notice or an alert of the process that grew most since the onset, or of the
class of its cgroup that did. Every other alert is a false alarm: of a run without a leak, before the onset, or of
another process. Prints the marks of docs/evaluation.md for real machines and whether they are met;
exits with 1 only if a figure is worse than it was when the rules were last changed.
"""
import json
import statistics
import subprocess
import sys

import packed

# What was measured when the rules were last tuned with the recording: not less, and not more.
MEASURED = {"alerted": 12, "noticed": 13, "benign_alarms": 1, "early": 0, "strangers": 0}
MARK_PERCENT = (0.5, 2)     # rates of leaks, in percent of the limit an hour, that have a mark
MARK_ALERTED = 0.9
MARK_EARLY = 0.01
ETA_TOLERANCE = 0.25


def replay(program, times, series):
    text = "".join(packed.trace(times, series)).encode()
    done = subprocess.run([program, "--format", "json", "growth", "replay", "-"], input=text,
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def hours(seconds):
    return "-" if seconds is None else f"{seconds / 3600:.1f} h"


class Run:
    """A run of the truth, in stretched time, and what was told about it."""

    def __init__(self, truth, factor, times, series, answer):
        self.name, self.label, self.percent = (truth[key] for key in
                                               ("name", "label", "percent_per_hour"))
        self.program, self.path, self.by = truth["program"], truth["path"], truth["by"]
        self.onset, self.killed = (None if truth[key] is None else truth[key] * factor
                                   for key in ("onset_s", "oom_s"))
        own = {number: entry for (number, _, path), entry in series.items()
               if path == self.path and number}
        self.leaker = self.leaking_class = None
        if self.onset is not None:
            self.leaker = max(own, key=lambda number: self.gained(times, *own[number]))
            group = next((entry for (number, _, path), entry in series.items()
                          if path == self.path and not number), (0, {}))
            self.leaking_class = max(("anon", "shmem"), key=lambda name: self.gained(
                times, group[0], {name + "_kb": group[1].get(name + "_kb", [0])}))
        self.processes = [row for row in answer["processes"] if row["pid"] in own]
        self.cgroups = [row for row in answer["cgroups"] if row["path"] == self.path]
        self.hours = times[-1] / 3600

    def gained(self, times, at, columns):
        """How much something has grown since the onset, or since its start if that is later."""
        held = [sum(kb) for kb in zip(*(columns[name] for name in
                                        ("anon_kb", "shmem_kb", "swap_kb") if name in columns))]
        since = next((i for i in range(len(held)) if times[at + i] >= self.onset), None)
        return held[-1] - held[since] if held and since is not None else 0

    def spans(self, kind):
        """(start, level, row, span) of all notices or alerts, the earliest first."""
        found = []
        for level, rows in (("process", self.processes), ("cgroup", self.cgroups)):
            for row in rows:
                found.extend((span["start_s"], level, row, span) for span in row[kind])
        return sorted(found, key=lambda entry: entry[0])

    def is_about_the_leak(self, level, row, span):
        ended = span["end_s"] is not None and span["end_s"] <= self.onset
        return not ended and (row["class"] == self.leaking_class if level == "cgroup" else
                              row["pid"] == self.leaker)

    def first_notice(self):
        """When the leak is first told by a notice; one that holds at the onset counts from then."""
        return min((max(start, self.onset) for start, level, row, span in self.spans("notices")
                    if self.is_about_the_leak(level, row, span)), default=None)

    def first_alert(self):
        return next(((start, level, row, span) for start, level, row, span in self.spans("alerts")
                     if start >= self.onset and self.is_about_the_leak(level, row, span) and
                     (self.killed is None or start < self.killed)), None)

    def estimate(self):
        """(whether the time to the limit at the alert was right, whether its interval was), None
        if there is no alert or no kill."""
        alert = self.first_alert() if self.onset is not None and self.killed is not None else None
        if alert is None:
            return None
        left = self.killed - alert[0]
        guess, low, high = (alert[3][key + "_seconds"] for key in
                            ("eta_oom", "eta_low", "eta_high"))
        return (guess is not None and abs(guess - left) <= ETA_TOLERANCE * left,
                low is not None and low <= left and (high is None or left <= high))

    def false_alarms(self):
        """[(start, level, what, reason, early)]"""
        wrong = []
        for start, level, row, span in self.spans("alerts"):
            early = self.onset is None or start < self.onset
            if early or not self.is_about_the_leak(level, row, span):
                wrong.append((start, level, row["class"] if level == "cgroup" else row["comm"],
                              span["reason"], early))
        return wrong


def print_leak(run):
    alert, notice = run.first_alert(), run.first_notice()
    text = f"  {run.name}: {run.percent} % an hour by {run.by}, notice after " \
           f"{hours(None if notice is None else notice - run.onset)}"
    if alert is None:
        text += ", no alert: MISSED"
    else:
        start, level, row, span = alert
        what = row["class"] + " of the cgroup" if level == "cgroup" else "the process"
        text += f", alert after {hours(start - run.onset)} ({span['reason']}, {what})"
    left = run.hours * 3600 - run.onset
    text += f"; killed after {hours(run.killed - run.onset)}" if run.killed else \
        f"; watched for {hours(left)}"
    print(text)


def print_alarms(run):
    for start, level, what, reason, _ in run.false_alarms():
        print(f"  {run.name}: FALSE ALARM at {hours(start)}, {level}, {what}, {reason}")


def measure(runs):
    leaks = [run for run in runs if run.label == "leak"]
    benign = [run for run in runs if run.label == "benign" and run.killed is None]
    wrong = {run.name: run.false_alarms() for run in runs}
    return {
        "leaks": len(leaks), "benign": len(benign),
        "noticed": sum(run.first_notice() is not None for run in leaks),
        "alerted": sum(run.first_alert() is not None for run in leaks),
        "benign_alarms": sum(bool(wrong[run.name]) for run in benign),
        "early": sum(any(alarm[4] for alarm in wrong[run.name]) for run in leaks),
        "strangers": sum(any(not alarm[4] for alarm in wrong[run.name]) for run in leaks),
        "killed": sum(run.killed is not None for run in leaks),
        "killed_alerted": sum(run.killed is not None and run.first_alert() is not None
                              for run in leaks),
        "delays": [run.first_alert()[0] - run.onset for run in leaks if run.first_alert()],
        "notice_delays": [run.first_notice() - run.onset for run in leaks if run.first_notice()],
        "with_notice": sum(bool(run.spans("notices")) for run in benign),
    }


def print_programs(runs):
    """A line for each program: its leaks that have an alert, its runs with a false alarm."""
    for program in sorted({run.program for run in runs}):
        own = [run for run in runs if run.program == program]
        leaks = [run for run in own if run.label == "leak"]
        alerts = [run.first_alert() for run in leaks]
        levels = [level for alert in alerts if alert for level in alert[1:2]]
        wrong = [[alarm[1] for alarm in run.false_alarms()] for run in own]
        text = f"  {program}: {len(levels)} of {len(leaks)} leaks have an alert" if leaks else \
            f"  {program}: no leaks"
        if levels:
            text += f" (process {levels.count('process')}, cgroup {levels.count('cgroup')})"
        print(f"{text}; false alarms in {sum(map(bool, wrong))} of {len(own)} runs (process "
              f"{sum('process' in w for w in wrong)}, cgroup {sum('cgroup' in w for w in wrong)})")


def print_marks(runs, figures):
    low, high = MARK_PERCENT
    marked = [run for run in runs if run.label == "leak" and low <= run.percent <= high]
    found = sum(run.first_alert() is not None for run in marked)
    early = sum(alarm[4] for run in runs if run.label == "leak"
                for alarm in run.false_alarms() if alarm[1] == "process")
    processes = sum(len(run.processes) for run in runs if run.label == "leak")
    for met, text in (
            (found >= MARK_ALERTED * len(marked),
             f"{found} of {len(marked)} leaks of {low} to {high} % an hour have an alert, "
             f"required: at least {MARK_ALERTED:.0%}"),
            (early <= MARK_EARLY * processes,
             f"{early} alerts before the onset for {processes} processes of runs that leak, "
             f"required: at most {MARK_EARLY:.0%}"),
            (figures["benign_alarms"] == 0,
             f"{figures['benign_alarms']} of {figures['benign']} benign runs have an alert, "
             "required: 0")):
        print(f"  mark {'met' if met else 'MISSED'}: {text}")


def print_all(runs, figures):
    for run in runs:
        if run.label == "leak":
            print_leak(run)
        elif run.killed is not None:
            told = "after an alert" if run.spans("alerts") else "without an alert"
            print(f"  {run.name}: killed at {hours(run.killed)} {told}, because its limit is too "
                  "small for its load: counts as neither")
    for run in runs:
        if run.label == "leak" or run.killed is None:
            print_alarms(run)
    print_programs(runs)
    print_marks(runs, figures)
    estimates = [run.estimate() for run in runs if run.estimate()]
    print(f"  time to the limit at the alert: {sum(good for good, _ in estimates)} of "
          f"{len(estimates)} within 25 %, the interval holds {sum(held for _, held in estimates)}")
    print(f"  {figures['with_notice']} of {figures['benign']} runs without a leak have a notice, "
          "which is no false alarm")
    for key, what in (("notice_delays", "notice"), ("delays", "alert")):
        if figures[key]:
            print(f"  median time from the onset to the first {what}: "
                  f"{hours(statistics.median(figures[key]))}")


def load(program, name):
    """The runs of a recording, judged."""
    with open(name + ".json", encoding="utf-8") as file:
        truth = json.load(file)
    times, series = packed.unpack(name + ".csv.xz")
    times = [when * truth["factor"] for when in times]
    answer = replay(program, times, series)
    return truth, [Run(entry, truth["factor"], times, series, answer) for entry in truth["runs"]]


def main():
    program, name = sys.argv[1:]
    truth, runs = load(program, name)
    figures = measure(runs)
    print_all(runs, figures)
    print(f"days of servers, {runs[0].hours:.0f} h compressed by {truth['factor']:g}: of "
          f"{figures['leaks']} leaks, {figures['noticed']} have a notice and {figures['alerted']} "
          f"an alert ({figures['killed_alerted']} of {figures['killed']} before the kill); false "
          f"alarms: in {figures['benign_alarms']} of {figures['benign']} runs without a leak, "
          f"before the onset of {figures['early']} leaks, about others in {figures['strangers']}")
    worse = [key for key, value in MEASURED.items()
             if (figures[key] < value if key in ("alerted", "noticed") else figures[key] > value)]
    for key in worse:
        print(f"  worse than before: {key} is {figures[key]}, it was {MEASURED[key]}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
