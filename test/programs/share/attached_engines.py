# SPDX-License-Identifier: BSD-3-Clause
"""Attached programs with several engines: each engine has rings to uroced, a packet socket, and direct channels to the other
programs' engines."""

import os
import re

from programs.run.engine_ports import CROWD, RARE, counter, judge_one_engine, run_crowd
from harness.process import wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, PerfTest, PingPong
from programs.share.share import SECONDS, ShareTest

ENGINES = os.path.join(os.path.dirname(CROWD), "engines")
NO_QUEUE = "has no queue of the port"  # the message of a program that cannot use the slot of an engine
DESCRIPTORS = range(10, 80)  # limits to try until all engines have slots
FURTHER = 16  # slots for further engines
MANY, FEWER = 40, 20  # programs; with two engines each, more than there are slots for


class AttachedEnginesTest(ShareTest):
    """Two programs at a time, each with one engine or several."""

    name = "engines"
    kills, few_kills = 60, 12

    def __init__(self, report, work_dir, rng):
        own_dir = os.path.join(work_dir, "engines")  # its uroced is another one than that of ShareTest
        os.mkdir(own_dir)
        super().__init__(report, own_dir, rng)
        self._engines = [1, 1]

    def _use(self, *engines):
        """Let the hosts have so many engines from now on: the server and the client."""
        self._engines = engines

    def _hosts(self, *where):
        hosts = []
        for place, engines in zip(where, self._engines):
            self._options = ["--engines", str(engines), "--log-level", "info"]
            hosts.append(self._host(place))
        return hosts

    def run_all(self):
        if not self._report.require("engines: uroced starts", self._owner.run):
            return
        counts = ((2, 2), (2, 1), (1, 2), (4, 3)) if self._report.complete else ((2, 1), (4, 3))
        programs = (PingPong([], 500, 16384), PingPong(["-e"], 500, 16384), PingPong([], 500, 2048, "ud"),
                    PerfTest("ib_write_bw", ["-q", "8", "-s", "65536"], 500), PerfTest("ib_send_bw", ["-q", "7"], 500),
                    PerfTest("ib_read_bw", ["-q", "5"], 500), PerfTest("ib_atomic_bw", [], 500))
        for number, engines in enumerate(counts):
            self._use(*engines)
            self._check(f"{engines}: packets arrive at their engine", self._crowd_of, "here", "here")
            for program in programs if self._report.complete else programs[number::len(counts)]:
                self._check(f"{engines}: {program.name}", self._run, program, "here", "here")
        self._use(2, 2)
        for server, client in (("here", "beyond"), ("beyond", "here")):
            self._check(f"{server} to {client}: packets arrive at their engine", self._crowd_of, server, client)
            self._check(f"{server} to {client}: ib_write_bw", self._run, PerfTest("ib_write_bw", ["-q", "8"], 500),
                        server, client)
        self._check("each engine has a slot and channels", self._slots)
        self._check("no memory for a slot", self._no_memory)
        self._check("no descriptors for a slot", self._no_descriptors)
        if self._report.complete:
            self._check_ways()
        else:
            self._check("packets go past uroced", self._past_uroced)
        self._check("everything comes back", self._comes_back)
        many = MANY if self._report.complete else FEWER
        self._check(f"{many} programs", self._many_engines, many)
        self._check("kills", self._kills)
        self._check("a stopped program", self._stopped, "here")
        for options in ([], ["-e"]) if self._report.complete else (["-e"],):
            self._check(f"uroced is killed, ib_send_bw {' '.join(options)}", self._owner_killed, options, "here")
        self._check("SIGTERM", self._terminated)

    def _crowd_of(self, *where):
        run_crowd(self._hosts(*where), os.path.join(self._work_dir, "crowd.sock"), [self._judge, self._judge])

    @staticmethod
    def _judge(output, stories):
        packets = counter(output, "rx_packets") + counter(output, "rx_loopback_packets")
        if packets == 0 or counter(output, "rx_crossed") > RARE * packets:
            raise CheckFailed("packets cross from engine to engine", stories)

    def _slots(self):
        """A program with three engines has three slots, and two programs have a channel for each pair of engines."""
        self._use(3, 2)
        before = self._owner.status()["direct_channels"]
        port = self._next_port()
        server = self._hosts("here")[0].start(["ibv_rc_pingpong", "-d", DEVICE, "-p", str(port)])
        try:
            if not wait_until(lambda: server.listens(port), SECONDS):
                raise CheckFailed("the server does not listen", server.story("server"))
            status = self._owner.status()
        finally:
            server.kill()
        slots = status["slots"]
        if status["processes"] != 1 or sorted(slot["engine"] for slot in slots) != [0, 1, 2] \
                or len({(slot["pid"], slot["qpn_first"]) for slot in slots}) != 1:
            raise CheckFailed("the engines have no slots", [str(status)])
        self._crowd_of("here", "here")
        made = self._owner.status()["direct_channels"] - before
        if made != 6:
            raise CheckFailed(f"{made} channels were made", [str(self._owner.status())])
        self._use(2, 2)

    def _address_space(self, engines):
        """Return the bytes of address space that a program with so many engines takes to attach."""
        self._use(engines)
        port = self._next_port()
        server = self._hosts("here")[0].start(["ibv_rc_pingpong", "-d", DEVICE, "-p", str(port)])
        try:
            if not wait_until(lambda: server.listens(port), SECONDS):
                raise CheckFailed("the server does not listen", server.story("server"))
            with open(f"/proc/{server.pid}/status", encoding="ascii") as file:
                return int(re.search(r"^VmPeak:\s+(\d+) kB$", file.read(), re.M).group(1)) * 1024
        finally:
            server.kill()

    def _no_memory(self):
        """A program that has no memory to map a second slot has no device, and disturbs no other."""
        limit = (self._address_space(1) + self._address_space(2)) // 2
        self._use(2, 2)
        here = self._hosts("here", "here")[0]
        crowded = self._host("here", "prlimit", f"--as={limit}").start(["ibv_devinfo"])
        if crowded.wait(SECONDS) != 1 or NO_QUEUE not in crowded.output():
            raise CheckFailed("the device is opened", crowded.story("ibv_devinfo"))
        done = here.start(["ibv_devinfo"])
        if done.wait(SECONDS) != 0:
            raise CheckFailed("the next program has no device", done.story("ibv_devinfo"))
        self._comes_back()

    def _no_descriptors(self):
        """However few descriptors a program may have: its device works, or it cannot be opened."""
        short = False  # a limit leaves an engine without a slot
        for limit in DESCRIPTORS:
            done, output, story = self._limited(limit, "ibv_devinfo")
            if done == 0:
                break
            if done is None or done < 0:
                raise CheckFailed(f"{limit} descriptors: the program does not end as it should", story)
            short = short or NO_QUEUE in output
        if not short:
            raise CheckFailed("no limit leaves an engine without a slot", story)
        done, _, story = self._limited(limit, ENGINES, "alone")
        if done != 0:
            raise CheckFailed(f"{limit} descriptors: the engines do not work", story)
        self._comes_back()

    def _limited(self, limit, *argv):
        """Run an attached program of four engines that may have so many descriptors. Return its status, output, story."""
        self._options = ["--engines", "4", "--log-level", "info"]
        program = self._host("here", "prlimit", f"--nofile={limit}").start(argv)
        try:
            return program.wait(SECONDS), program.output(), program.story("the program")
        finally:
            program.kill()

    def _many_engines(self, many):
        """The first programs have slots for their engines, the others one slot and one engine each, and all work."""
        waiting = []
        try:
            for _ in range(many):
                waiting.append(self._hosts("here")[0].start(
                    ["ibv_rc_pingpong", "-d", DEVICE, "-p", str(self._next_port())]))
            if not wait_until(lambda: self._owner.status()["processes"] == many, SECONDS):
                raise CheckFailed("not all programs attach", [str(self._owner.status()), *waiting[-1].story("last")])
            further = sum(slot["engine"] > 0 for slot in self._owner.status()["slots"])
            if not 0 < further <= FURTHER:
                raise CheckFailed(f"{further} slots are for further engines", [str(self._owner.status())])
            # These come last, so they have one engine each.
            run_crowd(self._hosts("here", "here"), os.path.join(self._work_dir, "crowd.sock"), [judge_one_engine, judge_one_engine])
            self._run(PingPong([], 300, 16384), "here", "here")
            self._run(PerfTest("ib_send_bw", ["-q", "4", "-s", "65536"], 300), "here", "here")
        finally:
            for process in waiting:
                process.kill()
        self._comes_back()
        # The slots have come back, too.
        self._crowd_of("here", "here")
