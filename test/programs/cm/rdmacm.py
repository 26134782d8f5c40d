# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs that connect by librdmacm.so.1, over memif and over a veth pair."""

import contextlib
import os
import re
import shutil
import time
from typing import NamedTuple

from harness.process import Namespace, Running, wait_until
from harness.tools import UROCE_RUN
from programs.run.wires import VethWire, uroce_host

LATE = os.path.join(os.path.dirname(os.path.abspath(UROCE_RUN)), "..", "test", "programs", "liblate.so")
SECONDS = 60
END_SECONDS = 20
START_SECONDS = 30
POLL_SECONDS = 0.5
QUIET_SECONDS = 0.15  # much longer than a server sleeps between two steps of its start
PERSISTENT_CLIENTS, FEW_CLIENTS = 20, 4
ADDRESS_ERROR_SECONDS = 10
FIRST_PORT = 7600
FAMILIES = ("ipv4", "ipv6")
WIRES = ("memif", "veth")  # of processes that have ports of their own
MULTICAST = {"ipv4": "239.1.2.3", "ipv6": "ff0e::1:2:3"}
# At its end rping's main thread destroys the id and the channel, and exits with 0. Its other thread may ask the channel
# for one more event, or for the DISCONNECTED event that went with the id, and exits with 255 when it gets none. Chance
# decides which of the two ends the process.
RPING_LATE = "rdma_get_cm_event: Bad file descriptor\n"
RPING_ENDS = (RPING_LATE, "client DISCONNECT EVENT...\n", "server DISCONNECT EVENT...\n",
              "wait for RDMA_READ_ADV state 10\n")


class Addresses:
    """The addresses of the two sides of a link, by address family."""

    def __init__(self, ipv4, ipv6):
        self.of = {"ipv4": ipv4, "ipv6": ipv6}


class CmMemif:
    """Two processes in one namespace, connected by memif."""

    name = "memif"

    def __init__(self, work_dir):
        namespace = Namespace("cmmemif")
        self.addresses = Addresses(["10.9.7.1", "10.9.7.2"], ["fd09:7::1", "fd09:7::2"])
        self.hosts = []
        for cpu, role in enumerate(("server", "client")):
            options = ["--port", f"net_memif0,socket={work_dir}/cm.sock,role={role},id=0"]
            for family in ("ipv4", "ipv6"):
                options += ["--ip", f"{self.addresses.of[family][cpu]}/{24 if family == 'ipv4' else 64}"]
            self.hosts.append(uroce_host(f"cm-memif-{role}", work_dir, cpu, namespace, options))


class CmVeth(VethWire):
    """Two namespaces with a veth pair, as two containers."""

    def __init__(self, work_dir, name="cmveth"):
        super().__init__(work_dir, name)
        self.addresses = Addresses(self.addresses, ["fd09:8::1", "fd09:8::2"])
        self._others = 0
        for cpu, namespace in enumerate(self.namespaces):
            namespace.run("ip", "addr", "add", f"{self.addresses.of['ipv6'][cpu]}/64", "dev", f"veth{cpu}", "nodad")

    def more(self):
        """Return another program on the first host's interface, with its own log."""
        self._others += 1
        return uroce_host(f"cmveth-more{self._others}", self.work_dir, 0, self.namespaces[0], ["--netdev", "veth0"])


class Thread(NamedTuple):
    """What the kernel says of a thread."""

    name: str
    state: str  # R, S, ...
    cpu_seconds: float
    switches: int  # how often it has given up or lost its CPU


def threads(pid):
    """Return the threads of a process."""
    found = []
    with contextlib.suppress(OSError):  # the process has ended
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as stat, \
                    open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as status:
                name, rest = stat.read().split("(", 1)[1].rsplit(")", 1)
                fields = rest.split()
                switches = map(int, re.findall(r"ctxt_switches:\t(\d+)", status.read()))
                found.append(Thread(name, fields[0], sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK"),
                                    sum(switches)))
    return found


def has_our_threads(pid):
    """Return True if the program has a device, and so will listen soon."""
    return any(thread.name == "uroce" for thread in threads(pid))


def wait_until_quiet(pid, seconds):
    """Wait until each of the program's own threads has slept for QUIET_SECONDS, or polls. A thread that has used much CPU
    time is taken to poll, because nothing that these programs do before takes as long."""
    before, since = None, 0

    def quiet():
        nonlocal before, since
        now = [thread for thread in threads(pid) if thread.name != "uroce" and thread.cpu_seconds <= POLL_SECONDS]
        if now != before or any(thread.state != "S" for thread in now):
            before, since = now, time.monotonic()
        return time.monotonic() - since >= QUIET_SECONDS
    return wait_until(quiet, seconds, 0.01)


