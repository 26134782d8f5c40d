# SPDX-License-Identifier: BSD-3-Clause
"""The measurements. Each of ROWS yields groups of figures one after the other. The programs of a group run until
the next group is asked for."""

import contextlib
import os
import re
import time

from figures import Figure, Group
from machine import CPUS
from wires import Attached, Isolated, Memif, Tenant, Veth, Vhost, by_turns, sent_packets, together, uroced

HOT = ["--region", "512K"]  # as the limits' regions
ONE = ["--region", "64K"]  # perftest writes the memory of one message again and again
RATE = ["--size", "8", "--batch", "32", "--depth", "256"]
COLD = ["--size", "1M", "--region", "1G", "--depth", "16"]
COLD_MIB = ["-r", "1024"]


def _gbps(wire, seconds, *options):
    return lambda: wire.testroce(*options, seconds=seconds)["gbps"]


def _rate(wire, seconds, *options):
    return lambda: wire.testroce(*options, seconds=seconds)["mmsg_s"]


def _latency(wire, seconds, *options, progress="inline"):
    def measure():
        result = wire.testroce("--mode", "latency", *options, progress=progress, seconds=seconds)
        return result["p50_us"], result["p99_us"]
    return measure


def _bandwidths(wire, seconds):
    name = wire.name
    return [Figure(f"{name}.{mode}", f"{mode.upper()} 64 KiB", "Gb/s", _gbps(wire, seconds, *HOT, "--mode", mode))
            for mode in ("write", "send", "read")]


def _rates(wire, seconds):
    name = wire.name
    return [
        Figure(f"{name}.rate1", "WRITE 8 B, one QP, lists of 32", "M/s", _rate(wire, seconds, *RATE)),
        Figure(f"{name}.rate16", "WRITE 8 B, 16 QPs, lists of 32", "M/s",
               _rate(wire, seconds, *RATE, "--qps", "16")),
        Figure(f"{name}.single", "WRITE 8 B, one QP, one by one", "M/s", _rate(wire, seconds, "--size", "8")),
        Figure(f"{name}.srq", "SEND/RECV 8 B through an SRQ", "M/s",
               _rate(wire, seconds, "--mode", "incast", *RATE))]


def _small(wire, seconds, size=8):
    return [Figure(f"{wire.name}.p50 {wire.name}.p99", f"WRITE {size} B half round trip, p50 / p99", "us",
                   _latency(wire, seconds, "--size", str(size)))]


def _ib_write_bw_argv(seconds):
    return ["ib_write_bw", "-s", "65536", "-m", "4096", "-D", str(max(1, round(seconds))), "--report_gbits"]


def _ib_write_bw(wire, seconds, title="ib_write_bw -s 65536"):
    return Figure(f"{wire.name}.perftest.write", title, "Gb/s", lambda: wire.perftest(_ib_write_bw_argv(seconds), [3]))


def _perftest(wire, seconds):
    """Debian's unmodified program, beside testroce with the same hybrid progress, depth, completions and memory."""
    name = wire.name
    return [
        _ib_write_bw(wire, seconds),
        Figure(f"{name}.as_perftest.write", "testroce as ib_write_bw", "Gb/s",
               _gbps(wire, seconds, *ONE, "--depth", "128", "--signal", "100")),
        Figure(f"{name}.perftest.p50 {name}.perftest.p99", "ib_write_lat -s 8, p50 / p99", "us",
               lambda: wire.perftest(["ib_write_lat", "-s", "8", "-n", "100000"], [4, 7])),
        Figure(f"{name}.as_perftest.p50 {name}.as_perftest.p99", "testroce as ib_write_lat, p50 / p99", "us",
               _latency(wire, seconds, "--size", "8", progress="hybrid"))]


def _limit(wire, seconds, *options, name="limit", title="limit", **more):
    keys = " ".join(f"{wire.name}.{name}.{what}" for what in ("gbps", "mps", "p50", "p99"))
    return Figure(keys, f"{title}: Gb/s, M/s, us p50, p99", "", lambda: wire.limit(seconds, *options, **more))


def _null(wire, seconds):
    return [Figure(f"{wire.name}.null", "SEND 64 KiB, null to null", "Gb/s", _gbps(wire, seconds, "--mode", "null"))]


def memif(machine, seconds):
    """two processes over shared memory"""
    wire = Memif(machine)
    yield Group("memif", [_limit(wire, seconds),
                          *_bandwidths(wire, seconds), *_null(wire, seconds),
                          *_rates(wire, seconds), *_small(wire, seconds)])
    yield Group("perftest over memif", _perftest(wire, seconds))


