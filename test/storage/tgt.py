# SPDX-License-Identifier: BSD-3-Clause
"""iSER: Debian's tgt serves a file, libiscsi's tools and QEMU's block layer use it."""

import os
import re
import shutil
import time

from sides import StorageRunning

SECONDS = 60
LUN_BYTES = 64 << 20
IMAGE_BYTES = 24 << 20
TARGET = "iqn.2026-11.test.uroce:disk"
INITIATOR = "iqn.2026-11.test.uroce:initiator"
POOL_MIB = 256  # tgtd's registered memory, a SysV segment
CONTROL_PORT = 7  # one tgtd a namespace: its control socket has an abstract name there
# libiscsi 1.19 refuses larger requests over iSER. QEMU splits them where a filter in front of its driver says so.
MAX_TRANSFER = 256 << 10
# libiscsi 1.19 reads fields of a connection that it has not initialised (its commit b4ba920); glibc gives zeroed memory.
ZEROED = ["env", "MALLOC_PERTURB_=255"]
# Not the families' tests `Async`: they send 1,000 requests at once, libiscsi 1.19 has descriptors for 256, and dies.
CONFORMANCE = ["SCSI.Read10.Simple", "SCSI.Read10.BeyondEol", "SCSI.Read16", "SCSI.Write10.Simple", "SCSI.Write10.BeyondEol",
               "SCSI.Write16", "SCSI.TestUnitReady", "SCSI.ReadCapacity16"]
KILL_SECONDS = 0.4


class Target:
    """A running tgtd with one LUN, a file."""

    def __init__(self, running, sides, lun):
        self._running = running
        self._sides = sides
        self.process = running.add(sides.target.start(
            ["tgtd", "-f", "-C", str(CONTROL_PORT), "--iser", f"port=3260,pool_sz_mb={POOL_MIB}"]))
        running.wait_for_output(self.process, "bs_init")
        self._admin("--op", "new", "--mode", "target", "--tid", "1", "-T", TARGET)
        self._admin("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", lun)
        # Debian's tgt (1.0.85) lets a name in over iSER only where both its address and its name are allowed.
        self._admin("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")
        self._admin("--op", "bind", "--mode", "target", "--tid", "1", "-Q", INITIATOR)

    def _admin(self, *arguments):
        admin = self._running.add(self._sides.target.start_beside(
            ["tgtadm", "-C", str(CONTROL_PORT), "--lld", "iser", *arguments]))
        self._running.expect(admin, SECONDS, "tgtadm")


