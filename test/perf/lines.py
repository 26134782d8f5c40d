#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Count how often cache lines move between threads of one program, each of which sends between two queue pairs of its own
(bench_crowd) on an engine of its own. Build the libraries with the compiler's calls before each access, and lines.c, which
counts them. Print the moves for each message, by the number of threads; with --where, also the code that causes them.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGETS = ["app/uroce-run", "lib/verbs/libibverbs.so.1", "lib/verbs/liburoce.so.0", "test/perf/bench_crowd"]
OPTIONS = "--port net_null0 --ip 10.99.1.1/24 --mtu 4200 --progress inline"


def run(argv, **more):
    return subprocess.run(argv, check=True, **more)


def build(folder):
    counter = os.path.join(folder, "liblines.so")
    os.makedirs(folder, exist_ok=True)
    run(["cc", "-O2", "-shared", "-fPIC", "-o", counter, os.path.join(TOP, "test", "perf", "lines.c")])
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        run(["meson", "setup", folder, TOP, "-Db_lundef=false",
             "-Dc_args=-fsanitize=thread -DRTE_FORCE_INTRINSICS",
             f"-Dc_link_args=-L{folder} -Wl,--no-as-needed -llines -Wl,-rpath,{folder}"], stdout=subprocess.DEVNULL)
    run(["ninja", "-C", folder, *TARGETS], stdout=subprocess.DEVNULL)


def name_of(place, known):
    """Return the function of MODULE+OFFSET."""
    if place not in known:
        module, offset = place.rsplit("+", 1)
        out = run(["addr2line", "-f", "-s", "-e", module, hex(int(offset, 16) - 1)], capture_output=True, text=True).stdout
        known[place] = " ".join(out.split())
    return known[place]


class Count:
    """What one run has counted."""

    def __init__(self, text):
        head = re.search(r"^threads (\d+) messages (\d+) lines (\d+)$", text, re.M)
        if not head:
            sys.exit(f"lines.py: nothing was counted: {text}")
        self.threads, self.messages, self.lines = map(int, head.groups())
        self.rate = float(text.split(maxsplit=1)[0])
        # moves, writes, uses, users, places of each line
        self.moved = sorted(((int(moves), int(writes), int(uses), int(users), places) for users, uses, writes, moves, *places in
                             (line.split()[1:] for line in re.findall(r"^line .*$", text, re.M))), reverse=True)

    def row(self):
        moves = sum(line[0] for line in self.moved)
        return (f"| {self.threads} | {self.lines / self.threads:.0f} | {moves / self.messages:.4f} | {self.rate / 1e3:.0f} | "
                f"{moves / self.messages * self.rate / 1e3:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(TOP, "build-lines"), help="build folder (build-lines)")
    parser.add_argument("--threads", default="2,4,8", help="numbers of threads and engines (2,4,8)")
    parser.add_argument("--requests", type=int, default=20000, help="messages of each thread (20000)")
    parser.add_argument("--op", default="write", help="write, read or send (write)")
    parser.add_argument("--size", type=int, default=8, help="bytes of a message (8)")
    parser.add_argument("--depth", type=int, default=32, help="messages in flight of each thread (32)")
    parser.add_argument("--events", action="store_true",
                        help="each thread sleeps on a channel of its own; with --options \"... --progress hybrid\"")
    parser.add_argument("--options", default=OPTIONS, help=f"options of uroce-run ({OPTIONS})")
    parser.add_argument("--where", action="store_true", help="print the code that uses the lines in common")
    args = parser.parse_args()
    folder = os.path.abspath(args.build)
    build(folder)
    print("| threads | lines for each | moves for each message | thousand messages a second, counted | thousand moves a second |\n"
          "|---|---|---|---|---|")
    known = {}
    for count in args.threads.split(","):
        out = run([os.path.join(folder, "app", "uroce-run"), "--engines", count, *shlex.split(args.options), "--",
                   os.path.join(folder, "test", "perf", "bench_crowd"), "-t", count, "-d", str(args.depth), "-o", args.op,
                   "-s", str(args.size), "-n", str(args.requests), *["-e"] * args.events], stdout=subprocess.PIPE, text=True).stdout
        found = Count(out)
        print(found.row(), flush=True)
        for moves, writes, uses, users, places in found.moved[:20] if args.where else []:
            print(f"  {moves} moves, {writes} writes, {uses} uses, {users} threads: "
                  f"{'; '.join(dict.fromkeys(name_of(place, known) for place in places))}")


if __name__ == "__main__":
    main()
