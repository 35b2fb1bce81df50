# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Reads what tracecap wrote: raw ring buffer pages and event formats.

Yields events of all CPUs in the order of time, as plain tuples

    (ts, cpu, prev_ts, kind, pid, ..., level)

where pid is that of the current task, and level is the context: 0 is a task, 1 a soft
interrupt, 2 an interrupt, 3 an NMI. prev_ts is the time of the last event on the same CPU,
not counting events of contexts that have interrupted this one. The values between pid and
level depend on kind, see FIELDS.

The reader does not judge anything. It raises Invalid if the capture is incomplete, because
missing events would make a verdict meaningless.
"""

import heapq
import os
import re
import struct

(SWITCH, NEWTASK, FORK, EXEC, EXIT, TASKFREE, RENAME, MSR, ALLOC, EXISTING, REXEC, FREE, TICK,
 MWSWITCH, DUMP_BEGIN, DUMP_END, CPU_STATE, PASS_BEGIN, PASS_END) = range(19)

RMID_FIELDS = ("time_ns", "rmid", "generation", "tgid", "parent_tgid", "start_time_ns",
               "alloc_time_ns", "uid", "reason", "comm")
# Positions of the RMID_FIELDS in an event tuple.
(R_TIME, R_RMID, R_GEN, R_TGID, R_PARENT, R_START, R_ALLOC, R_UID, R_REASON,
 R_COMM) = range(5, 15)
DUMP_FIELDS = ("time_ns", "sequence", "count", "unmeasured")

FIELDS = {
    "sched.sched_switch": (SWITCH, ("prev_pid", "prev_state", "next_pid")),
    "task.task_newtask": (NEWTASK, ("pid", "clone_flags", "comm")),
    "sched.sched_process_fork": (FORK, ("parent_pid", "child_pid")),
    "sched.sched_process_exec": (EXEC, ("pid", "old_pid")),
    "sched.sched_process_exit": (EXIT, ("pid",)),
    "sched.sched_process_free": (TASKFREE, ("pid",)),
    # A kernel whose event has no field pid means the current task.
    "task.task_rename": (RENAME, ("pid|common_pid", "newcomm")),
    "msr.write_msr": (MSR, ("msr", "val")),
    "memwatch.memwatch_rmid_alloc": (ALLOC, RMID_FIELDS),
    "memwatch.memwatch_rmid_existing": (EXISTING, RMID_FIELDS),
    "memwatch.memwatch_rmid_exec": (REXEC, RMID_FIELDS),
    "memwatch.memwatch_rmid_free": (FREE, RMID_FIELDS),
    "memwatch.memwatch_tick": (TICK, ("now_ns", "expected_ns", "period_ns", "overruns", "owner")),
    "memwatch.memwatch_switch": (MWSWITCH, ("now_ns", "prev_owner", "next_owner", "next_pid")),
    "memwatch.memwatch_dump_begin": (DUMP_BEGIN, DUMP_FIELDS),
    "memwatch.memwatch_dump_end": (DUMP_END, DUMP_FIELDS),
    "memwatch.memwatch_cpu_state": (CPU_STATE, ("time_ns", "state", "since_ns")),
    "memwatch_pass.begin": (PASS_BEGIN, ()),
    "memwatch_pass.end": (PASS_END, ()),
}

CODES = {(1, 0): "B", (1, 1): "b", (2, 0): "H", (2, 1): "h",
         (4, 0): "I", (4, 1): "i", (8, 0): "Q", (8, 1): "q"}

# common_flags to level: TRACE_FLAG_HARDIRQ, _SOFTIRQ, _NMI.
LEVEL = [3 if flags & 0x40 else 2 if flags & 0x08 else 1 if flags & 0x10 else 0
         for flags in range(256)]

MISSED_EVENTS = 1 << 31
MISSED_STORED = 1 << 30


class Invalid(Exception):
    """The capture cannot be judged."""


class Format:
    """The layout of one event, as a struct that unpacks the fields that are needed."""

    FIELD = re.compile(r"field:(.*?)([A-Za-z_0-9]+)(\[[^\]]*\])?;\s*offset:(\d+);\s*size:(\d+);"
                       r"(?:\s*signed:(\d);)?")

    def __init__(self, name, text):
        self.kind, wanted = FIELDS[name]
        self.id = int(re.search(r"^ID: (\d+)", text, re.M).group(1))
        fields = {}
        for match in self.FIELD.finditer(text):
            kind, field, array, offset, size, signed = match.groups()
            fields[field] = (kind, array, int(offset), int(size), int(signed or 0))
        self.parts = [self.part(name, fields, "common_pid")]
        self.parts += [self.part(name, fields, field) for field in wanted]
        self.parts.append(self.part(name, fields, "common_flags"))
        # The struct unpacks in the order of the offsets; self.order restores that of FIELDS.
        order = sorted(range(len(self.parts)), key=lambda i: self.parts[i][0])
        code, at = "<", 0
        for i in order:
            offset, size, letter, _ = self.parts[i]
            if offset < at:
                raise Invalid(f"{name}: overlapping fields")
            code += f"{offset - at}x{letter}"
            at = offset + size
        self.struct = struct.Struct(code)
        self.order = [order.index(i) for i in range(len(order))]
        self.text = tuple(i for i, part in enumerate(self.parts) if part[3] == "text")
        self.dynamic = tuple(i for i, part in enumerate(self.parts) if part[3] == "dynamic")

    @staticmethod
    def part(name, fields, wanted):
        for field in wanted.split("|"):
            if field in fields:
                break
        else:
            raise Invalid(f"{name} has no field {wanted}")
        kind, array, offset, size, signed = fields[field]
        if "__data_loc" in kind:
            return (offset, 4, "I", "dynamic")
        if array:
            return (offset, size, f"{size}s", "text")
        return (offset, size, CODES[(size, signed)], "number")

    def read(self, page, at):
        values = self.struct.unpack_from(page, at)
        values = [values[i] for i in self.order]
        values[-1] = LEVEL[values[-1]]
        for i in self.text:
            values[i] = values[i].split(b"\0", 1)[0]
        for i in self.dynamic:
            begin = at + (values[i] & 0xffff)
            values[i] = page[begin:begin + (values[i] >> 16)].split(b"\0", 1)[0]
        return values


def read_formats(directory):
    formats = {}
    for name in FIELDS:
        path = os.path.join(directory, "format." + name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as stream:
                parsed = Format(name, stream.read())
            formats[parsed.id] = parsed
    return formats


def read_meta(directory):
    with open(os.path.join(directory, "meta"), encoding="utf-8") as stream:
        return dict(line.split(None, 1) for line in stream)


def list_cpus(directory):
    found = [re.fullmatch(r"cpu(\d+)\.raw", name) for name in os.listdir(directory)]
    return sorted(int(match.group(1)) for match in found if match)


def check_loss(directory):
    """Raise Invalid if the counters of a ring say that it has lost events."""
    for cpu in list_cpus(directory):
        with open(os.path.join(directory, f"cpu{cpu}.stats"), encoding="utf-8") as stream:
            for line in stream:
                key, value = line.rsplit(":", 1)
                if key in ("overrun", "commit overrun", "dropped events") and int(value):
                    raise Invalid(f"CPU {cpu} lost events: {key} is {value.strip()}")


def read_pages(stream, cpu, page_size, formats):
    """Events of one CPU, in order."""
    ts = 0
    last = [0, 0, 0, 0]
    get_header = struct.Struct("<QQ").unpack_from
    get_word = struct.Struct("<I").unpack_from
    get_type = struct.Struct("<H").unpack_from
    while True:
        page = stream.read(page_size)
        if not page:
            return
        if len(page) < page_size:
            raise Invalid(f"CPU {cpu}: the last page is cut short")
        ts, commit = get_header(page, 0)
        if commit & (MISSED_EVENTS | MISSED_STORED):
            raise Invalid(f"CPU {cpu} lost events before {ts}")
        at, end = 16, 16 + (commit & 0xfffff)
        if end > page_size:
            raise Invalid(f"CPU {cpu}: a page claims {end} bytes")
        while at < end:
            word, = get_word(page, at)
            length = word & 31
            delta = word >> 5
            at += 4
            if length <= 28:
                ts += delta
                if length:
                    size = length * 4
                    data = at
                else:
                    size, = get_word(page, at)
                    data = at + 4
                layout = formats.get(get_type(page, data)[0])
                if layout is not None:
                    values = layout.read(page, data)
                    level = values[-1]
                    yield (ts, cpu, last[level], layout.kind, *values)
                    # Contexts that interrupt this one have this event before theirs, too.
                    for i in range(level, 4):
                        last[i] = ts
                at += size
            elif length == 29:
                if not delta:
                    break
                at += get_word(page, at)[0]
                ts += delta
            elif length == 30:
                ts += delta + (get_word(page, at)[0] << 27)
                at += 4
            else:
                # An absolute time of 59 bits; the page's time has the other bits.
                low = delta + (get_word(page, at)[0] << 27)
                ts = low | ts & ~((1 << 59) - 1)
                at += 4


def read_tasks(directory):
    """(pid, tgid, ppid, flags, start_ticks, state, comm) of each task at the start."""
    tasks = []
    with open(os.path.join(directory, "tasks"), "rb") as stream:
        for line in stream:
            words = line.rstrip(b"\n").split(b" ", 6)
            if len(words) == 7:
                tasks.append(tuple(int(word) for word in words[:5]) + (words[5], words[6]))
    return tasks


def read_events(directory, need=()):
    """All events in the order of time. need: names of events that the capture must have."""
    for name in need:
        if not os.path.exists(os.path.join(directory, "format." + name)):
            raise Invalid(f"the capture has no event {name}")
    check_loss(directory)
    formats = read_formats(directory)
    page_size = int(read_meta(directory)["page_size"])
    streams = []
    for cpu in list_cpus(directory):
        # Closed when the generators end that hold them.
        stream = open(os.path.join(directory, f"cpu{cpu}.raw"), "rb", buffering=1 << 20)
        streams.append(read_pages(stream, cpu, page_size, formats))
    if not streams:
        raise Invalid("the capture has no CPU")
    return heapq.merge(*streams)
