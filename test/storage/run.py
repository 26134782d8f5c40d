#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Storage programs, unmodified, on uroce: Debian's tgt, libiscsi, QEMU's block layer, fio, and SPDK. --only kernel: Linux's
initiators and targets in a virtual machine, with kills and losses, as make test-interop-all does.
"""

import argparse
import os
import random
import sys
import tempfile

TEST_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TEST_DIR, os.path.join(TEST_DIR, "interop")]

from harness import lanes, world  # noqa: E402
from harness.lanes import Group  # noqa: E402
from harness.process import exit_on_signals  # noqa: E402
from harness.report import Report  # noqa: E402
from harness.tools import UROCE_RUN  # noqa: E402
from fio import FioTest  # noqa: E402
from guest import bridged_network, make_image  # noqa: E402
from sides import attached_sides, memif_sides, veth_sides  # noqa: E402
from spdk import SpdkTest  # noqa: E402
from tgt import TgtTest  # noqa: E402
from uroce_peer import UrocePeer  # noqa: E402
import document  # noqa: E402
import example  # noqa: E402
import kernel  # noqa: E402

KILLS, TARGET_KILLS, LOSS_SECONDS = 10, 2, 60  # with --all
FEW_KILLS, FEW_TARGET_KILLS, FEW_LOSS_SECONDS = 3, 1, 3


def run_kernel(report, work_dir, rng, amount):
    """Run the checks that need a virtual machine."""
    image_dir = make_image()
    network = bridged_network()
    kernel.run(report, network, image_dir, work_dir, UrocePeer(network, work_dir), rng, amount)


def run_attached(report, work_dir, rng, options):
    """Run SPDK as two programs of one uroced."""
    for sides in attached_sides(work_dir):
        spdk = SpdkTest(report, sides, rng, options)
        if sides.wire == "isolated":
            spdk.run_data()
        else:
            spdk.run_all()


def run_documented(report, work_dir, _rng, _options):
    """Run the example and the commands of the document."""
    example.run(report, work_dir)
    document.DocumentTest(report, work_dir).run_all()


def groups(options):
    """Return all groups of checks, the long ones first."""
    def group(name, run):
        return Group(name, lambda report, work_dir: run(report, work_dir, random.Random(options.seed), options))

    def sided(name, make_sides, run):
        return group(name, lambda report, work_dir, rng, options: run(report, make_sides(work_dir), rng, options))

    def tgt(report, sides, rng, options):
        TgtTest(report, sides, rng, options).run_all()

    def spdk(report, sides, rng, options):
        SpdkTest(report, sides, rng, options).run_all()

    def fio(report, sides, _rng, _options):
        FioTest(report, sides).run_all()

    return [
        sided("tgt veth", veth_sides, tgt),
        sided("tgt memif", memif_sides, tgt),
        sided("spdk veth", veth_sides, spdk),
        sided("spdk memif", memif_sides, spdk),
        group("spdk attached", run_attached),
        sided("fio veth", veth_sides, fio),
        sided("fio memif", memif_sides, fio),
        group("documented", run_documented),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    lanes.add_options(parser)
    parser.add_argument("--kills", type=int, help=f"times that an initiator is killed ({FEW_KILLS}; with --all {KILLS})")
    parser.add_argument("--target-kills", type=int,
                        help=f"times that the target is killed ({FEW_TARGET_KILLS}; with --all {TARGET_KILLS})")
    parser.add_argument("--kernel-kills", type=int, default=kernel.MANY.kills, help="with --only kernel: times that the "
                        "initiator's machine is switched off, and that the target is killed (1)")
    parser.add_argument("--loss-seconds", type=int, help="time in which packets are lost (3; with --all or --only kernel 60)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="chooses the moments of the kills")
    options = parser.parse_args()
    exit_on_signals()
    with_kernel = (options.only or "").startswith("kernel")
    if with_kernel and os.geteuid() != 0:
        sys.exit("storage: --only kernel needs root (devices of a virtual machine)")
    world.set_environment()
    if not options.groups and not os.access(UROCE_RUN, os.X_OK):
        sys.exit(f"{UROCE_RUN} does not exist; run: make")
    options.kills = options.kills or (KILLS if options.all else FEW_KILLS)
    options.target_kills = options.target_kills or (TARGET_KILLS if options.all else FEW_TARGET_KILLS)
    print(f"seed {options.seed}", flush=True)
    if with_kernel:
        report = Report(options.only)
        loss_seconds = kernel.MANY.loss_seconds if options.loss_seconds is None else options.loss_seconds
        with tempfile.TemporaryDirectory(prefix="uroce-storage-") as work_dir:
            run_kernel(report, work_dir, random.Random(options.seed), kernel.Amount(options.kernel_kills, loss_seconds))
        return report.summary()
    if options.loss_seconds is None:
        options.loss_seconds = LOSS_SECONDS if options.all else FEW_LOSS_SECONDS
    return lanes.run(groups(options), options)


if __name__ == "__main__":
    sys.exit(main())
