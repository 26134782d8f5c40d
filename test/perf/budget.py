#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Count the instructions of fixed work with callgrind, and the cache lines of a message, and compare them with the table in
doc/results/budget.md. The counts of one compiler are the same on every x86 machine with AVX2. More than the table says is a failure.
Less is one, too: --write puts the new counts into the table, which goes into the commit that has saved them."""

import argparse
import collections
import glob
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, "build")
DOCUMENT = os.path.join(TOP, "doc", "results", "budget.md")
TOLERANCE = 0.005
EMPTY_TOLERANCE = 0.02  # an empty poll looks at the clock, and finds more to do while the machine is busy
LINES_TOLERANCE = 0.8
TRIES = 3  # of a count that is above its budget
LISTS, ROUNDS, POLLS = 32, 5, 2  # as in budget_work.c
# What depends on the time that has passed is not counted: callgrind leaves the counting functions there.
PAUSES = ("engine_housekeeping", "wheel_fire", "get_ready", "polling_yield", "polling_short_sleep",
          "poll_again")
COUNTERS = ("count_post", "count_post_receives", "count_poll")
CACHES = ("--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=2097152,16,64")
MESSAGES = LISTS * ROUNDS
# The name of the work, what it is, how often it is done in one count, and the goal.
WORKS = (("write_list", "8 B WRITE in lists of 32", MESSAGES, 1000),
         ("write_one_by_one", "8 B WRITE one by one", MESSAGES, 1500),
         ("send_srq", "8 B SEND to a shared receive queue", MESSAGES, None),
         ("read", "8 B READ", MESSAGES, None),
         ("atomic", "fetch and add", MESSAGES, None),
         ("write_long", "a 4 KiB packet of a 64 KiB WRITE", MESSAGES * 16, None),
         ("poll_empty", "`ibv_poll_cq` that finds nothing", ROUNDS * POLLS, None))
OPTIONS = {"buildtype": "debugoptimized", "optimization": "3", "b_lto": False, "b_sanitize": "none", "b_ndebug": "true", "c_args": []}
PATH_MESSAGES = 6400  # the difference of two runs of bench_path
PATHS = (("path", "8 B WRITE in lists of 32, with ICRC", 1, None), ("path_many", "8 B WRITE among 10,000 queue pairs", 10000, None))
LINES, LINES_GOAL = "cache lines of a message among 10,000 queue pairs", 8


def callgrind(out, *options):
    return ["valgrind", "-q", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={out}", *options]


def room_of(path, name):
    """Return the room of a source file, or else the library."""
    found = re.search(r"(?:^|/)((?:lib|pmd)/\w+)/", path)
    if found:
        return found.group(1)
    return "program" if "/test/" in path or path.startswith("../test/") else os.path.basename(name).split(".so")[0]


def read_counts(path):
    """Return the sums of all events by room, from a file of callgrind."""
    rooms, room, name, is_call = collections.defaultdict(collections.Counter), "", "", False
    events = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, _, value = line.rstrip("\n").partition("=")
            if line.startswith("events:"):
                events = line.split()[1:]
            elif key == "ob":
                name = value
            elif key in ("fl", "fi", "fe"):
                room = room_of(value, name)
            elif key == "calls":
                is_call = True
            elif line[:1].isdigit() and not is_call:
                for event, count in zip(events, line.split()[1:]):
                    rooms[room][event] += int(count)
            elif line[:1].isdigit():
                is_call = False
    return rooms


def work_counts(folder):
    """Return the instructions of each work by room, for one time, of both processes."""
    out = os.path.join(folder, "work.%p")
    subprocess.run([os.path.join(BUILD, "app", "uroce-run"), "--local", "--progress", "inline", "--stores", "round", "--",
                    *callgrind(out, "--collect-atstart=no", "--dump-after=mark_*",
                               *(f"--toggle-collect={name}" for name in (*COUNTERS, *PAUSES))),
                    os.path.join(BUILD, "test", "perf", "budget_work")], check=True, timeout=300)
    least = {}  # by work and process
    for path in glob.glob(os.path.join(folder, "work.*.*")):
        with open(path, encoding="utf-8") as file:
            found = re.search(r"^desc: Trigger: --dump-after=mark_(\w+)$", file.read(), re.M)
        if not found:
            continue
        key = found.group(1), path.split(".")[-2]
        rooms = {room: counter["Ir"] for room, counter in read_counts(path).items()}
        if key not in least or sum(rooms.values()) < sum(least[key].values()):
            least[key] = rooms
    counts = {}
    for work, _, times, _ in WORKS:
        sides = [collections.Counter(rooms) for (name, _), rooms in least.items() if name == work]
        counts[work] = {room: count / times for room, count in sum(sides, collections.Counter()).items()}
    return counts


def path_counts(folder, queue_pairs):
    """Return the events of a message by room, in the rooms of lib/ alone."""
    sums = []
    for batches in (100, 300):
        out = os.path.join(folder, f"path.{queue_pairs}.{batches}")
        subprocess.run([*callgrind(out, *CACHES), os.path.join(BUILD, "test", "perf", "bench_path"), "-n", str(batches), "-q",
                        str(queue_pairs), "8"], check=True, timeout=300, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sums.append(read_counts(out))
    return {room: {event: (count - sums[0][room][event]) / PATH_MESSAGES for event, count in sums[1][room].items()}
            for room in sums[1]}


def measure():
    """Return the rows: name, what it is, instructions by room, goal; and the cache lines."""
    with tempfile.TemporaryDirectory() as folder:
        counts = work_counts(folder)
        rows = [(what, counts[work], goal) for work, what, _, goal in WORKS]
        for _, what, queue_pairs, goal in PATHS:
            events = path_counts(folder, queue_pairs)
            rows.append((what, {room: event["Ir"] for room, event in events.items()}, goal))
    lines = sum(event.get("DLmr", 0) + event.get("DLmw", 0) for room, event in events.items() if room != "program")
    return rows, lines


def spenders(rooms):
    """Name the rooms that spend most."""
    return ", ".join(f"{room} {count:,.0f}" for room, count in sorted(rooms.items(), key=lambda item: -item[1])[:6] if count >= 1)


def compiler():
    """Return what has compiled the library, and for which machine."""
    library = os.path.join(BUILD, "lib", "verbs", "liburoce-attached.so")
    done = subprocess.run(["readelf", "-p", ".comment", library], capture_output=True, text=True, check=True)
    return f"{re.search(r'] +(.*)$', done.stdout, re.M).group(1)}, {platform.machine()}"


def table(rows, lines):
    out = [f"Counted with {compiler()}.", "", "| work | instructions | goal | by room |", "|---|---|---|---|"]
    for what, rooms, goal in rows:
        out.append(f"| {what} | {sum(rooms.values()):,.0f} | {f'{goal:,}' if goal else ''} | {spenders(rooms)} |")
    out += ["", "| | counted | goal |", "|---|---|---|", f"| {LINES} | {lines:.1f} | {LINES_GOAL} |"]
    return "\n".join(out)


def parse():
    """Return the compiler and the figures that the document has."""
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    figures = {what.strip(): float(count.replace(",", ""))
               for what, count in re.findall(r"^\| ([^|]+) \| ([\d,.]+) \|", text, re.M)}
    return re.search(r"^Counted with (.*)\.$", text, re.M).group(1), figures


def other_options():
    """Return the build options that are not as in a new build folder."""
    with open(os.path.join(BUILD, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as file:
        now = {option["name"]: option["value"] for option in json.load(file)}
    return [name for name, value in OPTIONS.items() if now[name] != value]


def why_not():
    """Return why the counts cannot be compared here, or None."""
    if not shutil.which("valgrind"):
        return "valgrind is not installed"
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        if " avx2 " not in file.read():
            return "the CPU has no AVX2, so libc copies in another way"
    if other_options():
        return f"the build has other options: {', '.join(other_options())}"
    return None if compiler() == parse()[0] else f"its table is for {parse()[0]}, not {compiler()}"


def write(rows, lines):
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    block = re.compile(r"(<!-- begin budget -->\n).*(<!-- end budget -->)", re.S)
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(block.sub(lambda found: found.group(1) + table(rows, lines) + "\n" + found.group(2), text))


def allowed(what, budget):
    """Return how far a count of instructions may be from its budget."""
    return (EMPTY_TOLERANCE if "finds nothing" in what else TOLERANCE) * budget + 0.5


def is_above(row):
    what, rooms, _ = row
    budget = parse()[1].get(what, 0)
    return sum(rooms.values()) > budget + allowed(what, budget)


def count_again(rows):
    """Return the rows; for those above their budget the lesser one of two counts: an engine does more in a turn when it
    waits longer for its CPU."""
    return [min(row, other, key=lambda one: sum(one[1].values())) if is_above(row) else row
            for row, other in zip(rows, measure()[0])]


def compare(rows, lines):
    """Print what differs from the document. Return the numbers of passed and failed figures."""
    known = parse()[1]
    failed = 0
    found = [(what, sum(rooms.values()), allowed(what, known.get(what, 0)), spenders(rooms)) for what, rooms, _ in rows]
    for what, count, tolerance, who in [*found, (LINES, lines, LINES_TOLERANCE, "")]:
        budget = known.get(what, 0)
        if abs(count - budget) <= tolerance:
            print(f"pass  budget: {what}: {count:,.1f}")
            continue
        failed += 1
        print(f"FAIL  budget: {what}: {count:,.1f}, and the table says {budget:,.1f}" +
              ("" if count > budget else ": write it anew with test/perf/budget.py --write") + (f" ({who})" if who else ""))
    return len(found) + 1 - failed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table anew")
    options = parser.parse_args()
    reason = None if options.write else why_not()
    if reason:
        print(f"skip  budget: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    try:
        rows, lines = measure()
        for _ in range(0 if options.write else TRIES - 1):
            if any(map(is_above, rows)):
                rows = count_again(rows)
    except subprocess.SubprocessError as error:
        print(f"FAIL  budget: {error}\n0 passed, 1 failed, 0 skipped")
        return 1
    if options.write:
        write(rows, lines)
        return 0
    passed, failed = compare(rows, lines)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
