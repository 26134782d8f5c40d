#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that libroce is a function: it exports what roce.h declares, has no variable of its own, and needs nothing of its
process but memory, random numbers and locks.

usage: alone.py LIBROCE ROCE_H PKGCONFIG_FOLDER
"""

import os
import re
import subprocess
import sys

# All that the library calls. No function of threads, signals, clocks, files or sockets is among them.
MEMORY = {"aligned_alloc", "calloc", "free", "malloc", "posix_memalign", "madvise", "mmap", "mmap64", "munmap", "sysconf"}
BYTES = {"memchr", "memcmp", "memcpy", "memmove", "memset", "strcmp", "strlen"}
# The rooms lock tables of a device, of which several threads may use others in uroce.
LOCKS = {"pthread_mutex_destroy", "pthread_mutex_init", "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_setcancelstate"}
# What the processor can do (arm64), random numbers, ISA-L.
CALLS = MEMORY | BYTES | LOCKS | {"__errno_location", "getauxval", "getrandom", "crc32_gzip_refl"}
# Checks that compilers add.
COMPILER = {"__assert_fail", "__stack_chk_fail", "__memcpy_chk", "__memset_chk", "__memmove_chk"}
# The choice of a CRC for the processor, and its tables. They are constant after the library was loaded.
ONCE = {"kernel", "tables"}
# Of the compiler's own objects.
START = {"__dso_handle", "__TMC_END__", "completed.0", "__cpu_model", "__cpu_features2", "__aarch64_have_lse_atomics"}
NEEDED = ("libisal.so", "libc.so", "ld-linux")


def lines(*argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def without_version(symbol):
    return symbol.split("@")[0]


def call_faults(library):
    for line in lines("nm", "-D", "--undefined-only", library):
        kind, symbol = line.split()[-2:]
        if kind == "U" and without_version(symbol) not in CALLS | COMPILER:
            yield f"libroce calls {without_version(symbol)}"
    for line in lines("readelf", "-d", library):
        if "(NEEDED)" in line and not line.split("[")[1].startswith(NEEDED):
            yield f"libroce needs {line.split('[')[1].rstrip(']')}"


def variable_faults(library):
    """Variables are in sections that stay writable after the loader has relocated them."""
    sections = {}
    for line in lines("readelf", "-SW", library):
        found = re.match(r"\s*\[\s*(\d+)\] (\S+)\s", line)
        if found:
            sections[found[1]] = found[2]
    for line in lines("readelf", "-sW", library):
        fields = line.split()
        if len(fields) < 8 or not sections.get(fields[6], "").startswith((".data", ".bss", ".tdata", ".tbss")):
            continue
        if sections[fields[6]] != ".data.rel.ro" and fields[3] in ("OBJECT", "TLS") and fields[7] not in ONCE | START:
            yield f"libroce has the variable {fields[7]}"


def export_faults(library, header):
    with open(header, encoding="utf-8") as file:
        declared = set(re.findall(r"^[a-z].*?\b(roce_\w+)\(", file.read(), re.MULTILINE))
    exported = {without_version(line.split()[-1]) for line in lines("nm", "-D", "--defined-only", library)
                if line.split()[-2] != "A"}
    for symbol in declared ^ exported:
        yield f"{symbol} is {'not exported' if symbol in declared else 'not declared in roce.h'}"


def package_faults(folder):
    libs = subprocess.run(["pkg-config", "--libs", "libroce"], env=os.environ | {"PKG_CONFIG_PATH": folder}, check=True,
                          stdout=subprocess.PIPE, text=True).stdout.split()
    if [word for word in libs if not word.startswith("-L")] != ["-lroce", "-lisal"]:
        yield f"pkg-config --libs libroce prints {' '.join(libs)}"


def main():
    library, header, folder = sys.argv[1:]
    faults = [*call_faults(library), *variable_faults(library), *export_faults(library, header), *package_faults(folder)]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
