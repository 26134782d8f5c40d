#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks which libraries a program of uroce loads: an attached one gets none of DPDK's.

usage: needed.py OURS

The libraries that libibverbs.so.1 passes calls to are beside it, and export nothing that could take the place of a program's
own functions. A program that has loaded other libraries can still load them: they have few variables of threads. A process loads one of them, at the first call of verbs.
"""

import os
import subprocess
import sys

C_LIBRARY = ("libc.so", "ld-linux", "libm.so", "libgcc_s.so", "libasan.so", "libubsan.so", "libtsan.so")
# What each library may need besides the C library, by the beginnings of their names.
NEEDED = {
    "libibverbs.so.1": (),
    "librdmacm.so.1": ("libibverbs.so.1",),
    "liburoce-attached.so": ("libisal.so",),
    "liburoce.so.0": ("libisal.so", "librte_", "libbsd.so"),
}
NEEDED_MAX = 8  # of libraries in an attached program
# Bytes of variables of threads: of the 512 that the C library keeps for libraries that are loaded late
# (glibc.rtld.optional_static_tls), because arm64 aligns them to 16.
TLS_MAX = 496
EXPORTS = {
    "liburoce-attached.so": ("uroce_implementation@",),
    "liburoce.so.0": ("uroce_implementation@", "uroce_attach_port@", "uroce_port_", "uroce_primary_"),
}
# Ask for devices, and print the files that the process has mapped.
LOAD = """
import ctypes, sys
for name in sys.argv[1:]:
    library = ctypes.CDLL(name)
before = open('/proc/self/maps').read()
library.ibv_fork_init()
print(before, '==', open('/proc/self/maps').read())
"""
OWN = ("liburoce-attached.so", "liburoce.so.0")


def lines(*argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def needed(path):
    """Return the names of the libraries that one needs, without those of the C library and of sanitizers."""
    names = [line.split("[")[1].rstrip("]") for line in lines("readelf", "-d", path) if "(NEEDED)" in line]
    return [name for name in names if not name.startswith(C_LIBRARY)]


def needed_faults(directory):
    for library, allowed in NEEDED.items():
        for name in needed(os.path.join(directory, library)):
            if not name.startswith(allowed or "/"):
                yield f"{library} needs {name}"
    attached = {name for library in ("libibverbs.so.1", "librdmacm.so.1", "liburoce-attached.so")
                for name in (library, *needed(os.path.join(directory, library)))}
    if len(attached) > NEEDED_MAX:
        yield f"an attached program loads {', '.join(sorted(attached))}"


def export_faults(directory):
    for library, allowed in EXPORTS.items():
        for line in lines("nm", "-D", "--defined-only", "--with-symbol-versions", os.path.join(directory, library)):
            kind, symbol = line.split()[-2:]
            if kind != "A" and not symbol.startswith(allowed):
                yield f"{library} exports {symbol}"


def tls_faults(directory):
    for library in OWN:
        for line in lines("readelf", "-lW", os.path.join(directory, library)):
            if line.split()[:1] == ["TLS"] and int(line.split()[5], 16) > TLS_MAX:
                yield f"{library} has {int(line.split()[5], 16)} bytes of variables of threads; at most {TLS_MAX} are sure to fit"


def loaded(libraries, settings):
    """Return which of our libraries, and whether any of DPDK's, a process has before and after its first call of verbs."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("UROCE_")}
    output = subprocess.run([sys.executable, "-c", LOAD, *libraries], env=env | settings, check=True, timeout=60,
                            stdout=subprocess.PIPE, text=True).stdout
    return [{name for name in (*OWN, "librte_") if f"/{name}" in maps} for maps in output.split("==")]


def load_faults(directory):
    verbs, application = os.path.join(directory, "libibverbs.so.1"), os.path.join(directory, "liburoce.so.0")
    everything = {"liburoce.so.0", "librte_"}
    port = {"UROCE_PORT": "net_null0", "UROCE_IP": "10.0.0.1/24"}
    for what, libraries, settings, expected in (
            ("a program without a port", [verbs], {}, [set(), {"liburoce-attached.so"}]),
            ("an isolated program", [verbs], {"UROCE_ISOLATED": "/none", "UROCE_TELEMETRY": "no"},
             [set(), {"liburoce-attached.so"}]),
            ("a program with a port", [verbs], port, [set(), everything]),
            ("an application of liburoce", [application, verbs], {}, [everything, everything]),
    ):
        found = loaded(libraries, settings)
        if found != expected:
            yield f"{what} loads {found} instead of {expected}"


def main():
    directory = os.path.dirname(os.path.realpath(sys.argv[1]))
    faults = [*needed_faults(directory), *export_faults(directory), *tls_faults(directory), *load_faults(directory)]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
