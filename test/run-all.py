#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests that need no virtual machine and sums up.

The tests of build/ run as they are, then the program tests. These leave the CPUs idle for half of their time. The
simulator's long run has that time, at a lower priority (--beside).

Unit tests, fuzz targets and the simulator run once more from build-asan/, compiled by clang with ASan and UBSan, and those
with threads from build-tsan/: with --sanitized, or --all.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import lint  # noqa: E402
from harness.checkout import TOP_DIR, configure  # noqa: E402
from harness.process import Process, exit_on_signals  # noqa: E402
from harness.report import SECOND_TRY  # noqa: E402

SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
# A finding of UBSan alone is a line that nobody reads.
SANITIZER_ENV = {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
# -O1: a fifth less to compile than with -O2; -g1, which has the lines that a finding names: another fifth. With assertions
# everywhere, lib is compiled once (lib/meson.build).
QUICKLY = ("-Db_lundef=false", "-Dbuildtype=debugoptimized", "-Doptimization=1", "-Db_ndebug=false", "-Dc_args=-g1")
SANITIZED = ("-Db_sanitize=address,undefined", *QUICKLY)
THREAD_SANITIZED = ("-Db_sanitize=thread", *QUICKLY)
# The limits in meson.build are for a machine that has nothing else to do. Here they only end programs that hang: the
# longest ones compute all the time, so they take as many times longer as others want their CPUs.
PATIENCE = 5
ALL_FUZZ_SECONDS = 120  # for each target
# Most unit tests wait for most of their time, so more of them run at once than there are CPUs.
WAITING = ("--num-processes", str(2 * len(os.sched_getaffinity(0))))
BESIDE_SECONDS = 900 * PATIENCE
END_SECONDS = 20  # for tests that are told to end
BEGIN = time.monotonic()


class Total:
    """Passed, failed and skipped."""

    def __init__(self):
        self.counts = [0, 0, 0]
        self.second_tries = []

    def add(self, passed=0, failed=0, skipped=0):
        for index, number in enumerate((passed, failed, skipped)):
            self.counts[index] += number

    def fail(self, what):
        print(f"FAIL  {what}", flush=True)
        self.add(failed=1)


def title(text):
    """Print what follows, and when it begins."""
    minutes, seconds = divmod(int(time.monotonic() - BEGIN), 60)
    print(f"\n== {text} (at {minutes}:{seconds:02})", flush=True)


def cmocka_counts(log):
    """A cmocka program prints its own numbers; other programs count as one test."""
    passed = re.findall(r"^\[  PASSED  \] (\d+) test", log, re.M)
    failed = re.findall(r"^\[  FAILED  \].*?(\d+) test\(s\)", log, re.M)
    skipped = re.findall(r"^\[  SKIPPED \].*?(\d+) test\(s\)", log, re.M)
    return [sum(map(int, numbers)) for numbers in (passed, failed, skipped)]


def tell_skipped(name, log):
    """Return what a program skipped, and why, if it says so (test/common/skipped.h). Mostly something is missing on this
    machine."""
    tests = list(dict.fromkeys(re.findall(r"^\[  SKIPPED \] (\w+)$", log, re.M)))
    reasons = list(dict.fromkeys(re.findall(r"^skipped: (.*)$", log, re.M)))
    what = ", ".join(tests) if len(tests) < 4 else f"{len(tests)} tests"
    print("skip  " + ": ".join(filter(None, (name.split(" / ")[-1], what, "; ".join(reasons)))), flush=True)


def add_meson_log(total, path):
    with open(path, encoding="utf-8") as file:
        for test in map(json.loads, file):
            # which opcodes the seeds of a fuzz target reach
            for line in re.findall("^fuzz: .*$", test.get("stdout", ""), re.M):
                print(line, flush=True)
            log = test.get("stdout", "") + "\n" + test.get("stderr", "")
            passed, failed, skipped = cmocka_counts(log)
            if skipped or test["result"] == "SKIP":
                tell_skipped(test["name"], log)
            if test["result"] == "SKIP":
                total.add(skipped=max(skipped, 1))
            elif test["result"] in ("OK", "EXPECTEDFAIL"):
                total.add(passed or 1, failed, skipped)
            else:
                print(f"FAIL  {test['name'].split(' / ')[-1]}: {test['result']}", flush=True)
                total.add(passed, failed or 1, skipped)


def meson_test(total, build, *options):
    """Counts from Meson's log; a run that leaves none is a failure of its own."""
    log = os.path.join(build, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    meson = subprocess.Popen(["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs",
                              "--timeout-multiplier", str(PATIENCE), *options], stdin=subprocess.DEVNULL,
                             env={**SANITIZER_ENV, **os.environ})
    try:
        status = meson.wait()
    finally:
        # Where we were interrupted: Meson ends its tests, which have sessions of their own.
        meson.terminate()
        meson.wait()
    failed_before = total.counts[1]
    if os.path.exists(log):
        add_meson_log(total, log)
    elif not status:
        status = 1
    if status and total.counts[1] == failed_before:
        total.fail(f"meson test -C {build} {' '.join(options)}: exit {status}")


def build_sanitized(total, build="build-asan", options=SANITIZED, target="sanitized"):
    """Builds a target. Returns the build folder, or None."""
    try:
        configure(build, *options, compiler="clang")
    except subprocess.CalledProcessError:
        total.fail(f"meson setup {build}")
        return None
    if subprocess.run(["ninja", "--quiet", "-C", build, target]).returncode:
        total.fail(f"ninja -C {build}")
        return None
    return build


def fuzz(total, seconds):
    """Runs each fuzz target for that long."""
    build = build_sanitized(total)
    if not build:
        return
    targets = [path for path in glob.glob(f"{build}/test/fuzz/fuzz_*") if os.path.isfile(path)]
    if not targets:
        total.fail("there is no fuzz target")
    for target in targets:
        title(f"{target} for {seconds} s")
        status = subprocess.run([target, f"-max_total_time={seconds}",
                                 f"-artifact_prefix={build}/"],
                                env={**SANITIZER_ENV, **os.environ}).returncode
        if status:
            total.fail(f"{target}: exit {status}")
        else:
            total.add(passed=1)


def add_summary(total, what, lines, status, may_be_empty=False):
    """Prints what a part of the tests printed, and adds the summary that it ended with. A part that runs no test fails,
    unless it may be empty."""
    summary = None
    for line in lines:
        summary = SUMMARY.match(line)
        if line.startswith(SECOND_TRY):
            total.second_tries.append(line)
        elif not summary:
            print(line, end="", flush=True)
    status = status()
    if summary:
        total.add(*map(int, summary.groups()))
    is_empty = summary and not int(summary.group(1)) and not int(summary.group(2))
    if not summary or (status and not int(summary.group(2)) and not (is_empty and may_be_empty)):
        total.fail(f"{what}: exit {status}")


def programs(total, command, *options, may_be_empty=False):
    """Program tests print their own summary last."""
    runner = subprocess.Popen([command, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        add_summary(total, command, runner.stdout, runner.wait, may_be_empty)
    finally:
        runner.terminate()  # where we were interrupted


def beside(total, complete):
    """Run the tests that only compute."""
    title("simulator")
    meson_test(total, "build", "--suite", "sim", *(("--suite", "sim-all") if complete else ()), "--num-processes", "1")


def sanitized(total):
    """Run what the sanitizers understand."""
    build = build_sanitized(total)
    if build:
        title("fuzz targets, unit tests and simulator under ASan and UBSan")
        meson_test(total, build, "--suite", "fuzz", "--suite", "unit", *WAITING)
        meson_test(total, build, "sim-quick", "sim-without")
    title("unit tests with threads under TSan")
    # Only what has threads of its own is compiled: `threaded` in test/unit/meson.build.
    build = build_sanitized(total, "build-tsan", THREAD_SANITIZED, "unit")
    if build:
        meson_test(total, build, "--suite", "threads", "--num-processes", "1")


def judge_files(total):
    """Reads the files. Each reader is one test."""
    title("format, names in Python, spelling, shell scripts")
    for name, skipped, found in lint.quick():
        if skipped:
            print(f"skip  {name}: {skipped}", flush=True)
            total.add(skipped=1)
        elif found:
            print(found)
            total.fail(name)
        else:
            total.add(passed=1)


def only(total, text):
    """Runs Meson's tests, and checks of programs, whose name contains this text."""
    listed = subprocess.run(["meson", "test", "-C", "build", "--no-rebuild", "--list"], capture_output=True, text=True,
                            check=True).stdout.splitlines()
    names = [name for name in (line.split(" / ")[-1] for line in listed if " / " in line) if text in name]
    if names:
        title(f"Meson's tests named {text}")
        meson_test(total, "build", *names, *WAITING)
    title(f"programs: checks named {text}")
    programs(total, "test/programs/run.py", "--only", text, may_be_empty=True)


def unit(total):
    """Runs Meson's tests except the simulator."""
    title("unit tests, ABI")
    meson_test(total, "build", "--no-suite", "sim", "--no-suite", "sim-all", *WAITING)


def perf(total):
    """Measures each figure of `make perf` for a moment: whether it can be, not how fast it is."""
    title("each figure of make perf, for a moment")
    status = subprocess.run([sys.executable, "test/perf/perf.py", "--quick"], stdin=subprocess.DEVNULL).returncode
    if status:
        total.fail(f"test/perf/perf.py --quick: exit {status}")
    else:
        total.add(passed=1)


def everything(total, complete):
    """Runs all tests; if they are complete, every combination, and more of what depends on chance."""
    more = ["--all"] if complete else []
    judge_files(total)
    unit(total)
    title("budget")
    programs(total, "test/perf/budget.py")
    with tempfile.NamedTemporaryFile("r", errors="replace") as log:
        companion = Process([sys.executable, os.path.abspath(__file__), "--beside", *more], log.name, nice=0)
        try:
            title("programs")
            programs(total, "test/programs/run.py", *more)
            title("storage")
            programs(total, "test/storage/run.py", *more)
            companion.wait(BESIDE_SECONDS)
        finally:
            companion.terminate()
            companion.wait(END_SECONDS)
            companion.kill()
        add_summary(total, "what runs beside the programs", log, companion.poll)
    if complete:
        perf(total)
        sanitized(total)
        fuzz(total, ALL_FUZZ_SECONDS)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fuzz-seconds", type=int, metavar="N",
                        help="only run the fuzz targets, for N seconds each")
    parser.add_argument("--all", action="store_true", help="also what takes too long for each change: all combinations, many "
                        "kills, a minute of loss, long fuzzing")
    parser.add_argument("--only", metavar="TEXT", help="only run Meson's tests and checks of programs whose name contains this")
    parser.add_argument("--unit", action="store_true", help="only unit tests and the ABI")
    parser.add_argument("--sanitized", action="store_true", help="only unit tests, simulator and fuzz targets under ASan, "
                        "UBSan and TSan")
    parser.add_argument("--beside", action="store_true", help="only run what runs beside the program tests")
    options = parser.parse_args()
    exit_on_signals()
    os.chdir(TOP_DIR)
    total = Total()
    if options.fuzz_seconds:
        fuzz(total, options.fuzz_seconds)
    elif options.only:
        only(total, options.only)
    elif options.unit:
        unit(total)
    elif options.sanitized:
        sanitized(total)
    elif options.beside:
        beside(total, options.all)
    else:
        everything(total, options.all)
    print()
    print(*total.second_tries, sep="", end="")
    print("{} passed, {} failed, {} skipped".format(*total.counts))
    return 1 if total.counts[1] or not total.counts[0] else 0


if __name__ == "__main__":
    sys.exit(main())
