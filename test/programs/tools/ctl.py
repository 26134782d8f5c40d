# SPDX-License-Identifier: BSD-3-Clause
"""uroce-ctl: JSON by schema, metrics, the terminal, congestion control, doctor, and captures of queue pairs."""

import fcntl
import glob
import http.client
import json
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import termios

from harness.process import LocalHost, Namespace, Process, ask, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_CTL, UROCE_RUN
from programs.cm.rdmacm import has_our_threads, wait_until_quiet
from programs.tools.prometheus_text import parse
from programs.share.share import SECONDS, Uroced

SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "doc", "schema")
WATCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "config", "watch")
RULES, DASHBOARD = os.path.join(WATCH, "uroce-rules.yml"), os.path.join(WATCH, "uroce-dashboard.json")
FIRST_PORT = 25300
CM_PORT = 7175
DEBIANS_PYTHON = "/usr/bin/python3"
COMMANDS = ("dev", "link", "resource", "resource show qp", "resource show cq", "resource show mr", "resource show pd",
            "resource show srq", "resource show ctx", "resource show cm_id", "statistic", "congestion", "doctor")
CHECK_SCHEMA = """
import json, sys, jsonschema
with open(sys.argv[1]) as file: schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
errors = list(jsonschema.Draft202012Validator(schema).iter_errors(json.load(sys.stdin)))
for error in errors: print(error.message, list(error.absolute_path))
sys.exit(bool(errors))
"""
CHECK_METRICS = """
import sys
from prometheus_client.parser import text_string_to_metric_families
print(sum(len(family.samples) for family in text_string_to_metric_families(sys.stdin.read())))
"""
UNPRIVILEGED = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]
HUGE_PAGES = 64
SLOWLY = ("--impair", "delay=5ms")  # so that the programs sleep most of the time
PACKETS = 200


def expect(condition, reason, *details):
    if not condition:
        raise CheckFailed(reason, [str(detail) for detail in details])


