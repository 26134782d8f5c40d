#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Interop tests: RDMA programs between uroce on this machine and Linux's rxe in a guest.

--self-check replaces uroce by a second rxe guest: a check that fails there shows a fault of this test.
"""

import argparse
import os
import random
import shlex
import subprocess
import sys
import tempfile

TEST_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INTEROP_DIR = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [TEST_DIR, INTEROP_DIR, os.path.join(INTEROP_DIR, "nic"), os.path.join(TEST_DIR, "storage")]

from congestion import CongestionTest  # noqa: E402
from connect import ConnectTest  # noqa: E402
from guest import Guest, GuestError, bridged_network, make_image  # noqa: E402
from harness.pairwise import choose  # noqa: E402
from harness.process import exit_on_signals  # noqa: E402
from harness.report import CheckFailed, Report  # noqa: E402
from harness.tools import (DEVICE, UROCE_RUN, PerfTest, PingPong, Side,  # noqa: E402
                           gid_index, gids, kill_pair, optimisations, run_pair)
from overlay import GUEST_UROCE_RUN, add_uroce  # noqa: E402
from peer_case import PeerCase  # noqa: E402
import beside_rxe  # noqa: E402
import kernel  # noqa: E402
import nics  # noqa: E402
from sockets import SocketsTest  # noqa: E402
from unasked import UnaskedTest  # noqa: E402
from uroce_peer import UrocePeer  # noqa: E402

PEER_CASES = ("window_1", "window_2", "send_inv", "local_inv", "atomic_write", "flush", "absent")
PATH_MTUS = (1024, 4096)
# Damage at uroce's port, in both directions. rxe's own timeouts are long, and the guest may be emulated: the losses are few.
BAD_NETWORKS = ("loss=0.01", "reorder=0.02,depth=8", "dup=0.02,delay=300us",
                "loss=0.005,corrupt=0.005,dup=0.01,reorder=0.01,ce=0.1,delay=100us")
FIRST_PORT = 19000
PAIR_SECONDS = 120
KILL_SPAN_SECONDS = 3.0
PINGPONG_BYTES = 16384
LONG_TIMEOUT = ["-u", "18"]  # 4.096 us * 2^18 = 1 s


def matrix_programs(path_mtu):
    """Use few iterations, because the guest is emulated, and a long timeout if the program has such an option. A
    busy emulated rxe is slower than its own timeout of 67 ms, and its retransmissions may then block it for
    good. For this reason ibv_rc_pingpong, whose timeout is fixed, sends short messages."""
    mtu = ["-m", str(path_mtu)]
    yield PingPong(mtu, 200, PINGPONG_BYTES)
    yield PingPong([*mtu, "-e"], 200, PINGPONG_BYTES)
    for program in ("send", "write", "read", "atomic"):
        yield PerfTest(f"ib_{program}_bw", [*mtu, *LONG_TIMEOUT], 200)
        yield PerfTest(f"ib_{program}_lat", [*mtu, *LONG_TIMEOUT], 200)
    yield PerfTest("ib_atomic_bw", [*mtu, *LONG_TIMEOUT, "-A", "CMP_AND_SWAP"], 200)


def service_programs():
    """Keep unreliable services from losing messages: few bytes are in flight, because an emulated peer takes them
    slowly."""
    few = ["-t", "4", "-r", "256"]
    for service in ("uc", "ud", "srq"):
        yield PingPong(["-m", "1024"] if service != "ud" else [], 200, 1024, service)
        yield PingPong(["-m", "1024", "-e"] if service != "ud" else ["-e"], 200, 1024, service)
    yield PerfTest("ib_send_bw", ["-c", "UC", "-s", "4096", *few], 200)
    yield PerfTest("ib_write_bw", ["-c", "UC", "-s", "4096", "-t", "4"], 200)
    yield PerfTest("ib_send_lat", ["-c", "UC", "-s", "4096"], 200)
    yield PerfTest("ib_write_lat", ["-c", "UC", "-s", "4096"], 200)
    yield PerfTest("ib_send_bw", ["-c", "UD", "-s", "1024", *few], 200)
    yield PerfTest("ib_send_lat", ["-c", "UD", "-s", "1024"], 200)


def loss_programs(damage):
    """Verified bytes where nothing gets lost (rping verifies the others: connect.py), for the last acknowledgement of
    ibv_rc_pingpong may get lost after its sender has ended. All that a lost packet may be: request, READ response,
    atomic, acknowledgement."""
    if "loss" not in damage and "corrupt" not in damage:
        yield PingPong(["-m", "1024"], 100, PINGPONG_BYTES)
    for program in ("write_bw", "read_bw", "send_bw", "atomic_lat"):
        yield PerfTest(f"ib_{program}", ["-m", "1024", "-u", "16"], 100)


def vlan_programs():
    """Return enough programs to see tags in both directions: of connections and of datagrams."""
    yield PingPong(["-m", "1024"], 200, PINGPONG_BYTES)
    yield PingPong([], 200, 1024, "ud")
    yield PerfTest("ib_write_bw", LONG_TIMEOUT, 200)


class GuestUroce:
    """uroce in the guest, on an interface of its kernel with a VLAN interface above it. This machine's kernel may
    have no VLANs."""

    name = "guest-uroce"
    device = DEVICE

    def __init__(self, guest):
        self._guest = guest

    def start(self, argv):
        return self._guest.start([GUEST_UROCE_RUN, "--netdev", "eth0", "--", *argv])


class Matrix:
    """Run every cell between two peers and report it."""

    def __init__(self, report, ours, theirs, rng, self_check):
        self._report = report
        self._ours = ours
        self._theirs = theirs
        self._rng = rng
        self._self_check = self_check
        self._port = FIRST_PORT
        self._tables = {}

    def read_gid_tables(self):
        for peer in (self._ours, self._theirs):
            self._tables[peer] = gids(peer, peer.device)

    def _side(self, peer, family):
        address = {"ipv4": peer.address, "ipv6": "link-local", "ipv6-global": peer.address6}
        return Side(peer, peer.device, peer.address,
                    gid_index(self._tables[peer], address[family]))

    def _cell(self, runner, name, server, client, family, program, *args):
        def cell():
            self._port += 1
            runner(program, self._side(server, family), self._side(client, family), self._port,
                   *args)
        self._report.check(f"{name} {program.name}", cell)

    def run_all(self):
        directions = ((self._ours, self._theirs), (self._theirs, self._ours))
        programs = {path_mtu: list(matrix_programs(path_mtu)) for path_mtu in PATH_MTUS}
        for (server, client), family, path_mtu, number in choose(
                self._report.complete, directions, ("ipv4", "ipv6"), PATH_MTUS, range(len(programs[PATH_MTUS[0]]))):
            self._cell(run_pair, f"{client.name}->{server.name} {family}", server, client, family, programs[path_mtu][number],
                       PAIR_SECONDS)
        for number, (server, client) in enumerate(directions):
            self._cell(run_pair, f"{client.name}->{server.name} ipv6-global",
                       server, client, "ipv6-global", PingPong([], 200, PINGPONG_BYTES), PAIR_SECONDS)
            services = list(service_programs())
            for program in services if self._report.complete else services[number::2]:
                self._cell(run_pair, f"{client.name}->{server.name} ipv4", server, client, "ipv4", program,
                           PAIR_SECONDS)

    def run_peer_cases(self):
        """The operations that rxe supports depend on the versions of the kernel and of its library."""
        for server, client in ((self._ours, self._theirs), (self._theirs, self._ours)):
            for case in map(PeerCase, PEER_CASES):
                title = f"{client.name}->{server.name} ipv4"
                if case.is_possible(client, "?") and case.is_possible(server, "!"):
                    self._cell(run_pair, title, server, client, "ipv4", case, PAIR_SECONDS)
                else:
                    self._report.skip(f"{title} {case.name}", "the kernel's rxe does not have it")

    def run_without(self, lists):
        """Without optimisations the results are the same, only slower."""
        for names in lists:
            self._ours.set_options(["--without", names])
            for server, client in ((self._ours, self._theirs), (self._theirs, self._ours)):
                self._cell(run_pair, f"{client.name}->{server.name} without {names}", server, client, "ipv4",
                           PingPong(["-m", "1024"], 200, PINGPONG_BYTES), PAIR_SECONDS)
        self._ours.set_options([])

    def run_loss(self):
        """A bad network between the two, both ways round."""
        for number, damage in enumerate(BAD_NETWORKS):
            self._ours.set_options(["--impair", damage])
            directions = ((self._ours, self._theirs), (self._theirs, self._ours))
            for server, client in directions if self._report.complete else directions[number % 2:][:1]:
                for program in loss_programs(damage):
                    self._cell(run_pair, f"{client.name}->{server.name} bad network {damage}", server, client,
                               "ipv4", program, PAIR_SECONDS)
        self._ours.set_options([])

    def run_udp(self):
        """Our side has an ordinary UDP socket. rxe checks the ICRCs that we change, and we find its identifications."""
        self._ours.set_options(["--udp=peer0"])
        for server, client in ((self._ours, self._theirs), (self._theirs, self._ours)):
            title = f"{client.name}->{server.name} by UDP"
            for family in ("ipv4", "ipv6-global"):
                for path_mtu in PATH_MTUS:
                    self._cell(run_pair, f"{title} {family}", server, client, family,
                               PingPong(["-m", str(path_mtu)], 200, PINGPONG_BYTES), PAIR_SECONDS)
            for program in (PingPong([], 200, 1024, "ud"), PerfTest("ib_read_bw", ["-m", "4096", *LONG_TIMEOUT], 100),
                            PerfTest("ib_atomic_lat", LONG_TIMEOUT, 100)):
                self._cell(run_pair, f"{title} ipv4", server, client, "ipv4", program, PAIR_SECONDS)
        self._ours.set_options([])

    def pair(self, program, server, client):
        """Run a program on both sides, by IPv4."""
        self._port += 1
        run_pair(program, self._side(server, "ipv4"), self._side(client, "ipv4"), self._port, PAIR_SECONDS)

    def run_vlan(self):
        """Each side has an address in a VLAN, besides its ordinary address, which the programs' TCP uses."""
        sides = []
        for peer in (self._ours, self._theirs):
            table = gids(peer.vlan_host, peer.device)
            sides.append(Side(peer.vlan_host, peer.device, peer.address, gid_index(table, peer.vlan_address)))
        for server, client in (sides, reversed(sides)):
            for program in vlan_programs():
                def cell():
                    self._port += 1
                    run_pair(program, server, client, self._port, PAIR_SECONDS)
                self._report.check(f"{client.host.name}->{server.host.name} {program.name}", cell)

    def run_netdev_vlan(self):
        """Run this last, because rxe gives its UDP port away."""
        status, output = self._theirs.run("rdma link del rxe0 && rmmod rdma_rxe")
        if status:
            self._report.fail("rxe goes", output)
            return
        host = GuestUroce(self._theirs)
        guest = Side(host, DEVICE, self._theirs.address, gid_index(gids(host, DEVICE), self._theirs.vlan_address))
        ours = Side(self._ours.vlan_host, DEVICE, self._ours.address,
                    gid_index(gids(self._ours.vlan_host, DEVICE), self._ours.vlan_address))
        for server, client in ((ours, guest), (guest, ours)):
            program = PingPong(["-m", "1024"], 50, 4096)

            def cell():
                self._port += 1
                run_pair(program, server, client, self._port, PAIR_SECONDS)
            self._report.check(f"{client.host.name}->{server.host.name} {program.name}", cell)
        self._report.check("guest-uroce: no ICMP errors from the kernel", self._no_icmp_errors)

    def _no_icmp_errors(self):
        """The kernel's own VLAN interface receives the packets too, and must not answer them."""
        heads, values = [line.split() for line in self._theirs.run("grep ^Icmp: /proc/net/snmp")[1].splitlines()]
        sent = dict(zip(heads, values))["OutDestUnreachs"]
        if sent != "0":
            raise CheckFailed(f"the kernel sent {sent} ICMP errors")

    def run_kills(self):
        """Each survivor has work outstanding, or waits for its peer on TCP."""
        if not self._self_check:  # rxe treats the programs' retry count of 7 as unlimited
            for verb in ("send", "write", "read", "atomic") if self._report.complete else ("send", "read"):
                self._kill(self._theirs, self._ours, f"ib_{verb}_bw", [], "server")
            self._kill(self._ours, self._theirs, "ib_send_bw", ["-b"], "client")
            self._kill(self._ours, self._theirs, "ib_write_bw", ["-b"], "client")
        self._kill(self._ours, self._theirs, "ib_read_bw", [], "client")

    def _kill(self, server, client, program, options, victim):
        # Both ways at once, a busy emulated rxe answers nothing for longer than the 0.5 s of perftest's own retries.
        program = PerfTest(program, ["-D", "60", *LONG_TIMEOUT, *options])
        delay = self._rng.uniform(0.5, KILL_SPAN_SECONDS)
        killed = server if victim == "server" else client
        self._cell(kill_pair, f"{client.name}->{server.name} kill {killed.name} ({victim})",
                   server, client, "ipv4", program, victim, delay)


