# SPDX-License-Identifier: BSD-3-Clause
"""The two sides of a storage test, the target's and the initiator's, on each kind of link."""

import contextlib
import json
import os

from harness.process import LocalHost, Namespace, Process, Running, ask, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import UROCE_CTL, UROCE_RUN

UROCED = os.path.join(os.path.dirname(UROCE_RUN), "uroced")
START_SECONDS = 30
ASK_SECONDS = 30
FREE_PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"


class Side:
    """One side: it starts programs on its device, and other programs in its network namespace."""

    def __init__(self, name, work_dir, cpu, namespace, port_options):
        self._started = 0
        self._name = name
        self._work_dir = work_dir
        self.cpu = cpu % os.cpu_count()
        self._namespace = namespace
        self.port_options = port_options
        self._prefix = [*namespace.prefix, UROCE_RUN, *port_options, "--"]

    def start(self, argv, options=()):
        """Start a program on the device. Each has its own output file. The options are uroce-run's."""
        return self._start(argv, [*self._prefix[:-1], *options, "--"])

    def start_beside(self, argv):
        """Start a program that needs no device, such as the one that configures a target."""
        return self._start(argv, self._namespace.prefix)

    def _start(self, argv, prefix):
        self._started += 1
        return LocalHost(f"{self._name}-{self._started}", self._work_dir, prefix, self.cpu).start(argv)


class Sides:
    """The two sides of a link. The target has the first address, and by the kernel's TCP it has `kernel_address`."""

    def __init__(self, wire, work_dir, target, initiator, address, owner=None, kernel_address="127.0.0.1"):
        self.owner = owner  # the uroced that both are attached to
        self.kernel_address = kernel_address
        self.wire = wire
        self.work_dir = work_dir
        self.target = target
        self.initiator = initiator
        self.address = address


def memif_sides(work_dir, name=""):
    """Return two processes in one namespace, connected by memif. Links that exist together have different names."""
    namespace = Namespace("stmemif" + name)
    sides = []
    for cpu, role in enumerate(("server", "client")):
        options = ["--port", f"net_memif0,socket={work_dir}/st{name}.sock,role={role},id=0", "--ip", f"10.9.11.{cpu + 1}/24"]
        sides.append(Side(f"memif-{role}", work_dir, cpu, namespace, options))
    return Sides("memif", work_dir, *sides, "10.9.11.1")


def veth_sides(work_dir, name=""):
    """Return two namespaces with a veth pair, as two containers."""
    namespaces = [Namespace("stveth0" + name), Namespace("stveth1" + name)]
    veth_pair(*namespaces, ("10.9.12.1", "10.9.12.2"))
    sides = [Side(f"veth-{cpu}", work_dir, cpu, namespace, ["--netdev", f"veth{cpu}"]) for cpu, namespace in enumerate(namespaces)]
    return Sides("veth", work_dir, *sides, "10.9.12.1", kernel_address="10.9.12.1")


def attached_sides(work_dir):
    """Two processes that share one uroced: their packets go from one to the other."""
    namespace = Namespace("stowner")
    sockets = {name: os.path.join(work_dir, f"{name}.sock") for name in ("attached", "isolated")}
    owner = Process([*namespace.prefix, UROCED, "--port", "net_null0", "--mtu", "4200", "--ip", "10.9.14.1/24",
                     "--socket", sockets["attached"], f"--isolated={sockets['isolated']}"],
                    os.path.join(work_dir, "uroced.log"))
    if not wait_until(lambda: os.path.exists(sockets["isolated"]) or owner.poll() is not None, START_SECONDS) \
            or owner.poll() is not None:
        raise CheckFailed("uroced does not start", owner.story("uroced"))
    for wire, option in (("attached", "--socket"), ("isolated", "--isolated")):
        sides = [Side(f"{wire}-{cpu}", work_dir, cpu, namespace, [f"{option}={sockets[wire]}"]) for cpu in range(2)]
        yield Sides(wire, work_dir, *sides, "10.9.14.1", owner)


def lacks_pages(pages):
    """Return why so many huge pages of 2 MiB cannot be had; None if they can."""
    free = 0
    with contextlib.suppress(OSError), open(FREE_PAGES, encoding="ascii") as file:
        free = int(file.read())
    return f"{free} huge pages of 2 MiB are free, and {pages} are needed" if free < pages else None


def packets_lost(process):
    """Return how many packets the impaired port of a running process has lost."""
    done = ask([UROCE_CTL, "-j", "statistic", "show", "pid", str(process.pid)], ASK_SECONDS)
    return json.loads(done.stdout)[0]["impair_lost"] if done.returncode == 0 else 0


class StorageRunning(Running):
    """A running check that can also wait for the output of storage programs."""

    def wait_for(self, process, condition, reason, seconds=START_SECONDS):
        """Wait until a server is ready. If it is not, the check fails for the reason."""
        if not wait_until(lambda: condition() or process.poll() is not None, seconds) or process.poll() is not None:
            self.fail(reason)

    def wait_for_output(self, process, words, seconds=START_SECONDS):
        """Wait until a server reports that it is ready."""
        self.wait_for(process, lambda: words in process.output(), f"'{words}' is not printed", seconds)

    def expect(self, process, seconds, what):
        """Check that the program ends in that time with exit status 0; return its output."""
        status = process.wait(seconds)
        if status != 0:
            self.fail(f"{what}: hangs (after {seconds} s)" if status is None else f"{what}: exit {status}")
        return process.output()

    def expect_landed(self, landed, kills):
        """Check that at least half of the kills fell between a writer's first and its last acknowledged block."""
        if 2 * landed < kills:
            self.fail(f"only {landed} of {kills} kills came while the initiator wrote")