def has_module(name):
    """Return True if Debian's Python has a module."""
    return subprocess.run([DEBIANS_PYTHON, "-c", f"import {name}"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def run_ctl(*argv, prefix=()):
    done = ask([*prefix, UROCE_CTL, *argv], SECONDS)
    expect(done.returncode == 0, f"uroce-ctl {' '.join(argv)} fails", done.stderr)
    return done.stdout


def show(*argv):
    return json.loads(run_ctl("-j", *argv))


class CtlTest:
    """Two pairs of programs run during all checks: one between two programs of an uroced, and one between it and a
    program with a port of its own, at the other end of a veth."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "ctl")
        os.mkdir(self._work_dir)
        self._here, self._there = Namespace("ctl0"), Namespace("ctl1")
        veth_pair(self._here, self._there, ("10.9.31.1", "10.9.31.2"), mtu=1500)
        self._prefix = f"uroce-ctl-{os.getpid()}"
        self._metrics = os.path.join(self._work_dir, "metrics.sock")
        self._captured = self._free_pages() >= HUGE_PAGES
        capture = ["--capture", "all"] if self._captured else []
        self._owner = Uroced(self._here, self._work_dir, "veth0", "--file-prefix", self._prefix,
                             f"--metrics={self._metrics}", *SLOWLY, *capture)
        self._running = []
        self._pairs = {}

    @staticmethod
    def _free_pages():
        with open("/proc/meminfo", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("HugePages_Free"))

    def run_all(self):
        if self._report.only and "ctl" not in self._report.only:
            return
        try:
            if not self._report.require("ctl: programs run", self._start):
                return
            self._json()
            self._check("shared receive queues, contexts and connections", self._other_objects)
            self._check("what is not there is an error", self._not_there)
            self._check("why", self._why)
            self._check("monitor", self._monitor)
            self._check("metrics", self._metrics_of_all)
            self._if_module("prometheus_client", "metrics by Prometheus' own parser", self._metrics_by_debian)
            self._check("uroced answers GET /metrics", self._scraped)
            self._check("the alert rules and the dashboard name what uroced answers", self._watched)
            if shutil.which("promtool"):
                self._check("promtool accepts the alert rules", self._rules)
            else:
                self._report.skip("ctl: promtool", "no promtool; config/setup.sh test")
            self._check("lines fit a terminal", self._columns)
            self._check("colours", self._colours)
            self._check("congestion control of a program", self._congestion)
            self._check("congestion control of queue pairs that send", self._algorithms)
            self._check("congestion control: what is refused", self._refused)
            self._check("congestion control of a stopped program", self._stopped)
            self._check("doctor", self._doctor)
            self._captures()
        finally:
            for process in self._running:
                process.kill()
            shutil.rmtree(f"/var/run/dpdk/{self._prefix}", ignore_errors=True)

    def _check(self, name, function, *args):
        self._report.check(f"ctl: {name}", function, *args)

    def _if_module(self, module, name, function, *args):
        if has_module(module):
            self._check(name, function, *args)
        else:
            self._report.skip(f"ctl: {name}", f"no {module}; config/setup.sh test")

    # ---- the programs ----

    def _program(self, name, prefix, options, argv):
        process = LocalHost(name, self._work_dir, [*prefix, UROCE_RUN, *options, "--"]).start(argv)
        self._running.append(process)
        return process

    def _pair(self, name, port, address, other, other_options):
        """Start ibv_rc_pingpong for longer than the test; return the processes of both sides."""
        argv = ["ibv_rc_pingpong", "-d", DEVICE, "-e", "-s", "20000", "-n", "10000000", "-p", str(port)]
        attach = ("--socket", self._owner.socket)
        server = self._program(f"{name}-server", self._here.prefix, attach, [*argv, "-g", "1"])
        expect(wait_until(lambda: server.listens(port), SECONDS), "no server", *server.story("server"))
        client = self._program(f"{name}-client", other.prefix, other_options or attach, [*argv, "-g", "1", address])
        self._pairs[name] = (server, client)

    def _qp(self, process):
        """Return the queue pair of a program, if it is connected and sends."""
        qps = [qp for qp in show("resource", "show", "qp") if qp["pid"] == process.pid and qp["state"] == "RTS"]
        return qps[0] if qps and qps[0]["sq-psn"] > 0 else None

    def _start(self):
        self._owner.run()
        self._running.append(self._owner.process)
        self._pair("inside", FIRST_PORT, "127.0.0.1", self._here, None)
        self._pair("outside", FIRST_PORT + 1, "10.9.31.1", self._there, ("--netdev", "veth1"))
        for sides in self._pairs.values():
            for process in sides:
                expect(wait_until(lambda process=process: self._qp(process), SECONDS), "no queue pair that sends",
                       *process.story("program"))
        attach = ("--socket", self._owner.socket)
        self._with_srq = self._program("srq", self._here.prefix, attach, ["ibv_srq_pingpong", "-g", "1", "-p", str(FIRST_PORT + 3), "-q", "3"])
        rping = ["rping", "-a", "10.9.31.1", "-p", str(CM_PORT), "-C", "1000000"]
        server = self._program("rping-s", self._here.prefix, attach, [*rping, "-s"])
        expect(wait_until(lambda: has_our_threads(server.pid), SECONDS), "rping has no device", *server.story("rping"))
        wait_until_quiet(server.pid, SECONDS)
        self._rpings = [server, self._program("rping-c", self._here.prefix, attach, [*rping, "-c"])]

    # ---- JSON ----

    def _json(self):
        every = {os.path.basename(path)[len("uroce-ctl-"):-len(".json")]
                 for path in glob.glob(os.path.join(SCHEMAS, "uroce-ctl-*.json"))}
        known = {command.replace(" show ", "-") for command in COMMANDS}
        self._check("each command has its schema", expect, every == known, "they differ", every ^ known)
        for command in COMMANDS:
            self._if_module("jsonschema", f"schema of {command}", self._schema, command)

    def _schema(self, command):
        schema = os.path.join(SCHEMAS, f"uroce-ctl-{command.replace(' show ', '-')}.json")
        text = run_ctl("-j", *command.split())
        expect(json.loads(text), "an empty list", command)
        done = ask([DEBIANS_PYTHON, "-c", CHECK_SCHEMA, schema], SECONDS, text)
        expect(done.returncode == 0, "the output does not agree", done.stdout, done.stderr)
        # The schema refuses what it does not know.
        wrong = json.loads(text)
        wrong[0]["surprise"] = {}
        done = ask([DEBIANS_PYTHON, "-c", CHECK_SCHEMA, schema], SECONDS, json.dumps(wrong))
        expect(done.returncode == 1, "the schema takes anything", done.stdout, done.stderr)

    def _not_there(self):
        """What is not there is an error, also where there is something else; a device without such objects is not."""
        no_device, no_process = "there is no device 'nope'", "process 1 has no such device"
        for words, reason in ((["dev", "show", "nope"], no_device), (["link", "show", "nope"], no_device),
                              (["resource", "show", "nope"], no_device), (["metrics", "dev", "nope"], no_device),
                              (["resource", "show", "qp", "pid", "1"], no_process), (["capture", "pid", "1"], no_process),
                              (["-n", "1", "top", "dev", "nope"], no_device), (["-j", "congestion", "pid", "1"], no_process)):
            done = ask([UROCE_CTL, *words], SECONDS)
            expect(done.returncode == 1 and not done.stdout and reason in done.stderr, f"{words}", done.returncode,
                   done.stdout, done.stderr)
        expect(show("resource", "show", "qp", "pid", str(self._owner.process.pid)) == [], "uroced has queue pairs")

    def _other_objects(self):
        def connections():
            return [[item for item in show("resource", "show", "cm_id") if item["pid"] == process.pid]
                    for process in self._rpings]

        expect(wait_until(lambda: "ESTABLISHED" in [item["state"] for item in connections()[1]], SECONDS), "rping",
               *self._rpings[0].story("server"), *self._rpings[1].story("client"))
        pid = str(self._with_srq.pid)
        srqs = show("resource", "show", "srq", "pid", pid)
        expect(len(srqs) == 1 and srqs[0]["type"] == "BASIC" and srqs[0]["users"] == 3 and srqs[0]["receives"] > 0,
               "the shared receive queue", srqs)
        contexts = show("resource", "show", "ctx", "pid", pid)
        expect(len(contexts) == 1 and contexts[0]["comm"].startswith("ibv_srq"), "its context", contexts)
        server, client = connections()
        expect(len(client) == 1 and client[0]["state"] == "ESTABLISHED" and
               client[0]["dst-addr"] == f"10.9.31.1:{CM_PORT}", "the client's connection", client)
        expect(sorted(item["state"] for item in server) == ["ESTABLISHED", "LISTEN"] and
               all(item["src-addr"] == f"10.9.31.1:{CM_PORT}" for item in server), "the server's", server)
        qps = show("resource", "show", "qp", "pid", str(self._rpings[1].pid))
        expect([qp["lqpn"] for qp in qps] == [client[0]["lqpn"]], "the queue pair of the connection", qps, client)

    def _why(self):
        """A client waits for its peer's answer most of the time."""
        client = self._pairs["inside"][1]
        sentence = rf"^queue pair 0x\w+ of ibv_rc_pingpong \(pid {client.pid}\): 1 send requests wait for an answer of \S+ queue pair 0x\w+$"
        expect(wait_until(lambda: re.search(sentence, run_ctl("why", "pid", str(client.pid)), re.MULTILINE), SECONDS), "not told",
               run_ctl("why", "pid", str(client.pid)))

    def _monitor(self):
        """It tells what a program brings and takes away."""
        watch = Process([UROCE_CTL, "-d", "0.1", "monitor"], os.path.join(self._work_dir, "monitor.log"))
        try:
            program = self._program("seen", self._here.prefix, ("--socket", self._owner.socket),
                                    ["ibv_rc_pingpong", "-g", "1", "-p", str(FIRST_PORT + 4)])
            self._expect_lines(watch, program, [("[ATTACH]", "pid"), ("[CREATE]", "lqpn"), ("[CREATE]", "mrn"), ("[CREATE]", "ctxn")])
            program.kill()
            self._expect_lines(watch, program, [("[DESTROY]", "lqpn"), ("[DETACH]", "pid")])
        finally:
            watch.kill()

    @staticmethod
    def _expect_lines(watch, program, wanted):
        """Wait until each of these events is told, of a thing of that kind."""
        def told():
            mine = [line.split() for line in watch.output().splitlines() if f" pid {program.pid} " in line]
            return {(words[0], words[words.index("net") + 2]) for words in mine} >= set(wanted)

        expect(wait_until(told, SECONDS), "not told", wanted, *watch.story("monitor"))

    # ---- metrics ----

    def _metrics_of_all(self):
        """Metrics agree with statistic: each counter of each process is there."""
        before = {item["pid"]: item for item in show("statistic")}
        metrics = parse(run_ctl("metrics"))
        after = {item["pid"]: item for item in show("statistic")}
        _, client = self._pairs["outside"]
        owner = self._owner.process.pid
        for name, low in before[client.pid].items():
            if isinstance(low, int) and name not in ("ifindex", "port", "pid"):
                value = self._value(metrics, f"uroce_{name}_total", client.pid)
                expect(low <= value <= after[client.pid][name], name, low, value)
        counted = {name for name in metrics if name.startswith("uroce_owner_")}
        listed = [name for name in before[owner] if name not in ("ifindex", "port", "ifname", "net", "pid", "comm")]
        expect(len(counted) == len(listed), "not all that uroced counts", sorted(counted), listed)
        expect(before[owner]["rx_packets"] <= self._value(metrics, "uroce_owner_rx_packets_total", owner) <=
               after[owner]["rx_packets"], "uroced's counter")
        expect(self._value(metrics, "uroce_queue_pairs", client.pid) == 1, "the number of queue pairs")
        expect(not any(name.startswith("uroce_qp_") for name in metrics), "queue pairs that nobody asked for")
        self._qps(parse(run_ctl("metrics", "qp", "pid", str(client.pid))), client)

    def _qps(self, metrics, client):
        qp = self._qp(client)
        for name in ("uroce_qp_info", "uroce_qp_send_requests", "uroce_qp_receive_requests", "uroce_qp_sq_psn"):
            series = metrics[name][1]
            expect([labels["lqpn"] for labels, _ in series] == [str(qp["lqpn"])], name, series)
        labels = metrics["uroce_qp_info"][1][0][0]
        expect((labels["rqpn"], labels["state"], labels["type"], labels["dgid"]) ==
               (str(qp["rqpn"]), "RTS", "RC", "::ffff:10.9.31.1"), "its labels", labels)

    @staticmethod
    def _value(metrics, name, pid):
        expect(name in metrics, f"no {name}", sorted(metrics))
        values = [value for labels, value in metrics[name][1] if labels["pid"] == str(pid)]
        expect(len(values) == 1, f"{len(values)} series of {name}", metrics[name])
        return values[0]

    def _metrics_by_debian(self):
        text = run_ctl("metrics", "qp")
        done = ask([DEBIANS_PYTHON, "-c", CHECK_METRICS], SECONDS, text)
        series = sum(len(series) for _, series in parse(text).values())
        expect(done.returncode == 0 and int(done.stdout) == series, "the parser sees something else", series,
               done.stdout, done.stderr)

    def _get(self, target, method="GET"):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(SECONDS)
        connection.sock.connect(self._metrics)
        connection.request(method, target)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read().decode()

    def _scraped(self):
        status, kind, text = self._get("/metrics")
        expect(status == 200 and kind.startswith("text/plain; version=0.0.4"), "the answer", status, kind)
        metrics = parse(text)
        shown = {int(labels["pid"]) for labels, _ in metrics["uroce_device_info"][1]}
        inside, outside = self._pairs["inside"], self._pairs["outside"]
        expect(shown == {process.pid for process in (self._owner.process, *inside, outside[0], self._with_srq, *self._rpings)},
               "not the programs of this uroced", shown)
        expect("uroce_qp_info" not in metrics, "queue pairs that nobody asked for")
        expect("uroce_qp_info" in parse(self._get("/metrics?qp")[2]), "no queue pairs")
        expect(self._get("/")[0] == 404 and self._get("/metrics", "POST")[0] == 405, "other requests")

    def _watched(self):
        there = set(parse(self._get("/metrics")[2]))
        with open(RULES, encoding="utf-8") as rules, open(DASHBOARD, encoding="utf-8") as dashboard:
            texts = [rules.read(), json.dumps(json.load(dashboard))]
        for text in texts:
            named = set(re.findall(r"\buroce_\w+", text))
            expect(len(named) > 5 and named <= there, "metrics that are not there, or too few", sorted(named - there), sorted(named))

    @staticmethod
    def _rules():
        done = ask(["promtool", "check", "rules", RULES], SECONDS)
        expect(done.returncode == 0, "it refuses them", done.stdout, done.stderr)

    # ---- the terminal ----

    @staticmethod
    def _on_terminal(argv, columns=60, rows=24, **environment):
        """Return what a command prints on a terminal of this size."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        clean = {name: value for name, value in os.environ.items()
                 if name not in ("COLUMNS", "LINES", "NO_COLOR", "TERM")}
        with subprocess.Popen([UROCE_CTL, *argv], stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE,
                              env={**clean, "TERM": "xterm", **environment}) as process:
            os.close(slave)
            text = b""
            while True:
                try:
                    more = os.read(master, 65536)
                except OSError:  # the other end is closed
                    break
                if not more:
                    break
                text += more
            os.close(master)
            error = process.stderr.read().decode()
        expect(process.returncode == 0, f"{argv} fails", error)
        return text.decode().replace("\r\n", "\n")

    @staticmethod
    def _widest(text):
        """The width of the longest line that has more than one word."""
        plain = re.sub("\033\\[[0-9;]*[A-Za-z]", "", text)
        return max(len(line) for line in plain.splitlines() if " " in line.strip())

    def _columns(self):
        # Other tests may run on this machine, with names that fit no terminal.
        mine = ["pid", str(self._owner.process.pid)]
        tops = ["-n", "1", "top", "pid", str(self._pairs["outside"][1].pid)]
        for argv in (["link", "show", *mine], ["resource", "show", "qp", "pid", str(self._pairs["outside"][1].pid)],
                     ["statistic", *mine], ["doctor"], tops):
            for columns in (50, 130):
                width = self._widest(self._on_terminal(argv, columns))
                expect(width <= columns, f"{argv}: {width} columns, not {columns}")
            expect(self._widest(self._on_terminal(argv, 50)) > 25, f"{argv}: it does not use the terminal")
            narrow = self._widest(self._on_terminal(argv, 80, COLUMNS="45"))
            expect(narrow <= 45, f"{argv}: COLUMNS does not count: {narrow}")
        eighty = self._on_terminal(tops, 80)
        expect("RNR" in run_ctl(*tops) and "RNR" not in eighty, "the columns of top", eighty)
        for word in ("PID", "COMM", "TX bit/s", "RX bit/s", "LQPN", "STATE"):
            expect(word in eighty, f"top has no {word}", eighty)
        expect(len(self._on_terminal(["-n", "1", "top"], 80, 8).splitlines()) <= 8, "top is too high")
        # In a pipe a line is an item, whatever COLUMNS says.
        done = ask(["env", "COLUMNS=40", UROCE_CTL, "statistic", "show", *mine], SECONDS)
        expect(len(done.stdout.splitlines()) == 1, "lines are broken in a pipe", done.stdout)

    def _colours(self):
        link = ["link", "dev", DEVICE]
        expect("\033[32mACTIVE\033[0m" in self._on_terminal(["link"]), "no colours")
        expect("\033" not in self._on_terminal(["link"], NO_COLOR="1"), "colours with NO_COLOR")
        expect("\033" not in self._on_terminal(["link"], TERM="dumb"), "colours on a dumb terminal")
        expect("\033" not in self._on_terminal(["--color", "never", "link"]), "colours with --color never")
        expect("\033" not in run_ctl(*link), "colours in a pipe")
        expect("\033[32mACTIVE" in run_ctl("--color", "always", *link), "no colours with --color always")
        expect("\033" not in run_ctl("-j", "--color", "always", *link), "colours in JSON")

    # ---- congestion control ----

    @staticmethod
    def _parameters(process):
        items = show("congestion", "pid", str(process.pid))
        expect(len(items) == 1, "not one device", items)
        return items[0]

    def _congestion(self):
        server, client = self._pairs["inside"]
        programs = {process.pid for sides in self._pairs.values() for process in sides}
        expect({item["pid"] for item in show("congestion")} >= programs, "not all programs")
        before = self._parameters(server)
        expect(before["congestion-control"] == "none" and before["rpg_ai_rate"] == 40, "not the defaults", before)
        run_ctl("congestion", "set", "rpg_ai_rate", "7", "cnp_dscp", "48", "algorithm", "dcqcn", "pid", str(server.pid))
        changed = {**before, "rpg_ai_rate": 7, "cnp_dscp": 48, "congestion-control": "dcqcn"}
        expect(self._parameters(server) == changed, "not what was set", self._parameters(server))
        expect(self._qp(server)["congestion-control"] == "dcqcn", "the queue pair that it has")
        expect(self._parameters(client)["rpg_ai_rate"] == 40, "another program has changed")
        run_ctl("congestion", "set", "rpg_ai_rate", "40", "cnp_dscp", "64", "algorithm", "none", "dev", DEVICE, "net",
                f"veth0@{self._owner.process.pid}")
        expect(self._parameters(server) == before, "not set back", self._parameters(server))

    def _algorithms(self):
        """Change the algorithm while messages are on their way: they go on."""
        for name, (_, client) in self._pairs.items():
            for algorithm in (3 if self._report.complete else 1) * ["swift", "dcqcn", "none"]:
                qp = self._qp(client)
                run_ctl("congestion", "set", "algorithm", algorithm, "qp", str(qp["lqpn"]), "pid", str(client.pid))
                expect(self._qp(client)["congestion-control"] == algorithm, f"{name}: not {algorithm}", self._qp(client))
                expect(wait_until(lambda qp=qp, client=client: self._qp(client)["sq-psn"] != qp["sq-psn"], SECONDS),
                       f"{name}: {algorithm}: the program stands still", *client.story("program"))

    def _refused(self):
        server, _ = self._pairs["inside"]
        pid = str(server.pid)
        for words, reason in ((["algorithm", "swift", "qp", "1", "pid", pid], "there is no such queue pair"),
                              (["rpg_ai_rate", "0", "pid", pid], "from 1 to 100000"),
                              (["rpg_ai_rate", "5"], "for which device or process"),
                              (["rpg_ai_rate", "5", "dev", "nothing"], "there is no device 'nothing'"),
                              (["rpg_ai_rate", "5", "dev", DEVICE], f"of net veth0@{self._owner.process.pid} (uroced)"),
                              (["rpg_ai_rate", "5", "net", "nothing"], "there is no network 'nothing'"),
                              (["rpg_ai_rate", "5", "pid", str(self._owner.process.pid)], "no program has the device")):
            self._expect_refused(words, reason)
        self._expect_refused(["rpg_ai_rate", "5", "pid", pid], "has no such device", UNPRIVILEGED)

    def _stopped(self):
        """A program that is stopped does not answer; its command is withdrawn. It has no peer that waits for it."""
        port = FIRST_PORT + 2
        program = self._program("stopped", self._here.prefix, ("--socket", self._owner.socket),
                                ["ibv_rc_pingpong", "-d", DEVICE, "-e", "-p", str(port), "-g", "1"])
        expect(wait_until(lambda: program.listens(port), SECONDS), "no server", *program.story("server"))
        os.kill(program.pid, signal.SIGSTOP)
        try:
            self._expect_refused(["rpg_ai_rate", "5", "pid", str(program.pid)], "does not answer")
        finally:
            os.kill(program.pid, signal.SIGCONT)
        expect(wait_until(lambda: "answer" not in self._parameters(program), SECONDS), "it does not go on")
        expect(self._parameters(program)["rpg_ai_rate"] == 40, "it executed a command that was withdrawn")
        program.kill()

    @staticmethod
    def _expect_refused(words, reason, prefix=()):
        done = ask([*prefix, UROCE_CTL, "congestion", "set", *words], SECONDS)
        expect(done.returncode == 1 and reason in done.stderr, f"{words}: not refused", done.returncode, done.stderr)

    # ---- doctor ----

    def _doctor(self):
        everything = {item["check"] for item in show("doctor")}
        expect({"huge-pages", "memlock", "shm", "memfd", "user-namespaces", "packet-sockets", "autogroup", "iommu",
                "socket"} <= everything, "checks are missing", everything)
        sockets = {item.get("subject"): item for item in show("doctor") if item["check"] == "socket"}
        mine = sockets.get(self._owner.socket)
        expect(mine and f"process {self._owner.process.pid}" in mine["found"], "the socket of uroced", sockets)
        inside = json.loads(run_ctl("-j", "doctor", prefix=self._here.prefix))
        mtu = [item for item in inside if item["check"] == "mtu" and item.get("subject") == "veth0"]
        expect(mtu and mtu[0]["state"] == "warn" and "ip link set dev veth0 mtu 4176" in mtu[0]["change"], "the MTU", inside)
        self._here.run("ip", "link", "set", "dev", "veth0", "mtu", "4176")
        inside = json.loads(run_ctl("-j", "doctor", prefix=self._here.prefix))
        mtu = [item["state"] for item in inside if item["check"] == "mtu"]
        expect(mtu == ["ok"], "what it said did not help", inside)
        self._here.run("ethtool", "-K", "veth0", "tx-udp-segmentation", "off")
        inside = json.loads(run_ctl("-j", "doctor", prefix=self._here.prefix))
        expect([item["state"] for item in inside if item["check"] == "offloads"] == ["warn"], "offloads", inside)
        self._here.run("ethtool", "-K", "veth0", "tx-udp-segmentation", "on")
        user = {item["check"]: item for item in json.loads(run_ctl("-j", "doctor", prefix=UNPRIVILEGED))}
        expect(user["packet-sockets"]["state"] == "warn" and "root" in user["packet-sockets"]["change"],
               "an ordinary user", user)
        for line in run_ctl("doctor").splitlines():
            expect(re.match(r"(OK    [^>]*|warn  .* -> .+)$", line), "not one line each", line)

    # ---- captures ----

    def _captures(self):
        if shutil.which("tshark") is None:
            self._report.skip("ctl: capture", "no tshark; config/setup.sh test")
            return
        self._check("capture at an interface", self._capture, "outside", 1, "dumpcap", "pcapng")
        self._check("capture at an interface by tcpdump", self._capture, "outside", 1, "tcpdump", "pcap")
        if not self._captured:
            self._report.skip("ctl: capture at uroced", "too few huge pages are free")
            return
        self._check("capture at uroced, of its port", self._capture, "outside", 0, "dpdk-dumpcap", "pcapng")
        self._check("capture at uroced, between programs", self._capture, "inside", 0, "dpdk-dumpcap", "pcapng")

    def _tools(self, tool):
        """Return a directory with only this tool, for PATH."""
        folder = os.path.join(self._work_dir, f"tools-{tool}")
        os.makedirs(folder, exist_ok=True)
        link = os.path.join(folder, tool)
        if not os.path.islink(link):
            os.symlink(shutil.which(tool), link)
        return folder

    def _capture(self, name, side, tool, kind):
        """Capture one queue pair while others are busy, too: the file has its packets and none of others. At uroced it has
        both directions."""
        process = self._pairs[name][side]
        qp = self._qp(process)
        expect(qp, "its queue pair has ended", *process.story("program"))
        file = os.path.join(self._work_dir, f"{tool}-{name}.{kind}")
        capture = Process(["env", f"PATH={self._tools(tool)}", UROCE_CTL, "-w", file, "-n", str(PACKETS), "capture", "qp",
                           str(qp["lqpn"]), "pid", str(process.pid)],
                          os.path.join(self._work_dir, "capture.log"))
        try:
            expect(capture.wait(SECONDS) == 0, "it does not end", *capture.story("uroce-ctl"))
        finally:
            if capture.poll() is None:  # dpdk-dumpcap must tell uroced that it ends
                os.killpg(capture.pid, signal.SIGINT)
                capture.wait(SECONDS)
            capture.kill()
        expect(f"uroce-ctl: {tool} " in capture.output(), "another tool", *capture.story("uroce-ctl"))
        done = ask(["tshark", "-n", "-r", file, "-T", "fields", "-e", "infiniband.bth.destqp", "-e", "infiniband.bth.opcode"],
                   SECONDS)
        expect(done.returncode == 0, "tshark", done.stderr)
        queues = [line.split("\t")[0] for line in done.stdout.splitlines()]
        expect(len(queues) >= PACKETS, f"{len(queues)} packets", *capture.story("uroce-ctl"))
        ways = {qp["lqpn"], qp["rqpn"]} if tool == "dpdk-dumpcap" else {qp["lqpn"]}
        expect({int(number, 16) for number in queues if number} == ways and all(queues),
               "not the packets of this queue pair", qp, sorted(set(queues)))
        expect(("only received packets" in capture.output()) == (len(ways) == 1), "it does not say what it sees",
               *capture.story("uroce-ctl"))
        done = ask(["capinfos", "-t", file], SECONDS)
        expect(kind in done.stdout, f"not a {kind}", done.stdout, done.stderr)