def run_all(options, report, image_dir, work_dir):
    """All resources are removed again at exit."""
    network = bridged_network()
    uroce_dir = os.path.join(work_dir, "image")
    if not options.self_check:
        os.mkdir(uroce_dir)
        image_dir = add_uroce(image_dir, uroce_dir, options.all)
    theirs = Guest("rxe", 1, network, image_dir, work_dir)
    if options.self_check:
        ours = Guest("rxe2", 2, network, image_dir, work_dir)
    else:
        ours = UrocePeer(network, work_dir, shlex.split(options.options))
    if not options.self_check and not options.no_nics:
        nics.run(report, options.all, network, image_dir, work_dir, (ours, theirs))
        if options.all:
            beside_rxe.run_short(report, network, image_dir, work_dir)
    if not options.self_check and not options.nics_only:
        kernel.run(report, network, image_dir, work_dir, ours, random.Random(options.seed),
                   kernel.MANY if options.all else kernel.FEW)
    if not options.nics_only:
        run_matrix(options, report, ours, theirs, network, work_dir)


def run_matrix(options, report, ours, theirs, network, work_dir):
    matrix = Matrix(report, ours, theirs, random.Random(options.seed),
                    options.self_check)
    if not options.self_check:
        ConnectTest(report, ours, theirs, options.all).run_all()
        ours.set_options(["--impair", "loss=0.01,dup=0.01,reorder=0.01"])
        ConnectTest(report, ours, theirs, options.all).run_loss()
        ours.set_options([])
        for place in ("attached", "isolated"):
            with ours.shared(place):
                ConnectTest(report, ours, theirs, options.all).run_shared(place)
        SocketsTest(report, ours, theirs).run_all()
    if report.require("GID tables", matrix.read_gid_tables):
        matrix.run_all()
        matrix.run_peer_cases()
        if not options.self_check:
            matrix.run_without(optimisations() if options.all else optimisations()[-1:])
            matrix.run_loss()
            matrix.run_udp()
            CongestionTest(matrix, report, ours, theirs, network, work_dir).run_all()
            UnaskedTest(matrix, report, ours, theirs, network, work_dir).run_all(loss_programs)
        matrix.run_vlan()
        matrix.run_kills()
        if not options.self_check:
            matrix.run_netdev_vlan()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--self-check", action="store_true", help="rxe against rxe, no uroce")
    parser.add_argument("--backports", action="store_true",
                        help="the peer's kernel is the newest of bookworm-backports, not the release's")
    parser.add_argument("--only", metavar="TEXT", help="run the cells whose name contains this")
    parser.add_argument("--all", action="store_true", help="also every NIC with every driver, and Linux's storage with kills "
                        "and losses, which takes an hour")
    parser.add_argument("--quick", action="store_true", help="every pair of direction, IP version, MTU and program, in place of "
                        "all combinations, and fewer kills")
    parser.add_argument("--nics-only", action="store_true", help="only the tests on NICs that DPDK drives")
    parser.add_argument("--no-nics", action="store_true", help="all but these")
    parser.add_argument("--options", default="", help="options of uroce-run for all of this machine's programs, "
                        "for example '--engines 2' or '--cc swift'")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32),
                        help="chooses the moments at which a side is killed")
    options = parser.parse_args()
    exit_on_signals()
    if os.geteuid() != 0:
        sys.exit("interop: needs root (network namespaces, tap devices); run: sudo make test-interop")
    report = Report(options.only, complete=not options.quick)
    if not options.self_check and not os.access(UROCE_RUN, os.X_OK):
        report.fail("uroce-run", f"{UROCE_RUN} does not exist; run: make")
        return report.summary()
    image_dir = make_image(options.backports)
    if options.all:
        subprocess.run([os.path.join(INTEROP_DIR, "nic", "make-igb-uio.sh"), image_dir], check=True)
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="uroce-interop-") as work_dir:
        try:
            run_all(options, report, image_dir, work_dir)
        except GuestError as error:
            report.fail("guest", str(error))
        return report.summary()


if __name__ == "__main__":
    sys.exit(main())
