#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Changes one place of a room at a time, and lists the changes that none of the room's unit tests notices.

A copy of the checkout is changed, in build-mutate/, and compiled with ASan and UBSan. The places are drawn at random from
all that the rules below find, in an order that follows from the seed. A test that crashes, or does not end, has noticed the
change. A change that does not compile does not count.
"""

import argparse
import collections
import filecmp
import glob
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
from typing import NamedTuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness.checkout import TOP_DIR, checked_in, configure, introspect  # noqa: E402
from harness.process import exit_on_signals  # noqa: E402

FOLDER = "build-mutate"
# How much more CPU time than without a change the tests may take. What sleeps for ever is ended, too; not what waits for a CPU:
# other work of the machine must not make a change count as noticed.
CPU_FACTOR = 4
CPU_LEAST_S = 5
ASLEEP_S = 15  # no test sleeps so long
CLOCK_S = 300
SKIPPED = 77  # the exit status of a file whose tests are all left out

SWAPS = ((" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "),
         (" && ", " || "), (" || ", " && "), (" + ", " - "), (" - ", " + "), (" & ", " | "), (" | ", " & "),
         (" += ", " -= "), (" -= ", " += "), ("return true;", "return false;"), ("return false;", "return true;"),
         ("return 0;", "return -1;"))
IF = re.compile(r"\b(?:if|while) \(")
RETURN_ERROR = re.compile(r"return -E[A-Z]+;")
NUMBER = re.compile(r"(?<![\w.'\"])[0-9]+(?=[;,)\] ])")
# A call or an assignment on a line of its own; a declaration begins with two words.
STATEMENT = re.compile(r"^\t+(?:[\w.>\[\]-]+\(.*\)|[\w.>*\[\]-]+ (?:[-+|&]?=) .*|[\w.>\[\]-]+(?:\+\+|--));$", re.M)
# No unit test can see that these are missing: locks; hints to the processor (lib/mem/prefetch.c has other functions); fences,
# whose lack is rarely seen in a run; initialisation of a mutex or a list's head in a struct of zeros, and the ends of mutexes
# and the like, which do nothing in the C library; messages for people; functions of assertions.
UNSEEN = re.compile(r"(?<![a-z])(?:un)?lock\(|(?i:prefetch)(?!_(?:post|cancel|wait)\()|\blog_|\breason_say\(|\bSAY\("
                    r"|cpu_relax|_thread_fence\(|\bqp_check\(|\bLIST_INIT\("
                    r"|pthread_(?:mutex|cond)_init\(.*, NULL\)|pthread_(?:attr|mutex|cond)_destroy\(")
# A period that is a nanosecond longer is no fault.
BOUNDARY = (" < ", " <= ", " > ", " >= ")
TIME = re.compile(r"_ns\b")
# How a hash mixes its bits is no fault while it is the same everywhere.
MIXING = (" + ", " - ", " & ", " | ")
HASH = re.compile(r"hash")
# Two objects in place of one, room for one more in an array's declaration, which descriptor memory without a file does not have,
# and what else is prefetched, make no difference.
# Assertions are not tested, nor are the functions that only builds with assertions have.
HIDDEN = re.compile(r"^#ifndef NDEBUG\n.*?^#endif"
                    r"|(?<=\bcalloc\()1(?=,)|\b(?!return\b|else\b)\w+ (?:\*?\w+(?:\[\w*\])*, )*\*?\w+(?:\[\w*\])*\[\d+\]"
                    r"|\bsgl\.next = [^;]*;|(?<=MAP_ANONYMOUS), -1(?=, 0\))"
                    r"|^[ \t]*(?:for|if|while) \([^\n]*\)\n[ \t]+(?i:(?:rte_)?prefetch)(?!_(?:post|cancel|wait))\w*\([^;]*;"
                    r"|\b(?:rte_)?prefetch(?!_(?:post|cancel|wait))\w*\([^;{]*;"
                    r"|/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'|^[ \t]*#[^\n]*(?:\\\n[^\n]*)*"
                    r"|\b(?:static_)?assert\([^;]*;|\b_Static_assert\([^;]*;|\bsizeof\([^()]*\)", re.S | re.M)


class Change(NamedTuple):
    """The text from `begin` to `end` of a file becomes `text`."""

    path: str
    begin: int
    end: int
    text: str


def visible(source):
    """Return the source with blanks in place of what does not run, or makes no difference: comments, strings, assertions,
    sizeof, the preprocessor's lines."""
    return HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)


