# SPDX-License-Identifier: BSD-3-Clause
"""An uroced ends, and its programs go on with the next one: it is replaced, restarted by a service manager, or killed."""

import os
import re
import signal

from harness.process import LocalHost, Namespace, ask, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN, PingPong, Side, run_pair
from programs.share.keeper import Keeper
from programs.share.share import SECONDS, Uroced

FIRST_PORT = 26000
TIMES = 10
SOME = 3  # in place of TIMES in each run but a complete one
NICE = 0  # of the programs that work all the time: an uroced that starts needs a CPU
TABLE = "uroce-resume-0"
ADDRESS = "10.9.6.1"
RESUMED = re.compile(r"resumed (\d+) of (\d+) programs in (\d+) ms")


class RestartTest:
    """Programs that trust each other, programs that do not, and one that talks to another host run through all ends."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "restart")
        os.mkdir(self._work_dir)
        self._here, self._there = Namespace("restart0"), Namespace("restart1")
        veth_pair(self._here, self._there, (ADDRESS, "10.9.6.2"))
        self._isolated = os.path.join(self._work_dir, "isolated.sock")
        self._owner = Uroced(self._here, self._work_dir, "veth0", f"--isolated={self._isolated}", "--log-level", "info")
        self._keeper = Keeper(self._owner.argv, self._work_dir)
        self._names = 0
        self._programs = []

    def run_all(self):
        if not self._report.require("restart: uroced starts", self._start):
            return
        times = TIMES if self._report.complete else SOME
        if self._report.require("restart: programs start", self._begin):
            self._check(f"--replace, {times} times", self._replaced, times)
            self._check(f"killed and started again, {times} times", self._started_again, signal.SIGKILL, times)
            self._check(f"ended and started again, {times} times", self._started_again, signal.SIGTERM, times)
            self._check("another program connects", self._connects)
            self._check("a wrong table", self._wrong)
        for program in self._programs:
            program.kill()

    def _check(self, name, function, *args):
        self._report.check(f"restart: {name}", function, *args)

    def _start(self, *more):
        if not self._keeper.start(SECONDS, *more):
            raise CheckFailed("uroced does not start", [self._keeper.log()])

    def _host(self, *options):
        self._names += 1
        prefix = self._there.prefix if "--netdev" in options else self._here.prefix
        return LocalHost(f"restart-{self._names}", self._work_dir, [*prefix, UROCE_RUN, *options, "--"])

    def _attached(self):
        return self._host("--socket", self._owner.socket)

    def _beyond(self):
        return self._host("--netdev", "veth1")

    def _run_pair(self, hosts, argv, port, ready):
        """Start a server and a client, which run until they are killed."""
        server = hosts[0].start(argv(None), NICE)
        self._programs.append(server)
        if not wait_until(lambda: ready(server, port), SECONDS):
            raise CheckFailed("the server does not listen", server.story("server"))
        self._programs.append(hosts[1].start(argv(ADDRESS), NICE))

    def _begin(self):
        def bw(port):
            argv = ["stdbuf", "-oL", "ib_write_bw", "-F", "-d", DEVICE, "-x", "1", "--run_infinitely", "-D", "1", "-p", str(port)]
            return lambda peer: argv + ([peer] if peer else [])

        for number, make in enumerate((self._attached, lambda: self._host(f"--isolated={self._isolated}"))):
            port = FIRST_PORT + number
            self._run_pair((make(), make()), bw(port), port, lambda server, at: server.listens(at))
        self._run_pair((self._attached(), self._beyond()), lambda peer: [
            "rping", "-v", *(["-c", "-C", "100000000"] if peer else ["-s", "-P"]), "-a", ADDRESS], 0,
            lambda server, _: self._owner.status()["cm_ports"] == 1)
        self._all_go_on()

    def _all_go_on(self):
        """Each program still runs, and the output of each client becomes longer."""
        clients = self._programs[1::2]
        lengths = [len(client.output()) for client in clients]
        for client, length in zip(clients, lengths):
            wait_until(lambda p=client, n=length: p.poll() is not None or len(p.output()) > n, SECONDS)
            if len(client.output()) == length:
                raise CheckFailed("a program does not go on", [*client.story("client"), self._keeper.log()])
        for program in self._programs:
            if program.poll() is not None:
                raise CheckFailed("a program has ended", [*program.story("program"), self._keeper.log()])

    def _judge(self, returned):
        """All programs were back before the owner moved packets, or soon after."""
        if not wait_until(lambda: self._owner.status()["returned"] == returned, SECONDS):
            raise CheckFailed("a program did not return", [str(self._owner.status()), self._keeper.log()])
        self._all_go_on()

    def _replaced(self, times):
        for _ in range(times):
            last = self._keeper.process
            self._start("--replace")
            if last.wait(SECONDS) != 0:
                raise CheckFailed("the replaced uroced fails", [self._keeper.log()])
            self._judge(5)
        if self._owner.status()["resumed"] != times:
            raise CheckFailed("not each uroced went on", [str(self._owner.status())])
        print("    longest time until programs were back:",
              max(int(found[3]) for found in RESUMED.finditer(self._keeper.log())), "ms")

    def _started_again(self, number, times):
        for _ in range(times):
            self._keeper.end(number)
            self._start()
            self._judge(5)

    @staticmethod
    def _run(server, client, port):
        run_pair(PingPong([], 200, 16384), Side(server, DEVICE, ADDRESS, 1), Side(client, DEVICE, ADDRESS, 1), port)

    def _connects(self):
        """The listener is known to the next owner, and new programs run beside those that are back."""
        self._programs.pop().kill()  # the other end has one connection manager
        done = ask([*self._there.prefix, UROCE_RUN, "--netdev", "veth1", "--", "rping", "-c", "-C", "3", "-a", ADDRESS],
                   SECONDS)
        if done.returncode != 0:
            raise CheckFailed("rping fails", [done.stdout, done.stderr])
        self._run(self._attached(), self._beyond(), FIRST_PORT + 9)

    def _wrong(self):
        """A table that an attacker has changed is thrown away: the programs get a fatal event, and new ones run."""
        os.pwrite(self._keeper.kept[TABLE], b"\xff" * 64, 600)
        self._keeper.end(signal.SIGKILL)
        self._start()
        if "its resume table is wrong" not in self._keeper.log():
            raise CheckFailed("the table is used", [self._keeper.log()])
        for program in self._programs[:4]:
            if program.wait(SECONDS) in (None, 0):
                raise CheckFailed("a program did not notice", program.story("program"))
        self._run(self._attached(), self._attached(), FIRST_PORT + 10)
