# SPDX-License-Identifier: BSD-3-Clause
"""The marks: each with its figure and the figure that it is compared with."""

import math

from figures import number_text

NEAR = "near"


class Mark:
    """A mark compares a figure with a multiple of another figure (the best one if `against` names several), or with
    a number. The figure must reach it, or, with `most`, not exceed it."""

    def __init__(self, title, port, key, text, factor, against=None, most=False, double=False, share=False):
        self.title = title
        self.port = port
        self.key = key
        self.text = text
        self.factor = factor
        self.against = against
        self.most = most
        self.double = double  # the keys are half round trips
        self.share = share  # the figure is a ratio already

    def _base(self, records):
        keys = (self.against or "").split()
        values = [value for value in map(_value, map(records.get, keys)) if value is not None]
        return (min if self.most else max)(values, default=None)

    def judge(self, records):
        """Return a row of the table: figure, port, value, mark, reference, ratio, met."""
        record = records.get(self.key)
        value = _value(record)
        base = self._base(records)
        scale = 2 if self.double else 1
        row = {"figure": self.title, "port": self.port, "here": "-", "unit": record["unit"] if record else "",
               "mark": self.text, "limit": "-" if base is None else number_text(base * scale), "ratio": "", "met": "-",
               "state": record["state"] if record else ""}
        if value is None:
            return row
        row["here"] = number_text(value * scale)
        if base:
            ratio = value / base
            row["ratio"] = f"{ratio:.2f}" if ratio >= 0.1 else f"1/{1 / ratio:.0f}" if ratio > 0 else "0"
        if self.against:
            if not base:
                return row
            limit = self.factor * base
        else:
            limit = self.factor
            if row["state"] != NEAR and not self.share:
                return row  # absolute marks hold for near CPUs
        row["met"] = "yes" if (value <= limit if self.most else value >= limit) else "no"
        return row


def _value(record):
    value = record and record["median"]
    return None if value is None or math.isnan(value) else value


def _port_marks(port, gbps, limits):
    return [
        Mark("64 KiB WRITE", port, f"{port}.write", "80% of the limit", 0.8, " ".join(f"{port}.{limit}.gbps" for limit in limits)),
        Mark("64 KiB WRITE", port, f"{port}.write", "150 Gb/s, by hand-over 200", gbps),
        Mark("64 KiB SEND", port, f"{port}.send", "90% of WRITE", 0.9, f"{port}.write"),
        Mark("64 KiB READ", port, f"{port}.read", "90% of WRITE", 0.9, f"{port}.write"),
        Mark("1 MiB WRITE through 1 GiB", port, f"{port}.cold", "90% of a cold loop", 0.9, "cold.loop"),
        Mark("8 B WRITE, one QP, lists of 32", port, f"{port}.rate1", "12 M/s", 12),
        Mark("8 B WRITE, 16 QPs, lists of 32", port, f"{port}.rate16", "10 M/s", 10),
        Mark("8 B WRITE, one QP, one by one", port, f"{port}.single", "6 M/s", 6),
        Mark("8 B SEND/RECV, SRQ", port, f"{port}.srq", "6 M/s", 6),
        Mark("8 B WRITE half round trip, p50", port, f"{port}.p50", "at most 2.5 times the bare port's", 2.5,
             f"{port}.limit.p50", most=True),
        Mark("8 B WRITE half round trip, p99", port, f"{port}.p99", "at most twice the median", 2, f"{port}.p50",
             most=True),
        Mark("null to null, 64 KiB", port, f"{port}.null", "twice ordinary regions", 2, f"{port}.send"),
    ]


def _perftest_marks(port):
    return [
        Mark("ib_write_bw -s 65536", port, f"{port}.perftest.write", "90% of testroce's best", 0.9,
             f"{port}.as_perftest.write {port}.write"),
        Mark("ib_write_lat -s 8", port, f"{port}.perftest.p50", "at most 110% of testroce", 1.1,
             f"{port}.as_perftest.p50", most=True),
    ]


def _isolated_marks():
    return [
        Mark("ib_write_bw -s 65536", "isolated", "isolated.perftest.write", "60% of hand-over", 0.6, "trusted.perftest.write"),
        Mark("ib_write_lat -s 8, p50", "isolated", "isolated.perftest.p50", "at most 3 us", 3, most=True),
        Mark("ib_write_lat -s 8, p99", "isolated", "isolated.perftest.p99", "at most 20 us", 20, most=True),
    ]


def _tenant_marks():
    return [
        Mark("64 KiB WRITE, 64 QPs of a user and one QP of another, less / more", "1 Gb/s", "tenants.share", "90%", 0.9,
             share=True),
        Mark("8 B WRITE beside another user's 64 QPs, p99", "isolated", "tenants.flood.p99",
             "at most 3 times that beside programs that poll", 3, "tenants.idle.p99", most=True),
    ]


def _udp_marks():
    packets = "of a packet socket"
    return [Mark("64 KiB WRITE by a UDP socket", "veth", "udp.write", f"that {packets}", 1, "beside-udp.write"),
            Mark("64 KiB WRITE by a UDP socket", "veth", "udp.write", "ahead of kernel TCP", 1, "tcp.gbps"),
            Mark("64 B round trip by a UDP socket", "veth", "udp.p50", f"at most 110% {packets}", 1.1, "beside-udp.p50", most=True,
                 double=True)]


