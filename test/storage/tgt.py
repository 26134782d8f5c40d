# SPDX-License-Identifier: BSD-3-Clause
"""iSER: Debian's tgt serves a file, libiscsi's tools and QEMU's block layer use it."""

import json
import os
import re
import time

from harness.process import ask, descendants, wait_until
from harness.tools import UROCE_CTL
from blocks import Blocks
from libiscsi import INITIATOR, SECONDS, LibiscsiTest, Lun
from sides import StorageRunning, packets_lost

LUN_BYTES = 64 << 20
TARGET = "iqn.2026-11.test.uroce:disk"
POOL_MIB = 256  # tgtd's registered memory, a SysV segment of huge pages if there are enough
DEFAULT_POOL_BYTES = 1 << 30
# A tgtd locks a file by this number, which two runs of the tests must not share.
CONTROL_PORT = 1 + os.getpid() % 32000
# libiscsi 1.19 reads fields of a connection that it has not initialised (its commit b4ba920); glibc gives zeroed memory.
ZEROED = ["env", "MALLOC_PERTURB_=255"]
# What tgt 1.0.85 passes. Not the tests `Async`: they send 1,000 requests at once, libiscsi 1.19 has descriptors for 256, and
# dies. doc/developer/testing.md names the others that are left out.
CONFORMANCE = {"reads": "SCSI.Read6,SCSI.Read10.[!A]*,SCSI.Read1[26],SCSI.ReadCapacity1?,SCSI.Verify1?,SCSI.Prefetch1?",
               "writes": "SCSI.Write10.[!A]*,SCSI.Write1[26],SCSI.WriteSame1?,SCSI.WriteVerify1?,SCSI.OrWrite",
               "others": "SCSI.TestUnitReady,SCSI.StartStopUnit,SCSI.ReportSupportedOpcodes,SCSI.Mandatory,SCSI.NoMedia,"
                         "SCSI.Reserve6.Simple"}
SOME_CONFORMANCE = {"some": "SCSI.Read1[06].[!A]*,SCSI.Write1[06].[!A]*,SCSI.TestUnitReady,SCSI.ReadCapacity16"}
KILL_SECONDS = 0.4      # after a writer's first block
WRITER_SECONDS = 150    # a writer that is not killed ends then
RECOVERY_SECONDS = 90   # until an initiator notices that its target is not there any more
RECOVERY_PAUSE_SECONDS = 0.5
LOSS_BLOCKS = 64


class Target:
    """
    A running tgtd with one LUN, a file, for one initiator's name. Its transport is iser, or iscsi: the kernel's TCP. Without
    an option for the pool, tgtd registers 1 GiB.
    """

    def __init__(self, running, sides, lun, initiator=INITIATOR, options="", transport="iser", impair="",
                 pool=f",pool_sz_mb={POOL_MIB}"):
        self._running = running
        self._sides = sides
        self._transport = transport
        argv = ["tgtd", "-f", "-C", str(CONTROL_PORT)]
        self.process = running.add(sides.target.start_beside(argv) if transport == "iscsi" else sides.target.start(
            [*argv, "--iser", f"port=3260{pool}{options}"], ["--impair", impair] if impair else []))
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


def lacks_memory(needed):
    """Return why a region of that size cannot be had; None if it can."""
    with open("/proc/meminfo", encoding="ascii") as file:
        available = int(re.search(r"^MemAvailable: +(\d+) kB", file.read(), re.M).group(1)) << 10
    return f"{available >> 20} MiB of memory are available, and {2 * needed >> 20} are needed" if available < 2 * needed else None


