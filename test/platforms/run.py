#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Platform test: uroce is built and used on Debian 13, in a root directory. The root with its packages, and the build, are
kept for the next run."""

import argparse
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.checkout import TOP_DIR  # noqa: E402
from harness.place import in_place, make_root  # noqa: E402
from harness.process import exit_on_signals  # noqa: E402
from harness.report import SECOND_TRY, CheckFailed, Report  # noqa: E402
from record import VERSIONS, Record, versions  # noqa: E402

NAME, RELEASE = "Debian 13", "trixie"
SECONDS = 3600  # for packages and the build, on a busy machine
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
# The compiler's warnings are errors.
BUILD = "nice make tests MESONFLAGS=-Dwerror=true"
# Programs that most people have, and the suite of rdma-core's release.
PROGRAMS = {"`ib_write_bw` over memif": "--group memif --only ib_write_bw", "`rping`": "--group rdmacm --only rping",
            "UCX, Open MPI, libfabric": "--group ucx --only attached", "pyverbs' suite": "--group pyverbs"}


class PlatformTest:
    """All checks, one after the other in one place."""

    def __init__(self, report, place, record):
        self._report = report
        self._place = place
        self._record = record

    def run_all(self):
        self._place.copy_checkout()
        if not self._part("set-up and build without a warning", self._build):
            return
        self._part("unit tests and ABI", self._add, "test/run-all.py --unit")
        self._part("short simulation and `make demo`", self._short)
        for name, options in PROGRAMS.items():
            self._part(name, self._add, f"test/programs/run.py {options}")
        self._record.set_versions(versions(self._place.run, VERSIONS))
        self._record.write()

    def _part(self, name, run, *args):
        return self._record.part(name, self._report, run, *args)

    def _build(self):
        """Return True if it was built."""
        if not self._report.require(f"{NAME}: config/setup.sh test", self._set_up) or \
                not self._report.require(f"{NAME}: it is built without a warning", self._run, BUILD):
            return False
        self._report.check(f"{NAME}: config/setup.sh has nothing more to do", self._set_up_again)
        return True

    def _short(self):
        # With the unit tests and the ABI, it is `make check`.
        self._report.check(f"{NAME}: a short simulation", self._run, "meson test -C build --no-rebuild sim-quick")
        self._report.check(f"{NAME}: make demo", self._demo)

    def _run(self, script, **options):
        return self._place.run(f"cd /src && {{ {script}\n}}", seconds=SECONDS, **options)

    def _set_up(self):
        """Install what the lists of packages name and this release has."""
        self._run("config/setup.sh test", network=True)

    def _set_up_again(self):
        """Nothing is missing, and no network is needed, although the release does not have all of these packages."""
        output = self._run("config/setup.sh test")
        if re.search("installing|refreshing", output):
            raise CheckFailed("it asks for packages once more", output.splitlines())

    def _demo(self):
        output = self._run("make demo")
        if not re.search(r"^ 65536 +5000 +\d", output, re.M):
            raise CheckFailed("ib_write_bw has no result", output.splitlines())

    def _add(self, command):
        """Run a command that counts its own checks. Print their lines, and add their numbers."""
        print(f"\n== {NAME}: {command}", flush=True)
        counts = None
        with self._place.start(f"cd /src && {command}") as process:
            for line in process.stdout:
                counts = SUMMARY.match(line)
                if line.startswith(SECOND_TRY):
                    self._report.second_tries.append(line.removeprefix(SECOND_TRY).rstrip())
                elif not counts:
                    print(line, end="", flush=True)
        passed, failed, skipped = map(int, counts.groups()) if counts else (0, 0, 0)
        self._report.passed += passed
        self._report.failed += failed
        self._report.skipped += skipped
        if not failed and (process.returncode or not passed):
            self._report.fail(f"{NAME}: {command}", f"exit {process.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", default=os.path.join(TOP_DIR, "build-debian13"), help="where the root and the build are kept "
                        "(build-debian13)")
    options = parser.parse_args()
    exit_on_signals()
    if os.geteuid() != 0:
        sys.exit("platforms: needs root (another Debian in a directory); run: sudo make test-debian13")
    report = Report()
    reason = make_root(os.path.join(options.work, "clean"), RELEASE)
    if reason:
        report.skip(NAME, reason)
        return report.summary()
    in_place(report, NAME, os.path.join(options.work, "clean", "root"), os.path.join(options.work, "place"),
             lambda place: PlatformTest(report, place, Record(options.work)).run_all(), keep=True)
    return report.summary()


if __name__ == "__main__":
    sys.exit(main())
