# SPDX-License-Identifier: BSD-3-Clause
"""A program that has a NIC and does nothing. Its helper thread answers pings, and otherwise sleeps until a frame
comes."""

from harness.process import wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE

import events
import ports

PROGRAM = "ibv_asyncwatch"
SECONDS = 4
# The helper thread checks 50 times a second, which takes 2 or 3% of an emulated CPU. One that polls takes all of it.
CPU_PERCENT_MAX = 50
SWITCHES_MAX = 250  # for each second; a thread that checks every millisecond has more
ASK = (f"cat /proc/uptime; for task in /proc/$(pidof {PROGRAM})/task/*; do "
       "cat $task/schedstat; grep ^voluntary $task/status; done")


def _look(guest):
    """Return the guest's seconds since boot, and for all threads their CPU seconds and how often they went to
    sleep."""
    status, output = guest.run(ASK)
    if status:
        raise CheckFailed(f"/proc has no data about the program: {output}")
    uptime, *lines = [line.split() for line in output.splitlines()]
    return (float(uptime[0]), sum(int(line[0]) for line in lines if len(line) == 3) / 1e9,
            sum(int(line[1]) for line in lines if len(line) == 2))


def _sleeps(guest, nic, host):
    program = host.start([PROGRAM, "-d", DEVICE])
    try:
        events.wait_for(program, "async event FD")
        status, output = guest.run(f"ping -c 3 -w 60 {nic.address}", 2 * events.EVENT_SECONDS)
        if status:
            raise CheckFailed(f"the peer did not answer: {output}", program.story("guest"))
        before = _look(guest)
        wait_until(lambda: False, SECONDS)
        seconds, cpu, switches = (after - then for after, then in zip(_look(guest), before))
        if cpu > seconds * CPU_PERCENT_MAX / 100 or switches > seconds * SWITCHES_MAX:
            raise CheckFailed(f"in {seconds:.1f} s it runs for {cpu:.2f} s, and sleeps {switches} times")
    finally:
        program.kill()


def run(report, guest):
    virtio = ports.NICS[0]
    ports.bind(guest, virtio, "vfio-pci")
    report.check("virtio: an idle program sleeps", _sleeps, guest, virtio, ports.UrocePort(guest, virtio))
