#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure uroce with Debian's perftest over memif, between two processes of a uroced, over a veth pair (also from a
process of a uroced), beside kernel TCP on that veth pair, in one run.

    perf.py [--build DIR] [--repeat N] [--seconds S] [--only memif,hand-over,veth,uroced,tcp]

Every figure is the median of N. The distance of the two CPUs (one cache line there and back, see "near" and "far") is
measured around each figure and printed beside it: figures of different distances do not compare."""
import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

NEAR_NS = 250  # a cache line's round trip below this: the two CPUs share a cache
TIMEOUT_S = 90


class Failed(Exception):
    pass


class Bench:
    def __init__(self, args):
        self.args = args
        self.run = os.path.join(args.build, "app", "uroce-run")
        self.tools = os.path.join(args.build, "test", "perf")
        self.dir = tempfile.mkdtemp(prefix="uroce-perf-")
        self.spaces = []
        self.children = []
        self.owners = []
        self.rows = []
        self.failed = False

    # ---- processes ----
    def start(self, cpu, argv, space=None):
        full = (["ip", "netns", "exec", space] if space else []) + ["taskset", "-c", str(cpu)] + argv
        child = subprocess.Popen(full, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, start_new_session=True)
        self.children.append(child)
        return child

    def finish(self, child, what):
        try:
            out, err = child.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"{what}: no end after {TIMEOUT_S} s")
        self.children.remove(child)
        if child.returncode != 0:
            raise Failed(f"{what}: exit {child.returncode}: {(err or out).strip().splitlines()[-1:]}")
        return out

    def end_all(self):
        for child in self.children:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        self.children = []

    def pair(self, server, client, spaces=(None, None), delay=0.7):
        """Run a server on CPU 0 and a client on CPU 1; the client's output."""
        try:
            first = self.start(0, server, spaces[0])
            time.sleep(delay)
            if first.poll() is not None:
                raise Failed(f"server: {first.communicate()[1].strip()}")
            out = self.finish(self.start(1, client, spaces[1]), client[-1])
            if first.poll() is None and server[0] not in ("iperf3",):
                self.finish(first, "server")
            return out
        finally:
            self.end_all()

    # ---- the machine ----
    def distance(self):
        out = subprocess.run([os.path.join(self.tools, "core_distance"), "0", "1"], check=True, capture_output=True,
                             text=True).stdout
        return float(out)

    @staticmethod
    def stolen():
        with open("/proc/stat") as f:
            fields = f.readline().split()[1:]
        return int(fields[7]), sum(int(x) for x in fields)

    def measure(self, port, name, unit, function):
        """Median of the repeats that ran within one placement of the CPUs."""
        values, distances = [], []
        tries = 0
        steal0, total0 = self.stolen()
        while len(values) < self.args.repeat and tries < 3 * self.args.repeat:
            tries += 1
            before = self.distance()
            try:
                value = function()
            except Failed as failure:
                self.failed = True
                print(f"  {port:9} {name:34} failed: {failure}", flush=True)
                return
            after = self.distance()
            if (before < NEAR_NS) != (after < NEAR_NS):
                continue  # the CPUs moved in between
            values.append(value)
            distances.append((before + after) / 2)
        steal1, total1 = self.stolen()
        if not values:
            self.rows.append((port, name, "-", unit, "moved", 0))
            return
        near = [v for v, d in zip(values, distances) if d < NEAR_NS]
        kept, where = (near, "near") if len(near) * 2 >= len(values) else (
            [v for v, d in zip(values, distances) if d >= NEAR_NS], "far")
        if isinstance(kept[0], tuple):
            text = " / ".join(f"{statistics.median(v[i] for v in kept):.2f}" for i in range(len(kept[0])))
        else:
            text = f"{statistics.median(kept):.2f}"
        steal = 100.0 * (steal1 - steal0) / max(1, total1 - total0)
        self.rows.append((port, name, text, unit, f"{where} {statistics.median(distances):.0f} ns", steal))
        print(f"  {port:9} {name:34} {text:>16} {unit:5} {self.rows[-1][4]}, steal {steal:.0f}%", flush=True)

    # ---- ports ----
    def memif(self, role):
        return [self.run, "--port", f"net_memif0,socket={self.dir}/memif.sock,role={role},id=0",
                "--ip", "10.99.1.1/24" if role == "server" else "10.99.1.2/24", "--"]

    def uroced(self, *options, space=None):
        """A uroced that answers, and how programs attach to it."""
        socket = os.path.join(self.dir, "uroced.sock")
        argv = [os.path.join(self.args.build, "app", "uroced"), "--socket", socket]
        # Not pinned: it sleeps, or has the CPU that is free.
        owner = subprocess.Popen((["ip", "netns", "exec", space] if space else []) + argv + list(options),
                                 stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        until = time.monotonic() + TIMEOUT_S
        while subprocess.run([*argv, "--status"], capture_output=True).returncode != 0:
            if owner.poll() is not None or time.monotonic() > until:
                raise Failed(f"uroced: {owner.communicate()[1].strip()}")
            time.sleep(0.1)
        self.owners.append(owner)
        return [self.run, "--socket", socket, "--"]

    def end_uroced(self):
        for owner in self.owners:
            owner.terminate()
            owner.wait()
        self.owners = []

    def veth_up(self):
        a, b = f"uperf{os.getpid()}a", f"uperf{os.getpid()}b"
        for space in (a, b):
            subprocess.run(["ip", "netns", "add", space], check=True)
            self.spaces.append(space)
        subprocess.run(["ip", "-n", a, "link", "add", "veth0", "mtu", "9000", "type", "veth", "peer", "name", "veth0",
                        "mtu", "9000", "netns", b], check=True)
        for space, ip in ((a, "10.99.2.1/24"), (b, "10.99.2.2/24")):
            subprocess.run(["ip", "-n", space, "addr", "add", ip, "dev", "veth0"], check=True)
            subprocess.run(["ip", "-n", space, "link", "set", "lo", "up"], check=True)
            subprocess.run(["ip", "-n", space, "link", "set", "veth0", "up"], check=True)
        time.sleep(2)  # IPv6 duplicate address detection
        return a, b

    def close(self):
        self.end_all()
        self.end_uroced()
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- perftest ----
    @staticmethod
    def table(out, columns):
        rows = [line.split() for line in out.splitlines() if re.match(r"^\s*\d+\s+\d+\s", line)]
        if not rows:
            raise Failed(f"no table in: {out[-300:]}")
        return [float(rows[-1][c]) for c in columns]

    def perftest(self, port, spaces, runs, address):
        seconds = str(self.args.seconds)

        def bw(tool, size, column):
            argv = [tool, "-s", str(size), "-m", "4096", "-D", seconds, "-F", "--report_gbits"]
            return lambda: self.table(self.pair(runs[0] + argv, runs[1] + argv + [address], spaces), [column])[0]

        def latency():
            argv = ["ib_write_lat", "-s", "8", "-n", "100000", "-F"]
            return tuple(self.table(self.pair(runs[0] + argv, runs[1] + argv + [address], spaces), [4, 7]))

        self.measure(port, "WRITE 64 KiB, bandwidth", "Gb/s", bw("ib_write_bw", 65536, 3))
        self.measure(port, "READ 64 KiB, bandwidth", "Gb/s", bw("ib_read_bw", 65536, 3))
        self.measure(port, "SEND 64 KiB, bandwidth", "Gb/s", bw("ib_send_bw", 65536, 3))
        self.measure(port, "WRITE 8 B, message rate", "M/s", bw("ib_write_bw", 8, 4))
        self.measure(port, "WRITE 8 B, latency p50 / p99", "us", latency)

    def limit(self):
        """What the memif wire gives without a protocol (bench_limit.c)."""
        tool = os.path.join(self.tools, "bench_limit")
        wire = f"net_memif0,socket={self.dir}/limit.sock,id=0,role="

        def run():
            out = self.pair([tool, wire + "server"], [tool, "-c", "-s", str(self.args.seconds), wire + "client"])
            return tuple(float(x) for x in out.split())

        self.measure("memif", "limit: Gb/s, 8 B M/s, us p50, p99", "", run)

    def source_sink(self, port, spaces, runs, address):
        """SEND of 64 KiB between ordinary regions and null ones."""
        tool = os.path.join(self.tools, "source_sink")

        def bw(source, sink):
            server = [tool, *sink, "18710"]
            client = [tool, *source, "-s", str(self.args.seconds), "18710", address]
            return lambda: float(self.pair(runs[0] + server, runs[1] + client, spaces))

        null = ["-0"]
        self.measure(port, "SEND 64 KiB, memory to memory", "Gb/s", bw([], []))
        self.measure(port, "SEND 64 KiB, null source", "Gb/s", bw(null, []))
        self.measure(port, "SEND 64 KiB, null sink", "Gb/s", bw([], null))
        self.measure(port, "SEND 64 KiB, null source and sink", "Gb/s", bw(null, null))

    def tcp(self, spaces, address):
        pingpong = os.path.join(self.tools, "tcp_pingpong")

        def bandwidth():
            out = self.pair(["iperf3", "-s", "-1"], ["iperf3", "-c", address, "-t", str(self.args.seconds), "-f", "g"],
                            spaces)
            found = re.findall(r"([\d.]+) Gbits/sec.*receiver", out)
            if not found:
                raise Failed("iperf3 printed no receiver line")
            return float(found[-1])

        def latency(*options):
            return lambda: tuple(float(x) for x in self.pair(
                [pingpong, *options, "18700"], [pingpong, *options, "18700", address], spaces, 0.2).split())

        self.measure("tcp", "iperf3 over the same veth", "Gb/s", bandwidth)
        self.measure("tcp", "8 B spinning, latency p50 / p99", "us", latency())
        self.measure("tcp", "8 B blocking, latency p50 / p99", "us", latency("-b", "-n", "20000"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build folder (build)")
    parser.add_argument("--repeat", type=int, default=5, help="runs a figure (5)")
    parser.add_argument("--seconds", type=int, default=2, help="seconds a bandwidth run (2)")
    parser.add_argument("--only", default="memif,hand-over,veth,uroced,tcp", help="which ports")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    if os.geteuid() != 0:
        sys.exit("perf.py: needs root for network namespaces and huge pages: run it with sudo")
    bench = Bench(args)
    only = args.only.split(",")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
        print(f"uroce on {cpu.group(1) if cpu else '?'}, {os.cpu_count()} CPUs, Linux {os.uname().release}; "
              f"one CPU a side; median of {args.repeat}", flush=True)
        if "memif" in only:
            runs = (bench.memif("server"), bench.memif("client"))
            bench.limit()
            bench.perftest("memif", (None, None), runs, "127.0.0.1")
            bench.source_sink("memif", (None, None), runs, "127.0.0.1")
        if "hand-over" in only:
            runs = bench.uroced("--port", "net_null0", "--ip", "10.99.1.1/24", "--mtu", "4200")
            bench.perftest("hand-over", (None, None), (runs, runs), "127.0.0.1")
            bench.source_sink("hand-over", (None, None), (runs, runs), "127.0.0.1")
            bench.end_uroced()
        if {"veth", "uroced", "tcp"} & set(only):
            spaces = bench.veth_up()
            if "veth" in only:
                runs = [bench.run, "--netdev", "veth0", "--"]
                bench.perftest("veth", spaces, (runs, runs), "10.99.2.1")
            if "uroced" in only:
                attached = bench.uroced("--netdev", "veth0", space=spaces[0])
                bench.perftest("uroced", spaces, (attached, [bench.run, "--netdev", "veth0", "--"]), "10.99.2.1")
                bench.end_uroced()
            if "tcp" in only:
                bench.tcp(spaces, "10.99.2.1")
    finally:
        bench.close()
    if bench.failed:
        sys.exit("perf.py: not all figures could be measured")


if __name__ == "__main__":
    main()
