# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""What the simulated machine says: its snapshots (rdt.truth) and its log (rdt.msr)."""

import collections
import re

EVTSEL, CTR, PQR, ABMC_CFG = 0xC8D, 0xC8E, 0xC8F, 0xC00003FD
MIB = 1 << 20


def parse_values(line):
    """key=value words; a value that is a number becomes one."""
    return {k: int(v) if re.fullmatch(r"-?\d+", v) else v
            for k, v in re.findall(r"(\w+)=(\S*)", line)}


class Snapshot:
    """
    cpu, domain: values by number. rmid: values by (domain, RMID). process: values by
    (tgid, start time) and domain. time: by the guest's clock.
    """

    def __init__(self, line):
        self.head = parse_values(line)
        self.label = self.head.get("label", "")
        self.time = None
        self.cpu, self.domain, self.rmid = {}, {}, {}
        self.process = collections.defaultdict(dict)
        self.comm = {}

    def of_process(self, key, what):
        """The sum over all domains."""
        return sum(values[what] for values in self.process.get(key, {}).values())


def read_snapshots(path):
    snaps = []
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            kind, _, rest = line.strip().partition(" ")
            if kind == "truth":
                snaps.append(Snapshot(rest))
            elif kind == "cpu":
                snaps[-1].cpu[int(rest.split()[0])] = parse_values(rest)
            elif kind == "domain":
                snaps[-1].domain[int(rest.split()[0])] = parse_values(rest)
            elif kind == "rmid":
                domain, rmid = rest.split()[:2]
                snaps[-1].rmid[int(domain), int(rmid)] = parse_values(rest)
            elif kind == "process":
                values = parse_values(rest)
                key = (values["tgid"], values["start"])
                snaps[-1].process[key][int(rest.split()[0])] = values
                snaps[-1].comm[key] = values["comm"]
    clock = make_guest_clock(snaps)
    for snap in snaps:
        snap.time = clock(snap.head["host_ns"])
    return snaps


def make_guest_clock(snaps):
    """
    Returns a function from the host_ns of the machine's log to the guest's clock.

    For a snapshot the guest reads its clock, then the machine reads the host's. The host may
    stop the guest between the two readings. The guest's time is then too early for that host
    time, but never too late. Both clocks run evenly. The function is therefore a line: the
    edge of the convex hull above all pairs of times, in the middle of the run.
    """
    points = sorted({(s.head["host_ns"], s.head["monotonic_ns"]) for s in snaps})
    hull = []
    for p in points:
        while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (p[1] - hull[-2][1]) >= \
                (hull[-1][1] - hull[-2][1]) * (p[0] - hull[-2][0]):
            hull.pop()
        hull.append(p)
    if len(hull) < 2:
        return lambda host: hull[0][1] + host - hull[0][0]
    mean = sum(p[0] for p in points) / len(points)
    a, b = next((a, b) for a, b in zip(hull, hull[1:]) if b[0] >= mean or b is hull[-1])
    slope = (b[1] - a[1]) / (b[0] - a[0])
    return lambda host: a[1] + (host - a[0]) * slope


def domain_of_cpus(snaps):
    return {cpu: values["domain"] for cpu, values in snaps[-1].cpu.items()}


def read_accesses(path):
    """(host_ns, CPU, 'r' or 'w', MSR, value) of each access in the log, in its order."""
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            part = line.split()
            if len(part) == 5 and part[0] != "process":
                yield int(part[0]), int(part[1]), part[2], int(part[3], 16), int(part[4], 16)
