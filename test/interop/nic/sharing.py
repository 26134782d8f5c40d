# SPDX-License-Identifier: BSD-3-Clause
"""uroced on a NIC: programs share it, get its link events and its removal, and an uroced that was killed starts
again."""

import re
import shlex

from harness.process import wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, PerfTest, Side, gid_index, gids, run_pair

import events
import ports
from overlay import GUEST_UROCE_RUN, GUEST_UROCED

FIRST_PORT = 22100
PAIR_SECONDS = 180
END_SECONDS = 60
LONG_TIMEOUT = ["-u", "18"]
READY = "programs attach at"
WRITE = PerfTest("ib_write_bw", ["-m", "4096", *LONG_TIMEOUT], 100)
SEND = PerfTest("ib_send_bw", ["-m", "1024", *LONG_TIMEOUT], 100)


class Sharing:
    """One NIC, bound to one driver, and the uroced on it."""

    def __init__(self, report, guest, nic, driver, peer, first_port):
        self._report = report
        self._guest = guest
        self._nic = nic
        self._name = f"uroced on {nic.name} {driver}"
        self._peer = peer
        self._port = first_port
        self._host = ports.SharedPort(guest, nic)
        self._owner = None
        self._indices = {}

    def _start(self):
        self._owner = self._host.start_owner()
        events.wait_for(self._owner, READY)

    def _side(self, host):
        if host.name not in self._indices:
            self._indices[host.name] = gid_index(gids(host, DEVICE), getattr(host, "gid_address", host.address))
        return Side(host, DEVICE, host.address, self._indices[host.name])

    def _pair(self, program, server, client):
        self._port += 1
        run_pair(program, self._side(server), self._side(client), self._port, PAIR_SECONDS)

    def start(self):
        return self._report.require(f"{self._name}: starts", self._start)

    def traffic(self, programs):
        for program in programs:
            self._report.check(f"{self._name}: {program.name}", self._pair, program, self._peer, self._host)

    def between(self):
        self._report.check(f"{self._name}: between two of its programs", self._pair, SEND, self._host, self._host)

    def link(self):
        self._report.check(f"{self._name}: link down and up", events.watch_link, self._guest, self._nic, self._host)

    def restart(self):
        def cell():
            self._owner.kill()
            self._start()
        return self._report.require(f"{self._name}: killed and started again", cell)

    def pull_out(self):
        def cell():
            events.pull_out_watched(self._guest, self._nic, self._host)
            if self._owner.wait(END_SECONDS) != 1:
                raise CheckFailed("uroced did not exit with 1", self._owner.story("guest"))
        return self._report.require(f"{self._name}: pulled out", cell)

    def stop(self):
        """Do not use SIGKILL: a NIC under UIO that keeps running would continue to read memory when its next driver
        has an IOMMU."""
        def cell():
            self._owner.terminate()
            if self._owner.wait(END_SECONDS) != 0:
                raise CheckFailed("uroced did not exit with 0", self._owner.story("guest"))
        self._report.require(f"{self._name}: ends", cell)


def run_cell(sharing, programs):
    """Run everything but the removal. Return True if an uroced still runs."""
    started = sharing.start() and sharing.restart()
    if started:
        sharing.traffic(programs)
        sharing.link()
    return started


def _wait_for_ports(guest, socket, names):
    """Wait until a program that attaches has exactly these devices."""
    def shown():
        program = guest.start([GUEST_UROCE_RUN, "--socket", socket, "--", "ibv_devinfo"])
        program.wait(END_SECONDS)
        return re.findall(r"^hca_id:\s*(\S+)", program.output(), re.M)
    if not wait_until(lambda: shown() == names, END_SECONDS, 0.5):
        raise CheckFailed(f"the devices are {shown()}")


def _two_ports(guest):
    """Pull one of two NICs out: programs continue with the other, and new programs have only that one."""
    virtio, other = ports.NICS[:2]
    socket, config = "/tmp/two.sock", "/tmp/two.conf"
    lines = ["[uroce]", f"socket = {socket}", "max-buffers = 768"]
    for nic in (virtio, other):
        lines += [f"[port {nic.name}]", f"port = {nic.pci}", f"ip = {nic.address}/24"]
    guest.run(f"printf '%s\\n' {shlex.join(lines)} >{config}")
    for nic in (virtio, other):
        ports.bind(guest, nic, "vfio-pci")
    owner = guest.start([GUEST_UROCED, "--config", config, "--log-level", "info"])
    watcher = None
    try:
        events.wait_for(owner, READY)
        _wait_for_ports(guest, socket, [virtio.name, other.name])
        watcher = guest.start([GUEST_UROCE_RUN, "--socket", socket, "--", "ibv_asyncwatch", "-d", virtio.name])
        events.wait_for(watcher, "async event FD")
        events.unplug(guest, virtio)
        events.wait_for(watcher, "DEVICE_FATAL")
        _wait_for_ports(guest, socket, [other.name])
        if owner.poll() is not None:
            raise CheckFailed("uroced has ended", owner.story("guest"))
        owner.terminate()
        if owner.wait(END_SECONDS) != 0:
            raise CheckFailed("uroced did not exit with 0", owner.story("guest"))
    finally:
        if watcher:
            watcher.kill()
        owner.kill()


def run(report, guest, peer, everything):
    """The virtio NIC is bound to vfio-pci before and after."""
    virtio = ports.NICS[0]
    cells = [(nic, driver) for driver in ports.BINDINGS for nic in ports.NICS] if everything else []
    for number, (nic, driver) in enumerate(cells):
        ports.bind(guest, nic, driver)
        sharing = Sharing(report, guest, nic, driver, peer, FIRST_PORT + 10 * number)
        if run_cell(sharing, (WRITE, SEND)):
            sharing.between()
            sharing.stop()
    if everything and report.require("uroced on two NICs: one is pulled out", _two_ports, guest):
        report.require("uroced on two NICs: plugged in after that", events.plug_in, guest, virtio)
    ports.bind(guest, virtio, "vfio-pci")
    sharing = Sharing(report, guest, virtio, "vfio-pci", peer, FIRST_PORT + 10 * len(cells))
    if run_cell(sharing, (WRITE,)) and sharing.pull_out():
        report.require(f"{virtio.name}: plugged in after that", events.plug_in, guest, virtio)
