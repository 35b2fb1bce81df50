#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Runs the detectors over a corpus and compares their alerts with the truth.

    score.py --memwatchctl PROGRAM --published PROGRAM --split FILE
             [--json FILE] [--jobs N] [--explain] [--tap] DIRECTORY...

Each DIRECTORY has NAME.csv and NAME.json files. Prints tables. The exit status is 1 if
memwatchctl misses a mark, and 2 if a trace could not be judged.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import subprocess
import sys
import tempfile

import marks

BASELINES = ["linear", "linear-units", "ratio", "threshold", "threshold-units"]
OURS = "memwatch"


class Failure(Exception):
    pass


def load_truths(folders):
    truths = []
    for folder in folders:
        for file in sorted(os.listdir(folder)):
            if file.endswith(".json"):
                with open(os.path.join(folder, file), encoding="utf-8") as f:
                    truth = json.load(f)
                truth["csv"] = os.path.join(folder, truth["name"] + ".csv")
                truths.append(truth)
    return truths


def load_split(path):
    rules = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.split("#")[0].split()
            if words:
                rules.append((words[1], words[0]))
    return rules


def part_of(name, rules):
    for pattern, part in rules:
        if fnmatch.fnmatch(name, pattern):
            return part
    raise Failure(f"split: no line matches {name}")


def number(value):
    return None if value is None else float(value)


def alert_estimate(alerts):
    """The estimate of the first alert."""
    if not alerts:
        return {}
    return {"alert_eta_s": number(alerts[0]["eta_oom_seconds"]),
            "alert_eta_low_s": number(alerts[0]["eta_low_seconds"]),
            "alert_eta_high_s": number(alerts[0]["eta_high_seconds"])}


def replay(program, csv):
    """The answer of memwatchctl for a trace, from its JSON output."""
    done = subprocess.run([program, "--format", "json", "growth", "replay", csv],
                          capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"{csv}: memwatchctl exits with {done.returncode}: "
                      f"{done.stderr.strip()[:200]}")
    answer = {}
    for p in json.loads(done.stdout)["processes"]:
        entry = {"notices": [[number(n["start_s"]), number(n["end_s"])] for n in p["notices"]],
                 "alert_s": number(p["first_alert_s"]), "confidence": number(p["confidence"]),
                 "verdict": p["verdict"], **alert_estimate(p["alerts"]),
                 "eta_now_s": number(p.get("eta_now_seconds")),
                 "eta_low_s": number(p.get("eta_low_seconds")),
                 "eta_high_s": number(p.get("eta_high_seconds"))}
        if entry["verdict"] not in ("leak", "growing", "stable", "insufficient"):
            raise Failure(f"{csv}: unknown verdict {entry['verdict']}")
        before = answer.get(p["pid"])       # a process id was reused: keep the entry with an alert
        if not before or before["alert_s"] is None:
            answer[p["pid"]] = entry
    return answer


def published(program, csv):
    """The answers of the baselines for a trace, {detector: answer}."""
    done = subprocess.run([program, csv], capture_output=True, text=True, check=True)
    answers = {name: {} for name in BASELINES}
    for line in done.stdout.splitlines():
        pid, name, alert, score = line.split()
        answers[name][int(pid)] = {"alert_s": None if alert == "-" else float(alert),
                                   "confidence": float(min(100, int(score)))}
    return answers


def rows_until(csv, until):
    """The lines of a trace up to a time."""
    with open(csv, encoding="utf-8") as f:
        yield next(f)
        for line in f:
            if float(line.split(",", 1)[0]) > until:
                break
            yield line


def sparse_rows(csv):
    """The lines of a trace of which each process has one in SPARSE_S."""
    last = {}
    with open(csv, encoding="utf-8") as f:
        yield next(f)
        for line in f:
            time, pid = line.split(",", 2)[:2]
            if pid not in last or float(time) - last[pid] >= marks.SPARSE_S:
                last[pid] = float(time)
                yield line


