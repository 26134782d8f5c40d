# SPDX-License-Identifier: BSD-3-Clause
"""Many threads with thousands of queue pairs (qp_crowd.c), several engines of one device (engines.c), servers that
fork to save (saving.c), as many programs as a port takes (members.c), one that executes itself again (again.c), and
an XRC domain of several processes (xrc_shared.c, xrc_opens.c)."""

import os

from harness.process import LocalHost, Namespace, wait_until
from harness.report import CheckFailed
from harness.tools import UROCE_RUN
from programs.share.share import Uroced

FOLDER = os.path.normpath(os.path.join(os.path.dirname(UROCE_RUN), "..", "test", "programs"))
SECONDS = 150
MEMBERS = 256  # programs that a port takes
ISOLATED_MEMBERS = 64
# How often a program executes itself; an isolated one takes longer to start.
TIMES = {"attached": 150, "isolated": 60}
FEW_TIMES = {"attached": 30, "isolated": 12}


def schedules_by_session():
    """Return True if Linux schedules by session. Then uroced may get no CPU for seconds (doc/operator/uroced.md)."""
    try:
        with open("/proc/sys/kernel/sched_autogroup_enabled", encoding="ascii") as file:
            return file.read().strip() != "0"
    except FileNotFoundError:  # a kernel without autogroups
        return False


class CrowdsTest:
    """Each program alone on a port of its own, and as a pair of processes of one uroced, attached and isolated."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "crowds")
        os.mkdir(self._work_dir)
        self._here = Namespace("crowds")
        self._here.run("ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1")
        for number in range(2):
            self._here.run("ip", "link", "set", f"veth{number}", "up")
        self._here.run("ip", "addr", "add", "10.9.32.1/24", "dev", "veth0")
        self._isolated = f"{self._work_dir}/isolated.sock"
        self._owner = Uroced(self._here, self._work_dir, "veth0", f"--isolated={self._isolated}", "--file-prefix",
                             f"uroce-crowds-{os.getpid()}")

    def run_all(self):
        if self._report.only and "crowds" not in self._report.only:
            return
        alone = ("--port", "net_null0", "--ip", "10.9.32.9/24")
        self._check("64 threads with 2,048 queue pairs", "qp_crowd", "alone", alone)
        for engines in ("2", "4"):
            several = (*alone, "--engines", engines)
            self._check(f"{engines} engines: 64 threads with 2,048 queue pairs", "qp_crowd", "alone", several)
            self._check(f"{engines} engines: what they share", "engines", "alone", several)
        self._check("a server that forks to save", "saving", "alone", alone)
        if not self._report.require("crowds: uroced starts", self._owner.run):
            return
        try:
            for way, path in (("attached", f"--socket={self._owner.socket}"), ("isolated", f"--isolated={self._isolated}")):
                if self._report.complete or way == "isolated":
                    self._check(f"{way}: two processes with 2,048 queue pairs each", "qp_crowd", "pair", (path,))
                if self._report.complete or way == "attached":
                    self._check(f"{way}: 2 engines: two processes with 2,048 queue pairs each", "qp_crowd", "pair",
                                (path, "--engines", "2"))
                self._check(f"{way}: 2 engines: what they share", "engines", "alone", (path, "--engines", "2"))
                self._check(f"{way}: a server that forks to save", "saving", "pair", (path,))
                times = (TIMES if self._report.complete else FEW_TIMES)[way]
                self._check(f"{way}: a program executes itself {times} times", "again", str(times), (path,))
            self._check_xrc("attached", (f"--socket={self._owner.socket}",))
            self._check("isolated: XRC: another process's number is refused", "xrc_shared", "apart",
                        (f"--isolated={self._isolated}",))
            self._check_members()
        finally:
            self._owner.process.kill()
        self._check("local: two processes with 2,048 queue pairs each", "qp_crowd", "pair", ("--local",))
        self._check("local: a server that forks to save", "saving", "pair", ("--local",))
        self._check_xrc("local", ("--local",))

    def _check(self, name, program, how, options):
        self._report.check(f"crowds: {name}", self._run, program, how, options)

    def _check_xrc(self, way, options):
        self._check(f"{way}: an XRC domain of two processes", "xrc_shared", "data", options)
        self._check(f"{way}: XRC: the process with the queue is killed", "xrc_shared", "kill-queue", options)
        self._check(f"{way}: XRC: the process with the target is killed", "xrc_shared", "kill-target", options)
        self._check(f"{way}: XRC: threads open and close the domain", "xrc_opens", None, options)

    def _check_members(self):
        name = f"crowds: {MEMBERS} programs at once"
        if schedules_by_session():
            self._report.skip(name, "set kernel.sched_autogroup_enabled to 0 for it")
        else:
            self._report.check(name, self._members)

    def _members(self):
        """Programs fill the port, and write to each other: trusted ones, isolated ones, and from one kind to the other."""
        table = f"{self._work_dir}/members"
        if os.path.exists(table):
            os.unlink(table)
        trusted = self._start("members", ("--socket=" + self._owner.socket,), table, str(MEMBERS - ISOLATED_MEMBERS),
                              str(MEMBERS), "full")
        isolated = self._start("members", (f"--isolated={self._isolated}",), table, str(ISOLATED_MEMBERS), str(MEMBERS))
        for process in (trusted, isolated):
            status = process.wait(SECONDS)
            story = process.story("members")
            process.kill()
            if status != 0:
                isolated.kill()
                raise CheckFailed("hangs" if status is None else f"exit {status}", story)
        self._comes_back()

    def _start(self, program, options, *args):
        return LocalHost(program, self._work_dir, [*self._here.prefix, UROCE_RUN, *options, "--"]).start(
            [os.path.join(FOLDER, program), *args])

    def _run(self, program, how, options):
        """`how` is the program's argument, if it has one."""
        process = self._start(program, options, *([how] if how else []))
        status = process.wait(SECONDS)
        story = process.story(program)
        process.kill()
        if status != 0:
            raise CheckFailed("hangs" if status is None else f"exit {status}", story)
        self._comes_back()

    def _comes_back(self):
        if self._owner.process and self._owner.process.poll() is None and \
                not wait_until(self._owner.is_clean, SECONDS):
            raise CheckFailed("something does not come back", [str(self._owner.status())])
