# SPDX-License-Identifier: BSD-3-Clause
"""Linux's own initiators and targets, over its Soft-RoCE in a virtual machine, with targets and initiators on uroce."""

import os

from guest import Guest, GuestError, Hardware
from kernel_disk import Amount, KernelDiskTest
from kernel_document import KernelDocumentTest
from kernel_iser import IserDisk
from kernel_lio import LioTest
from kernel_nvme import NvmeDisk, NvmetTest
from sides import Side, Sides
import spdk_target

GUEST_NUMBER = 6  # another one than the guests of test/interop
MEMORY_MIB = 1024
FEW = Amount(kills=0, loss_seconds=0)  # in `make test-interop`
MANY = Amount(kills=1, loss_seconds=60)


def run(report, network, image_dir, work_dir, peer, rng, amount):
    """Boots a guest beside uroce's peer (test/interop/uroce_peer.py) and makes all checks."""
    if report.only and "kernel" not in report.only:
        return
    guest = None
    try:
        guest = Guest("storage", GUEST_NUMBER, network, image_dir, work_dir, Hardware(memory_mib=MEMORY_MIB))
        document = KernelDocumentTest(report, guest, network, work_dir)
        document.run_all()
        if document.ran:
            guest.stop()
            guest.boot_again()
        uroce = Side("uroce-storage", work_dir, os.cpu_count() - 1, peer.namespace, ["--netdev", "peer0"])
        sides = Sides("kernel", work_dir, uroce, uroce, peer.address)
        KernelDiskTest(report, guest, IserDisk(sides), rng, amount).run_all()
        LioTest(report, guest, sides, rng).run_all()
        run_nvme(report, guest, sides, network, peer, rng, amount)
    except GuestError as error:
        report.fail("kernel: guest", str(error))
    finally:
        if guest:
            guest.stop()


def run_nvme(report, guest, sides, network, peer, rng, amount):
    """SPDK is no package of Debian: its programs are another's."""
    missing = spdk_target.missing()
    if missing:
        name = "kernel: nvme and nvmet"
        if not report.only or report.only in name or report.only.startswith("kernel: nvme"):
            report.skip(name, missing)
        return
    spdk = spdk_target.Spdk(sides.work_dir, peer.namespace, "peer0", sides.address)
    KernelDiskTest(report, guest, NvmeDisk(sides, spdk, network, guest.address), rng, amount).run_all()
    NvmetTest(report, guest, spdk).run_all()
