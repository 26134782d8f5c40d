# SPDX-License-Identifier: BSD-3-Clause
"""The matrix of NIC models, drivers, peers and programs: uroce in a guest, on NICs that DPDK drives."""

from harness.tools import PerfTest, PingPong, Side, gid_index, gids, run_pair

import ports

FIRST_PORT = 21000
PAIR_SECONDS = 180
PATH_MTUS = (1024, 4096)
FAMILIES = ("ipv4", "ipv6")
VERBS = ("write", "read", "send", "atomic")
LONG_TIMEOUT = ["-u", "18"]  # 4.096 us * 2^18 = 1 s: both sides are emulated
PINGPONG_BYTES = 16384


def programs(path_mtu, verbs=VERBS):
    mtu = ["-m", str(path_mtu)]
    yield PingPong(mtu, 50, PINGPONG_BYTES)
    for verb in verbs:
        yield PerfTest(f"ib_{verb}_bw", [*mtu, *LONG_TIMEOUT], 100)


def all_cells(drivers):
    """Return all cells: (NIC, driver, the guest's peers by index, family, programs)."""
    for driver in drivers:
        for nic in ports.NICS:
            for peer in (0, 1):
                for family in FAMILIES:
                    for path_mtu in PATH_MTUS:
                        yield nic, driver, peer, family, programs(path_mtu)


def few_cells():
    """Return few cells that cover each NIC, driver, peer, family, path MTU and program at least once."""
    virtio, e1000e, vmxnet3 = ports.NICS
    yield virtio, "vfio-pci", 1, "ipv4", programs(4096, ("write", "read"))
    yield e1000e, "vfio-pci", 0, "ipv6", programs(4096, ("send",))
    yield vmxnet3, "vfio-pci", 1, "ipv6", programs(1024, ("atomic",))
    yield virtio, "uio_pci_generic", 0, "ipv4", programs(4096, ())
    yield e1000e, "uio_pci_generic", 1, "ipv4", programs(1024, ())
    yield vmxnet3, "uio_pci_generic", 0, "ipv6", programs(4096, ())


class Matrix:
    """The cells of one guest with NICs; `peers` are uroce on this machine, and rxe in another guest."""

    def __init__(self, report, guest, peers):
        self._report = report
        self._guest = guest
        self._peers = peers
        self._tables = {}
        self._port = FIRST_PORT

    def run(self, cells):
        bound = {}
        for nic, driver, peer, family, cell_programs in cells:
            if bound.get(nic) != driver:
                self._report.require(f"{nic.name} {driver}: bind", ports.bind, self._guest, nic, driver)
                bound[nic] = driver
            host = ports.UrocePort(self._guest, nic)
            for program in cell_programs:
                self._cell(f"{nic.name} {driver}: {self._peers[peer].name} {family}", host, self._peers[peer],
                           family, program)

    def _side(self, host, family, address, address6):
        """The GID table is the same at each start while the addresses are the same."""
        key = (host.name, host.address)
        if key not in self._tables:
            self._tables[key] = gids(host, host.device)
        return Side(host, host.device, host.address,
                    gid_index(self._tables[key], address if family == "ipv4" else address6))

    def _cell(self, title, host, peer, family, program):
        """The direction alternates: in each program of perftest the payload goes one way."""
        def cell():
            self._port += 1
            ours = self._side(host, family, host.gid_address, host.gid_address6)
            theirs = self._side(peer, family, peer.address, peer.address6)
            sides = (ours, theirs) if self._port % 2 else (theirs, ours)
            run_pair(program, *sides, self._port, PAIR_SECONDS)
        self._report.check(f"{title} {program.name}", cell)
