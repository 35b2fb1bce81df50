# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""TAP 13 for tests in Python. A test that ends without done() prints no plan and has failed."""

import sys

DETAIL_LINES = 40


class Tap:
    def __init__(self, plan=None):
        """plan: the number of results, if it is known; a crash then shows at once."""
        self.planned = plan
        self.count = self.failed = 0
        print("TAP version 13")
        if plan is not None:
            print(f"1..{plan}")

    def ok(self, good, title, details=""):
        """details are printed if the test failed."""
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {title}")
        if not good and details:
            for line in str(details).splitlines()[:DETAIL_LINES]:
                self.note(line)
        sys.stdout.flush()
        return bool(good)

    def eq(self, got, expected, title):
        return self.ok(got == expected, title, f"got {got!r}, expected {expected!r}")

    def note(self, text):
        print("#", text)

    def done(self):
        """Returns the exit status."""
        if self.planned is None:
            print(f"1..{self.count}")
        elif self.count != self.planned:
            self.failed += 1
        return 1 if self.failed else 0
