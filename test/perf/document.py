#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the figures, tables and plots of doc/results/performance.md, and the README's five figures. The input is what
perf.py has measured (--json). testroce's own figures are measured here, which takes about nine minutes. The
output replaces the text between <!-- begin NAME --> and <!-- end NAME -->; the other text is kept."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from figures import number_text  # noqa: E402
from machine import CPUS, Failed, Machine  # noqa: E402
from marks import judge_all, markdown_table  # noqa: E402
from pictures import Lines, draw, measure_lines  # noqa: E402
from rows import HOT  # noqa: E402
from wires import Attached, Memif, Veth, uroced  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCUMENT = os.path.join(TOP, "doc", "results", "performance.md")
README = os.path.join(TOP, "README.md")
PLOTS = os.path.join(TOP, "doc", "results", "performance")
STAGES = (("64 KiB WRITE", HOT), ("64 KiB READ", [*HOT, "--mode", "read"]), ("64 KiB SEND", [*HOT, "--mode", "send"]),
          ("8 B WRITE, lists of 32", ["--size", "8", "--batch", "32", "--depth", "256"]),
          ("8 B SEND, SRQ", ["--mode", "incast", "--size", "8", "--batch", "32", "--depth", "256"]))
TITLES = {"bandwidth": "Bandwidth against message size", "rate-qps": "Rate against queue pairs",
          "rate-depth": "Rate against depth", "loss": "Goodput against loss", "latency": "Latency of 8 bytes"}
# The rows of the table: the keys of the figures by column, "" for none.
README_COLUMNS = ("memif", "two programs of one uroced", "veth", "kernel TCP on that veth")
README_FIGURES = (("64 KiB WRITE", ("memif.write", "hand-over.write", "veth.write", "tcp.gbps")),
                  ("64 KiB READ", ("memif.read", "hand-over.read", "", "")),
                  ("8 B WRITE, one queue pair", ("memif.rate1", "hand-over.rate1", "veth.rate1", "")),
                  ("half round trip, p50", ("memif.p50", "hand-over.p50", "veth.p50", "tcp.spin.p50")),
                  ("half round trip, p99", ("memif.p99", "hand-over.p99", "", "tcp.spin.p99")))
SERIES_SECONDS = 600  # longest time of a sweep or an ablation
SWEEP_ROUNDS = 3  # tests of each point of a sweep


def say(text):
    print(text, flush=True)


def put(path, name, text):
    """Replace the text in the file under that name."""
    with open(path, encoding="utf-8") as file:
        whole = file.read()
    block = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.S)
    if not block.search(whole):
        raise Failed(f"{path} has no place for {name}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(block.sub(lambda found: found.group(1) + text.rstrip("\n") + "\n" + found.group(2), whole))


# ---- the figures of perf.py ----
def about_text(data):
    about = data["about"]
    states = {record["state"] for record in data["figures"].values() if record["median"] is not None}
    distances = [ns for record in data["figures"].values() for ns in record["distance_ns"]]
    steal = max((record["steal_percent"] for record in data["figures"].values()), default=0)
    far = f" ({', '.join(sorted(states))})" if states else ""
    busy = (" **Other programs kept the machine busy meanwhile: figures of such a run are far below what the machine gives.**"
            if about["load"] > 1.5 else "")
    return (f"Measured on {about['machine']}, {about['when']}: medians of {about['repeat']}, runs of "
            f"{about['seconds']:g} s, one CPU a side; a cache line took {min(distances):.0f} to {max(distances):.0f} ns "
            f"there and back{far}, the hypervisor took at most {steal:.0f}% of a figure's time, and the machine's load at "
            f"the start was {about['load']:.1f}.{busy}")


def figures_table(data):
    lines = ["| group | figure | median | least | most | placement |", "|---|---|---|---|---|---|"]
    for key, record in data["figures"].items():
        values = [value for value in record["values"] if value == value]
        if not values:
            continue
        lines.append(f"| {record['group']} | {record['title']}: `{key}` | {number_text(record['median'])} "
                     f"| {number_text(min(values))} | {number_text(max(values))} | {record['state']} |")
    return "\n".join(lines)


def readme_figures(data):
    def cell(key):
        record = data["figures"].get(key)
        return f"{number_text(record['median'])} {record['unit']}" if record and record["median"] is not None else ""

    about = data["about"]
    lines = [f"| | {' | '.join(README_COLUMNS)} |", f"|{'---|' * (len(README_COLUMNS) + 1)}"]
    lines += [f"| {title} | {' | '.join(map(cell, keys))} |" for title, keys in README_FIGURES]
    return "\n".join(lines) + (f"\n\n{about['machine']}, one CPU for each side, {about['when']}; medians of "
                               f"{about['repeat']}.")


def write_measured(data):
    rows = judge_all(data["figures"], set(data["figures"]))
    met = sum(row["met"] == "yes" for row in rows)
    table = f"{about_text(data)}\n\n{markdown_table(rows)}\n\n{met} of {len(rows)} marks are met (bold)."
    put(DOCUMENT, "marks", table)
    put(DOCUMENT, "figures", figures_table(data))
    put(README, "figures", readme_figures(data))


# ---- the figures of testroce ----
def pair(machine, wire, seconds, *options):
    """Return the output of the active side."""
    port = machine.next_port()
    program = os.path.join(machine.build, "app", "testroce")
    server = machine.start([program, *wire.options(0), "--listen", str(port), "--once"], CPUS[0], wire.spaces[0])
    client = machine.start([program, *wire.options(1), "--connect", f"{wire.address}:{port}", "--path-mtu", "4096",
                            *options], CPUS[1], wire.spaces[1])
    try:
        out, err = client.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"testroce {' '.join(options)}: no end") from None
    finally:
        machine.end(client)
        machine.end(server)
    if client.returncode != 0:
        raise Failed(f"testroce {' '.join(options)}: {err.strip()}")
    return out


