#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The README's table of platforms, made of what the last whole run on each has given. Without an option, check that it is made
of doc/results/platforms.json."""

import argparse
import json
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
README = os.path.join(TOP, "README.md")
RESULTS = os.path.join(TOP, "doc", "results", "platforms.json")
BLOCK = re.compile(r"(<!-- begin platforms -->\n).*?(<!-- end platforms -->)", re.S)
# The folder of the record, the name, how CI tries it, and what it does not try.
PLATFORMS = (
    ("build", "Debian 12", "`.ci/run`, each change", ""),
    ("build-debian13", "Debian 13", "`make test-debian13`, each night", "the package"),
    ("build-arm64", "Debian 12 on arm64", "`make test-arm64`, each night: a cross compiler, and qemu-user",
     "processors of arm64, kernel interfaces, NICs"),
    ("build-bundle", "The [bundle](doc/user/bundle.md), without any of DPDK's packages, as an ordinary user",
     "`make test-bundle`, each night", ""),
)


def number(value):
    return f"{value:,}"


def row(record, name, how, untried):
    if not record:
        return f"| {name} | {how} | no whole run on record yet |"
    about = ", ".join(f"{what} {version}" for what, version in record["versions"].items())
    parts = "; ".join(f"{part['name']}: {number(part['passed'])}" for part in record["parts"])
    failed, skipped = (sum(part[key] for part in record["parts"]) for key in ("failed", "skipped"))
    left = f". Not tried: {untried}" if untried else ""
    return (f"| {name}: {about} | {how} | {record['date']}, checks that passed: {parts}. "
            f"{number(failed) if failed else 'None'} failed, {number(skipped)} skipped{left} |")


def table(records):
    lines = ["| platform | how CI tries it | what it gave |", "|---|---|---|"]
    return "\n".join(lines + [row(records.get(folder), *rest) for folder, *rest in PLATFORMS]) + "\n"


def read_json(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="take the records of the builds here, and write both files")
    parser.add_argument("--print", action="store_true", help="print the table with the records of the builds here")
    parser.add_argument("--of", default=TOP, metavar="CHECKOUT", help="the checkout whose builds are meant (this one)")
    options = parser.parse_args()
    records = read_json(RESULTS)
    if options.write or options.print:
        records.update({folder: found for folder, *_ in PLATFORMS
                        if (found := read_json(os.path.join(options.of, folder, "platform.json")))})
    text = read(README)
    if not BLOCK.search(text):
        sys.exit("README.md has no place for the table of platforms")
    made = BLOCK.sub(lambda found: found[1] + table(records) + found[2], text)
    if options.print:
        print(table(records), end="")
    elif options.write:
        write(RESULTS, json.dumps(records, indent=1) + "\n")
        write(README, made)
    elif made != text:
        sys.exit("README.md's table of platforms is not that of doc/results/platforms.json: run test/platforms/table.py --write")
    return 0


if __name__ == "__main__":
    sys.exit(main())
