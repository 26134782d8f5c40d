# SPDX-License-Identifier: BSD-3-Clause
"""testroce: every mode, with its bytes verified, between two processes over memif and within one."""

import json
import os
import subprocess

from harness.process import LocalHost, Namespace, wait_until
from harness.report import CheckFailed
from harness.tools import UROCE_RUN

TESTROCE = os.path.join(os.path.dirname(UROCE_RUN), "testroce")
PORT = "26000"
SECONDS = 60
MESSAGES = 2000

# Options of each test. As many messages as given, so that a slow machine does no less.
TESTS = [
    ["--mode", "write", "--size", "5000", "--qps", "3"],
    ["--mode", "write", "--size", "8", "--batch", "16"],
    ["--mode", "read", "--size", "5000", "--qps", "3"],
    ["--mode", "send", "--size", "5000", "--path-mtu", "4096"],
    ["--mode", "send", "--size", "40", "--batch", "4", "--qps", "20"],
    ["--mode", "atomic", "--qps", "3"],
    ["--mode", "latency", "--qps", "3"],
    ["--mode", "latency", "--op", "send", "--size", "3000"],
    ["--mode", "latency", "--op", "read", "--qps", "3"],
    ["--mode", "latency", "--op", "atomic", "--size", "8"],
]
ALONE = (TESTS[0], TESTS[4], TESTS[6])


class TestroceTest:
    """All checks; two of them over memif, the server for all tests."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "testroce")
        os.mkdir(self._work_dir)
        self._space = Namespace("testroce")

    def _host(self, role, cpu):
        return LocalHost(f"testroce-{role}", self._work_dir, self._space.prefix, cpu % os.cpu_count())

    def _port(self, role):
        number = 1 if role == "server" else 2
        return ["--port", f"net_memif0,socket={self._work_dir}/memif.sock,role={role},id=0", "--ip",
                f"10.9.9.{number}/24"]

    def _check(self, name, function, *args):
        self._report.check(f"testroce: {name}", function, *args)

    def run_all(self):
        server = self._host("server", 0).start([TESTROCE, *self._port("server"), "--listen", PORT])
        try:
            if not wait_until(lambda: server.listens(int(PORT)), SECONDS):
                self._report.fail("testroce: a server", server.output())
                return
            for options in TESTS:
                self._check(" ".join(options), self._pair, server, options)
            self._check("wrong options", self._wrong)
        finally:
            server.kill()
        for options in ALONE:
            self._check("alone: " + " ".join(options), self._alone, options)
        self._check("alone, with options for EAL", self._alone, TESTS[0], ["--no-huge", "-m", "256", "--no-pci", "--"])

    def _judge(self, process, path):
        """Its exit says whether bytes were right, its JSON how many messages there were."""
        status = process.wait(SECONDS)
        story = process.story("testroce")
        process.kill()
        if status != 0:
            raise CheckFailed("it hangs" if status is None else f"exit {status}", story)
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        if result["wrong"] or result["messages"] < MESSAGES:
            raise CheckFailed("messages are wrong or missing", [str(result)])

    def _pair(self, server, options):
        path = os.path.join(self._work_dir, "result.json")
        client = self._host("client", 1).start(
            [TESTROCE, *self._port("client"), "--connect", f"127.0.0.1:{PORT}", *options, "--verify", "--messages",
             str(MESSAGES), "--json", path])
        try:
            self._judge(client, path)
        except CheckFailed as failure:
            raise CheckFailed(str(failure), [*failure.details, *server.story("server")])
        if server.poll() is not None:
            raise CheckFailed("the server has ended", server.story("server"))

    def _alone(self, options, eal_options=()):
        path = os.path.join(self._work_dir, "result.json")
        process = self._host("alone", 0).start(
            [TESTROCE, *eal_options, "--port", "net_null0", "--ip", "10.9.9.1/24", *options, "--verify",
             "--messages", str(MESSAGES), "--json", path])
        self._judge(process, path)

    def _wrong(self):
        for options in (["--mode", "fly"], ["--size", "0"], ["--connect", "127.0.0.1:1", "--listen", "1"]):
            done = subprocess.run([TESTROCE, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=SECONDS)
            if done.returncode != 1 or not done.stderr.startswith("testroce: ") or done.stderr.count("\n") != 1:
                raise CheckFailed("not refused in one line", [str(options), done.stderr])
