# SPDX-License-Identifier: BSD-3-Clause
"""A NIC whose link goes down and up, and that is pulled out while it is used."""

from harness.process import wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, PerfTest, Side, gid_index, gids

import ports

EVENT_SECONDS = 60
TRAFFIC_SECONDS = 180
FLAP_SECONDS = 20   # duration of the traffic: longer than the test changes the link
PRESSES = 4
STARTS = 12
GAP_SECONDS = 1.5   # shorter than all retries of a queue pair (8 x 1 s)
PORT = 21950


def wait_for(process, text):
    if not wait_until(lambda: text in process.output() or process.poll() is not None, EVENT_SECONDS, 0.2):
        raise CheckFailed(f"no '{text}'", process.story("guest"))
    if text not in process.output():
        raise CheckFailed("the program ended early", process.story("guest"))


def watch_link(guest, nic, host):
    watcher = host.start(["ibv_asyncwatch", "-d", DEVICE])
    try:
        wait_for(watcher, "async event FD")
        guest.monitor(f"set_link {nic.name} off")
        wait_for(watcher, "PORT_ERR")
        guest.monitor(f"set_link {nic.name} on")
        wait_for(watcher, "PORT_ACTIVE")
    finally:
        guest.monitor(f"set_link {nic.name} on")
        watcher.kill()


def unplug(guest, nic):
    """Press the button of the slot. The guest may miss it, for example while it still initialises the device."""
    for _ in range(PRESSES):
        guest.monitor(f"device_del {nic.name}")
        gone = f"test ! -e /sys/bus/pci/devices/{nic.pci}"
        if wait_until(lambda: guest.run(gone)[0] == 0, EVENT_SECONDS / PRESSES, 0.2):
            return
    raise CheckFailed("the kernel did not get the device back")


def _find_link_up(host):
    """The NIC takes its link down for a moment when it starts, so a program may find it up or down. It gets several
    attempts."""
    for _ in range(STARTS):
        devinfo = host.start(["ibv_devinfo", "-d", DEVICE])
        try:
            if devinfo.wait(EVENT_SECONDS) != 0 or "PORT_ACTIVE" not in devinfo.output():
                raise CheckFailed("the port is not active", devinfo.story("guest"))
        finally:
            devinfo.kill()


class Traffic:
    """A running ib_write_bw from the guest."""

    def __init__(self, host, peer, port, seconds):
        ours = Side(host, DEVICE, host.address, gid_index(gids(host, DEVICE), host.gid_address))
        theirs = Side(peer, DEVICE, peer.address, gid_index(gids(peer, DEVICE), peer.address))
        program = PerfTest("ib_write_bw", ["-u", "18", "-D", str(seconds)])
        self.server = peer.start(program.argv(theirs, port))
        if not wait_until(lambda: self.server.listens(port), EVENT_SECONDS):
            raise CheckFailed("the server does not listen", self.server.story("server"))
        self.client = host.start(program.argv(ours, port, theirs.address))
        # The program prints only when it ends. After this time the exchange of addresses is over, and data is in
        # flight.
        if not wait_until(lambda: self.server.connected(port), EVENT_SECONDS):
            story = self.story()
            self.__exit__()
            raise CheckFailed("the two programs did not connect", story)
        wait_until(lambda: False, 3 * GAP_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.kill()
        self.server.kill()

    def story(self):
        return self.server.story("server") + self.client.story("client")


def _flap_under_traffic(guest, nic, host, peer):
    with Traffic(host, peer, PORT, FLAP_SECONDS) as traffic:
        wait_until(lambda: False, GAP_SECONDS)
        for _ in range(3):
            guest.monitor(f"set_link {nic.name} off")
            wait_until(lambda: False, GAP_SECONDS)
            guest.monitor(f"set_link {nic.name} on")
            wait_until(lambda: False, 2 * GAP_SECONDS)
        if traffic.client.wait(TRAFFIC_SECONDS) != 0:
            raise CheckFailed("the traffic did not survive", traffic.story())


def _pull_out(guest, nic, host, peer):
    with Traffic(host, peer, PORT + 1, 2 * EVENT_SECONDS) as traffic:
        wait_until(lambda: False, GAP_SECONDS)
        unplug(guest, nic)
        status = traffic.client.wait(TRAFFIC_SECONDS)
        # 128 and more: the program ended by a signal
        if status is None or status == 0 or status >= 128:
            raise CheckFailed(f"the program ends with {status}", traffic.story())
        if "Completion with error" not in traffic.client.output():
            raise CheckFailed("the program got no error completion", traffic.story())


def pull_out_watched(guest, nic, host):
    watcher = host.start(["ibv_asyncwatch", "-d", DEVICE])
    try:
        wait_for(watcher, "async event FD")
        unplug(guest, nic)
        wait_for(watcher, "DEVICE_FATAL")
        if watcher.poll() is not None:
            raise CheckFailed("the program ended", watcher.story("guest"))
    finally:
        watcher.kill()


def plug_in(guest, nic):
    guest.monitor(nic.plug())
    if not wait_until(lambda: guest.run(f"test -e /sys/bus/pci/devices/{nic.pci}/driver")[0] == 0, EVENT_SECONDS, 0.2):
        raise CheckFailed("the device did not come back")
    ports.bind(guest, nic, "vfio-pci")


def run(report, guest, peer, everything):
    """The virtio NIC is gone at the end."""
    virtio, e1000e, _ = ports.NICS
    ports.bind(guest, virtio, "vfio-pci")
    ports.bind(guest, e1000e, "vfio-pci")
    for nic in (virtio, e1000e)[:2 if everything else 1]:
        report.check(f"{nic.name}: link down and up", watch_link, guest, nic, ports.UrocePort(guest, nic))
    host = ports.UrocePort(guest, virtio)
    if everything:
        report.check("e1000e: programs find the link up", _find_link_up, ports.UrocePort(guest, e1000e))
        report.check("virtio: link down and up under traffic", _flap_under_traffic, guest, virtio, host, peer)
    if report.require("virtio: pulled out, with a program that watches", pull_out_watched, guest, virtio, host) and \
            report.require("virtio: plugged in again", plug_in, guest, virtio):
        report.require("virtio: pulled out under traffic", _pull_out, guest, virtio, host, peer)
