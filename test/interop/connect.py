# SPDX-License-Identifier: BSD-3-Clause
"""Programs that connect by rdma_cm: our librdmacm.so.1 on one side, the kernel's rdma_cm over rxe on the other."""

import re
import time

from harness.process import wait_until
from harness.tools import START_SECONDS
from programs.cm.rdmacm import END_SECONDS, LATE, CmRunning, has_our_threads

SECONDS = 120
GROUP = "239.1.2.3"
FIRST_PORT = 7800
LISTEN_SECONDS = 0.5  # time from the start of the helper threads to a listener
PERFTEST_TRIES = 10
LATE_MS = 1000  # by which our client's request comes later: so long may an emulated server take to listen
LOSSY_PINGS = 100  # each lost packet takes a timeout of the emulated side
EARLY = "RDMA_CM_EVENT_REJECTED; error: 8|RDMA_CM_EVENT_UNREACHABLE; error: 1"  # no program listens yet
FAMILIES = ("ipv4", "ipv6")


class Counts:
    """The amount of work of the programs. --all adds IPv6, options of perftest, and more work under an uroced."""

    pings, clients, connections, timed = 1000, 20, 500, 1000

    def __init__(self, everything):
        self.shared_pings, self.shared_connections = (1000, 500) if everything else (100, 50)
        self.families_of_more = FAMILIES if everything else FAMILIES[:1]
        self.perftests = list(self._perftests(everything))

    @staticmethod
    def _perftests(everything):
        for verb in ("send", "write", "read", "atomic"):
            for kind in ("bw", "lat"):
                yield f"ib_{verb}_{kind}", []
        yield "ib_send_bw", ["-c", "UD"]
        if not everything:
            return
        for verb in ("send", "write", "read", "atomic"):
            yield f"ib_{verb}_bw", ["-b"]
        yield "ib_send_lat", ["-c", "UD"]
        yield "ib_send_bw", ["-e"]
        yield "ib_write_bw", ["-q", "8"]
        yield "ib_read_bw", ["-a"]


