#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures SPDK's NVMe over Fabrics on uroce beside its own TCP transport, by turns; prints medians as tables."""

import argparse
import os
import re
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.process import Namespace, exit_on_signals  # noqa: E402
from nvme import SECONDS, Nvme, lacks  # noqa: E402
from sides import Side, Sides, StorageRunning, attached_sides, memif_sides, veth_sides  # noqa: E402

WARM_SECONDS = 0.8  # perf's start and connection
LOADS = [(pattern, size, depth) for pattern, size in (("randread", 4096), ("write", 131072)) for depth in (1, 32, 128)]
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process):
    """User and system time of a process."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def loopback_sides(work_dir):
    """Two processes in one namespace, for the kernel's TCP."""
    namespace = Namespace("stlo")
    sides = [Side(f"lo-{cpu}", work_dir, cpu, namespace, []) for cpu in range(2)]
    return Sides("loopback", work_dir, *sides, "127.0.0.1")


class Figures:
    """What one load gave: operations and bits a second, latency, CPU time of all processes for a request."""

    def __init__(self, output, size, cpu_share):
        self.iops = float(re.search(r"^Total +: +([\d.]+)", output, re.M).group(1))
        self.gbps = self.iops * size * 8 / 1e9
        self.p50_us, self.p99_us = [float(re.search(rf"^ *{share}\.00000% : +([\d.]+)us", output, re.M).group(1))
                                    for share in (50, 99)]
        self.cpu_us = cpu_share / self.iops * 1e6


class Column:
    """A pair of sides and a transport, which is measured again and again."""

    def __init__(self, name, sides, transport, beside=()):
        self.name = name
        self._nvme = Nvme(sides, transport)
        self._beside = beside  # processes that work for both
        self._figures = {load: [] for load in LOADS}

    def measure(self, seconds):
        with StorageRunning() as running:
            target = self._nvme.start_target(running)
            for load in LOADS:
                self._figures[load].append(self._measure(running, target, load, seconds))
            self._nvme.end_target(running, target)

    def _measure(self, running, target, load, seconds):
        perf = self._nvme.start_perf(running, *load, seconds, "-L")
        processes = [target, perf, *self._beside]
        time.sleep(WARM_SECONDS)
        begin, used = time.monotonic(), sum(cpu_seconds(process) for process in processes)
        time.sleep(max(seconds - WARM_SECONDS, 0.5))
        share = (sum(cpu_seconds(process) for process in processes) - used) / (time.monotonic() - begin)
        return Figures(running.expect(perf, SECONDS, "perf"), load[1], share)

    def cell(self, load):
        def median(name):
            return statistics.median(getattr(each, name) for each in self._figures[load])
        return (f"{median('iops'):,.0f}; {median('gbps'):.2f} Gb/s; {median('p50_us'):.1f} / "
                f"{median('p99_us'):.0f} us; {median('cpu_us'):.1f} us")


def print_tables(columns):
    print("| load | " + " | ".join(column.name for column in columns) + " |")
    print("|---|" + "---|" * len(columns))
    for load in LOADS:
        name = f"{load[0]}, {load[1] >> 10} KiB, depth {load[2]}"
        print(f"| {name} | " + " | ".join(column.cell(load) for column in columns) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="times that each is measured (3)")
    parser.add_argument("--seconds", type=int, default=2, help="length of each measurement (2)")
    options = parser.parse_args()
    exit_on_signals()
    lack = lacks(["nvmf_tgt", "spdk_nvme_perf"])
    if lack:
        sys.exit(f"figures: {lack}")
    with tempfile.TemporaryDirectory(prefix="uroce-storage-") as work_dir:
        veth = veth_sides(work_dir)
        attached = next(attached_sides(work_dir))
        columns = [Column("memif", memif_sides(work_dir), "RDMA"),
                   Column("hand-over", attached, "RDMA", [attached.owner]),
                   Column("veth", veth, "RDMA"),
                   Column("TCP, the same veth", veth, "TCP"),
                   Column("TCP, loopback", loopback_sides(work_dir), "TCP")]
        for _ in range(options.rounds):
            for column in columns:
                column.measure(options.seconds)
        print_tables(columns)
        with open("/proc/loadavg", encoding="ascii") as file:
            print(f"load at the end: {file.read().split()[0]}")


if __name__ == "__main__":
    main()
