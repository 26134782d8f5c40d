# SPDX-License-Identifier: BSD-3-Clause
"""Selective acknowledgements are on, and the peer is Linux's rxe, in a bad network: uroce's packets have the sign, rxe's never
do, and no opcode of ours leaves, although packets get lost."""

from harness.noticing import Notice
from harness.report import CheckFailed

DAMAGES = ("loss=0.01", "loss=0.005,corrupt=0.005,dup=0.01,reorder=0.01,ce=0.1,delay=100us")


class UnaskedTest:
    def __init__(self, matrix, report, ours, theirs, network, work_dir):
        self._matrix = matrix
        self._report = report
        self._ours = ours
        self._theirs = theirs
        self._network = network
        self._work_dir = work_dir

    def run_all(self, programs):
        for damage in DAMAGES:
            self._ours.set_options(["--sack", "yes", "--impair", damage])
            for server, client in ((self._ours, self._theirs), (self._theirs, self._ours)):
                for program in programs(damage):
                    self._report.check(f"{client.name}->{server.name} sack {damage} {program.name}", self._run, program,
                                       server, client)
        self._ours.set_options([])

    def _run(self, program, server, client):
        notice = Notice(self._network, self._work_dir, "peer1")
        try:
            self._matrix.pair(program, server, client)
            seen = notice.end()
        finally:
            notice.kill()
        ours, theirs = seen[self._ours.address], seen[self._theirs.address]
        if ours["manufacturer"] != 0:
            raise CheckFailed("an opcode of ours was sent to rxe", [str(seen)])
        if client is self._ours and ours["signed"] == 0:
            raise CheckFailed("our requests do not have the sign: nothing was tested", [str(seen)])
        if theirs["signed"] != 0 or theirs["manufacturer"] != 0:
            raise CheckFailed("rxe sends the sign back: doc/developer/loss.md says that only old ones do", [str(seen)])
