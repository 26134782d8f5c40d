#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests of `make check` that a change can reach.

usage: since.py COMMIT              what differs from this commit, in files that git knows and in new ones
       since.py --files FILE...     print the names of the tests that these files reach, and run none

Ninja knows which files a program is made of: its graph has the sources, and the record of the last compilation
(`ninja -t deps`) the headers. A test is reached

- by each file that its program, or another file it depends on, is made of. What was never compiled has no record: every
  change reaches it;
- by the meson.build of a folder from which it has a file, and by that of the top;
- by a file below test/unit/ROOM or test/data that Ninja does not know, and by the example of settings: tests may read it
  when they run. All but those below test/unit reach all unit tests;
- by a script in Python that Ninja does not know, if the test is a script: it may import it;
- always, if it is `documents`, which reads documents and sources when it runs.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness.checkout import TOP_DIR, changed_since, introspect, output  # noqa: E402

BUILD_DIR = os.path.join(TOP_DIR, "build")
BUILD_FILES = ("meson.build", "meson_options.txt")
ALWAYS = "documents"  # a test that reads everything
OWN = "since"         # the test of this file: Meson lists all programs as its dependencies, so that they are compiled
SCRIPT = ".py"
DATA = ("test/data/", "config/uroce.conf.example")  # what tests read at run time
LONG_SUITES = {"sim", "sim-all", "slow"}  # `make check` does not run them


class Graph:
    """Which files Meson's tests are made of, by Ninja."""

    def __init__(self, build=BUILD_DIR):
        self._build = build
        self._headers = self._read_headers()
        self._known = {}
        outputs = {target["id"]: target["filename"] for target in introspect(build, "targets")}
        self.tests = {}  # name: its files, from the top; None stands for one that nobody knows yet
        tests = introspect(build, "tests")
        for test in tests:
            if LONG_SUITES & {suite.split(":")[-1] for suite in test["suite"]}:
                continue
            files = {self._from_top(word) for word in test["cmd"] if os.path.isfile(word)}
            for target in test["depends"] if test["name"] != OWN else ():
                for file in outputs[target]:
                    files |= self._inputs(os.path.relpath(file, build))
            self.tests[test["name"]] = files
        self.scripts = {test["name"] for test in tests if any(word.endswith(SCRIPT) for word in test["cmd"])}
        self.units = {test["name"] for test in tests if test["name"] in self.tests and "unit" in " ".join(test["suite"])}

    def _from_top(self, path):
        """Ninja's paths begin in the build folder."""
        return os.path.relpath(os.path.join(self._build, path), TOP_DIR)

    def _read_headers(self):
        """Return the files that each object included when it was compiled."""
        headers = {}
        included = set()
        for line in output("ninja", "-C", self._build, "-t", "deps").splitlines():
            if line.startswith("    "):
                included.add(self._from_top(line.strip()))
            elif line:
                included = headers.setdefault(line.split(": #deps")[0], set())
        return headers

    def _inputs(self, target):
        """Return the files that a target is made of, with the headers of its objects."""
        if target in self._known:
            return self._known[target]
        files = self._known[target] = set()
        for path in output("ninja", "-C", self._build, "-t", "inputs", target).splitlines():
            files.add(self._from_top(path))
            if path.endswith(".o"):
                files |= self._headers.get(path, {None})
        return files

    def reached(self, changed):
        """Return the names of the tests that a change of these files can reach, in Meson's order."""
        known = set().union(*self.tests.values())
        return [name for name, files in self.tests.items()
                if name == ALWAYS or None in files or any(self._reaches(path, name, files, known) for path in changed)]

    def _reaches(self, path, name, files, known):
        folder = os.path.dirname(path)
        if path in files:
            return True
        if os.path.basename(path) in BUILD_FILES:
            return any(file and file.startswith(folder + "/" if folder else "") for file in files)
        if path in known:
            return False
        if path.endswith(SCRIPT):
            return name in self.scripts
        if name not in self.units:
            return False
        return path.startswith(DATA) or any(file and os.path.dirname(file) == folder and file.startswith("test/unit/")
                                            for file in files)


def main():
    if len(sys.argv) < 2 or (sys.argv[1].startswith("-") and sys.argv[1:2] != ["--files"]):
        sys.exit(__doc__)
    is_list = sys.argv[1] == "--files"
    changed = set(sys.argv[2:]) if is_list else changed_since(sys.argv[1])
    if not is_list:  # with --files a test may ask, while Ninja runs
        subprocess.run(["ninja", "--quiet", "-C", BUILD_DIR, "build.ninja"], check=True)
    names = Graph().reached(changed)
    if is_list:
        print("\n".join(names))
        return 0
    print(f"{len(changed)} changed files reach {len(names)} tests: {', '.join(names)}", flush=True)
    # It builds what these tests need, and no more.
    return subprocess.run(["meson", "test", "-C", BUILD_DIR, "--print-errorlogs", *names], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
