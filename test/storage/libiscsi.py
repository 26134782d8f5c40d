# SPDX-License-Identifier: BSD-3-Clause
"""Initiators of iSER: libiscsi's tools, and QEMU's block layer, which uses libiscsi."""

import os
import re
import shutil

from sides import StorageRunning

SECONDS = 60
IMAGE_BYTES = 24 << 20
INITIATOR = "iqn.2026-11.test.uroce:initiator"
# libiscsi 1.19 refuses larger requests over iSER. QEMU splits them where a filter in front of its driver says so.
MAX_TRANSFER = 256 << 10


class Lun:
    """A LUN: where it is served, and what it tells of itself."""

    def __init__(self, address, target, number, size, product):
        self.size = size
        self.product = product
        self.url = f"iser://{address}/{target}/{number}"
        # QEMU's options for it
        self.disk = (f"driver=blkdebug,max-transfer={MAX_TRANSFER},image.driver=iscsi,image.transport=iser,"
                     f"image.portal={address},image.target={target},image.lun={number},"
                     f"image.initiator-name={INITIATOR}")


class LibiscsiTest:
    """
    The checks that every target has to pass. `serve(running)` starts the target, if it does not run yet. `needs` are
    programs that it needs.
    """

    def __init__(self, report, title, sides, rng, lun, serve, needs=()):
        self._report = report
        self._title = title
        self._sides = sides
        self._rng = rng
        self._needs = needs
        self._image = os.path.join(sides.work_dir, f"{sides.wire}.img")
        self.lun = lun
        self.serve = serve

    def run_all(self):
        self.check("iscsi-inq", "iscsi-inq", self._inquiry)
        self.check("iscsi-perf", "iscsi-perf", self._perf)
        self.check("qemu-img convert, there and back", "qemu-img", self._convert)
        self.check("qemu-io, patterns of all sizes", "qemu-io", self._patterns)

    def check(self, name, program, function, *args, lack=None):
        """Makes a check that needs a program, where --only does not leave it out. `lack` is what else is missing."""
        name = f"{self._title}: {name}"
        if self._report.only and self._report.only not in name:
            return
        missing = [each for each in (*self._needs, program) if not shutil.which(each)]
        if missing or lack:
            self._report.skip(name, lack or f"{missing[0]} is not installed: tgt, libiscsi-bin, qemu-utils")
            return
        self._report.check(name, function, *args)

    def start(self, running, argv):
        """Starts one of the initiator's programs."""
        return running.add(self._sides.initiator.start(argv))

    def use(self, running, argv, what, seconds=SECONDS):
        """Runs one of the initiator's programs to its end; returns its output."""
        return running.expect(self.start(running, argv), seconds, what)

    def use_qemu(self, running, commands, what):
        """Runs commands of qemu-io, none of which may fail."""
        arguments = [word for command in commands for word in ("-c", command)]
        output = self.use(running, ["qemu-io", *arguments, "--image-opts", self.lun.disk], f"qemu-io, {what}")
        if "Pattern verification failed" in output or "failed:" in output:
            running.fail(f"qemu-io, {what}: an error")

    def _inquiry(self):
        with StorageRunning() as running:
            self.serve(running)
            if self.lun.product not in self.use(running, ["iscsi-inq", "-i", INITIATOR, self.lun.url], "iscsi-inq"):
                running.fail("the LUN does not tell its name")
            capacity = self.use(running, ["iscsi-readcapacity16", "-i", INITIATOR, self.lun.url], "iscsi-readcapacity16")
            if f"Total size:{self.lun.size}" not in capacity:
                running.fail("the LUN does not tell its size")

    def _perf(self):
        with StorageRunning() as running:
            self.serve(running)
            for order in ([], ["-r"]):
                output = self.use(running, ["iscsi-perf", "-i", INITIATOR, "-m", "32", "-b", "8", "-t", "2", *order,
                                            self.lun.url], "iscsi-perf")
                rates = re.findall(r"iops average (\d+)", output)
                if not rates or int(rates[-1]) == 0:
                    running.fail("iscsi-perf reads nothing")

    def _convert(self):
        """An image of random bytes is copied to the LUN and back."""
        with open(self._image, "wb") as file:
            file.write(self._rng.randbytes(IMAGE_BYTES))
        back = self._image + ".back"
        with StorageRunning() as running:
            self.serve(running)
            self.use(running, ["qemu-img", "convert", "-n", "-f", "raw", "--target-image-opts", self._image,
                               self.lun.disk], "qemu-img to the LUN")
            self.use(running, ["qemu-img", "convert", "--image-opts", "-O", "raw", self.lun.disk, back],
                     "qemu-img from the LUN")
            with open(self._image, "rb") as sent, open(back, "rb") as read:
                if sent.read() != read.read(IMAGE_BYTES):
                    running.fail("the image has changed on its way")
        os.unlink(back)

    def _patterns(self):
        """Requests from one sector to the largest, on odd boundaries, each read again by another connection."""
        requests = []
        for number, size in enumerate((512, 1024, 4096, 4608, 8192, 65536, 66048, 131072, 262144)):
            place = number * (1 << 20) + number * 512
            requests.append(f"-P {number + 1} {place} {size}")
        with StorageRunning() as running:
            self.serve(running)
            for verb in ("write", "read"):
                self.use_qemu(running, [f"{verb} {request}" for request in requests], verb)
