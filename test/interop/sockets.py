# SPDX-License-Identifier: BSD-3-Clause
"""rsockets: our librdmacm.so.1 on one side, rdma-core's over rxe on the other."""

import re
import time

from connect import Pair
from rdmacm import END_SECONDS, LISTEN_SECONDS

SECONDS = 120
ROW = re.compile(r"^\S+ +\S+ +\S+ +.*?[\d.]+s +[\d.]+ +[\d.]+$", re.M)
STREAM = ["-I", "10", "-C", "10"]
DATAGRAM_SECONDS = 2  # from the start of a datagram server in the guest until it listens


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
            self._check(server, client, "udpong", self._udpong)

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

    @staticmethod
    def _udpong(server, client):
        """Its server goes on, and has no id of rdma_cm that could be seen before it is asked."""
        options = ["-T", "e", "-C", "100", "-S", "500"]
        with Pair() as pair:
            passive = pair.start(server, ["udpong", "-b", server.address, *options])
            time.sleep(LISTEN_SECONDS + DATAGRAM_SECONDS)
            active = pair.start(client, ["udpong", "-s", server.address, *options])
            pair.expect(active, SECONDS, "client")
            if passive.poll() is not None or not ROW.search(active.output()):
                pair.fail("the client prints no result")
