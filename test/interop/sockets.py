# SPDX-License-Identifier: BSD-3-Clause
"""
rsockets: our librdmacm.so.1 on one side, rdma-core's over rxe on the other. Only streams run: rdma-core's datagrams do not work
on rxe, also not with each other. An ioctl of their rconnect fails with EINVAL after it has made the queue pair, and udpong
prints the ENOENT of the clean-up that follows.
"""

import os
import re

from connect import Pair
from programs.cm.rdmacm import END_SECONDS

SECONDS = 120
ROW = re.compile(r"^\S+ +\S+ +\S+ +.*?[\d.]+s +[\d.]+ +[\d.]+$", re.M)
STREAM = ["-I", "10", "-C", "10"]
COPY_MIB = 5


class SocketsTest:
    """Each program in both directions."""

    def __init__(self, report, ours, theirs):
        self._report = report
        self._ours = ours
        self._theirs = theirs

    def run_all(self):
        for server, client in ((self._ours, self._theirs), (self._theirs, self._ours)):
            self._check(server, client, "rstream, blocking", self._pair, "rstream", ["-T", "b", "-T", "v", *STREAM])
            # rdma-core's rpoll reports a hang-up before all data is read, which ends the client in a slow guest too
            # early.
            if client is self._ours:
                self._check(server, client, "rstream, async", self._pair, "rstream", ["-T", "a", "-T", "v", *STREAM])
            self._check(server, client, "rstream, large", self._pair, "rstream",
                        ["-T", "v", "-I", "2", "-C", "2", "-S", "1048576"])
            self._check(server, client, "riostream", self._pair, "riostream", ["-S", "65536", *STREAM])
            self._check(server, client, "rcopy", self._rcopy)

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
    def _rcopy(server, client):
        """Copy a file to the server, which does not end by itself."""
        source, target = (f"/tmp/rcopy-{os.getpid()}.{name}" for name in ("source", "target"))
        with Pair() as pair:
            def run(host, *argv):
                program = pair.start(host, list(argv))
                pair.expect(program, SECONDS, argv[0])
                return re.findall(r"^[0-9a-f]{32}\b", program.output(), re.M)

            run(client, "dd", "if=/dev/urandom", f"of={source}", "bs=1M", f"count={COPY_MIB}")
            pair.serve(server, ["rcopy"])
            run(client, "rcopy", source, f"{server.address}:{target}")
            digests = run(client, "md5sum", source) + run(server, "md5sum", target)
            run(client, "rm", source)
            run(server, "rm", target)
            if len(digests) != 2 or digests[0] != digests[1]:
                pair.fail("the copy differs")
