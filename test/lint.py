#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads the files of this checkout without running them.

The quick readers take seconds, and `make test` has them. The others compile each C file once more: `make lint` runs all,
and chooses the C files that have changed since a commit if it is given one (--since).
"""

import argparse
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness.checkout import TOP_DIR, changed_since, checked_in  # noqa: E402

C_FILES = ("*.c", "*.h")
TEXTS = ("*.md", "*.[1-8]", *C_FILES, "*.py", "*.sh", "*meson.build", "config", "debian")
# Abbreviations of the field: ECN-capable transport, neighbour discovery, Clos network. One name of a test is cut off.
WORDS = "ect,nd,clos,befores,progres"


def shell_scripts():
    """Return the files that say by their first line that a shell runs them."""
    def is_shell(path):
        with open(path, "rb") as file:
            first = file.readline()
        return first.startswith(b"#!") and first.rstrip().endswith((b"/bash", b"/sh"))

    return [path for path in checked_in() if is_shell(path)]


# What it reads, how, and what to do if it fails.
QUICK = (
    ("format", lambda: checked_in(*C_FILES), ["clang-format", "--dry-run", "-Werror"], "run clang-format -i on these files"),
    # a name that no module has would end a whole group of checks in the middle
    ("names in Python", lambda: checked_in("*.py"), ["pyflakes3"], "these names are unknown or not used"),
    ("spelling", lambda: checked_in(*TEXTS), ["codespell", "-L", WORDS], "these words are misspelled"),
    ("shell scripts", shell_scripts, ["shellcheck", "-x"], "see the named rules"),
)


def quick():
    """Run the quick readers. Yield each one's name, None or why it was not run, and what it found."""
    for name, files, command, advice in QUICK:
        paths = files()
        if not paths:
            yield name, "this is no checkout of git", ""
        elif not shutil.which(command[0]):
            yield name, f"{command[0]} is missing", ""
        else:
            done = subprocess.run([*command, *paths], capture_output=True, text=True, check=False)
            yield name, None, (done.stdout + done.stderr)[-10000:] + advice if done.returncode else ""


def compiled(build, since):
    """Return the compile commands of lib, pmd and app; of what has changed since a commit, if there is one."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        units = json.load(file)
    changed = since and changed_since(since)
    chosen = {}
    for unit in units:
        path = os.path.relpath(os.path.join(unit["directory"], unit["file"]), TOP_DIR)
        if path.startswith(("lib/", "pmd/", "app/")) and path.endswith(".c") and (not since or path in changed):
            chosen.setdefault(path, unit)  # many are compiled twice, with assertions and without
    return chosen


def slow(build, since):
    """Run clang-tidy and GCC's analyzer, a file a CPU. Yield as quick() does."""
    units = compiled(build, since)
    if not units:
        yield "clang-tidy, gcc -fanalyzer", "no C file has changed", ""
        return

    def tidy(item):
        path, _ = item
        return subprocess.run(["clang-tidy", "-p", build, "--quiet", "--warnings-as-errors=*", path],
                              capture_output=True, text=True, check=False)

    def analyze(item):
        _, unit = item
        command = shlex.split(unit["command"])
        command = command[:command.index("-o")] + command[command.index("-o") + 2:]
        return subprocess.run([*command, "-fanalyzer", "-Werror", "-o", "/dev/null"], cwd=unit["directory"],
                              capture_output=True, text=True, check=False)

    for name, reader in (("clang-tidy", tidy), ("gcc -fanalyzer", analyze)):
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            done = zip(units, pool.map(reader, units.items()))
            found = [f"{one.stdout}{one.stderr}{path}: exit {one.returncode}\n" for path, one in done if one.returncode]
        yield f"{name}, {len(units)} files", None, "".join(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="the folder whose compile commands are used (default: build)")
    parser.add_argument("--since", metavar="COMMIT", help="compile only what has changed since then")
    options = parser.parse_args()
    os.chdir(TOP_DIR)
    counts = [0, 0, 0]
    for name, skipped, found in itertools.chain(quick(), slow(options.build, options.since)):
        counts[2 if skipped else bool(found)] += 1
        print(f"skip  {name}: {skipped}" if skipped else f"{found}\nFAIL  {name}" if found else f"pass  {name}", flush=True)
    print("{} passed, {} failed, {} skipped".format(*counts))
    return 1 if counts[1] else 0


if __name__ == "__main__":
    sys.exit(main())