def resources(kind, pid):
    """Return the objects of a running process, such as "qp" or "mr", as uroce-ctl shows them."""
    return json.loads(ask([UROCE_CTL, "-j", "resource", "show", kind, "pid", str(pid)], SECONDS).stdout or "[]")


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
        if self._sides.wire == "memif":
            self.check("tgtd's own pool of 1 GiB", "qemu-io", self._default_pool, lack=lacks_memory(DEFAULT_POOL_BYTES))
        for name, tests in (CONFORMANCE if self._sides.wire == "memif" else SOME_CONFORMANCE).items():
            self.check(f"iscsi-test-cu, {name}", "iscsi-test-cu", self._conformance, tests)
        if self._options.all or self._sides.wire == "veth":
            self.check(f"1 % loss for {self._options.loss_seconds} s", "qemu-io", self._lose)
        if self._options.all or self._sides.wire == "memif":
            self.check(f"an initiator is killed {self._options.kills} times", "qemu-io", self._kill_initiators)
        # An initiator needs 20 s to notice that its target alone was killed, whatever the wire is.
        alone = (self._options.target_kills + 1) // 2 if self._sides.wire == "veth" else 0
        both = self._options.target_kills - alone
        if both:
            self.check(f"the target is killed {both} times", "qemu-io", self._kill_targets, both)
        if alone:
            self.check(f"the target alone is killed, {alone} times", "qemu-io", self._kill_targets_alone, alone)

    def _serve(self, running):
        return Target(running, self._sides, self._file)

    def _default_pool(self):
        """The target registers its default pool as one region, and serves from it."""
        with StorageRunning() as running:
            target = Target(running, self._sides, self._file, pool="")
            requests = [f"-P {n + 1} {n << 20} 262144" for n in range(16)]
            self.use_qemu(running, [f"{verb} {request}" for verb in ("write", "read") for request in requests], "16 blocks")
            sizes = [region["mrlen"] for region in resources("mr", target.process.pid)]
            if DEFAULT_POOL_BYTES not in sizes:
                running.fail(f"tgtd has no region of {DEFAULT_POOL_BYTES} bytes: {sizes}")

    def _conformance(self, tests):
        with StorageRunning() as running:
            self._serve(running)
            output = self.use(running, [*ZEROED, "iscsi-test-cu", "-i", INITIATOR, "--dataloss", "-n", "-t", tests,
                                        self.lun.url], "iscsi-test-cu")
            counts = re.search(r"^ +tests +(\d+) +(\d+) +(\d+) +(\d+)", output, re.M)
            if not counts or int(counts.group(2)) == 0 or int(counts.group(4)) != 0:
                running.fail("a test fails, or none has run")

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

    def _start_writer(self, running, blocks):
        return self.start(running, blocks.writer(WRITER_SECONDS, self.lun.disk))

    def _kill(self, running, writer, victim):
        """
        Kill the victim at a random moment after the writer's first acknowledged block, when one more is acknowledged. Return
        True if the writer had not ended.
        """
        running.wait_for(writer, lambda: Blocks.acknowledged(writer.output()), "no block is written", SECONDS)
        time.sleep(self._rng.uniform(0, KILL_SECONDS))
        before = Blocks.acknowledged(writer.output())
        running.wait_for(writer, lambda: Blocks.acknowledged(writer.output()) > before, "no other block is written", SECONDS)
        writes = writer.poll() is None
        victim.kill()
        return writes

    def _verify(self, running, blocks, writer):
        """Check that the disk has each acknowledged block of this writer and of those before it."""
        wrong = blocks.add(writer.output())
        if wrong:
            running.fail(wrong)
        if not blocks.reads():
            running.fail("there is nothing to verify")
        self.use_qemu(running, blocks.reads(), "verify")

    def _kill_initiators(self):
        blocks, landed = Blocks(), 0
        with StorageRunning() as running:
            self._serve(running)
            for _ in range(self._options.kills):
                writer = self._start_writer(running, blocks)
                landed += self._kill(running, writer, writer)
                self._verify(running, blocks, writer)
            running.expect_landed(landed, self._options.kills)
        print(f"      {landed} of {self._options.kills} kills while it wrote")

    def _kill_targets(self, kills):
        """Kill the target, and the initiator with it. The next target serves the same file to the next initiator."""
        blocks, landed = Blocks(), 0
        for _ in range(kills):
            with StorageRunning() as running:
                target = self._serve(running)
                writer = self._start_writer(running, blocks)
                landed += self._kill(running, writer, target.process)
                writer.kill()
                self._serve(running)
                self._verify(running, blocks, writer)
        running.expect_landed(landed, kills)
        print(f"      {landed} of {kills} kills while the initiator wrote")

    def _kill_targets_alone(self, kills):
        """
        Kill the target alone. The initiator goes on at the next target, or learns that its connection is lost; it must not
        wait for ever. libiscsi 1.19 cannot connect again: it tries TCP (its commit 3ccbceb, in 1.20, fixes this). So another
        initiator connects to the next target, and verifies.
        """
        blocks, landed, reactions = Blocks(), 0, []
        for _ in range(kills):
            with StorageRunning() as running:
                target = self._serve(running)
                writer = self._start_writer(running, blocks)
                landed += self._kill(running, writer, target.process)
                before = Blocks.acknowledged(writer.output())
                self._serve(running)
                reactions.append(self._wait_for_reaction(running, writer, before))
                writer.kill()
                self._verify(running, blocks, writer)
        running.expect_landed(landed, kills)
        print(f"      {landed} of {kills} kills while the initiator wrote; it " + ", ".join(
            f"{reaction} ({reactions.count(reaction)} times)" for reaction in sorted(set(reactions))))

    def _wait_for_reaction(self, running, writer, before):
        reaction = None

        def reacts():
            nonlocal reaction
            reaction = self._reaction(writer, before)
            return reaction
        if not wait_until(reacts, RECOVERY_SECONDS, RECOVERY_PAUSE_SECONDS):
            running.fail(f"the initiator neither goes on nor reports an error (after {RECOVERY_SECONDS} s)")
        return reaction

    @staticmethod
    def _reaction(writer, before):
        """
        Return what the initiator has done since its target was killed, when `before` blocks were acknowledged; None if
        nothing. The acknowledgement of one more may have been on its way.
        """
        output = writer.output()
        if Blocks.acknowledged(output) > before + 1:
            return "went on"
        if writer.poll() is not None or Blocks.failed(output) or "NOP timeout" in output:
            return "reported an error"
        states = [each["state"] for pid in descendants(writer.pid) for each in resources("qp", pid)]
        return "had a completion with an error" if "ERR" in states else None
