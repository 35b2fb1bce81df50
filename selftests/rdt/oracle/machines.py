# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Are the values right on particular machines: with faults, clusters, errata, without RDT?"""

import collections

from .truth import MIB

# Intel's errata SKX99 and BDF102: with 24 RMIDs, bandwidth of those above 15 is to be
# multiplied by this factor.
CORRECTION, CORRECTED_ABOVE = 0.969650, 15


def command_faults(tap, run):
    """Whatever fault was injected, no value is larger than the truth."""
    too_large, backwards, seen = [], [], collections.Counter()
    end = run.snaps[-1]
    for key, parts in run.processes().items():
        for a in parts:
            seen.update(a.status)
        want = end.of_process(key, "total")
        got = sum(a.bytes_at("total", end.time) for a in parts)
        if got > want * 1.01 + MIB // 4:
            too_large.append((parts[0].comm, key, want, got))
        for a in parts:
            for curve in a.curve["total"].values():
                if any(q[1] < p[1] for p, q in zip(curve.points, curve.points[1:])):
                    backwards.append((parts[0].comm, key))
    tap.note("readings by status: %s" % dict(seen))
    tap.ok(not too_large, "no process has more bytes than it moved", too_large)
    tap.ok(not backwards, "the bytes of no process decrease", backwards)
    for word in run.read_text("expected").split():
        event, status = word.split(":")
        tap.ok(seen[event, status] > 0,
               "the injected fault is seen: %s has status %s" % (event, status))


def check_misses_after_sleep(tap, run, end):
    """The PMU was reset, too. The machine counts misses as fills; AMD's has no PMU."""
    wrong = []
    for p in run.report["processes"]:
        misses, fills = p["llc_misses"], end.of_process((p["tgid"], p["start_time_ns"]), "fills")
        if not p["comm"].startswith("load-") or misses["status"] == "unavailable":
            continue
        tap.note("%-12s filled %9d lines, misses %9d" % (p["comm"], fills, misses["value"]))
        if abs(misses["value"] - fills) > fills / 20:
            wrong.append((p["comm"], p["tgid"], fills, misses))
    tap.ok(not wrong, "the cache misses of each load are right within 5 %, if they are counted",
           wrong)


def command_suspend(tap, run):
    """
    The registers were reset while the loads slept. What the caches wrote back at that moment
    is part of the truth, and no reading can show it. It is at most the size of the caches.
    """
    end = run.labels()["end"]
    caches = len(end.domain) * MIB
    wrong, wrong_reads, ends, seen = [], [], collections.Counter(), collections.Counter()
    for key, parts in run.processes().items():
        if not parts[0].is_load():
            continue
        want = end.of_process(key, "total")
        got = sum(sum(a.final("total").values()) for a in parts)
        for a in parts:
            seen.update(a.status)
        ends[parts[0].comm] = want
        tap.note("%-12s pid %-5d truth %11d memwatch %11d" %
                 (parts[0].comm, key[0], want, got))
        if not want * 0.99 - caches <= got <= want * 1.01:
            wrong.append((parts[0].comm, key, want, got))
        if parts[0].comm == "load-read" and abs(got - want) > want / 100:
            wrong_reads.append((parts[0].comm, key, want, got))
    tap.note("readings by status: %s" % dict(seen))
    tap.eq(end.head["wakes"], 2, "the machine has reset its registers twice")
    tap.eq(len(ends), 3, "three loads were measured")
    tap.ok(all(want > 4 * caches for want in ends.values()),
           "each load moved more than four times what the caches hold", dict(ends))
    tap.ok(not wrong, "no load has more bytes than it moved, nor fewer but for what was "
           "written back when it slept", wrong)
    tap.ok(not wrong_reads, "the bytes of a load that reads are right within 1 %", wrong_reads)
    tap.ok(seen["total", "estimated"] > 0, "readings say that bytes may be missing")
    check_misses_after_sleep(tap, run, end)


