# SPDX-License-Identifier: BSD-3-Clause
"""A thread that has been cancelled posts and polls (cancelled.c): no verb of these may have a point at which it ends."""

import os

from harness.process import LocalHost, Namespace
from harness.report import CheckFailed
from harness.tools import UROCE_RUN
from programs.share.share import Uroced
from programs.run.wires import MemifWire, VethWire

PROGRAM = os.path.normpath(os.path.join(os.path.dirname(UROCE_RUN), "..", "test", "programs", "cancelled"))
SECONDS = 60


class CancelledTest:
    """Pairs of programs on each kind of port, and on one uroced."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "cancelled")
        os.mkdir(self._work_dir)

    def run_all(self):
        if self._report.only and "cancelled" not in self._report.only:
            return
        memif = MemifWire(self._work_dir, "cancelled-memif")
        for way, more in (("", []), (", 2 engines", ["--engines", "2"]), (", impaired", ["--impair", "loss=0.01"])):
            memif.set_options(more)
            self._check(f"memif{way}", *memif.hosts)
        self._check("veth", *VethWire(self._work_dir, "cancelled-veth").hosts)
        here = Namespace("cancelled")
        isolated = f"{self._work_dir}/isolated.sock"
        owner = Uroced(here, self._work_dir, None, "--port", "net_null0", "--ip", "10.9.36.1/24", f"--isolated={isolated}",
                       "--file-prefix", f"uroce-cancelled-{os.getpid()}")
        if not self._report.require("cancelled: uroced starts", owner.run):
            return
        try:
            for way, options in (("attached", [f"--socket={owner.socket}"]), ("isolated", [f"--isolated={isolated}"]),
                                 ("attached, 2 engines", [f"--socket={owner.socket}", "--engines", "2"])):
                self._check(way, *(LocalHost(role, self._work_dir, [*here.prefix, UROCE_RUN, *options, "--"])
                                   for role in ("server", "client")))
        finally:
            owner.process.kill()

    def _check(self, way, server, client):
        self._report.check(f"cancelled: a thread goes on, {way}", self._run, way, server, client)

    def _run(self, way, server, client):
        path = f"{self._work_dir}/{way.replace(' ', '')}.meet"
        if os.path.exists(path):
            os.unlink(path)
        processes = [server.start([PROGRAM, "-s", path]), client.start([PROGRAM, path])]
        try:
            statuses = [process.wait(SECONDS) for process in reversed(processes)]
            if statuses != [0, 0]:
                raise CheckFailed(f"exit {statuses}", [line for process in processes for line in process.story("cancelled")])
        finally:
            for process in processes:
                process.kill()
