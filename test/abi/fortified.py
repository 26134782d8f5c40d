#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a library which replaces calls of the C library also replaces their variants for _FORTIFY_SOURCE.

usage: fortified.py LIBRARY

A program that is compiled with _FORTIFY_SOURCE calls __NAME_chk in place of NAME, where the C library has such a function.
"""

import ctypes
import subprocess
import sys


def exported(library):
    """Return the names that a library exports."""
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE,
                           text=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def main():
    names = exported(sys.argv[1])
    c_library = ctypes.CDLL(None)
    variants = {f"__{name}_chk" for name in names if hasattr(c_library, f"__{name}_chk")}
    missing = sorted(variants - names)
    for name in missing:
        print(f"missing: {name}")
    print(f"{len(variants) - len(missing)} of {len(variants)} are there")
    return 1 if missing or not variants else 0


if __name__ == "__main__":
    sys.exit(main())
