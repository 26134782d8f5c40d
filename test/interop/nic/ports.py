# SPDX-License-Identifier: BSD-3-Clause
"""A guest with NICs for DPDK, the binding of the NICs, and uroce on one of them."""

from guest import MTU, Guest, GuestError, Hardware
from harness.tools import DEVICE
from overlay import GUEST_UROCE_RUN, GUEST_UROCED, IGB_UIO

FIRST_NUMBER = 31
HUGE_PAGES = 160  # huge pages of 2 MiB
# If the guest's VFIO has no IOMMU for the device, an access to a wrong address stays unnoticed.
IOMMU = "intel-iommu,intremap=on,caching-mode=on,aw-bits=48"


class Nic:
    """A NIC model, its place in the guest, and QEMU's arguments for it."""

    def __init__(self, number, name, device, slot, removable=False, queues=1):
        self.name = name
        self.pci = "0000:01:00.0" if removable else f"0000:00:{slot:02x}.0"
        self.mac = f"52:54:00:09:00:{number:02x}"
        self.tap = f"tap{number}"
        self.address = f"10.9.0.{number}"
        self.address6 = f"fd09::{number}"
        self._device = device
        self._slot = slot
        self._removable = removable
        self._queues = queues

    def make_tap(self, network):
        """Make the host's end, in the bridge."""
        many = ["multi_queue"] if self._queues > 1 else []
        network.run("ip", "tuntap", "add", "dev", self.tap, "mode", "tap", *many)
        network.run("ip", "link", "set", self.tap, "mtu", str(MTU), "master", "br0", "up")

    def devices(self):
        """A NIC that can be pulled out has a hot-plug slot of its own, which is bus 1."""
        place = "bus=bay,addr=0" if self._removable else f"addr={self._slot:02x}.0"
        bay = ["-device", f"pcie-root-port,id=bay,chassis=1,addr={self._slot:02x}.0"] if self._removable else []
        # Without vnet_hdr, the NIC must do all that it offloads before the frame leaves.
        queues = f",queues={self._queues}" if self._queues > 1 else ""
        return [*bay, "-netdev", f"tap,id={self.tap},ifname={self.tap},script=no,downscript=no,vnet_hdr=off{queues}",
                "-device", f"{self._device},id={self.name},netdev={self.tap},mac={self.mac},"
                           f"{place},romfile="]

    def plug(self):
        """Return the command of QEMU's monitor that plugs the NIC in again."""
        return f"device_add {self._device},id={self.name},netdev={self.tap},mac={self.mac},bus=bay,addr=0,romfile="


VIRTIO = f"virtio-net-pci,disable-legacy=on,mrg_rxbuf=on,host_mtu={MTU},iommu_platform=on"
NICS = (
    Nic(31, "virtio", f"{VIRTIO},mq=on,vectors=6", 0x10, True, 2),
    Nic(32, "e1000e", "e1000e", 0x11),
    Nic(33, "vmxnet3", "vmxnet3", 0x12),
)
LOAD = {"vfio-pci": "modprobe -a vfio-pci vfio_iommu_type1",
        "igb_uio": f"modprobe uio && {{ [ -e /sys/module/igb_uio ] || insmod {IGB_UIO}; }}"}
TWO_ENGINES = ("--engines", "2", "--log-level", "info")
BINDINGS = ("vfio-pci", "uio_pci_generic", "igb_uio")


def boot(network, image_dir, work_dir, nics=NICS, number=3, name="nics", cpus=1):
    """Use one processor: uroce and the test need little at a time, and the emulation is slow."""
    devices = ["-device", IOMMU]
    for nic in nics:
        nic.make_tap(network)
        devices += nic.devices()
    # pt: a device without VFIO is not translated, as UIO needs it
    hardware = Hardware(devices, f"intel_iommu=on iommu=pt hugepages={HUGE_PAGES}", "q35,kernel-irqchip=split",
                        cpus, 1024)
    return Guest(name, number, network, image_dir, work_dir, hardware)


def bind(guest, nic, driver):
    """Bind a NIC to a kernel driver, as dpdk-devbind.py does. Return an error text if that fails."""
    device = f"/sys/bus/pci/devices/{nic.pci}"
    load = LOAD.get(driver, f"modprobe {driver}")
    status, output = guest.run(
        f"{load} && {{ [ ! -e {device}/driver ] || echo {nic.pci} >{device}/driver/unbind; }} && "
        f"echo {driver} >{device}/driver_override && echo {nic.pci} >/sys/bus/pci/drivers_probe && "
        f"readlink {device}/driver | grep -q '/{driver}$'")
    if status:
        raise GuestError(f"{nic.pci} is not bound to {driver}: {output}")


class UrocePort:
    """uroce in the guest with one of its NICs as its own port. The programs' TCP uses the guest's ordinary NIC."""

    device = DEVICE

    peer_program = Guest.peer_program

    def __init__(self, guest, nic, options=()):
        self.name = nic.name
        self.address = guest.address  # the TCP address
        self.gid_address = nic.address
        self.gid_address6 = nic.address6
        self._guest = guest
        self._prefix = [GUEST_UROCE_RUN, *options, "--port", nic.pci, "--mtu", str(MTU), "--ip", f"{nic.address}/24",
                        "--ip", f"{nic.address6}/64", "--"]

    def start(self, argv):
        return self._guest.start([*self._prefix, *argv])


class SharedPort(UrocePort):
    """A NIC that an uroced in the guest owns; each program attaches to it."""

    SOCKET = "/tmp/uroced.sock"
    # Use half of the default limit: the guest has few huge pages.
    OPTIONS = ("--max-buffers", "768", "--log-level", "info", "--socket", SOCKET)

    def __init__(self, guest, nic):
        super().__init__(guest, nic)
        self._port = ["--port", nic.pci, "--mtu", str(MTU), "--ip", f"{nic.address}/24", "--ip", f"{nic.address6}/64"]
        self._prefix = [GUEST_UROCE_RUN, "--socket", self.SOCKET, "--"]

    def start_owner(self):
        return self._guest.start([GUEST_UROCED, *self.OPTIONS, *self._port])
