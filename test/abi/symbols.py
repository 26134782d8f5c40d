#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the exported symbols of a library of ours with the system's.

usage: symbols.py OURS SYSTEMS

Name, version, whether the version is the default one, and function or data must agree.
"""

import os
import subprocess
import sys

SKIPPED = 77
OWN = ("UROCE_1.0", "UROCE_PRIVATE")
# Letters of nm that a program can tell apart when it binds to the symbol.
KINDS = {"T": "function", "W": "function", "A": "version", "B": "data", "D": "data", "R": "data", "V": "data"}


def exported(library):
    """Return the set of (symbol with version, kind) that a library exports."""
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", library],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.splitlines()
    symbols = {(symbol, KINDS[letter]) for _, letter, symbol in (line.split() for line in lines)}
    # Leave out our own symbols: those that have a version of ours, and a name that begins with uroce_.
    return {(symbol, kind) for symbol, kind in symbols
            if not symbol.endswith(OWN) or (kind != "version" and not symbol.startswith("uroce_"))}


def main():
    ours_path, systems_path = sys.argv[1:]
    if not os.path.exists(systems_path):
        print(f"the system has no {os.path.basename(systems_path)}")
        return SKIPPED
    ours, systems = exported(ours_path), exported(systems_path)
    for symbol, kind in sorted(systems - ours):
        print(f"missing: {kind} {symbol}")
    for symbol, kind in sorted(ours - systems):
        print(f"not in the system's: {kind} {symbol}")
    print(f"{len(ours & systems)} of {len(systems)} agree")
    return 0 if ours == systems else 1


if __name__ == "__main__":
    sys.exit(main())
