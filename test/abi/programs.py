#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Loads the distribution's RDMA programs and libraries with our libibverbs.so.1.

usage: programs.py OURS

All their symbols are bound when they are loaded, so a missing symbol is an error. Each program must also print its help.
A program that loads a library itself, by its name without a version, must get ours.
"""

import os
import shutil
import subprocess
import sys

SKIPPED = 77
LOADER_FAILED = 127
PROGRAMS = (
    "ibv_devices ibv_devinfo ibv_asyncwatch ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong "
    "ibv_xsrq_pingpong ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_atomic_bw "
    "ib_atomic_lat rping ucmatose udaddy mckey rdma_client rdma_server rstream riostream rcopy"
).split()
LIBRARIES = "librdmacm.so.1 libmlx4.so.1 libmlx5.so.1 libefa.so.1".split()
LIBRARY_DIRS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")
UNVERSIONED = ("libibverbs.so", "librdmacm.so")
# Load a library as NCCL does, and print the files that the process has mapped.
LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(open('/proc/self/maps').read())"
LOADER_COMPLAINTS = ("undefined symbol", "symbol lookup error", "not found", "relocation error")


def run(argv, library_dir):
    env = dict(os.environ, LD_LIBRARY_PATH=library_dir, LD_BIND_NOW="1")
    return subprocess.run(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )


def complaints(path, library_dir):
    """Load a program or library, and return a list of the errors."""
    output = run(["ldd", "-r", path], library_dir).stdout
    found = [line for line in output.splitlines() if any(word in line for word in LOADER_COMPLAINTS)]
    if f"libibverbs.so.1 => {library_dir}/" not in output:
        found.append("it does not use our libibverbs.so.1")
    return found


def start_complaints(program, library_dir):
    """Start a program that should print its help, and return a list of the errors."""
    result = run([program, "--help"], library_dir)
    if result.returncode < 0 or result.returncode == LOADER_FAILED:
        return [f"--help ends with {result.returncode}", *result.stdout.splitlines()]
    return [] if result.stdout else ["--help prints nothing"]


def load_complaints(name, library_dir):
    """Load a library by its name, and return a list of the errors."""
    result = run([sys.executable, "-c", LOAD, name], library_dir)
    if result.returncode:
        return result.stdout.splitlines()[-1:]
    return [] if f" {library_dir}/{name}.1\n" in result.stdout else ["it is not ours"]


def libraries():
    for name in LIBRARIES:
        for path in (os.path.join(directory, name) for directory in LIBRARY_DIRS):
            if os.path.exists(path):
                yield path
                break


def main():
    library_dir = os.path.dirname(os.path.realpath(sys.argv[1]))
    programs = [path for path in map(shutil.which, PROGRAMS) if path]
    checked, failed = 0, 0
    for path in [*programs, *libraries()]:
        found = complaints(path, library_dir)
        if path in programs:
            found += start_complaints(path, library_dir)
        for line in found:
            print(f"{path}: {line}")
        checked += 1
        failed += bool(found)
    for name in UNVERSIONED:
        if not os.path.exists(os.path.join(library_dir, f"{name}.1")):
            continue
        found = load_complaints(name, library_dir)
        for line in found:
            print(f"{name}: {line}")
        checked += 1
        failed += bool(found)
    if not checked:
        print("no RDMA program is installed: install ibverbs-utils and perftest")
        return SKIPPED
    print(f"{checked - failed} of {checked} load")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
