# SPDX-License-Identifier: BSD-3-Clause
"""A disk that the guest's kernel gets from a target on uroce: an ext4 file system on it keeps what it has acknowledged."""

import contextlib
import re
import time
from typing import NamedTuple

from guest import GuestError
from harness.process import wait_until
from harness.report import CheckFailed
from sides import StorageRunning

SHELL_SECONDS = 60
WRITE_SECONDS = 120
RECOVERY_SECONDS = 90   # until the guest's kernel has given the connection up and made another
WRITER_SECONDS = (1, 3)  # from its first block to a kill
MIB = 64
LOSS_PERCENT = 1
LOSS_MIB = 16
BLOCKS_AGAIN = 5        # that are written after the target is there again
KERNEL_LINES = 15
FILE_SYSTEM_ERRORS = "EXT4-fs (error|warning)|Aborting journal|Remounting filesystem read-only"
# Writes files, and says on the serial port that one is on the disk: a guest that is switched off loses what it stores.
BLOCK = "yes {n} | head -c 262144"
WRITER = (f"n=0; while [ ! -e /tmp/enough ]; do {BLOCK.format(n='$n')} | dd of=/mnt/$n bs=64k conv=fsync 2>/dev/null || "
          "exit 1; echo written $n >/dev/ttyS0; n=$((n + 1)); usleep 10000; done")
VERIFY = f"n=0; while [ $n -lt {{count}} ]; do {BLOCK.format(n='$n')} | cmp - /mnt/$n || exit 1; n=$((n + 1)); done"
# Loses packets both ways: those that come in pass through another interface. The shell's own tc has no netem.
LOSE = ("modprobe -a sch_netem act_mirred cls_matchall && modprobe ifb numifbs=1 && ip link set ifb0 up && "
        f"/sbin/tc qdisc add dev ifb0 root netem loss {LOSS_PERCENT}% limit 10000 && /sbin/tc qdisc add dev eth0 ingress && "
        "/sbin/tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0 && "
        f"/sbin/tc qdisc add dev eth0 root netem loss {LOSS_PERCENT}% limit 10000")
LOSE_NO_MORE = "/sbin/tc qdisc del dev eth0 root; /sbin/tc qdisc del dev eth0 ingress; rmmod ifb"


class GuestRunning(StorageRunning):
    """The programs of a check, and commands in the guest; a failure also tells what the guest's kernel says."""

    def __init__(self, guest):
        super().__init__()
        self._guest = guest

    def shell(self, command, seconds=SHELL_SECONDS):
        """Runs a shell command in the guest, which has to succeed; returns its output."""
        status, output = self._guest.run(command, seconds)
        if status:
            self.fail(f"{command}: exit {status}: {output.strip()[-500:]}")
        return output

    def fail(self, reason):
        try:
            super().fail(reason)
        except CheckFailed as failure:
            with contextlib.suppress(GuestError, OSError):
                failure.details += ["guest: " + line for line in self._guest.run("dmesg")[1].splitlines()[-KERNEL_LINES:]]
            raise


class Amount(NamedTuple):
    """How often a side is killed, and how long packets are lost."""

    kills: int
    loss_seconds: int


