#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Runs every command on names that attack a terminal, a log, a spreadsheet or a shell.

usage: hostile.py [PART...], for example hostile.py check_dump; cli/tests/run sets what it needs

A cell is one name in one place of one command in one format. It is good if the output has
no hidden character, has as many lines as with a harmless name, and has the name where it
belongs: escaped in tables, messages and CSV, and as itself when JSON is decoded. What is
expected is computed here from Python's tables of Unicode, not from the command. Prints one
line for each command and format.

CTL and GENERATE name the two programs; the working directory is filled with files.
"""
import csv
import io
import json
import os
import re
import socket
import subprocess
import sys
import threading
import unicodedata

import terminal

NAMES = [
    b"plain", b"\x1b]0;owned\x07", b"\x1b]52;c;cm0=\x07", b"\x1b[2J\x1b[H", b"\x1b[31mred",
    b"x\nALERT sshd", b"over\rwrite", b"bell\x07", b"abc\x08\x08\x08", b"del\x7f",
    "nel\u0085x".encode(), "csi\u009b2J".encode(), "rlo\u202etxt".encode(),
    "lri\u2066x".encode(), "zero\u200bwidth".encode(), "\ufeffbom".encode(),
    "line\u2028x".encode(), "soft\u00adx".encode(), "tag\U000e0041".encode(), b"\xff\xfe",
    b"over\xc0\xaflong", b"half\xe2\x80", b"\xed\xa0\x80", b"=cmd|'/c x'!A1", b"+1", b"-1+1",
    b"@SUM(1)", b" =1", "\uff1d1".encode(), b"'quoted", b"a,b", b'say "x"', b"back\\slash",
    b"\\x1b", b"tab\tx", b"--help", b"-f/etc/hostname", b"", b"   ", b"%s%n%d",
    b"$(id)`id`;id", "gr\u00fc\u00df \u6f22\u5b57".encode(),
]
COMM_BYTES = 15
SPACES = (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0)

CTL = os.environ["CTL"]
GENERATE = os.environ["GENERATE"]
HOOKS = os.environ["HOOKS"]
cells = {}
bad = []


def is_hidden(c):
    """Whether a character must not be in an output: see text/escape.h."""
    n = ord(c)
    return (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") or n in SPACES
            or 0x180B <= n <= 0x180F or 0xFE00 <= n <= 0xFE0F or 0xE0000 <= n <= 0xE0FFF
            or 0x2060 <= n <= 0x206F or 0xFFF0 <= n <= 0xFFF8
            or 0x13430 <= n <= 0x1343F)


def shown(name, ascii_only=False):
    """The name as a terminal and CSV show it."""
    out = ""
    for c in name.decode("utf-8", "surrogateescape"):
        n = ord(c)
        if 0xDC80 <= n <= 0xDCFF:
            out += "\\x%02x" % (n - 0xDC00)
        elif c == "\\":
            out += "\\\\"
        elif is_hidden(c) or (ascii_only and n >= 0x80):
            out += "\\x%02x" % n if n < 0x80 else "\\u%04x" % n if n < 0x10000 else "\\U%08x" % n
        else:
            out += c
    return out


def decoded(name):
    """The string that JSON must decode to."""
    return "".join("\ufffd" if 0xDC80 <= ord(c) <= 0xDCFF else c
                   for c in name.decode("utf-8", "surrogateescape"))


def original(text):
    """The bytes of a CSV field, by the rules of memwatchctl-export(8)."""
    text = text[1:] if text.startswith("'") else text
    parts = re.split(r"(\\\\|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})", text)
    out = b""
    for part in parts:
        if part == "\\\\":
            out += b"\\"
        elif part.startswith("\\x"):
            out += bytes([int(part[2:], 16)])
        elif part.startswith("\\"):
            out += chr(int(part[2:], 16)).encode()
        else:
            out += part.encode()
    return out


def is_formula(text):
    return text.lstrip(" ")[:1] in tuple("=+-@\t\r\uff0b\uff0d\uff1d\uff20") and text.strip() != ""


def width(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def run(*args, locale="C.UTF-8"):
    env = dict(os.environ, LC_ALL=locale)
    try:
        r = subprocess.run([CTL, *args], capture_output=True, env=env, timeout=60)
    except subprocess.TimeoutExpired:
        bad.append(f"{args}: has not ended after a minute")
        return b"", b""
    if r.returncode not in (0, 1, 2, 3, 4):
        bad.append(f"{args}: exit {r.returncode}: {r.stderr[:300]}")
    return r.stdout, r.stderr


def is_clean(data):
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not any(is_hidden(c) and c != "\n" for c in text)


def cell(command, form, name, good):
    total = cells.setdefault((command, form), [0, 0])
    total[0] += 1
    total[1] += bool(good)
    if not good:
        bad.append(f"{command} {form}: {name!r}")


def text_cell(command, name, data, lines, where=shown):
    """A name somewhere in a text whose number of lines is known."""
    cell(command, "text", name, is_clean(data) and where(name) in data.decode()
         and data.count(b"\n") == lines)


def groups(limit):
    """All names but the empty one, several in one text of at most @limit bytes."""
    group = []
    for name in filter(None, NAMES):
        if group and len(b"|".join(group + [name])) > limit:
            yield group
            group = []
        group.append(name)
    yield group


def group_cells(command, form, group, good, data, show=shown):
    """A text of several names, all of which must be in the output in this order."""
    text = data.decode("utf-8", "replace")
    good = good and is_clean(data) and show(b"|".join(group)) in text
    for name in group:
        cell(command, form, name, good)


def column_of(line, word):
    return width(line[:line.index(word)])


def at_column(line, column):
    """The rest of the line from a column of the screen on; None if no character begins there."""
    for i in range(len(line) + 1):
        if width(line[:i]) == column:
            return line[i:]
    return None


def table_cells(command, data, pids, harmless, after):
    """A table with PID, COMMAND and perhaps a column @after it, which must stay aligned."""
    lines = data.decode("utf-8", "replace").split("\n")
    same = data.count(b"\n") == harmless.count(b"\n")
    head = next(line for line in lines if "COMMAND" in line)
    for pid, name in pids.items():
        rows = [line for line in lines if str(pid) in line.split()[:3]]
        good = same and len(rows) == 1 and is_clean(rows[0].encode())
        cell_text = good and at_column(rows[0], column_of(head, "COMMAND"))
        good = good and (cell_text or "").startswith(shown(name))
        if good and after:
            rest = at_column(rows[0], column_of(head, after))
            good = rest is not None and rest[:1] not in ("", " ") and (
                at_column(rows[0], column_of(head, after) - 1)[:1] == " ")
        cell(command, "table", name, good)


def csv_rows(data):
    return list(csv.DictReader(io.StringIO(data.decode("utf-8", "replace"), newline="")))


def csv_cells(command, data, pids, key="tgid"):
    rows = csv_rows(data)
    whole = is_clean(data) and all(None not in r and None not in r.values() for r in rows)
    for pid, name in pids.items():
        texts = [r["comm"] for r in rows if r.get(key) == str(pid)]
        cell(command, "csv", name, whole and texts and all(
            original(t) == name and not is_formula(t) for t in texts))


def json_cells(command, data, pids, find, key="tgid"):
    try:
        rows = find(json.loads(data.decode("utf-8")))
    except (ValueError, KeyError):
        rows = []
    for pid, name in pids.items():
        texts = [r["comm"] for r in rows if r.get(key) == pid]
        cell(command, "json", name, is_clean(data) and texts and all(
            t == decoded(name) for t in texts))


def comm(name):
    return name[:COMM_BYTES]


def octal(name):
    return b"".join(b"\\%03o" % b if b in b"\\ \n\t" or b < 32 else bytes([b]) for b in name)


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def generate(path, *names):
    subprocess.run([GENERATE, "named", path, *names], check=True)


# ------------------------------------------------------------------ names of processes

def check_recording():
    """All names as processes of one recording, and the same number of harmless ones."""
    pids = {2000 + i: comm(n) for i, n in enumerate(NAMES)}
    generate("all.mwr", *NAMES)
    generate("none.mwr", *[b"p%d" % i for i in range(len(NAMES))])
    report = ("report", "all.mwr", "-q", "--format")
    table_cells("report", run(*report, "table")[0], pids, run("report", "none.mwr", "-q")[0],
                "RMID")
    csv_cells("report", run(*report, "csv")[0], pids)
    json_cells("report", run(*report, "json")[0], pids, lambda d: d["processes"])
    by = ("report", "all.mwr", "--by", "rmid", "--format")
    csv_cells("report --by rmid", run(*by, "csv")[0], pids)
    json_cells("report --by rmid", run(*by, "json")[0], pids, lambda d: d["rmids"])
    csv_cells("export", run("export", "all.mwr", "--to", "csv")[0], pids)
    json_cells("export", run("export", "all.mwr", "--to", "json")[0], pids, lambda d: d["records"])
    top = ("top", "--replay", "all.mwr", "-q", "--format")
    table_cells("top --replay", run(*top, "table")[0], pids,
                run("top", "--replay", "none.mwr", "-q")[0], None)
    csv_cells("top --replay", run(*top, "csv")[0], pids)
    json_cells("top --replay", run(*top, "json")[0], pids,
               lambda d: d["intervals"][0]["processes"])


def screen(*args):
    """What a command writes to a large terminal, without the sequences of the screen library."""
    _, out = terminal.run([CTL, *args], "xterm", lines=100, columns=250)
    plain = re.sub(rb"\x1b(\[[0-9;?]*[a-zA-Z]|[()][A-Z0-9]|[=>78])|[\r\x08\x0f]", b"", out)
    return out, plain


def check_screen():
    pids = [comm(n) for n in NAMES]
    generate("screen.mwr", *reversed(NAMES))
    out, plain = screen("top", "--replay", "screen.mwr", "-n", "1", "--delay", "50ms")
    for name in pids:
        cell("top, full screen", "text", name, is_clean(plain) and shown(name).encode() in plain
             and (is_clean(name) or name not in out))


def write_trace(path, names):
    rows = [b"time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb"]
    for t in range(0, 2921, 20):
        for pid, name in names.items():
            rows.append(b'%d,%d,"%s",%d,20000,0,0,500000,400000' % (
                t, pid, name.replace(b'"', b'""'), 100000 + 100 * t))
    put(path, b"\n".join(rows) + b"\n")


def check_trace():
    """A line of a trace is a sample, so a name in it has no newline."""
    pids = {10 + i: n for i, n in enumerate(NAMES) if b"\n" not in n}
    write_trace("./all.csv", pids)
    write_trace("./none.csv", {pid: b"p%d" % pid for pid in pids})
    harmless = run("growth", "replay", "none.csv")[0]
    out = run("growth", "replay", "all.csv")[0]
    table_cells("growth replay", out, pids, harmless, "VERDICT")
    for pid, name in pids.items():
        text_cell("growth replay, sentence", name, out, harmless.count(b"\n"),
                  lambda n: f"\nprocess {shown(n)} ({pid}): memory grew")
    csv_cells("growth replay", run("--format", "csv", "growth", "replay", "all.csv")[0], pids,
              "pid")
    json_cells("growth replay", run("--format", "json", "growth", "replay", "all.csv")[0], pids,
               lambda d: d["processes"], "pid")


# ------------------------------------------------------------------ files of the kernel

def copy_root(name):
    subprocess.run(["cp", "-r", os.environ["DATA"] + "/ready", name], check=True)


def check_dump():
    lines = [b"# rmid generation tgid parent_tgid start_time_ns alloc_time_ns cgroup_id uid comm"]
    pids = {3000 + i: comm(n) for i, n in enumerate(NAMES) if n}
    groups = {}
    copy_root("dump")
    for i, (pid, name) in enumerate(pids.items()):
        path = b"dump/sys/fs/cgroup/" + NAMES[pid - 3000].replace(b"/", b"%") + b"%d" % i
        os.makedirs(path)
        groups[pid] = path[len("dump/sys/fs/cgroup"):]
        lines.append(b"\t".join([b"%d" % (i + 1), b"1", b"%d" % pid, b"0", b"1", b"1",
                                 b"%d" % os.stat(path).st_ino, b"0", octal(name)]))
    put("dump/proc/memwatch/rmids", b"\n".join(lines + [b"# end %d" % len(pids)]) + b"\n")
    dump = ("--root", "dump", "dump", "--format")
    table = run(*dump, "table")[0]
    table_cells("dump", table, pids, b"\n" * (len(pids) + 1), None)
    csv_cells("dump", run(*dump, "csv")[0], pids)
    json_cells("dump", run(*dump, "json")[0], pids, lambda d: d["rmids"])
    rows = csv_rows(run(*dump, "csv")[0])
    answer = json.loads(run(*dump, "json")[0].decode("utf-8", "replace"))["rmids"]
    for pid, group in groups.items():
        cell("dump, cgroup", "table", group, is_clean(table) and shown(group) in table.decode())
        cell("dump, cgroup", "csv", group,
             [original(r["cgroup"]) for r in rows if r["tgid"] == str(pid)] == [group])
        cell("dump, cgroup", "json", group,
             [r["cgroup"] for r in answer if r["tgid"] == pid] == [decoded(group)])


def one_line(text):
    """Lines of the kernel have no newline in a value."""
    return text.replace(b"\n", b"\x1b")


def check_status():
    pids = {3000 + i: comm(n) for i, n in enumerate(NAMES)}
    waiting = b"".join(b"waiting: %d %s\n" % (pid, octal(n)) for pid, n in pids.items())
    for i, group in enumerate(groups(200)):
        root = f"status{i}"
        line = one_line(b"|".join(group))
        copy_root(root)
        with open(f"{root}/proc/memwatch/status", "rb") as file:
            text = file.read()
        text = re.sub(rb"^(backend_reason): .*$", lambda m: m[1] + b": " + line, text, flags=re.M)
        text = re.sub(rb"^(backend|policy|version): .*$", lambda m: m[1] + b": " + line[:31], text,
                      flags=re.M)
        text = re.sub(rb"^waiting: .*\n", b"", text, flags=re.M) + waiting
        put(f"{root}/proc/memwatch/status", text)
        status = ("--root", root, "--format")
        out = run(*status, "table", "status")[0]
        group_cells("status", "table", group, out.decode("utf-8", "replace").count(
            shown(line[:31])) >= 3, out, lambda _: shown(line))
        for pid, name in pids.items() if not i else ():
            cell("status, waiting", "table", name, re.search(
                rf"(?m)^ *{pid} {re.escape(shown(name))} *$", out.decode("utf-8", "replace")))
        out = run(*status, "csv", "status")[0]
        rows = csv_rows(out)
        group_cells("status", "csv", group, len(rows) == 1 and original(
            rows[0]["backend_reason"]) == line and not is_formula(rows[0]["backend"]), out,
                    lambda _: "")
        out = run(*status, "json", "status")[0]
        answer = json.loads(out.decode("utf-8", "replace"))
        group_cells("status", "json", group, answer["backend_reason"] == decoded(line), out,
                    lambda _: "")
        for pid, name in pids.items() if not i else ():
            cell("status, waiting", "json", name, [decoded(name)] == [
                w["comm"] for w in answer["waiting"] if w["tgid"] == pid])


def check_doctor():
    for i, group in enumerate(groups(50)):
        root = f"doctor{i}"
        line = one_line(b"|".join(group))
        copy_root(root)
        put(f"{root}/proc/sys/kernel/osrelease", b"6.1.0-" + line + b"\n")
        put(f"{root}/sys/module/memwatch/version", line + b"\n")
        doctor = ("--root", root, "--format")
        out = run(*doctor, "table", "doctor")[0]
        lines = out.count(b"\n") if not i else lines
        group_cells("doctor", "table", group, out.count(b"\n") == lines and out.decode(
            "utf-8", "replace").count(shown(line)) >= 2, out, lambda _: shown(line))
        out = run(*doctor, "csv", "doctor")[0]
        rows = csv_rows(out)
        group_cells("doctor", "csv", group, any(line in original(r["found"]) for r in rows), out,
                    lambda _: "")
        out = run(*doctor, "json", "doctor")[0]
        checks = json.loads(out.decode("utf-8", "replace"))["checks"]
        group_cells("doctor", "json", group, any(decoded(line) in c["found"] for c in checks), out,
                    lambda _: "")


# ------------------------------------------------------------------ machines and files

def check_machine():
    """The head of a recording: host name, kernel, backend and reasons; and its file name."""
    lines = {}
    for i, group in enumerate(groups(50)):
        name = b"|".join(group)
        path = b"./machine%d/" % i + name
        os.makedirs(os.path.dirname(path))
        generate(path, name)
        for command in (("report",), ("top", "--replay")):
            title = "%s, machine" % command[0]
            out = run(*command, path)[0]
            known = lines.setdefault(command, out.count(b"\n"))
            group_cells(title, "text", group, out.count(b"\n") == known, out)
            if command == ("report",):
                group_cells("report, file name", "text", group, True, out, lambda _: shown(path))
            out = run("--format", "json", *command, path)[0]
            answer = json.loads(out.decode("utf-8", "replace"))
            heads = {answer["recording"][key]
                     for key in ("hostname", "kernel", "backend", "backend_reason")}
            group_cells(title, "json", group, heads == {decoded(name)} and decoded(name) in [
                a["reason"] for a in answer["unavailable"]], out, lambda _: "")
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) - 30)
        error = run("report", path)[1]
        group_cells("report, damaged file", "text", group, error.count(b"\n") == 1, error)


# ------------------------------------------------------------------ arguments in messages

MESSAGES = {
    "report FILE": lambda n: ("report", "--", n),
    "report --by": lambda n: ("report", "x", "--by", n),
    "report --from": lambda n: ("report", "x", "--from", n),
    "report --top": lambda n: ("report", "x", "--top", n),
    "report --OPTION": lambda n: ("report", "x", b"--" + n),
    "report extra": lambda n: ("report", "x", "--", n),
    "export FILE": lambda n: ("export", "--to", "csv", "--", n),
    "export -o": lambda n: ("export", "all.mwr", "--to", "csv", "-o", b"no/such/" + n),
    "top --replay": lambda n: ("top", "--replay", n),
    "growth SUBCOMMAND": lambda n: ("growth", b"x" + n),
    "growth replay FILE": lambda n: ("growth", "replay", "--", n),
    "growth replay, damaged": lambda n: ("growth", "replay", b"./damaged/" + n),
    "growth watch --pid": lambda n: ("growth", "watch", "--pid", n),
    "record -o": lambda n: ("record", "--backend", "module", "-o", b"./damaged/" + n, "-d", "1"),
    "config KEY": lambda n: ("config", b"x" + n.replace(b"=", b"")),
    "config policy=": lambda n: ("config", b"policy=" + n),
    "config filter=": lambda n: ("config", b"filter=" + n),
    "config filter=cgroup:": lambda n: ("config", b"filter=cgroup:/" + n),
    "completion SHELL": lambda n: ("completion", "--", n),
    "COMMAND": lambda n: (b"x" + n,),
    "--root": lambda n: ("--root", n, "status"),
    "--format": lambda n: ("--format", n, "status"),
}


def check_messages():
    for group in groups(200):
        name = b"|".join(group)
        put(b"./damaged/" + name, b"text\n")
        for command, arguments in MESSAGES.items():
            known = run(*arguments(b"plain"))[1].count(b"\n")
            error = run(*arguments(name))[1]
            show = shown if command != "config KEY" else lambda n: shown(n.replace(b"=", b""))
            group_cells(command, "text", group, error.count(b"\n") == known, error, show)


# ------------------------------------------------------------------ hooks of growth watch

# With "--" as the manual says, and without it, as a careless administrator writes it.
LOGGER = '''logger --socket log -t memwatch -- "$MEMWATCH_SENTENCE"
logger --socket log -t memwatch "$MEMWATCH_SENTENCE"
printf '%s\\0' "$MEMWATCH_PID" "$MEMWATCH_COMM" "$MEMWATCH_SENTENCE" >>values'''


def receive(log, lines):
    """Reads what logger(1) sends, until "end" comes."""
    while (line := log.recv(4096)) != b"end":
        lines.append(line.decode("utf-8", "replace"))


def run_hooks(names):
    """One alert for each name. Returns what logger(1) sent."""
    lines = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind("log")
        reader = threading.Thread(target=receive, args=(log, lines), daemon=True)
        reader.start()
        subprocess.run([HOOKS, LOGGER, str(len(names)), str(len(names)), *names], check=True,
                       capture_output=True)
        log.sendto(b"end", "log")
        reader.join()
    os.unlink("log")
    return lines


def check_hooks():
    for begin in range(0, len(NAMES), 20):
        part = NAMES[begin:begin + 20]
        put("./values", b"")
        log = run_hooks(part)
        with open("values", "rb") as file:
            values = file.read().split(b"\0")
        seen = {int(values[i]): values[i + 1:i + 3] for i in range(0, len(values) - 1, 3)}
        for i, name in enumerate(map(comm, part)):
            sentence = f"process {shown(name)} ({2000 + i}): memory grew"
            cell("hook, environment", "text", name, seen.get(2000 + i) == [
                shown(name).encode(), sentence.encode()])
            sent = [line for line in log if line.endswith(f" memwatch: {sentence}")]
            cell("hook, logger", "text", name, len(sent) == 2)


# ------------------------------------------------------------------ all of Unicode

def check_unicode():
    """Each character, in a message. Unassigned ones may be shown or escaped."""
    codes = [n for n in range(1, 0x110000) if not 0xD800 <= n <= 0xDFFF]
    for begin in range(0, len(codes), 30000):
        part = "".join(map(chr, codes[begin:begin + 30000]))
        for locale in ("C.UTF-8", "C"):
            text = run("completion", "x" + part, locale=locale)[1]
            first = text.split(b"\n")[0]
            good = is_clean(text) and text.count(b"\n") == 2 and (
                locale != "C" or text.isascii()) and original(
                    first.decode().split("'", 1)[1][:-1]) == b"x" + part.encode()
            cell("every character, locale " + locale, "text", hex(codes[begin]), good)
    generate("ascii.mwr", *NAMES)
    out = run("report", "ascii.mwr", locale="C")[0]
    for name in map(comm, NAMES):
        cell("report, locale C", "text", name,
             out.isascii() and is_clean(out) and shown(name, True) in out.decode())
    for shell in ("bash", "zsh", "fish", "list"):
        out = run("completion", shell)[0]
        cell("completion", shell, b"", is_clean(out.replace(b"\t", b"")))


def main():
    parts = [check_recording, check_screen, check_trace, check_dump, check_status, check_doctor,
             check_machine, check_messages, check_hooks, check_unicode]
    for part in parts:
        if not sys.argv[1:] or part.__name__ in sys.argv[1:]:
            part()
    failed = 0
    for (command, form), (total, good) in cells.items():
        failed += total - good
        print(f"{command}, {form}: " + (f"{total} good" if good == total
                                        else f"{total - good} of {total} BAD"))
    print(f"{sum(total for total, _ in cells.values())} cells, {failed} bad")
    for line in bad[:40]:
        print(line)


main()
