# SPDX-License-Identifier: BSD-3-Clause
"""Stock dpdk-testpmd owns a NIC, and leaves its second queue to a program of ours, its secondary process."""

from harness.tools import DEVICE, PerfTest, Side, gid_index, gids, run_pair

import events
import ports
from overlay import GUEST_UROCE_RUN, TESTPMD

FIRST_PORT = 22400
PAIR_SECONDS = 180
PREFIX = "testpmd"
HUGETLBFS = "mkdir -p /dev/hugepages && { grep -q /dev/hugepages /proc/mounts || mount -t hugetlbfs none /dev/hugepages; }"
OPTIONS = ["--num-procs=2", "--proc-id=0", "--rxq=2", "--txq=2", "--total-num-mbufs=4096", "--forward-mode=rxonly",
           "--stats-period=1"]
# The program in the guest sends first. testpmd takes half of the one emulated CPU.
PROGRAMS = [PerfTest(f"ib_{verb}_bw", ["-m", "1024", "-u", "18"], 100) for verb in ("write", "read", "send")]


class SecondaryPort(ports.UrocePort):
    """Queue 1 of testpmd's NIC."""

    def __init__(self, guest, nic):
        super().__init__(guest, nic)
        self._prefix = [GUEST_UROCE_RUN, "--secondary", "1", "--file-prefix", PREFIX, "--port", nic.pci, "--ip",
                        f"{nic.address}/24", "--"]


def run(report, guest, peer):
    """There are no flow rules. Linux's tap device behind the NIC delivers answers to the queue that the request
    came from."""
    nic = ports.NICS[0]
    name = f"secondary of testpmd on {nic.name}"
    ports.bind(guest, nic, "vfio-pci")
    guest.run(HUGETLBFS)
    testpmd = guest.start([TESTPMD, "--lcores", "0@0,1@0", "-a", nic.pci, f"--file-prefix={PREFIX}", "-m", "64",
                           "--no-telemetry", "--", *OPTIONS])
    try:
        if not report.require(f"{name}: testpmd runs", events.wait_for, testpmd, "NIC statistics"):
            return
        host = SecondaryPort(guest, nic)
        for number, program in enumerate(PROGRAMS):
            def cell():
                ours = Side(host, DEVICE, host.address, gid_index(gids(host, DEVICE), host.gid_address))
                theirs = Side(peer, DEVICE, peer.address, gid_index(gids(peer, DEVICE), peer.address))
                run_pair(program, theirs, ours, FIRST_PORT + number, PAIR_SECONDS)
            report.check(f"{name}: {program.name}", cell)
    finally:
        testpmd.kill()
        guest.run(f"rm -rf /dev/hugepages/{PREFIX}* /var/run/dpdk/{PREFIX}")
