# SPDX-License-Identifier: BSD-3-Clause
"""A bond of two devices, which EAL's options make: net_bonding at one end, a bridge of the kernel at the other."""

import os

from harness.process import Namespace, Process, Running, ask, wait_until
from harness.tools import UROCE_RUN

UROCED = os.path.join(os.path.dirname(UROCE_RUN), "uroced")
REMOTE_WRITE = os.path.join(os.path.dirname(UROCE_RUN), "examples", "remote_write")
SECONDS = 60
BOND = ["--eal", "--vdev net_af_packet0,iface=veth0 --vdev net_af_packet1,iface=veth1",
        "--port", "net_bonding0,mode=1,slave=net_af_packet0,slave=net_af_packet1", "--ip", "10.9.3.1/24"]


class BondTest:
    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._names = 0
        self._bond, self._bridge = Namespace("bond"), Namespace("bridge")
        self._bridge.run("ip", "link", "add", "bridge0", "type", "bridge")
        self._bridge.run("ip", "addr", "add", "10.9.3.2/24", "dev", "bridge0")
        self._bridge.run("ip", "link", "set", "bridge0", "up")
        for number in range(2):
            self._bond.run("ip", "link", "add", f"veth{number}", "type", "veth", "peer", "name", f"veth{number}", "netns",
                           self._bridge.name)
            self._bond.run("ip", "link", "set", f"veth{number}", "up")
            self._bridge.run("ip", "link", "set", f"veth{number}", "master", "bridge0", "up")

    def run_all(self):
        self._report.check("bond: verified data of a program with the port", self._alone)
        self._report.check("bond: verified data of a program of uroced", self._shared)

    def _start(self, running, *argv):
        self._names += 1
        return running.add(Process(argv, os.path.join(self._work_dir, f"bond-{self._names}.log")))

    def _write(self, running, *prefix):
        """Let a program behind the bridge write into the memory of one behind the bond; both verify the data."""
        socket = os.path.join(self._work_dir, f"bond-{self._names}.sock")
        # DPDK's net_af_packet, which the bond uses, loses packets of a run.
        programs = [self._start(running, *prefix, REMOTE_WRITE, "-s", socket),
                    self._start(running, *self._bridge.prefix, UROCE_RUN, "--netdev", "bridge0", "--without", "runs", "--",
                                REMOTE_WRITE, socket)]
        if any(program.wait(SECONDS) != 0 for program in programs):
            running.fail("a side fails")

    def _alone(self):
        with Running() as running:
            self._write(running, *self._bond.prefix, UROCE_RUN, *BOND, "--")

    def _shared(self):
        path = os.path.join(self._work_dir, "bond.sock")
        with Running() as running:
            self._start(running, *self._bond.prefix, UROCED, *BOND, "--socket", path)
            if not wait_until(lambda: ask([UROCED, "--status", "--socket", path], SECONDS).returncode == 0, SECONDS):
                running.fail("uroced does not serve")
            self._write(running, UROCE_RUN, "--socket", path, "--")