class KernelDiskTest:
    """
    The checks of one kind of disk. A `disk` has: `name`; `statistics`, their files in the guest; `errors`, the kernel's
    messages of a failed request, as a pattern; `prepare(running)`, which
    starts what the target needs; `serve(running)`, which starts the target and returns its process; `connect(running)`,
    which returns the guest's device; `disconnect(running)`; and `watch(running)`, a context that looks at the packets
    meanwhile.
    """

    def __init__(self, report, guest, disk, rng, amount):
        self._report = report
        self._guest = guest
        self._disk = disk
        self._rng = rng
        self._amount = amount
        self._device = None

    def run_all(self):
        self._check(f"ext4, {MIB} MiB there and back", self._round_trip)
        if self._amount.kills:
            self._check(f"the initiator's machine is switched off {self._amount.kills} times", self._cut_power)
            self._check(f"the target is killed {self._amount.kills} times, and starts again", self._kill_target)
        if self._amount.loss_seconds:
            self._check(f"{LOSS_PERCENT} % loss for {self._amount.loss_seconds} s", self._lose)

    def _check(self, name, function):
        self._report.check(f"kernel: {self._disk.name}: {name}", on_guest, self._guest, function)

    def _begin(self, running):
        """Starts the target, and mounts its disk in the guest with a new file system; returns the target's process."""
        self._disk.prepare(running)
        target = self._disk.serve(running)
        running.shell("modprobe ext4; dmesg -c >/dev/null; rm -f /tmp/enough")
        self._device = self._disk.connect(running)
        running.shell(f"mkfs.ext4 -q -F {self._device}")
        self._mount(running)
        return target

    def _finish(self, running):
        """The file system and its disk have had no error."""
        self._umount(running)
        self._disk.disconnect(running)
        errors = self._guest.run(f"dmesg | grep -E '{self._disk.errors}|{FILE_SYSTEM_ERRORS}'")[1]
        if errors:
            running.fail(f"the guest's kernel reports errors: {errors.splitlines()[0]}")

    def _mount(self, running):
        running.shell(f"mkdir -p /mnt && mount -t ext4 {self._device} /mnt")

    @staticmethod
    def _umount(running):
        running.shell("umount /mnt", WRITE_SECONDS)

    def _sectors_read(self, running):
        return int(running.shell(f"cat {self._disk.statistics} | awk '{{ sum += $3 }} END {{ print sum }}'"))

    def _there_and_back(self, running, mib):
        """Random bytes are the same when they are read again, from the disk and not from memory."""
        digest = running.shell(f"dd if=/dev/urandom of=/tmp/data bs=1M count={mib} 2>/dev/null && sha256sum </tmp/data",
                               WRITE_SECONDS)
        running.shell("dd if=/tmp/data of=/mnt/data bs=1M conv=fsync 2>&1", WRITE_SECONDS)
        running.shell("echo 3 >/proc/sys/vm/drop_caches")
        sectors = self._sectors_read(running)
        if running.shell("sha256sum </mnt/data", WRITE_SECONDS) != digest:
            running.fail("the file has changed")
        if self._sectors_read(running) - sectors < mib << 11:
            running.fail("the file was not read from the disk")

    def _round_trip(self):
        with GuestRunning(self._guest) as running:
            self._begin(running)
            with self._disk.watch(running):
                self._there_and_back(running, MIB)
            self._finish(running)

    def _written(self):
        return len(re.findall(r"^written \d+\r?$", self._guest.console(), re.M))

    def _write(self, running):
        """Starts the writer, and returns after some time in which it has written."""
        before = self._written()
        writer = self._guest.start(["sh", "-c", WRITER])
        if not wait_until(lambda: self._written() > before, WRITE_SECONDS):
            running.fail("nothing is written")
        time.sleep(self._rng.uniform(*WRITER_SECONDS))
        return writer

    @staticmethod
    def _verify(running, count):
        running.shell(VERIFY.format(count=count), WRITE_SECONDS)

    def _cut_power(self):
        """The target goes on and serves the machine when it is there again, with all that it has acknowledged."""
        with GuestRunning(self._guest) as running:
            target = self._begin(running)
            total = 0
            for _ in range(self._amount.kills):
                running.shell("rm -f /mnt/[0-9]*")
                before = self._written()
                self._write(running)
                self._guest.stop()
                count = self._written() - before
                self._guest.boot_again()
                if target.poll() is not None:
                    running.fail("the target has ended")
                running.shell("modprobe ext4")
                self._device = self._disk.connect(running)
                self._mount(running)
                self._verify(running, count)
                total += count
            self._finish(running)
            print(f"      {total} blocks were acknowledged before, and are there")

    def _kill_target(self):
        """The guest's kernel connects again, and no error reaches the file system."""
        with GuestRunning(self._guest) as running:
            before = self._written()
            target = self._begin(running)
            writer = self._write(running)
            for _ in range(self._amount.kills):
                target.kill()
                time.sleep(self._rng.uniform(0, WRITER_SECONDS[1]))
                killed = self._written()
                target = self._disk.serve(running)
                if not wait_until(lambda: self._written() > killed + BLOCKS_AGAIN, RECOVERY_SECONDS, 0.2):
                    running.fail("nothing is written any more")
                time.sleep(self._rng.uniform(0, WRITER_SECONDS[0]))
            running.shell("touch /tmp/enough")
            if writer.wait(WRITE_SECONDS) != 0:
                running.fail("the writer has an error")
            self._umount(running)
            self._mount(running)
            count = self._written() - before
            self._verify(running, count)
            self._finish(running)
            print(f"      {count} blocks of 256 KiB were acknowledged, and are there")

    def _lose(self):
        with GuestRunning(self._guest) as running:
            self._begin(running)
            running.shell(LOSE)
            rounds = 0
            end = time.monotonic() + self._amount.loss_seconds
            while time.monotonic() < end:
                self._there_and_back(running, LOSS_MIB)
                rounds += 1
            lost = [int(count) for count in re.findall(r"netem .*\n.*dropped (\d+)", running.shell("/sbin/tc -s qdisc show"))]
            running.shell(LOSE_NO_MORE)
            if len(lost) != 2 or not all(lost):
                running.fail(f"packets are not lost both ways: {lost}")
            self._finish(running)
            print(f"      {rounds} rounds of {LOSS_MIB} MiB, {lost[0]} and {lost[1]} packets lost")


def on_guest(guest, function, *args):
    """Makes a check that leaves the guest in any state when it fails: then the guest boots again."""
    try:
        function(*args)
    except (CheckFailed, GuestError) as error:
        guest.stop()
        guest.boot_again()
        if isinstance(error, CheckFailed):
            raise
        raise CheckFailed(str(error)) from error
