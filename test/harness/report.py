# SPDX-License-Identifier: BSD-3-Clause
"""Run named checks, print one line for each, and count them."""

import sys
import time
import traceback

from .world import cpu_seconds

SECOND_TRY = "passed at the second try: "
RECORD_END = "\x1e"  # after the lines of a check, for the runner of several groups (lanes.py)


class CheckFailed(Exception):
    """The failure of a check: what it saw instead of what it expects. `details` are further lines to print."""

    def __init__(self, reason, details=()):
        super().__init__(reason)
        self.details = list(details)


class CannotRun(Exception):
    """Raised by a check that this machine or this user does not let run. It is skipped, for the reason given."""


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
    """Counts of checks. A check is a function that raises CheckFailed, or returns. With `complete`, tests shall run every
    combination, and repeat what depends on chance often; without, some combinations (pairwise.py), and fewer repetitions."""

    def __init__(self, only=None, record_end="", times=None, complete=True):
        self.only = only
        self.complete = complete
        self._record_end = record_end
        self._times = times
        self.passed = 0
        self.failed = 0
        self.skipped = 0
        self.second_tries = []

    def check(self, name, function, *args):
        """Run one check, unless --only excludes it. The programs' timeouts are in real time (the retries of a queue
        pair last half a second), so a check can fail without a fault of uroce if a shared machine takes the CPU
        away for longer. It then gets one second try. The first failure is printed, and named again above the
        summary, with what the CPUs did meanwhile: a check that is often there has a bug."""
        if not self._is_named(name):
            return
        start = time.monotonic()
        cpu_before = cpu_seconds() if self._times else 0
        cpus = CpuTime()
        try:
            self._run(function, args)
        except CannotRun as reason:
            self.skip(name, str(reason))
        except CheckFailed as failure:
            meanwhile = str(cpus)
            self._line("AGAIN", name, start, str(failure), [meanwhile, *failure.details])
            if self.require(name, function, *args):
                self.second_tries.append(f"{name} ({meanwhile})")
        else:
            self.passed += 1
            self._line("pass", name, start, "")
            if self._times:
                print(f"{time.monotonic() - start:.2f}\t{cpu_seconds() - cpu_before:.2f}\t{name}", file=self._times, flush=True)

    def require(self, name, function, *args):
        """Run a check on which others depend, whatever --only says. It counts as passed only if --only names it: a name that
        no check has must not look like success. Return True if it passed."""
        start = time.monotonic()
        try:
            self._run(function, args)
        except CannotRun as reason:
            self.skip(name, str(reason))
            return False
        except CheckFailed as failure:
            self.failed += 1
            self._line("FAIL", name, start, str(failure), failure.details)
            return False
        self.passed += self._is_named(name)
        self._line("pass", name, start, "")
        return True

    def _is_named(self, name):
        """Return True for the name of a check that --only does not exclude."""
        return not self.only or self.only in name

    @staticmethod
    def _run(function, args):
        """Run a check. An exception that it did not expect, such as a time limit of a socket, is its failure, too."""
        try:
            function(*args)
        except (CheckFailed, CannotRun):
            raise
        except Exception as error:
            raise CheckFailed(f"{type(error).__name__}: {error}", traceback.format_exc().splitlines()) from error

    def skip(self, name, reason):
        """Count a check that cannot run here."""
        self.skipped += self._is_named(name)
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

    def _line(self, verdict, name, start, reason, details=()):
        seconds = time.monotonic() - start
        print(f"{verdict:<5} {name:<52} {seconds:5.1f} s  {reason}".rstrip())
        for line in details:
            print("        " + line)
        print(end=self._record_end, flush=True)
