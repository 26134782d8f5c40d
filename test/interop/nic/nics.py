# SPDX-License-Identifier: BSD-3-Clause
"""All tests on NICs that DPDK drives, in a guest of their own."""

import re

from harness.report import CheckFailed

import dma
import embedded
import events
import idle
import matrix
import ports
import queues
import secondary
import sharing
import steering

# When it starts, DPDK's vmxnet3 driver gives commands before it has told the device where their memory is. This causes
# two reads of address 0; dpdk-testpmd causes them too.
DRIVERS_OWN = re.compile(rf"\[{ports.NICS[2].pci[5:]}\] fault addr 0x0 ")


def check_faults(guest):
    """Check that neither the guest's IOMMU nor QEMU has seen an access to a forbidden address."""
    lines = guest.run("dmesg | grep 'DMAR: .*fault addr'")[1].splitlines()
    lines = [line for line in lines if not DRIVERS_OWN.search(line)]
    if lines:
        raise CheckFailed(f"{len(lines)} IOMMU faults", lines[:5])


def run(report, everything, network, image_dir, work_dir, peers):
    guest = ports.boot(network, image_dir, work_dir)
    cells = matrix.Matrix(report, guest, peers)
    if everything:
        cells.run(matrix.all_cells(ports.BINDINGS))
    else:
        cells.run(matrix.few_cells())
    if everything:
        dma.run(report, guest, peers[0], [(nic, driver) for nic in ports.NICS for driver in ports.BINDINGS])
    else:
        dma.run(report, guest, peers[0], [(ports.NICS[0], "vfio-pci"), (ports.NICS[2], "uio_pci_generic")])
    embedded.run(report, guest, peers[0])
    sharing.run(report, guest, peers[0], everything)
    if everything:
        secondary.run(report, guest, peers[0])
    idle.run(report, guest)
    queues.run(report, guest)
    events.run(report, guest, peers[0], everything)
    steering.run(report, guest)
    report.check("nics: no IOMMU fault", check_faults, guest)
    guest.stop()
