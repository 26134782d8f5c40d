# SPDX-License-Identifier: BSD-3-Clause
"""Runs named checks, prints one line for each, and counts them."""

import sys
import time


class CheckFailed(Exception):
    """Says what a check saw instead of what it expects; `details` are lines to print below."""

    def __init__(self, reason, details=()):
        super().__init__(reason)
        self.details = list(details)


class Report:
    """Counts checks. A check is a function that raises CheckFailed, or returns."""

    def __init__(self, only=None):
        self.only = only
        self.passed = 0
        self.failed = 0
        self.skipped = 0

    def check(self, name, function, *args):
        """Runs one check, unless --only leaves it out."""
        if not self.only or self.only in name:
            self.require(name, function, *args)

    def require(self, name, function, *args):
        """Runs a check that others build on, whatever --only says; true if it passed."""
        start = time.monotonic()
        try:
            function(*args)
        except CheckFailed as failure:
            self.failed += 1
            self._line("FAIL", name, start, str(failure))
            for line in failure.details:
                print("        " + line)
            return False
        self.passed += 1
        self._line("pass", name, start, "")
        return True

    def fail(self, name, reason):
        """Counts a check that could not even be tried."""
        self.failed += 1
        self._line("FAIL", name, time.monotonic(), reason)

    def summary(self):
        """The last line of every test command; the exit status goes with it."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        sys.stdout.flush()
        return 1 if self.failed or not self.passed else 0

    @staticmethod
    def _line(verdict, name, start, reason):
        seconds = time.monotonic() - start
        print(f"{verdict}  {name:<52} {seconds:5.1f} s  {reason}".rstrip())
        sys.stdout.flush()
