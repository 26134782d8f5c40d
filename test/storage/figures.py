#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Measures storage on uroce beside TCP, by turns; prints medians as tables. --only spdk: SPDK's NVMe over Fabrics beside its
own TCP transport, and testroce's mode storage, which predicts it; --only tgt: iSER of tgt beside its iSCSI over TCP.
"""

import argparse
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.process import Namespace, exit_on_signals  # noqa: E402
from columns import LOADS, NvmeColumn, TestroceColumn, TgtColumn, lacks_tgt  # noqa: E402
from nvme import lacks  # noqa: E402
from sides import Side, Sides, attached_sides, memif_sides, veth_sides  # noqa: E402

IN_MEMORY = "/dev/shm"


def loopback_sides(work_dir):
    """Return two sides in one namespace, for the kernel's TCP."""
    namespace = Namespace("stlo")
    sides = [Side(f"lo-{cpu}", work_dir, cpu, namespace, []) for cpu in range(2)]
    return Sides("loopback", work_dir, *sides, "127.0.0.1")


def spdk_columns(work_dir, veth):
    """Return all columns, and pairs of them: a prediction, and what it predicts."""
    attached = next(attached_sides(work_dir))
    wires = [("memif", memif_sides(work_dir), []), ("hand-over", attached, [attached.owner]), ("veth", veth, [])]
    measured = [NvmeColumn(name, sides, "RDMA", beside) for name, sides, beside in wires]
    predicted = [TestroceColumn(f"testroce, {name}", sides, beside) for name, sides, beside in wires]
    tcp = [NvmeColumn("TCP, the same veth", veth, "TCP"),
           NvmeColumn("TCP, loopback", loopback_sides(work_dir), "TCP")]
    # Measure each prediction right after what it predicts, because the machine's speed may change within a minute.
    return [*(column for pair in zip(measured, predicted) for column in pair), *tcp], list(zip(predicted, measured))


def tgt_columns(work_dir, veth):
    return [TgtColumn("iSER, memif", memif_sides(work_dir, "tgt"), "iser"), TgtColumn("iSER, veth", veth, "iser"),
            TgtColumn("TCP, the same veth", veth, "iscsi"),
            TgtColumn("TCP, loopback", loopback_sides(work_dir), "iscsi")], []


GROUPS = {"spdk": (spdk_columns, lambda: lacks(["nvmf_tgt", "spdk_nvme_perf"])), "tgt": (tgt_columns, lacks_tgt)}


def load_name(load):
    return f"{load[0]}, {load[1] >> 10} KiB, depth {load[2]}"


def print_table(columns):
    print("| load | " + " | ".join(column.name for column in columns) + " |")
    print("|---|" + "---|" * len(columns))
    for load in LOADS:
        print(f"| {load_name(load)} | " + " | ".join(column.cell(load) for column in columns) + " |")


def print_predictions(pairs):
    """Print testroce's figures divided by SPDK's: medians over the rounds, each of which measured both."""
    print("\n| load | " + " | ".join(measured.name for _, measured in pairs) + " |")
    print("|---|" + "---|" * len(pairs))
    for load in LOADS:
        cells = []
        for predicted, measured in pairs:
            ratios = [statistics.median(getattr(ours, name) / getattr(theirs, name) for ours, theirs in
                                        zip(predicted.figures[load], measured.figures[load])) for name in ("iops", "p50_us")]
            cells.append("requests x {:.2f}, p50 x {:.2f}".format(*ratios))
        print(f"| {load_name(load)} | " + " | ".join(cells) + " |")


def measure(group, work_dir, rounds, seconds):
    make, lack_of = GROUPS[group]
    lack = lack_of()
    if lack:
        print(f"figures: {group}: {lack}")
        return False
    columns, pairs = make(work_dir, veth_sides(work_dir, group))
    for _ in range(rounds):
        for column in columns:
            column.measure(seconds)
    print(f"\n{group}: medians of {rounds} rounds")
    print_table(columns)
    if pairs:
        print_predictions(pairs)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=list(GROUPS), help="measure one group of columns")
    parser.add_argument("--rounds", type=int, default=3, help="times that each is measured (3)")
    parser.add_argument("--seconds", type=int, default=2, help="length of each measurement (2)")
    options = parser.parse_args()
    exit_on_signals()
    with tempfile.TemporaryDirectory(prefix="uroce-storage-", dir=IN_MEMORY) as work_dir:
        done = [measure(group, work_dir, options.rounds, options.seconds)
                for group in ([options.only] if options.only else GROUPS)]
    with open("/proc/loadavg", encoding="ascii") as file:
        print(f"load at the end: {file.read().split()[0]}")
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
