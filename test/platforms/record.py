#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a whole run has given on a platform, in a file beside its build. table.py makes the README's table of these files. As a
program, keep what .ci/run has given on this machine: each line of the input has a command, and how many of its checks passed,
failed and were skipped."""

import json
import os
import platform
import re
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RELEASE = "12"  # of the table's row
VERSIONS = {"gcc": "gcc", "libdpdk-dev": "DPDK", "libibverbs-dev": "rdma-core", "perftest": "perftest", "ucx-utils": "UCX",
            "openmpi-bin": "Open MPI", "libfabric-bin": "libfabric"}


def versions(run, packages):
    """Return the versions of the packages of Debian, without epoch and revision. `run` runs a shell script and returns its
    output."""
    output = run("dpkg-query --showformat '${Package} ${Version}\\n' --show " + " ".join(packages) + " || :")
    found = dict(line.split() for line in output.splitlines())
    return {label: re.match(r"(?:\d+:)?([\d.]*\d)", found[name])[1] for name, label in packages.items() if name in found}


class Record:
    """The versions of a platform, and how many checks of each part have passed."""

    def __init__(self, directory):
        self._path = os.path.join(directory, "platform.json")
        self._versions = {}
        self._parts = []

    def set_versions(self, found):
        self._versions.update(found)

    def part(self, name, report, run, *args):
        """Run a part of the checks, and note what it adds to the report."""
        before = report.passed, report.failed, report.skipped
        done = run(*args)
        passed, failed, skipped = (now - then for now, then in zip((report.passed, report.failed, report.skipped), before))
        self.add(name, passed, failed, skipped)
        return done

    def add(self, name, passed, failed, skipped):
        self._parts.append({"name": name, "passed": passed, "failed": failed, "skipped": skipped})

    def write(self):
        with open(self._path, "w", encoding="utf-8") as file:
            json.dump({"date": time.strftime("%Y-%m-%d"), "versions": self._versions, "parts": self._parts}, file, indent=1)
            file.write("\n")


def main():
    if platform.freedesktop_os_release().get("VERSION_ID") != RELEASE:
        return
    record = Record(os.path.join(TOP, "build"))
    for line in sys.stdin:
        *command, passed, failed, skipped = line.split()
        record.add(f"`{' '.join(command)}`", int(passed), int(failed), int(skipped))
    record.set_versions(versions(lambda script: subprocess.run(["sh", "-c", script], check=True, stdout=subprocess.PIPE,
                                                               text=True).stdout, VERSIONS))
    record.write()


if __name__ == "__main__":
    main()
