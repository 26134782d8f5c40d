# SPDX-License-Identifier: BSD-3-Clause
"""The commands of doc/user/storage.md in which Linux is one side, as they are written there: the guest's shell runs those of Linux's
machine, and the shell of a container those of uroce's."""

import base64
import os
import re
import shutil

from document import DocumentTest, blocks_of, text_of
from guest import MTU
from harness.process import Namespace
from kernel_disk import GuestRunning, on_guest
from kernel_iser import prepare
from nvme import SECONDS, find_program, lacks
from spdk_target import HUGE_PAGES

INITIATOR = "iqn.2026-11.example:me"
HOST_ADDRESS, GUEST_ADDRESS = "10.0.0.1", "10.0.0.2"
MIB = 8
GUEST_SECONDS = 180
DEVICE = "Linux's initiator of iSER"  # the section that makes the RDMA device for all
# The system mounts it on a machine that is not our guest.
CONFIGFS = "modprobe configfs; grep -q configfs /proc/mounts || mount -t configfs configfs /sys/kernel/config"
# The guest's own device has been made when it booted. Here the document's commands make one.
NO_DEVICE = (f"rdma link del rxe0 && rmmod rdma_rxe && ip addr add {GUEST_ADDRESS}/24 dev eth0 && mkdir -p /mnt && "
             f"{{ {CONFIGFS}; }}")
HAS_DEVICE = f"ip addr show dev eth0 | grep -q {GUEST_ADDRESS}/"
# kernel_iser.py says why.
DISCOVER_AGAIN = """iscsiadm()
{
    case "$*" in *discovery*) for n in 1 2 3; do /sbin/iscsiadm "$@" && return; done; return 1;; esac
    /sbin/iscsiadm "$@"
}
"""
THERE_AND_BACK = (f"dd if=/dev/urandom of=/tmp/data bs=1M count={MIB} && dd if=/tmp/data of=/mnt/data bs=1M conv=fsync && "
                  "echo 3 >/proc/sys/vm/drop_caches && cmp /tmp/data /mnt/data")
# SPDK gives a connection 1 s, and the emulated machine may need longer for its first one.
CONNECT_AGAIN = """uroce-run()
{
    for n in 1 2 3; do command uroce-run "$@" >out 2>&1 && break; grep -q 'RDMA connect error' out || break; done
    cat out
}
"""


class KernelDocumentTest(DocumentTest):
    """All sections about Linux. uroce's machine has the address 10.0.0.1 on eth1, and the guest has 10.0.0.2 on eth0."""

    def __init__(self, report, guest, network, work_dir):
        super().__init__(report, work_dir)
        self._guest = guest
        self._network = network
        self.ran = False  # the guest is not as it was when it booted

    def run_all(self):
        tgt, inq, qemu = ([shutil.which(name) or f"{package}: {name}"] for package, name in (
            ("tgt", "tgtd"), ("libiscsi-bin", "iscsi-inq"), ("qemu-utils", "qemu-io")))
        self._check_guest("iser", tgt, self._iser)
        self._check_guest("lio", [*inq, *qemu], self._lio)
        self._check_guest("nvme", [], self._nvme, lacks(["nvmf_tgt"], HUGE_PAGES))
        self._check_guest("nvmet", [], self._nvmet, lacks(["spdk_nvme_perf"], HUGE_PAGES))

    def _check_guest(self, name, programs, function, lack=None):
        def check():
            self.ran = True
            on_guest(self._guest, self._run, function)
        self._check(f"kernel: document: {name}", programs, check, lack)

    def _run(self, function):
        with GuestRunning(self._guest) as running:
            if self._guest.run(HAS_DEVICE)[0]:
                running.shell(NO_DEVICE)
                self._in_guest(running, blocks_of(DEVICE)[0])
                running.shell("test -e /sys/class/infiniband/rxe0")
            function(running)

    def _make_sides(self):
        """Make the one container. Linux is not in one."""
        if self._sides:
            return
        host = Namespace("stdoc")
        self._network.run("ip", "link", "add", "stdoc1", "mtu", str(MTU), "type", "veth", "peer", "name", "eth1",
                          "mtu", str(MTU), "netns", host.name)
        self._network.run("ip", "link", "set", "stdoc1", "master", "br0", "up")
        host.run("ip", "address", "add", f"{HOST_ADDRESS}/24", "dev", "eth1")
        host.run("ip", "link", "set", "eth1", "up")
        self._sides = [host]

    def _in_guest(self, running, script):
        """Run lines in the guest's shell, which takes one line at a time. The first one that fails ends them."""
        code = base64.b64encode((DISCOVER_AGAIN + script).encode()).decode()
        status, output = self._guest.run(f"sh -euxc \"$(echo {code} | base64 -d)\"", GUEST_SECONDS)
        if status:
            running.fail(f"the guest's shell: exit {status}: {output.strip()[-500:]}")

    def _mount(self, running, begin, end):
        self._in_guest(running, begin)
        running.shell("grep -q '^/dev/[a-z0-9]* /mnt ext4 ' /proc/mounts")
        running.shell(THERE_AND_BACK, GUEST_SECONDS)
        self._in_guest(running, end)

    def _initiator(self, running, name, script):
        return running.expect(self._start(running, 0, name, script), SECONDS, "the initiator")

    def _iser(self, running):
        """tgtd is started as the document says for a slow machine, which the emulated guest is."""
        target = blocks_of("iSER: a disk from tgt")[0]
        slow = re.search(r"start tgtd with `(--iser\s+[^`]+)`", text_of(DEVICE)).group(1)
        target, count = re.subn(r"--iser \S+", re.sub(r"\s+", " ", slow), target)
        if count != 1:
            running.fail("the document starts tgtd with no options of iSER")
        server = self._start(running, 0, "tgtd", target + "echo served\nwait\n")
        running.wait_for_output(server, "\nserved\n")
        running.shell(prepare(INITIATOR))
        self._mount(running, *blocks_of(DEVICE)[1:])

    def _lio(self, running):
        target, *initiator = blocks_of("Linux's target of iSER")
        if self._guest.run("test -e /sys/kernel/config/target/iscsi")[0]:
            self._in_guest(running, target)
        output = self._initiator(running, "libiscsi", "\n".join(initiator))
        if "RAMDISK-MCP" not in output or "read 512/512 bytes" not in output:
            running.fail("the disk is not read")

    def _nvme(self, running):
        config, target = blocks_of("NVMe over Fabrics: SPDK as it is")[:2]
        self._path.append(os.path.dirname(find_program("nvmf_tgt")))
        server = self._start(running, 0, "nvmf_tgt", f"cat >target.json <<'EOF'\n{config}EOF\n{target}")
        running.wait_for_output(server, f"Listening on {HOST_ADDRESS} port 4420", SECONDS)
        self._mount(running, *blocks_of("Linux and NVMe over Fabrics")[:2])

    def _nvmet(self, running):
        target, initiator = blocks_of("Linux and NVMe over Fabrics")[2:]
        self._path.append(os.path.dirname(find_program("spdk_nvme_perf")))
        if self._guest.run("test -e /sys/kernel/config/nvmet/ports/1")[0]:
            self._in_guest(running, target)
        output = self._initiator(running, "spdk", "mount -t tmpfs none /run\n" + CONNECT_AGAIN + initiator)
        if not re.search(r"^ *Total +: +[1-9]", output, re.M):
            running.fail("the disk is not read")