def rping_is_late(output):
    """Return True if rping was too late for its last event, and reports nothing else. Its pings are buffered, so they
    may come before these messages or behind them, and a message may stand in the middle of one."""
    if RPING_LATE not in output:
        return False
    for words in RPING_ENDS:
        output = output.replace(words, "")
    return all("ping data: " in line or line.startswith("uroce: ") for line in output.splitlines())


class CmRunning(Running):
    """A running check that can also start servers, and wait until they listen."""

    def start(self, host, argv):
        return self.add(host.start(argv))

    def serve(self, host, argv):
        server = self.start(host, argv)
        ready = wait_until(lambda: server.poll() is not None or has_our_threads(server.pid), START_SECONDS)
        if not ready or server.poll() is not None:
            self.fail("the server does not start")
        wait_until_quiet(server.pid, START_SECONDS)
        return server

    def expect(self, process, seconds, what):
        status = process.wait(seconds)
        if status is None:
            self.fail(f"the {what} hangs (after {seconds} s)")
        if status != 0 and not (status == 255 and rping_is_late(process.output())):
            self.fail(f"the {what} gives exit {status}")


class RdmacmTest:
    """All checks of one kind of link; the server is the first host."""

    def __init__(self, report, wire):
        self._report = report
        self._wire = wire
        self._port = FIRST_PORT
        self._family = None  # while programs run once with each family of addresses
        self._repetitions = 1000 if report.complete else 100

    def _is_left_out(self, name):
        """Return True if the program runs with the other family over this wire, and with this one over the other."""
        if self._report.complete or self._family is None:
            return False
        return (sum(name.split(",")[0].encode()) + FAMILIES.index(self._family) + WIRES.index(self._wire.name)) % 2 == 1

    def _check(self, name, function, *args):
        program = name.split()[0].rstrip(",")
        if self._is_left_out(name):
            return
        if self._report.only and self._report.only not in f"rdmacm: {self._wire.name}: {name}":
            return
        if not shutil.which(program):
            self._report.skip(f"rdmacm: {self._wire.name}: {name}", f"{program} is not installed: rdmacm-utils or perftest")
            return
        self._report.check(f"rdmacm: {self._wire.name}: {name}", function, *args)

    def run_all(self):
        for family in FAMILIES:
            self._family = family
            self.run_family(family)
            self.run_more(family)
        self._family = None
        server = self._wire.addresses.of["ipv4"][0]
        self._check("rping, nobody listens", self._refused, server)
        self._check("rping, nobody is there", self._absent)
        programs = list(self._perftests())
        if not self._report.complete:  # another fourth of them over each wire
            programs = programs[WIRES.index(self._wire.name)::4]
        self.run_perftests(programs, "ipv4")

    def run_family(self, family):
        """Run the checks of programs that take an address of either family."""
        server = self._wire.addresses.of[family][0]
        self._check(f"rping -C {self._repetitions}, {family}", self._rping, server)
        self._check(f"ucmatose -c 500, {family}", self._pair,
                    ["ucmatose", "-b", server, "-c", "500", "-C", "4"],
                    ["ucmatose", "-s", server, "-c", "500", "-C", "4"], "return status 0")
        self._check(f"udaddy, {family}", self._pair, ["udaddy", "-b", server], ["udaddy", "-s", server],
                    "return status 0")
        self._check(f"rdma_client, {family}", self._pair, ["rdma_server", "-s", server],
                    ["rdma_client", "-s", server], "end 0")

    def run_more(self, family):
        """Run the other checks: XRC, groups, many connections and many clients."""
        server, client = self._wire.addresses.of[family]
        group = MULTICAST[family]
        # rdma_xserver listens only on IPv4 addresses.
        for kind, name in (("r", "RC"), ("x", "XRC")) if family == "ipv4" else ():
            self._check(f"rdma_xclient, {name}, {family}", self._pair, ["rdma_xserver", "-c", kind],
                        ["rdma_xclient", "-s", server, "-c", kind], "end 0")
        self._check(f"mckey, {family}", self._pair, ["mckey", "-m", group, "-b", server],
                    ["mckey", "-m", group, "-b", client, "-s"], "return status 0")
        self._check(f"cmtime -c {self._repetitions}, {family}", self._cmtime, server)
        clients = PERSISTENT_CLIENTS if self._report.complete else FEW_CLIENTS
        self._check(f"rping -P, {clients} clients in a row, {family}", self._rping_persistent, server, clients)

    def run_perftests(self, programs, family):
        server = self._wire.addresses.of[family][0]
        for program, options in programs:
            self._check(" ".join([program, "-R", *options]), self._perftest, program, options, server)

    @staticmethod
    def perftests_short():
        """Run each program with each service that perftest supports over rdma_cm."""
        for verb in ("send", "write", "read", "atomic"):
            yield f"ib_{verb}_bw", []
            yield f"ib_{verb}_lat", []
        yield "ib_send_bw", ["-c", "UD"]
        yield "ib_send_lat", ["-c", "UD"]

    @classmethod
    def _perftests(cls):
        yield from cls.perftests_short()
        for verb in ("send", "read", "atomic"):
            yield f"ib_{verb}_bw", ["-b"]
        yield "ib_write_bw", ["-q", "8"]
        yield "ib_send_bw", ["-e"]
        yield "ib_read_bw", ["-a", "-n", "20"]
        yield "ib_write_bw", ["-b"]

    def _pair(self, server_argv, client_argv, words):
        with CmRunning() as running:
            server = running.serve(self._wire.hosts[0], server_argv)
            client = running.start(self._wire.hosts[1], client_argv)
            running.expect(client, SECONDS, "client")
            running.expect(server, END_SECONDS, "server")
            if any(words not in process.output() for process in (server, client)):
                running.fail(f"a side does not say '{words}'")

    def _rping(self, server):
        count = ["-v", "-C", str(self._repetitions), "-a", server]
        with CmRunning() as running:
            passive = running.serve(self._wire.hosts[0], ["rping", "-s", *count])
            active = running.start(self._wire.hosts[1], ["rping", "-c", *count])
            running.expect(active, SECONDS, "client")
            running.expect(passive, END_SECONDS, "server")
            for process in (passive, active):
                if not all(f"rdma-ping-{i}: " in process.output() for i in range(self._repetitions)):
                    running.fail("pings are missing")

    def _rping_persistent(self, server, clients):
        with CmRunning() as running:
            passive = running.serve(self._wire.hosts[0], ["rping", "-s", "-P", "-a", server])
            for _ in range(clients):
                active = running.start(self._wire.hosts[1], ["rping", "-c", "-C", "3", "-a", server])
                running.expect(active, SECONDS, "client")
            if passive.poll() is not None:
                running.fail("the server has ended")

    def _cmtime(self, server):
        """Run cmtime. Its server does not end by itself."""
        with CmRunning() as running:
            running.serve(self._wire.hosts[0], ["cmtime", "-b", server, "-c", str(self._repetitions)])
            client = running.start(self._wire.hosts[1], ["cmtime", "-s", server, "-c", str(self._repetitions)])
            running.expect(client, SECONDS, "client")
            if not re.search(r"^connect +: +[\d.]+", client.output(), re.M):
                running.fail("the client prints no time")

    def _refused(self, server):
        """Connect to a port without a listener. The server listens on another port, because its device must exist."""
        with CmRunning() as running:
            running.serve(self._wire.hosts[0], ["rping", "-s", "-a", server, "-p", "7999"])
            client = running.start(self._wire.hosts[1], ["rping", "-c", "-C", "1", "-a", server])
            if client.wait(SECONDS) in (None, 0) or "RDMA_CM_EVENT_REJECTED" not in client.output():
                running.fail("the client is not told that nobody listens")

    def _absent(self):
        absent = self._wire.addresses.of["ipv4"][0].rsplit(".", 1)[0] + ".77"
        with CmRunning() as running:
            running.serve(self._wire.hosts[0], ["rping", "-s", "-a", self._wire.addresses.of["ipv4"][0]])
            client = running.start(self._wire.hosts[1], ["rping", "-c", "-C", "1", "-a", absent])
            if client.wait(ADDRESS_ERROR_SECONDS) in (None, 0) or "RDMA_CM_EVENT_ADDR_ERROR" not in client.output():
                running.fail("the client is not told that there is no such host")

    def _perftest(self, program, options, server):
        """Check that the client prints a result. Send few datagrams, because one that finds no receive request is lost."""
        self._port += 1
        argv = [program, "-F", "-R", "-p", str(self._port), *([] if "-a" in options else ["-n", "300"]), *options]
        with CmRunning() as running:
            passive = running.serve(self._wire.hosts[0], argv)
            # Without LATE, the client crashes if the server listens late because it waits for its CPU (late.c).
            active = running.start(self._wire.hosts[1], ["env", f"LD_PRELOAD={LATE}", *argv, server])
            running.expect(active, SECONDS, "client")
            running.expect(passive, END_SECONDS, "server")
            rows = re.findall(r"^ *(\d+) +(\d+) +(?:[\d.]+|inf)\s+(?:[\d.]+|inf)\s", active.output(), re.M)
            if not rows:
                running.fail("the client prints no result")
