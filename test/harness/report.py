# SPDX-License-Identifier: BSD-3-Clause
"""Run named checks, print one line for each, and count them."""

import sys
import time


SECOND_TRY = "passed at the second try: "


class CheckFailed(Exception):
    """The failure of a check: what it saw instead of what it expects. `details` are further lines to print."""

    def __init__(self, reason, details=()):
        super().__init__(reason)
        self.details = list(details)


class CpuTime:
    """The use of the CPUs since this object was made. A failed check may have got no CPU time."""

    def __init__(self):
        self._before = self._read()

    @staticmethod
    def _read():
        with open("/proc/stat", encoding="ascii") as file:
            return [int(ticks) for ticks in file.readline().split()[1:9]]

    def __str__(self):
        ticks = [after - before for before, after in zip(self._before, self._read())]
        total = sum(ticks) or 1
        idle, stolen = ticks[3] + ticks[4], ticks[7]
        with open("/proc/loadavg", encoding="ascii") as file:
            load = file.read().split()[0]
        return (f"the CPUs meanwhile: {100 * idle // total} % idle, {100 * stolen // total} % taken by the hypervisor; "
                f"load {load}")


class Report:
    """Counts of checks. A check is a function that raises CheckFailed, or returns."""

    def __init__(self, only=None):
        self.only = only
        self.passed = 0
        self.failed = 0
        self.skipped = 0
        self.second_tries = []

    def check(self, name, function, *args):
        """Run one check, unless --only excludes it. The programs' timeouts are in real time (the retries of a queue
        pair last half a second), so a check can fail without a fault of uroce if a shared machine takes the CPU
        away for longer. It then gets one second try. The first failure is printed, and named again above the
        summary: a check that is often there has a bug."""
        if self.only and self.only not in name:
            return
        start = time.monotonic()
        cpus = CpuTime()
        try:
            function(*args)
        except CheckFailed as failure:
            self._line("AGAIN", name, start, str(failure), [str(cpus), *failure.details])
            if self.require(name, function, *args):
                self.second_tries.append(name)
            return
        self.passed += 1
        self._line("pass", name, start, "")

    def require(self, name, function, *args):
        """Run a check on which others depend, whatever --only says. Return True if it passed."""
        start = time.monotonic()
        try:
            function(*args)
        except CheckFailed as failure:
            self.failed += 1
            self._line("FAIL", name, start, str(failure), failure.details)
            return False
        self.passed += 1
        self._line("pass", name, start, "")
        return True

    def skip(self, name, reason):
        """Count a check that cannot run here."""
        self.skipped += 1
        self._line("skip", name, time.monotonic(), reason)

    def fail(self, name, reason):
        """Count a check that could not even be tried."""
        self.failed += 1
        self._line("FAIL", name, time.monotonic(), reason)

    def summary(self):
        """Print the last line of every test command, and return the exit status."""
        for name in self.second_tries:
            print(f"{SECOND_TRY}{name}")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        sys.stdout.flush()
        return 1 if self.failed or not self.passed else 0

    @staticmethod
    def _line(verdict, name, start, reason, details=()):
        seconds = time.monotonic() - start
        print(f"{verdict:<5} {name:<52} {seconds:5.1f} s  {reason}".rstrip())
        for line in details:
            print("        " + line)
        sys.stdout.flush()