def line_at(code, at):
    """Return the line of that place."""
    return code[code.rfind("\n", 0, at) + 1:code.find("\n", at)]


def closing(code, at):
    """Return the place of the parenthesis that closes the one at `at`."""
    depth = 0
    for place in range(at, len(code)):
        depth += (code[place] == "(") - (code[place] == ")")
        if depth == 0:
            return place
    return None


def changes_of(path, source):
    """Yield each change of a file that the rules know."""
    code = visible(source)
    for old, new in SWAPS:
        for match in re.finditer(re.escape(old), code):
            line = line_at(code, match.start())
            if old in BOUNDARY and new in BOUNDARY and TIME.search(line) or old in MIXING and HASH.search(line):
                continue
            yield Change(path, match.start(), match.end(), new)
    for match in IF.finditer(code):
        end = closing(code, match.end() - 1)
        if end is not None:
            yield Change(path, match.end(), end, f"!({source[match.end():end]})")
    for match in RETURN_ERROR.finditer(code):
        yield Change(path, *match.span(), "return 0;")
    for match in NUMBER.finditer(code):
        if HASH.search(line_at(code, match.start())):
            continue
        yield Change(path, *match.span(), str(int(match.group()) + 1))
    for match in STATEMENT.finditer(code):
        if not match.group().lstrip().startswith(("return", "goto", ".")) and not UNSEEN.search(match.group()):
            yield Change(path, *match.span(), "\t;")


class Test:
    """The tests of one file, or a program that cannot run them file by file."""

    def __init__(self, program, *file):
        self._command = [program, *file]
        self.name = file[0] if file else os.path.basename(program)
        self._cpu_s = None

    def passes(self):
        """Run the tests up to the first one that fails. The first run, of code that is not changed, sets the CPU time of the
        others."""
        begin = cpu_s_of_children()
        process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True, env={"UBSAN_OPTIONS": "halt_on_error=1", **os.environ})
        if self._cpu_s is not None:
            most = int(max(CPU_FACTOR * self._cpu_s, CPU_LEAST_S))
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (most, most))
        ended = threading.Event()
        threading.Thread(target=end_if_asleep, args=(process.pid, ended)).start()
        try:
            return not any(b"[  FAILED  ]" in line for line in process.stdout) and process.wait() in (0, SKIPPED)
        finally:
            ended.set()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if self._cpu_s is None:
                self._cpu_s = cpu_s_of_children() - begin


