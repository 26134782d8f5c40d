# SPDX-License-Identifier: BSD-3-Clause
"""Sending from the application's huge pages: the NIC reads them itself if VFIO lets it; otherwise they are copied."""

import re

from harness.report import CheckFailed
from harness.tools import DEVICE, Side, gid_index, gids, run_pair
from peer_case import PeerCase

import ports

PAIR_SECONDS = 180
FIRST_PORT = 21900
# Of some 3,000 packets that can be sent in place, 2,560 are from regions that do not promise huge pages. Packets that are
# sent again are copied.
IN_PLACE_MIN = 1500


class HugeCase(PeerCase):
    """A case that knows if the client's port must have read the pages itself."""

    def __init__(self, in_place):
        super().__init__("huge")
        self._in_place = in_place

    def judge(self, server, client):
        super().judge(server, client)
        counted = re.search(r"tx_in_place_packets (\d+)", client)
        if (int(counted[1]) >= IN_PLACE_MIN if counted else False) != self._in_place:
            raise CheckFailed(f"{counted[1] if counted else 'no'} packets were sent in place")


def run(report, guest, peer, cells):
    """Run each cell: a NIC and a driver of the kernel."""
    for number, (nic, driver) in enumerate(cells):
        def cell():
            ports.bind(guest, nic, driver)
            host = ports.UrocePort(guest, nic, ["--log-level", "info"])
            ours = Side(host, DEVICE, host.address, gid_index(gids(host, DEVICE), host.gid_address))
            theirs = Side(peer, DEVICE, peer.address, gid_index(gids(peer, DEVICE), peer.address))
            run_pair(HugeCase(driver == "vfio-pci"), theirs, ours, FIRST_PORT + number, PAIR_SECONDS)
        report.check(f"{nic.name} {driver}: huge pages come and go", cell)
