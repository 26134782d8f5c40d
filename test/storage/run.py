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

from harness.process import exit_on_signals  # noqa: E402
from harness.report import Report  # noqa: E402
from harness.tools import UROCE_RUN  # noqa: E402
from fio import FioTest  # noqa: E402
from guest import bridged_network, make_image  # noqa: E402
from sides import attached_sides, make_sides  # noqa: E402
from spdk import SpdkTest  # noqa: E402
from tgt import TgtTest  # noqa: E402
from uroce_peer import UrocePeer  # noqa: E402
import document  # noqa: E402
import example  # noqa: E402
import kernel  # noqa: E402

LOSS_SECONDS = 3


def run_kernel(report, work_dir, rng, amount):
    """Run the checks that need a virtual machine."""
    image_dir = make_image()
    network = bridged_network()
    kernel.run(report, network, image_dir, work_dir, UrocePeer(network, work_dir), rng, amount)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="TEXT", help="run the checks whose name contains this, such as tgt, fio or spdk")
    parser.add_argument("--kills", type=int, default=10, help="times that an initiator is killed (10)")
    parser.add_argument("--target-kills", type=int, default=2, help="times that the target is killed (2)")
    parser.add_argument("--kernel-kills", type=int, default=kernel.MANY.kills, help="with --only kernel: times that the "
                        "initiator's machine is switched off, and that the target is killed (1)")
    parser.add_argument("--loss-seconds", type=int, help="time in which packets are lost (3; with --only kernel 60)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="chooses the moments of the kills")
    options = parser.parse_args()
    exit_on_signals()
    if os.geteuid() != 0:
        sys.exit("storage: needs root (network namespaces); run: sudo make test")
    report = Report(options.only)
    if not os.access(UROCE_RUN, os.X_OK):
        report.fail("uroce-run", f"{UROCE_RUN} does not exist; run: make")
        return report.summary()
    print(f"seed {options.seed}")
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="uroce-storage-") as work_dir:
        if (options.only or "").startswith("kernel"):
            loss_seconds = kernel.MANY.loss_seconds if options.loss_seconds is None else options.loss_seconds
            run_kernel(report, work_dir, rng, kernel.Amount(options.kernel_kills, loss_seconds))
            return report.summary()
        options.loss_seconds = LOSS_SECONDS if options.loss_seconds is None else options.loss_seconds
        example.run(report, work_dir)
        document.DocumentTest(report, work_dir).run_all()
        for sides in make_sides(work_dir):
            TgtTest(report, sides, rng, options).run_all()
            FioTest(report, sides).run_all()
            SpdkTest(report, sides, rng, options).run_all()
        for sides in attached_sides(work_dir):
            spdk = SpdkTest(report, sides, rng, options)
            if sides.wire == "isolated":
                spdk.run_data()
            else:
                spdk.run_all()
        return report.summary()


if __name__ == "__main__":
    sys.exit(main())
