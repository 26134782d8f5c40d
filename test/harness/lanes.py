# SPDX-License-Identifier: BSD-3-Clause
"""Run groups of checks in lanes: several groups at once, each in a world of its own, and then those that need the machine
for themselves, one after the other."""

import atexit
import contextlib
import os
import re
import select
import signal
import sys
import tempfile
import traceback
from typing import Callable, NamedTuple

from . import world
from .report import RECORD_END, SECOND_TRY, Report

SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
FAILED = "failed: "


class Group(NamedTuple):
    """Checks that depend on each other, or on the same uroced. `run` gets a report and an empty folder."""

    name: str
    run: Callable
    alone: bool = False  # it measures, or takes all CPUs, or all memory
    needs_root: str = ""  # why it cannot run in the namespaces of an ordinary user


class Lane:
    """A process that runs one group. It prints records: lines that belong together."""

    def __init__(self, group, make_report):
        self.group = group
        self._pipe, end = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(end, 1)
            os.dup2(end, 2)
            _run_group(group, make_report)
        os.close(end)
        self._text = b""

    def fileno(self):
        return self._pipe

    def records(self):
        """Return the records that have come, as text; None at the end."""
        more = os.read(self._pipe, 1 << 16)
        if not more:
            return None
        *records, self._text = (self._text + more).split(RECORD_END.encode())
        return [record.decode(errors="replace") for record in records]

    def end(self):
        """Return the exit status, and what came behind the last record: the summary, or why there is none."""
        os.close(self._pipe)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return status, self._text.decode(errors="replace")

    def kill(self):
        """End it, and with it its world."""
        os.kill(self.pid, signal.SIGTERM)


def _run_group(group, make_report):
    """Be the lane's process."""
    status = 1
    try:
        world.enter()
        report = make_report()
        if group.needs_root and not world.is_roots():
            report.skip(f"{group.name}: all checks", f"not root: {group.needs_root}")
        else:
            group.run(report, tempfile.mkdtemp(prefix="uroce-"))
        report.summary()
        status = 1 if report.failed else 0
    except SystemExit as reason:
        if isinstance(reason.code, str):
            print(reason.code)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        os._exit(status)


class Lanes:
    """Runs groups, prints their records in the order in which they end, and adds up what they count."""

    def __init__(self, make_report, lanes):
        self._make_report = make_report
        self._count = lanes
        self._counts = [0, 0, 0]
        self._failures = []
        self._second_tries = []

    def run(self, groups):
        """Run all groups; return the exit status."""
        running = []
        try:
            self._run([group for group in groups if not group.alone], self._count, running)
            self._run([group for group in groups if group.alone], 1, running)
        finally:
            for lane in running:
                lane.kill()
        return self._summary()

    def _run(self, waiting, at_once, running):
        waiting = list(waiting)
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(Lane(waiting.pop(0), self._make_report))
            for lane in select.select(running, [], [])[0]:
                records = lane.records()
                if records is None:
                    running.remove(lane)
                    self._end(lane)
                else:
                    for record in records:
                        self._print(record)

    def _print(self, record):
        print(record, end="", flush=True)
        self._failures += [" ".join(line.split()[1:]) for line in record.splitlines() if line.startswith("FAIL")]

    def _end(self, lane):
        """A group that ends without a summary is a failure: it could not run its checks."""
        status, text = lane.end()
        summary = None
        for line in text.splitlines():
            summary = SUMMARY.match(line)
            if line.startswith(SECOND_TRY):
                self._second_tries.append(line)
            elif not summary:
                print(f"        {line}")
        if summary:
            for index, number in enumerate(map(int, summary.groups())):
                self._counts[index] += number
        if not summary or (status and not int(summary.group(2))):
            self._counts[1] += 1
            self._print(f"FAIL  {lane.group.name}: the group ends early, exit {status}\n")

    def _summary(self):
        passed, failed, skipped = self._counts
        for line in self._failures:
            print(f"{FAILED}{line}")
        for line in self._second_tries:
            print(line)
        print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
        return 1 if failed or not passed else 0


def add_options(parser):
    """Add the options of every runner."""
    parser.add_argument("--all", action="store_true", help="run every combination of wires, addresses, engines and modes, and "
                        "repeat what depends on chance often, as make test-all does")
    parser.add_argument("--only", metavar="TEXT", help="run the checks whose name contains this")
    parser.add_argument("--group", metavar="NAME", action="append", help="run only this group of checks (also several times)")
    parser.add_argument("--groups", action="store_true", help="print the names of the groups, and end")
    parser.add_argument("--lanes", type=int, default=3, metavar="N", help="run so many groups at once (3)")
    parser.add_argument("--times", metavar="FILE", help="append a line for each check to this file: its seconds, the CPU time of "
                        "its programs, group and name")


def run(groups, options):
    """Run what the options choose; return the exit status."""
    if options.groups:
        print("\n".join(group.name for group in groups))
        return 0
    names = {group.name for group in groups}
    unknown = [name for name in options.group or () if name not in names]
    if unknown:
        sys.exit(f"there is no group {unknown[0]}; --groups prints their names")
    chosen = [group for group in groups if not options.group or group.name in options.group]
    times = open(options.times, "a", encoding="utf-8") if options.times else None
    return Lanes(lambda: Report(options.only, RECORD_END, times, options.all), max(options.lanes, 1)).run(chosen)
