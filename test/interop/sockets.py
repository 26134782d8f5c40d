# SPDX-License-Identifier: BSD-3-Clause
"""
rsockets: our librdmacm.so.1 on one side, rdma-core's over rxe on the other. Streams alone: stock's datagrams do not run on
rxe, where rconnect fails with ENOENT before anything is sent.
"""

import re

from connect import Pair
from rdmacm import END_SECONDS

SECONDS = 120
ROW = re.compile(r"^\S+ +\S+ +\S+ +.*?[\d.]+s +[\d.]+ +[\d.]+$", re.M)
STREAM = ["-I", "10", "-C", "10"]


class SocketsTest:
    """Each program both ways round."""

    def __init__(self, report, ours, theirs):
        self._report = report
        self._ours = ours
        self._theirs = theirs

    def run_all(self):
        for server, client in ((self._ours, self._theirs), (self._theirs, self._ours)):
            self._check(server, client, "rstream, blocking", self._pair, "rstream", ["-T", "b", "-T", "v", *STREAM])
            # Stock's rpoll tells of a hang-up before data is read, which ends a slow guest's client too early.
            if client is self._ours:
                self._check(server, client, "rstream, async", self._pair, "rstream", ["-T", "a", "-T", "v", *STREAM])
            self._check(server, client, "rstream, large", self._pair, "rstream",
                        ["-T", "v", "-I", "2", "-C", "2", "-S", "1048576"])
            self._check(server, client, "riostream", self._pair, "riostream", ["-S", "65536", *STREAM])

    def _check(self, server, client, name, function, *args):
        self._report.check(f"{client.name}->{server.name} rsockets {name}", function, server, client, *args)

    @staticmethod
    def _pair(server, client, program, options):
        with Pair() as pair:
            passive = pair.serve(server, [program, "-b", server.address, *options])
            active = pair.start(client, [program, "-s", server.address, *options])
            pair.expect(active, SECONDS, "client")
            pair.expect(passive, END_SECONDS, "server")
            if not all(ROW.search(process.output()) for process in (passive, active)):
                pair.fail("a side prints no result")
