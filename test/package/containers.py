# SPDX-License-Identifier: BSD-3-Clause
"""The image of config/container, and the containers of doc/user/ci.md, run by podman as they are written."""

import os
import re
import shutil

from debs import TOP
from examples import ci_blocks
from harness.podman import Podman
from harness.report import CheckFailed

BASE = "localhost/debian:clean"


class ContainersTest:
    """An image of its own, in a directory of its own; all containers end with the checks."""

    def __init__(self, report, work_dir, root, debs):
        self._report = report
        self._podman = Podman(os.path.join(work_dir, "containers"))
        self._root = root
        self._debs = debs
        self._blocks = ci_blocks("Containers")

    def run_all(self):
        if self._report.only and self._report.only not in "package: containers":
            return
        with self._podman:
            self._check_all()

    def _check_all(self):
        reason = self._podman.begin(self._root, BASE)
        if reason:
            self._report.skip("package: containers", reason)
            return
        for path in (self._debs.file("uroce"), os.path.join(TOP, "config", "container", "Containerfile")):
            shutil.copy(path, self._podman.dir)
        if not self._report.require("package: containers: the image", self._podman.run, self._blocks["image"]):
            return
        self._report.check("package: containers: alone", self._alone)
        self._report.check("package: containers: two and uroced", self._pair, "uroced")
        self._report.check("package: containers: two and a veth pair", self._pair, "veth")

    def _alone(self):
        """An ordinary user without a capability, and with podman's filter of system calls."""
        output = self._podman.run(self._blocks["alone"].replace("ibv_devinfo", "ibv_devinfo -v"))
        if "198.18.0.1" not in output or "PORT_ACTIVE" not in output:
            raise CheckFailed("no device", output.splitlines())
        before, _, command = self._blocks["alone"].partition("uroce-run")
        output = self._podman.run(f"{before} grep -E '^(Cap...|Seccomp):' /proc/self/status")
        if not command or len(re.findall(r"^Cap\w+:\s+0{16}$", output, re.M)) != 5 or not re.search(r"Seccomp:\s+2", output):
            raise CheckFailed("the container is not restricted", output.splitlines())

    def _pair(self, block):
        """ucmatose checks that each of its messages arrives; both sides tell their result."""
        script = self._blocks[block].replace("podman wait server", "podman wait server; podman logs server")
        try:
            output = self._podman.run(script)
        finally:
            self._podman.end_containers()
        if output.count("return status 0") != 2:
            raise CheckFailed("not both sides end well", output.splitlines()[-30:])
