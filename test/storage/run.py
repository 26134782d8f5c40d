#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Storage programs, unmodified, on uroce: Debian's tgt, libiscsi, QEMU's block layer and fio."""

import argparse
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.process import exit_on_signals  # noqa: E402
from harness.report import Report  # noqa: E402
from harness.tools import UROCE_RUN  # noqa: E402
from fio import FioTest  # noqa: E402
from sides import make_sides  # noqa: E402
from tgt import TgtTest  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="TEXT", help="run the checks whose name contains this, such as tgt or fio")
    parser.add_argument("--kills", type=int, default=10, help="times that an initiator is killed (10)")
    parser.add_argument("--target-kills", type=int, default=2, help="times that the target is killed (2)")
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
        for sides in make_sides(work_dir):
            TgtTest(report, sides, rng, options).run_all()
            FioTest(report, sides).run_all()
        return report.summary()


if __name__ == "__main__":
    sys.exit(main())
