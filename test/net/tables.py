#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run the large experiments in the simulated network: print their tables, and with --document write them and their plots into
doc/results/network.md, between <!-- begin NAME --> and <!-- end NAME -->. Times are virtual, so the tables are the same everywhere."""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from experiments import (ECN, FAT_TREE, GO_BACK_N, IRN, LEAF_SPINE, LOSS_LINK, MANY, PAIR, PFC, ROCE, between, incast, mean, poisson, run, share,
                         stream, swift_queue_us)

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCUMENT = os.path.join(TOP, "doc", "results", "network.md")
PLOTS = os.path.join(TOP, "doc", "results", "network")
SCHEMES = (("go-back-N, no window, PFC (RoCE as NICs have it)", (*ROCE, *PFC)),
           ("go-back-N, no window, no PFC", ROCE),
           ("go-back-N, window of 110, no PFC", GO_BACK_N),
           ("keeps packets, window of 110, no PFC", IRN),
           ("keeps packets, window of 110, PFC", (*IRN, *PFC)))
INCAST_SENDERS = (5, 10, 20, 30, 40, 50)
INCAST_BYTES = 150000000
LOSSES = (10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000)  # of a million
LOSS_PEERS = (("receiver drops (go-back-N)", "drops"), ("receiver keeps", "keeps"), ("uroce", "uroce"))
ALGORITHMS = ("none", "dcqcn", "swift")
# Ten long flows to one host: two of them until 20 ms, all from then on.
SHARE_BYTES, SHARE_STAGGER_US, SHARE_UNTIL_US = 800000000, 10000, 40000
CROWDS = (100, 1000, 2000, 5000)  # senders
CROWD_BYTES = 400000000
CROWD_FROM_US = 7000


class Tables:
    """Every experiment is a job; a table waits for its own."""

    def __init__(self, program, jobs):
        self.program = program
        self.pool = ThreadPoolExecutor(jobs)

    def start(self, *options):
        return self.pool.submit(run, self.program, *options)


def row(*cells):
    return f"| {' | '.join(map(str, cells))} |"


def head(*cells):
    return [row(*cells), "|" + "---|" * len(cells)]


def random_flows(tables):
    """Average and tail with and without pauses."""
    jobs = [(name, tables.start(*FAT_TREE, *options, *poisson(20000))) for name, options in SCHEMES]
    lines = head("scheme", "mean slowdown", "mean time", "p99 time", "dropped", "retransmitted")
    for name, job in jobs:
        result = job.result()
        lines.append(row(name, f"{result['slowdown']['mean']:.1f}", f"{result['time_us']['mean'] / 1000:.2f} ms",
                         f"{result['time_us']['p99'] / 1000:.2f} ms", f"{result['dropped'] / result['packets']:.2%}",
                         f"{result['retransmitted'] / result['packets']:.2%}"))
    return lines


def incasts(tables):
    """Time until the last of the senders is done."""
    schemes = (("PFC", (*ROCE, *PFC)), ("no PFC", IRN))
    jobs = [(senders, [tables.start(*FAT_TREE, *options, *incast(senders, INCAST_BYTES)) for _, options in schemes])
            for senders in INCAST_SENDERS]
    lines = head("senders", "go-back-N with PFC", "keeps, window, no PFC", "ratio")
    for senders, results in jobs:
        times = [job.result()["time_us"]["max"] / 1000 for job in results]
        lines.append(row(senders, f"{times[0]:.1f} ms", f"{times[1]:.1f} ms", f"{times[1] / times[0]:.2f}"))
    return lines


def every_256th(tables):
    """One of 256 packets is lost."""
    jobs = [(name, tables.start(*PAIR, *stream(4 << 20, 100), "--lose-every", 256, "--peer", peer))
            for name, peer in LOSS_PEERS]
    lines = head("scheme", "goodput", "packets sent for each that is needed")
    lines.append(row("go-back-0 (Guo et al., 4.1)", "0", "without end"))
    for name, job in jobs:
        result = job.result()
        needed = result["flows"] * 4096
        lines.append(row(name, f"{result['goodput_gbps']:.1f} Gb/s", f"{1 + result['retransmitted'] / needed:.2f}"))
    return lines


def losses(tables):
    """Goodput of 1 MiB messages on a link of 100 Gb/s, by loss."""
    jobs = [(ppm, [tables.start(*LOSS_LINK, *stream(1 << 20, 2000 if ppm < 1000 else 400), "--loss-ppm", ppm, "--peer", peer)
                   for _, peer in LOSS_PEERS]) for ppm in LOSSES]
    lines = head("lost", *(name for name, _ in LOSS_PEERS))
    points = []
    for ppm, results in jobs:
        gbps = [job.result()["goodput_gbps"] for job in results]
        lines.append(row(f"{ppm / 1e4:g} %", *(f"{value:.1f} Gb/s" for value in gbps)))
        points.append((ppm / 1e6, *gbps))
    plot("loss", "1 MiB messages, one after the other, 100 Gb/s, round trip of 10 us", "packets lost", "goodput, Gb/s",
         [name for name, _ in LOSS_PEERS], points)
    return lines


def crowd(tables):
    """Many queue pairs, a large network."""
    jobs = [("70 % load, flows of heavy tail", tables.start(*LEAF_SPINE, *poisson(10000))),
            ("70 % load, window of 64", tables.start(*LEAF_SPINE, *poisson(10000), "--window", 64)),
            ("128 to 1, 64 MB, window of 64", tables.start(*LEAF_SPINE, *incast(128, 64000000), "--window", 64)),
            ("permutation, 16 MB each, window of 64",
             tables.start(*LEAF_SPINE, "--traffic", "permutation", "--bytes", 16 << 20, "--window", 64))]
    lines = head("traffic", "queue pairs", "mean slowdown", "p99 slowdown", "goodput", "dropped")
    for name, job in jobs:
        result = job.result()
        lines.append(row(name, 2 * result["connections"], f"{result['slowdown']['mean']:.1f}",
                         f"{result['slowdown']['p99']:.0f}", f"{result['goodput_gbps']:.0f} Gb/s",
                         f"{result['dropped'] / result['packets']:.2%}"))
    return lines


def sharing(tables):
    """Two long flows to one host, then ten."""
    runs = [(name, share(10, SHARE_BYTES, SHARE_STAGGER_US, SHARE_UNTIL_US, cc, greet))
            for name, cc, greet in (("none", "none", True), ("dcqcn", "dcqcn", True), ("swift", "swift", True),
                                    ("swift, no host has seen the idle network", "swift", False))]
    jobs = [(name, tables.start(*options)) for name, options in runs]
    lines = head("algorithm", "fairness of two", "of ten", "goodput", "queue, mean", "queue, longest", "dropped")
    queues = {}
    for name, job in jobs:
        result = job.result()
        two, ten = between(result, 15000, 20000, 2), between(result, 30000, 40000, 10)
        lines.append(row(name, f"{mean(two, 'fairness'):.3f}", f"{mean(ten, 'fairness'):.3f}", f"{mean(ten, 'gbps'):.1f} Gb/s",
                         f"{mean(ten, 'queue_us'):.0f} us", f"{max(sample['queue_us'] for sample in ten):.0f} us",
                         f"{result['dropped'] / result['packets']:.2%}"))
        queues[name] = {sample["us"]: sample["queue_us"] for sample in result["samples"]}
    names = ("dcqcn", "swift")
    plot("sharing", "One, two (10 ms), ten (20 ms) flows to one host, 40 Gb/s", "time, ms", "queue, us", names,
         [(us / 1000, *(queues[name][us] for name in names)) for us in sorted(queues["dcqcn"]) if us in queues["swift"]],
         logarithmic=False)
    return lines


def crowds(tables):
    """Very many senders to one host."""
    jobs = [(senders, [tables.start(*MANY, *incast(senders, CROWD_BYTES), "--cc", cc, "--sample-us", 50)
                       for cc in ("none", "swift")]) for senders in CROWDS]
    lines = head("senders", "algorithm", "queue, mean", "Swift's target", "goodput", "dropped")
    for senders, results in jobs:
        for cc, job in zip(("none", "swift"), results):
            result = job.result()
            steady = [sample for sample in result["samples"]
                      if sample["us"] >= CROWD_FROM_US and sample["flows"] >= 0.9 * senders]
            target = f"{swift_queue_us(senders):.0f} us" if cc == "swift" else ""
            lines.append(row(senders, cc, f"{mean(steady, 'queue_us'):.0f} us", target, f"{mean(steady, 'gbps'):.1f} Gb/s",
                             f"{result['dropped'] / result['packets']:.2%}"))
    return lines


def controlled_flows(tables):
    """The random flows above, with congestion control."""
    schemes = (("keeps packets, window of 110, no PFC", IRN), ("go-back-N, no window, PFC", (*ROCE, *PFC)))
    jobs = [(name, cc, tables.start(*FAT_TREE, *options, *ECN, "--cc", cc, *poisson(20000)))
            for name, options in schemes for cc in ALGORITHMS]
    lines = head("scheme", "algorithm", "mean slowdown", "mean time", "p99 time", "dropped", "retransmitted")
    for name, cc, job in jobs:
        result = job.result()
        lines.append(row(name, cc, f"{result['slowdown']['mean']:.1f}", f"{result['time_us']['mean'] / 1000:.2f} ms",
                         f"{result['time_us']['p99'] / 1000:.2f} ms", f"{result['dropped'] / result['packets']:.2%}",
                         f"{result['retransmitted'] / result['packets']:.2%}"))
    return lines


TABLES = {"random-flows": random_flows, "incast": incasts, "every-256th": every_256th, "loss": losses, "crowd": crowd,
          "sharing": sharing, "many-senders": crowds, "controlled-flows": controlled_flows}


def plot(name, title, x_title, y_title, series, points, logarithmic=True):
    """Write an SVG with one line a series."""
    os.makedirs(PLOTS, exist_ok=True)
    data = "\n".join(" ".join(map(str, point)) for point in points)
    lines = ", ".join(f"$data using 1:{i + 2} with linespoints title '{label}'" for i, label in enumerate(series))
    scale = "set logscale x\nset key left bottom\n" if logarithmic else "set key left top\n"
    script = (f"$data << EOD\n{data}\nEOD\nset terminal svg size 800,500 background rgb 'white'\n"
              f"set output '{os.path.join(PLOTS, name)}.svg'\nset title '{title}'\nset xlabel '{x_title}'\n"
              f"set ylabel '{y_title}'\nset grid\n{scale}set yrange [0:]\nplot {lines}\n")
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def put(name, text):
    """Replace what the document has under that name."""
    with open(DOCUMENT, encoding="utf-8") as file:
        whole = file.read()
    block = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.S)
    if not block.search(whole):
        sys.exit(f"{DOCUMENT} has no place for {name}")
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(block.sub(lambda found: found.group(1) + text + "\n" + found.group(2), whole))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", default=os.path.join(TOP, "build", "test", "net", "net"), help="the simulator")
    parser.add_argument("--only", choices=TABLES, help="this table only")
    parser.add_argument("--document", action="store_true", help="write the tables into doc/results/network.md")
    args = parser.parse_args()
    tables = Tables(args.net, os.cpu_count())
    for name, make in TABLES.items():
        if args.only in (None, name):
            text = "\n".join(make(tables))
            print(f"\n{make.__doc__}\n\n{text}", flush=True)
            if args.document:
                put(name, text)


if __name__ == "__main__":
    main()
