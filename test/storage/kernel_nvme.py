# SPDX-License-Identifier: BSD-3-Clause
"""NVMe over Fabrics: the kernel's initiator with SPDK's target on uroce, and the kernel's target with SPDK's initiators."""

import contextlib
import os
import re

from harness.notice import NOTHING
from harness.noticing import Notice
import spdk_target
from kernel_disk import GuestRunning, on_guest
from libiscsi import SECONDS

FILE_BYTES = 256 << 20
CONNECT_SECONDS = 60
LOST_SECONDS = 120  # that the kernel looks for a target that is gone
# Soft-RoCE of Linux 6.1 may send nothing more on a queue pair after a packet of a request was lost: when it repeats requests,
# it also registers their memory again, which fails. After this time the kernel connects again, and repeats the request.
REQUEST_SECONDS = 5
TRIES = 3
STALE_TRIES = 10
TARGET = "nqn.2026-11.test.uroce:ram"
RAM_KIB = 64 << 10
ROOT = "/sys/kernel/config/nvmet"
SUBSYSTEM = f"{ROOT}/subsystems/{TARGET}"
FIND = "for i in $(seq 100); do ls /dev/nvme*n1 2>/dev/null && exit; usleep 100000; done; exit 1"


class NvmeDisk:
    """A namespace of SPDK's nvmf_tgt on uroce."""

    name = "nvme"
    statistics = "/sys/block/nvme*/stat"  # a device has them, or the path to it
    errors = "I/O error, (dev )?nvme[0-9]+n|Buffer I/O error"  # of the disk: a path (nvme0c0n1) may fail and come back

    def __init__(self, sides, spdk, network, initiator):
        self._spdk = spdk
        self._address = sides.address
        self._initiator = initiator
        self._network = network
        self._work_dir = sides.work_dir
        self._file = os.path.join(sides.work_dir, "nvme.disk")
        with open(self._file, "wb") as file:
            file.truncate(FILE_BYTES)

    def prepare(self, running):
        self._spdk.start_uroced(running)

    @contextlib.contextmanager
    def watch(self, running):
        """
        The kernel gives the target a key for each request, and asks it to invalidate the key. SPDK's target answers these
        requests by SEND with invalidate.
        """
        notice = Notice(self._network, self._work_dir, "peer1")
        try:
            yield
            seen = notice.end()
        finally:
            notice.kill()
        ours, theirs = (seen.get(address, NOTHING)["invalidates"] for address in (self._address, self._initiator))
        if ours == 0 or theirs != 0:
            running.fail(f"SENDs with invalidate: {ours} of the target, {theirs} of the initiator")
        print(f"      {ours} answers with invalidate")

    def serve(self, running):
        return self._spdk.serve(running, self._file)

    def connect(self, running):
        running.shell(f"modprobe nvme-rdma && echo {REQUEST_SECONDS} >/sys/module/nvme_core/parameters/io_timeout")
        connect = (f"nvme connect -t rdma -a {self._address} -s {spdk_target.PORT} -n {spdk_target.TARGET} "
                   f"-c 1 -l {LOST_SECONDS}")
        # After a restart a request may have the number of a queue pair that the target takes for connected. Each attempt uses new
        # numbers, and up to three were in use.
        running.shell(f"for i in $(seq {STALE_TRIES}); do {connect} && exit; dmesg | tail -n 5 | grep -q 'stale conn' || exit 1; "
                      "sleep 1; done; exit 1", 2 * CONNECT_SECONDS)
        return running.shell(FIND).split()[0]

    def disconnect(self, running):
        running.shell(f"nvme disconnect -n {spdk_target.TARGET}", CONNECT_SECONDS)


