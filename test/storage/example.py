# SPDX-License-Identifier: BSD-3-Clause
"""The example of a disk in memory, which makes its own containers."""

import os
import shutil

from harness.process import LocalHost
from harness.tools import UROCE_RUN
from sides import StorageRunning

SECONDS = 60
NAME = "tgt: ram_disk.sh"
SCRIPT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../app/examples/ram_disk.sh"))


def run(report, work_dir):
    """Its client reads what it has written."""
    if report.only and report.only not in NAME:
        return
    missing = [program for program in ("tgtd", "qemu-io") if not shutil.which(program)]
    if missing:
        report.skip(NAME, f"{missing[0]} is not installed: tgt, qemu-utils")
        return
    report.check(NAME, _run, LocalHost("ram-disk", work_dir, ["env", f"UROCE_RUN={UROCE_RUN}"]))


def _run(host):
    with StorageRunning() as running:
        output = running.expect(running.add(host.start([SCRIPT])), SECONDS, "ram_disk.sh")
        if "read 1048576/1048576 bytes" not in output or "Pattern verification failed" in output:
            running.fail("the client does not read what it has written")
