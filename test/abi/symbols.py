#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the exported symbols of a library of ours with those of rdma-core.

usage: symbols.py OURS SYSTEMS [LIST...]

A list has the symbols of another release, as nm prints them (releases/). Ours must have every symbol of the system's library
and of each list, with the same version and kind, and no public symbol that none of them has. Which of the versions of a
symbol is the default one must be as in the newest of them. Each release has private symbols with a version of its own,
IBVERBS_PRIVATE_<number>: ours may have more names in these.
"""

import os
import re
import subprocess
import sys

SKIPPED = 77
OWN = ("UROCE_PRIVATE", "UROCE_1.0")
# Letters of nm that a program can tell apart when it binds to the symbol.
KINDS = {"T": "function", "W": "function", "A": "version", "B": "data", "D": "data", "R": "data", "V": "data"}


PRIVATE = re.compile("IBVERBS_PRIVATE_[0-9]+")


def parse(lines):
    """Return the set of (symbol with version, kind) of lines "LETTER SYMBOL"."""
    return {(symbol, KINDS[letter]) for letter, symbol in (line.split() for line in lines)}


def exported(library):
    """Return what a library exports."""
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", library],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.splitlines()
    return parse(line.split(maxsplit=1)[1] for line in lines)


def listed(path):
    with open(path, encoding="ascii") as file:
        return parse(line for line in file if not line.startswith("#"))


def is_own(symbol, kind):
    """Return True for a symbol with a version of ours, and a name that begins with uroce_."""
    return symbol.endswith(OWN) and (kind == "version" or symbol.startswith("uroce_"))


def bindable(symbols):
    """Return the symbols without the mark of the default version: a program that is linked already binds to either."""
    return {(symbol.replace("@@", "@"), kind) for symbol, kind in symbols}


def main():
    ours_path, systems_path, *lists = sys.argv[1:]
    if not os.path.exists(systems_path):
        print(f"the system has no {os.path.basename(systems_path)}")
        return SKIPPED
    ours = exported(ours_path)
    releases = [exported(systems_path), *map(listed, lists)]
    wanted = set().union(*map(bindable, releases))
    missing = sorted(wanted - bindable(ours))
    extra = sorted((symbol, kind) for symbol, kind in bindable(ours) - wanted
                   if not is_own(symbol, kind) and not PRIVATE.search(symbol))
    # A program is linked to the default version. The newest release that has the symbol says which one that is.
    newest = releases[-1]
    defaults = sorted((symbol, kind) for symbol, kind in newest - ours
                      if "@@" in symbol and not PRIVATE.search(symbol) and (symbol.replace("@@", "@"), kind) not in missing)
    for what, symbols in (("missing", missing), ("in no release", extra), ("not the default version", defaults)):
        for symbol, kind in symbols:
            print(f"{what}: {kind} {symbol}")
    print(f"{len(wanted) - len(missing)} of {len(wanted)} symbols of {len(releases)} releases")
    return 1 if missing or extra or defaults else 0


if __name__ == "__main__":
    sys.exit(main())
