# SPDX-License-Identifier: BSD-3-Clause
"""The command lines of the unmodified RDMA programs, and how to judge their output."""

import ipaddress
import os
import re

from .process import ask, wait_until
from .report import CheckFailed

UROCE_RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                         "..", "..", "build", "app", "uroce-run")
UROCE_RUN = os.path.normpath(os.environ.get("UROCE_RUN", UROCE_RUN))
UROCE_RUN_FILE = os.environ.get("UROCE_RUN_FILE", UROCE_RUN)  # if UROCE_RUN is a script that runs it with more options
UROCE_CTL = os.path.join(os.path.dirname(UROCE_RUN), "uroce-ctl")
PLAIN_COUNTERS = r"(rx|tx)_(packets|bytes|in_place_packets|loopback_packets|crossed|payload_bytes_\w+)"
DEVICE = "uroce0"
START_SECONDS = 60  # emulated peers on a busy machine are slow
END_SECONDS = 20    # time for the second side to end after the first
# Groups by family, in the form that perftest takes: 239.1.2.3 and ff0e::7
MULTICAST_GIDS = {"ipv4": "0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3", "ipv6": "255:14:0:0:0:0:0:0:0:0:0:0:0:0:0:7"}
TCPDUMP = ("tcpdump", "-Z", "root")  # a user who plays root has no other user to change to
ALL_SIZES = 23      # -a: messages of 2^1 to 2^23 bytes
TUNING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib", "base", "include", "base", "tuning.h")


def optimisations():
    """Return lists of optimisations for --without: each by itself, and all of them together."""
    with open(TUNING, encoding="utf-8") as file:
        names = re.findall(r'X\(\w+, "([a-z-]+)",', file.read())
    return [*names, ",".join(names)]


class Side:
    """One end of a pair: the place where it runs, and its address there."""

    def __init__(self, host, device, address, gid_index=None):
        self.host = host
        self.device = device
        self.address = address
        self.gid_index = gid_index


class PingPong:
    """ibv_rc_pingpong, or the program of another service, with checked data; both sides run it the same way."""

    def __init__(self, options=(), iterations=1000, size=4096, service="rc"):
        self._program = f"ibv_{service}_pingpong"
        self.name = " ".join([self._program, "-c", *options])
        self._options = ["-c", *options, "-n", str(iterations), "-s", str(size)]
        self._bytes = 2 * iterations * size
        self._iterations = iterations

    def argv(self, side, port, peer=None):
        gid = ["-g", str(side.gid_index)]
        argv = [self._program, "-d", side.device, "-p", str(port), *gid, *self._options]
        return argv + ([peer] if peer else [])

    def judge(self, server, client):
        """The program exits with 0 even if data differs, so check its output."""
        for output in (server, client):
            if "invalid data" in output:
                raise CheckFailed("data differs")
            if not re.search(rf"^{self._bytes} bytes in ", output, re.M) or \
                    not re.search(rf"^{self._iterations} iters in ", output, re.M):
                raise CheckFailed("a side does not report its iterations")


class XrcPingPong(PingPong):
    """ibv_xsrq_pingpong, which checks no data, counts tests instead of iterations, and reports only success."""

    def __init__(self, options=()):
        super().__init__(service="xsrq")
        self.name = " ".join([self._program, *options])
        self._options = [*options, "-n", "100"]

    def judge(self, server, client):
        for output in (server, client):
            if not re.search("^success$", output, re.M):
                raise CheckFailed("a side does not report success")


class PerfTest:
    """A program of perftest."""

    def __init__(self, program, options=(), iterations=None):
        self.name = " ".join([program, *options])
        self._argv = [program, *options]
        if iterations:
            self._argv += ["-n", str(iterations)]
        self._rows = ALL_SIZES if "-a" in options else 1
        self._iterations = iterations or 1

    def argv(self, side, port, peer=None):
        # -F: no warning about the frequency of the CPU
        argv = [*self._argv, "-F", "-d", side.device, "-p", str(port)]
        if side.gid_index is not None:
            argv += ["-x", str(side.gid_index)]
        return argv + ([peer] if peer else [])

    def judge(self, _server, client):
        """The client's table has a row for each message size, with its iterations. The figures do not count: on a
        busy machine the program may misjudge the clock and print 0."""
        # An emulated clock may be too coarse for perftest, which then prints times of "inf" although the work was
        # done.
        rows = re.findall(r"^ *(\d+) +(\d+) +(?:[\d.]+|inf)\s+(?:[\d.]+|inf)\s", client, re.M)
        if len(rows) != self._rows:
            raise CheckFailed(f"the client prints {len(rows)} rows, not {self._rows}")
        for size, iterations in rows:
            if int(iterations) < self._iterations:
                raise CheckFailed(f"{iterations} iterations of {size} bytes, not {self._iterations}")