class Copy:
    """The copy of the checkout, and its build of the programs that test a room."""

    def __init__(self, room):
        self.top = os.path.join(TOP_DIR, FOLDER, "source")
        self._build = os.path.join(TOP_DIR, FOLDER, "build")
        self._folder = os.path.join(self.top, "test", "unit", room, "")
        self._programs = []
        self._tests = []
        self._noticed = collections.Counter()  # by file and test

    def make(self):
        """Copy what has changed since the last time, build it, and see its tests pass."""
        for path in checked_in():
            target = os.path.join(self.top, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if not os.path.exists(target) or not filecmp.cmp(path, target, shallow=False):
                shutil.copyfile(path, target)
                shutil.copymode(path, target)
        # A change may leave a variable without a use.
        configure(self._build, "-Dwerror=false", "-Dbuildtype=debug", "-Doptimization=1", "-Db_sanitize=address,undefined",
                  "-Db_lundef=false", compiler="clang", source=self.top)
        self._programs = self._find_programs()
        if not self._programs:
            sys.exit(f"mutate: no program has a file below {self._folder}")
        if not self.build():
            sys.exit("mutate: the room's tests cannot be built")
        self._tests = [test for program in self._programs for test in tests_of(os.path.join(self._build, program))]
        for test in self._tests:
            if not test.passes():
                sys.exit(f"mutate: {test.name} fails without any change")

    def _find_programs(self):
        """Return the programs that have a file in the room's folder of unit tests."""
        return [os.path.relpath(target["filename"][0], self._build) for target in introspect(self._build, "targets")
                if target["type"] == "executable" and any(
                    path.startswith(self._folder) for sources in target["target_sources"] for path in sources["sources"])]

    def build(self):
        return subprocess.run(["ninja", "--quiet", "-C", self._build, *self._programs], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def passes(self, path):
        """Return whether all tests pass. Those come first that have noticed most changes of this file, then those whose name is
        most like its own."""
        stem = os.path.basename(path).removesuffix(".c")
        for test in sorted(self._tests, key=lambda test: (-self._noticed[path, test.name],
                                                          -len(os.path.commonprefix([stem, test.name])))):
            if not test.passes():
                self._noticed[path, test.name] += 1
                return False
        return True

    def judge(self, change):
        """Return None if the change does not compile, or whether a test notices it."""
        path = os.path.join(self.top, change.path)
        with open(path, encoding="utf-8") as file:
            source = file.read()
        try:
            _write(path, source[:change.begin] + change.text + source[change.end:])
            if not self.build():
                return None
            return not self.passes(change.path)
        finally:
            _write(path, source)


def states(session):
    """Return the state of each thread of a session (proc_pid_stat(5))."""
    for path in glob.glob("/proc/[0-9]*/task/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            yield fields[0]


def end_if_asleep(session, ended):
    """Kill the processes of a session if all their threads sleep for long, or at the latest after CLOCK_S."""
    asleep = 0
    for _ in range(CLOCK_S):
        if ended.wait(1):
            return
        asleep = asleep + 1 if set(states(session)) <= {"S", "Z"} else 0
        if asleep == ASLEEP_S:
            break
    os.killpg(session, signal.SIGKILL)


def tests_of(program):
    """Return the tests of a program, a file each."""
    done = subprocess.run([program, "--list"], capture_output=True, text=True, check=False)
    files = dict.fromkeys(line.split("/")[0] for line in done.stdout.splitlines()) if done.returncode == 0 else ()
    return [Test(program, file) for file in files] or [Test(program)]


def cpu_s_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def describe(change, top):
    """Return the place, its line, and the line that takes its place."""
    with open(os.path.join(top, change.path), encoding="utf-8") as file:
        source = file.read()
    first = source.rfind("\n", 0, change.begin) + 1
    last = source.find("\n", change.end)
    number = source.count("\n", 0, change.begin) + 1
    before = " ".join(source[first:last].split())
    after = " ".join((source[first:change.begin] + change.text + source[change.end:last]).split())
    return f"{change.path}:{number}: {before}\n    became: {after}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("room", help="for example lib/cm")
    parser.add_argument("--count", type=int, default=100, help="so many changes that compile (default: 100); 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the changes (default: 1)")
    options = parser.parse_args()
    exit_on_signals()  # a run that is told to end says what it has found
    os.chdir(TOP_DIR)
    files = checked_in(f"{options.room}/*.c")
    if not files:
        parser.error(f"{options.room} has no C files")
    changes = []
    for path in files:
        with open(path, encoding="utf-8") as file:
            changes.extend(changes_of(path, file.read()))
    random.Random(options.seed).shuffle(changes)
    copy = Copy(os.path.basename(options.room.rstrip("/")))
    copy.make()
    noticed = survived = 0
    try:
        for change in changes:
            verdict = copy.judge(change)
            noticed += verdict is True
            if verdict is False:
                survived += 1
                print(f"not noticed: {describe(change, copy.top)}", flush=True)
            if options.count and noticed + survived == options.count:
                break
    finally:
        tried = noticed + survived
        print(f"{options.room}: {noticed} of {tried} changes are noticed ({100 * noticed / max(tried, 1):.1f} %), "
              f"seed {options.seed}, of {len(changes)} places")
    if not tried:
        sys.exit("mutate: no change compiles")


if __name__ == "__main__":
    main()
