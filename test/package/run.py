#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Package tests: the release archive, Debian's packages, their use in a clean Debian and in containers, and the systemd
units."""

import argparse
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.place import in_place, make_root  # noqa: E402
from harness.process import exit_on_signals  # noqa: E402
from harness.report import Report  # noqa: E402
from booted import BootedTest  # noqa: E402
from containers import ContainersTest  # noqa: E402
from debs import TOP, Debs  # noqa: E402
from examples import ExamplesTest, readme_commands  # noqa: E402
from installed import InstalledTest  # noqa: E402
from plain import PlainTest  # noqa: E402
from units import UnitsTest  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="TEXT", help="run the checks whose name contains this, once the packages are built")
    parser.add_argument("--work", default=os.path.join(TOP, "build-package"), help="a directory for results (build-package)")
    parser.add_argument("--all", action="store_true", help="also the examples of doc/user/ci.md that install a compiler of another "
                        "language than C")
    options = parser.parse_args()
    exit_on_signals()
    if os.geteuid() != 0:
        sys.exit("package: needs root (a clean Debian in a directory); run: sudo make test-package")
    report = Report(options.only, complete=options.all or options.only is not None)
    debs = Debs(options.work)
    if not report.require("package: meson dist", debs.unpack_archive) or \
            not report.require("package: dpkg-buildpackage", debs.build, readme_commands()[1]):
        return report.summary()
    report.check("package: contents", debs.contents)
    report.check("package: no search path", debs.no_search_path)
    if shutil.which("lintian"):
        report.check("package: lintian", debs.lint)
    else:
        report.skip("package: lintian", "lintian is missing")
    if not report.require("package: a later version", debs.build_later):
        return report.summary()
    UnitsTest(report, debs).run_all()
    reason = make_root(os.path.join(options.work, "clean"), "bookworm")
    if reason:
        report.skip("package: a clean Debian", reason)
        return report.summary()
    root = os.path.join(options.work, "clean", "root")
    for name, test in (("installed", InstalledTest), ("booted", BootedTest), ("plain", PlainTest), ("examples", ExamplesTest)):
        in_place(report, f"package: {name}", root, os.path.join(options.work, name),
                 lambda place, test=test: test(report, place, debs).run_all())
    ContainersTest(report, options.work, root, debs).run_all()
    return report.summary()


if __name__ == "__main__":
    sys.exit(main())
