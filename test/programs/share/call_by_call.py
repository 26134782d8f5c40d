# SPDX-License-Identifier: BSD-3-Clause
"""Programs of an uroced that are killed, or execute another program, at any of their system calls from the first hello
on: while they get their slots, packet sockets, direct channels or memifs, and while their helper sleeps or wakes."""

import os
import re
import shutil

from harness.process import LocalHost, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN, PingPong, gid_index, gids
from programs.share.share import SECONDS, ShareTest, Uroced

FOLDER = os.path.normpath(os.path.join(os.path.dirname(UROCE_RUN), "..", "test", "programs"))
AT_CALL = os.path.join(FOLDER, "at_call")
QP_FEW = os.path.join(FOLDER, "qp_few")
CALLS = 1500  # a program that makes more has waited for its peer
SAMPLE = 4   # calls of a program of each kind, unless all are wanted
AT_ONCE = 4  # programs that end at the same time
# If the scheduler gives uroced no CPU for seconds (doc/operator/uroced.md), packets are lost, and the queue pairs of a pair wait
# 4 s before they send them again. Such a program does not come to its call.
PATIENCE = 60
KILLED = 128 + 9
LAST_LINE = re.compile(r"^at_call: (.*), calls (\d+), last (\d+)$", re.M)


class Story:
    """A program that at_call runs, and another one that talks to it."""

    def __init__(self, test, way, engines, kind, *action):
        self._test = test
        self._hosts = [test.host_of(way, engines) for _ in range(2)]
        self._action = action
        self._kind = kind
        self._port = test.next_port()
        self._meeting = os.path.join(test.work_dir, f"few-{self._port}")
        self.peer = None
        self.victim = self._start(0, [AT_CALL, *map(str, action), *self._argv(0)])

    def _start(self, side, argv):
        return self._hosts[side].start(argv)

    def _argv(self, side):
        if self._kind == "alone":
            return ["ibv_devinfo", "-d", DEVICE]
        if self._kind == "pair":
            return [QP_FEW, ("first", "second")[side], self._meeting]
        argv = ["ibv_rc_pingpong", "-e", "-d", DEVICE, "-n", "20", "-g", str(self._test.gid_index), "-p", str(self._port)]
        return argv + (["127.0.0.1"] if side else [])

    def meet(self):
        """Start the other program, when it can reach the first one."""
        if self._kind == "alone":
            return
        if self._kind == "asleep":
            wait_until(lambda: self.victim.poll() is not None or self.victim.listens(self._port), SECONDS)
        if self.victim.poll() is None:
            self.peer = self._start(1, self._argv(1))

    def finish(self):
        """Wait for the end. Return how many calls the program has made, and if it ended as it should."""
        status = self.victim.wait(PATIENCE)
        told = LAST_LINE.search(self.victim.output())
        if status is None and not told and self._action[0] != "count" and self._kind != "alone":
            return 0, False
        if self._action[0] == "count" and self.peer and self.peer.wait(SECONDS) != 0:
            self._fail("the other program fails")
        if status is None or not told:
            self._fail("hangs" if status is None else f"exit {status}, and at_call does not say how far it came")
        was_killed = told.group(1) == "killed"
        if status != (KILLED if was_killed else 0):
            self._fail(f"exit {status}")
        return int(told.group(2)), told.group(1) != "ended"

    def end(self):
        """Kill what still runs."""
        for process in filter(None, (self.victim, self.peer)):
            process.kill()

    def _fail(self, reason):
        peer = self.peer.story("the other program") if self.peer else []
        raise CheckFailed(f"{' '.join(map(str, self._action))}: {reason}", [*self.victim.story("program"), *peer])


