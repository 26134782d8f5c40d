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
from record import Record, versions  # noqa: E402

BUILD = os.path.join(TOP_DIR, "build-bundle")
SIZE_MAX = 15_000_000
GLIBC_MAX = (2, 36)
# What programs and libraries may need: the C library, and our own.
NEEDED = re.compile(r"lib[cm]\.so\.6|ld-linux-\S+|lib(ibverbs|rdmacm)\.so\.1")
# The name, where the root is (other tests have the same ones), the packages with programs and libraries of RDMA.
RELEASES = (
    ("Debian 12", "bookworm", "build-package", "ibverbs-utils"),
    ("Debian 13", "trixie", "build-debian13", "ibverbs-utils ibverbs-providers rdmacm-utils perftest"),
    ("forky", "forky", "build-forky", "ibverbs-utils ibverbs-providers rdmacm-utils perftest"),
)
PROGRAMS_MIN = 30  # of three packages, and libraries of vendors
# Bind all symbols of each program and library to ours, and start the programs; --help has its own status in each.
LOAD = """export LD_LIBRARY_PATH=$PWD/lib/uroce LD_BIND_NOW=1
for path in $(dpkg -L {packages} | grep -E '^/usr/bin/|/lib[^/]*\.so\.[0-9]+$'); do
        case $(head -c 4 "$path" | tail -c 3) in ELF) ;; *) continue ;; esac
        echo "$path"
        ldd -r "$path" 2>&1 | grep -E 'undefined symbol|not found|relocation error'
        case $path in /usr/bin/*)
                timeout 5 "$path" --help </dev/null 2>&1 | grep -E 'symbol lookup error|not found'
        esac
done; :"""
COMPILER = "gcc libc6-dev libibverbs-dev librdmacm-dev elfutils"
# The program of _newest and the headers whose copies it checks: where they are there, and the folder here.
NEWEST = {"newest.c": "test/platforms", "base/verbs_later.h": "lib/base/include/base", "verbs/later.h": "lib/verbs",
          "queue/comp_cntr.h": "lib/queue/include/queue", "rdmacm/later.h": "lib/rdmacm"}
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


def look_at(report, bundle):
    report.check("bundle: what it needs", look_inside, bundle)
    report.check("bundle: drivers", drivers, bundle)


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
            self._check("all programs of RDMA find their symbols", self._load)
            self._check("ib_write_bw", self._pair, "ib_write_bw -d uroce0", r"^ 65536 +5000 +\d")
            self._check("rping", self._rping)
            self._check("action.yml", self._action)
        if self._name == "forky":
            self._check("calls of the newest rdma-core", self._newest)
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

    def _load(self):
        """Programs and the libraries of vendors name versions of symbols that only their own release has."""
        lines = self._run(LOAD.format(packages=self._programs), seconds=300).splitlines()
        faults = [line for line in lines if not line.startswith("/") or " " in line]
        if faults or len(lines) < PROGRAMS_MIN:
            raise CheckFailed(f"{len(faults)} faults of {len(lines)} lines", faults[:20])

    def _rping(self):
        output = self._run("./uroce-run --local -- sh -c 'rping -s -C 5 & server=$!\n"
                           "until rping -c -a 127.0.0.1 -C 5 -v; do sleep 0.2; kill -0 $server || exit 9; done; wait $server'")
        if output.count("ping data: rdma-ping") != 5:
            raise CheckFailed("not five pings", output.splitlines()[-20:])

    def _newest(self):
        """A program makes the calls of the newest release, and is compiled with its headers. Its programs know them, too."""
        if self._place.run(f"dpkg-query -W {COMPILER} >/dev/null 2>&1 || echo missing"):
            self._place.install(COMPILER)
        for path in NEWEST:
            self._place.run(f"mkdir -p /home/user/newest/{os.path.dirname(path)}")
            self._place.copy(os.path.join(TOP_DIR, NEWEST[path], os.path.basename(path)), f"/home/user/newest/{path}")
        self._place.run("cd /home/user/newest && cc -g -Wall -Werror -I . newest.c -o newest -libverbs -lrdmacm", seconds=120)
        output = self._run("./uroce-run --local --explain -- ../newest/newest")
        if not re.search(r"the region was created by: write_and_flush\(\) newest\.c:\d+ < main\(\) newest\.c:\d+", output):
            raise CheckFailed("--explain does not say where the region was created", output.splitlines())
        output = self._run("./uroce-run --local -- ibv_devinfo -v")
        if not re.search(r"max_comp_cntr:\s+65536", output):
            raise CheckFailed("ibv_devinfo shows no completion counters", output.splitlines())

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
    record = Record(BUILD)
    record.set_versions({"a file of": f"{os.path.getsize(bundle) / 1e6:.1f} MB"})
    record.part("what it needs and has", report, look_at, report, bundle)
    for name, release, directory, programs in RELEASES:
        clean = os.path.join(TOP_DIR, directory, "clean")
        reason = make_root(clean, release)
        if reason:
            report.skip(f"bundle: {name}", reason)
            continue

        def run(place, name=name, programs=programs):
            record.part(name, report, BundleTest(report, place, bundle, name, programs).run_all)
            record.set_versions(versions(place.run, {"libc6": f"{name} with glibc"}))

        in_place(report, f"bundle: {name}", os.path.join(clean, "root"), os.path.join(BUILD, "places", release), run, keep=True)
    record.write()
    return report.summary()


if __name__ == "__main__":
    sys.exit(main())