def commands(address):
    """What nvmetcli would do."""
    return [
        "modprobe -a nvmet-rdma", f"modprobe brd rd_nr=1 rd_size={RAM_KIB}",
        "{ grep -q configfs /proc/mounts || mount -t configfs configfs /sys/kernel/config; }",
        f"mkdir -p {SUBSYSTEM}/namespaces/1 {ROOT}/ports/1", f"echo 1 >{SUBSYSTEM}/attr_allow_any_host",
        f"echo /dev/ram0 >{SUBSYSTEM}/namespaces/1/device_path", f"echo 1 >{SUBSYSTEM}/namespaces/1/enable",
        f"echo rdma >{ROOT}/ports/1/addr_trtype", f"echo ipv4 >{ROOT}/ports/1/addr_adrfam",
        f"echo {address} >{ROOT}/ports/1/addr_traddr", f"echo {spdk_target.PORT} >{ROOT}/ports/1/addr_trsvcid",
        f"ln -s {SUBSYSTEM} {ROOT}/ports/1/subsystems/"]


class NvmetTest:
    """The kernel's target nvmet-rdma with a RAM disk, and SPDK's initiators."""

    def __init__(self, report, guest, spdk):
        self._report = report
        self._guest = guest
        self._address = guest.address
        self._spdk = spdk
        self._transport = (f"trtype:RDMA adrfam:IPv4 traddr:{guest.address} trsvcid:{spdk_target.PORT} subnqn:{TARGET}")

    def run_all(self):
        self._check("spdk_nvme_identify", self._identify)
        for load in ("randread", "write"):
            for size in (4096, 131072):
                self._check(f"spdk_nvme_perf, {load} of {size} bytes", self._perf, load, size)
        for size in (4096, 65536):
            self._check(f"bdevperf verify of {size} bytes", self._verify, size)

    def _check(self, name, function, *args):
        self._report.check(f"kernel: nvmet: {name}", on_guest, self._guest, self._serve, function, *args)

    def _serve(self, function, *args):
        """The target stays until the guest boots again."""
        with GuestRunning(self._guest) as running:
            if self._guest.run(f"test -e {SUBSYSTEM}")[0]:
                running.shell(" && ".join(commands(self._guest.address)))
            self._spdk.start_uroced(running)
            function(running, *args)

    @staticmethod
    def _run(start):
        """
        Runs one of SPDK's programs to its end, again where it does not get its connection: SPDK gives that 1 s, and the
        target's machine, which is emulated, may need longer for its first one.
        """
        for _ in range(TRIES):
            program = start()
            status = program.wait(SECONDS)
            if status == 0 or "RDMA connect error" not in program.output():
                break
        return status, program.output()

    def _identify(self, running):
        status, output = self._run(lambda: self._spdk.start(running, "spdk_nvme_identify", "-r", self._transport))
        if status != 0 or not re.search(r"Model Number: +Linux", output):
            running.fail(f"the controller does not tell its name (exit {status})")

    def _perf(self, running, load, size):
        perf = self._spdk.start(running, "spdk_nvme_perf", "-r", self._transport, "-q", "16", "-o", str(size), "-w", load,
                                "-t", "2")
        output = running.expect(perf, SECONDS, "spdk_nvme_perf")
        total = re.search(r"^Total +: +([\d.]+)", output, re.M)
        if not total or float(total.group(1)) == 0 or "error" in output:
            running.fail("not all requests succeed")

    def _verify(self, running, size):
        """No request fails, and each block is read as it was written."""
        load = ("-q", "16", "-o", str(size), "-t", "2")
        status, output = self._run(lambda: self._spdk.verify(running, self._address, TARGET, *load))
        total = re.search(r"^ *Total +: +([\d.]+) +[\d.]+ +([\d.]+) +([\d.]+)", output, re.M)
        if status != 0 or not total or "Buffer mismatch" in output:
            running.fail(f"bdevperf does not verify the disk (exit {status})")
        rate, failed, timed_out = map(float, total.groups())
        if rate == 0 or failed or timed_out:
            running.fail("a request fails, or none is done")
