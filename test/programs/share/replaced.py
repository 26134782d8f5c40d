# SPDX-License-Identifier: BSD-3-Clause
"""uroced --replace, on ports of each kind, and as the command of a service manager: the programs on them go on."""

import contextlib
import os
import socket
import struct
import tempfile
import time

from harness.process import LocalHost, Process, run, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN
from programs.share.share import SECONDS

UROCED = os.path.join(os.path.dirname(UROCE_RUN), "uroced")
PORT = 26100
TIMES = 2
AWAY_SECONDS = 8  # less than programs wait for an uroced that comes back
LOCAL = ["--port", "local0", "--ip", "198.18.0.1/24"]
MEMIF = "net_memif0,socket={dir}/memif.sock,role="
PORTS = """[port uroce0]
port = local0
ip = 198.18.0.1/24
[port uroce1]
port = local1
ip = 198.19.0.1/24
"""
# settings that the next uroced cannot have, by a part of what it says
REFUSALS = {
    "nothere0": PORTS.replace("port = local1\nip = 198.19.0.1/24", "netdev = nothere0"),
    "cannot listen at": "[uroce]\nisolated = /nowhere/at/all.sock\n" + PORTS,
}
WRITE = ["ib_write_bw"]
CREDENTIALS = struct.Struct("3i")  # of unix(7): process, user, group
# name, options of uroced, program, its device, options of a server that is not attached
CASES = (
    ("a local port, XRC", LOCAL, ["ib_send_bw", "-c", "XRC"], DEVICE, None),
    ("a port with losses", [*LOCAL, "--impair", "loss=0.01"], WRITE, DEVICE, None),
    ("the second of two ports", ["--config", "{dir}/ports.conf"], WRITE, "uroce1", None),
    ("an interface by UDP", ["--udp=udp0"], WRITE, DEVICE, None),
    ("a memif port", ["--port", MEMIF + "server", "--ip", "10.9.4.1/24"], WRITE, DEVICE,
     ["--port", MEMIF + "client", "--ip", "10.9.4.2/24"]),
)


