# SPDX-License-Identifier: BSD-3-Clause
"""rsockets: the unmodified programs of rdmacm-utils, and TCP programs with librspreload.so, over memif, over a veth
pair, and within one uroced."""

import filecmp
import os
import re
import shutil
import sys

from harness.process import Namespace
from harness.tools import UROCE_RUN
from programs.cm.rdmacm import Addresses, CmVeth, END_SECONDS, CmRunning, SECONDS
from programs.cm.rdmacm_shared import Uroceds
from programs.run.wires import uroce_host

WIRES = ("memif", "veth")  # of processes that have ports of their own
PRELOAD = os.path.join(os.path.dirname(UROCE_RUN), "..", "lib", "rspreload", "librspreload.so")
TCP_CALLS = os.path.join(os.path.dirname(UROCE_RUN), "..", "test", "programs", "tcp_calls")
COPY_BYTES = 20_000_000
# A row of a table: name, bytes, transfers, and measured values.
ROW = re.compile(r"^(\S+) +\S+ +\S+ +.*?[\d.]+s +[\d.]+ +[\d.]+$", re.M)
DATAGRAMS, ECHOES = 10000, 1000  # an echo comes when both programs have had a CPU
SHARED = (("attached", "attached"), ("isolated", "isolated"))
# The kernel carries datagrams until the queue pairs are ready, which takes longer on a busy machine.
KERNEL_PART = 0.5
ECHO_PORT = 7311
CALLS_PORT = 7312
ECHO_SERVER = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
peer, address = listener.accept()
peer.settimeout(30)
while data := peer.recv(65536):
    peer.sendall(data)
peer.close()
print("echoed to", address[0])
"""
ECHO_CLIENT = """
import os, socket, sys, threading
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)
data = os.urandom(3_000_000)
def send():
    peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
thread = threading.Thread(target=send)
thread.start()
back = b""
while part := peer.recv(65536):
    back += part
