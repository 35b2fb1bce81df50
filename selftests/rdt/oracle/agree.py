# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Do resctrl, pqos and memwatch read the same?"""

from .truth import MIB


def command_agree(tap, run):
    """out/agree has lines READER LOAD PID BYTES; the bytes of memwatch are in its report."""
    reported = {p["tgid"]: p["mbm_total_bytes"] for p in run.report["processes"]}
    labels = run.labels()
    bad, seen = [], 0
    tap.note("%-9s %-8s %14s %14s %9s" % ("reader", "load", "truth", "read", "off by"))
    for line in run.read_text("agree").splitlines():
        reader, name, pid, got = line.split()
        snap = labels[reader]
        want = sum(snap.of_process(k, "total") for k in snap.process if k[0] == int(pid))
        got = int(got) if reader == "resctrl" else (reported.get(int(pid), {}).get("value") or 0)
        seen += 1
        tap.note("%-9s %-8s %14d %14d %8.2f%%" %
                 (reader, name, want, got, 100 * (got - want) / max(want, 1)))
        if abs(got - want) > want * (0.01 if reader == "memwatch" else 0.05):
            bad.append(line)
    tap.ok(seen >= 6, "at least 6 values of resctrl and memwatch are compared: %d" % seen)
    tap.ok(not bad, "resctrl (within 5 %) and memwatch (within 1 %) agree with the truth", bad)
    check_pqos(tap, run, labels)


def check_pqos(tap, run, labels):
    """
    Each second pqos prints the local and remote MB/s of each core: what the counters moved
    since the row before, however late it is. So the rows add up to bytes, also on a busy
    host.
    """
    rows = [line.strip().split(",") for line in run.read_text("pqos.csv").splitlines()]
    head = next((r for r in rows if "Core" in r[1:2]), None)
    if not tap.ok(head, "pqos prints a table", rows[:3]):
        return
    columns = [i for i, name in enumerate(head) if name.startswith(("MBL", "MBR"))]
    got = sum(float(r[i]) for r in rows if len(r) == len(head) and r != head for i in columns)
    a, b = labels["pqos-begin"], labels["pqos-end"]
    want = sum(b.domain[d]["total"] - a.domain[d]["total"] for d in b.domain) / MIB
    names = "+".join(head[i].split("[")[0] for i in columns)
    tap.note("%-9s %-8s %9.1f MiB %9.1f MiB %8.2f%%" %
             ("pqos", names, want, got, 100 * (got - want) / max(want, 1)))
    tap.ok(want > 1, "the machine moved more than a MiB while pqos ran")
    tap.ok(abs(got - want) < want / 20, "pqos reads what the machine moved, within 5 %",
           "got %.1f MiB, expected %.1f MiB" % (got, want))
