#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bundle test: the one file is unpacked and used by an ordinary user, in several releases of Debian that have RDMA programs
and nothing of uroce's or DPDK's. The roots and the programs are kept for the next run."""

import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.checkout import TOP_DIR  # noqa: E402
from harness.place import USER, in_place, make_root  # noqa: E402
from harness.process import exit_on_signals  # noqa: E402
from harness.report import CheckFailed, Report  # noqa: E402
from bundle_containers import BundleContainersTest  # noqa: E402

BUILD = os.path.join(TOP_DIR, "build-bundle")
SIZE_MAX = 15_000_000
GLIBC_MAX = (2, 36)
# What programs and libraries may need: the C library, and our own.
NEEDED = re.compile(r"lib[cm]\.so\.6|ld-linux-\S+|lib(ibverbs|rdmacm)\.so\.1")
# The name, where the root is (other tests have the same ones), the programs.
RELEASES = (
    ("Debian 12", "bookworm", "build-package", "ibverbs-utils"),
    ("Debian 13", "trixie", "build-debian13", "ibverbs-utils perftest"),
    ("forky", "forky", "build-forky", "ibverbs-utils perftest"),
)
# The client tries again until the server listens.
PAIR = """{command} & server=$!
until {command} localhost; do sleep 0.2; kill -0 $server || exit 9; done; wait $server"""


def tell(*argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


def find_bundle():
    found = glob.glob(os.path.join(BUILD, "uroce-*.tar.gz"))
    if len(found) != 1:
        sys.exit("bundle: there is not one bundle in build-bundle; run: make test-bundle")
    return found[0]


def elf_files(directory):
    for path in glob.glob(os.path.join(directory, "**"), recursive=True):
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def look_inside(bundle):
    """It is small, and needs nothing but a C library that is old enough."""
    if os.path.getsize(bundle) > SIZE_MAX:
        raise CheckFailed(f"{os.path.getsize(bundle)} bytes")
    with tempfile.TemporaryDirectory() as directory:
        tell("tar", "-xf", bundle, "-C", directory)
        faults = []
        for path in elf_files(directory):
            dynamic = tell("readelf", "--dynamic", path)
            faults += [f"{path} needs {name}" for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
                       if not NEEDED.fullmatch(name)]
            versions = re.findall(r"GLIBC_(\d+)\.(\d+)", tell("readelf", "--version-info", path))
            faults += [f"{path} needs glibc {'.'.join(found)}" for found in set(versions)
                       if tuple(map(int, found)) > GLIBC_MAX]
            if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
                faults.append(f"{path} has a search path")
            with open(path, "rb") as file:
                if TOP_DIR.encode() in file.read():
                    faults.append(f"{path} names the directory that it was built in")
        if faults:
            raise CheckFailed("it depends on more than it should", faults)


def drivers(bundle):
    """doc/user/bundle.md lists the drivers that are there."""
    with tempfile.TemporaryDirectory() as directory:
        tell("tar", "-xf", bundle, "-C", directory)
        with open(*glob.glob(os.path.join(directory, "*/lib/uroce/liburoce.so.0")), "rb") as file:
            there = {name.decode() for name in re.findall(rb'PMD_INFO_STRING= {"name": "(\w+)"', file.read())}
    with open(os.path.join(TOP_DIR, "doc", "user", "bundle.md"), encoding="utf-8") as file:
        told = set(re.findall(r"`(net_\w+)`", file.read()))
    if there != told:
        raise CheckFailed("others", [f"only there: {sorted(there - told)}", f"only in doc/user/bundle.md: {sorted(told - there)}"])


class BundleTest:
    """All checks of one release, one after the other in one place."""

    def __init__(self, report, place, bundle, name, programs):
        self._report = report
        self._place = place
        self._bundle = bundle
        self._name = name
        self._programs = programs

    def run_all(self):
        place = self._place
        if place.run(f"dpkg-query -W {self._programs} >/dev/null 2>&1 || echo missing"):
            place.install(self._programs)
        place.run(f"rm -rf /home/user && mkdir --parents /home/user/anywhere && chown --recursive {USER} /home/user")
        place.copy(self._bundle, "/home/user")
        place.run(f"tar -xf {os.path.basename(self._bundle)} -C anywhere --strip-components 1", user=True)
        self._check("nothing of it is installed", self._not_installed)
        self._check("uroce-run --local", self._local)
        self._check("a port of the program's own", self._port)
        self._check("tools", self._tools)
        if "perftest" in self._programs:
            self._check("ib_write_bw", self._pair, "ib_write_bw -d uroce0", r"^ 65536 +5000 +\d")
            self._check("action.yml", self._action)
        if self._name == "forky":
            BundleContainersTest(self._report, place, self._bundle, os.path.join(BUILD, "containers")).run_all()

    def _check(self, what, function, *args):
        self._report.check(f"bundle: {self._name}: {what}", function, *args)

    def _run(self, script, **options):
        return self._place.run(f"cd anywhere && {{ {script}\n}}", user=True, **options)

    def _not_installed(self):
        output = self._place.run("dpkg-query -W | grep -E 'dpdk|librte|isal|json-c' || true")
        if output:
            raise CheckFailed("this place has libraries", output.splitlines())

    def _pair(self, command, expected):
        output = self._run(f"./uroce-run --local -- sh -c {shlex.quote(PAIR.format(command=command))}", seconds=120)
        if len(re.findall(expected, output, re.M)) != 2:
            raise CheckFailed("not two results", output.splitlines()[-30:])

    def _local(self):
        self._pair("ibv_rc_pingpong -g 1", r"^1000 iters in")
        output = self._run("./uroce-run --local=2 -- sh -c 'ibv_devinfo; ls /sys/class/infiniband'")
        if output.count("PORT_ACTIVE") != 2 or output.split()[-2:] != ["uroce0", "uroce1"]:
            raise CheckFailed("no two devices", output.splitlines())

    def _port(self):
        """DPDK and a driver are there; another driver is refused by name."""
        output = self._run("./uroce-run --port net_null0 --ip 10.0.0.1/24 -- ibv_devinfo -v")
        if "10.0.0.1" not in output:
            raise CheckFailed("no device", output.splitlines())
        output = self._run("./uroce-run --port net_ixgbe0 --ip 10.0.0.1/24 -- ibv_devinfo", status=1)
        if "no DPDK driver for 'net_ixgbe0'" not in output:
            raise CheckFailed("not refused", output.splitlines())

    def _tools(self):
        output = self._run("./testroce --pair --mode latency --seconds 1", seconds=120)
        if not re.search(r"latency: p50 \d", output):
            raise CheckFailed("testroce measures nothing", output.splitlines())
        output = self._run("./uroce-run --local -- ./uroce-ctl dev show")
        if not re.search(r"^0: uroce0: ", output, re.M):
            raise CheckFailed("uroce-ctl shows no device", output.splitlines())

    def _action(self):
        """The step, with what a runner puts into it."""
        with open(os.path.join(TOP_DIR, "action.yml"), encoding="utf-8") as file:
            head, run = file.read().split("      run: |\n")
        if head.count("- shell: bash\n") != 1 or "BUNDLE: ${{ inputs.bundle }}" not in head:
            raise CheckFailed("another step than this check knows")
        self._place.run("mkdir tmp", user=True)
        # A job may have the step twice.
        for devices in 1, 2:
            self._place.run("rm -f env path && touch env path", user=True)
            self._place.run("bash -eo pipefail -c " + shlex.quote(run), user=True, environment=[
                f"BUNDLE=/home/user/{os.path.basename(self._bundle)}", f"DEVICES={devices}", "RUNNER_TEMP=/home/user/tmp",
                "GITHUB_ENV=/home/user/env", "GITHUB_PATH=/home/user/path"])
            output = self._place.run('export $(cat env) PATH="$(cat path):$PATH"\n'
                                     'ibv_devices; uroce-run --version; kill $UROCE_CI_PID', user=True)
            if len(re.findall(r"\buroce\d", output)) != devices or "uroce-run " not in output:
                raise CheckFailed(f"not {devices} devices", output.splitlines())


def main():
    exit_on_signals()
    if os.geteuid() != 0:
        sys.exit("bundle: needs root (other releases in directories); run: sudo make test-bundle")
    report = Report()
    bundle = find_bundle()
    report.check("bundle: what it needs", look_inside, bundle)
    report.check("bundle: drivers", drivers, bundle)
    for name, release, directory, programs in RELEASES:
        clean = os.path.join(TOP_DIR, directory, "clean")
        reason = make_root(clean, release)
        if reason:
            report.skip(f"bundle: {name}", reason)
            continue
        in_place(report, f"bundle: {name}", os.path.join(clean, "root"), os.path.join(BUILD, "places", release),
                 lambda place, name=name, programs=programs: BundleTest(report, place, bundle, name, programs).run_all(),
                 keep=True)
    return report.summary()


if __name__ == "__main__":
    sys.exit(main())
