#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare uroce with Linux's rxe: perftest and connections between two guests in QEMU, over both stacks on the same
virtio NICs, in turns. Emulation makes the figures small; only their ratio matters. It needs an idle machine with
a CPU for each guest."""

import argparse
import os
import re
import statistics
import sys
import tempfile
import time

TEST_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INTEROP_DIR = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [TEST_DIR, INTEROP_DIR, os.path.join(INTEROP_DIR, "nic")]

from guest import MTU, GuestError, bridged_network, make_image  # noqa: E402
from harness.process import exit_on_signals, wait_until  # noqa: E402
from harness.report import CheckFailed, Report  # noqa: E402
from harness.tools import UROCE_RUN, PerfTest, Side, gid_index, gids, run_pair  # noqa: E402
from overlay import GUEST_CONNECT_RATE, add_uroce  # noqa: E402
import ports  # noqa: E402

NUMBERS = (41, 42)  # numbers in the names and addresses of the two NICs
FIRST_PORT = 22000
PAIR_SECONDS = 180
LINK_SECONDS = 30
STACKS = ("rxe", "uroce")
MARK = 3  # uroce is to be so many times as fast
ANY_MTU = "any"
CONNECTIONS = "connections by rdma_cm, a second"
ALL_OPEN = "the same, {} open at a time"
BANDWIDTH, RATE, LATENCY = "64 KiB WRITE, Gb/s", "64 B WRITE, thousands/s", "64 B WRITE, half round trip, us"


class Figure(PerfTest):
    """A program of perftest, and one column of its table."""

    def __init__(self, title, program, options, column, quiet_seconds=0):
        super().__init__(program, ["-u", "18", *options])
        self.title = title
        self.quiet_seconds = quiet_seconds
        self.value = None
        self._column = column

    def judge(self, server, client):
        super().judge(server, client)
        rows = [line.split() for line in client.splitlines() if re.match(r"^ *\d+ +\d+ ", line)]
        self.value = float(rows[-1][self._column])
        if self.title == RATE:
            self.value *= 1000


class Connections:
    """Connections that are set up and torn down, 64 or all at a time. The programs find each other by TCP, as
    perftest's do."""

    def __init__(self, server_ip, count, all_open=False):
        self.title = ALL_OPEN.format(count) if all_open else CONNECTIONS
        self.name = f"{count} connections{', all open' if all_open else ''}"
        self.quiet_seconds = 0
        self.value = None
        self._argv = [GUEST_CONNECT_RATE, "-a", server_ip]
        self._options = ["-n", str(count), *(["-o"] if all_open else [])]

    def argv(self, _side, port, peer=None):
        return [*self._argv, "-p", str(port), *([*self._options, peer] if peer else [])]

    def judge(self, _server, client):
        found = re.search(r"^(\d+) \d+ \d+$", client, re.M)
        if not found:
            raise CheckFailed("the client prints no rate")
        self.value = float(found.group(1))


def figures(path_mtu, seconds):
    """With 0 seconds, move only as much data as shows that the programs work."""
    mtu = ["-m", str(path_mtu)]
    long, small, turns = (["-D", str(seconds)],) * 2 + (["-n", "2000"],) if seconds else (
        ["-n", "20"], ["-n", "500"], ["-n", "100"])
    yield Figure(BANDWIDTH, "ib_write_bw", [*mtu, "-s", "65536", "--report_gbits", *long], 3, seconds)
    yield Figure(RATE, "ib_write_bw", [*mtu, "-s", "64", "--report_gbits", *small], 4, seconds)
    yield Figure(LATENCY, "ib_write_lat", [*mtu, "-s", "64", *turns], 4)


class Quiet:
    """A program of the guest that is left alone while it measures: answering the test would take time of the
    guest's one CPU."""

    def __init__(self, process, seconds):
        self._process = process
        self._until = time.monotonic() + seconds

    def wait(self, seconds):
        time.sleep(max(0, self._until - time.monotonic()))
        return self._process.wait(seconds)

    def __getattr__(self, name):
        return getattr(self._process, name)


class RxePort:
    """rxe on the kernel's interface of a NIC."""

    device = "rxe1"

    def __init__(self, guest, nic):
        self.name = "rxe"
        self.address = guest.address
        self.gid_address = nic.address
        self.start = guest.start
        ports.bind(guest, nic, "virtio-pci")
        path = f"/sys/bus/pci/devices/{nic.pci}"
        # Linux answers ARP for all its addresses on every interface. A peer that learnt the other NIC's address would
        # lose it when uroce takes that NIC.
        status, output = guest.run(
            "echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore && "
            f"netdev=$(ls {path}/virtio*/net) && ip link set $netdev mtu {MTU} up && "
            f"ip addr add {nic.address}/24 dev $netdev && rdma link add {self.device} type rxe netdev $netdev")
        if status:
            raise GuestError(f"no rxe on {nic.pci}: {output}")
        up = f"rdma link show {self.device}/1 | grep -q 'state ACTIVE'"
        if not wait_until(lambda: guest.run(up)[0] == 0, LINK_SECONDS, 0.1):
            raise GuestError("rxe's port does not come up")


class Measured:
    """A host whose programs are left alone while they measure."""

    def __init__(self, host, seconds):
        self._host = host
        self._seconds = seconds

    def start(self, argv):
        return Quiet(self._host.start(argv), self._seconds)

    def __getattr__(self, name):
        return getattr(self._host, name)


