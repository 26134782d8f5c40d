# SPDX-License-Identifier: BSD-3-Clause
"""iSER: Debian's tgt serves a file, libiscsi's tools and QEMU's block layer use it."""

import os
import re
import time

from libiscsi import INITIATOR, SECONDS, LibiscsiTest, Lun
from sides import StorageRunning, packets_lost

LUN_BYTES = 64 << 20
TARGET = "iqn.2026-11.test.uroce:disk"
POOL_MIB = 256  # tgtd's registered memory, a SysV segment
# A tgtd locks a file by this number, which two runs of the tests must not share.
CONTROL_PORT = 1 + os.getpid() % 32000
# libiscsi 1.19 reads fields of a connection that it has not initialised (its commit b4ba920); glibc gives zeroed memory.
ZEROED = ["env", "MALLOC_PERTURB_=255"]
# Not the families' tests `Async`: they send 1,000 requests at once, libiscsi 1.19 has descriptors for 256, and dies.
CONFORMANCE = ["SCSI.Read10.Simple", "SCSI.Read10.BeyondEol", "SCSI.Read16", "SCSI.Write10.Simple", "SCSI.Write10.BeyondEol",
               "SCSI.Write16", "SCSI.TestUnitReady", "SCSI.ReadCapacity16"]
KILL_SECONDS = 0.4
LOSS_BLOCKS = 64


class Target:
    """A running tgtd with one LUN, a file, for one initiator's name. Its transport is iser, or iscsi: the kernel's TCP."""

    def __init__(self, running, sides, lun, initiator=INITIATOR, options="", transport="iser", impair=""):
        self._running = running
        self._sides = sides
        self._transport = transport
        argv = ["tgtd", "-f", "-C", str(CONTROL_PORT)]
        self.process = running.add(sides.target.start_beside(argv) if transport == "iscsi" else sides.target.start(
            [*argv, "--iser", f"port=3260,pool_sz_mb={POOL_MIB}{options}"], ["--impair", impair] if impair else []))
        running.wait_for_output(self.process, "bs_init")
        self._admin("--op", "new", "--mode", "target", "--tid", "1", "-T", TARGET)
        self._admin("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", lun)
        # Debian's tgt (1.0.85) lets an initiator in over iSER only if both its address and its name are allowed.
        self._admin("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")
        self._admin("--op", "bind", "--mode", "target", "--tid", "1", "-Q", initiator)

    def _admin(self, *arguments):
        admin = self._running.add(self._sides.target.start_beside(
            ["tgtadm", "-C", str(CONTROL_PORT), "--lld", self._transport, *arguments]))
        self._running.expect(admin, SECONDS, "tgtadm")


class TgtTest(LibiscsiTest):
    """All checks of one kind of link."""

    def __init__(self, report, sides, rng, options):
        super().__init__(report, f"tgt: {sides.wire}", sides, rng,
                         Lun(sides.address, TARGET, 1, LUN_BYTES, "VIRTUAL-DISK"), self._serve, ["tgtd"])
        self._rng = rng
        self._options = options
        self._sides = sides
        self._file = os.path.join(sides.work_dir, f"{sides.wire}.lun")

    def run_all(self):
        with open(self._file, "wb") as file:
            file.truncate(LUN_BYTES)
        super().run_all()
        for test in CONFORMANCE:
            self.check(f"iscsi-test-cu {test}", "iscsi-test-cu", self._conformance, test)
        self.check(f"1 % loss for {self._options.loss_seconds} s", "qemu-io", self._lose)
        self.check(f"an initiator is killed {self._options.kills} times", "qemu-io", self._kill_initiators)
        self.check(f"the target is killed {self._options.target_kills} times", "qemu-io", self._kill_targets)

    def _serve(self, running):
        return Target(running, self._sides, self._file)

    def _conformance(self, test):
        with StorageRunning() as running:
            self._serve(running)
            output = self.use(running, [*ZEROED, "iscsi-test-cu", "-i", INITIATOR, "--dataloss", "-n", "-t", test,
                                        self.lun.url], test)
            counts = re.search(r"^ +tests +(\d+) +(\d+) +(\d+) +(\d+)", output, re.M)
            if not counts or int(counts.group(2)) == 0 or int(counts.group(4)) != 0:
                running.fail(f"{test}: fails")

    def _lose(self):
        """
        One packet of 100 is lost in each direction. The writer reads each of its blocks again, and no request fails. It
        has one connection: tgt may refuse a connection when an acknowledgement of its login response is lost.
        """
        commands = (f"end=$((SECONDS + {self._options.loss_seconds})); for ((n = 0; SECONDS < end; n++)); do "
                    f"for verb in write read; do for at in {{0..{LOSS_BLOCKS - 1}}}; do "
                    "echo $verb -P $((n % 251)) $((at * 65536 + 512)) 65536; done; done; done")
        with StorageRunning() as running:
            target = Target(running, self._sides, self._file, impair="loss=0.01")
            writer = self.start(running, ["bash", "-c", f"({commands}) | qemu-io --image-opts {self.lun.disk}"])
            output = running.expect(writer, self._options.loss_seconds + SECONDS, "qemu-io, with loss")
            read = output.count("read 65536/65536 bytes")
            if read < LOSS_BLOCKS or "Pattern verification failed" in output or "failed:" in output:
                running.fail("a request fails, or a block is wrong")
            lost = packets_lost(target.process)
            if lost == 0:
                running.fail("no packet is lost")
        print(f"      {read} blocks of 64 KiB there and back, {lost} packets lost")

    def _writer(self, running, generation):
        """Write a pattern block by block, and report each block that is written."""
        commands = []
        for block in range(64):
            commands += ["-c", f"write -P {generation} {block * 65536} 65536"]
        return self.start(running, ["stdbuf", "-oL", "qemu-io", *commands, "--image-opts", self.lun.disk])

    def _wait(self):
        time.sleep(self._rng.uniform(0, KILL_SECONDS) + KILL_SECONDS)

    def _verify(self, running, writer, generation):
        """
        Every block that was acknowledged has its pattern. A block that was in flight may have either pattern; those
        before it have the new one.
        """
        places = re.findall(r"wrote 65536/65536 bytes at offset (\d+)", writer.output())
        self.use_qemu(running, [f"read -P {generation} {place} 65536" for place in places], "verify")

    def _kill_initiators(self):
        with StorageRunning() as running:
            self._serve(running)
            for generation in range(1, self._options.kills + 1):
                writer = self._writer(running, generation)
                self._wait()
                writer.kill()
                self._verify(running, writer, generation)

    def _kill_targets(self):
        for generation in range(101, self._options.target_kills + 101):
            with StorageRunning() as running:
                target = self._serve(running)
                writer = self._writer(running, generation)
                self._wait()
                target.process.kill()
                writer.kill()
                self._serve(running)
                self._verify(running, writer, generation)
