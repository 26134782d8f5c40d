# SPDX-License-Identifier: BSD-3-Clause
"""Congestion control with Linux's rxe as the peer. DCQCN in a network that marks packets: what crosses the wire, and that all
bytes arrive; rxe neither sends nor obeys congestion notifications, and must drop ours without harm. Swift: that all bytes
arrive in time although the peer answers late."""

from harness.noticing import Notice
from harness.report import CheckFailed
from harness.tools import PerfTest

MARKS = "ce=0.2"  # of the packets in each direction
CAPABLE = 2  # of the ECN bits
PROGRAMS = ("ib_write_bw", "ib_read_bw")
OPTIONS = ["-m", "1024", "-u", "18"]
ITERATIONS = 200


class CongestionTest:
    def __init__(self, matrix, report, ours, theirs, network, work_dir):
        self._matrix = matrix
        self._report = report
        self._ours = ours
        self._theirs = theirs
        self._network = network
        self._work_dir = work_dir

    def run_all(self):
        self._ours.set_options(["--cc", "dcqcn", "--impair", MARKS])
        for server, client in ((self._ours, self._theirs), (self._theirs, self._ours)):
            for name in PROGRAMS:
                program = PerfTest(name, OPTIONS, ITERATIONS)
                # The payload comes from the client of a WRITE, and from the server of a READ.
                sender = client if name == "ib_write_bw" else server
                self._report.check(f"{client.name}->{server.name} congestion {name}", self._run, program, server, client,
                                   sender)
        # An emulated machine answers late, which Swift must not take for congestion.
        self._ours.set_options(["--cc", "swift"])
        for server, client in ((self._ours, self._theirs), (self._theirs, self._ours)):
            for name in PROGRAMS:
                self._report.check(f"{client.name}->{server.name} congestion swift {name}", self._matrix.pair,
                                   PerfTest(name, OPTIONS, ITERATIONS), server, client)
        self._ours.set_options([])

    def _run(self, program, server, client, sender):
        notice = Notice(self._network, self._work_dir, "peer1")
        try:
            self._matrix.pair(program, server, client)
            self._judge(sender, notice.end())
        finally:
            notice.kill()

    def _judge(self, sender, seen):
        ours, theirs = seen[self._ours.address], seen[self._theirs.address]
        if theirs["cnp"] != 0:
            raise CheckFailed("rxe sent congestion notifications: doc/operator/congestion.md says that it does not", [str(seen)])
        if ours["bad"] != 0:
            raise CheckFailed("a congestion notification of ours has the wrong form", [str(seen)])
        if (ours["cnp"] > 0) != (sender is self._theirs):
            raise CheckFailed(f"{ours['cnp']} congestion notifications of ours", [str(seen)])
        if ours["ecn"][CAPABLE] == 0:
            raise CheckFailed("our packets are not ECN-capable", [str(seen)])
        if theirs["ecn"][CAPABLE] > 0:
            raise CheckFailed("rxe's packets are ECN-capable: doc/operator/congestion.md does not say so", [str(seen)])