def replay_rows(program, rows):
    """As replay(), of a trace that consists of these lines."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as out:
        out.writelines(rows)
        out.flush()
        return replay(program, out.name)


def replay_until(program, csv, until):
    """As replay(), of the trace up to a time; None if the time is None."""
    return None if until is None else replay_rows(program, rows_until(csv, until))


def replay_sparse(program, truth):
    """As replay(), of a leak that ends with a kill, with few samples; else None."""
    if truth["label"] != "leak" or truth["oom_s"] is None:
        return None
    return replay_rows(program, sparse_rows(truth["csv"]))


def judge(truth, options):
    """(answers by detector, ours at half_way(), at moment(), with few samples) for one trace."""
    answers = published(options.published, truth["csv"])
    answers[OURS] = replay(options.memwatchctl, truth["csv"])
    return (answers, replay_until(options.memwatchctl, truth["csv"], marks.half_way(truth)),
            replay_until(options.memwatchctl, truth["csv"], marks.moment(truth)),
            replay_sparse(options.memwatchctl, truth))


def judge_all(truths, options):
    """Answers by detector and trace, and ours by trace: at half_way(), at moment(), with few
    samples."""
    answers = {name: {} for name in BASELINES + [OURS]}
    others = ({}, {}, {})
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for truth, (by_detector, *ours) in zip(truths,
                                               pool.map(lambda t: judge(t, options), truths)):
            for name, answer in by_detector.items():
                answers[name][truth["name"]] = answer
            for other, answer in zip(others, ours):
                if answer is not None:
                    other[truth["name"]] = answer
    return answers, others


def percent(value):
    return "-" if value is None else f"{100 * value:.1f} %"


def seconds(value):
    return "-" if value is None else f"{value:.0f} s"


def mebibytes(value):
    return "-" if value is None else f"{value / (1 << 20):.1f} MiB"


def number_text(value):
    return "-" if value is None else f"{value:.3g}"


def print_table(title, results):
    print(f"\n### {title}\n")
    print("| detector | recall, fast | recall, slow | noticed in time | precision "
          "| benign runs with an alert | false alarms per host-day | median delay "
          "| median leaked | median lead (p10) |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, f in results.items():
        rate = "-" if f["alerts_per_host_day"] is None else f"{f['alerts_per_host_day']:.2f}"
        print(f"| {name} | {percent(f['recall_fast'])} (n={f['n_fast']}) "
              f"| {percent(f['recall_slow'])} (n={f['n_slow']}) "
              f"| {percent(f['noticed_in_time'])} (n={f['n_due']}) "
              f"| {percent(f['precision'])} | {f['false_alarms']} of {f['n_benign']} | {rate} "
              f"| {seconds(f['delay_s_median'])} | {mebibytes(f['leaked_bytes_median'])} "
              f"| {seconds(f['lead_s_median'])} "
              f"({seconds(f['lead_s_p10'])}, n={f['n_killed']}) |")


def print_detail(title, f):
    print(f"\n{title}: {f['n_leaks']} leaks ({f['n_killed']} ended by a kill), "
          f"{f['n_benign']} benign runs, {f['benign_days']} days of them; "
          f"early alerts {f['early_alerts']}, bystanders accused {f['strangers']}")
    print(f"  time to the limit, half way: median error {percent(f['eta_error_median'])}, "
          f"below 20 % in {percent(f['eta_below_20_percent'])} (n={f['n_eta']}); "
          f"its 95 % interval holds the kill in {percent(f['eta_interval_coverage'])} "
          f"(n={f['n_intervals']})")
    for what, key, n in (("at the alert", "alert", "n_alert_eta"),
                         (f"with a sample in {marks.SPARSE_S} s", "sparse", "n_sparse")):
        print(f"  time to the limit, {what}: within {percent(marks.ETA_TOLERANCE)} in "
              f"{percent(f[key + '_eta_holds'])}; its 95 % interval holds the kill in "
              f"{percent(f[key + '_interval_holds'])} (n={f[n]})")
    print(f"  lead time divided by the required one: median "
          f"{number_text(f['lead_ratio_median'])}, shortest lead {seconds(f['lead_s_min'])}")
    for row in f["decades"]:
        print(f"  from {row['from_bytes_per_second'] // 1024:6d} KiB/s: "
              f"{row['found']} of {row['n']}, delay {seconds(row['delay_s_median'])}, "
              f"leaked {mebibytes(row['leaked_bytes_median'])}")
    print(f"  alerts in runs without a mark: {f['confusable'][0]} of {f['confusable'][1]} confusable runs "
          f"and {f['reserved'][0]} of {f['reserved'][1]} runs that only reserve addresses")
    c = f["calibration"]
    print(f"  confidence at one time of each trace: n={c['n']}, Brier score {c['brier']}, "
          f"expected error {c['expected_error_percent']} %\n")
    print("| confidence (mean) | of these, leaks | n |\n|---|---|---|")
    for b in c["bins"]:
        print(f"| {b['said_percent']:.0f} % | {b['leaks_percent']:.0f} % | {b['n']} |")


def print_failures(title, f):
    for what in ("missed", "late", "early", "alarmed", "strangers_in"):
        if f[what]:
            print(f"{title}: {what}: {' '.join(f[what])}")
    if f["eta_errors"]:
        worst = sorted(f["eta_errors"].items(), key=lambda item: -item[1])
        listed = " ".join(f"{name}={error:.0%}" for name, error in worst)
        print(f"{title}: time to limit: {listed}")


def kinds(truths):
    return sorted({t["kind"] for t in truths})


def evaluate(truths, rules, answers, others):
    """{"tuning"|"test"|"all": {detector: figures}}, and our figures by kind of trace."""
    for truth in truths:
        truth["part"] = part_of(truth["name"], rules)
    parts = {}
    for part in ("tuning", "test", "all"):
        chosen = [t for t in truths if part in ("all", t["part"])]
        parts[part] = {name: marks.measure(chosen, answers[name], {}, {}, {}) for name in BASELINES}
        parts[part][OURS] = marks.measure(chosen, answers[OURS], *others)
    by_kind = {kind: marks.measure([t for t in truths if t["kind"] == kind], answers[OURS],
                                   *others)
               for kind in kinds(truths)}
    return parts, by_kind


def verdict(parts):
    """The missed marks by part. Too few benign runs count as a missed mark."""
    missed = {part: marks.missed_marks(parts[part][OURS]) for part in ("test", "all")}
    if parts["all"][OURS]["n_benign"] < marks.BENIGN_RUNS:
        missed["all"].append("benign_runs")
    return missed


def print_tap(parts, missed):
    tests = [(part, name) for part in ("test", "all")
             for name in list(marks.MARKS) + ["benign_runs"] * (part == "all")]
    print(f"TAP version 13\n1..{len(tests)}")
    for n, (part, name) in enumerate(tests, 1):
        value = parts[part][OURS].get(name, parts[part][OURS]["n_benign"])
        result = "not ok" if name in missed[part] else "ok"
        print(f"{result} {n} {part}: {name} is {number_text(value)}, required: {required(name)}")


def required(name):
    return " ".join(map(str, marks.MARKS.get(name, ("at least", marks.BENIGN_RUNS))))


def report(parts, by_kind, missed, explain):
    print("Fast leaks: above 1 MiB/min, found by an alert before the kill, or by a notice if there "
          "is none.")
    print("Slow leaks: 10 to 100 KiB/s, noticed within 30 minutes. Delay: from the onset to the "
          "first notice. Lead: from the alert to the kill.")
    for part, title in (("tuning", "Tuning part"),
                        ("test", "Test part, on which nothing was tuned"), ("all", "Both parts")):
        print_table(title, parts[part])
    print_table("memwatch by kind of trace (both parts)", by_kind)
    for part in ("tuning", "test"):
        print_detail(part, parts[part][OURS])
    for part in ("tuning", "test") if explain else ("tuning",):
        print_failures(part, parts[part][OURS])
    for part, names in missed.items():
        for name in names:
            value = parts[part][OURS].get(name, parts[part][OURS]["n_benign"])
            print(f"mark missed ({part}): {name} is {number_text(value)}, "
                  f"required: {required(name)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memwatchctl", required=True)
    parser.add_argument("--published", required=True)
    parser.add_argument("--split", required=True)
    parser.add_argument("--json")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--explain", action="store_true",
                        help="name the failures of the test part too")
    parser.add_argument("--tap", action="store_true", help="print only the marks, as TAP tests")
    parser.add_argument("directories", nargs="+")
    options = parser.parse_args()
    try:
        truths = load_truths(options.directories)
        answers, others = judge_all(truths, options)
        parts, by_kind = evaluate(truths, load_split(options.split), answers, others)
    except (Failure, OSError, KeyError, json.JSONDecodeError,
            subprocess.CalledProcessError) as error:
        print(f"eval: {error!r}", file=sys.stderr)
        return 2
    missed = verdict(parts)
    if options.tap:
        print_tap(parts, missed)
    else:
        report(parts, by_kind, missed, options.explain)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"schema": 1, "marks": marks.MARKS, "missed": missed, "parts": parts,
                       "kinds": by_kind}, out, indent=1)
            out.write("\n")
    return 1 if any(missed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
