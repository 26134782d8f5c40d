# SPDX-License-Identifier: BSD-3-Clause
"""Ports of DPDK's drivers that cannot bring packets to a queue by their queue pair have one engine, and say so: vhost with
virtio-user, packet sockets of DPDK's driver on a veth pair, and net_tap with its kernel interface."""

import os
import re
import time

from programs.run.engine_ports import judge_one_engine, run_crowd
from harness.process import LocalHost, Namespace, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN

FIRST_PORT = 23500
START_SECONDS = 30
IDLE_RATE = 150  # wake-ups a second: a helper that sleeps for 20 ms at a time has 50 to 100, one that sleeps for 1 ms 900
# Give the kernel's end of a tap another MAC address than the driver's, when the first program has made it and listens.
TAP_END = ('until [ -S "$0" ]; do sleep 0.05; done; echo 0 >/proc/sys/net/ipv6/conf/utap0/accept_dad && '
           'ip link set utap0 down && ip link set utap0 address 02:00:00:00:00:99 up && exec "$@"')


def wake_ups(pid):
    """Return how often the helper of a process has woken so far."""
    counts = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as file:
            status = file.read()
        if status.startswith("Name:\turoce\n"):
            counts.append(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)$", status, re.M).group(1)))
    if not counts:
        raise CheckFailed("the process has no helper", [])
    return sum(counts)


class PortQueuesTest:
    """The first side of each pair opens its device before the second one."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._port = FIRST_PORT
        self._socket = os.path.join(work_dir, "queues.sock")
        self._meeting = os.path.join(work_dir, "queues-crowd.sock")
        self._space = Namespace("queues")
        self._spaces = [Namespace("queues0"), Namespace("queues1")]
        veth_pair(*self._spaces, ("10.9.8.101", "10.9.8.102"), mtu=4200)

    def _host(self, space, side, engines, options):
        return LocalHost(f"queues-{side}", self._work_dir, [
            *space.prefix, UROCE_RUN, "--engines", str(engines), "--log-level", "info", "--mtu", "4200", "--ip",
            f"10.9.8.{side + 1}/24", "--ip", f"fd09:8::{side + 1}/64", *options, "--"])

    def _vhost(self, engines, *more):
        """Return a vhost and a virtio-user port."""
        if os.path.exists(self._socket):
            os.unlink(self._socket)
        ports = (f"net_vhost0,iface={self._socket}",
                 f"net_virtio_user0,path={self._socket},queues=2,queue_size=1024,packed_vq=1")
        return [self._host(self._space, side, engines, ["--port", port, *more]) for side, port in enumerate(ports)]

    def _sockets(self, engines):
        """Return packet sockets of DPDK's driver."""
        return [self._host(space, side, engines, ["--port", f"net_af_packet0,iface=veth{side}"])
                for side, space in enumerate(self._spaces)]

    def _tap(self):
        """Return a tap, and uroce on the kernel interface that is its other end, which has two engines."""
        netdev = LocalHost("queues-1", self._work_dir, [
            *self._space.prefix, "sh", "-c", TAP_END, self._meeting, UROCE_RUN, "--engines", "2", "--log-level", "info",
            "--netdev", "utap0", "--without", "runs", "--"])
        return [self._host(self._space, 0, 2, ["--port", "net_tap0,iface=utap0", "--mtu", "1500"]), netdev]

    def _crowd(self, make_hosts, judges, *args):
        run_crowd(make_hosts(*args), self._meeting, judges)

    def _refused(self, space, port):
        """Nobody would read the second queue."""
        program = self._host(space, 0, 1, ["--port", port]).start(["ibv_devinfo"])
        if program.wait(START_SECONDS) != 1 or "cannot bring packets to a queue by their queue pair" not in program.output():
            raise CheckFailed("the port is not refused", program.story("ibv_devinfo"))

    def _idle(self):
        """The helper of an idle vhost without a peer hardly wakes, although frames do not wake it."""
        self._port += 1
        program = self._vhost(2)[0].start(["ibv_rc_pingpong", "-d", DEVICE, "-p", str(self._port)])
        try:
            if not wait_until(lambda: program.listens(self._port), START_SECONDS):
                raise CheckFailed("the program does not listen", program.story("the program"))
            time.sleep(1)
            before, begun = wake_ups(program.pid), time.monotonic()
            time.sleep(3)
            rate = (wake_ups(program.pid) - before) / (time.monotonic() - begun)
            if rate > IDLE_RATE:
                raise CheckFailed(f"the helper wakes {rate:.0f} times a second", program.story("the program"))
        finally:
            program.kill()

    def run_all(self):
        check, one = self._report.check, [judge_one_engine, judge_one_engine]
        check("queues: vhost and virtio-user, 4 engines", self._crowd, self._vhost, one, 4)
        check("queues: an impaired vhost, 2 engines", self._crowd, self._vhost, one, 2, "--impair", "loss=0.0001")
        check("queues: an idle vhost without a peer sleeps", self._idle)
        check("queues: packet sockets, 3 engines", self._crowd, self._sockets, one, 3)
        check("queues: tap, 2 engines", self._crowd, self._tap, [judge_one_engine, lambda *_: None])
        check("queues: a vhost with two", self._refused, self._space, f"net_vhost0,iface={self._socket},queues=2")
        check("queues: packet sockets with two", self._refused, self._spaces[0], "net_af_packet0,iface=veth0,qpairs=2")
