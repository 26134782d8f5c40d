# SPDX-License-Identifier: BSD-3-Clause
"""The two sides of a storage test: the target's and the initiator's, on each kind of wire."""

import os

from harness.process import LocalHost, Namespace, Running, wait_until
from harness.tools import UROCE_RUN

START_SECONDS = 30


class Side:
    """One side: starts programs on its device, and others beside them in its network namespace."""

    def __init__(self, name, work_dir, cpu, namespace, port_options):
        self._started = 0
        self._name = name
        self._work_dir = work_dir
        self._cpu = cpu % os.cpu_count()
        self._namespace = namespace
        self._prefix = [*namespace.prefix, UROCE_RUN, *port_options, "--"]

    def start(self, argv):
        """Starts a program on the device. Each has an output file of its own."""
        return self._start(argv, self._prefix)

    def start_beside(self, argv):
        """Starts a program that needs no device, such as one that administrates a target."""
        return self._start(argv, self._namespace.prefix)

    def _start(self, argv, prefix):
        self._started += 1
        return LocalHost(f"{self._name}-{self._started}", self._work_dir, prefix, self._cpu).start(argv)


class Sides:
    """A wire's two sides. The target has the first address."""

    def __init__(self, wire, work_dir, target, initiator, address):
        self.wire = wire
        self.work_dir = work_dir
        self.target = target
        self.initiator = initiator
        self.address = address


def memif_sides(work_dir):
    """Two processes in one namespace, a shared-memory wire between them."""
    namespace = Namespace("stmemif")
    sides = []
    for cpu, role in enumerate(("server", "client")):
        options = ["--port", f"net_memif0,socket={work_dir}/st.sock,role={role},id=0", "--ip", f"10.9.11.{cpu + 1}/24"]
        sides.append(Side(f"memif-{role}", work_dir, cpu, namespace, options))
    return Sides("memif", work_dir, *sides, "10.9.11.1")


def veth_sides(work_dir):
    """Two namespaces with a veth pair, as two containers."""
    namespaces = [Namespace("stveth0"), Namespace("stveth1")]
    namespaces[0].run("ip", "link", "add", "veth0", "mtu", "9000", "type", "veth", "peer",
                      "name", "veth1", "mtu", "9000", "netns", namespaces[1].name)
    sides = []
    for cpu, namespace in enumerate(namespaces):
        namespace.run("ip", "link", "set", f"veth{cpu}", "up")
        namespace.run("ip", "addr", "add", f"10.9.12.{cpu + 1}/24", "dev", f"veth{cpu}")
        sides.append(Side(f"veth-{cpu}", work_dir, cpu, namespace, ["--netdev", f"veth{cpu}"]))
    return Sides("veth", work_dir, *sides, "10.9.12.1")


def make_sides(work_dir):
    """One after the other: a wire is made when its tests begin."""
    yield memif_sides(work_dir)
    yield veth_sides(work_dir)


class StorageRunning(Running):
    """Also waits for what storage programs say."""

    def wait_for_output(self, process, words, seconds=START_SECONDS):
        """Waits until a server says that it is ready."""
        if not wait_until(lambda: words in process.output() or process.poll() is not None, seconds) or \
                process.poll() is not None:
            self.fail(f"'{words}' is not printed")

    def expect(self, process, seconds, what):
        """The program ends in that time, with exit status 0; returns its output."""
        status = process.wait(seconds)
        if status != 0:
            self.fail(f"{what}: hangs (after {seconds} s)" if status is None else f"{what}: exit {status}")
        return process.output()
