#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Checks the JSON output of a command against the keys that the manual promises.

usage: schema.py NAME FILE

A schema is a dictionary from key to type. A list with one schema is an array of such
objects; "measured" is an object {value, status}. The output may have more keys. It may not
lack a key, have a key twice or a value of the wrong type, or have a value with a status that
excludes one.
"""
import json
import sys

STATUS = ("ok", "unavailable", "error", "stale", "first", "estimated", "multiplexed")
OPTIONAL = (type(None),)

RECORDING = {"hostname": str, "kernel": str, "cpus": int, "rmids": int, "backend": str,
             "backend_reason": str, "period_ns": int, "mode": str, "start_realtime_ns": int,
             "start_monotonic_ns": int, "start_boottime_ns": int, "first_ns": int, "last_ns": int}
UNAVAILABLE = [{"name": str, "reason": str}]
VALUES = {key: "measured" for key in (
    "cpu_time_ns", "cycles", "instructions", "ipc", "llc_references", "llc_misses",
    "llc_occupancy_bytes", "llc_occupancy_max_bytes", "llc_residue_bytes",
    "mbm_total_bytes", "mbm_local_bytes", "measured_ppm")}
PART = {"slots": int, "first_ns": (int,) + OPTIONAL, "last_ns": (int,) + OPTIONAL, **VALUES}
GROWTH = {"growth_verdict": (str,) + OPTIONAL, "growth_bytes_per_second": (int,) + OPTIONAL,
          "growth_eta_seconds": (int,) + OPTIONAL}
PROCESS = {"tgid": (int,) + OPTIONAL, "start_time_ns": (int,) + OPTIONAL, "comm": str,
           "rmids": list, **GROWTH, **PART}
REPORT = {"schema": int, "file": str, "recording": RECORDING, "unavailable": UNAVAILABLE,
          "losses": {"records": int, "lost": int, "late": int, "forced": int, "malformed": int,
                     "unknown": int, "truncated": bool},
          "by": str, "totals": PART}
TOP = {"schema": int, "recording": RECORDING, "unavailable": UNAVAILABLE}
INTERVAL = {"end_ns": int, "interval_ns": int, "unassigned_cpu_percent": "measured"}
TOP_VALUES = {key: "measured" for key in (
    "cpu_percent", "llc_occupancy_bytes", "mbm_total_bytes_per_second",
    "mbm_local_bytes_per_second", "cycles", "instructions", "ipc", "llc_misses",
    "measured_ppm")}

MONITORS = [{"pid": int, "command": str, "processes": int, "rounds": int, "period_ns": int,
             "gap_ns": int, "budget_rest_ppm": int, "budget_storm_ppm": int, "cpu_ppm": int,
             "event_ppm": (int,) + OPTIONAL, "gate_width": int, "event_program": str,
             "event_program_reason": (str,) + OPTIONAL, "event_program_retry_ns": (int,) + OPTIONAL,
             "event_program_detached": int, "age_ns": int}]

VERDICT = {"pid": int, "comm": str, "verdict": str, "confidence": int,
           "first_alert_s": (int, float) + OPTIONAL, "slope_bytes_per_second": int,
           "r2_permille": int, "eta_oom_seconds": (int, float) + OPTIONAL,
           "detectors": {"regression": {"score": int}, "ratio": {"score": int},
                         "threshold": {"score": int}},
           "reason": str, "reserved_growth": bool, "alert_slope_bytes_per_second": int,
           "eta_now_seconds": (int, float) + OPTIONAL, "eta_low_seconds": (int, float) + OPTIONAL,
           "eta_high_seconds": (int, float) + OPTIONAL, "growth_bytes": int,
           "since_s": (int, float) + OPTIONAL, "signal_bytes": int, "file_bytes": int,
           "vsz_bytes": int, "room_bytes": (int,) + OPTIONAL}
ALERT = {"schema": int, "event": str, "time_s": (int, float), "time_ns": int,
         "start_time_ns": int, "limit": (str,) + OPTIONAL, "sentence": str, **VERDICT}

ESTIMATE = {"value": (int, float), "low": (int, float) + OPTIONAL,
            "high": (int, float) + OPTIONAL}
UNSURE = {**ESTIMATE, "value": (int, float) + OPTIONAL}
QUANTILES = {"median": (int, float) + OPTIONAL, "p90": (int, float) + OPTIONAL}
FRAME = {"function": (str,) + OPTIONAL, "file": (str,) + OPTIONAL, "line": (int,) + OPTIONAL,
         "module": (str,) + OPTIONAL, "address": (int,) + OPTIONAL, "inlined": bool}
SITE = {"stack": [FRAME], "live_bytes": ESTIMATE, "live_objects": ESTIMATE, "samples": int,
        "age_seconds": QUANTILES, "lifetime_seconds": QUANTILES}
HEAP = {"schema": int,
        "profile": {"file": str, "format": str, "pid": (int,) + OPTIONAL,
                    "comm": (str,) + OPTIONAL, "from_start": (bool,) + OPTIONAL,
                    "rate_bytes": (int,) + OPTIONAL, "samples": int, "objects": str,
                    "stacks": {"frame_pointer": int, "unwound": int, "truncated": int},
                    "python": (dict,) + OPTIONAL}}

SCHEMAS = {
    "doctor": {"schema": int, "ready": bool, "ok": int, "warn": int, "missing": int,
               "checks": [{"name": str, "result": str, "required": bool, "found": str,
                           "cost": (str,) + OPTIONAL, "remedy": (str,) + OPTIONAL}]},
    "status": {"schema": int, "version": str, "abi": int, "record_schema": int, "backend": str,
               "backend_reason": str, "settings_by": (str,) + OPTIONAL,
               "defaults_by": (str,) + OPTIONAL,
               "rmids_total": int, "rmids_used": int, "rmids_limbo": int, "rmids_free": int,
               "processes": int, "processes_measured": int,
               "processes_unmeasured": int, "waiting": [{"tgid": int, "comm": str}],
               "open_sessions": [{"tgid": int, "comm": str, "started": bool}],
               "conflicts": list,
               "overhead": {"memory_bytes": (int,) + OPTIONAL,
                            "cpus": [{"cpu": int, "ticks": int, "ticks_missed": int,
                                      "jitter_max_ns": int, "switches": int, "pqr_writes": int,
                                      "switch_cycles_mean": (int, float) + OPTIONAL,
                                      "tick_cycles_mean": (int, float) + OPTIONAL}],
                            "jitter": [{"low_ns": int, "high_ns": int, "count": int}]},
               "growth_monitors": MONITORS},
    "growth-status": {"schema": int, "version": OPTIONAL, "growth_monitors": MONITORS},
    "growth-replay": {"schema": int, "samples": int, "duration_seconds": (int, float),
                      "processes": [VERDICT]},
    "heap-report": {**HEAP, "sites": [SITE],
                    "rows": [{**FRAME, "flat": {"live_bytes": ESTIMATE},
                              "cum": {"live_bytes": ESTIMATE}}]},
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
                              "stacks_full": bool, "modules_full": bool, "forked_away": bool,
                              "snapshots": bool, "code_full": bool}},
    "growth-alert": ALERT,
    "growth-alert-heap": {**ALERT,
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
    "dump": {"schema": int,
             "rmids": [{"rmid": int, "generation": int, "tgid": int, "parent_tgid": int,
                        "start_time_ns": int, "alloc_time_ns": int,
                        "cgroup_id": (int,) + OPTIONAL, "cgroup": (str,) + OPTIONAL, "uid": int,
                        "comm": str}]},
    "report-process": {**REPORT, "processes": [PROCESS], "unassigned": dict},
    "report-cgroup": {**REPORT, "cgroups": [{"cgroup_id": int, "processes": int, **PART}],
                      "unassigned": dict},
    "report-rmid": {**REPORT, "rmids": [{"rmid": int, "generation": int, **PART}]},
    "report-cpu": {**REPORT, "cpus": [{"cpu": int, **PART}]},
    "report-slot": {**REPORT, "slots": [{"late": bool, **PART}]},
    "top-process": {**TOP, "intervals": [{**INTERVAL, "processes": [
        {"tgid": (int,) + OPTIONAL, "comm": str, "rmids": list, "rss_bytes": "measured",
         "rss_growth_bytes_per_second": "measured", **GROWTH, **TOP_VALUES}]}]},
    "top-cgroup": {**TOP, "intervals": [{**INTERVAL, "cgroups": [
        {"cgroup_id": int, "cgroup": str, "processes": int, **TOP_VALUES}]}]},
    "export": {"schema": int, "recording": RECORDING, "unavailable": UNAVAILABLE,
               "records": [{"time_ns": int, "type": str, "cpu": int, "late": bool,
                            "forced": bool}]},
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
    if schema == "measured":
        check_measured(value, where)
    elif isinstance(schema, dict):
        if not isinstance(value, dict):
            errors.append(f"{where}: is not an object")
            return
        for key, inner in schema.items():
            if key not in value:
                errors.append(f"{where}: lacks {key}")
            else:
                check_value(value[key], inner, f"{where}.{key}")
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


def main():
    name, path = sys.argv[1:]
    try:
        with open(path, "rb") as file:
            answer = json.loads(file.read().decode("utf-8"), object_pairs_hook=make_object)
    except ValueError as error:
        print(f"the output is not JSON: {error}")
        return
    check_value(answer, SCHEMAS[name], name)
    if answer.get("schema") != 1:
        errors.append("schema is not 1")
    for error in errors[:20]:
        print(error)
    print("json does not have what the schema promises" if errors else "json ok")


main()
