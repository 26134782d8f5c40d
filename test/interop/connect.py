# SPDX-License-Identifier: BSD-3-Clause
"""Programs that connect by rdma_cm: our librdmacm.so.1 on one side, the kernel's rdma_cm over rxe on the other."""

import re
import time

from harness.process import wait_until
from harness.tools import START_SECONDS
from rdmacm import END_SECONDS, LISTEN_SECONDS, CmRunning, has_our_threads

SECONDS = 120
GROUP = "239.1.2.3"
FIRST_PORT = 7800
PERFTEST_TRIES = 10
EARLY = "RDMA_CM_EVENT_REJECTED; error: 8|RDMA_CM_EVENT_UNREACHABLE; error: 1"  # nobody listens
FAMILIES = ("ipv4", "ipv6")


class Counts:
    """How much the programs do. The guest is emulated: by default less than with --all."""

    def __init__(self, everything):
        self.pings, self.clients, self.connections, self.timed = (1000, 50, 500, 1000) if everything else (
            1000, 5, 500, 200)
        self.perftests = list(self._perftests(everything))

    @staticmethod
    def _perftests(everything):
        yield "ib_write_bw", []
        yield "ib_send_lat", []
        yield "ib_send_bw", ["-c", "UD"]
        if not everything:
            return
        for verb in ("send", "write", "read", "atomic"):
            for kind in ("bw", "lat"):
                # Over rdma_cm its client does not come to its end (test/programs/rdmacm.py).
                if (verb, kind) != ("atomic", "lat"):
                    yield f"ib_{verb}_{kind}", []
        yield "ib_write_bw", ["-q", "8"]
        yield "ib_write_bw", ["-b"]


class Pair(CmRunning):
    """The two sides of a check; a server in the guest has no thread of ours."""

    def serve(self, host, argv):
        server = self.start(host, argv)
        ready = wait_until(lambda: server.poll() is not None or self._listens(host, server), START_SECONDS, 0.1)
        if not ready or server.poll() is not None:
            self.fail("the server does not start")
        time.sleep(LISTEN_SECONDS)
        return server

    @staticmethod
    def _listens(host, server):
        if host.name == "uroce":
            return has_our_threads(server.pid)
        ids = host.cm_ids()
        return "state LISTEN" in ids or f"comm {server.argv[0]}" in ids and server.argv[0] == "mckey"


