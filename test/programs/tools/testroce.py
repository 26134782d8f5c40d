# SPDX-License-Identifier: BSD-3-Clause
"""testroce: every mode, with verified bytes, between two processes over memif and within one process."""

import csv
import json
import os
import re
import shutil
import subprocess

from harness.process import LocalHost, Namespace, ask, start, wait_until
from harness.report import CheckFailed
from harness.tools import UROCE_RUN

TESTROCE = os.path.join(os.path.dirname(UROCE_RUN), "testroce")
PORT = "26000"
SECONDS = 60
MESSAGES = 2000

# Options of tests between two processes. The number of messages is given, so that a slow machine tests no less.
TESTS = [
    ["--mode", "send", "--size", "40", "--batch", "4", "--qps", "20"],
    ["--mode", "read", "--size", "5000", "--qps", "3"],
]
ALONE_PORT = ["--port", "net_null0", "--ip", "10.9.9.1/24"]
ALONE = (TESTS[0], ["--mode", "storage", "--region", "4M"])

# Values that the prompt gets for each test within one process.
AT_PROMPT = [
    {"mode": "write", "size": 5000, "qps": 3, "mtu": 4096},
    {"mode": "write", "size": 8, "batch": 16},
    {"mode": "read", "size": 5000, "qps": 3},
    {"mode": "send", "size": 5000, "qps": 2},
    {"mode": "send", "size": 3000, "loss": 10000},
    {"mode": "read", "size": 3000, "loss": 10000},
    {"mode": "atomic", "size": 8, "qps": 3},
    {"mode": "latency", "op": "write", "size": 16, "qps": 3},
    {"mode": "latency", "op": "send", "size": 3000},
    {"mode": "latency", "op": "read", "size": 100, "qps": 3},
    {"mode": "latency", "op": "atomic", "size": 8},
    {"mode": "source", "size": 3000},
    {"mode": "incast", "size": 3000, "qps": 8},
    {"mode": "storage", "size": 4096, "region": "4M", "qps": 2},
    {"mode": "storage", "size": 4096, "region": "4M", "in-capsule": 0, "read-percent": 20},
    {"mode": "storage", "size": 20000, "region": "4M", "depth": 8, "qps": 3, "mtu": 4096},
    {"mode": "storage", "size": 5000, "region": "4M", "in-capsule": 8192, "loss": 10000},
    {"mode": "sink", "size": 3000, "verify": "off"},
    {"mode": "null", "size": 3000, "verify": "off"},
]
SWEEP_ROUNDS = 2
# Some labels of the x axes of a sweep's plots.
SWEEP_LABELS = {"bandwidth": {"64 B", "4 KiB", "64 KiB", "1 MiB"}, "rate-qps": {"1", "1024"}, "rate-depth": {"1", "256"},
                "latency": {"50 %", "99 %", "99.99 %"}}
STORES = ["auto", "round", "past-caches"]  # how long packets are stored in memif's memory
DEFAULTS = {"qps": 1, "depth": 64, "mtu": 1024, "batch": 1, "verify": "on", "region": 0, "loss": 0, "in-capsule": 4096,
            "read-percent": 70}


