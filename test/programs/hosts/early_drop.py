# SPDX-License-Identifier: BSD-3-Clause
"""Which RoCE packets reach the kernel's UDP: those to other hosts always; those to an interface of uroce's only while
no eBPF program may drop them, or nobody renews it (pmd/netdev/early_drop.c)."""

import os
import platform
import re
import signal
import sys

from harness.process import LocalHost, Namespace, Process, Running, ask, wait_until
from harness.report import CheckFailed
from harness.tcx import has_attached, may_attach
from harness.tools import UROCE_RUN, PerfTest, Side, run_pair
from programs.share.share import Uroced

TESTROCE = os.path.join(os.path.dirname(UROCE_RUN), "testroce")
FIRST_PORT = 24800
SECONDS = 30
ROCE = 4791
MARK = 4790  # the port of the datagram behind them
COUNT = 10
OWN = {"ipv4": "10.9.12.1", "ipv6": "fd09:12::1"}
INNER = {"ipv4": "10.9.13.2", "ipv6": "fd09:13::2"}  # a host behind the one with uroce
GUEST = "10.9.12.9"  # an address that moves from one to the other
UNPRIVILEGED = ["setpriv", "--bounding-set", "-bpf,-sys_admin"]
BPF_CALL = {"x86_64": 321, "aarch64": 280}
# What a seccomp filter does with the system call bpf: it ends the process, answers EPERM, or allows it.
KILLS, REFUSES, ALLOWS = 0x80000000, 0x00050001, 0x7fff0000
MESSAGE = "looks at the packets"  # in the log, if no eBPF program can be attached

RECEIVE = f"""
import socket
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as port:
    port.bind(("::", {MARK}))
    port.settimeout({SECONDS})
    port.recv(1)
"""

SEND = f"""
import os, socket, sys
os.sched_setaffinity(0, [0])  # one CPU keeps the order
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
for number in [{ROCE}] * {COUNT} + [{MARK}]:
    with socket.socket(family, socket.SOCK_DGRAM) as port:
        port.sendto(bytes(60), (sys.argv[1], number))
"""

# Run a program with a filter: ACTION PROGRAM ARGUMENTS...
FILTER = f"""
import ctypes, os, struct, sys
call = {BPF_CALL.get(platform.machine(), -1)}
code = [(0x20, 0, 0, 0), (0x15, 0, 1, call), (6, 0, 0, int(sys.argv[1])), (6, 0, 0, {ALLOWS})]
insns = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *insn) for insn in code))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, struct.pack("HP", len(code), ctypes.addressof(insns))):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[2], sys.argv[2:])
"""

# Both ends of a veth in a network namespace of an own user namespace, as in a rootless container.
ROOTLESS = f"""
ip link set lo up && ip link add left type veth peer name right && ip addr add 10.9.14.1/24 dev left &&
ip addr add 10.9.14.2/24 dev right && ip link set left up && ip link set right up || exit 2
"$0" --netdev left --log-level debug --listen 10.9.14.1:{FIRST_PORT} --once & server=$!
until grep -q :{FIRST_PORT:04X} /proc/net/tcp; do kill -0 $server || exit 3; sleep 0.1; done
"$0" --netdev right --connect 10.9.14.1:{FIRST_PORT} --messages 100 --verify || exit 4
wait $server
"""