class TgtTest:
    """All checks of one wire."""

    def __init__(self, report, sides, rng, options):
        self._report = report
        self._sides = sides
        self._rng = rng
        self._options = options
        self._url = f"iser://{sides.address}/{TARGET}/1"
        self._lun = os.path.join(sides.work_dir, f"{sides.wire}.lun")
        self._image = os.path.join(sides.work_dir, f"{sides.wire}.img")

    def run_all(self):
        with open(self._lun, "wb") as file:
            file.truncate(LUN_BYTES)
        self._check("iscsi-inq", "iscsi-inq", self._inquiry)
        self._check("iscsi-perf", "iscsi-perf", self._perf)
        self._check("qemu-img convert, there and back", "qemu-img", self._convert)
        self._check("qemu-io, patterns of all sizes", "qemu-io", self._patterns)
        for test in CONFORMANCE:
            self._check(f"iscsi-test-cu {test}", "iscsi-test-cu", self._conformance, test)
        self._check(f"an initiator is killed {self._options.kills} times", "qemu-io", self._kill_initiators)
        self._check(f"the target is killed {self._options.target_kills} times", "qemu-io", self._kill_targets)

    def _check(self, name, program, function, *args):
        name = f"tgt: {self._sides.wire}: {name}"
        if self._report.only and self._report.only not in name:
            return
        missing = [each for each in ("tgtd", program) if not shutil.which(each)]
        if missing:
            self._report.skip(name, f"{missing[0]} is not installed: tgt, libiscsi-bin, qemu-utils")
            return
        self._report.check(name, function, *args)

    def _use(self, running, argv, what, seconds=SECONDS):
        """Runs one of the initiator's programs to its end."""
        return running.expect(running.add(self._sides.initiator.start(argv)), seconds, what)

    def _inquiry(self):
        with StorageRunning() as running:
            Target(running, self._sides, self._lun)
            if "VIRTUAL-DISK" not in self._use(running, ["iscsi-inq", "-i", INITIATOR, self._url], "iscsi-inq"):
                running.fail("the LUN does not tell its name")
            capacity = self._use(running, ["iscsi-readcapacity16", "-i", INITIATOR, self._url], "iscsi-readcapacity16")
            if f"Total size:{LUN_BYTES}" not in capacity:
                running.fail("the LUN does not tell its size")

    def _perf(self):
        with StorageRunning() as running:
            Target(running, self._sides, self._lun)
            for order in ([], ["-r"]):
                output = self._use(running, ["iscsi-perf", "-i", INITIATOR, "-m", "32", "-b", "8", "-t", "2", *order,
                                             self._url], "iscsi-perf")
                rates = re.findall(r"iops average (\d+)", output)
                if not rates or int(rates[-1]) == 0:
                    running.fail("iscsi-perf reads nothing")

    def _disk(self):
        """QEMU's options for the LUN."""
        return (f"driver=blkdebug,max-transfer={MAX_TRANSFER},image.driver=iscsi,image.transport=iser,"
                f"image.portal={self._sides.address},image.target={TARGET},image.lun=1,"
                f"image.initiator-name={INITIATOR}")

    def _convert(self):
        """An image of random bytes is copied to the LUN and back."""
        with open(self._image, "wb") as file:
            file.write(self._rng.randbytes(IMAGE_BYTES))
        back = self._image + ".back"
        with StorageRunning() as running:
            Target(running, self._sides, self._lun)
            self._use(running, ["qemu-img", "convert", "-n", "-f", "raw", "--target-image-opts", self._image,
                                self._disk()], "qemu-img to the LUN")
            self._use(running, ["qemu-img", "convert", "--image-opts", "-O", "raw", self._disk(), back],
                      "qemu-img from the LUN")
            with open(self._image, "rb") as sent, open(back, "rb") as read:
                if sent.read() != read.read(IMAGE_BYTES):
                    running.fail("the image has changed on its way")
        os.unlink(back)

    def _patterns(self):
        """Requests from one sector to the largest, on odd boundaries, each read again by another connection."""
        commands, again = [], []
        for number, size in enumerate((512, 1024, 4096, 4608, 8192, 65536, 66048, 131072, 262144)):
            place = number * (1 << 20) + number * 512
            commands += ["-c", f"write -P {number + 1} {place} {size}"]
            again += ["-c", f"read -P {number + 1} {place} {size}"]
        with StorageRunning() as running:
            Target(running, self._sides, self._lun)
            for batch, what in ((commands, "write"), (again, "read")):
                output = self._use(running, ["qemu-io", *batch, "--image-opts", self._disk()], f"qemu-io, {what}")
                if "Pattern verification failed" in output or "failed:" in output:
                    running.fail(f"qemu-io, {what}: an error")

    def _conformance(self, test):
        with StorageRunning() as running:
            Target(running, self._sides, self._lun)
            output = self._use(running, [*ZEROED, "iscsi-test-cu", "-i", INITIATOR, "--dataloss", "-n", "-t", test,
                                         self._url], test)
            counts = re.search(r"^ +tests +(\d+) +(\d+) +(\d+) +(\d+)", output, re.M)
            if not counts or int(counts.group(2)) == 0 or int(counts.group(4)) != 0:
                running.fail(f"{test}: fails")

    def _writer(self, generation):
        """Writes a pattern block by block, and says of each block when it is written."""
        commands = []
        for block in range(64):
            commands += ["-c", f"write -P {generation} {block * 65536} 65536"]
        return ["stdbuf", "-oL", "qemu-io", *commands, "--image-opts", self._disk()]

    def _verify(self, running, written):
        """Every block that was acknowledged has its pattern."""
        commands = []
        for place, generation in written.items():
            commands += ["-c", f"read -P {generation} {place} 65536"]
        output = self._use(running, ["qemu-io", *commands, "--image-opts", self._disk()], "qemu-io, verify")
        if "Pattern verification failed" in output or "failed:" in output:
            running.fail("an acknowledged block is lost or wrong")

    def _kill_initiators(self):
        with StorageRunning() as running:
            Target(running, self._sides, self._lun)
            for generation in range(1, self._options.kills + 1):
                writer = running.add(self._sides.initiator.start(self._writer(generation)))
                time.sleep(self._rng.uniform(0, KILL_SECONDS) + KILL_SECONDS)
                writer.kill()
                places = [int(place) for place in re.findall(r"wrote 65536/65536 bytes at offset (\d+)", writer.output())]
                # A block that was in flight may have either pattern; those before it have the new one.
                self._verify(running, {place: generation for place in places})

    def _kill_targets(self):
        for generation in range(1, self._options.target_kills + 1):
            with StorageRunning() as running:
                target = Target(running, self._sides, self._lun)
                writer = running.add(self._sides.initiator.start(self._writer(100 + generation)))
                time.sleep(self._rng.uniform(0, KILL_SECONDS) + KILL_SECONDS)
                target.process.kill()
                writer.kill()
                places = [int(place) for place in re.findall(r"wrote 65536/65536 bytes at offset (\d+)", writer.output())]
                Target(running, self._sides, self._lun)
                self._verify(running, {place: 100 + generation for place in places})
