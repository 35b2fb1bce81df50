# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Figures of merit for the alerts of a detector, given the truth of the traces.

A truth is the object of a NAME.json file. An answer of a detector is
{pid: {"notices", "alert_s", "alert_eta_s", "confidence", "eta_now_s"}} for one trace, for the
beginning of a trace, or for a trace of which samples were left out; "notices" is a list of
[start, end], in which the end is None for one that holds. A detector without notices tells by its
alerts.
This module knows neither how a detector works nor how a trace was made.
"""
import math
import random
import statistics

FAST_BYTES_PER_S = (1 << 20) / 60       # 1 MiB a minute
SLOW_BYTES_PER_S = (10 << 10, 100 << 10)
SLOW_DEADLINE_S = 1800
LEAD_S = 120
# How soon a notice must come: (bytes per second, seconds), and lines between the logarithms.
NOTICE_DEADLINES = [(10e3, 1800), (100e3, 120), (1e6, 20), (10e6, 5)]
MARKS = {
    "recall_fast": ("at least", 0.98), "recall_slow": ("at least", 0.90),
    "noticed_in_time": ("at least", 0.90), "false_alarms": ("at most", 0),
    "lead_ratio_median": ("at least", 1.0), "eta_error_median": ("at most", 0.20),
    "alert_eta_holds": ("at least", 0.80), "sparse_eta_holds": ("at least", 0.80),
}
# An estimate holds if it is wrong by no more than this share of the time that was left.
ETA_TOLERANCE = 0.25
# The longest time between two samples for which estimates are asked for.
SPARSE_S = 60
BENIGN_RUNS = 200


def quantile(values, q):
    values = sorted(values)
    if not values:
        return None
    return values[min(len(values) - 1, int(q * len(values)))]


def median(values):
    return statistics.median(values) if values else None


def share(part, whole):
    return part / whole if whole else None


def leaked_at(truth, when):
    """Bytes leaked at a time, interpolated from the truth."""
    line = truth["leaked_bytes"]
    before = line[0]
    for point in line:
        if point[0] >= when:
            span = point[0] - before[0]
            way = (when - before[0]) / span if span else 1
            return before[1] + (point[1] - before[1]) * max(0, way)
        before = point
    return line[-1][1]


def notice_deadline(rate):
    """Seconds in which a leak of some bytes per second must be noticed; None if it is too slow."""
    if rate < NOTICE_DEADLINES[0][0]:
        return None
    for (low, first), (high, last) in zip(NOTICE_DEADLINES, NOTICE_DEADLINES[1:]):
        if rate <= high:
            way = math.log(rate / low) / math.log(high / low)
            return first * (last / first) ** way
    return NOTICE_DEADLINES[-1][1]


class Leak:
    """One leak and what the detector said about it. A leak that ends with a kill is found by an
    alert before it, any other by a notice: nobody has to act at once."""

    def __init__(self, truth, answer):
        mine = answer.get(truth["leaker_pid"], {})
        self.truth = truth
        self.mine = mine
        self.alert = mine.get("alert_s")
        self.rate = truth["rate_bytes_per_second"]
        self.end = truth["oom_s"] if truth["oom_s"] is not None else truth["end_s"]
        self.early = self.alert is not None and self.alert < truth["onset_s"]
        self.alerted = self.alert is not None and not self.early and self.alert <= self.end
        self.told = self.first_told(mine)
        self.found = self.told is not None and (self.alerted or truth["oom_s"] is None)
        self.delay = self.told - truth["onset_s"] if self.told is not None else None
        self.told_in_half_an_hour = self.told is not None and self.delay <= SLOW_DEADLINE_S
        self.strangers = sum(1 for pid, a in answer.items()
                             if pid != truth["leaker_pid"] and a.get("alert_s") is not None)

    def first_told(self, mine):
        """The first time after the onset at which a notice, or an alert, says that it grows."""
        told = [[start, end] for start, end in mine.get("notices", [])]
        if self.alert is not None and not self.early:
            told.append([self.alert, None])
        onset = self.truth["onset_s"]
        times = [max(start, onset) for start, end in told
                 if start <= self.end and (end is None or end > onset)]
        return min(times, default=None)

    def due(self):
        """Seconds from the onset in which it must be noticed. None if it ends before that, or if
        it does not leak at its mean rate yet. The next sample may come a period later."""
        deadline = notice_deadline(self.rate)
        onset = self.truth["onset_s"]
        if deadline is None or deadline > self.end - onset or \
                leaked_at(self.truth, onset + deadline) < 0.9 * self.rate * deadline:
            return None
        return deadline + self.truth["cadence_s"]

    def leaked(self):
        return leaked_at(self.truth, self.told) if self.told is not None else None

    def lead_ratio(self):
        """Lead time divided by the required one; 0 for a missed leak, None without a kill."""
        if self.truth["oom_s"] is None:
            return None
        asked = min(LEAD_S, (self.truth["oom_s"] - self.truth["onset_s"]) / 2)
        return (self.truth["oom_s"] - self.alert) / asked if self.alerted else 0

    def alert_eta_holds(self):
        """Whether the estimate of the first alert holds; None without a kill after the alert."""
        if self.truth["oom_s"] is None or not self.alerted or self.alert >= self.truth["oom_s"]:
            return None
        left = self.truth["oom_s"] - self.alert
        eta = self.mine.get("alert_eta_s")
        return eta is not None and abs(eta - left) <= ETA_TOLERANCE * left

    def alert_interval_holds(self):
        """Whether its interval does; an end that is None is open."""
        low, high = self.mine.get("alert_eta_low_s"), self.mine.get("alert_eta_high_s")
        left = self.truth["oom_s"] - self.alert
        return (low is None or low <= left) and (high is None or left <= high)

    def eta_error(self, answer_half, half):
        """Relative error of the estimate made half way; 100 % if there is none."""
        eta = answer_half.get(self.truth["leaker_pid"], {}).get("eta_now_s")
        left = self.truth["oom_s"] - half
        return abs(eta - left) / left if eta is not None else 1.0


def covered(truth, answer_half, half):
    """Whether the interval given half way holds the kill; None if there is no interval."""
    mine = answer_half.get(truth["leaker_pid"], {})
    low, high = mine.get("eta_low_s"), mine.get("eta_high_s")
    return None if low is None or high is None else low <= truth["oom_s"] - half <= high


def half_way(truth):
    """The middle between onset and kill; None without a kill, or if the leak is so fast that
    the trace has too few samples."""
    if truth["label"] != "leak" or truth["oom_s"] is None or not truth["limit_kb"]:
        return None
    left = truth["oom_s"] - truth["onset_s"]
    return truth["onset_s"] + left / 2 if left >= 20 * truth["cadence_s"] else None


def moment(truth, which=0):
    """The time at which the confidence is read, drawn from the name of the trace and a number;
    None for a trace that is neither a leak nor benign."""
    if truth["label"] not in ("leak", "benign"):
        return None
    end = truth["oom_s"] if truth["oom_s"] is not None else truth["end_s"]
    return random.Random(f"{truth['name']} {which}").uniform(0, end)


def calibration(pairs):
    """Reliability diagram of (confidence, is a leak) in ten bins, Brier score, and expected
    calibration error."""
    bins = []
    gap = 0
    for low in range(0, 100, 10):
        inside = [p for p in pairs if low <= p[0] < low + 10 or (low == 90 and p[0] == 100)]
        if inside:
            said = sum(p[0] for p in inside) / len(inside)
            true = 100 * sum(p[1] for p in inside) / len(inside)
            gap += abs(said - true) * len(inside)
            bins.append({"from": low, "n": len(inside), "said_percent": round(said, 1),
                         "leaks_percent": round(true, 1)})
    n = len(pairs)
    return {
        "n": n, "bins": bins, "expected_error_percent": round(gap / n, 1) if n else None,
        "brier": round(sum((c / 100 - leak) ** 2 for c, leak in pairs) / n, 4) if n else None,
    }


def confidences(truth, answer, when):
    """[(confidence, whether it leaks then)] for each process of a trace at a time."""
    return [(entry["confidence"], int(truth["label"] == "leak" and pid == truth["leaker_pid"]
                                      and when >= truth["onset_s"]))
            for pid, entry in answer.items()]


def decades(leaks):
    """Delay by rate, one row for each decade."""
    rows = []
    edges = (1 << 10, 10 << 10, 100 << 10, 1 << 20, 10 << 20, 100 << 20)
    for low, high in zip(edges, edges[1:]):
        inside = [leak for leak in leaks if low <= leak.rate < high]
        found = [leak for leak in inside if leak.told is not None]
        if inside:
            rows.append({"from_bytes_per_second": low, "n": len(inside), "found": len(found),
                         "delay_s_median": median([leak.delay for leak in found]),
                         "leaked_bytes_median": median([leak.leaked() for leak in found])})
    return rows


def estimates(leaks):
    """(how many estimates of first alerts hold, how many of their intervals, of how many)"""
    judged = [leak for leak in leaks if leak.alert_eta_holds() is not None]
    return (sum(leak.alert_eta_holds() for leak in judged),
            sum(leak.alert_interval_holds() for leak in judged), len(judged))


def measure(truths, answers, halves, looks, sparse):
    """All figures of one detector for some traces. `halves` are its answers to traces that are
    cut at their half_way(), `looks` to those cut at their moment(), `sparse` to those with a sample
    in SPARSE_S. All may be empty."""
    leaks = [Leak(t, answers[t["name"]]) for t in truths if t["label"] == "leak"]
    fast = [leak for leak in leaks if leak.rate >= FAST_BYTES_PER_S]
    slow = [leak for leak in leaks if SLOW_BYTES_PER_S[0] <= leak.rate <= SLOW_BYTES_PER_S[1]
            and leak.end - leak.truth["onset_s"] >= SLOW_DEADLINE_S]
    benign = [t for t in truths if t["label"] == "benign"]
    alarmed = [t["name"] for t in benign
               if any(a.get("alert_s") is not None for a in answers[t["name"]].values())]
    days = sum(t["end_s"] for t in benign) / 86400
    alerts = sum(1 for t in benign for a in answers[t["name"]].values()
                 if a.get("alert_s") is not None)
    found = [leak for leak in leaks if leak.found]
    alerted_leaks = [leak for leak in leaks if leak.alerted]
    told = [leak for leak in leaks if leak.told is not None]
    due = [leak for leak in leaks if leak.due() is not None]
    wrong = len(alarmed) + sum(leak.early for leak in leaks) + sum(leak.strangers
                                                                   for leak in leaks)
    leads = [leak.lead_ratio() for leak in leaks if leak.lead_ratio() is not None]
    seconds = [leak.truth["oom_s"] - leak.alert for leak in alerted_leaks
               if leak.truth["oom_s"] is not None]
    errors = {leak.truth["name"]: leak.eta_error(halves[leak.truth["name"]], half_way(leak.truth))
              for leak in leaks if leak.truth["name"] in halves}
    intervals = [covered(t, halves[t["name"]], half_way(t)) for t in truths if t["name"] in halves]
    intervals = [inside for inside in intervals if inside is not None]
    eta_holds, interval_holds, n_alert_eta = estimates(leaks)
    sparse_holds, sparse_interval, n_sparse = estimates(
        [Leak(leak.truth, sparse[leak.truth["name"]]) for leak in leaks
         if leak.truth["name"] in sparse])
    confusable = [t for t in truths if t["label"] == "confusable"]
    reserved = [t for t in truths if t["label"] == "reserved"]

    def alerted(group):
        return sum(any(a.get("alert_s") is not None for a in answers[t["name"]].values())
                   for t in group)

    return {
        "n_leaks": len(leaks), "n_benign": len(benign), "benign_days": round(days, 2),
        "recall": share(len(found), len(leaks)),
        "n_fast": len(fast), "recall_fast": share(sum(leak.found for leak in fast), len(fast)),
        "n_slow": len(slow),
            "recall_slow": share(sum(leak.told_in_half_an_hour for leak in slow), len(slow)),
        "n_due": len(due),
        "noticed_in_time": share(sum(leak.told is not None and leak.delay <= leak.due()
                                     for leak in due), len(due)),
        "precision": share(len(alerted_leaks), len(alerted_leaks) + wrong),
        "false_alarms": len(alarmed), "alarmed": alarmed,
            "alerts_per_host_day": share(alerts, days),
        "early_alerts": sum(leak.early for leak in leaks),
            "strangers": sum(leak.strangers for leak in leaks),
        "delay_s_median": median([leak.delay for leak in told]),
        "leaked_bytes_median": median([leak.leaked() for leak in told]),
        "n_killed": len(leads), "lead_ratio_median": median(leads),
            "lead_s_median": median(seconds),
        "lead_s_p10": quantile(seconds, 0.1), "lead_s_min": min(seconds, default=None),
        "n_eta": len(errors), "eta_error_median": median(list(errors.values())),
        "eta_below_20_percent": share(sum(e < 0.2 for e in errors.values()), len(errors)),
        "n_intervals": len(intervals),
            "eta_interval_coverage": share(sum(intervals), len(intervals)),
        "n_alert_eta": n_alert_eta, "alert_eta_holds": share(eta_holds, n_alert_eta),
            "alert_interval_holds": share(interval_holds, n_alert_eta),
        "n_sparse": n_sparse, "sparse_eta_holds": share(sparse_holds, n_sparse),
            "sparse_interval_holds": share(sparse_interval, n_sparse),
        "eta_errors": {name: round(e, 3) for name, e in errors.items() if e >= 0.2},
        "decades": decades(leaks),
        "missed": [leak.truth["name"] for leak in fast if not leak.found]
                  + [leak.truth["name"] for leak in slow if leak not in fast
                     and not leak.told_in_half_an_hour],
        "late": [leak.truth["name"] for leak in due
                 if leak.told is None or leak.delay > leak.due()],
        "early": [leak.truth["name"] for leak in leaks if leak.early],
        "strangers_in": [leak.truth["name"] for leak in leaks if leak.strangers],
        "confusable": [alerted(confusable), len(confusable)],
            "reserved": [alerted(reserved), len(reserved)],
        "calibration": calibration([pair for t in truths if t["name"] in looks
                                    for pair in confidences(t, looks[t["name"]], moment(t))]),
    }


def missed_marks(figures):
    """Names of the marks that are missed. A figure that could not be measured misses its
    mark."""
    missed = []
    for name, (sense, mark) in MARKS.items():
        value = figures[name]
        if value is None or (value < mark if sense == "at least" else value > mark):
            missed.append(name)
    return missed
