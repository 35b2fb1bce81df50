# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs a program on a terminal.
import os
import pty


def run(arguments, term, lines=24, columns=100, keys=b""):
    """Types the keys. Returns the exit status, negative for a signal, and the bytes that the
    terminal got."""
    pid, terminal = pty.fork()
    if not pid:
        os.environ.update(TERM=term, LINES=str(lines), COLUMNS=str(columns))
        os.execvp(arguments[0], arguments)
    os.write(terminal, keys)
    out = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out