class ConnectTest:
    """Each program both ways round."""

    def __init__(self, report, ours, theirs, everything):
        self._report = report
        self._ours = ours
        self._theirs = theirs
        self._counts = Counts(everything)
        self._port = FIRST_PORT

    def run_all(self):
        for server, client in ((self._ours, self._theirs), (self._theirs, self._ours)):
            for family in FAMILIES:
                self._run_family(server, client, family)
            self._run_once(server, client)

    def _check(self, server, client, name, function, *args):
        self._report.check(f"{client.name}->{server.name} rdma_cm {name}", function, server, client, *args)

    def _run_family(self, server, client, family):
        counts = self._counts
        address = server.address if family == "ipv4" else server.address6
        self._check(server, client, f"{family} rping -C {counts.pings}", self._rping, address)
        many = ["-c", str(counts.connections), "-C", "4"]
        self._check(server, client, f"{family} ucmatose -c {counts.connections}", self._both,
                    ["ucmatose", "-b", address, *many], ["ucmatose", "-s", address, *many], "return status 0")
        self._check(server, client, f"{family} udaddy -c 10", self._both, ["udaddy", "-b", address, "-c", "10"],
                    ["udaddy", "-s", address, "-c", "10"], "return status 0")
        self._check(server, client, f"{family} rdma_client", self._both, ["rdma_server", "-s", address],
                    ["rdma_client", "-s", address], "end 0")

    def _run_once(self, server, client):
        counts = self._counts
        self._check(server, client, "rdma_xclient, RC", self._both, ["rdma_xserver", "-c", "r"],
                    ["rdma_xclient", "-s", server.address, "-c", "r"], "end 0")
        self._check(server, client, "mckey", self._both, ["mckey", "-m", GROUP, "-b", server.address],
                    ["mckey", "-m", GROUP, "-b", client.address, "-s"], "return status 0")
        self._check(server, client, f"cmtime -c {counts.timed}", self._cmtime)
        self._check(server, client, f"rping -P, {counts.clients} clients in a row", self._rping_persistent)
        self._check(server, client, "rping, nobody listens", self._refused)
        for program, options in counts.perftests:
            self._check(server, client, " ".join([program, "-R", *options]), self._perftest, program, options)

    @staticmethod
    def _both(server, client, server_argv, client_argv, words):
        with Pair() as pair:
            passive = pair.serve(server, server_argv)
            active = pair.start(client, client_argv)
            pair.expect(active, SECONDS, "client")
            pair.expect(passive, END_SECONDS, "server")
            if any(words not in process.output() for process in (passive, active)):
                pair.fail(f"a side does not say '{words}'")

    def _rping(self, server, client, address):
        count = ["-v", "-C", str(self._counts.pings), "-a", address]
        with Pair() as pair:
            passive = pair.serve(server, ["rping", "-s", *count])
            active = pair.start(client, ["rping", "-c", *count])
            pair.expect(active, SECONDS, "client")
            pair.expect(passive, END_SECONDS, "server")
            for process in (passive, active):
                output = process.output()
                if not all(f"rdma-ping-{i}: " in output for i in range(self._counts.pings)):
                    pair.fail("pings are missing")

    def _rping_persistent(self, server, client):
        with Pair() as pair:
            passive = pair.serve(server, ["rping", "-s", "-P", "-a", server.address])
            for _ in range(self._counts.clients):
                pair.expect(pair.start(client, ["rping", "-c", "-C", "3", "-a", server.address]), SECONDS, "client")
            if passive.poll() is not None:
                pair.fail("the server has ended")

    def _cmtime(self, server, client):
        """Its server goes on."""
        count = ["-c", str(self._counts.timed)]
        with Pair() as pair:
            pair.serve(server, ["cmtime", "-b", server.address, *count])
            active = pair.start(client, ["cmtime", "-s", server.address, *count])
            pair.expect(active, SECONDS, "client")
            if not re.search(r"^disconnect +: +[\d.]+", active.output(), re.M):
                pair.fail("the client prints no time")

    @staticmethod
    def _refused(server, client):
        """Another port has a listener, so that the device is there."""
        with Pair() as pair:
            pair.serve(server, ["rping", "-s", "-a", server.address, "-p", "7999"])
            active = pair.start(client, ["rping", "-c", "-C", "1", "-a", server.address])
            if active.wait(SECONDS) in (None, 0) or "RDMA_CM_EVENT_REJECTED" not in active.output():
                pair.fail("the client is not told that nobody listens")

    def _perftest(self, server, client, program, options):
        """
        It connects twice, and its client does not wait until the server listens for the second time. To an emulated
        server ours often is too early: then it tries again.
        """
        for _ in range(PERFTEST_TRIES - 1):
            if self._try_perftest(server, client, program, options, EARLY):
                return
        self._try_perftest(server, client, program, options)

    def _try_perftest(self, server, client, program, options, excuse=None):
        """
        The table has a row a size. A datagram that finds no receive request is lost: few of them are sent. Returns false
        where the client has the excuse.
        """
        self._port += 1
        size = "8" if "atomic" in program else "1024"
        argv = [program, "-F", "-R", "-p", str(self._port), "-n", "100", *options]
        if size != "8":
            argv += ["-s", size]
        with Pair() as pair:
            passive = pair.serve(server, argv)
            active = pair.start(client, [*argv, server.address])
            if excuse and active.wait(SECONDS) and re.search(excuse, active.output()):
                return False
            pair.expect(active, SECONDS, "client")
            pair.expect(passive, END_SECONDS, "server")
            if not re.search(rf"^ *{size} +\d+ ", active.output(), re.M):
                pair.fail("the client prints no result")
        return True
