# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""KTAP for tests in Python. A test that ends without done() prints no totals and has failed."""

import sys

DETAIL_LINES = 40


class Tap:
    def __init__(self, plan=None):
        """plan: the number of results, if it is known; a crash then shows at once."""
        self.planned = plan
        self.count = self.failed = self.skipped = 0
        print("TAP version 13")
        if plan is not None:
            print(f"1..{plan}")

    def ok(self, good, title, details=""):
        """details are printed if the test failed."""
        self.count += 1
        self.failed += not good
        # In KTAP, the title ends where "#" begins a directive.
        print(f"{'ok' if good else 'not ok'} {self.count} - {title.replace('#', '_')}")
        if not good and details:
            for line in str(details).splitlines()[:DETAIL_LINES]:
                self.note(line)
        sys.stdout.flush()
        return bool(good)

    def eq(self, got, expected, title):
        return self.ok(got == expected, title, f"got {got!r}, expected {expected!r}")

    def skip(self, title, reason):
        self.count += 1
        self.skipped += 1
        print(f"ok {self.count} - {title} # SKIP {reason}")
        sys.stdout.flush()

    def note(self, text):
        print("#", text)

    def done(self):
        """Returns the exit status."""
        print(f"# Totals: pass:{self.count - self.failed - self.skipped} fail:{self.failed} "
              f"xfail:0 xpass:0 skip:{self.skipped} error:0")
        return 1 if self.failed or self.planned not in (None, self.count) else 0
