#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Tests the scorer with invented detectors, good and bad, on the synthetic corpus: each bad
one must miss the mark that it breaks, and only the good one may meet all marks. Also compares
the generators with the closed form, the published detectors with an earlier
implementation, and the scorer of days with invented answers.

    score-test.py DIRECTORY PUBLISHED

DIRECTORY has the synthetic corpus, which is made if it is missing; PUBLISHED is the program
of published.c.
"""
import copy
import importlib
import os
import sys
import tempfile

import corpus
import marks
import packed
import score

score_days = importlib.import_module("score-days")
number_of_tests = 0
failed = 0


def check(good, what):
    global number_of_tests, failed
    number_of_tests += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number_of_tests} {what}")


def check_equal(got, expected, what):
    check(got == expected, what)
    if got != expected:
        print(f"# got {got}, expected {expected}")


def perfect(truth):
    """A detector that notices a leak at once and alerts after a tenth of the time to the kill."""
    if truth["label"] != "leak":
        return {1000: {"alert_s": None, "confidence": 0.0}}
    end = truth["oom_s"] or truth["end_s"]
    alert = truth["onset_s"] + min(600, (end - truth["onset_s"]) / 10)
    return {truth["leaker_pid"]: {"notices": [[truth["onset_s"], None]], "alert_s": alert,
                                  "alert_eta_s": end - alert, "alert_eta_low_s": end - alert,
                                  "alert_eta_high_s": end - alert, "confidence": 100.0}}


def misjudging(truth, wrong):
    """As perfect(), with another time to the limit in the alert."""
    answer = perfect(truth)
    for entry in answer.values():
        if entry["alert_s"] is not None:
            entry["alert_eta_s"] *= wrong
    return answer


def noticing(truth, *notices):
    """As perfect(), with other notices: [seconds after the onset, seconds after the onset]."""
    answer = perfect(truth)
    for entry in answer.values():
        entry["notices"] = [[truth["onset_s"] + start,
                             None if end is None else truth["onset_s"] + end]
                            for start, end in notices if truth["label"] == "leak"]
    return answer


def half_of(truth, wrong=1.0):
    eta = (truth["oom_s"] - marks.half_way(truth)) * wrong
    return {truth["leaker_pid"]: {"eta_now_s": eta, "eta_low_s": eta * 0.9,
                                  "eta_high_s": eta * 1.1}}


def look_at(truth, sure):
    """The confidence of a detector that knows whether the process leaks, with a given certainty."""
    leaks = truth["label"] == "leak" and marks.moment(truth) >= truth["onset_s"]
    return {truth["leaker_pid"]
            if leaks else 1000: {"confidence": sure if leaks else 100.0 - sure}}


def figures(truths, detector, wrong=1.0, sure=100.0, sparse=perfect):
    answers = {t["name"]: detector(t) for t in truths}
    halves = {t["name"]: half_of(t, wrong) for t in truths if marks.half_way(t) is not None}
    looks = {t["name"]: look_at(t, sure) for t in truths if marks.moment(t) is not None}
    return marks.measure(truths, answers, halves, looks, {t["name"]: sparse(t) for t in truths})


def missed(truths, detector, wrong=1.0, sparse=perfect):
    return marks.missed_marks(figures(truths, detector, wrong, sparse=sparse))


def late(truth):
    answer = perfect(truth)
    for entry in answer.values():
        if entry["alert_s"] is not None:
            entry["alert_s"] = (truth["oom_s"] or truth["end_s"]) - 0.001
            entry["notices"] = []
    return answer


def just_in_time(truth, part):
    """A detector that alerts when a given part of the required lead time is left."""
    answer = perfect(truth)
    for entry in answer.values():
        if truth["oom_s"] is not None and entry["alert_s"] is not None:
            entry["alert_s"] = truth["oom_s"] - part * min(120,
                                                           (truth["oom_s"] - truth["onset_s"]) / 2)
    return answer


def early(truth):
    answer = perfect(truth)
    for entry in answer.values():
        if entry["alert_s"] is not None:
            entry["alert_s"] = truth["onset_s"] - 1
            entry["notices"] = []
    return answer


def after_the_kill(truth):
    answer = late(truth)
    for entry in answer.values():
        if entry["alert_s"] is not None:
            entry["alert_s"] += 1
    return answer


def always(truth):
    """A detector that raises an alert for every first process."""
    onset = truth["onset_s"] or 0
    return {1000: {"alert_s": onset, "alert_eta_s": (truth["oom_s"] or truth["end_s"]) - onset,
                   "confidence": 50.0}}


def wrong_pid(truth):
    return {pid + 1: entry for pid, entry in perfect(truth).items()}


def swapped(truths):
    """Truths with the labels of leaks and benign runs exchanged."""
    result = copy.deepcopy(truths)
    leak = next(t for t in truths if t["label"] == "leak" and t["oom_s"])
    for t in result:
        if t["label"] == "leak":
            t.update(label="benign")
        elif t["label"] == "benign":
            t.update({key: leak[key]
                      for key in ("label", "onset_s", "rate_bytes_per_second", "oom_s",
                                  "leaked_bytes")},
                     label="leak", leaker_pid=1000)
    return result


def test_scorer(truths):
    good = figures(truths, perfect)
    check(marks.missed_marks(good) == [], "a detector that knows the truth meets every mark")
    check(good["n_benign"] >= marks.BENIGN_RUNS, f"at least {marks.BENIGN_RUNS} benign runs")
    check_equal(good["precision"], 1, "a detector that knows the truth has a precision of 1")
    check_equal(good["recall"], 1, "a detector that knows the truth has a recall of 1")
    check_equal(good["calibration"]["brier"], 0,
                "a detector that knows the truth has a Brier score of 0")
    check(good["calibration"]["n"] > 500, "the confidence of more than 500 processes is read")
    modest = figures(truths, perfect, sure=70.0)["calibration"]
    check_equal(modest["expected_error_percent"], 30,
                "confidences of 70 % and 30 % have an expected error of 30 %")
    check(abs(modest["brier"] - 0.09) < 1e-4,
          "confidences of 70 % and 30 % have a Brier score of 0.09")
    with_labels_swapped = [t for t in swapped(truths) if t["label"] in ("leak", "benign")]
    answers = {t["name"]: perfect(t) for t in truths}
    bad = marks.measure(with_labels_swapped, answers, {}, {}, {})
    check(set(marks.missed_marks(bad)) == set(marks.MARKS),
          "with the labels swapped every mark is missed")
    silent = missed(truths, lambda t: {})
    check({"recall_fast", "recall_slow", "lead_ratio_median"} <= set(silent),
          "a silent detector misses recalls and lead time")
    nervous = figures(truths, always)
    check(marks.missed_marks(nervous) == ["false_alarms"],
          "a detector that always alarms misses only the mark of false alarms")
    check(nervous["precision"] == nervous["n_leaks"] / (nervous["n_leaks"] + nervous["n_benign"]),
          "a detector that always alarms has the share of leaks as its precision")
    check("lead_ratio_median" in missed(truths, lambda t: just_in_time(t, 0.99)),
          "a detector that is slightly late misses the lead time")
    check("lead_ratio_median" not in missed(truths, lambda t: just_in_time(t, 1.01)),
          "a detector that is just in time meets the lead time")
    check("lead_ratio_median" in missed(truths, late),
          "a detector that alarms just before the kill misses the lead time")
    check("recall_slow" in missed(truths, late),
          "a detector that alarms just before the kill misses slow leaks")
    check_equal(missed(truths, noticing), ["noticed_in_time"],
                "a detector that alerts but gives no notice misses only the time of the notices")
    check_equal(missed(truths, lambda t: noticing(t, [-60, -1])), ["noticed_in_time"],
                "a notice that ends before the onset does not count")
    check_equal(missed(truths, lambda t: noticing(t, [-60, None])), [],
                "a notice that holds at the onset counts from there")
    check("recall_fast" in missed(truths, after_the_kill),
          "a detector that alarms after the kill misses fast leaks")
    before = figures(truths, early)
    check_equal(before["recall"], 0, "an alert before the onset does not find the leak")
    check_equal(before["precision"], 0, "an alert before the onset is a false alarm")
    check_equal(before["lead_ratio_median"], 0, "an alert before the onset has no lead time")
    stranger = figures(truths, wrong_pid)
    check_equal(stranger["recall"], 0, "an alert for a bystander does not find the leak")
    check_equal(stranger["strangers"], stranger["n_leaks"], "an alert for a bystander is counted")
    check(missed(truths, perfect, 1.3) == ["eta_error_median"],
          "an estimate that is 30 % off misses only its own mark")
    check_equal(figures(truths, perfect, 1.05)["eta_interval_coverage"], 1,
                "an interval of 10 % to each side holds the kill if the estimate is 5 % off")
    check_equal(figures(truths, perfect, 1.3)["eta_interval_coverage"], 0,
                "an interval of 10 % to each side misses the kill if the estimate is 30 % off")
    check_equal(missed(truths, perfect, 1.1), [], "an estimate that is 10 % off meets its mark")
    for wrong, marked in ((0.7, True), (0.8, False), (1.2, False), (1.3, True)):
        check_equal(missed(truths, lambda t, wrong=wrong: misjudging(t, wrong)),
                    ["alert_eta_holds"] * marked,
                    f"alerts whose estimate is {wrong} times the time left "
                    f"{'miss' if marked else 'meet'} their mark")
    check_equal(missed(truths, perfect, sparse=lambda t: misjudging(t, 1.3)), ["sparse_eta_holds"],
                "alerts with few samples whose estimate is 30 % off miss only their own mark")
    check_equal(good["alert_interval_holds"], 1, "an interval of the time left holds the kill")


def test_corpus(truths):
    plain = [t for t in truths if t["class"] in ("leak-linear", "leak-slow") and t["oom_s"]]
    worst = 0
    for t in plain:
        with open(t["csv"], encoding="ascii") as f:
            rows = [line.split(",") for line in list(f)[1:]]
        base = [int(r[3]) for r in rows if float(r[0]) <= t["onset_s"]]
        headroom = (t["limit_kb"] - sum(base) / len(base)) * 1024
        expected = t["onset_s"] + headroom / t["rate_bytes_per_second"]
        # Tolerate two samples, and 4 MiB of noise and of file pages that reclaim leaves.
        worst = max(worst,
                    abs(t["oom_s"] - expected) - 2 * t["cadence_s"]
                    - (4 << 20) / t["rate_bytes_per_second"])
    check(len(plain) > 30, "more than 30 linear leaks are killed")
    check(worst <= 0, "linear leaks are killed at the time of the closed form")
    leaks = [t for t in truths if t["label"] == "leak" and t["class"] != "leak-creeping"]
    check(all(t["oom_s"] is not None for t in leaks if t["limit_kb"]),
          "each leak with a limit ends with a kill")
    rates = [t["rate_bytes_per_second"] for t in leaks]
    check(min(rates) < 12 << 10, "the slowest leak has less than 12 KiB/s")
    check(max(rates) > 60 << 20, "the fastest leak has more than 60 MiB/s")
    check(max(headroom_used(t) for t in truths if t["label"] == "benign") < 0.5,
          "no benign run uses half of its headroom")


def headroom_used(truth):
    """The largest rise of a process, as a share of its headroom before the rise."""
    lows, worst = {}, 0
    with open(truth["csv"], encoding="ascii") as f:
        next(f)
        for line in f:
            row = line.split(",")
            held = int(row[3]) + int(row[5]) + int(row[6])
            low = lows[row[1]] = min(held, lows.get(row[1], held))
            if truth["limit_kb"]:
                worst = max(worst, (held - low) / (truth["limit_kb"] - low))
    return worst


# What another implementation of the published detectors, written from the same description, has
# found: the growth, its duration in seconds, the grown KiB after t seconds, and the time of the
# first alert in seconds by detector, None if there is none. The process starts with 100 MiB of
# anonymous and 20 MiB of file memory and is sampled every second.
OTHER_IMPLEMENTATION = [
    ("5 MiB an hour", 8 * 3600, lambda t: t * 5120 / 3600,
     {"linear": 30, "linear-units": 6480, "ratio": 3}),
    ("10 KiB/s", 3600, lambda t: 10 * t,
     {"linear": 28, "linear-units": 922, "ratio": 1, "threshold": 62}),
    ("1 MiB/s", 1200, lambda t: 1024 * t,
     {"linear": 24, "linear-units": 25, "ratio": 1, "threshold": 62,
                                          "threshold-units": 602}),
    ("10 MiB/s", 180, lambda t: 10240 * t,
     {"linear": 24, "linear-units": 25, "ratio": 1, "threshold": 9}),
    ("sawtooth", 3600, lambda t: 61440 * (t % 30) / 30,
     {"linear": 24, "linear-units": 25, "ratio": 1, "threshold": None,
                                                         "threshold-units": None}),
]


def test_published(program):
    for what, duration, grown, expected in OTHER_IMPLEMENTATION:
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
            f.write(corpus.HEADER + "\n")
            for t in range(duration):
                anon = 102400 + int(grown(t)) // 4 * 4
                f.write(f"{t},1,x,{anon},20480,0,0,{anon + 30480},0\n")
            f.flush()
            answers = score.published(program, f.name)
        for name, alert in expected.items():
            found = answers[name][1]["alert_s"]
            good = found is None if alert is None else found is not None and abs(found - alert) <= 4
            check(good,
                  f"the published detector {name} alerts for {what} at {found} s, "
                  f"the other implementation at {alert} s")


def test_packed():
    """A process whose id is used again, a cgroup, and a line that was cut."""
    lines = [f"{t}.0,{pid},x,{t * 100},0,{t},0,5000,2048,/a,,,,"
             for t in range(1, 9) for pid in (7, 8) if pid == 7 or t not in (4, 5)]
    lines += [f"{t}.0,0,,{t * 96},0,0,0,0,2048,/a,{t * 32},,," for t in range(1, 9)]
    lines.sort(key=lambda line: float(line.split(",")[0]))
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/t.csv", "w", encoding="utf-8") as f:
            f.write("\n".join([packed.HEADER] + lines) + "\n9.0,7,x,12")
        check_equal(packed.pack(folder + "/t.csv", folder + "/t.xz"), 8.0,
                    "a packed trace ends with its last complete sample")
        times, series = packed.unpack(folder + "/t.xz")
    check_equal(times, [float(t) for t in range(1, 9)], "a packed trace has all times")
    check_equal(sorted((at, len(columns["vsz_kb"])) for (number, _, _), (at, columns)
                       in series.items() if number), [(0, 3), (0, 8), (5, 3)],
                "an id that is used again is another process")
    rows = [line.strip().split(",") for line in packed.trace(times, series)][1:]
    check_equal(len(rows), len(lines), "a packed trace has all samples")
    check(all(abs(int(a[3]) - float(a[0]) * (100 if int(a[1]) else 96)) <= packed.QUANTUM_KB / 2
              for a in rows), "values of a packed trace are rounded to the next unit")
    check_equal([row[10] for row in rows if row[1] == "0"], [str(t * 32) for t in range(1, 9)],
                "the memory of the kernel of a cgroup is kept")


def days_answer(alerts, group_alerts=()):
    """Processes 1 and 2 of cgroup /a, of which 1 leaks."""
    def spans(times):
        return [{"start_s": t, "end_s": None, "reason": "height", "eta_oom_seconds": 1000,
                 "eta_low_seconds": 900, "eta_high_seconds": None} for t in times]
    return {"processes": [{"pid": pid, "comm": "x", "notices": spans(alerts.get(pid, [])),
                           "alerts": spans(alerts.get(pid, []))} for pid in (1, 2)],
            "cgroups": [{"path": "/a", "class": "anon", "notices": [],
                         "alerts": spans(group_alerts)}]}


def test_score_days():
    truth = {"name": "x", "label": "leak", "percent_per_hour": 1, "program": "x", "path": "/a",
             "by": "time", "onset_s": 100, "oom_s": None}
    times = [60.0 * t for t in range(300)]
    series = {(1, "x", "/a"): (0, {"anon_kb": [max(0, t - 100) for t in range(300)]}),
              (2, "x", "/a"): (0, {"anon_kb": [5] * 300})}
    for alerts, of_group, expected, what in (
            ({1: [9000]}, (), (1, 0, 0), "an alert of the process that leaks is one"),
            ({}, [9000], (1, 0, 0), "an alert of the cgroup that leaks is one"),
            ({}, (), (0, 0, 0), "no alert is a missed leak"),
            ({1: [5000, 9000]}, (), (1, 1, 0), "an alert before the onset is a false alarm"),
            ({2: [9000]}, (), (0, 0, 1), "an alert of another process is a false alarm")):
        run = score_days.Run(truth, 60, times, series, days_answer(alerts, of_group))
        figures = score_days.measure([run])
        check_equal((figures["alerted"], figures["early"], figures["strangers"]), expected,
                    f"days: {what}")
    for killed, expected in ((180, (False, True)), (165, (True, True)), (160, (False, False))):
        run = score_days.Run({**truth, "oom_s": killed}, 60, times, series,
                             days_answer({1: [9000]}))
        check_equal(run.estimate(), expected,
                    f"days: an estimate of 1000 s is judged, the kill is at {killed * 60} s")
    run = score_days.Run({**truth, "label": "benign", "onset_s": None}, 60, times, series,
                         days_answer({2: [9000]}))
    check_equal(score_days.measure([run])["benign_alarms"], 1,
                "days: an alert of a run without a leak is a false alarm")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if not os.path.isdir(sys.argv[1]):
        corpus.generate_all(sys.argv[1])
    truths = score.load_truths([sys.argv[1]])
    print("TAP version 13")
    test_scorer(truths)
    test_corpus(truths)
    test_published(sys.argv[2])
    test_packed()
    test_score_days()
    print(f"# Totals: pass:{number_of_tests - failed} fail:{failed} xfail:0 xpass:0 skip:0 error:0")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
