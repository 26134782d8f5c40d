# SPDX-License-Identifier: BSD-3-Clause
"""A device on a NIC that accepts no flow rules has one engine, and says so: two programs in the guest, each with a NIC."""

from harness.process import wait_until
from harness.report import CheckFailed

import ports
from overlay import GUEST_QP_CROWD

SOCKET = "/tmp/crowd.sock"
SECONDS = 300  # one emulated processor runs all threads of both programs
ONE_ENGINE = "has queues for 1 engine: the device has no more, not 2"


def _crowd(guest, nics):
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
        if ONE_ENGINE not in output:
            raise CheckFailed("no line says that the device has one engine", stories)


def run(report, guest):
    virtio, _, vmxnet3 = ports.NICS
    for nic in (virtio, vmxnet3):
        ports.bind(guest, nic, "vfio-pci")
    report.check("virtio and vmxnet3: one engine of two", _crowd, guest, (virtio, vmxnet3))
