#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure uroce and the machine's limits in one run, and print a table of the figures and their marks.

Most figures are of two processes, on a CPU each (the passive side on CPU 0, the active side on CPU 1). The limits are
measured on the same port without a protocol. The distance of the two CPUs (one cache line there and back: near or
far) is measured around each figure; figures are medians of those of one placement. A whole run needs an idle machine;
it says at its start how long it will take. If the placement changes on the way, it takes longer. A figure that fails is
tried again. One that fails repeatedly is named, and the others continue.
"""

import argparse
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from figures import measure_group, records  # noqa: E402
from machine import Machine  # noqa: E402
from marks import judge_all, markdown_table, text_table  # noqa: E402
from rows import ROWS  # noqa: E402
from schedule import Schedule  # noqa: E402


def say(line):
    print(line, flush=True)


def measure_rows(machine, names, args):
    """Measure all groups of the named rows. A failure of one row does not stop the others. Return the groups, and the
    names of the rows that failed."""
    groups, stopped = [], []
    schedule = Schedule(names, args.repeat, args.seconds)
    say(f"This takes about {schedule.whole()}.")
    for name in names:
        try:
            for group in ROWS[name](machine, args.seconds):
                groups.append(group)
                measure_group(machine, group, args.repeat, say, schedule)
        except Exception as failure:
            say(f"   {name}: failed: {failure}")
            stopped.append(name)
        schedule.end_row(name)
        if name != names[-1]:
            say(f"   ({schedule.left()} left)")
    return groups, stopped


def parse():
    rows = ", ".join(f"{name} ({function.__doc__})" for name, function in ROWS.items())
    parser = argparse.ArgumentParser(description=__doc__, epilog=f"Rows: {rows}.",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build folder (build)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each figure, of which the median is printed (5)")
    parser.add_argument("--seconds", type=float, default=1, help="seconds of a run (1)")
    parser.add_argument("--quick", action="store_true", help="one short run of each figure, to see that all work")
    parser.add_argument("--only", metavar="ROW,...", default=",".join(ROWS), help="only these rows")
    parser.add_argument("--json", metavar="FILE", help="also write all figures and marks to FILE")
    parser.add_argument("--markdown", metavar="FILE", help="also write the table of marks to FILE")
    args = parser.parse_args()
    if args.quick:
        args.repeat, args.seconds = 1, 0.3
    unknown = set(args.only.split(",")) - set(ROWS)
    if unknown:
        parser.error(f"no row {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    return args


def main():
    args = parse()
    if os.geteuid() != 0:
        sys.exit("perf.py: needs root for network namespaces and huge pages: run it with sudo")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    machine = Machine(args.build)
    started = time.time()
    about = {"machine": machine.describe(), "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
             "repeat": args.repeat, "seconds": args.seconds, "load": os.getloadavg()[0]}
    try:
        say(f"uroce on {about['machine']}; {about['when']}; a CPU a side; medians of {args.repeat}; "
            f"load at the start {about['load']:.1f}")
        groups, stopped = measure_rows(machine, args.only.split(","), args)
    finally:
        machine.close()
    found = records(groups)
    rows = judge_all(found, set(found))
    say(f"\n{text_table(rows)}\n\n{sum(row['met'] == 'yes' for row in rows)} of {len(rows)} marks met; "
        f"{(time.time() - started) / 60:.0f} minutes")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"about": about, "figures": found, "marks": rows}, file, indent=1)
    if args.markdown:
        with open(args.markdown, "w", encoding="utf-8") as file:
            file.write(markdown_table(rows) + "\n")
    failed = stopped + [key for key, record in found.items() if record["failure"]]
    if failed:
        sys.exit(f"perf.py: not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
