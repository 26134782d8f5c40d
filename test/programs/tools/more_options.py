# SPDX-License-Identifier: BSD-3-Clause
"""Options of uroce's programs that no check elsewhere needs: each has the effect that its manual page says."""

import json
import os
import re
import sys

from harness.process import LocalHost, Namespace, Process, Running, ask, wait_until
from harness.report import CheckFailed
from harness.tools import UROCE_CTL, UROCE_RUN
from programs.share.share import SECONDS, UROCED, Uroced

FOLDER = os.path.dirname(UROCE_RUN)
TESTROCE = os.path.join(FOLDER, "testroce")
REMOTE_WRITE = os.path.join(FOLDER, "examples", "remote_write")
FORK = os.path.join(FOLDER, "examples", "fork")
SEND_TEST = os.path.join(FOLDER, "..", "test", "programs", "send_test")
ZOO = os.path.join(FOLDER, "..", "test", "zoo", "zoo")
PING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hosts", "ping.py")
PORT = 27900
WAIT = ["ibv_rc_pingpong", "-d", "uroce0", "-g", "0", "-p", str(PORT)]  # for a peer that does not come


def expect(condition, reason, *details):
    if not condition:
        raise CheckFailed(reason, [str(detail) for detail in details])


class MoreOptionsTest:
    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._space = Namespace("options")
        self._names = 0

    def run_all(self):
        for name, function in (("--help and --version", self._told), ("uroce-run --progress", self._progress),
                               ("uroce-run --explain", self._explain), ("uroce-run --inject", self._inject),
                               ("uroce-run --like", self._like), ("uroce-run --unfold", self._unfold),
                               ("uroce-run --check", self._check),
                               ("uroce-run --stores", self._stores), ("uroced --cc, --mtu, --isolated-mode", self._owner),
                               ("uroced --gateway and --route", self._routes), ("uroced --kernel", self._kernel),
                               ("uroced --kernel, a small MTU", self._small_kernel),
                               ("testroce's port", self._port),
                               ("testroce's test", self._test)):
            self._report.check(f"options: {name}", function)

    def _log(self):
        self._names += 1
        return os.path.join(self._work_dir, f"options-{self._names}.log")

    @staticmethod
    def _told():
        for program in ("uroce-run", "uroced", "uroce-ctl", "testroce"):
            for option, begin in (("--help", f"Usage: {program}"), ("--version", f"{program} ")):
                done = ask([os.path.join(FOLDER, program), option], SECONDS)
                expect(done.returncode == 0 and done.stdout.startswith(begin), f"{program} {option}", done.stdout, done.stderr)

    def _progress(self):
        """The helper is a thread of that name; with inline there is none."""
        for mode, helpers in (("inline", 0), ("hybrid", 1), ("dedicated", 1)):
            host = LocalHost(f"options-{mode}", self._work_dir, [*self._space.prefix, UROCE_RUN, "--port", "net_null0", "--ip",
                                                                 "10.9.3.1/24", "--progress", mode, "--"])
            server = host.start(WAIT)
            try:
                expect(wait_until(lambda: server.listens(PORT), SECONDS), mode, *server.story("server"))
                found = 0
                for task in os.listdir(f"/proc/{server.pid}/task"):
                    with open(f"/proc/{server.pid}/task/{task}/comm", encoding="ascii") as file:
                        found += file.read().strip() == "uroce"
                expect(found == helpers, f"{mode}: {found} helpers")
            finally:
                server.kill()

    @staticmethod
    def _explain():
        """test/zoo/check.py knows all that it says."""
        for explain, complains in (("--explain", True), ("--explain=no", False)):
            done = ask([UROCE_RUN, explain, "--local", "--", ZOO, "port_number"], SECONDS)
            said = "uroce: ibv_modify_qp: port_num is 2;" in done.stderr
            expect(done.returncode == 0 and said == complains, explain, done.stderr)

    @staticmethod
    def _inject():
        """test/zoo/inject.py asks for each kind of fault."""
        done = ask([UROCE_RUN, "--inject", "call=ibv_reg_mr,errno=ENOMEM", "--local", "--", "ibv_rc_pingpong"], SECONDS)
        expect(done.returncode == 1 and "uroce: injected: ibv_reg_mr fails with ENOMEM" in done.stderr and
               "Couldn't register MR" in done.stderr, done.stderr)

    @staticmethod
    def _like():
        """test/zoo/like.py compares all figures and errors."""
        done = ask([UROCE_RUN, "--like", "irdma", "--local", "--", "ibv_devinfo", "-v"], SECONDS)
        expect(done.returncode == 0 and re.search(r"max_sge:\s+6$", done.stdout, re.M) and
               re.search(r"max_srq:\s+0$", done.stdout, re.M), done.stdout, done.stderr)

    @staticmethod
    def _unfold():
        """test/zoo/unfold.py knows what it chooses."""
        done = ask([UROCE_RUN, "--unfold", "1..3", "--port", "net_null0", "--ip", "10.9.3.1/24", "--", ZOO, "port_number", "right"], SECONDS)
        expect(done.returncode == 0 and "0 of 3 seeds failed" in done.stderr, done.stdout, done.stderr)

    def _check(self):
        """test/zoo/check.py knows all that it finds."""
        suppressions = os.path.join(self._work_dir, "suppressions")
        with open(suppressions, "w", encoding="utf-8") as file:
            file.write("# a comment\n\nleak region_left()\nleak\n")
        for options, status, complains in ((["--check"], 0, True), (["--check=error"], 66, True), (["--check=no"], 0, False),
                                           (["--check=error", "--check-suppress", suppressions], 0, False)):
            done = ask([UROCE_RUN, *options, "--local", "--", ZOO, "region_left"], SECONDS)
            said = "uroce: check: leak: " in done.stderr
            expect(done.returncode == status and said == complains, options, done.returncode, done.stderr)
        # parent and child, each with a device of its own, end all of it; and what users copy is right
        for program in (FORK, SEND_TEST):
            done = ask([UROCE_RUN, "--check=error", "--local", "--", program], SECONDS)
            expect(done.returncode == 0 and "uroce: " not in done.stderr, program, done.returncode, done.stderr)
        with open(suppressions, "w", encoding="utf-8") as file:
            file.write("leek\n")
        done = ask([UROCE_RUN, "--check", "--check-suppress", suppressions, "--local", "--", ZOO, "region_left"], SECONDS)
        expect(done.returncode == 1 and f"check-suppress: {suppressions}:1: 'leek' is no rule of --check" in done.stderr, done.stderr)

    def _stores(self):
        """At its end a program tells its counters."""
        for way, counter in (("round", "tx_stored_round"), ("past-caches", "tx_stored_past_caches")):
            meet = os.path.join(self._work_dir, f"{way}.meet")
            with Running() as running:
                ends = [running.add(Process(
                    [UROCE_RUN, "--log-level", "debug", "--stores", way, "--mtu", "4200", "--port",
                     f"net_memif0,role={role},socket={self._work_dir}/{way}.sock", "--ip", f"10.9.3.{number}/24", "--", REMOTE_WRITE,
                     *options], self._log()))
                    for number, (role, options) in enumerate((("server", ["-s", meet]), ("client", [meet])), 1)]
                if any(end.wait(SECONDS) != 0 for end in ends):
                    running.fail("an end fails")
                stored = set(re.findall(r"tx_stored_\w+", "".join(end.output() for end in ends)))
                expect(stored == {counter}, way, stored)

    def _owner(self):
        path = os.path.join(self._work_dir, "options-isolated.sock")
        owner = Uroced(self._space, self._work_dir, None, "--port", "local0", "--ip", "10.9.3.1/24", "--mtu", "1200", "--cc", "swift",
                       f"--isolated={path}", "--isolated-mode", "0600", name="options-owner")
        owner.run()
        program = LocalHost("options-program", self._work_dir, [UROCE_RUN, "--socket", owner.socket, "--"]).start(WAIT)
        try:
            expect(os.stat(path).st_mode & 0o777 == 0o600, "the mode of the socket", oct(os.stat(path).st_mode))
            expect(wait_until(lambda: program.listens(PORT), SECONDS), "no program", *program.story("program"))
            shown = [json.loads(ask([UROCE_CTL, "-j", what, "show", "pid", str(program.pid)], SECONDS).stdout)
                     for what in ("congestion", "link")]
            expect(shown[0][0]["congestion-control"] == "swift", "congestion control", shown[0])
            expect(shown[1][0]["mtu"] == 1200, "the MTU", shown[1])
        finally:
            program.kill()
            owner.process.kill()

    def _routes(self):
        """A gateway that is in no network of the port is refused."""
        routes = ["--port", "net_null0", "--ip", "10.9.3.1/24", "--gateway", "10.9.3.254", "--route"]
        owner = Uroced(self._space, self._work_dir, None, *routes, "10.9.5.0/24 via 10.9.3.253", "--file-prefix",
                       f"options-{os.getpid()}", name="options-routes")
        owner.run()
        owner.process.kill()
        done = ask([UROCED, *routes, "10.9.5.0/24 via 10.9.6.253"], SECONDS)
        expect(done.returncode == 1 and "10.9.6.253" in done.stderr, "a lost gateway", done.stderr)

    def _kernel(self):
        """Two hosts with a memif link: their kernels share it with uroced. What the kernel's interface carries agrees with the
        port, and is no more than the driver of the interface can."""
        spaces = [self._space, Namespace("options2")]
        with Running() as running:
            for number, (space, role) in enumerate(zip(spaces, ("server", "client")), 1):
                running.add(Process([*space.prefix, UROCED, "--socket", f"{self._work_dir}/kernel-{number}.sock", "--mtu", "4200",
                                     "--port", f"net_memif0,role={role},socket={self._work_dir}/kernel.sock", "--kernel", "tap0",
                                     "--file-prefix", f"options-{os.getpid()}-{number}"], self._log()))
                if not wait_until(lambda number=number: ask([UROCED, "--status", "--socket", f"{self._work_dir}/kernel-{number}.sock"],
                                                            SECONDS).returncode == 0, SECONDS):
                    running.fail("uroced does not serve")
                expect(self._mtu_of_tap(space) == 1500, "the MTU for a port of 4200", self._mtu_of_tap(space))
                space.run("ip", "addr", "add", f"10.9.4.{number}/24", "dev", "tap0")
                space.run("ip", "link", "set", "tap0", "up")
            done = ask([*spaces[0].prefix, sys.executable, PING, "10.9.4.2", "1000"], SECONDS)
            if done.returncode != 0:
                running.fail(f"the kernels do not reach each other: {done.stdout}")
            for number in (1, 2):
                see = [UROCE_RUN, "--socket", f"{self._work_dir}/kernel-{number}.sock", "--", "ibv_devinfo", "-v"]
                if not wait_until(lambda argv=see, address=f"::ffff:10.9.4.{number}": address in ask(argv, SECONDS).stdout, SECONDS):
                    running.fail("the device does not have the kernel's address")
            meet = os.path.join(self._work_dir, "kernel.meet")
            ends = [running.add(Process([UROCE_RUN, "--socket", f"{self._work_dir}/kernel-{number}.sock", "--", REMOTE_WRITE, *options],
                                        self._log())) for number, options in enumerate((["-s", meet], [meet]), 1)]
            if any(end.wait(SECONDS) != 0 for end in ends):
                running.fail("a program fails")

    def _small_kernel(self):
        """The port carries less than the kernel's interface could."""
        space = Namespace("options3")
        owner = Uroced(space, self._work_dir, None, "--port", "net_null0", "--mtu", "1200", "--kernel", "tap0", "--file-prefix",
                       f"options-{os.getpid()}-3", name="options-kernel")
        owner.run()
        try:
            expect(self._mtu_of_tap(space) == 1200, "the MTU for a port of 1200", self._mtu_of_tap(space))
        finally:
            owner.process.kill()

    @staticmethod
    def _mtu_of_tap(space):
        return json.loads(ask([*space.prefix, "ip", "-j", "link", "show", "tap0"], SECONDS).stdout)[0]["mtu"]

    def _testroce(self, *options, text=""):
        done = ask([*self._space.prefix, TESTROCE, *options], SECONDS, text)
        expect(done.returncode == 0, "testroce fails", options, done.stdout, done.stderr)
        return done.stdout

    def _port(self):
        said = self._testroce("--port", "net_null0", "--ip", "10.9.3.1/24", "--gateway", "10.9.3.254", "--route",
                              "10.9.5.0/24 via 10.9.3.253", "--mtu", "2300", "--name", "other7", "-i", text="show device\nquit\n")
        expect("other7" in said and "path MTU up to 2048" in said, "another device", said)

    def _test(self):
        path = os.path.join(self._work_dir, "options.json")
        for options in (["--mode", "send", "--inline", "0", "--signal", "3", "--seed", "7", "--loss", "10000"],
                        ["--mode", "storage", "--region", "4M", "--in-capsule", "0", "--read-percent", "100"]):
            self._testroce("--pair", *options, "--verify", "--messages", "500", "--json", path)
            with open(path, encoding="utf-8") as file:
                result = json.load(file)
            expect(result["messages"] >= 500 and not result["wrong"], "wrong or missing messages", result)
