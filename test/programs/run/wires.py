# SPDX-License-Identifier: BSD-3-Clause
"""Checks of one kind of link between two sides: unmodified RDMA programs, each in a uroce-run process on its own
CPU."""

import os
import re

from harness.pairwise import choose
from harness.process import LocalHost, Namespace, Process, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import (DEVICE, MULTICAST_GIDS, TCPDUMP, UROCE_RUN, PerfTest, PingPong, Side, gid_index, gids,
                           kill_pair, optimisations, run_pair)
from programs.run.options import option_programs, option_programs_short

TESTROCE = os.path.join(os.path.dirname(UROCE_RUN), "testroce")
FIRST_PORT = 20000
COMMAND_SECONDS = 30
KILL_SPAN_SECONDS = 1.5
WIRES = ("memif", "veth")
VERBS = ("send", "write", "read", "atomic")
PROTOCOL = ("batch-ack", "direct", "runs")  # optimisations that change what is sent, or by which way
FOREIGN_VENDORS = (0x0, 0xffffff, 0x15b3, 5157, 0x8086)  # vendor ids that programs treat specially


def uroce_host(name, work_dir, cpu, namespace, port_options):
    prefix = [*namespace.prefix, UROCE_RUN, *port_options, "--"]
    return LocalHost(name, work_dir, prefix, cpu % os.cpu_count())


class MemifWire:
    """Two processes in one namespace, connected by memif."""

    name = "memif"
    active_alone = False  # the link is up only while both processes run

    def __init__(self, work_dir, role="memif"):
        self.work_dir = work_dir
        self.namespace = Namespace(role)
        self.tcp_address = "127.0.0.1"
        self.addresses = ["10.9.1.1", "10.9.1.2"]
        self.set_options([])

    def set_options(self, more, own=((), ())):
        """Set options of uroce-run for both sides, in addition to the port; then those of the server and of the
        client."""
        self.sockets = [f"{self.work_dir}/memif.sock"] * 2
        self._make_hosts([[*more, *options] for options in own])

    def separate(self, more):
        """The two sides do not meet at one socket, but each at its own, where another program connects them."""
        self.sockets = [f"{self.work_dir}/memif-{role}.sock" for role in ("server", "client")]
        self._make_hosts([more, more])

    def _make_hosts(self, options):
        self.hosts = [uroce_host(f"memif-{role}", self.work_dir, end, self.namespace, [*self.port_options(end), *options[end]])
                      for end, role in enumerate(("server", "client"))]

    def port_options(self, end):
        """Return the port of the server (0) or of the client (1)."""
        role = ("server", "client")[end]
        return ["--port", f"net_memif0,socket={self.sockets[end]},role={role},id=0", "--ip", f"{self.addresses[end]}/24"]


class VethWire:
    """Two namespaces with a veth pair, as two containers. The addresses are the kernel's."""

    name = "veth"
    active_alone = True

    def __init__(self, work_dir, role="veth"):
        namespaces = [Namespace(f"{role}0"), Namespace(f"{role}1")]
        self.addresses = ["10.9.2.1", "10.9.2.2"]
        self.tcp_address = self.addresses[0]
        self.namespaces = namespaces
        self.work_dir = work_dir
        self._role = role
        veth_pair(*namespaces, self.addresses)
        self.set_options([])

    def set_options(self, more, own=((), ())):
        """Set options of uroce-run for both sides, in addition to the interface; then those of the server and of the
        client."""
        self.hosts = [uroce_host(f"{self._role}-{cpu}", self.work_dir, cpu, namespace,
                                 ["--netdev", f"veth{cpu}", *more, *own[cpu]])
                      for cpu, namespace in enumerate(self.namespaces)]


# Ways to run a verb's program. Only those of bandwidth run with all sizes: those of latency compute for half a second for
# each size.
FORMS = {
    "bw": ("bw", [], None),
    "lat": ("lat", [], None),
    "all sizes": ("bw", ["-a"], 20),
    "long": ("lat", ["-s", "8388608"], 10),
    "queue pairs": ("bw", ["-q", "16"], 200),
    "both ways": ("bw", ["-b"], 500),
}
NO_FORMS = {("atomic", "all sizes"), ("atomic", "long")}  # atomics have one size
# Left to the complete tests: perftest itself needs most of their time, or others show the same.
SLOW_FORMS = {("send", "all sizes"), ("write", "all sizes"), *((verb, "long") for verb in VERBS), ("send", "lat"), ("write", "lat")}


def wire_programs(complete, wire):
    """Return the programs that run over this kind of link."""
    left_out = NO_FORMS if complete else NO_FORMS | SLOW_FORMS
    for verb, form, where in choose(complete, VERBS, FORMS, WIRES, possible=lambda verb, form, _: (verb, form) not in left_out):
        if where == wire:
            program, options, iterations = FORMS[form]
            yield PerfTest(f"ib_{verb}_{program}", options, iterations)
    if complete or wire == WIRES[0]:
        yield PerfTest("ib_atomic_bw", ["-A", "CMP_AND_SWAP"], 500)


