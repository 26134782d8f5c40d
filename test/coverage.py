#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tells which lines and branches of lib and pmd the unit tests run: builds them with counters (build-coverage/), runs them,
and prints a table by room. The pages in build-coverage/html show each line.

With --document the table in doc/results/coverage.md is written anew.
"""

import argparse
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness.checkout import TOP_DIR, configure  # noqa: E402

BUILD = "build-coverage"
PAGE = "doc/results/coverage.md"
BEGIN, END = "<!-- coverage: begin -->\n", "<!-- coverage: end -->\n"
# An assertion that does not hold ends the program: no test can take that branch.
GCOVR = ["gcovr", "--root", ".", "--filter", "lib/", "--filter", "pmd/", "--exclude-branches-by-pattern", r".*\bassert\(",
         "--exclude-unreachable-branches"]


def measure():
    """Build, run the unit tests, and return gcovr's figures, a file each."""
    configure(BUILD, "-Db_coverage=true", "-Dwerror=false", "-Dbuildtype=debug", "-Doptimization=1")
    subprocess.run(["ninja", "--quiet", "-C", BUILD, "product", "meson-test-prereq"], check=True)
    subprocess.run(["find", BUILD, "-name", "*.gcda", "-delete"], check=True)
    subprocess.run(["meson", "test", "-C", BUILD, "--no-rebuild", "--quiet", "--suite", "unit"], check=True)
    os.makedirs(f"{BUILD}/html", exist_ok=True)
    subprocess.run([*GCOVR, "--html-details", f"{BUILD}/html/index.html", "--json-summary", f"{BUILD}/coverage.json", BUILD],
                   check=True, stdout=subprocess.DEVNULL)
    with open(f"{BUILD}/coverage.json", encoding="utf-8") as file:
        return json.load(file)["files"]


def by_room(files):
    """Return a list of rooms, each with (lines, of all, branches, of all), and their sum."""
    rooms = {}
    for file in files:
        room = "/".join(file["filename"].split("/")[:2])
        counts = [file["line_covered"], file["line_total"], file["branch_covered"], file["branch_total"]]
        rooms[room] = [old + new for old, new in zip(rooms.get(room, [0] * 4), counts)]
    return [*sorted(rooms.items()), ("all", [sum(column) for column in zip(*rooms.values())])]


def percent(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "-"


def table(rooms):
    lines = ["| room | lines, % | of | branches, % | of |", "|---|---|---|---|---|"]
    for room, (lines_run, lines_all, branches_run, branches_all) in rooms:
        lines.append(f"| {room} | {percent(lines_run, lines_all)} | {lines_all:,} "
                     f"| {percent(branches_run, branches_all)} | {branches_all:,} |")
    return "\n".join(lines) + "\n"


def document(text):
    """Put the table between its marks."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    page, count = re.subn(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: BEGIN + text + END, page, flags=re.S)
    if count != 1:
        sys.exit(f"{PAGE} has {count} places for the table")
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", action="store_true", help=f"write the table into {PAGE}")
    options = parser.parse_args()
    os.chdir(TOP_DIR)
    text = table(by_room(measure()))
    print(text, end="")
    if options.document:
        document(text)


if __name__ == "__main__":
    main()
