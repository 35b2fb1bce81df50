# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""What memwatch says: its records and its report, exported as JSON."""

import bisect
import collections
import json
import os
import re

from .registers import RegisterLog
from .truth import read_snapshots

NAMES = {"occupancy": "llc_occupancy_bytes", "total": "mbm_total_bytes",
         "local": "mbm_local_bytes"}
LIFE_RECORDS = ("rmid_alloc", "rmid_existing", "rmid_exec", "rmid_free")


class Curve:
    """A number that grows, known at some moments."""

    def __init__(self):
        self.points = []

    def add(self, t, v):
        self.points.append((t, v))

    def at(self, t):
        """Interpolated between two points; None before the first."""
        i = bisect.bisect_right(self.points, (t, float("inf")))
        if i == 0:
            return None
        a = self.points[i - 1]
        if i == len(self.points) or a[0] == t:
            return a[1]
        b = self.points[i]
        return a[1] + (t - a[0]) / (b[0] - a[0]) * (b[1] - a[1])


class Account:
    """
    One generation of one RMID. seen: time of its last record of any kind. curve: by event
    and domain. residue: (time, domain, bytes) that earlier owners had left. readings: by
    domain (time, value by event, set of estimated events).
    """

    def __init__(self, rmid, generation):
        self.rmid, self.generation = rmid, generation
        self.tgid = self.start = self.alloc = self.free = None
        self.comm = ""
        self.seen = 0
        self.curve = collections.defaultdict(lambda: collections.defaultdict(Curve))
        self.residue = []
        self.readings = collections.defaultdict(list)
        self.status = collections.Counter()

    def is_load(self):
        return self.comm.startswith("load-")

    def bytes_at(self, event, t):
        return sum(c.at(t) or 0 for c in self.curve[event].values())

    def final(self, event):
        """The last value in each domain."""
        return {d: c.points[-1][1] for d, c in self.curve[event].items() if c.points}

    def add_life(self, r):
        self.tgid, self.start, self.comm = r["tgid"], r["start_time_ns"], r["comm"]
        if r["type"] == "rmid_alloc":
            self.alloc = r["time_ns"]
        if r["type"] == "rmid_free":
            self.free = r["time_ns"]

    def add_reading(self, r):
        if "llc_residue_bytes" in r:
            self.residue.append((r["time_ns"], r["domain"], r["llc_residue_bytes"]))
        good = {e: r[name] for e, name in NAMES.items()
                if r[name]["status"] in ("ok", "estimated")}
        if good:
            estimated = {e for e, v in good.items() if v["status"] == "estimated"}
            values = {e: v["value"] for e, v in good.items()}
            self.readings[r["domain"]].append((r["time_ns"], values, estimated))
        for event, name in NAMES.items():
            v = r[name]
            self.status[event, v["status"]] += 1
            if event not in good:
                continue
            curve = self.curve[event][r["domain"]]
            if event != "occupancy" and not curve.points and self.alloc:
                curve.add(self.alloc, 0)
            curve.add(r["time_ns"], v["value"])


def read_accounts(path):
    """By (RMID, generation)."""
    accounts = {}
    with open(path, encoding="utf-8") as stream:
        records = json.load(stream)["records"]
    for r in records:
        if "rmid" not in r:
            continue
        owner = r["rmid"], r["generation"]
        account = accounts.setdefault(owner, Account(*owner))
        account.seen = r["time_ns"]
        if r["type"] in LIFE_RECORDS:
            account.add_life(r)
        elif r["type"] == "rdt":
            account.add_reading(r)
    return accounts


class Run:
    """All that is known about one run of the lab: the folder with out/ of its guest."""

    def __init__(self, path):
        self.path = path
        self.snaps = read_snapshots(self.out("rdt.truth"))
        self.accounts = read_accounts(os.path.join(path, "records.json"))
        with open(os.path.join(path, "report.json"), encoding="utf-8") as stream:
            self.report = json.load(stream)

    def out(self, name):
        """A file that the guest has written."""
        return os.path.join(self.path, "out", name)

    def read_text(self, name):
        with open(self.out(name), encoding="utf-8") as stream:
            return stream.read()

    def status(self):
        """/proc/memwatch/status."""
        return dict(re.findall(r"^(\w+): (.*)$", self.read_text("status"), re.M))

    def register_log(self):
        status = self.status()
        return RegisterLog(self.out("rdt.msr"), self.snaps, int(status["rdt_width_bits"]),
                           int(status["rdt_scale_bytes"]))

    def labels(self):
        """Label: the last snapshot with it."""
        return {snap.label: snap for snap in self.snaps}

    def processes(self):
        """(tgid, start time): its accounts."""
        by = collections.defaultdict(list)
        for account in self.accounts.values():
            if account.tgid:
                by[account.tgid, account.start].append(account)
        return by
