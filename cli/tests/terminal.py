# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs a program on a terminal of 24 lines and 100 columns.
import os
import pty


def run(arguments, term):
    """Returns the exit status, negative for a signal, and the bytes that the terminal got."""
    pid, terminal = pty.fork()
    if not pid:
        os.environ.update(TERM=term, LINES="24", COLUMNS="100")
        os.execvp(arguments[0], arguments)
    out = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out
