#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Fits the table of mw_growth_calibrated_confidence(): for each amount of evidence, the share
of processes that leak. Uses only the tuning part of the corpora, at several times of each
trace. The share must not fall as the evidence grows (isotonic regression). Prints the counts
and the table for bpf/growth-verdict.h.

    calibrate.py --memwatchctl PROGRAM --split FILE --header bpf/growth-verdict.h DIRECTORY...

The script finds the evidence by looking up the printed confidence in the table that the
program was built with. So the header must be that of the program, and no two entries of its
table may be equal.
"""
import argparse
import concurrent.futures
import re
import sys

import marks
import score

LEVELS = 11         # evidence is 0 to 10
MOMENTS = 4


def table_of(header):
    with open(header, encoding="utf-8") as f:
        entries = re.search(r"table\[18\] = \{([^}]*)\}", f.read()).group(1)
    table = [int(entry) for entry in entries.split(",")][:LEVELS]
    if len(set(table)) != LEVELS:
        sys.exit(f"calibrate.py: two entries of {table} are equal")
    return table


def looks(truth, program, table):
    """[(evidence, whether it leaks then)] for all processes at several times of a trace."""
    seen = []
    for which in range(MOMENTS):
        when = marks.moment(truth, which)
        answer = score.replay_until(program, truth["csv"], when)
        seen += [(table.index(said), leaks) for said,
                 leaks in marks.confidences(truth, answer, when)]
    return seen


def isotonic(counts):
    """
    Isotonic regression. counts: [(leaks, all)] by evidence. Neighbours are merged until the
    share of leaks increases from each merged entry to the next. Returns a list of the same
    length, in which merged entries have the same, summed counts.
    """
    blocks = []
    for leaks, n in counts:
        blocks.append([leaks, n, 1])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last)]
    return [(leaks, n) for leaks, n, levels in blocks for _ in range(levels)]


def entries_of(blocks):
    """Percentages by the rule of succession, made different from each other."""
    table = [round(100 * (leaks + 1) / (n + 2)) for leaks, n in blocks]
    for i in range(1, LEVELS):
        table[i] = max(table[i], table[i - 1] + 1)
    return [min(entry, 100 - LEVELS + i) for i, entry in enumerate(table)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memwatchctl", required=True)
    parser.add_argument("--split", required=True)
    parser.add_argument("--header", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("directories", nargs="+")
    options = parser.parse_args()
    table, rules = table_of(options.header), score.load_split(options.split)
    truths = [t for t in score.load_truths(options.directories)
              if score.part_of(t["name"], rules) == "tuning" and marks.moment(t) is not None]
    counts = [[0, 0] for _ in range(LEVELS)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for seen in pool.map(lambda t: looks(t, options.memwatchctl, table), truths):
            for evidence, leaks in seen:
                counts[evidence][0] += leaks
                counts[evidence][1] += 1
    fitted = entries_of(isotonic(counts))
    print("evidence  leaks     of  was  fitted")
    for evidence, (leaks, n) in enumerate(counts):
        print(f"{evidence:8d} {leaks:6d} {n:6d} {table[evidence]:4d} {fitted[evidence]:7d}")
    print(", ".join(map(str, fitted + [fitted[-1]] * (18 - LEVELS))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