thread.join()
print("same" if back == data else "different", peer.getpeername()[0])
"""
# A server and many clients, each with an event loop on epoll. It prints how many got back what they had sent.
ASYNC_CLIENTS = 50
ASYNC_SERVER = """
import asyncio, sys
async def serve(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()
    served.append(1)
    if len(served) == int(sys.argv[3]):
        ended.set()
async def main():
    global ended
    ended = asyncio.Event()
    server = await asyncio.start_server(serve, sys.argv[1], int(sys.argv[2]))
    await ended.wait()
    server.close()
served = []
asyncio.run(main())
print("served", len(served))
"""
ASYNC_CLIENT = """
import asyncio, os, sys
async def ask(number):
    reader, writer = await asyncio.open_connection(sys.argv[1], int(sys.argv[2]))
    data = os.urandom(200_000)
    async def send():
        writer.write(data)
        await writer.drain()
        writer.write_eof()
    back, _ = await asyncio.gather(reader.read(-1), send())
    writer.close()
    return back == data
async def main():
    return await asyncio.gather(*map(ask, range(int(sys.argv[3]))))
print("same", asyncio.run(main()).count(True))
"""
# The flags that asyncio does not use: edges and one-shot, with a pipe in the same instance.
EPOLL_CLIENT = """
import os, select, socket, sys
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)
peer.setblocking(False)
pipe = os.pipe()
epoll = select.epoll()
epoll.register(peer, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
epoll.register(pipe[0], select.EPOLLIN | select.EPOLLONESHOT)
data = memoryview(os.urandom(3_000_000))
back, sent, rung = b"", 0, 0
while len(back) < len(data):
    for fd, events in epoll.poll(30):
        if fd == pipe[0]:
            rung += len(os.read(fd, 1))
            epoll.modify(fd, select.EPOLLIN | select.EPOLLONESHOT)
            continue
        # Both directions go on until they would block, as edges need it.
        try:
            while sent < len(data):
                sent += peer.send(data[sent:])
        except BlockingIOError:
            pass
        try:
            while len(back) < len(data):
                back += peer.recv(65536)
        except BlockingIOError:
            pass
        os.write(pipe[1], b"x")
print("same" if back == data and rung > 0 else "different", peer.getpeername()[0])
"""


class RsocketsTest:
    """All checks of one kind of link; the server is the first host."""

    def __init__(self, report, wire, work_dir):
        self._report = report
        self._wire = wire
        self._work_dir = work_dir
        self._number = 0

    def _check(self, name, function, *args):
        program = name.split()[0].rstrip(",")
        full = f"rsockets: {self._wire.name}: {name}"
        self._number += 1
        left_out = not self._report.complete and self._wire.name in WIRES and self._number % len(WIRES) != WIRES.index(self._wire.name)
        if left_out or (self._report.only and self._report.only not in full):
            return
        if not shutil.which(program):
            self._report.skip(full, f"{program} is not installed: rdmacm-utils or iperf3")
            return
        self._report.check(full, function, *args)

    def run_all(self):
        """Run all programs; if tests need not be complete, every second one, and the others on the other wire."""
        server = self._wire.addresses.of["ipv4"][0]
        for name, options in (("blocking", ["-T", "b"]), ("nonblocking", ["-T", "n"]), ("async", ["-T", "a"]),
                              ("resolve", ["-T", "r"])):
            self._check(f"rstream, {name}", self._pair, "rstream", server, [*options, "-T", "v", "-I", "20", "-C", "50"])
        self._check("rstream, ipv6", self._pair, "rstream", self._wire.addresses.of["ipv6"][0],
                    ["-f", "ipv6", "-T", "v", "-I", "20", "-C", "50"])
        self._check("rstream, large", self._pair, "rstream", server, ["-T", "v", "-I", "3", "-C", "5", "-S", "1048576"])
        self._check("riostream", self._pair, "riostream", server, ["-I", "20", "-C", "50", "-S", "65536"])
        self._check("rcopy", self._rcopy, server)
        self._check("iperf3, preloaded", self._iperf3, server)
        self._check("python3, preloaded", self._echo, server, ECHO_CLIENT)
        self._check("python3, edges of epoll, preloaded", self._echo, server, EPOLL_CLIENT)
        self._check("python3, asyncio, preloaded", self._asyncio, server)
        self._report.check(f"rsockets: {self._wire.name}: calls of a TCP program, preloaded", self._tcp_calls, server)
        for name, options in (("udpong", []), ("udpong, blocking", ["-T", "b"]), ("udpong, echo", ["-T", "e"])):
            self._check(name, self._udpong, server, options)

    def run_shared(self):
        """Run some of the programs, in one direction each."""
        server = self._wire.addresses.of["ipv4"][0]
        self._check("rstream", self._pair, "rstream", server, ["-T", "a", "-T", "v", "-I", "20", "-C", "50"])
        self._check("rstream, ipv6", self._pair, "rstream", self._wire.addresses.of["ipv6"][0],
                    ["-f", "ipv6", "-T", "b", "-T", "v", "-I", "20", "-C", "50"])
        self._check("riostream", self._pair, "riostream", server, ["-I", "20", "-C", "50", "-S", "65536"])
        self._check("rcopy", self._rcopy, server)
        self._check("udpong", self._udpong, server, [])

    def _pair(self, program, server, options):
        """Each side prints a row."""
        with CmRunning() as running:
            passive = running.serve(self._wire.hosts[0], [program, "-b", server, *options])
            active = running.start(self._wire.hosts[1], [program, "-s", server, *options])
            running.expect(active, SECONDS, "client")
            running.expect(passive, END_SECONDS, "server")
            if not all(ROW.search(process.output()) for process in (passive, active)):
                running.fail("a side prints no result")

    def _rcopy(self, server):
        """The server does not end."""
        source, target = (os.path.join(self._work_dir, name) for name in ("rcopy.source", "rcopy.target"))
        with open(source, "wb") as file:
            file.write(os.urandom(COPY_BYTES))
        with CmRunning() as running:
            running.serve(self._wire.hosts[0], ["rcopy"])
            client = running.start(self._wire.hosts[1], ["rcopy", source, f"{server}:{target}"])
            running.expect(client, SECONDS, "client")
            if not filecmp.cmp(source, target, shallow=False):
                running.fail("the copy differs")
        os.unlink(source)
        os.unlink(target)

    def _udpong(self, server, options):
        """The server does not end. The kernel carries the first datagrams, so it must have the addresses too."""
        self._wire.give_kernel_addresses()
        before, count = self._wire.kernel_packets(), ECHOES if "e" in options else DATAGRAMS
        options = [*options, "-C", str(count), "-S", "500"]
        with CmRunning() as running:
            running.serve(self._wire.hosts[0], ["udpong", "-b", server, *options])
            client = running.start(self._wire.hosts[1], ["udpong", "-s", server, *options])
            running.expect(client, SECONDS, "client")
            if not ROW.search(client.output()):
                running.fail("the client prints no result")
            if self._wire.kernel_packets() - before > KERNEL_PART * count:
                running.fail("the datagrams go by the kernel's UDP")

    def _iperf3(self, server):
        with CmRunning() as running:
            passive = running.serve(self._wire.hosts[0], preloaded("iperf3", "-s", "-1", "-B", server))
            active = running.start(self._wire.hosts[1], preloaded("iperf3", "-c", server, "-t", "2"))
            running.expect(active, SECONDS, "client")
            running.expect(passive, END_SECONDS, "server")
            if "iperf Done" not in active.output():
                running.fail("the client does not come to its end")

    def _tcp_calls(self, server):
        """Both ends are in one process. First they are the kernel's: what they check is what TCP does."""
        with CmRunning() as running:
            for argv in ([TCP_CALLS, "127.0.0.1", str(CALLS_PORT)], preloaded(TCP_CALLS, server, str(CALLS_PORT))):
                process = running.start(self._wire.hosts[0], argv)
                running.expect(process, SECONDS, "program")
                if "as by TCP" not in process.output():
                    running.fail("the program prints no result")

    def _asyncio(self, server):
        options = [server, str(ECHO_PORT), str(ASYNC_CLIENTS)]
        with CmRunning() as running:
            passive = running.serve(self._wire.hosts[0], preloaded(sys.executable, "-c", ASYNC_SERVER, *options))
            active = running.start(self._wire.hosts[1], preloaded(sys.executable, "-c", ASYNC_CLIENT, *options))
            running.expect(active, SECONDS, "client")
            running.expect(passive, END_SECONDS, "server")
            if f"same {ASYNC_CLIENTS}" not in active.output() or f"served {ASYNC_CLIENTS}" not in passive.output():
                running.fail("what came back differs")

    def _echo(self, server, client):
        address = [server, str(ECHO_PORT)]
        with CmRunning() as running:
            passive = running.serve(self._wire.hosts[0], preloaded(sys.executable, "-c", ECHO_SERVER, *address))
            active = running.start(self._wire.hosts[1], preloaded(sys.executable, "-c", client, *address))
            running.expect(active, SECONDS, "client")
            running.expect(passive, END_SECONDS, "server")
            if f"same {server}" not in active.output():
                running.fail("what came back differs")


def preloaded(*argv):
    """Run a TCP program on rsockets."""
    return ["env", f"LD_PRELOAD={os.path.realpath(PRELOAD)}", *argv]


class RsocketsMemif:
    """Two namespaces connected by memif. The kernel has its own link between them, and no addresses unless the test
    adds them."""

    name = "memif"

    def __init__(self, work_dir):
        self.addresses = Addresses(["10.9.9.1", "10.9.9.2"], ["fd09:9::1", "fd09:9::2"])
        self._namespaces = [Namespace("rsmemif0"), Namespace("rsmemif1")]
        self._namespaces[0].run("ip", "link", "add", "udp0", "type", "veth", "peer", "name", "udp1",
                                "netns", self._namespaces[1].name)
        self._told = False
        self.hosts = []
        for cpu, role in enumerate(("server", "client")):
            self._namespaces[cpu].run("ip", "link", "set", f"udp{cpu}", "up")
            options = ["--port", f"net_memif0,socket={work_dir}/rs.sock,role={role},id=0"]
            for family, length in (("ipv4", 24), ("ipv6", 64)):
                options += ["--ip", f"{self.addresses.of[family][cpu]}/{length}"]
            self.hosts.append(uroce_host(f"rs-memif-{role}", work_dir, cpu, self._namespaces[cpu], options))

    def give_kernel_addresses(self):
        if self._told:
            return
        self._told = True
        for cpu, address in enumerate(self.addresses.of["ipv4"]):
            self._namespaces[cpu].run("ip", "addr", "add", f"{address}/24", "dev", f"udp{cpu}")

    def kernel_packets(self):
        return int(self._namespaces[0].run("cat", "/sys/class/net/udp0/statistics/rx_packets"))


class RsocketsVeth(CmVeth):
    """A veth pair. Its addresses are the kernel's."""

    def __init__(self, work_dir):
        super().__init__(work_dir, "rsveth")

    def give_kernel_addresses(self):
        """Do nothing: the kernel has the addresses."""

    @staticmethod
    def kernel_packets():
        """The count includes the packets of queue pairs."""
        return 0


class RsocketsShared:
    """Two programs of one uroced. Datagrams of the kernel between them pass through its lo."""

    def __init__(self, uroceds, server, client):
        pair = uroceds.pair(server, client)
        self.name = pair.name
        self.hosts = pair.hosts
        self.addresses = pair.addresses
        self._namespace = uroceds.namespaces[0]
        self._namespace.run("ip", "link", "set", "lo", "up")

    def give_kernel_addresses(self):
        """Do nothing: the kernel has the addresses."""

    def kernel_packets(self):
        return int(self._namespace.run("cat", "/sys/class/net/lo/statistics/rx_packets"))


def run_rsockets(report, work_dir):
    """Run the checks on both kinds of links, and within one uroced."""
    for make in (RsocketsMemif, RsocketsVeth):
        RsocketsTest(report, make(work_dir), work_dir).run_all()
    uroceds = Uroceds(work_dir, "rs")
    if not report.require("rsockets: two uroceds start", uroceds.start):
        return
    try:
        for server, client in SHARED:
            RsocketsTest(report, RsocketsShared(uroceds, server, client), work_dir).run_shared()
        report.check("rsockets: uroced: everything comes back", uroceds.come_back)
    finally:
        uroceds.stop()