class CallByCallTest(ShareTest):
    """Each program ends at one call. Then uroced must have everything back."""

    name = "calls"

    def __init__(self, report, work_dir, rng, every_call):
        self.work_dir = os.path.join(work_dir, "calls")
        os.mkdir(self.work_dir)
        super().__init__(report, self.work_dir, rng)
        self._isolated = f"{self.work_dir}/isolated.sock"
        self._owner = Uroced(self._here, self.work_dir, "veth0", f"--isolated={self._isolated}", "--file-prefix",
                             f"uroce-calls-{os.getpid()}")
        self._every_call = every_call
        self.gid_index = None

    def host_of(self, way, engines):
        """Return a place that runs programs with so many engines, attached or isolated. Each has its own log."""
        socket = {"attached": f"--socket={self._owner.socket}", "isolated": f"--isolated={self._isolated}"}[way]
        return LocalHost(f"{way}-{self.next_port()}", self.work_dir,
                         [*self._here.prefix, UROCE_RUN, socket, "--engines", str(engines), "--"])

    def next_port(self):
        return self._next_port()

    def run_all(self):
        if self._report.only and self.name not in self._report.only:
            return
        if not self._report.require("calls: uroced starts", self._owner.run):
            return
        try:
            self.gid_index = gid_index(gids(self._host("here"), DEVICE), "10.9.6.1")
            actions = (("kill",), ("exec", shutil.which("ibv_devinfo")))
            for number, (way, engines, kind) in enumerate((
                    ("attached", 4, "alone"), ("attached", 2, "pair"), ("attached", 2, "asleep"), ("isolated", 2, "alone"),
                    ("isolated", 2, "pair"))):
                for action in actions if self._report.complete else actions[number % 2:][:1]:
                    self._check(f"{way}, {engines} engines: {kind}: {action[0]}", self._all, way, engines, kind, *action)
        finally:
            self._owner.process.kill()

    def _numbers(self, calls):
        """Choose the calls at which programs end: all, or one of each part of them."""
        if self._every_call:
            return range(1, calls + 1)
        return [self._rng.randrange(part * calls // SAMPLE, (part + 1) * calls // SAMPLE) + 1 for part in range(SAMPLE)]

    def _all(self, way, engines, kind, action, *args):
        # The numbers differ, because threads wait for each other in other ways.
        counts = [count for count, _ in self._at_once(way, engines, kind, [("count",)] * 2)]
        calls = min(*counts, CALLS)
        before = self._holds()
        refused = self._owner.status()["refused"]
        numbers = self._numbers(calls)
        came_so_far = 0
        for first in range(0, len(numbers), AT_ONCE):
            done = self._at_once(way, engines, kind,
                                 [(action, number, *args) for number in numbers[first:first + AT_ONCE]])
            came_so_far += sum(acted for _, acted in done)
            self._judge(before)
        if came_so_far < len(numbers) * 3 // 4:
            raise CheckFailed(f"only {came_so_far} of {len(numbers)} programs came so far", [f"{calls} calls"])
        if self._owner.status()["refused"] != refused:
            raise CheckFailed("uroced refused something", [str(self._owner.status())])
        self._run(PingPong([], 100, 16384), "here", "here")
        if self._every_call:
            print(f"{came_so_far} of {len(numbers)} programs came so far", flush=True)

    def _at_once(self, way, engines, kind, actions):
        """Run programs at the same time. Return for each how many calls it made, and if it was acted on."""
        stories = [Story(self, way, engines, kind, *action) for action in actions]
        try:
            for story in stories:
                story.meet()
            return [story.finish() for story in stories]
        finally:
            for story in stories:
                story.end()

    def _holds(self):
        """Return how many descriptors uroced has, and how many mappings of memory that it shares."""
        self._comes_back()
        with open(f"/proc/{self._owner.process.pid}/maps", encoding="utf-8") as file:
            shared = sum("memfd:" in line for line in file)
        return self._owner.descriptors(), shared

    def _judge(self, before):
        """Check that uroced runs, and that the programs have left nothing there."""
        if self._owner.process.poll() is not None:
            raise CheckFailed("uroced has ended", self._owner.process.story("uroced"))
        if not wait_until(lambda: self._holds() == before, SECONDS):
            raise CheckFailed("uroced keeps descriptors or memory", [f"{before} before, {self._holds()} now"])
        self._no_sockets_left(self._owner)
