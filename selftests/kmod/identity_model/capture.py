# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Writes the log of a simulated machine in the format of tracecap."""

import os
import struct

from . import trace

PAGE_SIZE = 4096
PAGE_HEADER = 16


def text_fields(kind):
    """The fields that are names; all others are numbers."""
    if kind in (trace.ALLOC, trace.FREE, trace.REXEC, trace.EXISTING, trace.NEWTASK):
        return ("comm",)
    return ("newcomm",) if kind == trace.RENAME else ()


def write_formats(directory):
    """Returns kind: (number, layout)."""
    layouts = {}
    for number, (name, (kind, fields)) in enumerate(trace.FIELDS.items(), 1000):
        lines = [f"name: {name.split('.')[1]}", f"ID: {number}", "format:",
                 "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;",
                 "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;",
                 "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;"]
        code, at = "<HHi", 8
        for field in fields:
            field = field.split("|")[0]
            if field in text_fields(kind):
                lines.append(f"\tfield:char {field}[16];\toffset:{at};\tsize:16;\tsigned:0;")
                code += "16s"
                at += 16
            else:
                lines.append(f"\tfield:u64 {field};\toffset:{at};\tsize:8;\tsigned:0;")
                code += "Q"
                at += 8
        layouts[kind] = (number, struct.Struct(code))
        with open(os.path.join(directory, "format." + name), "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
    return layouts


def make_pages(events, layouts):
    """The ring buffer pages of one CPU, as bytes."""
    pages, data, base, last = [], b"", None, 0

    def close_page():
        if data:
            header = struct.pack("<QQ", base, len(data))
            pages.append((header + data).ljust(PAGE_SIZE, b"\0"))

    for event in events:
        number, layout = layouts[event[3]]
        payload = layout.pack(number, 0, *event[4:-1])
        payload = payload.ljust((len(payload) + 3) // 4 * 4, b"\0")
        if base is None or len(data) + len(payload) + 20 > PAGE_SIZE - PAGE_HEADER:
            close_page()
            data, base, last = b"", event[0], event[0]
        delta = event[0] - last
        if delta >= 1 << 27:
            data += struct.pack("<II", 30 | (delta & (1 << 27) - 1) << 5, delta >> 27)
            delta = 0
        if len(payload) <= 112:
            data += struct.pack("<I", len(payload) // 4 | delta << 5) + payload
        else:
            data += struct.pack("<II", delta << 5, len(payload) + 4) + payload
        last = event[0]
    close_page()
    return b"".join(pages)


def write_capture(directory, machine, events):
    layouts = write_formats(directory)
    for cpu in range(len(machine.current)):
        with open(os.path.join(directory, f"cpu{cpu}.raw"), "wb") as out:
            out.write(make_pages([event for event in events if event[1] == cpu], layouts))
        with open(os.path.join(directory, f"cpu{cpu}.stats"), "w", encoding="utf-8") as out:
            out.write("entries: 0\noverrun: 0\ncommit overrun: 0\ndropped events: 0\n")
    with open(os.path.join(directory, "meta"), "w", encoding="utf-8") as out:
        out.write(f"page_size {PAGE_SIZE}\n")
    with open(os.path.join(directory, "tasks"), "wb") as out:
        for pid, tgid, ppid, flags, start, state, comm in machine.tasks:
            out.write(b"%d %d %d %d %d %s %s\n" % (pid, tgid, ppid, flags, start, state, comm))