def vhost(machine, seconds):
    """virtio-user and vhost, as between a container and a switch in user space"""
    wire = Vhost(machine)
    yield Group("virtio-user to vhost", [_limit(wire, seconds), *_bandwidths(wire, seconds), *_rates(wire, seconds)[:1],
                                         *_rates(wire, seconds)[2:3], *_small(wire, seconds)])


def hand_over(machine, seconds):
    """two programs of one uroced"""
    with uroced(machine, "--port", "net_null0", "--ip", "10.99.1.1/24", "--mtu", "4200") as socket:
        wire = Attached(machine, "hand-over", socket)
        yield Group("hand-over", [_limit(wire, seconds),
                                  _limit(wire, seconds, "-n", name="copies", title="limit without CRC"),
                                  _limit(wire, seconds, "-n", "-b", "1024", name="turn",
                                         title="the same, 1,024 buffers in turn"),
                                  *_bandwidths(wire, seconds), *_null(wire, seconds), *_rates(wire, seconds),
                                  *_small(wire, seconds)])
        yield Group("perftest by hand-over", _perftest(wire, seconds))


def isolated(machine, seconds):
    """two isolated programs of one uroced"""
    path = f"{machine.dir}/isolated.sock"
    with uroced(machine, "--port", "net_null0", "--ip", "10.99.1.1/24", "--mtu", "4200", f"--isolated={path}") as socket:
        write, _, half, _ = _perftest(Isolated(machine, path), seconds)
        trusted = _ib_write_bw(Attached(machine, "trusted", socket), seconds, "the same of two attached programs")
        yield Group("isolated programs, by perftest", [write, trusted, half])


def _shares(machine, key, title, socket, tenants, seconds):
    """Measure what an owner takes of two tenants, one with 64 queue pairs and one with a single one."""
    def shares():
        argv = _ib_write_bw_argv(60)
        with contextlib.ExitStack() as stack:
            clients = []
            for tenant, options in zip(tenants, (["-q", "64"], [])):
                for child in tenant.begin([*argv, *options]):
                    stack.callback(machine.end, child)
                clients.append(child.pid)
            time.sleep(2)
            before = sent_packets(machine, socket, clients)
            time.sleep(2 * seconds)
            many, one = (now - then for now, then in zip(sent_packets(machine, socket, clients), before))
        return many / 2e3 / seconds, one / 2e3 / seconds, min(many, one) / max(many, one)

    return Figure(f"{key}.many {key}.one {key}.share",
                  f"{title}: 64 QPs of a user, one QP of another: packets a ms, less / more", "", shares)


def _slow_tenants(machine, seconds):
    """Two users' programs behind an interface that takes much less than each can send, so that packets of both wait."""
    spaces, addresses = machine.veth()
    machine.slow(spaces[0], "1gbit")
    path = f"{machine.dir}/slow.sock"
    with uroced(machine, "--udp=veth0", f"--isolated={path}", space=spaces[0]) as socket, \
            uroced(machine, "--udp=veth0", space=spaces[1]) as far:
        there = Attached(machine, "far", far, spaces[::-1], address=addresses[1])
        both = [Tenant(machine, path, uid, spaces[0], there) for uid in (20001, 20002)]
        yield Group("isolated programs of two users, through an interface of 1 Gb/s",
                    [_shares(machine, "tenants", "ib_write_bw -s 65536", socket, both, seconds)])


def tenants(machine, seconds):
    """isolated programs of two users of one uroced, through which their packets pass"""
    path = f"{machine.dir}/tenants.sock"
    os.chmod(machine.dir, 0o711)
    flood = [*_ib_write_bw_argv(60), "-q", "64"]

    def latency(start):
        with contextlib.ExitStack() as stack:
            for child in start():
                stack.callback(machine.end, child)
            time.sleep(1)
            return together([(second, ["ib_write_lat", "-s", "8", "-n", str(int(5000 * seconds))])], 7)[0]

    with uroced(machine, "--port", "net_null0", "--ip", "10.99.1.1/24", "--mtu", "4200", f"--isolated={path}", "--hand-over",
                "owner") as socket:
        first, second = Tenant(machine, path, 20001), Tenant(machine, path, 20002)
        yield Group("isolated programs of two users, through uroced", [
            _shares(machine, "tenants.local", "ib_write_bw -s 65536", socket, (first, second), seconds),
            Figure("tenants.idle.p99", "ib_write_lat -s 8 beside two programs of another user that poll, p99", "us",
                   lambda: latency(lambda: (first.poll(), first.poll()))),
            Figure("tenants.flood.p99", "ib_write_lat -s 8 beside another user's ib_write_bw of 64 QPs, p99", "us",
                   lambda: latency(lambda: first.begin(flood)))])
    yield from _slow_tenants(machine, seconds)


