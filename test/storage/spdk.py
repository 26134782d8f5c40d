# SPDX-License-Identifier: BSD-3-Clause
"""NVMe over Fabrics: SPDK's target serves a disk in memory or a file, and SPDK's initiators use it (nvme.py)."""

import os
import re
import time

from nvme import LUN_BYTES, SECONDS, SECTOR, SERIAL, Nvme, lacks
from sides import StorageRunning, packets_lost

BLOCK = SECTOR      # of _start_writer: so small that it writes for a second or longer
UNITS = {"B": 1, "kB": 1 << 10, "MB": 1 << 20}
KILL_SECONDS = 0.3  # after a writer's first block
VERIFY_SECONDS = 600  # it is told to end before
# SPDK's errors, and all that uroce says: but a loaded machine may make the view come late, which concerns no request.
LATE_VIEW = r"the files of '\w+' in /sys/class/infiniband are not up to date: the view's server does not answer"
WRONG = rf"Buffer mismatch|uroce: (?!{LATE_VIEW}$)"
ERRORS = re.compile(rf"\*ERROR\*|completed with error|{WRONG}", re.M)


class SpdkTest:
    """All checks of one wire."""

    def __init__(self, report, sides, rng, options):
        self._report = report
        self._sides = sides
        self._rng = rng
        self._options = options
        self._nvme = Nvme(sides)
        self._source = os.path.join(sides.work_dir, f"{sides.wire}.source")

    def run_all(self):
        self.run_data()
        for pattern, size, depth in (("randread", 4096, 32), ("randwrite", 4096, 128), ("write", 131072, 32),
                                     ("randrw", 12288, 16)):
            self._check(f"perf {pattern} of {size} at {depth}", "spdk_nvme_perf", self._perf, pattern, size, depth)
        self._check("plain receive queues, no data in capsules", "bdevperf", self._verify, 8192, 32,
                    {"no_srq": True, "in_capsule_data_size": 0})
        self._check("memory in one region", "bdevperf", self._verify, 65536, 8, {}, ["-s", "256"])
        self._check("memory in one file", "bdevperf", self._verify, 65536, 8, {}, ["-g"])
        if self._sides.owner is None:
            self._check(f"1 % loss for {self._options.loss_seconds} s", "bdevperf", self._lose)
        self.run_kills()

    def run_data(self):
        self._check("identify", "spdk_nvme_identify", self._identify)
        for size, depth in ((512, 128), (4096, 32), (65536, 32)):
            self._check(f"bdevperf verify of {size} at {depth}", "bdevperf", self._verify, size, depth)

    def run_kills(self):
        self._check(f"an initiator is killed {self._options.kills} times", "spdk_dd", self._kill_initiators)
        self._check(f"the target is killed {self._options.target_kills} times", "spdk_dd", self._kill_targets)

    def _check(self, name, program, function, *args):
        name = f"spdk: {self._sides.wire}: {name}"
        if self._report.only and self._report.only not in name:
            return
        lack = lacks(["nvmf_tgt", "bdevperf", program])
        if lack:
            self._report.skip(name, lack)
            return
        self._report.check(name, function, *args)

    def _identify(self):
        with StorageRunning() as running:
            target = self._nvme.start_target(running)
            output = running.expect(self._nvme.start_client(running, "spdk_nvme_identify"), SECONDS, "identify")
            if SERIAL not in output or not re.search(rf"Size \(in LBAs\): +{LUN_BYTES // SECTOR} ", output):
                running.fail("the disk does not report its serial number and its size")
            self._nvme.end_target(running, target)

    def _perf(self, pattern, size, depth):
        with StorageRunning() as running:
            target = self._nvme.start_target(running)
            output = running.expect(self._nvme.start_perf(running, pattern, size, depth, 1), SECONDS, "perf")
            rate = re.search(r"^Total +: +([\d.]+)", output, re.M)
            if not rate or float(rate.group(1)) == 0 or ERRORS.search(output):
                running.fail("an error is reported, or no request is done")
            self._nvme.end_target(running, target)

    def _start_verify(self, running, size, depth, seconds):
        return self._nvme.start_user(running, "bdevperf", "-q", str(depth), "-o", str(size), "-w", "verify", "-t",
                                     str(seconds))

    @staticmethod
    def _expect_verified(running, verifier, errors=ERRORS, seconds=SECONDS):
        """Check that no request failed; return how many there were in a second."""
        output = running.expect(verifier, seconds, "bdevperf")
        total = re.search(r"^ *Total +: +([\d.]+) +[\d.]+ +([\d.]+) +([\d.]+)", output, re.M)
        if not total or float(total.group(1)) == 0 or float(total.group(2)) or float(total.group(3)) or \
                errors.search(output):
            running.fail("a request fails, or a block is wrong")
        return float(total.group(1))

    def _verify(self, size, depth, transport=None, options=()):
        with StorageRunning() as running:
            target = self._nvme.start_target(running, transport, options)
            self._expect_verified(running, self._start_verify(running, size, depth, 1))
            self._nvme.end_target(running, target)

    def _lose(self):
        """
        One packet of 100 is lost in each direction. No request fails, and each block is read as it was written.

        SPDK gives a connection 1 s to be established. The connection manager repeats a lost message after 4.3 s, as Linux
        does. So SPDK may report an error for a connection, and make another one. It loses no established connection.
        """
        with StorageRunning() as running:
            target = self._nvme.start_target(running, impair="loss=0.01")
            verifier = self._start_verify(running, 16384, 16, self._options.loss_seconds)
            requests = self._expect_verified(running, verifier, re.compile(WRONG, re.M),
                                             self._options.loss_seconds + SECONDS)
            refused = verifier.output().count("RDMA connect error")
            if verifier.output().count("resetting controller") > refused:
                running.fail("an established connection is lost")
            lost = packets_lost(target)
            if lost == 0:
                running.fail("no packet is lost")
            self._nvme.end_target(running, target)
        print(f"      {requests:.0f} requests a second, {lost} packets lost, {refused} connections failed at first")

    def _start_writer(self, running):
        """
        Start a writer of a file in which no two blocks are the same. It writes a block when the one before it is
        acknowledged.
        """
        body = self._rng.randbytes(BLOCK - 4)
        with open(self._source, "wb") as file:
            file.write(b"".join(number.to_bytes(4, "little") + body for number in range(LUN_BYTES // BLOCK)))
        return self._nvme.start_user(running, "spdk_dd", "--if", self._source, "--ob", "Nvme0n1", "--bs", str(BLOCK),
                                     "--qd", "1")

    def _check_written(self, running, before, writer):
        """
        Check the disk after the writer was killed. Return True if this came between the first and the last block.

        Every block before the last one that has changed was acknowledged, so it must be right. The last one was in flight,
        and may be partly written.
        """
        now = self._read(self._nvme.lun)
        changed = [at for at in range(0, LUN_BYTES, BLOCK) if now[at:at + BLOCK] != before[at:at + BLOCK]]
        last = changed[-1] if changed else 0
        if now[:last] != self._read(self._source)[:last]:
            running.fail("an acknowledged block is lost or wrong")
        told = re.findall(r"Copying: (\d+)/\d+ \[(B|kB|MB)\]", writer.output())
        if told and int(told[-1][0]) * UNITS[told[-1][1]] > last + BLOCK:
            running.fail("the initiator reported more blocks than were written")
        return 0 < last < LUN_BYTES - BLOCK

    @staticmethod
    def _read(path):
        with open(path, "rb") as file:
            return file.read()

    def _make_lun(self):
        with open(self._nvme.lun, "wb") as file:
            file.truncate(LUN_BYTES)

    def _wait_for_write(self, running, process):
        """Wait until the process writes to the disk."""
        before = os.stat(self._nvme.lun).st_mtime_ns
        running.wait_for(process, lambda: os.stat(self._nvme.lun).st_mtime_ns != before, "nothing is written", SECONDS)

    def _kill(self, running, writer, victim):
        """Kill the victim at a random moment after the writer's first block."""
        self._wait_for_write(running, writer)
        time.sleep(self._rng.uniform(0, KILL_SECONDS))
        victim.kill()

    def _kill_initiators(self):
        """Kill initiators. The target serves the next one at once, and the last one verifies the disk."""
        self._make_lun()
        kills, landed = self._options.kills, 0
        with StorageRunning() as running:
            target = self._nvme.start_target(running, file=True)
            for _ in range(kills):
                before = self._read(self._nvme.lun)
                writer = self._start_writer(running)
                self._kill(running, writer, writer)
                time.sleep(0.1)  # what was in flight reaches the disk meanwhile
                landed += self._check_written(running, before, writer)
            running.expect_landed(landed, kills)
            self._expect_verified(running, self._start_verify(running, 4096, 32, 1))
            self._nvme.end_target(running, target)
        print(f"      {landed} of {kills} kills while it wrote")

    def _kill_targets(self):
        """
        Kill targets. A verifier connects again and goes on, and reads what it has written. A writer, which is killed with its
        target, has each acknowledged block on the disk.
        """
        self._make_lun()
        kills, landed = self._options.target_kills, 0
        verified = (kills + 1) // 2  # the initiator needs 10 to 20 s to notice each of the kills
        with StorageRunning() as running:
            target = self._nvme.start_target(running, file=True)
            verifier = self._start_verify(running, 16384, 16, VERIFY_SECONDS)
            for _ in range(verified):
                self._kill(running, verifier, target)
                target = self._nvme.start_target(running, file=True)
                self._wait_for_write(running, verifier)
            verifier.terminate()
            # The initiator reports an error for each lost connection, and repeats the requests.
            self._expect_verified(running, verifier, re.compile("Buffer mismatch"))
            for _ in range(kills):
                before = self._read(self._nvme.lun)
                writer = self._start_writer(running)
                self._kill(running, writer, target)
                writer.kill()
                landed += self._check_written(running, before, writer)
                target = self._nvme.start_target(running, file=True)
            running.expect_landed(landed, kills)
            self._nvme.end_target(running, target)
        print(f"      {landed} of {kills} kills while a writer wrote, and {verified} while a verifier did")
