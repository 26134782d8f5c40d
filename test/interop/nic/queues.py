# SPDX-License-Identifier: BSD-3-Clause
"""Two engines of a device on a NIC with a pair of queues for each: two programs in the guest, each with a NIC."""

import re

from harness.process import wait_until
from harness.report import CheckFailed

import events
import ports
from overlay import GUEST_QP_CROWD

SOCKET = "/tmp/crowd.sock"
SECONDS = 300  # one emulated processor runs all threads of both programs
QUEUES = "has 2 receive and 2 transmit queues for 2 engines"


def _counter(output, name):
    found = re.search(rf"\b{name} (\d+)$", output, re.M)
    return int(found.group(1)) if found else 0


def _crowd(guest, nics):
    """The queue pairs of each engine of the one are connected to those of all engines of the other."""
    guest.run(f"rm -f {SOCKET}")
    hosts = [ports.UrocePort(guest, nic, ports.TWO_ENGINES) for nic in nics]
    programs = []
    try:
        programs.append(hosts[0].start([GUEST_QP_CROWD, "first", SOCKET]))
        # The program makes its socket when its port is ready.
        if not wait_until(lambda: guest.run(f"test -S {SOCKET}")[0] == 0 or programs[0].poll() is not None, SECONDS, 0.2):
            raise CheckFailed("the first program does not start", programs[0].story("guest"))
        programs.append(hosts[1].start([GUEST_QP_CROWD, "second", SOCKET]))
        statuses = [program.wait(SECONDS) for program in programs]
        stories = [line for program, nic in zip(programs, nics) for line in program.story(nic.name)]
        outputs = [program.output() for program in programs]
    finally:
        for program in programs:
            program.kill()
    if statuses != [0, 0]:
        raise CheckFailed(f"exit {statuses}", stories)
    for output in outputs:
        if QUEUES not in output:
            raise CheckFailed("a port has not two queues", stories)
        # An engine without its queue would send by the first one.
        if _counter(output, "rx_packets") == 0 or _counter(output, "tx_crossed") > 0:
            raise CheckFailed("packets of one engine leave by the other", stories)


def run(report, guest):
    virtio, _, vmxnet3 = ports.NICS
    for nic in (virtio, vmxnet3):
        ports.bind(guest, nic, "vfio-pci")
    if report.require("virtio and vmxnet3: 2 engines with queues of their own", _crowd, guest, (virtio, vmxnet3)):
        report.check("virtio: 2 engines with queues of their own, link down and up", events.watch_link, guest, virtio,
                     ports.UrocePort(guest, virtio, ports.TWO_ENGINES))