class Bench:
    """Two guests with a NIC each, bound to the kernel's driver and to vfio-pci in turn."""

    def __init__(self, report, network, image_dir, work_dir, cpus):
        self._report = report
        self._nics = [ports.Nic(number, "virtio", ports.VIRTIO, 0x10) for number in NUMBERS]
        for nic, number in zip(self._nics, NUMBERS):
            nic.address = f"10.10.0.{number}"  # another subnet than the one that the programs' TCP uses
            nic.address6 = f"fd10::{number}"
        self._guests = [ports.boot(network, image_dir, work_dir, [nic], number=n + 4, name=f"guest{n}", cpus=cpus)
                        for n, nic in enumerate(self._nics)]
        self._port = FIRST_PORT
        self.values = {}

    def _hosts(self, stack):
        if stack == "uroce":
            for guest, nic in zip(self._guests, self._nics):
                ports.bind(guest, nic, "vfio-pci")
            return [ports.UrocePort(guest, nic) for guest, nic in zip(self._guests, self._nics)]
        return [RxePort(guest, nic) for guest, nic in zip(self._guests, self._nics)]

    def round(self, stack, path_mtus, seconds, connections, all_open=0):
        hosts = self._hosts(stack)
        tables = [gids(host, host.device) for host in hosts]
        every = [(path_mtu, figure) for path_mtu in path_mtus for figure in figures(path_mtu, seconds)]
        every.append((ANY_MTU, Connections(hosts[0].gid_address, connections)))
        if all_open:
            every.append((ANY_MTU, Connections(hosts[0].gid_address, all_open, True)))
        for path_mtu, figure in every:
            sides = [Side(Measured(host, figure.quiet_seconds), host.device, host.address,
                          gid_index(table, host.gid_address)) for host, table in zip(hosts, tables)]
            self._port += 1
            self._report.check(f"{stack} between two guests: {figure.name}", run_pair, figure, *sides, self._port,
                               PAIR_SECONDS)
            self.values.setdefault((path_mtu, figure.title, stack), []).append(figure.value)
        if stack == "rxe":
            self._report.check("rxe between two guests: no queue pair or id is left", self._nothing_left)

    def _nothing_left(self):
        """uroce's end with their processes."""
        for guest in self._guests:
            left = guest.run("rdma resource show qp; rdma resource show cm_id")[1]
            if "comm connect_rate" in left:
                raise CheckFailed(f"{guest.name} still has some", left.splitlines()[:10])

    def come_first(self):
        for guest in self._guests:
            guest.come_first()

    def spread(self, processors):
        cpus = sorted(os.sched_getaffinity(0))
        for n, guest in enumerate(self._guests):
            guest.spread(n * processors, cpus)

    def stop(self):
        for guest in self._guests:
            guest.stop()


def table(values):
    """Return the rows: the medians of both stacks, and the median of each round's ratio. The ratio is taken within
    a round, because the machine's speed changes from round to round."""
    for path_mtu, title in dict.fromkeys(key[:2] for key in values):
        pairs = [pair for pair in zip(*(values[path_mtu, title, stack] for stack in STACKS)) if all(pair)]
        if not pairs:
            continue
        both = list(zip(*pairs))
        rxe, uroce = (statistics.median(runs) for runs in both)
        ratio = statistics.median(uroce / rxe for rxe, uroce in pairs)
        if title == LATENCY:
            ratio = 1 / ratio
        spread = "; ".join(" ".join(f"{value:.4g}" for value in runs) for runs in both)
        text = f"**{ratio:.1f}**" if path_mtu != ANY_MTU and ratio >= MARK else f"{ratio:.1f}"
        yield f"| {path_mtu} | {title} | {rxe:.3g} | {uroce:.3g} | {text} | {spread} |"


def run_short(report, network, image_dir, work_dir):
    """Check for the interop tests that both stacks move data, at any rate."""
    bench = Bench(report, network, image_dir, work_dir, 1)
    for stack in STACKS:
        bench.round(stack, (4096,), 0, 100)
    bench.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each figure (5)")
    parser.add_argument("--seconds", type=int, default=8, help="seconds of each run (8); perftest counts half of them")
    parser.add_argument("--connections", type=int, default=10000, help="connections of each run (10000)")
    parser.add_argument("--open", type=int, default=5000,
                        help="and so many connections that are open at a time (5000); 0: none")
    parser.add_argument("--mtu", default="4096,1024", help="path MTUs (4096,1024); empty: only the connections")
    parser.add_argument("--cpus", type=int, default=1, help="CPUs of each guest (1)")
    parser.add_argument("--spread", action="store_true",
                        help="give each guest's CPU one of the machine's, and QEMU's other threads the others")
    options = parser.parse_args()
    exit_on_signals()
    if os.geteuid() != 0:
        sys.exit("beside_rxe: needs root (network namespaces, tap devices); run: sudo make perf-rxe")
    if not os.access(UROCE_RUN, os.X_OK):
        sys.exit(f"{UROCE_RUN} does not exist; run: make")
    image_dir = make_image()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="uroce-beside-") as work_dir:
        network = bridged_network()
        os.mkdir(f"{work_dir}/image")
        bench = Bench(report, network, add_uroce(image_dir, f"{work_dir}/image"), work_dir, options.cpus)
        bench.come_first()
        if options.spread:
            bench.spread(options.cpus)
        for _ in range(options.repeat):
            for stack in STACKS:
                bench.round(stack, [int(mtu) for mtu in options.mtu.split(",") if mtu], options.seconds, options.connections,
                            options.open)
        bench.stop()
    print(f"| path MTU | | rxe | uroce | ratio (mark: {MARK}) | each run |")
    print("|---|---|---|---|---|---|")
    print("\n".join(table(bench.values)))
    return report.summary()


if __name__ == "__main__":
    sys.exit(main())
