# SPDX-License-Identifier: BSD-3-Clause
"""What stands on the wire: VLAN tags, priorities, traffic classes; and what links and addresses tell programs."""

import os
import re
import signal

from harness.process import LocalHost, Namespace, Process, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN, PerfTest, PingPong, Side, gid_index, gids, run_pair

FIRST_PORT = 22000
COMMAND_SECONDS = 30
VLAN = 5
SERVICE_LEVEL = 3
TRAFFIC_CLASS = 0x68
ROCE = "udp port 4791 or (vlan and udp port 4791)"


class EthernetTest:
    """Two namespaces with a veth pair, whose interfaces are the kernel's (TCP) and uroce's, each with its own addresses."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._port = FIRST_PORT
        self._namespaces = [Namespace("eth0"), Namespace("eth1")]
        self._namespaces[0].run("ip", "link", "add", "veth0", "mtu", "9000", "type", "veth", "peer",
                                "name", "veth1", "mtu", "9000", "netns", self._namespaces[1].name)
        for number, namespace in enumerate(self._namespaces):
            netdev = f"veth{number}"
            namespace.run("sh", "-c", f"echo 0 >/proc/sys/net/ipv6/conf/{netdev}/accept_dad")
            namespace.run("ip", "link", "set", netdev, "up")
            namespace.run("ip", "addr", "add", f"10.9.2.{number + 1}/24", "dev", netdev)

    def _host(self, number, options):
        name = f"eth-{number}-{options[0][2:]}"
        return LocalHost(name, self._work_dir,
                         [*self._namespaces[number].prefix, UROCE_RUN, *options, "--"],
                         number % os.cpu_count())

    def _own_hosts(self):
        """A port of uroce's own, with the same address untagged and in two VLANs."""
        return [self._host(number, ["--port", f"net_af_packet0,iface=veth{number}",
                                    "--ip", f"10.9.4.{number + 1}/24",
                                    "--ip", f"10.9.4.{number + 1}/24@{VLAN + 1}",
                                    "--ip", f"10.9.5.{number + 1}/24@{VLAN}",
                                    "--ip", f"fd09:5::{number + 1}/64@{VLAN}"])
                for number in range(2)]

    def _kernel_hosts(self):
        return [self._host(number, ["--netdev", f"veth{number}"]) for number in range(2)]

    def run_all(self):
        hosts = self._own_hosts()
        tables = []
        self._report.check("VLAN: GID table", lambda: tables.extend(gids(host, DEVICE) for host in hosts))
        for family, prefix in (("ipv4", "10.9.5."), ("ipv6", "fd09:5::")):
            for service in ("rc", "uc", "ud", "srq"):
                program = PingPong(["-l", str(SERVICE_LEVEL)], 200, 2048 if service == "ud" else 16384, service)
                self._report.check(f"VLAN: {family} {program.name}", self._tagged, program, hosts, tables, prefix)
        for service in ("RC", "UC", "UD"):
            program = PerfTest("ib_send_bw", ["-c", service, "-s", "1024", "-S", str(SERVICE_LEVEL),
                                              f"--tclass={TRAFFIC_CLASS}"], 200)
            self._report.check(f"VLAN: {program.name}", self._tagged, program, hosts, tables, "10.9.5.",
                               TRAFFIC_CLASS)

    def _capture(self, *options):
        return Process([*self._namespaces[0].prefix, "tcpdump", "-lvvenni", "veth0", *options],
                       os.path.join(self._work_dir, "tcpdump"))

    def _tagged(self, program, hosts, tables, prefix, traffic_class=0):
        """Every packet that reaches the server has the tag, and IP's traffic class."""
        self._port += 1
        sides = [Side(host, DEVICE, "10.9.2.1", gid_index(table, f"{prefix}{number + 1}"))
                 for number, (host, table) in enumerate(zip(hosts, tables))]
        with Capture(self._capture("-c", "20", ROCE)) as capture:
            run_pair(program, sides[0], sides[1], self._port)
            text = capture.finish()
        tag = re.compile(rf"vlan {VLAN}, p {SERVICE_LEVEL}, ")
        lines = [line for line in text.splitlines() if "ethertype" in line]
        wrong = [line for line in lines if not tag.search(line)]
        wrong += [line for line in lines if f"tos {traffic_class:#x}" not in line
                  and f"class {traffic_class:#x}" not in line and (traffic_class or "IPv4" in line)]
        if not lines or wrong:
            raise CheckFailed("packets without the tag or class" if lines else "nothing was captured",
                              wrong[:5] or text.splitlines())


class Capture:
    """A tcpdump that listens, and its output when it has seen what it waits for."""

    def __init__(self, process):
        self._process = process

    def __enter__(self):
        if not wait_until(lambda: "listening on" in self._process.output(), COMMAND_SECONDS):
            raise CheckFailed("tcpdump does not start", self._process.story("tcpdump"))
        return self

    def __exit__(self, *_):
        self._process.kill()

    def finish(self):
        """What was captured; tcpdump writes out what it holds when it is interrupted."""
        os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(COMMAND_SECONDS)
        return self._process.output()