class ReplacedTest:
    """One pair of programs for each port."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "replaced")
        os.mkdir(self._work_dir)
        self._processes = []
        self._dir = None

    def run_all(self):
        run("ip", "link", "add", "udp0", "type", "veth", "peer", "name", "udp1")
        run("ip", "addr", "add", "10.9.3.1/24", "dev", "udp0")
        for name in ("udp0", "udp1"):
            run("ip", "link", "set", name, "up")
        for number, case in enumerate(CASES):
            self._check(f"on {case[0]}", self._run, number, *case[1:])
        self._check("with one port less", self._fewer)
        self._check("by one that cannot have all", self._refused)
        self._check("while DPDK starts", self._early)
        self._check("of a service whose port is missing", self._slow)
        self._check("as a service manager's command", self._commanded)

    def _check(self, name, function, *args):
        self._report.check(f"restart: --replace {name}", function, *args)
        for process in self._processes:
            process.kill()
        self._processes.clear()

    def _words(self, words):
        return [word.format(dir=self._dir) for word in words]

    def _start_uroced(self, name, options, *more, before=()):
        path = os.path.join(self._dir, "uroced.sock")
        uroced = Process([*before, UROCED, *self._words(options), "--socket", path, "--file-prefix", f"replaced-{os.getpid()}",
                          "--log-level", "info", *more], os.path.join(self._dir, name), 0)
        self._processes.append(uroced)
        return uroced

    def _uroced(self, name, options, *more):
        uroced = self._start_uroced(name, options, *more)
        if not wait_until(lambda: uroced.poll() is not None or "ready:" in uroced.output(), SECONDS) or uroced.poll() is not None:
            raise CheckFailed("uroced does not start", uroced.story(name))
        return uroced

    def _program(self, name, options, argv):
        program = LocalHost(name, self._dir, [UROCE_RUN, *self._words(options), "--"]).start(argv, 0)
        self._processes.append(program)
        return program

    def _begin(self, number, options, program, device, server_options):
        """Start an uroced, and the programs."""
        port = PORT + number
        self._dir = tempfile.mkdtemp(dir=self._work_dir)
        with open(os.path.join(self._dir, "ports.conf"), "w", encoding="ascii") as file:
            file.write(PORTS)
        uroced = self._uroced("uroced-0", options)
        attached = ["--socket", "{dir}/uroced.sock"]
        argv = ["stdbuf", "-oL", *program, "-F", "-d", device, "-x", "1", "--run_infinitely", "-D", "1", "-p", str(port)]
        server = self._program("server", server_options or attached, argv)
        if not wait_until(lambda: server.poll() is not None or server.listens(port), SECONDS):
            raise CheckFailed("the server does not listen", server.story("server"))
        client = self._program("client", attached, [*argv, "127.0.0.1"])
        wait_until(lambda: "#bytes" in client.output() or client.poll() is not None, SECONDS)
        self._goes_on(client, server, uroced)
        return uroced, client, server

    def _run(self, number, options, *more):
        uroced, client, server = self._begin(number, options, *more)
        for turn in range(1, TIMES + 1):
            last, uroced = uroced, self._uroced(f"uroced-{turn}", options, "--replace")
            if last.wait(SECONDS) != 0:
                raise CheckFailed("the replaced uroced fails", last.story("uroced"))
            self._goes_on(client, server, uroced)

    def _commanded(self):
        """The manager runs the new uroced beside the service's main process, and hears that the main process is another one now."""
        last, client, server = self._begin(len(CASES), LOCAL, WRITE, DEVICE, None)
        path = os.path.join(self._dir, "notify")
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as manager:
            manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            manager.settimeout(SECONDS)
            manager.bind(path)
            command = self._start_uroced("command", LOCAL, "--replace", before=["env", f"NOTIFY_SOCKET={path}", f"MAINPID={last.pid}"])
            main = self._listen(manager, command, last.pid)
        if command.wait(SECONDS) != 0 or last.wait(SECONDS) != 0:
            raise CheckFailed("the command or the replaced uroced fails", [*command.story("command"), *last.story("uroced")])
        if main in (last.pid, command.pid) or not os.path.exists(f"/proc/{main}"):
            raise CheckFailed(f"the main process is {main}", command.story("command"))
        self._goes_on(client, server, command)

    @staticmethod
    def _listen(manager, command, main):
        """Read messages until all is ready, and return the main process. As systemd with NotifyAccess=exec, believe that process
        and the command alone."""
        while True:
            text, control, _, _ = manager.recvmsg(4096, socket.CMSG_SPACE(CREDENTIALS.size))
            sender = CREDENTIALS.unpack(control[0][2])[0]
            if sender not in (main, command.pid):
                raise CheckFailed(f"another process than {main} and {command.pid} says {text}: {sender}", command.story("command"))
            fields = dict(line.split("=", 1) for line in text.decode().splitlines())
            main = int(fields.get("MAINPID", main))
            if "READY" in fields:
                return main

    @staticmethod
    def _goes_on(client, server, uroced):
        """The client reports its rate each second."""
        length = len(client.output())
        wait_until(lambda: client.poll() is not None or len(client.output()) > length, SECONDS)
        if client.poll() is not None or server.poll() is not None or len(client.output()) == length:
            raise CheckFailed("the programs do not go on", [*client.story("client"), *server.story("server"), *uroced.story("uroced")])

    def _begin_two(self):
        """Start an uroced of two ports, and a pair of programs on each."""
        self._dir = tempfile.mkdtemp(dir=self._work_dir)
        clients = {}
        config = os.path.join(self._dir, "ports.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write(PORTS)
        uroced = self._uroced("uroced-0", ["--config", config])
        for number, device in enumerate(("uroce0", "uroce1")):
            port = str(PORT + 20 + number)
            argv = ["stdbuf", "-oL", *WRITE, "-F", "-d", device, "-x", "1", "--run_infinitely", "-D", "1", "-p", port]
            server = self._program(f"server-{device}", ["--socket", "{dir}/uroced.sock"], argv)
            if not wait_until(lambda s=server, p=port: s.poll() is not None or s.listens(int(p)), SECONDS):
                raise CheckFailed("the server does not listen", server.story("server"))
            clients[device] = (self._program(f"client-{device}", ["--socket", "{dir}/uroced.sock"], [*argv, "127.0.0.1"]), server)
        for client, server in clients.values():
            self._goes_on(client, server, uroced)
        return uroced, config, clients

    def _early(self):
        """The one that is replaced ends at once, and has given up the connection manager of its interface before."""
        for _ in range(TIMES):
            self._dir = tempfile.mkdtemp(dir=self._work_dir)
            last = self._uroced("uroced-0", ["--netdev", "udp0"])
            uroced = self._uroced("uroced-1", ["--netdev", "udp0"], "--replace")
            if last.wait(SECONDS) != 0 or "another program connects" in uroced.output():
                raise CheckFailed("the next uroced does not get all", [*last.story("uroced"), *uroced.story("uroced")])
            uroced.kill()

    def _slow(self):
        """A service manager starts it again and again, but less than 30 times in 30 s."""
        self._dir = tempfile.mkdtemp(dir=self._work_dir)
        begun = time.monotonic()
        uroced = self._start_uroced("uroced", ["--netdev", "nothere0"], before=["env", "NOTIFY_SOCKET=/nowhere/at/all"])
        if uroced.wait(SECONDS) != 1 or time.monotonic() - begun < 1:
            raise CheckFailed("it is not there for a second", uroced.story("uroced"))

    def _refused(self):
        """The next uroced cannot have its second port, or a socket: the one that runs goes on with both, and can still be replaced."""
        uroced, config, clients = self._begin_two()
        for number, (reason, text) in enumerate(REFUSALS.items(), 1):
            with open(config, "w", encoding="ascii") as file:
                file.write(text)
            other = self._start_uroced(f"uroced-{number}", ["--config", config], "--replace")
            if other.wait(SECONDS) != 1 or reason not in other.output() or "the other uroced goes on" not in other.output():
                raise CheckFailed(f"it does not refuse: {reason}", other.story("uroced"))
            for client, server in clients.values():
                self._goes_on(client, server, uroced)
        if uroced.poll() is not None or "again" in uroced.output():
            raise CheckFailed("the programs notice it", uroced.story("uroced"))
        with open(config, "w", encoding="ascii") as file:
            file.write(PORTS)
        last, uroced = uroced, self._uroced("uroced-last", ["--config", config], "--replace")
        if last.wait(SECONDS) != 0:
            raise CheckFailed("the replaced uroced fails", last.story("uroced"))
        for client, server in clients.values():
            self._goes_on(client, server, uroced)

    def _fewer(self):
        """Programs on the port that remains go on. Those on the other one get a fatal event, and do not wait for it."""
        uroced, config, clients = self._begin_two()
        with open(config, "w", encoding="ascii") as file:
            file.write(PORTS[:PORTS.index("[port uroce1]")])
        last, uroced = uroced, self._uroced("uroced-1", ["--config", config], "--replace")
        if last.wait(SECONDS) != 0:
            raise CheckFailed("the replaced uroced fails", last.story("uroced"))
        self._goes_on(*clients["uroce0"], uroced)
        for program in clients["uroce1"]:
            if program.wait(AWAY_SECONDS) in (None, 0):
                raise CheckFailed("a program on the port that has gone did not notice", program.story("program"))