def write_ablation(machine, wire, args):
    out = pair(machine, wire, SERIES_SECONDS, "--ablation", *HOT, "--seconds", str(args.seconds))
    table = "\n".join(re.sub(" +", " ", line) for line in out.splitlines() if line.startswith("|"))
    put(DOCUMENT, f"ablation {wire.name}", table)


def write_sweep(machine, wire, args):
    """The limit and TCP are measured before the sweep and after it, because the machine's speed changes meanwhile."""
    folder = os.path.join(machine.dir, f"sweep-{wire.name}")
    seconds = args.seconds / SWEEP_ROUNDS
    lines = Lines()
    measure_lines(lines, wire, seconds, say)
    pair(machine, wire, SERIES_SECONDS, "--sweep", folder, *HOT, "--repeat", str(SWEEP_ROUNDS), "--seconds", str(seconds))
    for _ in range(SWEEP_ROUNDS - 1):
        measure_lines(lines, wire, seconds, say)
    draw(folder, lines)
    target = os.path.join(PLOTS, wire.name)
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    for name in os.listdir(folder):
        if name.endswith((".svg", ".csv")):
            shutil.copy(os.path.join(folder, name), target)
    images = [f"![{title}](performance/{wire.name}/{name}.svg)" for name, title in TITLES.items()
              if os.path.exists(os.path.join(target, f"{name}.svg"))]
    put(DOCUMENT, f"sweep {wire.name}", "\n".join(images))


def write_veth_sweep(machine, args):
    write_sweep(machine, Veth(machine, *machine.veth()), args)


def write_stages(_machine, wire, args):
    """Write the cycles for each packet of the active side's core, by stage."""
    results = [(title, wire.testroce(*options, "--stages", seconds=2 * args.seconds)) for title, options in STAGES]
    lines = [f"| | {' | '.join(title for title, _ in results)} |", f"|{'---|' * (len(results) + 1)}"]
    for stage in results[0][1]["stages"]:
        cells = [f"{result['stages'][stage] * result['cycles_packet']:.0f}" for _, result in results]
        lines.append(f"| {stage} | {' | '.join(cells)} |")
    lines.append(f"| all | {' | '.join(str(round(result['cycles_packet'])) for _, result in results)} |")
    put(DOCUMENT, f"stages {wire.name}", "\n".join(lines))


def write_path(machine):
    put(DOCUMENT, "path", "```\n" + machine.output([machine.tool("bench_path")]) + "```")


def attempt(what, function, *args):
    """Run one part. If it fails, name it, and keep the old text."""
    started = time.monotonic()
    try:
        function(*args)
    except Exception as failure:
        say(f"{what}: failed: {failure}")
        return [what]
    say(f"{what}: written ({time.monotonic() - started:.0f} s)")
    return []


def write_all(machine, args):
    failed = []
    if args.json:
        with open(args.json, encoding="utf-8") as file:
            failed += attempt("marks", write_measured, json.load(file))
    only = args.only.split(",")
    with uroced(machine, "--port", "net_null0", "--ip", "10.99.1.1/24", "--mtu", "4200") as socket:
        for wire in (Memif(machine), Attached(machine, "hand-over", socket)):
            for what, function in (("stages", write_stages), ("ablation", write_ablation), ("sweep", write_sweep)):
                if what in only:
                    failed += attempt(f"{what}, {wire.name}", function, machine, wire, args)
    if "sweep" in only:
        failed += attempt("sweep, veth", write_veth_sweep, machine, args)
    if "path" in only:
        failed += attempt("path", write_path, machine)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build folder (build)")
    parser.add_argument("--json", metavar="FILE", help="what perf.py --json has written: the table of marks")
    parser.add_argument("--seconds", type=float, default=0.5,
                        help="seconds of a test of testroce's series, or of all tests of a sweep's point (0.5)")
    parser.add_argument("--only", default="stages,ablation,sweep,path", help="write only these of testroce's")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("document.py: needs root, as perf.py does")
    machine = Machine(args.build)
    try:
        failed = write_all(machine, args)
    finally:
        machine.close()
    if failed:
        sys.exit(f"document.py: not written: {', '.join(failed)}")


if __name__ == "__main__":
    main()