def programs(machine, seconds):
    """more attached programs than CPUs: a ring, in which each writes to the next and polls all the time"""
    with uroced(machine, "--port", "net_null0", "--ip", "10.99.1.1/24", "--mtu", "4200") as socket:
        def measure(count):
            table = os.path.join(machine.dir, f"members{machine.next_port()}")
            argv = ["taskset", "-c", ",".join(map(str, CPUS)), machine.uroce_run, "--socket", socket, "--",
                    os.path.join(machine.build, "test", "programs", "members"), table, str(count), str(count), str(seconds)]
            every, least, wait = map(float, machine.output(argv).split())
            return every / 1e3, least / 1e3, wait

        yield Group("more programs than CPUs", [
            Figure(f"programs.{count} programs.{count}.least programs.{count}.wait",
                   f"{count} programs on 2 CPUs, WRITE 4 KiB: thousands a second, of the slowest, longest wait in ms", "",
                   lambda count=count: measure(count)) for count in (2, 16)])
        wire = Attached(machine, "hand-over", socket)
        yield Group("pairs of programs, each on a CPU of its own", [
            Figure(f"programs.pairs.{count}", f"ib_write_bw -s 65536, {count} {'pair' if count == 1 else 'pairs'}", "Gb/s",
                   lambda count=count: wire.pairs(count, _ib_write_bw_argv(2 * seconds), 3)) for count in (1, 2)])


def threads(machine, seconds):
    """one thread of a program, and two, each with an engine, and 256 on one engine; a thread sends between two queue pairs of
    its own"""
    def crowd(engines, count, op, size, depth, requests):
        argv = [machine.uroce_run, "--engines", str(engines), "--port", "net_null0", "--ip", "10.99.1.1/24", "--mtu",
                "4200", "--", machine.tool("bench_crowd"), "-t", str(count), "-d", str(depth), "-o", op, "-s", str(size),
                "-n", str(int(requests))]
        return re.findall(r"[\d.]+", machine.output(argv))

    def measure(count, size, a_second):
        return float(crowd(count, count, "write", size, 32, a_second * seconds)[0]) / 1e6

    def measure_many(count, op, size, requests):
        numbers = crowd(1, count, op, size, 16, requests)
        return float(numbers[0]) / 1e6, float(numbers[4])

    yield Group("threads of a program", [
        *(Figure(f"threads.{name}.{count}", f"WRITE {title}, {count} thread{'s' * (count > 1)}", "M/s",
                 lambda count=count, size=size, a_second=a_second: measure(count, size, a_second))
          for name, title, size, a_second in (("8", "8 B", 8, 4e6), ("64k", "64 KiB", 65536, 15e4)) for count in (1, 2)),
        *(Figure(f"threads.{name}.256 threads.{name}.256.wait",
                 f"{op.upper()} {title}, 256 threads, 1 engine: M/s, longest wait in ms", "",
                 lambda op=op, size=size, requests=requests: measure_many(256, op, size, requests))
          for name, op, title, size, requests in (("8", "write", "8 B", 8, 4096), ("8k", "read", "8 KiB", 8192, 1024)))])


def cold(machine, seconds):
    """1 MiB messages through 1 GiB of memory"""
    wire = Memif(machine)
    with uroced(machine, "--port", "net_null0", "--ip", "10.99.1.1/24", "--mtu", "4200") as socket:
        attached = Attached(machine, "hand-over", socket)
        ring = machine.tool("bench_ring")
        yield Group("cold memory", [
            Figure("cold.loop", "copy and CRC in one loop", "Gb/s", lambda: float(
                machine.output([ring, "-s", str(seconds), *COLD_MIB, str(CPUS[0])]))),
            Figure("cold.ring cold.ring.mps cold.ring.p50 cold.ring.p99", "limit, ring: Gb/s, M/s, us p50, p99", "",
                   lambda: attached.limit(seconds, *COLD_MIB)),
            Figure("memif.cold", "WRITE 1 MiB through 1 GiB, memif", "Gb/s", _gbps(wire, seconds, *COLD)),
            Figure("hand-over.cold", "WRITE 1 MiB through 1 GiB, hand-over", "Gb/s",
                   _gbps(attached, seconds, *COLD))])


