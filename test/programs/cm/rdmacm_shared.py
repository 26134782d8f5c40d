# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs that connect by librdmacm.so.1, as processes of one uroced or of two."""

import os

from harness.process import LocalHost, Namespace, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import UROCE_RUN
from programs.cm.rdmacm import Addresses, CmMemif, CmVeth, RdmacmTest, CmRunning
from programs.cm.rdmacm_ends import EndsTest
from programs.share.share import SECONDS, Uroced

FORKED = os.path.join(os.path.dirname(UROCE_RUN), "..", "test", "programs", "forked")
FORKED_PORT = "7420"

# The process that is the server, the one that is the client, and the parts of the checks that they run.
PAIRS = (
    ("attached", "attached", "ipv4"),
    ("attached", "far", "ipv6"),
    ("isolated", "isolated", "ipv6"),
    ("isolated", "far", "ipv4"),
    ("far", "isolated", "ipv6"),
)
MORE = (
    ("attached", "attached", "ipv4"),
    ("attached", "far", "ipv6"),
    ("isolated", "isolated", "ipv4"),
)
ENDS = (
    ("attached", "attached"),
    ("attached", "far"),
    ("isolated", "attached"),
    ("attached", "isolated"),
)


class Pair:
    """Two processes, in the place of the two ends of a link in RdmacmTest. `more` makes another client's host."""

    def __init__(self, name, hosts, addresses, more):
        self.name = name
        self.hosts = hosts
        self.addresses = addresses
        self.more = more


class Uroceds:
    """Two namespaces with a veth pair, and an uroced in each. Names of files and namespaces contain `name`."""

    def __init__(self, work_dir, name):
        self._name = name
        self._work_dir = os.path.join(work_dir, name)
        os.mkdir(self._work_dir)
        self.namespaces = [Namespace(f"{name}{number}") for number in range(2)]
        self.ipv4 = ["10.9.9.1", "10.9.9.2"]
        self.ipv6 = ["fd09:9::1", "fd09:9::2"]
        veth_pair(*self.namespaces, self.ipv4)
        self.owners = []
        for number, namespace in enumerate(self.namespaces):
            netdev = f"veth{number}"
            namespace.run("ip", "addr", "add", f"{self.ipv6[number]}/64", "dev", netdev, "nodad")
            self.owners.append(Uroced(namespace, self._work_dir, netdev,
                                      f"--isolated={self._work_dir}/isolated{number}.sock",
                                      "--file-prefix", f"uroce-{name}{number}-{os.getpid()}", name=f"uroced{number}"))
        self._names = 0

    def start(self):
        for owner in self.owners:
            owner.run()

    def stop(self):
        for owner in self.owners:
            owner.process.kill()

    def host(self, place):
        """Return a place that runs programs, with its own log."""
        number = 1 if place == "far" else 0
        self._names += 1
        how = f"--isolated={self._work_dir}/isolated{number}.sock" if place == "isolated" \
            else f"--socket={self.owners[number].socket}"
        return LocalHost(f"{self._name}-{place}-{self._names}", self._work_dir,
                         [*self.namespaces[number].prefix, UROCE_RUN, how, "--"])

    def pair(self, server, client):
        at = [1 if place == "far" else 0 for place in (server, client)]
        return Pair(f"{server} to {client}", [self.host(server), self.host(client)],
                    Addresses([self.ipv4[number] for number in at], [self.ipv6[number] for number in at]),
                    lambda: self.host(client))

    def fork(self, place):
        """forked.c, with nothing left behind."""
        with CmRunning() as running:
            program = running.start(self.host(place), [FORKED, self.ipv4[0], FORKED_PORT])
            running.expect(program, SECONDS, "program that forks")
        self.come_back()

    def beside(self):
        """Another program or uroced on the first interface cannot become its connection manager."""
        address = self.ipv4[0]
        alone = LocalHost("cm-alone", self._work_dir,
                          [*self.namespaces[0].prefix, UROCE_RUN, "--netdev", "veth0", "--"])
        second = Uroced(self.namespaces[0], self._work_dir, "veth0", "--file-prefix", f"uroce-cm2-{os.getpid()}",
                        name="uroced2")
        attached = LocalHost("cm-second", self._work_dir,
                             [*self.namespaces[0].prefix, UROCE_RUN, f"--socket={second.socket}", "--"])
        second.run()
        try:
            with CmRunning() as running:
                for host, words in ((alone, "run uroced on it"), (attached, "Address already in use")):
                    program = running.start(host, ["rping", "-s", "-a", address])
                    if program.wait(SECONDS) in (None, 0) or words not in program.output():
                        running.fail(f"a program is not told '{words}'")
                    running.expect(running.start(host, ["ibv_devinfo"]), SECONDS, "program without rdma_cm")
        finally:
            second.process.kill()

    def come_back(self):
        """Programs that have ended leave nothing behind."""
        for owner in self.owners:
            if not wait_until(owner.is_clean, SECONDS):
                raise CheckFailed("uroced did not get everything back", [str(owner.status())])


def run_rdmacm(report, work_dir):
    """Run the checks of processes that have ports of their own."""
    for make in (CmMemif, CmVeth):
        wire = make(work_dir)
        RdmacmTest(report, wire).run_all()
        EndsTest(report, wire).run_leave()
    EndsTest(report, wire).run_alone()
    EndsTest(report, wire).run_changes(wire.namespaces[0], "veth0")


def run_rdmacm_shared(report, work_dir):
    uroceds = Uroceds(work_dir, "cm")
    if not report.require("rdmacm: two uroceds start", uroceds.start):
        return
    try:
        for server, client, family in PAIRS:
            RdmacmTest(report, uroceds.pair(server, client)).run_family(family)
        for server, client, family in MORE:
            RdmacmTest(report, uroceds.pair(server, client)).run_more(family)
        programs = list(RdmacmTest.perftests_short())
        RdmacmTest(report, uroceds.pair("attached", "far")).run_perftests(programs if report.complete else programs[::3], "ipv4")
        RdmacmTest(report, uroceds.pair("attached", "isolated")).run_perftests(
            [("ib_send_bw", []), ("ib_write_lat", [])], "ipv4")
        for server, client in ENDS:
            EndsTest(report, uroceds.pair(server, client)).run_kills()
        for server, client in (("attached", "attached"), ("attached", "isolated")):
            EndsTest(report, uroceds.pair(server, client)).run_ports()
        EndsTest(report, uroceds.pair("attached", "far")).run_leave()
        for place in ("attached", "isolated"):
            report.check(f"rdmacm: {place}: parent and child connect", uroceds.fork, place)
        report.check("rdmacm: uroced: others on its interface", uroceds.beside)
        report.check("rdmacm: uroced: everything comes back", uroceds.come_back)
        for place, owner in (("attached", uroceds.owners[0]), ("far", uroceds.owners[1])):
            ends = EndsTest(report, uroceds.pair(place, "attached"))
            ends.check("uroced is killed", lambda ends=ends, owner=owner: ends.owner_killed(owner))
    finally:
        uroceds.stop()