class Pair(CmRunning):
    """The two sides of a check. A server in the guest has no thread of uroce."""

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
    """Each program in both directions."""

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
            for family in self._counts.families_of_more:
                self._run_more(server, client, family)
            self._run_once(server, client)

    def run_loss(self):
        """With a bad network between the two: the messages of the connection manager get lost as well."""
        for server, client in ((self._ours, self._theirs), (self._theirs, self._ours)):
            self._check(server, client, "rping -v, bad network", self._rping, server.address, LOSSY_PINGS)

    def run_shared(self, place):
        """Our programs are processes of an uroced, which reads and routes all messages of the connection manager."""
        pings, connections = self._counts.shared_pings, self._counts.shared_connections
        for server, client in ((self._ours, self._theirs), (self._theirs, self._ours)):
            for family in FAMILIES:
                self._check(server, client, f"{place}, {family} rping -C {pings}", self._rping,
                            self._address(server, family), pings)
            self._many(server, client, "ipv4", connections, f"{place}, ")
            self._datagrams(server, client, "ipv6", f"{place}, ")
            self._group(server, client, f"{place}, ")

    @staticmethod
    def _address(host, family):
        return host.address if family == "ipv4" else host.address6

    def _check(self, server, client, name, function, *args):
        self._report.check(f"{client.name}->{server.name} rdma_cm {name}", function, server, client, *args)

    def _run_family(self, server, client, family):
        counts = self._counts
        address = self._address(server, family)
        self._check(server, client, f"{family} rping -C {counts.pings}", self._rping, address)
        self._many(server, client, family, counts.connections)
        self._datagrams(server, client, family)
        self._check(server, client, f"{family} rdma_client", self._both, ["rdma_server", "-s", address],
                    ["rdma_client", "-s", address], "end 0")

    def _many(self, server, client, family, connections, title=""):
        address = self._address(server, family)
        many = ["-c", str(connections), "-C", "4"]
        self._check(server, client, f"{title}{family} ucmatose -c {connections}", self._both,
                    ["ucmatose", "-b", address, *many], ["ucmatose", "-s", address, *many], "return status 0")

    def _datagrams(self, server, client, family, title=""):
        address = self._address(server, family)
        self._check(server, client, f"{title}{family} udaddy -c 10", self._both, ["udaddy", "-b", address, "-c", "10"],
                    ["udaddy", "-s", address, "-c", "10"], "return status 0")

    def _group(self, server, client, title=""):
        self._check(server, client, f"{title}mckey", self._both, ["mckey", "-m", GROUP, "-b", server.address],
                    ["mckey", "-m", GROUP, "-b", client.address, "-s"], "return status 0")

    def _run_more(self, server, client, family):
        counts = self._counts
        address = self._address(server, family)
        self._check(server, client, f"{family} cmtime -c {counts.timed}", self._cmtime, address)
        self._check(server, client, f"{family} rping -P, {counts.clients} clients in a row", self._rping_persistent,
                    address)

    def _run_once(self, server, client):
        """rdma_xserver listens on IPv4's addresses only, and Linux joins no IPv6 group on RoCE v2 (ENOTSUPP)."""
        self._check(server, client, "rdma_xclient, RC", self._both, ["rdma_xserver", "-c", "r"],
                    ["rdma_xclient", "-s", server.address, "-c", "r"], "end 0")
        self._group(server, client)
        self._check(server, client, "rping, nobody listens", self._refused)
        for program, options in self._counts.perftests:
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

    def _rping(self, server, client, address, pings=None):
        pings = pings or self._counts.pings
        count = ["-v", "-C", str(pings), "-a", address]
        with Pair() as pair:
            passive = pair.serve(server, ["rping", "-s", *count])
            active = pair.start(client, ["rping", "-c", *count])
            pair.expect(active, SECONDS, "client")
            pair.expect(passive, END_SECONDS, "server")
            for process in (passive, active):
                output = process.output()
                if not all(f"rdma-ping-{i}: " in output for i in range(pings)):
                    pair.fail("pings are missing")

    def _rping_persistent(self, server, client, address):
        with Pair() as pair:
            passive = pair.serve(server, ["rping", "-s", "-P", "-a", address])
            for _ in range(self._counts.clients):
                pair.expect(pair.start(client, ["rping", "-c", "-C", "3", "-a", address]), SECONDS, "client")
            if passive.poll() is not None:
                pair.fail("the server has ended")

    def _cmtime(self, server, client, address):
        """Run cmtime, whose server does not end by itself."""
        count = ["-c", str(self._counts.timed)]
        with Pair() as pair:
            pair.serve(server, ["cmtime", "-b", address, *count])
            active = pair.start(client, ["cmtime", "-s", address, *count])
            pair.expect(active, SECONDS, "client")
            if not re.search(r"^disconnect +: +[\d.]+", active.output(), re.M):
                pair.fail("the client prints no time")

    @staticmethod
    def _refused(server, client):
        """The server listens on another port, so that the device exists."""
        with Pair() as pair:
            pair.serve(server, ["rping", "-s", "-a", server.address, "-p", "7999"])
            active = pair.start(client, ["rping", "-c", "-C", "1", "-a", server.address])
            if active.wait(SECONDS) in (None, 0) or "RDMA_CM_EVENT_REJECTED" not in active.output():
                pair.fail("the client is not told that nobody listens")

    def _perftest(self, server, client, program, options):
        """The program connects twice, and its client does not wait until the server listens for the second time. So our
        client waits (late.c), because an emulated server is slow. If it is even slower, the test tries again."""
        for _ in range(PERFTEST_TRIES - 1):
            if self._try_perftest(server, client, program, options, EARLY):
                return
        self._try_perftest(server, client, program, options)

    def _try_perftest(self, server, client, program, options, excuse=None):
        """The table has a row for each size. Few datagrams are sent, because one that finds no receive request is
        lost. Return False if the client connected too early."""
        self._port += 1
        size = "8" if "atomic" in program or "-a" in options else "1024"
        count, seconds = ("5", 2 * SECONDS) if "-a" in options else ("100", SECONDS)
        argv = [program, "-F", "-R", "-p", str(self._port), "-n", count, *options]
        if size != "8":
            argv += ["-s", size]
        with Pair() as pair:
            passive = pair.serve(server, argv)
            late = ["env", f"LD_PRELOAD={LATE}", f"LATE_MS={LATE_MS}"] if client.name == "uroce" else []
            active = pair.start(client, [*late, *argv, server.address])
            if excuse and active.wait(seconds) and re.search(excuse, active.output()):
                return False
            pair.expect(active, seconds, "client")
            pair.expect(passive, END_SECONDS, "server")
            if not re.search(rf"^ *{size} +\d+ ", active.output(), re.M):
                pair.fail("the client prints no result")
        return True
