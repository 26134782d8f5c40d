# SPDX-License-Identifier: BSD-3-Clause
"""Effects of a device on a program with its own threads, handlers and descriptors (doc/user/guest.md)."""

import ctypes
import os

from harness.process import Namespace, ask, need_users
from harness.report import CheckFailed
from harness.tools import UROCE_RUN

INSIDE = os.path.join(os.path.dirname(UROCE_RUN), "..", "test", "programs", "inside")
SECONDS = 60
CHECKS = {
    "start": "handlers and files of other threads stay while devices start",
    "descriptors": "closed descriptors are a fatal event, and their numbers the program's",
    "signals": "signals that the program reads by a descriptor come to it",
    "privileges": "no thread keeps capabilities that the program has dropped",
    "pages": "a page that is fetched over the device itself holds up one queue pair alone",
}


def has_userfaultfd():
    """Return True if a program may serve its own page faults."""
    number = {"x86_64": 323, "aarch64": 282}[os.uname().machine]
    descriptor = ctypes.CDLL(None).syscall(number, os.O_CLOEXEC)
    if descriptor >= 0:
        os.close(descriptor)
    return descriptor >= 0


class InsideTest:
    """Each check is a process, with progress hybrid or dedicated."""

    def __init__(self, report):
        self._report = report
        self._namespace = Namespace("inside")

    def run_all(self):
        for check, name in CHECKS.items():
            if check == "pages" and not has_userfaultfd():
                self._report.skip(f"inside: {name}", "userfaultfd is not allowed here")
                continue
            for progress in ("hybrid", "dedicated"):
                self._report.check(f"inside: {name} ({progress})", self._run, check, progress)

    def _run(self, check, progress):
        if check == "privileges":  # it becomes another user
            need_users()
        argv = [*self._namespace.prefix, UROCE_RUN, "--port", "net_null0", "--ip", "10.9.7.1/24",
                "--progress", progress, "--", INSIDE, check]
        done = ask(argv, SECONDS)
        if done.returncode != 0 or done.stdout != "good\n":
            raise CheckFailed(f"exit {done.returncode}", [*done.stdout.splitlines(), *done.stderr.splitlines()])