class Prompt:
    """A testroce that takes commands."""

    def __init__(self, argv, log_path):
        self._log_path = log_path
        with open(log_path, "wb") as log:
            self._popen = start(argv, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT)

    def say(self, command):
        self._popen.stdin.write(command.encode() + b"\n")
        self._popen.stdin.flush()

    def output(self):
        with open(self._log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def expect(self, pattern, count=1, again=None):
        """Wait until the output has so many matches. `again` is a command to repeat until then."""
        def found():
            if again:
                self.say(again)
            return len(re.findall(pattern, self.output())) >= count or self._popen.poll() is not None
        if not wait_until(found, SECONDS, 0.1) or len(re.findall(pattern, self.output())) < count:
            raise CheckFailed(f"the prompt does not show {count} of {pattern}", self.output().splitlines()[-30:])

    def end(self):
        """Return the exit status."""
        try:
            self._popen.communicate(timeout=SECONDS)
            return self._popen.returncode
        finally:
            self._popen.kill()
            self._popen.wait()


class TestroceTest:
    """All checks. Two testroce are connected by memif; the server serves all tests."""

    name = "testroce"

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, self.name)
        os.mkdir(self._work_dir)
        self._space = Namespace(self.name)

    def _host(self, role, cpu):
        return LocalHost(f"{self.name}-{role}", self._work_dir, self._space.prefix, cpu % os.cpu_count())

    def _port(self, role):
        number = 1 if role == "server" else 2
        return ["--port", f"net_memif0,socket={self._work_dir}/memif.sock,role={role},id=0", "--ip",
                f"10.9.9.{number}/24"]

    def _check(self, name, function, *args):
        self._report.check(f"{self.name}: {name}", function, *args)

    def run_all(self):
        server = self._host("server", 0).start([TESTROCE, *self._port("server"), "--listen", PORT])
        try:
            if not wait_until(lambda: server.listens(int(PORT)), SECONDS):
                self._report.fail("testroce: a server", server.output())
                return
            for options in TESTS:
                self._check(" ".join(options), self._pair, server, options)
            self._check(f"{len(AT_PROMPT)} tests at the prompt", self._prompt, self._tests_at_prompt)
            self._check("a test that is watched and stopped", self._prompt, self._watched)
            self._check("wrong options", self._wrong)
        finally:
            server.kill()
        for way in STORES:
            self._check(f"--stores {way}", self._stores, way)
        for options in ALONE:
            self._check("alone: " + " ".join(options), self._alone, options)
        self._check("a pair: --ablation", self._ablation)
        self._check("alone: --sweep", self._sweep)
        self._check("alone, with options for EAL", self._alone, TESTS[0],
                    ["--no-huge", "-m", "256", "--no-pci", "--"])

    def _judge(self, process, path):
        """The exit status says if the bytes were right, the JSON how many messages there were."""
        status = process.wait(SECONDS)
        story = process.story("testroce")
        process.kill()
        if status != 0:
            raise CheckFailed("testroce hangs" if status is None else f"exit {status}", story)
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

    def _stores(self, way):
        """Both sides store long packets in one way: a WRITE's by the client, a READ's by the server."""
        forced = ["--stores", way]
        server = self._host("server", 0).start([TESTROCE, *self._port("server"), *forced, "--listen", PORT])
        try:
            if not wait_until(lambda: server.listens(int(PORT)), SECONDS):
                raise CheckFailed("a server", server.output())
            for mode in ("write", "send", "read"):
                self._pair(server, ["--mode", mode, "--size", "64K", "--path-mtu", "4096", *forced])
        finally:
            server.kill()

    def _alone(self, options, eal_options=()):
        path = os.path.join(self._work_dir, "result.json")
        process = self._host("alone", 0).start(
            [TESTROCE, *eal_options, *ALONE_PORT, *options, "--verify", "--messages", str(MESSAGES), "--json", path])
        self._judge(process, path)

    def _series(self, *options):
        """Check the output of a series of short tests."""
        process = LocalHost("testroce-series", self._work_dir, self._space.prefix).start(
            [TESTROCE, "--seconds", "0.01", *options])
        status = process.wait(2 * SECONDS)
        story = process.story("testroce")
        process.kill()
        if status != 0:
            raise CheckFailed("testroce hangs" if status is None else f"exit {status}", story)
        return process.output()

    def _ablation(self):
        """The table has a row with all optimisations, one without each, and one without any. The figures of such
        short tests mean nothing."""
        rows = re.findall(r"^\| with(?:out)? ([a-z-]+) +\|(.*)\|$", self._series("--pair", "--ablation"), re.M)
        names = [name for name, _ in rows]
        if names[:1] != ["all"] or names[-1:] != ["any"] or len(set(names)) < 5:
            raise CheckFailed("the rows differ", [str(rows)])
        for name, cells in rows:
            if not all(float(cell.split()[0]) >= 0 for cell in cells.split("|")):
                raise CheckFailed("a figure is missing", [name, cells])

    def _sweep(self):
        """The files agree with each other. Plots exist if gnuplot is installed."""
        folder = os.path.join(self._work_dir, "sweep")
        output = self._series(*ALONE_PORT, "--sweep", folder, "--repeat", str(SWEEP_ROUNDS))
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
            tests = [json.loads(line) for line in file]
        if len(tests) < 40 * SWEEP_ROUNDS:
            raise CheckFailed("tests are missing", [str(len(tests))])
        for figure, labels in SWEEP_LABELS.items():
            self._sweep_figure(folder, figure, labels)
        self._sweep_range(folder, tests)
        if "goodput against loss is not among them" not in output:
            raise CheckFailed("the report does not say why the plot over loss is missing", output.splitlines()[-5:])
        if not shutil.which("gnuplot") and "no plots: gnuplot" not in output:
            raise CheckFailed("the report does not say that gnuplot is missing", output.splitlines()[-5:])

    @staticmethod
    def _sweep_figure(folder, figure, labels):
        """Every point has a median within its range, and the plot shows its label. On a busy machine some of such short
        tests move nothing."""
        path = os.path.join(folder, figure)
        with open(path + ".csv", encoding="utf-8") as file:
            points = list(csv.DictReader(file))
        if not any(float(point["median"]) > 0 for point in points) or not all(
                0 <= float(point["least"]) <= float(point["median"]) <= float(point["most"]) for point in points):
            raise CheckFailed(f"{figure}.csv lacks a median or its range", [str(point) for point in points])
        if not labels <= {point["label"] for point in points}:
            raise CheckFailed(f"{figure}.csv has other labels", [str(point["label"]) for point in points])
        with open(path + ".gnuplot", encoding="utf-8") as file:
            if "\nplot $series0 using 1:2:3:4 with yerrorlines " not in file.read():
                raise CheckFailed(f"{figure}.gnuplot does not plot")
        if shutil.which("gnuplot"):
            with open(path + ".svg", encoding="utf-8") as file:
                texts = set(re.findall(r">([^<>]+)<", file.read()))
            if not labels <= {text.strip() for text in texts}:
                raise CheckFailed(f"{figure}.svg has other labels", sorted(texts))

    @staticmethod
    def _sweep_range(folder, tests):
        """The range of a point is that of the rounds of its test."""
        with open(os.path.join(folder, "bandwidth.csv"), encoding="utf-8") as file:
            point = next(point for point in csv.DictReader(file) if (point["series"], point["label"]) == ("READ", "4 KiB"))
        rounds = [test["gbps"] for test in tests if (test["mode"], test["size"]) == ("read", 4096)]
        differences = [abs(float(point["least"]) - min(rounds, default=0)), abs(float(point["most"]) - max(rounds, default=0))]
        if len(rounds) != SWEEP_ROUNDS or max(differences) > 1e-4:
            raise CheckFailed("the range of a point is not that of its tests", [str(point), str(rounds)])

    def _prompt(self, function):
        path = os.path.join(self._work_dir, "prompt.log")
        prompt = Prompt([*self._space.prefix, TESTROCE, *self._port("client"), "--connect",
                         f"127.0.0.1:{PORT}", "-i"], path)
        try:
            function(prompt)
        finally:
            prompt.say("quit")
            status = prompt.end()
        if status != 0:
            lines = prompt.output().splitlines()
            raise CheckFailed(f"exit {status}", [line for line in lines if "error: " in line] + lines[-30:])

    @staticmethod
    def _tests_at_prompt(prompt):
        prompt.say(f"set messages {MESSAGES}")
        for test in AT_PROMPT:
            for name, value in {**DEFAULTS, **test}.items():
                prompt.say(f"set {name} {value}")
            prompt.say("start")
            prompt.say("wait")
        verified = sum(test.get("verify") != "off" for test in AT_PROMPT)
        prompt.expect(r"verified: all right", verified)
        prompt.expect(rf"  {MESSAGES} messages in ", len(AT_PROMPT))

    @staticmethod
    def _watched(prompt):
        """The test has no end of its own; the prompt stays usable meanwhile."""
        for command in ("help", "show device", "show plan", "set mode write", "set qps 2", "start", "start"):
            prompt.say(command)
        prompt.expect(r"QP 0x[0-9a-f]{6} RTS +[1-9]\d* messages", 2, again="show qp")
        prompt.expect(r"  [1-9]\d* messages in ", again="show stats")
        for command in ("clear stats", "set progress inline", "show stages", "stop", "stop", "set progress inline",
                        "show device", "set nothing 1", "set size 0", f"set messages {MESSAGES}", "set stages on",
                        "start", "wait", "show stages", "show port info all", "show port stats all", "set verbose 1",
                        "start tx_first"):
            prompt.say(command)
        for pattern in ("set mode MODE", "progress hybrid", "error: a test is running", "error: no test is running",
                        "progress inline,", "Bad arguments", "error: size: '0'", "stages are not looked at",
                        r"transport +[0-9.]+%", r"tx_packets +[1-9]", "error: no packets are printed",
                        "error: nothing is forwarded"):
            prompt.expect(pattern)
        prompt.expect("path MTU up to", 3)

    def _wrong(self):
        for options in (["--mode", "fly"], ["--size", "0"], ["--connect", "127.0.0.1:1", "--listen", "1"]):
            done = ask([TESTROCE, *options], SECONDS)
            if done.returncode != 1 or not done.stderr.startswith("testroce: ") or done.stderr.count("\n") != 1:
                raise CheckFailed("the options were not refused in one line", [str(options), done.stderr])