class EarlyDropTest:
    """Three hosts in a row: a peer, one that runs uroce and forwards packets, and an inner one."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._port = FIRST_PORT
        self._names = 0
        self._peer, self._host, self._inner = hosts = [Namespace(f"early{number}") for number in range(3)]
        for left, right in (("peer", "outer"), ("inside", "inner")):
            self._host.run("ip", "link", "add", left, "mtu", "9000", "type", "veth", "peer", "name", right, "mtu", "9000")
        self._host.run("ip", "link", "set", "peer", "netns", self._peer.name)
        self._host.run("ip", "link", "set", "inner", "netns", self._inner.name)
        for namespace in hosts:
            namespace.run("sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad; "
                          "for f in /proc/sys/net/ipv6/conf/*/accept_dad; do echo 0 >$f; done; "
                          "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
        for namespace, netdev, number in ((self._host, "outer", "12:1"), (self._peer, "peer", "12:2"),
                                          (self._host, "inside", "13:1"), (self._inner, "inner", "13:2")):
            net, end = number.split(":")
            namespace.run("ip", "link", "set", netdev, "up")
            namespace.run("ip", "addr", "add", f"10.9.{net}.{end}/24", "dev", netdev)
            namespace.run("ip", "addr", "add", f"fd09:{net}::{end}/64", "dev", netdev, "nodad")
        for family, address in (("-4", OWN["ipv4"]), ("-6", OWN["ipv6"])):
            self._peer.run("ip", family, "route", "add", "default", "via", address)
        for family, address in (("-4", "10.9.13.1"), ("-6", "fd09:13::1")):
            self._inner.run("ip", family, "route", "add", "default", "via", address)
        self._peer.run("ip", "route", "add", GUEST, "via", OWN["ipv4"])

    # ---- what the kernel sees ----
    @staticmethod
    def _run(namespace, *argv):
        """Run a command with the precedence of the programs, and return its output."""
        done = ask([*namespace.prefix, *argv], SECONDS)
        if done.returncode != 0:
            raise CheckFailed(f"{argv[0]}: exit {done.returncode}", done.stderr.splitlines())
        return done.stdout

    def _seen(self, namespace):
        """Return how many datagrams the UDP of a host's kernel has looked at."""
        text = self._run(namespace, "cat", "/proc/net/snmp", "/proc/net/snmp6")
        names, values = (line.split() for line in re.findall(r"^Udp: .*", text, re.M))
        ipv6 = dict(re.findall(r"^Udp6(\w+)\s+(\d+)", text, re.M))
        ipv4 = dict(zip(names, values))
        return sum(int(counters[name]) for counters in (ipv4, ipv6) for name in ("InDatagrams", "NoPorts", "InErrors"))

    def _roce(self, to, at=None):
        """Send RoCE packets from the peer, and one other datagram behind them. When a program has received that one,
        return how many of the others UDP has seen."""
        at = at or self._host
        with Running() as running:
            receiver = running.add(self._place(at).start([sys.executable, "-c", RECEIVE]))
            if not wait_until(lambda: f":{MARK:04X}" in self._run(at, "cat", "/proc/net/udp6"), SECONDS):
                running.fail("the receiver does not start")
            before = self._seen(at)
            self._run(self._peer, sys.executable, "-c", SEND, to)
            if receiver.wait(2 * SECONDS) != 0:
                running.fail(f"no datagram to {to} arrives")
            return self._seen(at) - before - 1

    def _expect(self, to, count, at=None):
        seen = self._roce(to, at)
        if seen != count:
            raise CheckFailed(f"UDP sees {seen} of {COUNT} RoCE packets to {to}, not {count}")

    def _expect_soon(self, to, count, at=None):
        """Expect it now or later: on a busy machine a process may not get a CPU in time to renew its eBPF program."""
        if not wait_until(lambda: self._roce(to, at) == count, SECONDS):
            raise CheckFailed(f"UDP never sees {count} of {COUNT} RoCE packets to {to}")

    # ---- programs ----
    def _place(self, namespace, *argv):
        self._names += 1
        return LocalHost(f"early-{self._names}", self._work_dir, [*namespace.prefix, *argv])

    def _start(self, running, *before):
        """Start a program with a device on the host's interface, and wait until it waits for a peer."""
        self._port += 1
        process = running.add(self._place(self._host, *before).start(
            [TESTROCE, "--netdev", "outer", "--log-level", "debug", "--listen", f"{OWN['ipv4']}:{self._port}"]))
        if not wait_until(lambda: process.listens(self._port), SECONDS):
            running.fail("testroce does not listen")
        return process

    def _transfer(self, *options):
        """Let programs at the host and at the peer transfer data. Return how many datagrams the host's UDP sees."""
        self._port += 1
        before = self._seen(self._host)
        server = self._place(self._host, UROCE_RUN, *options, "--")
        client = self._place(self._peer, UROCE_RUN, "--netdev", "peer", "--")
        run_pair(PerfTest("ib_send_bw", ["-b"], 500), Side(server, "uroce0", OWN["ipv4"], None),
                 Side(client, "uroce0", OWN["ipv4"], None), self._port)
        return self._seen(self._host) - before

    def run_all(self):
        if not may_attach():
            self._report.skip("early drop", "needs Linux 6.6, and root that may load eBPF programs")
            return
        for name, check in (("packets of a program", self._program), ("packets of uroced's programs", self._attached),
                            ("packets to other hosts", self._others), ("an address that moves", self._moves),
                            ("a stopped program", self._stopped), ("two programs", self._two),
                            ("no privilege", self._unprivileged), ("a user namespace", self._rootless)):
            self._report.check(f"early drop: {name}", check)
        if platform.machine() in BPF_CALL:
            self._report.check("early drop: seccomp filters", self._filters)
        else:
            self._report.skip("early drop: seccomp filters", "the number of the system call bpf is not known here")

    def _program(self):
        plain = self._transfer("--netdev", "outer", "--without", "early-drop")
        self._expect_few(self._transfer("--netdev", "outer"), plain)

    def _attached(self):
        plain = self._transfer("--netdev", "outer", "--without", "early-drop")
        owner = Uroced(self._host, self._work_dir, "outer", name="early")
        try:
            owner.run()
            self._expect_soon(OWN["ipv4"], 0)
            self._expect_few(self._transfer("--socket", owner.socket), plain)
        finally:
            if owner.process:
                owner.process.kill()

    @staticmethod
    def _expect_few(seen, plain):
        if 10 * seen >= plain:
            raise CheckFailed(f"UDP sees {seen} packets, and {plain} without early-drop")

    def _others(self):
        with Running() as running:
            program = self._start(running)
            if MESSAGE in program.output():
                running.fail("no eBPF program is attached")
            for family in ("ipv4", "ipv6"):
                self._expect_soon(OWN[family], 0)
                self._expect(INNER[family], COUNT, self._inner)
            # another interface's address: uroce does not have it
            self._expect("10.9.13.1", COUNT)
            program.kill()
        for address in OWN.values():
            self._expect_soon(address, COUNT)

    def _moves(self):
        with Running() as running:
            self._start(running)
            self._inner.run("ip", "addr", "flush", "to", GUEST)  # of an earlier try
            self._host.run("ip", "addr", "replace", f"{GUEST}/32", "dev", "outer")
            self._expect_soon(GUEST, 0)
            self._host.run("ip", "addr", "del", f"{GUEST}/32", "dev", "outer")
            self._inner.run("ip", "addr", "add", f"{GUEST}/32", "dev", "inner")
            self._host.run("ip", "route", "replace", GUEST, "via", INNER["ipv4"])
            self._expect_soon(GUEST, COUNT, self._inner)
            self._expect_soon(OWN["ipv4"], 0)

    def _stopped(self):
        """Nobody renews the program of a process that is stopped."""
        with Running() as running:
            program = self._start(running)
            self._expect_soon(OWN["ipv4"], 0)
            os.killpg(program.pid, signal.SIGSTOP)
            self._expect_soon(OWN["ipv4"], COUNT)
            os.killpg(program.pid, signal.SIGCONT)
            self._expect_soon(OWN["ipv4"], 0)

    def _two(self):
        """Each program of an interface attaches its own, and a killed one leaves the other's alone."""
        with Running() as running:
            first = self._start(running)
            self._start(running)
            self._expect_soon(OWN["ipv4"], 0)
            first.kill()
            self._expect_soon(OWN["ipv4"], 0)
            self._transfer("--netdev", "outer")
            self._expect_soon(OWN["ipv4"], 0)

    def _unprivileged(self):
        """All works without it, and the log tells if somebody asks for it."""
        with Running() as running:
            program = self._start(running, *UNPRIVILEGED)
            self._expect(OWN["ipv4"], COUNT)
            if MESSAGE not in program.output():
                running.fail("the log does not tell that no eBPF program is attached")
        if not self._transfer("--netdev", "outer", "--", *UNPRIVILEGED):
            raise CheckFailed("UDP sees no packet")

    def _filters(self):
        """uroced attaches its program if a filter allows it, and lives in any case."""
        for action in (ALLOWS, REFUSES, KILLS):
            owner = Uroced(self._host, self._work_dir, "outer", name=f"early-{action}")
            owner.argv = [sys.executable, "-c", FILTER, str(action), *owner.argv]
            try:
                owner.run()
                if has_attached(owner.process.pid) != (action == ALLOWS):
                    raise CheckFailed(f"not so with the action {action:#x}", owner.process.story("uroced"))
            finally:
                if owner.process:
                    owner.process.kill()

    def _rootless(self):
        with Running() as running:
            process = running.add(Process(["unshare", "-Urn", "sh", "-c", ROOTLESS, TESTROCE],
                                          os.path.join(self._work_dir, "rootless.log")))
            status = process.wait(2 * SECONDS)
            if status != 0:
                running.fail("hangs" if status is None else f"exit {status}")
            if MESSAGE not in process.output():
                running.fail("an eBPF program was attached")
