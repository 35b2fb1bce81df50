# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""A trace as columns of differences, which xz makes several times as small as the lines.

The first line has the times in ms. Each further line is a column of a process or of a cgroup: the
index of its first time, a number, comm, path of the cgroup, name of the column, and the values in
pages of 4 KiB, which is what the kernel counts in. Times and values are differences to the one
before; word*count is a word that is repeated. The number is 0 for a cgroup, or less for what comes
after a gap, and instead of the
process id another one for each process, because in a recording of hours ids are used again.
Columns that are empty or zero throughout are left out.
"""
import collections
import lzma

QUANTUM_KB = 4
COLUMNS = ("anon_kb", "file_kb", "shmem_kb", "swap_kb", "vsz_kb", "limit_kb", "kernel_kb",
           "slab_kb", "sock_kb", "pagetables_kb")
# These may follow. They are empty while they are not known, which is kept as -1.
TOUCH = ("gained_kb", "cold_kb", "cold_low_kb", "cold_high_kb", "untouched_s")
PLACES = (3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18)     # of these in a line of a trace
HEADER = ("time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb,cgroup,kernel_kb,"
          "slab_kb,sock_kb,pagetables_kb")


def quantum(name):
    return QUANTUM_KB if name.endswith("_kb") else 1


def shorten(values):
    """The differences of numbers, as text."""
    words, before = [], 0
    for value in values:
        if words and words[-1][0] == value - before:
            words[-1][1] += 1
        else:
            words.append([value - before, 1])
        before = value
    return " ".join(f"{word}*{count}" if count > 1 else str(word) for word, count in words)


def restore(text):
    """The numbers that shorten() made a text of."""
    total = 0
    for word in text.split():
        step, _, count = word.partition("*")
        for _ in range(int(count or 1)):
            total += int(step)
            yield total


class Stretch:
    """A cgroup, or a process from its first sample to its last one."""

    def __init__(self, comm, path, at):
        self.comm, self.path, self.at = comm, path, at
        self.rows = []
        self.names = COLUMNS

    def share_room(self):
        """Keeps what is left in the place of the limit: without a limit of its own, it is that of
        the machine, and the same for all processes, which xz makes small."""
        self.names = tuple("room_kb" if name == "limit_kb" else name for name in COLUMNS)
        for row in self.rows:
            if row[5]:
                row[5] = str(max(0, int(row[5]) - int(row[0]) - int(row[2])))

    def columns(self):
        if len(self.rows[0]) > len(COLUMNS):
            self.share_room()
        for name, column in zip(self.names, zip(*self.rows)):
            if "" not in column and any(value != "0" for value in column):
                yield name, [round(int(value) / QUANTUM_KB) for value in column]
        for name, column in zip(TOUCH, list(zip(*self.rows))[len(COLUMNS):]):
            if any(column):
                yield name, [round(int(value) / quantum(name)) if value else -1
                             for value in column]


def read_trace(source):
    """The times of a CSV trace, and its stretches in the order in which they begin. A last line
    that was cut, because the recorder was killed, is left out."""
    times, stretches, last = [], [], {}
    with open(source, encoding="utf-8") as file:
        next(file)
        for line in file:
            if not line.endswith("\n"):
                break
            fields = line[:-1].split(",")
            if not times or times[-1] != fields[0]:
                times.append(fields[0])
            key = (fields[1], fields[2], fields[9])
            stretch = last.get(key)
            if stretch is None or stretch.at + len(stretch.rows) != len(times) - 1:
                stretch = last[key] = Stretch(fields[2], fields[9], len(times) - 1)
                stretch.is_group = fields[1] == "0"
                stretches.append(stretch)
            stretch.rows.append([fields[place] for place in PLACES if place < len(fields)])
    return times, stretches


def pack(source, target):
    """Packs a CSV trace; returns the time of its last sample, None if it has none."""
    times, stretches = read_trace(source)
    if not times:
        return None
    with lzma.open(target, "wt", preset=9 | lzma.PRESET_EXTREME) as file:
        file.write(shorten(round(float(t) * 1000) for t in times) + "\n")
        groups = collections.Counter()
        for number, stretch in enumerate(sorted(stretches, key=lambda s: s.path), 1):
            if stretch.is_group:
                number = -groups[stretch.path]
                groups[stretch.path] += 1
            for name, values in stretch.columns():
                file.write(f"{stretch.at},{number},{stretch.comm},{stretch.path},{name},"
                           f"{shorten(values)}\n")
    return float(times[-1])


def unpack(source):
    """The times in seconds, and {(number, comm, path): (index of the first time,
    {column: values in KB})}."""
    series = {}
    with lzma.open(source, "rt") as file:
        times = [ms / 1000 for ms in restore(next(file))]
        for line in file:
            at, number, comm, path, name, text = line.rstrip("\n").split(",")
            first, columns = series.setdefault((int(number), comm, path), (int(at), {}))
            columns[name] = [None if value < 0 and name in TOUCH else value * quantum(name)
                             for value in restore(text)]
            if first != int(at):
                raise ValueError(f"{path}: a process has two beginnings")
    for _, columns in series.values():
        if "room_kb" in columns:
            columns["limit_kb"] = [sum(kb) for kb in zip(*(
                columns[name] for name in ("room_kb", "anon_kb", "shmem_kb") if name in columns))]
    return times, series


def touch_cells(columns, i):
    return [""] * len(TOUCH) if "gained_kb" not in columns or columns["gained_kb"][i] is None \
        else [str(columns[name][i]) if name in columns else "0" for name in TOUCH]


def trace(times, series):
    """The lines of the trace, in which the memory of processes is before that of cgroups."""
    rows = [[] for _ in times]
    touch = any("gained_kb" in columns for _, columns in series.values())
    for (number, comm, path), (at, columns) in sorted(series.items(), key=lambda s: s[0][0] <= 0):
        kb = [columns.get(name) for name in COLUMNS]
        empty = ["0"] * 6 + ["" if number else "0"] + [""] * 3
        length = max(map(len, columns.values()))
        for i in range(length):
            cells = [str(c[i]) if c else none for c, none in zip(kb, empty)]
            cells += touch_cells(columns, i) if touch else []
            rows[at + i].append(f"{max(0, number)},{comm},{','.join(cells[:6])},{path},"
                                f"{','.join(cells[6:])}\n")
    yield ",".join((HEADER,) + (TOUCH if touch else ())) + "\n"
    for when, lines in zip(times, rows):
        for line in lines:
            yield f"{when:.3f},{line}"