def _attached_veth_marks():
    alone = "of a program that has the interface alone"
    return [*(Mark(f"64 KiB {mode.upper()}, attached", "veth", f"uroced-veth.{mode}", f"90% {alone}", 0.9, f"alone-veth.{mode}")
              for mode in ("write", "send", "read")),
            Mark("64 B round trip, attached", "veth", "uroced-veth.p50", f"at most 110% {alone}", 1.1, "alone-veth.p50",
                 most=True, double=True)]


def _registration_marks():
    marks = [Mark(f"register 1 GiB of {pages} pages", "", f"reg.{size}.absent", "at most touching them", 1,
                  f"reg.{size}.touch", most=True) for size, pages in (("4k", "4 KiB"), ("2m", "2 MiB"), ("1g", "1 GiB"))]
    marks.append(Mark("register 1 GiB of 2 MiB pages that are there", "", "reg.2m.present",
                      "20 times faster than of 4 KiB", 1 / 20, "reg.4k.present", most=True))
    return marks


MARKS = [
    *_port_marks("memif", 150, ["limit"]),
    *_port_marks("hand-over", 200, ["limit", "copies", "turn"]),
    Mark("8 B WRITE, 100 QPs", "memif", "qps.100", "80% of one QP's", 0.8, "qps.1"),
    Mark("8 B WRITE, 10,000 QPs", "memif", "qps.10000", "80% of one QP's", 0.8, "qps.1"),
    Mark("4 KiB WRITE, 16 programs on 2 CPUs, thousands a second", "hand-over", "programs.16", "half of two programs'", 0.5,
         "programs.2"),
    Mark("16 programs on 2 CPUs, longest wait for a completion, ms", "hand-over", "programs.16.wait", "at most 10 ms", 10,
         most=True),
    Mark("ib_write_bw -s 65536, two pairs of programs, each on a CPU", "hand-over", "programs.pairs.2", "1.8 times one pair",
         1.8, "programs.pairs.1"),
    Mark("8 B WRITE, two threads of a program", "", "threads.8.2", "1.9 times one", 1.9, "threads.8.1"),
    Mark("64 KiB WRITE, two threads of a program", "", "threads.64k.2", "1.9 times one", 1.9, "threads.64k.1"),
    *(Mark(f"{what}, 256 threads of a program, longest wait, ms", "", f"threads.{name}.256.wait", "at most 100 ms", 100,
           most=True)
      for name, what in (("8", "8 B WRITE"), ("8k", "8 KiB READ"))),
    Mark("memory of an idle QP", "", "qps.bytes", "at most 2048 B", 2048, most=True),
    Mark("idle program's CPU, %", "memif", "idle.cpu", "at most 1% of a core", 1, most=True),
    Mark("first answer after idling, us", "memif", "idle.p50", "at most 1.15 times a bare wake-up", 1.15, "idle.wake",
         most=True),
    Mark("64 B round trip", "veth", "veth.p50", "TCP spinning: 1.5 times as fast", 1 / 1.5, "tcp.spin.p50", most=True,
         double=True),
    Mark("64 B round trip", "veth", "veth.p50", "TCP blocking: 8 times as fast", 1 / 8, "tcp.block.p50", most=True,
         double=True),
    Mark("64 KiB WRITE", "veth", "veth.write", "80% of the port's ceiling", 0.8, "veth.limit.gbps"),
    Mark("64 KiB WRITE", "veth", "veth.write", "ahead of kernel TCP", 1, "tcp.gbps"),
    Mark("64 KiB WRITE, 1% lost, sack = yes", "veth", "veth.loss.write", "85% of the lossless rate", 0.85,
         "veth.sound.write"),
    Mark("ib_write_lat -s 8, 1% lost, sack = yes, p99", "veth", "veth.loss.p99", "at most 200 us", 200, most=True),
    *_isolated_marks(),
    *_tenant_marks(),
    *_udp_marks(),
    *_attached_veth_marks(),
    *_registration_marks(),
    *(mark for port in ("memif", "hand-over", "veth") for mark in _perftest_marks(port)),
]

COLUMNS = ("figure", "port", "here", "mark", "limit", "ratio", "met")
HEADS = ("figure", "port", "measured", "mark", "compared with", "ratio", "met")


def judge_all(records, measured):
    """Return the rows of all figures that were measured or that failed."""
    return [mark.judge(records) for mark in MARKS if mark.key in measured]


def cells(row):
    here = row["here"] + (f" {row['unit']}" if row["unit"] and row["here"] != "-" else "")
    return [here if column == "here" else row[column] for column in COLUMNS]


def text_table(rows):
    table = [HEADS, *map(cells, rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in table)


def markdown_table(rows):
    """Return a table with a row for each mark and a column for each port: the value and its ratio to the reference;
    bold if the mark is met."""
    ports = list(dict.fromkeys(row["port"] for row in rows))
    lines = {}
    for row in rows:
        ratio = f" ({row['ratio']})" if row["ratio"] else ""
        cell = cells(row)[COLUMNS.index("here")] + ratio
        lines.setdefault((row["figure"], row["mark"]), {})[row["port"]] = \
            f"**{cell}**" if row["met"] == "yes" else cell
    heads = ["", "mark", *(port or "the machine" for port in ports)]
    text = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    text += [f"| {figure} | {mark} | {' | '.join(found.get(port, '') for port in ports)} |"
             for (figure, mark), found in lines.items()]
    return "\n".join(text)