def qps(machine, seconds):
    """many queue pairs in turn"""
    wire = Memif(machine)
    turn = ["--size", "8", "--signal", "1"]
    yield Group("queue pairs", [
        Figure("qps.1", "WRITE 8 B, 1 QP", "M/s", _rate(wire, seconds, *turn, "--depth", "256")),
        Figure("qps.100", "WRITE 8 B, 100 QPs", "M/s", _rate(wire, seconds, *turn, "--depth", "8", "--qps", "100")),
        Figure("qps.10000", "WRITE 8 B, 10,000 QPs", "M/s",
               _rate(wire, seconds, *turn, "--depth", "1", "--qps", "10000"))])
    null = [machine.uroce_run, "--port", "net_null0", "--ip", "10.99.1.1/24", "--", machine.tool("qp_memory")]
    yield Group("memory of an idle queue pair", [
        Figure("qps.bytes", "with queues of one request", "B", lambda: float(machine.output(null))),
        Figure("qps.bytes64", "with queues of 64 requests", "B", lambda: float(machine.output([*null, "-d", "64"])))])


def _connections(wire):
    """Connections by rdma_cm; `seconds` has no effect, because the rate is that of all connections."""
    name = wire.name
    return [Figure(f"{name}.connect{key} {name}.connect{key}.p50 {name}.connect{key}.max",
                   f"{title}: a second; us to connect: median / longest", "", lambda args=args: wire.connections(*args))
            for key, title, args in (("", "10,000 connections, 64 at a time", ["-n", "10000", "-w", "64"]),
                                     ("1", "1,000 connections, one at a time", ["-n", "1000", "-w", "1"]),
                                     ("5000", "5,000 connections, all open at once", ["-n", "5000", "-o"]))]


def connections(machine, _seconds):
    """connections set up and torn down by rdma_cm"""
    yield Group("connections over memif", _connections(Memif(machine)))
    with uroced(machine, "--port", "net_null0", "--ip", "10.99.1.1/24", "--mtu", "4200") as socket:
        yield Group("connections of two programs of uroced", _connections(Attached(machine, "hand-over", socket)))


def idle(machine, seconds):
    """a program that does nothing"""
    wire = Memif(machine)
    bare = [machine.tool("idle"), "-w", *map(str, CPUS)]
    yield Group("idle", [
        Figure("idle.wake idle.wake.max", "bare wake-up of an idle process: median / longest", "us",
               lambda: tuple(map(float, machine.output(bare).split()))),
        Figure("idle.cpu idle.p50 idle.max", "CPU %, first answer in us: median / longest", "",
               lambda: wire.idle(max(1, 3 * seconds)))])


def _lossy_group(machine, seconds, spaces, addresses):
    """A veth that loses 1 %, with and without selective acknowledgements, beside one that loses nothing."""
    def wire(impair, sack):
        return Veth(machine, spaces, addresses, impair, sack)

    def write(key, wire, title):
        return Figure(f"veth.{key}.write", f"WRITE 64 KiB, {title}", "Gb/s", _gbps(wire, seconds, *HOT))

    def latency(key, wire, title):
        return Figure(f"veth.{key}.p50 veth.{key}.p99", f"ib_write_lat -s 8, {title}, p50 / p99", "us",
                      lambda: wire.perftest(["ib_write_lat", "-s", "8", "-n", "20000"], [4, 7]))

    sack, plain = wire("loss=0.01", "yes"), wire("loss=0.01", "no")
    return Group("veth that loses 1 % in each direction", [
        write("sound", wire(None, "yes"), "none lost"),
        write("loss", sack, "sack = yes"), write("loss-plain", plain, "sack = no"),
        *(Figure(f"veth.loss.{mode}", f"{mode.upper()} 64 KiB, sack = yes", "Gb/s",
                 _gbps(sack, seconds, *HOT, "--mode", mode)) for mode in ("send", "read")),
        latency("loss", sack, "sack = yes"), latency("loss-plain", plain, "sack = no")])


