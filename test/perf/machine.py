# SPDX-License-Identifier: BSD-3-Clause
"""The machine that is measured: its CPUs and their distance, huge pages, network namespaces, processes."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.process import tcp_tables, tcp_tables_show, LISTEN  # noqa: E402

NEAR_NS = 250  # below this round trip of a cache line, the two CPUs share a cache
TIMEOUT_S = 60  # timeout of a test of some seconds
LISTEN_S = 30
CPUS = (0, 1)  # the passive side's and the active side's


class Failed(Exception):
    """The reason, in one line, why a figure could not be measured."""


class Machine:
    """The machine; it ends and removes all that it has made."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.tools = os.path.join(self.build, "test", "perf")
        self.uroce_run = os.path.join(self.build, "app", "uroce-run")
        self.dir = tempfile.mkdtemp(prefix="uroce-perf-")
        self.port = 18800  # port of the next pair: the last one may not be free yet
        self._children = []
        self._spaces = []
        self._pages = {}

    def tool(self, name):
        return os.path.join(self.tools, name)

    @staticmethod
    def describe():
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            cpu = re.search(r"model name\s*: (.*)", file.read())
        return f"{cpu.group(1) if cpu else '?'}, {os.cpu_count()} CPUs, Linux {os.uname().release}"

    def distance_ns(self):
        """Return the distance of the two CPUs: the round trip of one cache line."""
        return float(self.output([self.tool("core_distance"), *map(str, CPUS)]))

    @staticmethod
    def stolen():
        """Return the ticks that the hypervisor took, the ticks that other programs used, and all ticks."""
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(field) for field in file.readline().split()[1:]]
        return fields[7], sum(fields)

    # ---- processes ----
    def start(self, argv, cpu=None, space=None, stdin=subprocess.DEVNULL):
        full = ["taskset", "-c", str(cpu), *argv] if cpu is not None else list(argv)
        if space:
            full = ["ip", "netns", "exec", space, *full]
        child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *full], stdin=stdin,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self._children.append(child)
        return child

    def finish(self, child, what):
        """Wait until the process ends, and return its output. It must succeed."""
        try:
            out, err = child.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"{what}: no end after {TIMEOUT_S} s") from None
        self._children.remove(child)
        if child.returncode != 0:
            # perftest's last line only says that it failed; the completion's status is before it.
            raise Failed(f"{what}: exit {child.returncode}: {'; '.join((err or out).strip().splitlines()[-4:])}")
        return out

    def end(self, child):
        if child in self._children:
            self._children.remove(child)
        if child.poll() is None:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        child.communicate()

    def output(self, argv):
        return self.finish(self.start(argv), os.path.basename(argv[0]))

    def next_port(self):
        self.port += 1
        return self.port

    def start_server(self, argv, space, listens, cpu=CPUS[0]):
        """Start the passive side. Return when it listens at TCP port `listens`, or at once without one."""
        server = self.start(argv, cpu, space)
        try:
            until = time.monotonic() + LISTEN_S
            while listens and not tcp_tables_show(tcp_tables(server.pid), LISTEN, listens):
                if server.poll() is not None:
                    raise Failed(f"server: {server.communicate()[1].strip()}")
                if time.monotonic() > until:
                    raise Failed("the server does not listen")
                time.sleep(0.01)
        except BaseException:
            self.end(server)
            raise
        return server

    def pair(self, server, client, spaces=(None, None), listens=None, kill_server=False):
        """Run a server and a client, on a CPU each. Return the client's output, and the server. The client starts
        when the server listens at TCP port `listens`, or at once."""
        first = self.start_server(server, spaces[0], listens)
        try:
            second = self.start(client, CPUS[1], spaces[1])
            try:
                out = self.finish(second, os.path.basename(client[-1]))
            finally:
                self.end(second)
            if kill_server:
                os.killpg(first.pid, signal.SIGKILL)
                return out, first.communicate()[0]
            return out, self.finish(first, "server")
        finally:
            self.end(first)

    # ---- network namespaces ----
    def veth(self, mtu=9000):
        """Make two namespaces with a veth0 each; return their names and addresses."""
        names = [f"uperf{os.getpid()}-{len(self._spaces)}{end}" for end in "ab"]
        addresses = ["10.99.2.1", "10.99.2.2"]
        for name in names:
            self._ip("netns", "add", name)
            self._spaces.append(name)
        self._ip("-n", names[0], "link", "add", "veth0", "mtu", str(mtu), "type", "veth", "peer", "name", "veth0",
                 "mtu", str(mtu), "netns", names[1])
        for name, address in zip(names, addresses):
            self._ip("-n", name, "addr", "add", f"{address}/24", "dev", "veth0")
            self._ip("-n", name, "link", "set", "lo", "up")
            self._ip("-n", name, "link", "set", "veth0", "up")
        time.sleep(2)  # IPv6 duplicate address detection
        return names, addresses

    def slow(self, space, rate):
        """Let a namespace's veth0 take so much. It drops nothing: a socket has less room."""
        self._ip("netns", "exec", space, "tc", "qdisc", "add", "dev", "veth0", "root", "tbf", "rate", rate, "burst", "256kb",
                 "limit", "32mb")

    @staticmethod
    def _ip(*argv):
        done = subprocess.run(["ip", *argv], capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"ip {' '.join(argv)}: {done.stderr.strip()}")

    # ---- huge pages ----
    def reserve(self, kib, pages):
        """Reserve so many free huge pages of that size, if the machine has the memory. close() returns them."""
        folder = f"/sys/kernel/mm/hugepages/hugepages-{kib}kB"
        try:
            with open(f"{folder}/nr_hugepages", encoding="ascii") as file:
                have = int(file.read())
            with open(f"{folder}/free_hugepages", encoding="ascii") as file:
                free = int(file.read())
            if free < pages:
                self._pages.setdefault(folder, have)
                self._set_pages(folder, have + pages - free)
        except OSError:
            pass  # the tool that needs them reports that there are none

    @staticmethod
    def _set_pages(folder, number):
        """Try twice: free memory may be fragmented, and the kernel defragments it when asked."""
        for attempt in range(2):
            with open(f"{folder}/nr_hugepages", "w", encoding="ascii") as file:
                file.write(str(number))
            with open(f"{folder}/nr_hugepages", encoding="ascii") as file:
                if attempt or int(file.read()) >= number:
                    return
            with open("/proc/sys/vm/compact_memory", "w", encoding="ascii") as file:
                file.write("1")

    def close(self):
        for child in list(self._children):
            self.end(child)
        for space in self._spaces:
            subprocess.run(["ip", "netns", "del", space], check=False)
        for folder, number in self._pages.items():
            self._set_pages(folder, number)
        shutil.rmtree(self.dir, ignore_errors=True)
