#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Can the scorer fail? Detectors made up from the truth itself, good and bad,
over the real synthetic corpus: each bad one must miss the mark it breaks, and
only the good one may meet them all. Also checks the generators against the
closed form, and the published detectors against an earlier implementation.

    score-test.py DIRECTORY PUBLISHED    the synthetic corpus, made if it is not
                                         there; the program of published.c
"""
import copy
import os
import sys
import tempfile

import corpus
import marks
import score

number_of_tests = 0
failed = 0


def check(good, what):
    global number_of_tests, failed
    number_of_tests += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number_of_tests} {what}")


def perfect(truth):
    """Alerts a tenth of the way to the kill, and knows when that will be."""
    if truth["label"] != "leak":
        return {1000: {"alert_s": None, "confidence": 0.0}}
    end = truth["oom_s"] or truth["end_s"]
    alert = truth["onset_s"] + min(600, (end - truth["onset_s"]) / 10)
    return {truth["leaker_pid"]: {"alert_s": alert, "confidence": 100.0}}


def half_of(truth, wrong=1.0):
    eta = (truth["oom_s"] - marks.half_way(truth)) * wrong
    return {truth["leaker_pid"]: {"eta_now_s": eta, "eta_low_s": eta * 0.9, "eta_high_s": eta * 1.1}}


def look_at(truth, sure):
    """Confidence of one who knows whether it leaks yet, and is as sure as told."""
    leaks = truth["label"] == "leak" and marks.moment(truth) >= truth["onset_s"]
    return {truth["leaker_pid"] if leaks else 1000: {"confidence": sure if leaks else 100.0 - sure}}


def figures(truths, detector, wrong=1.0, sure=100.0):
    answers = {t["name"]: detector(t) for t in truths}
    halves = {t["name"]: half_of(t, wrong) for t in truths if marks.half_way(t) is not None}
    looks = {t["name"]: look_at(t, sure) for t in truths if marks.moment(t) is not None}
    return marks.measure(truths, answers, halves, looks)


def missed(truths, detector, wrong=1.0):
    return marks.missed_marks(figures(truths, detector, wrong))


def late(truth):
    answer = perfect(truth)
    for entry in answer.values():
        if entry["alert_s"] is not None:
            entry["alert_s"] = (truth["oom_s"] or truth["end_s"]) - 0.001
    return answer


def just_in_time(truth, part):
    """Alerts when a part of the lead time that is asked is left."""
    answer = perfect(truth)
    for entry in answer.values():
        if truth["oom_s"] is not None and entry["alert_s"] is not None:
            entry["alert_s"] = truth["oom_s"] - part * min(120, (truth["oom_s"] - truth["onset_s"]) / 2)
    return answer


def early(truth):
    answer = perfect(truth)
    for entry in answer.values():
        if entry["alert_s"] is not None:
            entry["alert_s"] = truth["onset_s"] - 1
    return answer


def after_the_kill(truth):
    answer = late(truth)
    for entry in answer.values():
        if entry["alert_s"] is not None:
            entry["alert_s"] += 1
    return answer


def wrong_pid(truth):
    return {pid + 1: entry for pid, entry in perfect(truth).items()}


def swapped(truths):
    """Leaks called benign and benign runs called leaks."""
    result = copy.deepcopy(truths)
    leak = next(t for t in truths if t["label"] == "leak" and t["oom_s"])
    for t in result:
        if t["label"] == "leak":
            t.update(label="benign")
        elif t["label"] == "benign":
            t.update({key: leak[key] for key in ("label", "onset_s", "rate_bytes_per_second", "oom_s", "leaked_bytes")},
                     label="leak", leaker_pid=1000)
    return result


def test_scorer(truths):
    good = figures(truths, perfect)
    check(marks.missed_marks(good) == [], "a detector that knows the truth meets every mark")
    check(good["n_benign"] >= marks.BENIGN_RUNS, f"at least {marks.BENIGN_RUNS} benign runs")
    check(good["precision"] == 1 and good["recall"] == 1, "its precision and recall are 1")
    check(good["calibration"]["brier"] == 0 and good["calibration"]["n"] > 500, "its confidence is right")
    modest = figures(truths, perfect, sure=70.0)["calibration"]
    check(modest["expected_error_percent"] == 30 and abs(modest["brier"] - 0.09) < 1e-4,
          "one that says 70 % of all leaks and 30 % of all others is 30 % off")
    with_labels_swapped = [t for t in swapped(truths) if t["label"] in ("leak", "benign")]
    answers = {t["name"]: perfect(t) for t in truths}
    bad = marks.measure(with_labels_swapped, answers, {}, {})
    check(set(marks.missed_marks(bad)) == set(marks.MARKS), "labels swapped: every mark is missed")
    silent = missed(truths, lambda t: {})
    check({"recall_fast", "recall_slow", "lead_ratio_median"} <= set(silent), "a silent detector misses the recalls")
    nervous = figures(truths, lambda t: {1000: {"alert_s": t["onset_s"] or 0, "confidence": 50.0}})
    check(marks.missed_marks(nervous) == ["false_alarms"], "one that always alarms misses the false alarms alone")
    check(nervous["precision"] == nervous["n_leaks"] / (nervous["n_leaks"] + nervous["n_benign"]), "and its precision is the corpus's")
    check("lead_ratio_median" in missed(truths, lambda t: just_in_time(t, 0.99)), "one a bit too late misses the lead time")
    check("lead_ratio_median" not in missed(truths, lambda t: just_in_time(t, 1.01)), "one in time does not")
    check("lead_ratio_median" in missed(truths, late), "one that alarms at the last moment misses the lead time")
    check("recall_slow" in missed(truths, late), "and the half hour for slow leaks")
    check("recall_fast" in missed(truths, after_the_kill), "an alert after the kill finds nothing")
    before = figures(truths, early)
    check(before["recall"] == 0 and before["precision"] == 0, "an alert before the onset is a false one")
    check(before["lead_ratio_median"] == 0, "and has no lead time")
    stranger = figures(truths, wrong_pid)
    check(stranger["recall"] == 0 and stranger["strangers"] == stranger["n_leaks"], "so is one about a bystander")
    check(missed(truths, perfect, 1.3) == ["eta_error_median"], "an estimate 30 % off misses its mark alone")
    check(figures(truths, perfect, 1.05)["eta_interval_coverage"] == 1 and
          figures(truths, perfect, 1.3)["eta_interval_coverage"] == 0, "its interval holds the kill, or does not")
    check(missed(truths, perfect, 1.1) == [], "one 10 % off does not")


def test_corpus(truths):
    plain = [t for t in truths if t["class"] in ("leak-linear", "leak-slow") and t["oom_s"]]
    worst = 0
    for t in plain:
        with open(t["csv"], encoding="ascii") as f:
            rows = [line.split(",") for line in list(f)[1:]]
        base = [int(r[3]) for r in rows if float(r[0]) <= t["onset_s"]]
        room = (t["limit_kb"] - sum(base) / len(base)) * 1024
        expected = t["onset_s"] + room / t["rate_bytes_per_second"]
        # noise and the file pages that reclaim leaves: two MiB and a sample
        worst = max(worst, abs(t["oom_s"] - expected) - 2 * t["cadence_s"] - (4 << 20) / t["rate_bytes_per_second"])
    check(len(plain) > 30 and worst <= 0, "linear leaks are killed when the closed form says")
    leaks = [t for t in truths if t["label"] == "leak" and t["class"] != "leak-creeping"]
    check(all(t["oom_s"] is not None for t in leaks if t["limit_kb"]), "every leak under a limit ends in a kill")
    rates = [t["rate_bytes_per_second"] for t in leaks]
    check(min(rates) < 12 << 10 and max(rates) > 60 << 20, "rates from 10 KiB/s to 100 MiB/s")
    check(max(room_used(t) for t in truths if t["label"] == "benign") < 0.5, "no benign run uses half of its room")


def room_used(truth):
    """The largest rise of a process, as a share of what was left below it."""
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


# First alerts in seconds as another implementation of the same description
# found them, on 100 MiB anonymous and 20 MiB file memory, a sample a second.
EARLIER = [
    ("5 MiB an hour", 8 * 3600, lambda t: t * 5120 / 3600, {"linear": 30, "linear-units": 6480, "ratio": 3}),
    ("10 KiB/s", 3600, lambda t: 10 * t, {"linear": 28, "linear-units": 922, "ratio": 1, "threshold": 62}),
    ("1 MiB/s", 1200, lambda t: 1024 * t, {"linear": 24, "linear-units": 25, "ratio": 1, "threshold": 62,
                                          "threshold-units": 602}),
    ("10 MiB/s", 180, lambda t: 10240 * t, {"linear": 24, "linear-units": 25, "ratio": 1, "threshold": 9}),
    ("sawtooth", 3600, lambda t: 61440 * (t % 30) / 30, {"linear": 24, "linear-units": 25, "ratio": 1, "threshold": None,
                                                         "threshold-units": None}),
]


def test_published(program):
    for what, duration, grown, expected in EARLIER:
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
            check(good, f"published {name}, {what}: {found}, earlier {alert}")


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
    print(f"1..{number_of_tests}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