def lost_packets():
    """Return the counters of losses, retransmissions and errors of the devices that still exist."""
    shown = ask([UROCE_CTL, "statistic", "show"], END_SECONDS)
    for line in shown.stdout.splitlines():
        words = line.split()
        counters = [f"{name} {value}" for name, value in zip(words[6::2], words[7::2])
                    if value != "0" and not re.fullmatch(PLAIN_COUNTERS, name)]
        yield " ".join(words[:6] + (counters or ["nothing was lost"]))


class _Pair:
    """A running server and client of one program. Both are killed at the end of the check."""

    def __init__(self, program, server, client, port):
        self._port = port
        self._argv = program.argv(client, port, server.address)
        self._client_host = client.host
        self.server = server.host.start(program.argv(server, port))
        self.client = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.client, self.server):
            if process:
                process.kill()

    def connect(self):
        server = self.server
        ready = wait_until(lambda: server.poll() is not None or server.listens(self._port),
                           START_SECONDS)
        if not ready or server.poll() is not None:
            self.fail("the server ended early" if ready else "the server does not listen")
        self.client = self._client_host.start(self._argv)

    def fail(self, reason):
        story = self.server.story("server")
        if self.client:
            story += self.client.story("client")
        raise CheckFailed(reason, [*lost_packets(), *story])


def run_pair(program, server, client, port, seconds=60):
    """Run the program on both sides; raise CheckFailed unless both did all their work."""
    with _Pair(program, server, client, port) as pair:
        pair.connect()
        client_status = pair.client.wait(seconds)
        if client_status is None:
            pair.fail(f"the client hangs (after {seconds} s)")
        server_status = pair.server.wait(END_SECONDS)
        if server_status is None:
            pair.fail(f"the server hangs ({END_SECONDS} s after the client ended)")
        if client_status or server_status:
            pair.fail(f"server exit {server_status}, client exit {client_status}")
        try:
            program.judge(pair.server.output(), pair.client.output())
        except CheckFailed as failure:
            pair.fail(str(failure))


def kill_pair(program, server, client, port, victim, delay, seconds=40):
    """Kill one side `delay` seconds after both have connected; the other must end with an error. The survivor must
    have outstanding work, or wait on its TCP connection: a side that only waits for messages cannot notice that
    its peer has died."""
    with _Pair(program, server, client, port) as pair:
        pair.connect()
        killed, survivor = pair.server, pair.client
        if victim == "client":
            killed, survivor = survivor, killed
        both = (killed, survivor)
        connected = wait_until(
            lambda: pair.client.connected(port) or any(p.poll() is not None for p in both),
            START_SECONDS)
        if not connected:
            pair.fail("the client does not connect")
        wait_until(lambda: any(p.poll() is not None for p in both), delay)
        if any(p.poll() is not None for p in both):
            pair.fail("a side ended before the other was killed")
        killed.kill()
        status = survivor.wait(seconds)
        if status is None:
            pair.fail(f"the {victim} was killed, and the other side hangs (after {seconds} s)")
        if status <= 0 or status >= 128:
            pair.fail(f"the {victim} was killed, and the other side gives exit {status}")


def gids(host, device):
    """Return the device's GID table, as ibv_devinfo prints it: {index: IP address}."""
    devinfo = host.start(["ibv_devinfo", "-v", "-d", device])
    if devinfo.wait(START_SECONDS) != 0:
        raise CheckFailed("ibv_devinfo does not end with 0", devinfo.story("ibv_devinfo"))
    found = re.findall(r"GID\[ *(\d+)\]:\s*([0-9a-fA-F:.]+)", devinfo.output())
    return {int(index): _gid_address(text) for index, text in found}


def _gid_address(text):
    address = ipaddress.IPv6Address(text)
    return address.ipv4_mapped or address


def gid_index(table, address):
    """Return the index of an address in a table of gids(); 'link-local' means the link-local address."""
    for index, gid in table.items():
        if gid.is_link_local if address == "link-local" else gid == ipaddress.ip_address(address):
            return index
    raise CheckFailed(f"the GID table has no {address}: {table}")
