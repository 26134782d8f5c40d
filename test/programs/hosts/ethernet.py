# SPDX-License-Identifier: BSD-3-Clause
"""The Ethernet side of a port: VLAN tags, priorities and traffic classes in frames, and the link states and
addresses that programs see."""

import os
import re
import signal
import sys

from harness.process import LocalHost, Namespace, Process, ask, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import (DEVICE, MULTICAST_GIDS, TCPDUMP, UROCE_RUN, PerfTest, PingPong, Side, gid_index, gids,
                           run_pair)

FIRST_PORT = 22000
COMMAND_SECONDS = 30
PING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ping.py")
VLAN = 5
SERVICE_LEVEL = 3
TRAFFIC_CLASS = 0x68
ROCE = "udp port 4791 or (vlan and udp port 4791)"


PREFIXES = {"ipv4": "10.9.5.", "ipv6": "fd09:5::"}  # addresses in the VLAN
# Networks 1 and 2 behind a router, whose address in each ends with fe
ROUTED = {"ipv4": ("10.9.{}.", "24", "254"), "ipv6": ("fd09:{}::", "64", "fe")}
GROUPS = {"ipv4": "239.1.2.3", "ipv6": "ff0e::7"}  # the groups whose GIDs MULTICAST_GIDS names


class EthernetTest:
    """Two namespaces with a veth pair. The kernel and uroce both use the interfaces, each with its own addresses."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._port = FIRST_PORT
        self._tables = []
        self._namespaces = [Namespace("eth0"), Namespace("eth1")]
        veth_pair(*self._namespaces, ("10.9.2.1", "10.9.2.2"))

    def _host(self, number, options):
        name = f"eth-{number}-{options[0][2:]}"
        return LocalHost(name, self._work_dir,
                         [*self._namespaces[number].prefix, UROCE_RUN, *options, "--"],
                         number % os.cpu_count())

    def _own_hosts(self):
        """Make a port that only uroce uses, with the same address untagged and in two VLANs."""
        return [self._host(number, ["--port", f"net_af_packet0,iface=veth{number}",
                                    "--ip", f"10.9.4.{number + 1}/24",
                                    "--ip", f"10.9.4.{number + 1}/24@{VLAN + 1}",
                                    "--ip", f"10.9.5.{number + 1}/24@{VLAN}",
                                    "--ip", f"fd09:5::{number + 1}/64@{VLAN}"])
                for number in range(2)]

    def _sides(self, prefix):
        """Return server and client with their addresses of that prefix."""
        hosts = self._own_hosts()
        if not self._tables:
            self._tables = [gids(host, DEVICE) for host in hosts]
        self._port += 1
        return [Side(host, DEVICE, "10.9.2.1", gid_index(table, f"{prefix}{number + 1}"))
                for number, (host, table) in enumerate(zip(hosts, self._tables))]

    def _kernel_hosts(self):
        return [self._host(number, ["--netdev", f"veth{number}"]) for number in range(2)]

    def run_all(self):
        for family, prefix in PREFIXES.items():
            for service in ("rc", "uc", "ud", "srq"):
                program = PingPong(["-l", str(SERVICE_LEVEL)], 200, 2048 if service == "ud" else 16384, service)
                self._report.check(f"VLAN: {family} {program.name}", self._tagged, program, prefix)
        for service in ("RC", "UC", "UD", "XRC"):
            program = PerfTest("ib_send_bw", ["-c", service, "-s", "1024", "-S", str(SERVICE_LEVEL),
                                              f"--tclass={TRAFFIC_CLASS}"], 200)
            self._report.check(f"VLAN: {program.name}", self._tagged, program, "10.9.5.", TRAFFIC_CLASS)
        for family, group in GROUPS.items():
            self._report.check(f"multicast: {family} is joined and left in every network", self._joins, family, group)
        self._report.check("tap: the kernel resolves and pings us", self._pings)
        for family in ROUTED:
            self._report.check(f"routes: {family} to hosts behind routers", self._routes, family)
        self._report.check("events: an address comes and goes, the link goes and comes", self._events)

    def _pings(self):
        """The other end of a net_tap is the kernel. A signal tells the driver that packets have come."""
        namespace = self._namespaces[0]
        self._port += 1
        host = self._host(0, ["--port", "net_tap0,iface=utap0", "--ip", "10.9.7.1/24", "--ip", "fd09:7::1/64"])
        server = host.start(["ib_write_bw", "-F", "-d", DEVICE, "-p", str(self._port)])
        try:
            self._expect(server, lambda: server.listens(self._port) or server.poll() is not None,
                         "the server does not listen")
            namespace.run("ip", "addr", "add", "10.9.7.2/24", "dev", "utap0")
            namespace.run("ip", "addr", "add", "fd09:7::2/64", "dev", "utap0", "nodad")
            namespace.run("ip", "link", "set", "utap0", "up")
            for address in ("10.9.7.1", "fd09:7::1"):
                for length in (0, 56, 1400):
                    done = ask([*namespace.prefix, sys.executable, PING, address, str(length)], COMMAND_SECONDS)
                    if done.returncode:
                        raise CheckFailed(done.stdout.strip() or "ping.py fails",
                                          [*done.stderr.splitlines(), *server.story("program")])
            if server.poll() is not None:
                raise CheckFailed("the program has ended", server.story("program"))
        finally:
            server.kill()

    def _routes(self, family):
        """Two ports that only uroce uses, and the kernel of a third namespace, which forwards between them. The programs meet
        by a link of their own."""
        prefix, length, last = ROUTED[family]
        networks = [prefix.format(41 + number) for number in range(2)]
        other = f"{networks[0]}{'0' if family == 'ipv4' else ''}/{length}"
        ways = (["--gateway", f"{networks[0]}{last}"], ["--route", f"{other} via {networks[1]}{last}"])
        router, *ends = [Namespace(role) for role in ("router", "end0", "end1")]
        try:
            router.run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
            veth_pair(*ends, ("10.9.40.1", "10.9.40.2"))
            for number, end in enumerate(ends):
                router.run("ip", "link", "add", f"to{number}", "type", "veth", "peer", "name", "eth0", "netns", end.name)
                router.run("ip", "addr", "add", f"{networks[number]}{last}/{length}", "dev", f"to{number}")
                router.run("ip", "link", "set", f"to{number}", "up")
                end.run("ip", "link", "set", "eth0", "up")
            hosts = [LocalHost(f"routed-{number}", self._work_dir, [
                *ends[number].prefix, UROCE_RUN, "--port", "net_af_packet0,iface=eth0",
                "--ip", f"{networks[number]}1/{length}", *ways[number], "--"], number % os.cpu_count()) for number in range(2)]
            self._port += 1
            run_pair(PingPong([], 200, 4096), *(Side(host, DEVICE, "10.9.40.1", gid_index(gids(host, DEVICE), f"{network}1"))
                                                for host, network in zip(hosts, networks)), self._port)
        finally:
            for namespace in (router, *ends):
                namespace.remove()

    def _joins(self, family, group):
        """Check that the receiver of a group sends reports, which snooping switches need: untagged, and in each VLAN."""
        server, client = self._sides(PREFIXES[family])
        program = PerfTest("ib_send_bw", ["-c", "UD", "-s", "1024", "-g", "-M", MULTICAST_GIDS[family]], 200)
        with Capture(self._capture(1, "not udp and not tcp and not arp")) as capture:
            run_pair(program, server, client, self._port)
            wait_until(lambda: not self._missing_reports(capture.output(), group), COMMAND_SECONDS)
            text = capture.finish()
        for missing in self._missing_reports(text, group):
            raise CheckFailed(f"the capture lacks a report: {missing}", text.splitlines())

    @staticmethod
    def _missing_reports(text, group):
        """Return the reports that were not captured, of those that a join and a leave should send in every network."""
        reports = [line for line in text.replace("\n    ", " ").splitlines() if f"gaddr {group} " in line]
        return [f"{change} {network or 'untagged'}"
                for change in ("to_ex", "to_in")
                for network in ("", f"vlan {VLAN},", f"vlan {VLAN + 1},")
                if not any(f"{group} {change}" in line and (network in line if network else "vlan" not in line)
                           for line in reports)]

    def _events(self):
        """ibv_asyncwatch prints each event. The test makes the next change when the event of the previous one was
        printed."""
        namespace = self._namespaces[0]
        watch = self._kernel_hosts()[0].start(["stdbuf", "-oL", "ibv_asyncwatch", "-d", DEVICE])
        other_end = self._namespaces[1]
        changes = (
            ("GID_CHANGE", 1, namespace, ["addr", "add", "10.9.6.1/24", "dev", "veth0"]),
            ("GID_CHANGE", 2, namespace, ["addr", "del", "10.9.6.1/24", "dev", "veth0"]),
            ("PORT_ERR", 1, other_end, ["link", "set", "veth1", "down"]),
            ("PORT_ACTIVE", 1, other_end, ["link", "set", "veth1", "up"]),
        )
        try:
            self._expect(watch, lambda: "async event FD" in watch.output(), "ibv_asyncwatch does not start")
            for event, count, where, change in changes:
                where.run("ip", *change)
                self._expect(watch, lambda: watch.output().count(f"IBV_EVENT_{event} ") == count,
                             f"no event {event} after: ip {' '.join(change)}")
        finally:
            watch.kill()

    @staticmethod
    def _expect(process, condition, reason):
        if not wait_until(condition, COMMAND_SECONDS):
            raise CheckFailed(reason, process.story("program"))

    def _capture(self, number, *options):
        """Capture the packets that arrive at an end; a capture does not see the packets that its own end sends by
        uroce. Without immediate mode the kernel keeps packets for up to a second, and a tcpdump that ends would
        lose them."""
        return Process([*self._namespaces[number].prefix, *TCPDUMP, "--immediate-mode", "-lvvenni",
                        f"veth{number}", *options],
                       os.path.join(self._work_dir, "tcpdump"))

    @staticmethod
    def _traffic_class(line):
        """Return a packet's class without its last two bits, which are congestion's. tcpdump prints no IPv6 class 0."""
        found = re.search(r"\b(?:tos|class) 0x([0-9a-f]+)", line)
        return int(found.group(1), 16) & ~3 if found else 0

    def _tagged(self, program, prefix, traffic_class=0):
        """Check that every packet that reaches the server has the tag and the traffic class."""
        server, client = self._sides(prefix)
        with Capture(self._capture(0, "-c", "20", ROCE)) as capture:
            run_pair(program, server, client, self._port)
            text = capture.finish()
        tag = re.compile(rf"vlan {VLAN}, p {SERVICE_LEVEL}, ")
        lines = [line for line in text.splitlines() if "ethertype" in line]
        wrong = [line for line in lines if not tag.search(line)]
        wrong += [line for line in lines if self._traffic_class(line) != traffic_class]
        if not lines or wrong:
            raise CheckFailed("packets without the tag or class" if lines else "nothing was captured",
                              wrong[:5] or text.splitlines())


class Capture:
    """A running tcpdump, and its output."""

    def __init__(self, process):
        self._process = process

    def __enter__(self):
        if not wait_until(lambda: "listening on" in self._process.output(), COMMAND_SECONDS):
            raise CheckFailed("tcpdump does not start", self._process.story("tcpdump"))
        return self

    def __exit__(self, *_):
        self._process.kill()

    def output(self):
        """Return what has been captured so far."""
        return self._process.output()

    def finish(self):
        """Return all that was captured: tcpdump writes its buffer when it is interrupted."""
        os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(COMMAND_SECONDS)
        return self._process.output()
