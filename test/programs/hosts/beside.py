# SPDX-License-Identifier: BSD-3-Clause
"""The only port of a host: uroced passes to the kernel all frames that are not RoCE. The setup is that of
doc/operator/nics.md."""

import os
import re
import sys

from harness.process import LocalHost, Namespace, Process, ask, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN, PerfTest, PingPong, Side, gid_index, gids, run_pair
from programs.share.share import Uroced

HERE = os.path.dirname(os.path.abspath(__file__))
MANUAL = os.path.join(HERE, "..", "..", "..", "doc", "operator", "nics.md")
WIRE = "/run/wire.sock"  # the path in doc/operator/nics.md
ADDRESSES = ("10.0.0.2", "10.0.0.3")
ADDRESSES6 = ("fd00::2", "fd00::3")
FIRST_PORT = 26500
ECHO_PORT = 26400
SECONDS = 60


def manual():
    """Return the configuration file of doc/operator/nics.md, and the commands that prepare the interface."""
    with open(MANUAL, encoding="utf-8") as file:
        text = file.read()
    section = text[text.index("## When it is the only NIC"):]
    config = re.search(r"^    \[uroce\]\n(?:    .+\n)+", section, re.M).group(0)
    commands = re.findall(r"^    (ip .+)$", section, re.M)
    return re.sub("^    ", "", config, flags=re.M), commands


class BesideTest:
    """Two hosts that have nothing but the two ends of a memif link. The first is set up exactly as doc/operator/nics.md
    says."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._namespaces = [Namespace("beside0"), Namespace("beside1")]
        self._port = FIRST_PORT
        config, commands = manual()
        if WIRE not in config or not any(ADDRESSES[0] in command for command in commands):
            sys.exit("beside: doc/operator/nics.md has another example than this test knows")
        self._owners = []
        for number, namespace in enumerate(self._namespaces):
            path = os.path.join(work_dir, f"beside-{number}.conf")
            with open(path, "w", encoding="ascii") as file:
                file.write(config if number == 0 else config.replace("role=client", "role=server"))
            for command in commands:
                namespace.run(*command.replace(ADDRESSES[0], ADDRESSES[number]).split())
            namespace.run("ip", "address", "add", f"{ADDRESSES6[number]}/64", "dev", "eth0", "nodad")
            self._owners.append(Uroced(namespace, work_dir, None, "--config", path, name=f"beside-{number}"))

    def _hosts(self):
        return [LocalHost(f"beside-{number}", self._work_dir,
                          [*namespace.prefix, UROCE_RUN, "--socket", owner.socket, "--"], number % os.cpu_count())
                for number, (namespace, owner) in enumerate(zip(self._namespaces, self._owners))]

    def run_all(self):
        try:
            if self._report.require("beside: both ends start", self._start):
                self._checks()
        finally:
            for owner in self._owners:
                if owner.process:
                    owner.process.kill()
            if os.path.exists(WIRE):
                os.unlink(WIRE)

    def _start(self):
        for owner in reversed(self._owners):
            owner.run()

    def _checks(self):
        self._report.check("beside: the kernels ping each other", self._ping)
        self._report.check("beside: RoCE, while TCP goes on", self._both)
        self._report.check("beside: RoCE knows an address that comes later", self._later)
        self._report.check("beside: the address outlives uroced", self._again)

    def _ping(self):
        for address in (ADDRESSES[1], ADDRESSES6[1]):
            for length in (56, 1400, 4000):
                done = ask([*self._namespaces[0].prefix, sys.executable, os.path.join(HERE, "ping.py"), address,
                            str(length)], SECONDS)
                if done.returncode:
                    raise CheckFailed(done.stdout.strip() or "ping.py fails", self._stories())

    def _stories(self):
        return [line for owner in self._owners for line in owner.process.story("uroced")]

    def _echo(self, number, *peer):
        argv = [*self._namespaces[number].prefix, sys.executable, os.path.join(HERE, "echo.py"), ADDRESSES[number],
                str(ECHO_PORT), *peer]
        return Process(argv, os.path.join(self._work_dir, f"echo-{number}.log"))

    def _both(self):
        """Run unmodified programs whose own TCP uses the same port. Pingpong and echo verify the bytes."""
        serving = self._echo(1)
        asking = None
        try:
            wait_until(lambda: serving.listens(ECHO_PORT), SECONDS)
            asking = self._echo(0, ADDRESSES[1])
            self._more_rounds(asking, serving)
            for program in (PingPong([], 500, 16384), PerfTest("ib_write_bw", [], 500), PerfTest("ib_read_bw", [], 500)):
                self._pair(program, ADDRESSES)
                self._more_rounds(asking, serving)
            self._pair(PingPong([], 500, 16384), ADDRESSES6)
            self._more_rounds(asking, serving)
        finally:
            for process in (asking, serving):
                if process:
                    process.kill()

    def _more_rounds(self, asking, serving):
        before = asking.output().count("round")
        if not wait_until(lambda: asking.output().count("round") > before + 2 or asking.poll() is not None, SECONDS) or \
                asking.poll() is not None:
            raise CheckFailed("TCP does not continue", asking.story("echo") + serving.story("server") + self._stories())

    def _pair(self, program, addresses):
        """The programs' TCP uses IPv4, because the servers of pingpong listen only there."""
        self._port += 1
        run_pair(program, *[Side(host, DEVICE, tcp_address, gid_index(gids(host, DEVICE), address))
                            for host, tcp_address, address in zip(self._hosts(), ADDRESSES, addresses)], self._port)

    def _later(self):
        addresses = [f"10.0.5.{number + 2}" for number in range(2)]
        for namespace, address in zip(self._namespaces, addresses):
            namespace.run("ip", "address", "replace", f"{address}/24", "dev", "eth0")
        hosts = self._hosts()
        for host, address in zip(hosts, addresses):
            if not wait_until(lambda: str(address) in map(str, gids(host, DEVICE).values()), SECONDS):
                raise CheckFailed(f"{address} is missing from the GID table", self._stories())
        self._pair(PingPong([], 100, 4096), addresses)

    def _again(self):
        owner = self._owners[0]
        owner.process.kill()
        owner.run()
        self._ping()
        self._pair(PingPong([], 100, 4096), ADDRESSES)
