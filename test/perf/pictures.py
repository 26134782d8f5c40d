# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of a sweep: testroce's own plots, and in them the lines that its figures are compared with: the wire's
limit, and kernel TCP on the same wire. The lines are medians with their range, too."""

import csv
import os
import statistics
import subprocess

from machine import Failed
from wires import Veth

PACKETS = (64, 256, 1024, 4096)  # of the limit; longer messages consist of packets of 4 KiB
SIZES = (*PACKETS, 16384, 65536, 262144, 1048576)
MEDIAN, P99 = 2, 100  # percentiles, as the x axis of testroce's plot has them: all messages but one in so many
TRIES = 3  # of a sample that fails
TCP_SECONDS = 1  # of each size; iperf3 takes whole seconds
# The look of a line: the limit's first, then the peers'.
LOOKS = (("dashtype 2 linewidth 2 pointtype 4", "black"), ("dashtype 4 linewidth 2 pointtype 6", "#c04000"),
         ("dashtype 5 linewidth 2 pointtype 8", "#808080"))


class Lines:
    """Lines in pictures: samples by picture, title and value of the x axis."""

    def __init__(self):
        self._samples = {}

    def add(self, picture, title, points):
        """Add one sample of each point. An x of None stands for the whole width of the picture."""
        line = self._samples.setdefault(picture, {}).setdefault(title, {})
        for x, value in points:
            line.setdefault(x, []).append(value)

    def pictures(self):
        return list(self._samples)

    def spreads(self, picture, ends):
        """Return the lines of a picture: for each its title and its points, (x, median, least, most). `ends` are the
        least and the most x of the picture."""
        return [(title, [(place, statistics.median(values), min(values), max(values)) for x, values in line.items()
                         for place in (ends if x is None else (x,))])
                for title, line in self._samples.get(picture, {}).items()]


def measure_limit(lines, wire, seconds):
    """Take one sample of the wire without a protocol."""
    lengths = ",".join(map(str, PACKETS))
    kinds = {without: dict(zip(PACKETS, wire.limit(seconds, *options, "-l", lengths)))
             for without, options in wire.limits.items()}
    _, rate, median, p99 = wire.limit(seconds)
    for without, rates in kinds.items():
        lines.add("bandwidth", f"limit: packets up to 4 KiB, {without}",
                  [(size, rates[min(size, PACKETS[-1])]) for size in SIZES])
        lines.add("loss", f"limit: packets of 4 KiB, {without}, none lost", [(None, rates[PACKETS[-1]])])
    for picture in ("rate-qps", "rate-depth"):
        lines.add(picture, "limit: packets of 8 B, no protocol", [(None, rate)])
    lines.add("latency", "limit: 8 B, no protocol, half round trip", [(MEDIAN, median), (P99, p99)])


def measure_tcp(lines, wire, _seconds):
    """Take one sample of kernel TCP on the wire."""
    rates = [wire.iperf(TCP_SECONDS, "-l", str(size)) for size in SIZES]
    spinning, blocking = wire.tcp_pingpong(), wire.tcp_pingpong("-b", "-n", "20000")
    lines.add("bandwidth", "kernel TCP: iperf3, writes of that size", zip(SIZES, rates))
    lines.add("latency", "TCP spinning: 64 B, half round trip", zip((MEDIAN, P99), spinning))
    lines.add("latency", "TCP blocking: 64 B, half round trip", zip((MEDIAN, P99), blocking))


def measure_lines(lines, wire, seconds, tell):
    """Take one sample of each line of the wire. One that fails is tried again, and then left out: the picture has the
    others."""
    for measure in (measure_limit, *((measure_tcp,) if isinstance(wire, Veth) else ())):
        for _ in range(TRIES):
            try:
                measure(lines, wire, seconds)
                break
            except Failed as failure:
                tell(f"   {measure.__name__} over {wire.name}: {failure}")


def ends_of(path):
    """Return the least and the most x of one of testroce's files of points."""
    with open(path, encoding="utf-8") as file:
        values = [int(row["x"]) for row in csv.DictReader(file)]
    return min(values), max(values)


def script(picture, lines):
    """Return gnuplot's script: testroce's own, and then the same plot with the lines, too."""
    text, plots = [f"load '{picture}.gnuplot'"], []
    for number, (title, points) in enumerate(lines):
        text += [f"$line{number} << EOD", *(" ".join(map(str, point)) for point in points), "EOD"]
        look, colour = LOOKS[number]
        plots += [f"$line{number} using 1:2:3:4 with yerrorbars pointtype 0 linecolor rgb '{colour}' notitle",
                  f"$line{number} using 1:2 with linespoints {look} pointsize 0.6 linecolor rgb '{colour}' title \"{title}\""]
    # The longer key takes room from the plot.
    text += ["set terminal svg size 800,600 background rgb 'white'", f"set output '{picture}.svg'"]
    return "\n".join([*text, f"replot {', '.join(plots)}", ""])


def draw(folder, lines):
    """Draw the pictures of a sweep's folder again with the lines, whose points lines.csv gets."""
    with open(os.path.join(folder, "lines.csv"), "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("picture", "line", "x", "median", "least", "most"))
        for picture in lines.pictures():
            path = os.path.join(folder, f"{picture}.csv")
            if not os.path.exists(path):  # nothing is lost between two programs of one uroced
                continue
            spreads = lines.spreads(picture, ends_of(path))
            table.writerows((picture, title, *point) for title, points in spreads for point in points)
            done = subprocess.run(["gnuplot"], input=script(picture, spreads), cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise Failed(f"gnuplot: {picture}: {done.stderr.strip()}")