def command_clusters(tap, run):
    """
    Sub-NUMA clustering: the domains of memwatch are nodes, and RMID r of node n is RMID
    r + n * (RMIDs of a node) of the registers. One load ran in each node, and one in both.
    """
    end = run.labels()["end"]
    per_node = int(run.status()["rmids_total"]) + 1
    reported = {p["tgid"]: p["mbm_total_bytes"]["value"] for p in run.report["processes"]}
    bad_processes, bad_nodes, nodes = [], [], collections.Counter()
    for a in run.accounts.values():
        if not a.is_load():
            continue
        want = end.of_process((a.tgid, a.start), "total")
        tap.note("%-12s pid %-5d truth %11d report %11d" %
                 (a.comm, a.tgid, want, reported[a.tgid]))
        if abs(reported[a.tgid] - want) > want / 100:
            bad_processes.append((a.comm, a.tgid, want, reported[a.tgid]))
        for n, v in a.final("total").items():
            t = end.rmid.get((0, a.rmid + n * per_node), {}).get("total", 0)
            nodes[n] += v > 8 * MIB
            tap.note("  node %d: RMID %d is RMID %d of the registers: truth %d memwatch %d" %
                     (n, a.rmid, a.rmid + n * per_node, t, v))
            if t > MIB and abs(v - t) > t / 100:
                bad_nodes.append((a.comm, a.tgid, n, t, v))
    tap.eq(len(nodes), 2, "there are values of two nodes")
    tap.ok(all(nodes.values()), "a load moved more than 8 MiB in each node", dict(nodes))
    tap.ok(not bad_processes, "the bytes of each process are right within 1 %", bad_processes)
    tap.ok(not bad_nodes, "the bytes of each process in each node are right within 1 %", bad_nodes)


def command_errata(tap, run):
    """The machine counts correctly; a corrected value is therefore off by the factor."""
    end = run.labels()["end"]
    bad, seen = [], collections.Counter()
    for a in run.accounts.values():
        if not a.is_load():
            continue
        factor = CORRECTION if a.rmid > CORRECTED_ABOVE else 1
        want = end.of_process((a.tgid, a.start), "total") * factor
        got = sum(a.final("total").values())
        seen[factor] += want > MIB
        tap.note("%-12s RMID %2d factor %.5f: expected %11.0f got %11d" %
                 (a.comm, a.rmid, factor, want, got))
        if abs(got - want) > max(want, MIB) / 100:
            bad.append((a.comm, a.rmid, want, got))
    tap.ok(seen[CORRECTION] > 0, "a load of more than a MiB has an RMID above the threshold")
    tap.ok(seen[1] > 0, "a load of more than a MiB has an RMID up to the threshold")
    tap.ok(not bad, "bandwidth of RMIDs above the threshold is corrected, that of others is not",
           bad)


def command_estimate(tap, run):
    """
    Without RDT, total is estimated: 64 bytes for each cache miss. The machine counts misses
    as fills. Write-backs are not part of the estimate. All other values are unavailable.
    """
    bad, made_up, seen = [], [], 0
    for p in run.report["processes"]:
        if not p["comm"].startswith("load-"):
            continue
        total, misses = p["mbm_total_bytes"], p["llc_misses"]
        key = (p["tgid"], p["start_time_ns"])
        fills = 64 * run.snaps[-1].of_process(key, "fills")
        moved = run.snaps[-1].of_process(key, "total")
        seen += fills > 8 * MIB
        tap.note("%-12s truth: read %d, moved %d; estimate %s" % (p["comm"], fills, moved, total))
        if total["status"] != "estimated" or total["value"] != 64 * misses["value"] or \
                abs(total["value"] - fills) > max(fills, MIB) / 20:
            bad.append((p["comm"], total, misses, fills))
        for name in ("llc_occupancy_bytes", "llc_residue_bytes", "mbm_local_bytes"):
            if p[name] != {"value": None, "status": "unavailable"}:
                made_up.append((p["comm"], name, p[name]))
    tap.ok(seen >= 3, "at least 3 loads read more than 8 MiB: %d" % seen)
    tap.ok(not bad, "total is estimated from misses, within 5 % of what was read", bad)
    tap.ok(not made_up, "values that need RDT are unavailable", made_up)
