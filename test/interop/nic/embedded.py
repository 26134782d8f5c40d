# SPDX-License-Identifier: BSD-3-Clause
"""An application in SPDK's manner (app/examples/pollers.c) owns a NIC that is bound to vfio-pci. EAL has SPDK's options, also
its --base-virtaddr: the NIC reads the application's memory by these addresses through the IOMMU."""

import re

from harness.report import CheckFailed
from overlay import GUEST_POLLERS

import events
import ports
from secondary import HUGETLBFS

SECONDS = 180
EAL = ["-l", "0", "--no-shconf", "--huge-unlink", "--match-allocations", "--no-telemetry", "--base-virtaddr=0x200000000000"]
PINGS = 20
MTU = 1500  # the application's: the initiator chooses the path MTU by its own port


def _served(guest, nic, peer):
    guest.run(HUGETLBFS)
    ports.bind(guest, nic, "vfio-pci")
    pollers = guest.start([GUEST_POLLERS, *EAL, "-a", nic.pci, "--", f"{nic.address}/24"])
    try:
        events.wait_for(pollers, "serving")
        client = peer.start(["rping", "-c", "-a", nic.address, "-C", str(PINGS), "-S", "60000", "-V"])
        try:
            if client.wait(SECONDS) != 0:
                raise CheckFailed("rping fails", client.story("rping") + pollers.story("application"))
        finally:
            client.kill()
        pollers.terminate()
        told = re.compile(rf"^{PINGS} pings, [1-9]\d* regions registered", re.M)
        if pollers.wait(SECONDS) != 0 or not told.search(pollers.output()):
            raise CheckFailed("the application does not end well", pollers.story("application"))
    finally:
        pollers.kill()


def run(report, guest, peer):
    nic = ports.NICS[0]
    peer.set_options(["--mtu", str(MTU)])
    report.check(f"pollers own {nic.name} vfio-pci: verified data, and a clean end", _served, guest, nic, peer)
    peer.set_options([])
