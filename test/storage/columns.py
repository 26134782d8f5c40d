# SPDX-License-Identifier: BSD-3-Clause
"""The columns of figures.py: a target and an initiator on a pair of sides, measured with each load."""

import json
import os
import re
import shutil
import statistics
import time

from harness.tools import UROCE_RUN
from nvme import LUN_BYTES, SECONDS, Nvme
from sides import StorageRunning
import tgt

WARM_SECONDS = 0.8  # an initiator's start and connection
LOADS = [(pattern, size, depth) for pattern, size in (("randread", 4096), ("write", 131072)) for depth in (1, 32, 128)]
TICKS = os.sysconf("SC_CLK_TCK")
BUILD = os.path.dirname(os.path.dirname(UROCE_RUN))
TESTROCE = os.path.join(BUILD, "app", "testroce")
ISCSI_LOAD = os.path.join(BUILD, "test", "storage", "iscsi_load")
TESTROCE_PORT = 26011


def cpu_seconds(process):
    """Return the user and system time of a process."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def cpu_share(processes, seconds):
    """Sleep, and return how many CPUs the processes used meanwhile."""
    begin, used = time.monotonic(), sum(cpu_seconds(process) for process in processes)
    time.sleep(seconds)
    return (sum(cpu_seconds(process) for process in processes) - used) / (time.monotonic() - begin)


class Figures:
    """The results of one load: requests and Gb/s, latency, and the CPU time of all processes for a request."""

    def __init__(self, iops, size, p50_us, p99_us, share):
        self.iops = iops
        self.gbps = iops * size * 8 / 1e9
        self.p50_us = p50_us
        self.p99_us = p99_us
        self.cpu_us = share / iops * 1e6


class Column:
    """A pair of sides and a protocol, which is measured again and again."""

    def __init__(self, name, sides, beside=()):
        self.name = name
        self._sides = sides
        self._beside = beside  # processes that work for both sides
        self.figures = {load: [] for load in LOADS}

    def measure(self, seconds):
        """Start the target, and measure it with each load."""
        with StorageRunning() as running:
            target = self._start_target(running)
            for load in LOADS:
                initiator = self._start_initiator(running, load, seconds)
                time.sleep(WARM_SECONDS)
                share = cpu_share([target, initiator, *self._beside], max(seconds - WARM_SECONDS, 0.5))
                iops, p50_us, p99_us = self._result(running.expect(initiator, SECONDS, self.name))
                self.figures[load].append(Figures(iops, load[1], p50_us, p99_us, share))
            self._end_target(running, target)

    @staticmethod
    def _end_target(_running, target):
        target.kill()

    def cell(self, load):
        def median(name):
            return statistics.median(getattr(each, name) for each in self.figures[load])
        return (f"{median('iops'):,.0f}; {median('gbps'):.2f} Gb/s; {median('p50_us'):.1f} / "
                f"{median('p99_us'):.0f} us; {median('cpu_us'):.1f} us")


class NvmeColumn(Column):
    """SPDK's target with a disk in memory, and spdk_nvme_perf."""

    def __init__(self, name, sides, transport, beside=()):
        super().__init__(name, sides, beside)
        self._nvme = Nvme(sides, transport)

    def _start_target(self, running):
        return self._nvme.start_target(running)

    def _start_initiator(self, running, load, seconds):
        return self._nvme.start_perf(running, *load, seconds, "-L")

    @staticmethod
    def _result(output):
        return (float(re.search(r"^Total +: +([\d.]+)", output, re.M).group(1)),
                *(float(re.search(rf"^ *{share}\.00000% : +([\d.]+)us", output, re.M).group(1)) for share in (50, 99)))

    def _end_target(self, running, target):
        self._nvme.end_target(running, target)


class TestroceColumn(Column):
    """testroce --mode storage, with the disk and the path MTU that SPDK has."""

    def _start_target(self, running):
        side = self._sides.target
        target = running.add(side.start_beside([TESTROCE, *side.port_options, "--listen", f"0.0.0.0:{TESTROCE_PORT}"]))
        running.wait_for_output(target, "listening at", SECONDS)
        return target

    def _start_initiator(self, running, load, seconds):
        pattern, size, depth = load
        self._path = os.path.join(self._sides.work_dir, "testroce.json")
        side = self._sides.initiator
        return running.add(side.start_beside(
            [TESTROCE, *side.port_options, "--connect", f"{self._sides.kernel_address}:{TESTROCE_PORT}", "--mode", "storage",
             "--size", str(size), "--depth", str(depth), "--region", str(LUN_BYTES), "--path-mtu", "4096", "--read-percent",
             "100" if pattern == "randread" else "0", "--seconds", str(seconds), "--json", self._path]))

    def _result(self, _output):
        with open(self._path, encoding="utf-8") as file:
            result = json.load(file)
        return result["messages"] / result["seconds"], result["p50_us"], result["p99_us"]


class TgtColumn(Column):
    """tgt with a file in memory, and libiscsi."""

    def __init__(self, name, sides, transport):
        super().__init__(name, sides)
        self._transport = transport
        self._file = os.path.join(sides.work_dir, f"{sides.wire}.disk")
        with open(self._file, "wb") as file:
            file.write(bytes(LUN_BYTES))

    def _start_target(self, running):
        return tgt.Target(running, self._sides, self._file, transport=self._transport).process

    def _start_initiator(self, running, load, seconds):
        pattern, size, depth = load
        side = self._sides.initiator
        start = side.start if self._transport == "iser" else side.start_beside
        return running.add(start([ISCSI_LOAD, f"{self._transport}://{self._sides.address}/{tgt.TARGET}/1",
                                  "write" if pattern == "write" else "read", str(size), str(depth), str(seconds)]))

    @staticmethod
    def _result(output):
        result = json.loads(output[output.index("{"):])
        return result["iops"], result["p50_us"], result["p99_us"]


def lacks_tgt():
    """Return why tgt cannot be measured; None if it can."""
    if not shutil.which("tgtd"):
        return "tgtd is not installed (package tgt)"
    return None if os.access(ISCSI_LOAD, os.X_OK) else f"{ISCSI_LOAD} was not built (package libiscsi-dev)"
