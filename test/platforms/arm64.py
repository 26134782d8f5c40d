#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""arm64 test: uroce is built for arm64 by a cross compiler, and runs there in qemu-user: unit tests, the simulator, and RDMA
programs of arm64 between two processes. The root with its packages, and the build, are kept for the next run.

qemu-user runs arm64's instructions on this processor, in this processor's order of memory accesses: it shows no fault of
memory order. test/unit/weak looks for these."""

import argparse
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.checkout import TOP_DIR  # noqa: E402
from harness.place import in_place, make_root  # noqa: E402
from harness.process import exit_on_signals  # noqa: E402
from harness.report import CannotRun, CheckFailed, Report  # noqa: E402
from bundle import look_inside  # noqa: E402
from record import Record, versions  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
NAME, RELEASE = "arm64", "bookworm"
BUILD_SECONDS = 3600
SECONDS = 300  # for one room's tests, on a busy machine
SKIPPED = 77
NATIVE = "meson ninja-build pkgconf python3 crossbuild-essential-arm64 qemu-user-static"
LIBRARIES = ("libdpdk-dev", "libibverbs-dev", "librdmacm-dev", "libisal-dev", "libjson-c-dev", "libcmocka-dev", "ibverbs-utils", "perftest")
VERSIONS = {"gcc-aarch64-linux-gnu": "gcc", "libdpdk-dev": "DPDK", "libibverbs-dev": "rdma-core", "qemu-user-static": "qemu"}
CROSS = r"""meson env2mfile --cross --debarch arm64 -o /root/cross.txt
printf '[binaries]\nexe_wrapper = "qemu-aarch64-static"\n' | tr '"' "'" >/root/emulator.txt
test -f build/build.ninja || meson setup build --cross-file /root/cross.txt --cross-file /root/emulator.txt -Dwerror=true"""
# abi/needed loads the libraries into Python, which is not arm64's.
ABI = "abi/symbols abi/symbols_rdmacm abi/fortified abi/calls"
PINGPONG = (" --local -- sh -c 'ibv_rc_pingpong -g 1 & server=$!; "
            "until ibv_rc_pingpong -g 1 localhost; do sleep 0.2; kill -0 $server || exit 9; done; wait $server'")
BUNDLE = "make bundle SETUP=: ARCHITECTURE=aarch64 MESONFLAGS='--cross-file /root/cross.txt -Dwerror=true'"
UNPACK = "rm -rf /tmp/bundle && mkdir /tmp/bundle && tar -xf build-bundle/uroce-*.tar.gz -C /tmp/bundle --strip-components 1"
# Rooms, files and tests that are left out, by the reason.
LEFT_OUT = {
    "qemu-user ignores madvise(2) and answers 0": (
        "mem/advise", "mem/huge", "mem/mr", "mem/pager", "mem/pages", "mem/range", "mem/rereg", "base/cachelines",
        "mem/key_table/key_table_insert__keys_after_fork_are_the_parents_alone",
        "attach/client_private", "memif/client_end", "engine/paging", "verbs/ibv_mr", "verbs/on_demand"),
    "qemu-user has signals and system calls of its own": (
        "base/guard_mask", "queue/channel/channel_read__does_not_return_when_the_channel_ends", "memif/socket",
        "app_run/launch", "app_ctl/doctor/doctor_ask_host__of_this_host"),
    "qemu-user has no filters of system calls": (
        "eal/privilege", "view/view_serve/view_state_poll__without_pidfds", "app_uroced/confine"),
    "the user namespace has one user": (
        "share/user", "eal/runtime_dir", "report/scan", "owner/slot", "app_run/run_check", "app_run/run_local",
        "attach/client_away/client_seek__greets_no_other_user"),
    "cache lines of DPDK for arm64 have 128 bytes": (
        "qp/qp_layout", "share/share_direct/direct__has_the_layout_that_hostile_programs_use"),
    "the same on every processor, and slow here": (
        "engine_handover", "owner/budget", "memif/client_end_faults/memif_client__survives_anything",
        "memif/end/memif_server_receive__survives_anything",
        "queue/channel/channel_forget__no_event_is_lost_or_made_up_under_stress"),
}


def left_out(name):
    """Return True for a room, file or test that is left out, or that is in one."""
    return any(name == known or name.startswith(f"{known}/") for names in LEFT_OUT.values() for known in names)


class Arm64Test:
    """All checks, one after the other in one place."""

    def __init__(self, report, place, record, quick):
        self._report = report
        self._place = place
        self._record = record
        self._quick = quick

    def run_all(self):
        self._place.copy_checkout()
        if not self._part("set-up and build without a warning", self._prepare):
            return
        self._part("rooms of unit tests", self._units)
        self._part("`ibv_rc_pingpong` between two processes", self._report.check,
                   f"{NAME}: ibv_rc_pingpong between two processes", self._pingpong)
        if self._quick:
            return
        self._part("ABI, short simulation, `make demo`", self._short)
        self._part("the bundle", self._bundle)
        if not self._report.only:
            self._record.set_versions(versions(self._place.run, VERSIONS))
            self._record.write()

    def _part(self, name, run, *args):
        return self._record.part(name, self._report, run, *args)

    def _prepare(self):
        """Return True if it was built and can run."""
        return (self._report.require(f"{NAME}: packages", self._install) and
                self._report.require(f"{NAME}: it is built without a warning", self._build) and
                self._report.require(f"{NAME}: the kernel starts its programs", self._emulate, "ibv_devices || true"))

    def _units(self):
        for room in ("wire", "wire_icrc_kernel") if self._quick else self._rooms():
            self._report.check(f"{NAME}: unit tests of {room}", self._unit, room)

    def _short(self):
        self._report.check(f"{NAME}: ABI", self._emulate, f"meson test -C build --no-rebuild {ABI}")
        self._report.check(f"{NAME}: a short simulation", self._emulate, "meson test -C build --no-rebuild -t 10 sim-quick")
        self._report.check(f"{NAME}: the demonstration", self._demo)

    def _bundle(self):
        if self._report.require(f"{NAME}: make bundle", self._place.run, f"cd /src && {BUNDLE}", BUILD_SECONDS):
            found = glob.glob(f"/proc/{self._place.pid}/root/src/build-bundle/uroce-*-aarch64.tar.gz")
            self._report.check(f"{NAME}: what the bundle needs", look_inside, *found)
            self._report.check(f"{NAME}: the bundle's uroce-run --local", self._pingpong, f"{UNPACK}; /tmp/bundle/uroce-run")

    def _install(self):
        packages = f"{NATIVE} {' '.join(f'{name}:arm64' for name in LIBRARIES)}"
        if self._place.run(f"dpkg-query -W {packages} >/dev/null 2>&1 || echo missing"):
            self._place.run("dpkg --add-architecture arm64 && apt-get update", network=True, seconds=SECONDS)
            self._place.install(packages)

    def _build(self):
        targets = "product test/unit/test_wire test/unit/test_wire_icrc_kernel" if self._quick else ""
        self._place.run(f"cd /src && {{ {CROSS}\n}} && ninja -C build {targets}", seconds=BUILD_SECONDS)

    def _emulate(self, script, seconds=SECONDS):
        """Run a script in the place, which may start programs of arm64. Return what it prints."""
        enter = ["nsenter", "--target", str(self._place.pid), "--mount", "--pid", "--ipc", "--uts", "--net",
                 "unshare", "--user", "--map-root-user", "--mount", "timeout", "--kill-after=10", str(seconds)]
        done = subprocess.run([*enter, os.path.join(HERE, "emulate.sh"), self._place.root, script], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        if done.returncode == SKIPPED:
            raise CannotRun(done.stdout.splitlines()[-1])
        if done.returncode:
            lines = done.stdout.splitlines()
            faults = [line for line in lines if re.search(r"FAILED|ERROR|LINE", line)]
            raise CheckFailed(f"exit {done.returncode}: {script[:200]}", (faults or lines)[-20:])
        return done.stdout

    def _rooms(self):
        """Return the rooms whose tests were built."""
        found = self._place.run("cd /src/build/test/unit && ls -d test_*").split()
        rooms = [name.removeprefix("test_") for name in found if not name.endswith(".p")]
        for reason, names in LEFT_OUT.items():
            for name in names:
                self._report.skip(f"{NAME}: unit tests of {name}", reason)
        return [room for room in rooms if not left_out(room)]

    def _unit(self, room):
        """Run a room's tests but those that are left out."""
        program = f"build/test/unit/test_{room}"
        names = self._emulate(f"{program} --list").split()
        self._emulate(f"{program} {' '.join(name for name in names if not left_out(f'{room}/{name}'))}")

    def _pingpong(self, run="build/app/uroce-run"):
        output = self._emulate(run + PINGPONG)
        if len(re.findall(r"^1000 iters in", output, re.M)) != 2:
            raise CheckFailed("not both sides have a result", output.splitlines())

    def _demo(self):
        output = self._emulate("test/programs/tools/demo.sh")
        if not re.search(r"^ 65536 +5000 +\d", output, re.M):
            raise CheckFailed("ib_write_bw has no result", output.splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", default=os.path.join(TOP_DIR, "build-arm64"), help="where the root and the build are kept "
                        "(build-arm64)")
    parser.add_argument("--quick", action="store_true", help="only what is installed, the tests of the wire format, and "
                        "ibv_rc_pingpong")
    parser.add_argument("--only", metavar="TEXT", help="run the checks whose name contains this, once it is built")
    options = parser.parse_args()
    exit_on_signals()
    if os.geteuid() != 0:
        sys.exit("arm64: needs root (a Debian in a directory); run: sudo make test-arm64")
    report = Report(options.only)
    reason = make_root(os.path.join(options.work, "clean"), RELEASE)
    if reason:
        report.skip(NAME, reason)
        return report.summary()
    in_place(report, NAME, os.path.join(options.work, "clean", "root"), os.path.join(options.work, "place"),
             lambda place: Arm64Test(report, place, Record(options.work), options.quick).run_all(), keep=True)
    return report.summary()


if __name__ == "__main__":
    sys.exit(main())