def _attached_group(seconds, attached, alone):
    """An attached program, and one that has its interface alone. The speed of a veth changes every few seconds, by up
    to a half, so short tests of the two alternate."""
    modes, turns = ("write", "send", "read"), 6
    short = ("seconds", max(0.1, seconds / turns))
    plans = [[short, ("mode", mode), ("size", "64K"), ("region", "512K")] for mode in modes]
    latency = [short, ("mode", "latency"), ("size", 64)]

    def keys(names):
        return " ".join(f"{wire.name}.{name}" for wire in (attached, alone) for name in names)

    return Group("a program of uroced over veth, and one that has a veth alone", [
        Figure(keys(modes), "WRITE, SEND, READ 64 KiB: attached; alone", "Gb/s",
               lambda: by_turns((attached, alone), plans, "gbps", turns)),
        Figure(keys(["p50"]), "WRITE 64 B half round trip, p50: attached; alone", "us",
               lambda: by_turns((attached, alone), [latency], "p50", turns))])


def _udp_group(seconds, by_udp, by_packets):
    """A UDP socket, and a packet socket. The speed of a veth changes every few seconds, so short tests of the two alternate."""
    turns = 6
    short = ("seconds", max(0.1, seconds / turns))
    writes = [[short, ("mode", "write"), ("size", "64K"), ("region", "512K")]]
    latency = [short, ("mode", "latency"), ("size", 64)]

    def keys(name):
        return f"{by_udp.name}.{name} {by_packets.name}.{name}"

    return Group("a UDP socket, and a packet socket", [
        Figure(keys("write"), "WRITE 64 KiB: UDP socket; packet socket", "Gb/s",
               lambda: by_turns((by_udp, by_packets), writes, "gbps", turns)),
        Figure(keys("p50"), "WRITE 64 B half round trip, p50: UDP socket; packet socket", "us",
               lambda: by_turns((by_udp, by_packets), [latency], "p50", turns))])


def veth(machine, seconds):
    """kernel interfaces, and TCP on them"""
    spaces, addresses = machine.veth()
    wire = Veth(machine, spaces, addresses)
    yield Group("veth", [
        _limit(wire, seconds, title="the port's ceiling"), *_bandwidths(wire, seconds), *_rates(wire, seconds)[:1],
        *_small(wire, seconds, 64),
        Figure("tcp.gbps", "iperf3 on the same veth", "Gb/s", lambda: wire.iperf(max(1, round(seconds)))),
        Figure("tcp.spin.p50 tcp.spin.p99", "TCP 64 B spinning, half round trip", "us",
               lambda: wire.tcp_pingpong()),
        Figure("tcp.block.p50 tcp.block.p99", "TCP 64 B blocking, half round trip", "us",
               lambda: wire.tcp_pingpong("-b", "-n", "20000"))])
    yield Group("perftest over veth", _perftest(wire, seconds))
    yield _lossy_group(machine, seconds, spaces, addresses)
    yield _udp_group(seconds, Veth(machine, *machine.veth(), name="udp", option="--udp=veth0"),
                     Veth(machine, *machine.veth(), name="beside-udp"))
    with uroced(machine, "--netdev", "veth0", space=spaces[0]) as socket:
        attached = Attached(machine, "uroced-veth", socket, spaces, "veth0", addresses[0])
        yield _attached_group(seconds, attached, Veth(machine, *machine.veth(), name="alone-veth"))


REGISTER = ("touch", "absent", "present", "hugetlb", "on_demand", "deregister")


def registration(machine, _seconds):
    """what registering 1 GiB costs, by kind of page"""
    machine.reserve(2048, 600)  # packet buffers are in such pages, too
    machine.reserve(1048576, 1)
    argv = [machine.uroce_run, "--port", "net_null0", "--ip", "10.99.1.1/24", "--", machine.tool("bench_reg"), "1024"]
    sizes = {"4 KiB": "4k", "2 MiB": "2m", "1 GiB": "1g"}

    def measure():
        found = {}
        for line in machine.output(argv).splitlines():
            cells = [cell.strip() for cell in line.strip("| ").split("|")]
            if cells[0] in sizes and cells[1] == "1024 MiB":
                for name, cell in zip(REGISTER, cells[2:]):
                    found[f"reg.{sizes[cells[0]]}.{name}"] = float(cell) if cell != "-" else float("nan")
        return tuple(found.get(key, float("nan")) for key in keys.split())

    keys = " ".join(f"reg.{size}.{name}" for size in sizes.values() for name in REGISTER)
    yield Group("registration of 1 GiB", [Figure(keys, "us, by pages: " + ", ".join(REGISTER), "us", measure)])


ROWS = {"memif": memif, "vhost": vhost, "hand-over": hand_over, "isolated": isolated, "tenants": tenants, "programs": programs,
        "threads": threads, "cold": cold, "qps": qps, "connections": connections, "idle": idle, "veth": veth,
        "registration": registration}