class WireTest:
    """All checks of one kind of link; the server is the first host."""

    def __init__(self, report, wire, rng):
        self._report = report
        self._wire = wire
        self._rng = rng
        self._port = FIRST_PORT
        self._gid_tables = []

    def _check(self, name, function, *args):
        self._report.check(f"{self._wire.name}: {name}", function, *args)

    def _sides(self, gid_indices):
        self._port += 1
        return [Side(host, DEVICE, self._wire.tcp_address, index)
                for host, index in zip(self._wire.hosts, gid_indices)]

    def run_all(self):
        self._check("ibv_devices", self._devices)
        self._check("ibv_devinfo -v", self._devinfo)
        for options, family, where in choose(self._report.complete, ((), ("-e",), ("-m", "4096")), tuple(MULTICAST_GIDS), WIRES):
            if where == self._wire.name:
                program = PingPong(options, 1000, 65536)
                self._check(f"{family} {program.name}", self._pingpong, program, family)
        for program in wire_programs(self._report.complete, self._wire.name):
            self._check(program.name, self._run_default_gid, program)
        # Send fewer than 480 datagrams: a packet socket holds that many for a receiver that waits for its CPU. The
        # service may lose the others, and then the server would wait for ever.
        for family, mgid in MULTICAST_GIDS.items():
            program = PerfTest("ib_send_bw", ["-c", "UD", "-s", "1024", "-g", "-M", mgid], 400)
            self._check(f"{family} {program.name}", self._pingpong, program, family)
        for program in option_programs(self._report.complete) if isinstance(self._wire, MemifWire) else option_programs_short():
            by_gid = isinstance(program, PingPong)
            self._check(program.name, self._pingpong if by_gid else self._run_default_gid, program,
                        *(["ipv4"] if by_gid else []))
        if isinstance(self._wire, VethWire):
            self._check("no ICMP errors from the kernel", self._no_icmp_errors)
        self._kills()

    def _output_of(self, *argv, host=None):
        process = (host or self._wire.hosts[0]).start(argv)
        status = process.wait(COMMAND_SECONDS)
        story = process.story(argv[0])
        process.kill()
        if status != 0:
            raise CheckFailed("hangs" if status is None else f"exit {status}", story)
        return process.output()

    def _devices(self):
        output = self._output_of("ibv_devices")
        if not re.search(rf"^\s*{DEVICE}\s+[0-9a-f]{{16}}$", output, re.M):
            raise CheckFailed(f"{DEVICE} is not listed", output.splitlines())

    def _devinfo(self):
        output = self._output_of("ibv_devinfo", "-v")
        state = "PORT_ACTIVE" if self._wire.active_alone else "PORT_"
        for pattern in (rf"hca_id:\s+{DEVICE}$", r"transport:\s+InfiniBand", rf"state:\s+{state}",
                        r"link_layer:\s+Ethernet", r"GID\[ *0\]:\s+fe80:", r"RoCE v2",
                        r"node_guid:\s+(?!0000:0000:0000:0000)"):
            if not re.search(pattern, output, re.M):
                raise CheckFailed(f"no line matches {pattern}", output.splitlines())
        vendor = int(re.search(r"vendor_id:\s+(\S+)", output).group(1), 0)
        if vendor in FOREIGN_VENDORS:
            raise CheckFailed(f"vendor_id {vendor:#x} belongs to another vendor")

    def _gid_indices(self, family):
        if not self._gid_tables:
            self._gid_tables = [gids(host, DEVICE) for host in self._wire.hosts]
        return [gid_index(table, address if family == "ipv4" else "link-local")
                for table, address in zip(self._gid_tables, self._wire.addresses)]

    def _pingpong(self, program, family):
        server, client = self._sides(self._gid_indices(family))
        run_pair(program, server, client, self._port)

    def _run_default_gid(self, program):
        """perftest chooses a GID itself."""
        server, client = self._sides([None, None])
        run_pair(program, server, client, self._port)

    def _no_icmp_errors(self):
        """The kernel must not answer RoCE packets with 'port unreachable'."""
        capture = Process([*self._wire.namespaces[0].prefix, *TCPDUMP, "-lni", "veth0",
                           "icmp[icmptype] == icmp-unreach or icmp6[icmp6type] == 1"],
                          os.path.join(self._wire.work_dir, "tcpdump"))
        try:
            if not wait_until(lambda: "listening on" in capture.output(), COMMAND_SECONDS):
                raise CheckFailed("tcpdump does not start", capture.story("tcpdump"))
            self._run_default_gid(PerfTest("ib_write_bw", [], 1000))
            wait_until(lambda: "unreachable" in capture.output(), 0.5)
            if "unreachable" in capture.output():
                raise CheckFailed("the kernel sends ICMP errors", capture.story("tcpdump"))
        finally:
            capture.kill()

    def _kills(self):
        """Each survivor has work outstanding, or waits for its peer on TCP."""
        verbs = VERBS if self._report.complete else ("write", "read")
        for verb, victim, where in choose(self._report.complete, verbs, ("server", "client"), WIRES):
            if where == self._wire.name:
                self._kill(PerfTest(f"ib_{verb}_bw", ["-D", "60", *(["-b"] * (victim == "client"))]), victim)
        if where == self._wire.name:
            self._kill(PerfTest("ib_write_bw", ["-D", "60"]), "client")

    def _kill(self, program, victim):
        delay = self._rng.uniform(0, KILL_SPAN_SECONDS)

        def cell():
            server, client = self._sides([None, None])
            kill_pair(program, server, client, self._port, victim, delay)
        self._check(f"{program.name}, {victim} killed after {delay:.3f} s", cell)


class WithoutTest(WireTest):
    """Memif without each optimisation, and without any. They change the speed, and nothing else."""

    def run_all(self):
        self._plain = LocalHost("without", self._wire.work_dir)
        for names in optimisations():
            if not self._report.complete and "," not in names and names not in PROTOCOL:
                continue
            self._wire.set_options(["--without", names])
            self._check(f"without {names}: verified data", self._pingpong, PingPong(["-m", "4096"], 300, 32768), "ipv4")
            self._check(f"without {names}: verified data of 80 queue pairs", self._many, names)

    def _many(self, names):
        """So many that their state does not fit into the caches (pmd/engine/engine.c)."""
        self._output_of(TESTROCE, "--pair", "--size", "3000", "--qps", "80", "--depth", "8", "--messages", "4000",
                        "--verify", "--without", names, host=self._plain)
