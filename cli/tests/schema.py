#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Checks the JSON output of a command against the keys that the manual promises.

usage: schema.py NAME FILE
       schema.py --manual DIR    whether the manual pages in DIR name all keys

A schema is a dictionary from key to type; a key with "?" at its end may be absent. A list with one
schema is an array of such
objects; "measured" is an object {value, status}. The output may not lack a key, have another key
or one twice, a value of the wrong type, or a value with a status that excludes one.
"""
import glob
import json
import re
import sys

STATUS = ("ok", "unavailable", "error", "stale", "first", "estimated", "multiplexed")
OPTIONAL = (type(None),)


class Nullable:
    """What a schema describes, or null."""

    def __init__(self, schema):
        self.schema = schema


RECORDING = {"hostname": str, "kernel": str, "memwatch_version": str, "cpus": int, "rmids": int,
             "backend": str, "backend_reason": str, "period_ns": int, "mode": str,
             "record_schema": int, "start_realtime_ns": int, "start_monotonic_ns": int,
             "start_boottime_ns": int, "first_ns": (int,) + OPTIONAL,
             "last_ns": (int,) + OPTIONAL}
REASONS = [{"name": str, "reason": str}]
STREAM = {"schema": int, "recording": RECORDING, "unavailable": REASONS, "estimated": REASONS}
VALUES = {key: "measured" for key in (
    "cpu_time_ns", "cycles", "instructions", "ipc", "llc_references", "llc_misses",
    "llc_occupancy_bytes", "llc_occupancy_max_bytes", "llc_residue_bytes",
    "mbm_total_bytes", "mbm_local_bytes", "measured_ppm")}
PART = {"slots": int, "first_ns": (int,) + OPTIONAL, "last_ns": (int,) + OPTIONAL, **VALUES}
GROWTH = {"growth_verdict": (str,) + OPTIONAL, "growth_bytes_per_second": (int,) + OPTIONAL,
          "growth_eta_seconds": (int,) + OPTIONAL}
OWNER = {"tgid": (int,) + OPTIONAL, "start_time_ns": (int,) + OPTIONAL, "comm": str,
         "uid": (int,) + OPTIONAL, "cgroup_id": (int,) + OPTIONAL}
PROCESS = {**OWNER, "rmids": list, **GROWTH, **PART}
REPORT = {**STREAM, "file": str, "period_max_ns": (int,) + OPTIONAL,
          "losses": {"records": int, "lost": int, "late": int, "forced": int, "malformed": int,
                     "unknown": int, "truncated": bool},
          "by": str, "totals": PART}
INTERVAL = {"end_ns": int, "interval_ns": int, "unassigned_cpu_percent": "measured",
            "lost": int, "late": int}
TOP_VALUES = {key: "measured" for key in (
    "cpu_percent", "llc_occupancy_bytes", "mbm_total_bytes_per_second",
    "mbm_local_bytes_per_second", "cycles", "instructions", "ipc", "llc_misses",
    "measured_ppm")}

# Each type of record has some of these.
RECORD = {"time_ns": int, "type": str, "cpu": int, "late": bool, "forced": bool,
          **{f"{key}?": int for key in (
              "rmid", "generation", "tgid", "parent_tgid", "start_time_ns", "begin_ns", "run_ns",
              "running_ppm", "expected_ns", "period_ns", "overruns", "produced", "dropped",
              "alloc_time_ns", "uid", "unmeasured_ns", "sequence", "count", "unmeasured",
              "since_ns", "domain", "value", "end_ns", "confidence", "signal_bytes", "age_ns",
              "growth_bytes_per_second", "llc_residue_bytes")},
          **{f"{key}?": str for key in ("comm", "reason", "state", "event", "growth_verdict",
                                        "limit")},
          **{f"{key}?": (int,) + OPTIONAL for key in ("cgroup_id", "growth_eta_seconds")},
          **{f"{key}?": "measured" for key in (
              "cycles", "instructions", "llc_references", "llc_misses", "llc_occupancy_bytes",
              "mbm_total_bytes", "mbm_local_bytes")}}

MONITORS = [{"pid": int, "command": str, "processes": int, "processes_growing": int,
             "samples_without_room": int, "records_lost": int, "rounds": int,
             "rounds_asked_for": int, "period_ns": int, "gap_ns": int, "budget_rest_ppm": int, "budget_storm_ppm": int, "cpu_ppm": int,
             "event_ppm": (int,) + OPTIONAL, "gate_width": int, "event_program": str,
             "event_program_reason": (str,) + OPTIONAL, "event_program_retry_ns": (int,) + OPTIONAL,
             "event_program_detached": int, "touch": str, "touch_suspects": int,
             "touch_stall_ns": int, "where": str, "where_suspects": int, "where_period": int,
             "age_ns": int}]

STATUS_VALUES = {
    "schema": int, "backend": str, "policy": str, "cpumask": str, "idle_stop": bool,
    **{key: str for key in ("version", "backend_reason", "period_reason")},
    **{key: (str,) + OPTIONAL for key in ("settings_by", "defaults_by")},
    **{key: int for key in (
        "abi", "record_schema", "sessions", "sessions_started", "period_ns", "limbo_ns", "filters",
        "rmids_total", "rmids_used", "rmids_limbo", "rmids_free", "processes",
        "processes_measured", "processes_unmeasured", "processes_waiting", "processes_filtered",
        "allocs", "frees", "promotions", "revocations", "exhausted", "untracked",
        "foreign_writes")},
    **{key: (int,) + OPTIONAL for key in (
        "period_asked_ns", "rdt_budget", "rdt_domains", "rdt_scale_bytes", "rdt_width_bits", "rdt_counters",
        "rdt_counted_rmids", "rdt_counter_turns")}}
STATUS_LISTS = {
    "waiting": [{"tgid": int, "comm": str}],
    "open_sessions": [{"tgid": int, "comm": str, "started": bool}], "conflicts": list,
    "overhead": {"memory_bytes": (int,) + OPTIONAL,
                 "cpus": [{**{key: int for key in (
                     "cpu", "ticks", "ticks_missed", "jitter_max_ns", "switches", "pqr_writes",
                     "rdt_ops_max", "rdt_reads", "rdt_waits", "rdt_ns", "rdt_sync_ns",
                     "rdt_busy", "rdt_age_max_ns", "irqs_off_max_ns",
                     "tick_ns", "tick_ppm")},
                     "switch_cycles_mean": (int, float) + OPTIONAL,
                     "tick_cycles_mean": (int, float) + OPTIONAL}],
                 "jitter": [{"low_ns": int, "high_ns": int, "count": int}]},
    "growth_monitors": MONITORS}

JUDGED = {"verdict": str, "confidence": int,
           "first_notice_s": (int, float) + OPTIONAL, "first_alert_s": (int, float) + OPTIONAL,
           "slope_bytes_per_second": (int,) + OPTIONAL,
           "r2_permille": int, "eta_oom_seconds": (int, float) + OPTIONAL,
           "detectors": {"regression": {"score": int}, "ratio": {"score": int},
                         "threshold": {"score": int}},
           "reason": str, "reserved_growth": bool, "reached_limit_before": bool,
           "alert_slope_bytes_per_second": (int,) + OPTIONAL,
           "eta_now_seconds": (int, float) + OPTIONAL, "eta_low_seconds": (int, float) + OPTIONAL,
           "eta_high_seconds": (int, float) + OPTIONAL, "growth_bytes": int,
           "since_s": (int, float) + OPTIONAL, "signal_bytes": int, "file_bytes": int,
           "vsz_bytes": int, "room_bytes": (int,) + OPTIONAL,
           **{f"{key}_bytes": (int,) + OPTIONAL for key in ("gained", "cold", "cold_low", "cold_high")},
           "untouched_seconds": (int, float) + OPTIONAL}
VERDICT = {"pid": int, "comm": str, **JUDGED}
SPAN = {"start_s": (int, float), "end_s": (int, float) + OPTIONAL}
SPANS = {"notices": [SPAN], "alerts": [{**SPAN, "reason": str,
                    **{f"eta_{key}_seconds": (int, float) + OPTIONAL for key in ("oom", "low", "high")}}]}
GROUP = {"path": str, "class": str, "mostly_pid": (int,) + OPTIONAL,
         "mostly_comm": (str,) + OPTIONAL, **JUDGED}
RAISED = {"schema": int, "event": str, "time_s": (int, float), "time_ns": int,
          "limit": (str,) + OPTIONAL, "sentence": str}
ALERT = {**RAISED, "start_time_ns": int, **VERDICT}

ESTIMATE = {"value": (int, float), "low": (int, float) + OPTIONAL,
            "high": (int, float) + OPTIONAL}
UNSURE = {**ESTIMATE, "value": (int, float) + OPTIONAL}
QUANTILES = {"median": (int, float) + OPTIONAL, "p90": (int, float) + OPTIONAL}
FRAME = {"function": (str,) + OPTIONAL, "file": (str,) + OPTIONAL, "line": (int,) + OPTIONAL,
         "module": (str,) + OPTIONAL, "address": (int,) + OPTIONAL, "inlined": bool}
ALLOCATED = {"allocated_bytes": (dict,) + OPTIONAL, "allocated_objects": (dict,) + OPTIONAL}
TAKEN = {"share": (int, float), "samples": int, "of_samples": int, "frame": int, "stack": [FRAME]}
WHERE = {"touched": Nullable(TAKEN), "asked": Nullable(TAKEN)}
SITE = {"stack": [FRAME], "live_bytes": ESTIMATE, "live_objects": ESTIMATE, **ALLOCATED,
        "samples": int,
        "touched": Nullable({"minute": UNSURE, "hour": UNSURE, "day": UNSURE,
                             "watched": int, "watched_parts": int}),
        "age_seconds": QUANTILES, "lifetime_seconds": QUANTILES}
HEAP = {"schema": int,
        "profile": {"file": str, "format": str, "pid": (int,) + OPTIONAL,
                    "comm": (str,) + OPTIONAL, "from_start": (bool,) + OPTIONAL,
                    "rate_bytes": (int,) + OPTIONAL, "samples": int, "objects": str,
                    "stacks": {"frame_pointer": int, "unwound": int, "truncated": int},
                    "python": (dict,) + OPTIONAL,
                    "watch": Nullable({"max": int, "watched": int, "refused": int,
                                       "least_bytes": int,
                                       "step_seconds": (int, float) + OPTIONAL,
                                       "age_seconds": (int, float) + OPTIONAL})}}

DISTRIBUTION = {"basis": str, "objects": int, "flat": bool, "medcouple": (int, float) + OPTIONAL,
                **{f"{key}_ns": (int, float) + OPTIONAL
                   for key in ("q1", "median", "q3", "threshold")}}
TOUCHES = {"access_sites": list, "access_counts": list}

SCHEMAS = {
    "doctor": {"schema": int, "ready": bool, "ok": int, "warn": int, "missing": int,
               "checks": [{"name": str, "result": str, "required": bool, "found": str,
                           "cost": (str,) + OPTIONAL, "remedy": (str,) + OPTIONAL}]},
    "status": {**STATUS_VALUES, **STATUS_LISTS},
    # Without the module, other values are null and lists are empty.
    "growth-status": {**{key: OPTIONAL for key in STATUS_VALUES}, **STATUS_LISTS, "schema": int,
                      "backend": (str,) + OPTIONAL, "backend_reason": str},
    "growth-replay": {"schema": int, "samples": int, "duration_seconds": (int, float),
                      "processes": [{**VERDICT, **SPANS}], "cgroups": [{**GROUP, **SPANS}],
                      "host": OPTIONAL},
    "growth-replay-host": {
        "schema": int, "samples": int, "duration_seconds": (int, float),
        "processes": [{**VERDICT, **SPANS}], "cgroups": [{**GROUP, **SPANS}],
        "host": {**GROUP, **SPANS, "classes": [{**GROUP, **SPANS}]}},
    "heap-report": {**HEAP, "sites": [SITE],
                    "rows": [{**FRAME, "depth?": int, **{sum_of: {
                        "live_bytes": ESTIMATE, "live_objects": ESTIMATE, **ALLOCATED}
                        for sum_of in ("flat", "cum")}}]},
    "heap-list": {"schema": int,
                  "profiles": [{"pid": int, "comm": str, "state": str, "rate_bytes": int,
                                "live_bytes": int, "samples": int, "file_bytes": int,
                                "file": str}]},
    "heap-stats": {"schema": int, "file": str, "pid": int, "comm": str, "state": str,
                   "from_start": bool, "start_realtime_ns": int, "rate_bytes": int,
                   "configured_rate_bytes": int, "live_bytes": int, "live_samples": int,
                   "sampled": int, "freed": int, "lost": int, "lost_bytes": int,
                   "peak_live_bytes": int, "sample_ns": int, "file_bytes": int,
                   "stacks": {"frame_pointer": int, "unwound": int, "truncated": int},
                   "limits": {"no_space": bool, "file_size": bool, "samples_full": bool,
                              "stacks_full": bool, "modules_full": bool, "snapshots": bool,
                              "code_full": bool}},
    "growth-alert": {**ALERT, "hook?": str, "heap": OPTIONAL, "where": WHERE},
    "growth-notice": {**ALERT, "heap": OPTIONAL, "where": OPTIONAL},
    "growth-group": {**RAISED, **GROUP},
    "events-event": {"schema": int, "source": str, "event": str, "time_ns": int, "sentence": str,
                     "cpu": int, "count": int, "value": int, "sequence": int, "suppressed": int,
                     "lost": int},
    "events-alert": {**ALERT, "source": str},
    "events-group": {**RAISED, "source": str, **GROUP},
    "growth-alert-heap": {**ALERT, "hook?": str, "where": OPTIONAL,
                          "heap": {"growth_bytes": ESTIMATE, "seconds": (int, float),
                                   "copy": (str,) + OPTIONAL, "stack": [FRAME]}},
    "growth-room": {"schema": int, "event": str, "time_ns": int, "processes_unwatched": int},
    "heap-rss": {**HEAP, "sites": [SITE],
                 "rss": {"rss_bytes": int,
                         "parts": {name: UNSURE for name in (
                             "live", "overhead", "free", "caches", "stacks", "anonymous", "files",
                             "shared", "unexplained")},
                         "swapped_bytes": int, "page_table_bytes": int, "verdict": str,
                         "sentence": str, "largest": (str,) + OPTIONAL, "trim_bytes": UNSURE,
                         "cap_bytes": int, "arenas": int, "has_figures": bool, "has_unseen": bool,
                         "has_ended": bool, "figures_age_seconds": (int, float) + OPTIONAL}},
    "heap-sites": {**HEAP, "sites": [SITE]},
    "heap-leaks": {**HEAP, "sites": [{**SITE, "growth_bytes_per_hour": ESTIMATE, "leak": bool,
                                        "stacks": int}]},
    "stale-report": {"schema": int,
                     "trace": {"file": str, "cut_off": bool, "sorted": bool,
                               **{key: int for key in (
                                   "first_ns", "last_ns", "active_ns", "allocations", "frees",
                                   "accesses", "unmatched_frees", "overlaps", "misses")},
                               "recording": Nullable({
                                   "pid": int, "comm": str, "began": str, "state": str,
                                   "threads": int, "lost": int, "damaged": int}),
                               "sampling": Nullable({
                                   "event": str, "period": int, "page_faults": bool,
                                   "user_only": bool, "ended": bool, "lost": int,
                                   "throttled": int, "damaged": int})},
                     "scheme": str, "distribution": DISTRIBUTION,
                     **{key: int for key in ("live_objects", "live_bytes", "leaked_objects",
                                             "leaked_bytes")},
                     "sites": [{"site": str, "stack": [FRAME], "leak": bool, "scheme": str,
                                "growth": str, "threshold_ns": (int, float) + OPTIONAL,
                                **{key: int for key in (
                                    "longest_ns", "stale_objects", "stale_bytes",
                                    "live_objects", "live_bytes", "allocated_objects",
                                    "allocated_bytes", "freed_objects", "access_others",
                                    "free_others")},
                                **TOUCHES, "free_sites": list, "free_counts": list,
                                "distribution": DISTRIBUTION,
                                "live": [{"time_ns": int, "live_objects": int,
                                          "live_bytes": int}]}],
                     "objects": [{"address": int, "size_bytes": int, "site": str, "tid": int,
                                  "allocated_ns": int, "staleness_ns": int,
                                  "active_staleness_ns": int, "scheme": str,
                                  "last_access_site": (str,) + OPTIONAL, "accesses": int,
                                  **TOUCHES, "free_sites": list, "leak": bool}]},
    "dump": {"schema": int,
             "rmids": [{"rmid": int, "generation": int, "tgid": int, "parent_tgid": int,
                        "start_time_ns": int, "alloc_time_ns": int,
                        "cgroup_id": (int,) + OPTIONAL, "cgroup": (str,) + OPTIONAL, "uid": int,
                        "comm": str}]},
    "report-process": {**REPORT, "processes": [PROCESS], "unassigned": dict},
    "report-cgroup": {**REPORT, "cgroups": [{"cgroup_id": int, "processes": int, "comm": str,
                                             **PART}],
                      "unassigned": dict},
    "report-rmid": {**REPORT, "rmids": [{"rmid": int, "generation": int, **OWNER, **PART}]},
    "report-cpu": {**REPORT, "cpus": [{"cpu": int, **PART}]},
    "report-slot": {**REPORT, "slots": [{"late": bool, **PART}]},
    "top-process": {**STREAM, "intervals": [{**INTERVAL, "processes": [
        {**OWNER, "rmids": list, "rss_bytes": "measured",
         "rss_growth_bytes_per_second": "measured", **GROWTH, **TOP_VALUES}]}]},
    "top-growth": {**STREAM, "intervals": [{**INTERVAL, "growth_groups": [GROUP], "processes": [
        {**OWNER, "rmids": list, "rss_bytes": "measured",
         "rss_growth_bytes_per_second": "measured", **GROWTH, **TOP_VALUES}]}]},
    "top-cgroup": {**STREAM, "intervals": [{**INTERVAL, "cgroups": [
        {"cgroup_id": int, "cgroup": str, "processes": int, "rmids": list,
         "anonymous_bytes": "measured", "anonymous_growth_bytes_per_second": "measured",
         **TOP_VALUES}]}]},
    "export": {**STREAM, "records": [RECORD]},
}

errors = []


def check_measured(value, where):
    if not isinstance(value, dict) or set(value) != {"value", "status"}:
        errors.append(f"{where}: is not an object {{value, status}}: {value}")
    elif value["status"] not in STATUS:
        errors.append(f"{where}: unknown status {value['status']}")
    elif value["status"] == "error" and value["value"] == 0:
        errors.append(f"{where}: the value of an error is 0: {value}")
    elif value["status"] != "error" and (
            (value["value"] is None) != (value["status"] in ("unavailable", "first"))):
        errors.append(f"{where}: value and status exclude each other: {value}")


def check_value(value, schema, where):
    if isinstance(schema, Nullable):
        if value is not None:
            check_value(value, schema.schema, where)
    elif schema == "measured":
        check_measured(value, where)
    elif isinstance(schema, dict):
        if not isinstance(value, dict):
            errors.append(f"{where}: is not an object")
            return
        for key, inner in schema.items():
            optional = key.endswith("?")
            key = key.rstrip("?")
            if key not in value:
                if not optional:
                    errors.append(f"{where}: lacks {key}")
            else:
                check_value(value[key], inner, f"{where}.{key}")
        for key in sorted(set(value) - {key.rstrip("?") for key in schema}):
            errors.append(f"{where}: has {key}, which is not documented")
    elif isinstance(schema, list):
        if not isinstance(value, list):
            errors.append(f"{where}: is not an array")
            return
        for i, item in enumerate(value):
            check_value(item, schema[0], f"{where}[{i}]")
    elif not isinstance(value, schema) or (isinstance(value, bool) and schema is int):
        errors.append(f"{where}: {value!r} is not {schema}")


def make_object(pairs):
    keys = [key for key, _ in pairs]
    for key in set(keys):
        if keys.count(key) > 1:
            errors.append(f"key {key} appears twice")
    return dict(pairs)


def list_keys(schema):
    if isinstance(schema, Nullable):
        yield from list_keys(schema.schema)
    elif isinstance(schema, dict):
        for key, inner in schema.items():
            yield key.rstrip("?")
            yield from list_keys(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from list_keys(inner)


def check_manual(folder):
    words = set()
    for page in glob.glob(folder + "/*"):
        with open(page, encoding="utf-8") as file:
            words.update(re.findall(r"\w+", file.read()))
    missing = sorted(set(list_keys(list(SCHEMAS.values()))) - words)
    print("the manual lacks " + ", ".join(missing) if missing else "the manual names all keys")


def main():
    name, path = sys.argv[1:]
    if name == "--manual":
        check_manual(path)
        return
    try:
        with open(path, "rb") as file:
            answer = json.loads(file.read().decode("utf-8"), object_pairs_hook=make_object)
    except ValueError as error:
        print(f"the output is not JSON: {error}")
        sys.exit(1)
    check_value(answer, SCHEMAS[name], name)
    if answer.get("schema") != 1:
        errors.append("schema is not 1")
    for error in errors[:20]:
        print(error)
    print("json does not have what the schema promises" if errors else "json ok")
    sys.exit(bool(errors))


main()
