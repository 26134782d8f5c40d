# SPDX-License-Identifier: BSD-3-Clause
"""Ports of DPDK applications: RDMA in an application that forwards, and uroce's processes on a port that an
application shares."""

import glob
import os
import re
import shutil

from harness.process import LocalHost, Namespace, Process, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN, PingPong, Side, gid_index, gids, run_pair

EXAMPLES = os.path.join(os.path.dirname(UROCE_RUN), "examples")
REMOTE_WRITE = os.path.join(EXAMPLES, "remote_write")
FIRST_PORT = 25500
SECONDS = 60
FREE_PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"
PAGES = 64
EAL = ["--no-huge", "--no-shconf", "-m", "256", "--no-pci", "--iova-mode=va", "--no-telemetry"]


def remove_primary(prefix):
    """Remove the files of a DPDK primary process, and the huge pages in them."""
    with open("/proc/mounts", encoding="ascii") as mounts:
        folders = [line.split()[1] for line in mounts if line.split()[2] == "hugetlbfs"]
    for folder in folders:
        for path in glob.glob(f"{folder}/{prefix}map_*"):
            os.unlink(path)
    shutil.rmtree(f"/var/run/dpdk/{prefix}", ignore_errors=True)


class GuestsTest:
    """An application with two ports. The other end of each is a network namespace of the kernel."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._middle = Namespace("guests-m")
        self._ends = [Namespace("guests-0"), Namespace("guests-1")]
        for number, end in enumerate(self._ends):
            self._middle.run("ip", "link", "add", f"veth{number}", "type", "veth", "peer", "name", "veth0", "netns",
                             end.name)
            self._middle.run("sh", "-c", f"echo 1 >/proc/sys/net/ipv6/conf/veth{number}/disable_ipv6")
            self._middle.run("ip", "link", "set", f"veth{number}", "up")
            # The kernel leaves checksums to the NIC; a forwarding application would have to compute them.
            end.run("ethtool", "-K", "veth0", "tx", "off")
            end.run("ip", "link", "set", "veth0", "up")
            end.run("ip", "addr", "add", f"10.9.7.{number + 2}/24", "dev", "veth0")
        self._application = None
        self._names = 0

    def _log(self, name):
        self._names += 1
        return os.path.join(self._work_dir, f"guests-{name}-{self._names}.log")

    def run_all(self):
        self._report.check("embedded: verified data on two ports", self._embedded)
        self._report.check("embedded: frames that are not its own go through", self._through)
        self._stop()
        self._pollers_check()
        self._report.check("primary: verified data beyond", self._primary)
        self._report.check("primary: verified data between two", self._between)
        self._report.check("primary: frames that are not its own go through", self._through)
        self._stop()
        self._report.check("testpmd: verified data between secondaries of two", self._testpmd)
        self._report.check("testpmd: verified data between a secondary on net_tap and its interface", self._testpmd_tap)

    def _stop(self):
        if self._application:
            self._application.kill()
        self._application = None

    def _start(self, program, *args):
        vdevs = [arg for number in range(2)
                 for arg in ("--vdev", f"net_af_packet{number},iface=veth{number},framesz=2048,blocksz=4096")]
        self._application = Process([*self._middle.prefix, os.path.join(EXAMPLES, program), *EAL, *vdevs, "--",
                                     *args], self._log(program))

    def _remote_write(self, prefix, options=()):
        """A program at the other end writes into the application's memory, and both verify the data."""
        peer = Process([*prefix, REMOTE_WRITE, *options], self._log("remote_write"))
        try:
            if peer.wait(SECONDS) != 0:
                raise CheckFailed("the peer fails", peer.story("peer") + self._application.story("application"))
        finally:
            peer.kill()

    def _pollers_check(self):
        """SPDK's way to run: one thread, memory that is registered while the heap grows, EAL ended first."""
        name = "pollers: verified data, and a clean end after EAL's"
        with open(FREE_PAGES, encoding="ascii") as file:
            free = int(file.read())
        if free < PAGES:
            self._report.skip(name, f"{free} huge pages of 2 MiB are free, and {PAGES} are needed")
            return
        self._report.check(name, self._pollers)

    def _pollers(self):
        eal = ["--no-shconf", "--huge-unlink", "--match-allocations", "--no-pci", "--no-telemetry",
               "--base-virtaddr=0x200000000000", f"--file-prefix=uroce-test-{os.getpid()}-pollers", "--vdev",
               "net_af_packet0,iface=veth0,framesz=2048,blocksz=4096"]
        pollers = self._application = Process([*self._middle.prefix, os.path.join(EXAMPLES, "pollers"), *eal, "--",
                                               "10.9.7.1/24"], self._log("pollers"))
        try:
            if not wait_until(lambda: "serving" in pollers.output(), SECONDS):
                raise CheckFailed("it does not serve", pollers.story("application"))
            for _ in range(2):
                client = Process([*self._attach(0), "rping", "-c", "-a", "10.9.7.1", "-C", "20", "-S", "60000", "-V"],
                                 self._log("rping"))
                status = client.wait(SECONDS)
                client.kill()
                if status != 0:
                    raise CheckFailed("rping fails", client.story("rping") + pollers.story("application"))
            pollers.terminate()
            told = re.compile(r"40 pings, [1-9][0-9]* regions registered")
            if pollers.wait(SECONDS) != 0 or not told.search(pollers.output()):
                raise CheckFailed("the application does not end well", pollers.story("application"))
        finally:
            self._stop()

    def _primary_prefix(self):
        return [*self._middle.prefix, UROCE_RUN, "--socket", os.path.join(self._work_dir, "primary.sock"), "--"]

    def _primary(self):
        self._start("primary", "10.9.7.1/24", os.path.join(self._work_dir, "primary.sock"))
        if not wait_until(lambda: os.path.exists(os.path.join(self._work_dir, "primary.sock")), SECONDS):
            raise CheckFailed("the application does not serve", self._application.story("application"))
        self._meet(self._primary_prefix(), self._attach(0), "beyond")

    def _between(self):
        self._meet(self._primary_prefix(), self._primary_prefix(), "between")

    def _start_testpmd(self, name, vdev, prefix=()):
        """Start stock testpmd on a port. It leaves queue 1 to process 1, a program of ours."""
        testpmd = Process(
            [*prefix, "dpdk-testpmd", "-l", "0,1", "-m", "64", f"--file-prefix={name}", "--no-pci", "--no-telemetry",
             "--vdev", vdev, "--", "--num-procs=2", "--proc-id=0", "--rxq=2", "--txq=2",
             "--total-num-mbufs=4096", "--forward-mode=rxonly", "--stats-period=1"], self._log("testpmd"))
        if not wait_until(lambda: "NIC statistics" in testpmd.output() or testpmd.poll() is not None, SECONDS) or \
                testpmd.poll() is not None:
            testpmd.kill()
            remove_primary(name)
            raise CheckFailed("testpmd does not run", testpmd.story("testpmd"))
        return testpmd

    @staticmethod
    def _secondary(name, port, address):
        return [UROCE_RUN, "--secondary", "1", "--file-prefix", name, "--port", port, "--ip", f"{address}/24", "--"]

    def _testpmd(self):
        """Run one testpmd at each end of a memif link."""
        names = [f"uroce-test-{os.getpid()}-{end}" for end in range(2)]
        primaries = []
        try:
            for name, role in zip(names, ("server", "client")):
                wire = f"net_memif0,role={role},socket={self._work_dir}/testpmd.sock,socket-abstract=no"
                primaries.append(self._start_testpmd(name, wire))
            self._application = primaries[0]
            self._meet(*[self._secondary(name, "net_memif0", f"10.9.8.{end + 1}") for end, name in enumerate(names)],
                       "testpmd")
        finally:
            self._application = None
            for name, primary in zip(names, primaries):
                primary.kill()
                remove_primary(name)

    def _testpmd_tap(self):
        """Answers come to the queue from which the request was sent, so the secondary must send first. The peer is
        the tap's kernel interface."""
        name = f"uroce-test-{os.getpid()}-tap"
        here = self._middle.prefix
        self._application = self._start_testpmd(name, "net_tap0,iface=tap0", here)
        try:
            # The port of the driver has the interface's first address.
            self._middle.run("ip", "link", "set", "tap0", "address", "02:00:00:00:00:01", "up")
            self._middle.run("ip", "addr", "add", "10.9.9.2/24", "dev", "tap0")
            self._meet([*here, UROCE_RUN, "--netdev", "tap0", "--"],
                       [*here, *self._secondary(name, "net_tap0", "10.9.9.1")], "tap")
        finally:
            self._stop()
            remove_primary(name)

    def _meet(self, server_prefix, client_prefix, name):
        """Start a program that waits for another one and verifies the data that it writes."""
        socket = os.path.join(self._work_dir, f"meet-{name}.sock")
        server = Process([*server_prefix, REMOTE_WRITE, "-s", socket], self._log("serve"))
        try:
            self._remote_write(client_prefix, [socket])
            if server.wait(SECONDS) != 0:
                raise CheckFailed("the server fails", server.story("server"))
        finally:
            server.kill()

    def _attach(self, end):
        # The application in the middle reads its interfaces by DPDK's net_af_packet, which loses packets of a run.
        return [*self._ends[end].prefix, UROCE_RUN, "--netdev", "veth0", "--without", "runs", "--"]

    def _embedded(self):
        sockets = [os.path.join(self._work_dir, f"embedded-{end}.sock") for end in range(2)]
        self._start("embedded", "10.9.7.1/24", sockets[0], "10.9.7.4/24", sockets[1])
        for end, socket in enumerate(sockets):
            self._remote_write(self._attach(end), [socket])
            if not wait_until(lambda text=f"port {end}: ": text in self._application.output(), SECONDS):
                raise CheckFailed(f"the application fails on port {end}", self._application.story("application"))
        if self._application.poll() is not None:
            raise CheckFailed("the application has ended", self._application.story("application"))

    def _through(self):
        """Two other programs talk to each other through the application's ports, by TCP and by RoCE."""
        hosts = [LocalHost(f"guests-through-{end}", self._work_dir, self._attach(end)) for end in range(2)]
        sides = [Side(host, DEVICE, f"10.9.7.{end + 2}", gid_index(gids(host, DEVICE), f"10.9.7.{end + 2}"))
                 for end, host in enumerate(hosts)]
        run_pair(PingPong([], 200, 16384), sides[0], sides[1], FIRST_PORT)
