# SPDX-License-Identifier: BSD-3-Clause
"""How long programs that talk to another host wait while uroced is replaced, or ends and is started again."""

import os
import signal

from harness.process import LocalHost, Namespace, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import UROCE_RUN
from harness.waits import Waits
from programs.share.keeper import Keeper
from programs.share.share import SECONDS, Uroced

HERE, THERE = "10.9.6.1", "10.9.6.2"
RPING = ["stdbuf", "-oL", "rping", "-v", "-S", "32", "-a", THERE]
TIMES = 10
SOME = 3  # in place of TIMES in each run but a complete one
NICE = 0
# The mark is 0.2 s, and the figures tell. This finds probes that become rare while no uroced is there, also on a machine with more
# work than CPUs.
MOST_SECONDS = 2


class RestartWaitsTest:
    """An attached and an isolated program ping a server at the other end of a veth."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "restart-waits")
        os.mkdir(self._work_dir)
        self._here, self._there = Namespace("waits0"), Namespace("waits1")
        veth_pair(self._here, self._there, (HERE, THERE))
        self._isolated = os.path.join(self._work_dir, "isolated.sock")
        self._owner = Uroced(self._here, self._work_dir, "veth0", f"--isolated={self._isolated}", "--log-level", "info")
        self._keeper = Keeper(self._owner.argv, self._work_dir)
        self._server = None
        self._clients = {}

    def run_all(self):
        times = TIMES if self._report.complete else SOME
        if self._report.require("restart: programs talk to another host", self._begin):
            self._report.check(f"restart: waits of --replace, {times} times", self._measure, self._replace, times)
            self._report.check(f"restart: waits of an end and a start, {times} times", self._measure, self._start_again, times)
        for program in [self._server, *self._clients.values()]:
            if program:
                program.kill()

    def _program(self, name, prefix, options, argv):
        return LocalHost(f"waits-{name}", self._work_dir, [*prefix, UROCE_RUN, *options, "--"]).start(argv, NICE)

    def _begin(self):
        if not self._keeper.start(SECONDS):
            raise CheckFailed("uroced does not start", [self._keeper.log()])
        self._server = self._program("server", self._there.prefix, ["--netdev", "veth1"], [*RPING, "-s", "-P"])
        for name, option in (("attached", f"--socket={self._owner.socket}"), ("isolated", f"--isolated={self._isolated}")):
            self._clients[name] = self._start_client(name, option)

    def _start_client(self, name, option):
        """rping prints nothing when it listens."""
        client = None

        def pings():
            nonlocal client
            client = client or self._program(name, self._here.prefix, [option], [*RPING, "-c"])
            if client.poll() is not None:
                client.kill()
                client = None
            return client and "ping data" in client.output()
        if not wait_until(pings, SECONDS, 0.1):
            raise CheckFailed("rping does not begin", self._server.story("server"))
        return client

    def _replace(self):
        last = self._keeper.process
        if not self._keeper.start(SECONDS, "--replace") or last.wait(SECONDS) != 0:
            raise CheckFailed("uroced is not replaced", [self._keeper.log()])

    def _start_again(self):
        self._keeper.end(signal.SIGTERM)
        if not self._keeper.start(SECONDS):
            raise CheckFailed("uroced does not start", [self._keeper.log()])

    def _measure(self, restart, times):
        with Waits(self._clients) as waits:
            for _ in range(times):
                restart()
                self._all_go_on()
        if max(waits.longest.values()) > MOST_SECONDS:
            raise CheckFailed("a program waits too long", [str(waits.longest), self._keeper.log()])

    def _all_go_on(self):
        if not wait_until(lambda: self._owner.status()["returned"] == len(self._clients), SECONDS):
            raise CheckFailed("a program did not return", [self._keeper.log()])
        for client in self._clients.values():
            length = len(client.output())
            wait_until(lambda p=client, n=length: p.poll() is not None or len(p.output()) > n, SECONDS)
            if client.poll() is not None or len(client.output()) == length:
                raise CheckFailed("a program does not go on", [*client.story("client"), self._keeper.log()])
