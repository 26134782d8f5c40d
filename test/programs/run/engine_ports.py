# SPDX-License-Identifier: BSD-3-Clause
"""Several engines of a device, each with a queue of the port: a packet socket of its own on a kernel interface."""

import contextlib
import os
import re

from harness.pairwise import choose
from harness.report import CheckFailed
from harness.tools import MULTICAST_GIDS, UROCE_RUN, PerfTest, PingPong
from programs.run.wires import WireTest

CROWD = os.path.normpath(os.path.join(os.path.dirname(UROCE_RUN), "..", "test", "programs", "qp_crowd"))
SECONDS = 150
# Engines of the server and of the client, by wire, and what runs with them
COUNTS = (("2", "2"), ("2", "1"), ("1", "2"), ("4", "3"))
FEW_COUNTS = (("1", "2"), ("4", "3"))
ENGINE_WIRES = ("memif", "veth")
RUNS = ("write", "read", "events", "datagrams", "group ipv4", "group ipv6", "asleep ipv4", "asleep ipv6", "server", "client")
RARE = 0.02  # share of the packets that may cross: the kernel joins a few to a packet of another engine


def counter(output, name):
    """Return a counter of those that a program prints at its end, with the log level info."""
    found = re.search(rf"\b{name} (\d+)$", output, re.M)
    return int(found.group(1)) if found else 0


def run_crowd(hosts, path, judges):
    """Run qp_crowd on two hosts, which meet at the socket `path`, and judge the output of each."""
    sides = [host.start([CROWD, role, path]) for host, role in zip(hosts, ("first", "second"))]
    statuses = [side.wait(SECONDS) for side in sides]
    stories = [line for side in sides for line in side.story("qp_crowd")]
    outputs = [side.output() for side in sides]
    for side in sides:
        side.kill()
    with contextlib.suppress(FileNotFoundError):  # the first program did not come so far
        os.unlink(path)
    if statuses != [0, 0]:
        raise CheckFailed(f"exit {statuses}", stories)
    for judge, output in zip(judges, outputs):
        judge(output, stories)


def judge_one_engine(output, stories):
    """Check that a port without a queue for each engine has one engine, and says so."""
    if "has queues for 1 engine: the device has no more, not" not in output:
        raise CheckFailed("no line says that the device has one engine", stories)
    # Those of a program of the same uroced count as packets of this device.
    if counter(output, "rx_packets") + counter(output, "rx_loopback_packets") == 0:
        raise CheckFailed("no packets arrive", stories)
    if counter(output, "rx_crossed") > 0:
        raise CheckFailed("packets cross in a device of one engine", stories)


class EnginePortsTest(WireTest):
    """Programs over a veth pair, with several engines on both sides."""

    def _check(self, name, function, *args):
        super()._check(f"{self._engines} engines: {name}", function, *args)

    def _use(self, server, client, *more):
        """Let the two sides have so many engines; the options are the client's."""
        self._engines = f"{server} and {client}"
        self._wire.set_options(["--log-level", "info"], (["--engines", server], ["--engines", client, *more]))

    def run_all(self):
        self._check_counts()
        # A bad network stands before the whole port, so the port has one queue.
        self._wire.set_options(["--engines", "2", "--log-level", "info", "--impair", "loss=0.0001"])
        self._check("a port with one queue", self._crowd, judge_one_engine)
        self._wire.set_options([])

    def _check_counts(self):
        """Run programs with each number of engines, and the others that are chosen of this wire."""
        every = COUNTS if self._report.complete else FEW_COUNTS
        chosen = choose(self._report.complete, RUNS, every, ENGINE_WIRES)
        for counts in every:
            self._use(*counts)
            self._check("packets arrive at their engine", self._crowd, self._judge_queues)
            for what, of, where in chosen:
                if (of, where) == (counts, self._wire.name):
                    self._check_run(what)

    def _check_run(self, what):
        """Run programs over the wire as it is now. Those that are killed have a queue pair for each engine."""
        programs = {"write": PerfTest("ib_write_bw", ["-q", "16"], 1000), "read": PerfTest("ib_read_bw", ["-q", "7"], 500),
                    "events": PerfTest("ib_send_lat", ["-e"], 500),
                    "datagrams": PerfTest("ib_send_bw", ["-c", "UD", "-s", "1024"], 400)}
        kind, _, family = what.partition(" ")
        if kind in programs:
            self._check(programs[kind].name, self._run_default_gid, programs[kind])
        elif kind == "group":
            program = PerfTest("ib_send_bw", ["-c", "UD", "-s", "1024", "-g", "-M", MULTICAST_GIDS[family]], 400)
            self._check(f"{family} {program.name}", self._pingpong, program, family)
        elif kind == "asleep":
            self._check(f"{family}: verified data, asleep between", self._pingpong, PingPong(["-e", "-m", "4096"], 300, 32768),
                        family)
        else:
            self._kill(PerfTest("ib_write_bw", ["-D", "60", "-q", "4"]), kind)

    def _crowd(self, judge):
        run_crowd(self._wire.hosts, os.path.join(self._wire.work_dir, "crowd.sock"), [judge, judge])

    @staticmethod
    def _judge_queues(output, stories):
        packets = counter(output, "rx_packets")
        if packets == 0 or counter(output, "rx_crossed") > RARE * packets:
            raise CheckFailed("packets cross from engine to engine", stories)
