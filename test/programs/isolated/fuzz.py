# SPDX-License-Identifier: BSD-3-Clause
"""Run a fuzzer of uroced's sockets, by several users at once, beside a pair of trusted programs that measures
latency."""

import os
import re
import signal
import statistics
import sys
import time

from harness.process import LocalHost, Namespace, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN, PerfTest, Side, gid_index, gids, run_pair
from programs.share.operate import expect
from programs.share.share import SECONDS, Uroced

FUZZER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fuzz_uroced.py")
FIRST_PORT = 29000
FUZZ_SECONDS = 20
INTERFACES = 1000
PAIRS_MIN = 8           # pairs of windows that are measured at least
ITERATIONS = 1000
TIMES = 1.5             # limit of the median latency with the fuzzer, relative to that without
USERS = (65534, 65534, 20001, 20002)


class Latency(PerfTest):
    """A run of ib_send_lat. It sleeps while it waits, so that the fuzzer gets a CPU."""

    def __init__(self):
        super().__init__("ib_send_lat", ["-e"], ITERATIONS)
        self.medians = []

    def judge(self, server, client):
        super().judge(server, client)
        row = re.search(r"^ *\d+ +\d+ +[\d.]+ +[\d.]+ +([\d.]+) ", client, re.M)
        if not row:
            raise CheckFailed("the client printed no median", client.splitlines())
        self.medians.append(float(row.group(1)))


class FuzzTest:
    """All packets of the pair pass through uroced, so the pair waits for uroced as it would with a remote peer."""

    def __init__(self, report, work_dir, rng):
        self._report = report
        self._seed = rng.getrandbits(32)
        self._work_dir = os.path.join(work_dir, "fuzz")
        os.mkdir(self._work_dir)
        for path in (work_dir, self._work_dir):
            os.chmod(path, 0o755)
        self._here = Namespace("fuzz")
        self._here.run("ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1")
        for number in range(2):
            self._here.run("ip", "link", "set", f"veth{number}", "up")
        self._here.run("ip", "addr", "add", "10.9.4.1/24", "dev", "veth0")
        self._add_interfaces()
        self._socket = f"{self._work_dir}/isolated.sock"
        self._owner = Uroced(self._here, self._work_dir, "veth0", f"--isolated={self._socket}", "--hand-over", "owner",
                             "--file-prefix", f"uroce-fuzz-{os.getpid()}")
        self._names = 0
        self._fuzzers = []

    def _add_interfaces(self):
        """Make as many interfaces as a host has that runs many containers."""
        path = f"{self._work_dir}/interfaces"
        with open(path, "w", encoding="ascii") as batch:
            for number in range(INTERFACES // 2):
                batch.write(f"link add more{number} type veth peer name rest{number}\n"
                            f"addr add 10.8.{number // 250}.{number % 250 + 1}/32 dev more{number}\n")
        self._here.run("ip", "-batch", path)

    def run_all(self):
        if not self._report.require("fuzz: uroced starts", self._owner.run):
            return
        self._report.check(f"fuzz: {FUZZ_SECONDS} s of uroced's sockets, seed {self._seed}", self._fuzz)
        self._report.check("fuzz: everything comes back", self._comes_back)
        self._owner.process.kill()

    def _start(self):
        """The fuzzers have idle priority: they must disturb through uroced's time, not by the CPU that they use."""
        self._fuzzers = []
        for index, uid in enumerate(USERS):
            user = ["setpriv", "--reuid", str(uid), "--regid", "nogroup", "--clear-groups"]
            self._run_fuzzer(user, self._socket, "isolated", index)
        self._run_fuzzer([], self._owner.socket, "trusted", len(USERS))

    def _run_fuzzer(self, user, path, who, index):
        host = LocalHost(f"fuzz-{index}", self._work_dir, ["chrt", "--idle", "0", *user])
        self._fuzzers.append(host.start([sys.executable, FUZZER, path, who, f"{self._seed}-{index}"]))

    def _signal(self, number):
        for fuzzer in self._fuzzers:
            if fuzzer.poll() is None:
                os.killpg(fuzzer.pid, number)

    def _side(self):
        self._names += 1
        host = LocalHost(f"fuzz-pair-{self._names}", self._work_dir,
                         [*self._here.prefix, UROCE_RUN, "--socket", self._owner.socket, "--"])
        return Side(host, DEVICE, "10.9.4.1", self._index)

    def _fuzz(self):
        """Measure with and without the fuzzer in turns, because other load of the machine affects both."""
        self._index = 0
        self._index = gid_index(gids(self._side().host, DEVICE), "10.9.4.1")
        windows = {True: Latency(), False: Latency()}
        port = FIRST_PORT
        self._start()
        try:
            end = time.monotonic() + FUZZ_SECONDS
            while time.monotonic() < end or len(windows[False].medians) < PAIRS_MIN:
                for fuzzing, program in windows.items():
                    self._signal(signal.SIGCONT if fuzzing else signal.SIGSTOP)
                    port += 1
                    run_pair(program, self._side(), self._side(), port)
            for fuzzer in self._fuzzers:  # a fuzzer that has ended sends nothing
                expect(fuzzer.poll() is None, "a fuzzer has ended", *fuzzer.story("fuzzer"))
        finally:
            self._signal(signal.SIGCONT)
            for fuzzer in self._fuzzers:
                fuzzer.kill()
        expect(self._owner.process.poll() is None, "uroced has ended", *self._owner.process.story("uroced"))
        status = self._owner.status()
        medians = [statistics.median(windows[fuzzing].medians) for fuzzing in (True, False)]
        print(f"fuzz: {len(windows[True].medians)} windows each, half a round trip {medians[0]} us with the fuzzer, "
              f"{medians[1]} us without; {status['refused']} refused, {status['attached']} attached", flush=True)
        expect(status["refused"] > 100 and status["attached"] > 100, "there was no fuzzing", status)
        expect(medians[0] <= TIMES * medians[1], "the fuzzer delays others", windows[True].medians,
               windows[False].medians)

    def _comes_back(self):
        expect(wait_until(self._owner.is_clean, SECONDS), "something does not come back", self._owner.status())
