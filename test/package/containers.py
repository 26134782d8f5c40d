# SPDX-License-Identifier: BSD-3-Clause
"""The image of config/container, and the containers of doc/ci.md, run by podman as they are written."""

import os
import re
import shutil
import subprocess

from debs import TOP
from examples import ci_blocks
from harness.report import CheckFailed

BASE = "localhost/debian:clean"
SECONDS = 300
# Stands for podman in the examples. The image is made from the clean Debian, without a registry. Containers of a test
# that may itself be in a container get no control groups and only limits that any host allows.
PODMAN = """#!/bin/sh
command=$1
shift
case $command in
build) set -- --build-arg BASE={base} --isolation chroot --network host --layers=false "$@" ;;
run) set -- --cgroups disabled --ulimit nofile=1024:4096 --ulimit nproc=1000:1000 "$@" ;;
esac
exec {podman} --root {dir}/images --runroot {dir}/run --storage-driver {driver} --events-backend file \\
	--cgroup-manager cgroupfs "$command" "$@"
"""
# Podman does not start where a second hierarchy of control groups is mounted beside the first.
PRIVATE = """! mountpoint -q /sys/fs/cgroup/unified || umount -l /sys/fs/cgroup/unified
mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns
exec "$@" """


class ContainersTest:
    """An image of its own, in a directory of its own; all containers end with the checks."""

    def __init__(self, report, work_dir, root, debs):
        self._report = report
        self._dir = os.path.join(work_dir, "containers")
        self._root = root
        self._debs = debs
        self._blocks = ci_blocks("Containers")

    def run_all(self):
        if self._report.only and self._report.only not in "package: containers":
            return
        podman = shutil.which("podman")
        if not podman:
            self._report.skip("package: containers", "podman is missing")
            return
        self._clean_up()
        os.makedirs(os.path.join(self._dir, "bin"))
        try:
            self._check_all(podman)
        finally:
            self._clean_up()

    def _clean_up(self):
        if os.path.exists(os.path.join(self._dir, "bin", "podman")):
            self._end_containers()
        shutil.rmtree(self._dir, ignore_errors=True)

    def _end_containers(self):
        """Containers are processes outside of ours, so podman has to end them."""
        self._script("podman rm --all --force --time 0; podman volume rm --all --force")

    def _script(self, script):
        """Run a shell script in the directory, with our podman. Return status and output."""
        environment = {**os.environ, "PATH": f"{self._dir}/bin:{os.environ['PATH']}"}
        try:
            done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", PRIVATE, "sh",
                                   "sh", "-ec", script], cwd=self._dir, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired as late:
            raise CheckFailed(f"hangs (after {SECONDS} s): {script}", str(late.output).splitlines()[-20:]) from late
        return done.returncode, done.stdout

    def _run(self, script):
        status, output = self._script(script)
        if status:
            raise CheckFailed(f"exit {status}: {script}", output.splitlines()[-20:])
        return output

    def _write_podman(self, podman, driver):
        path = os.path.join(self._dir, "bin", "podman")
        with open(path, "w", encoding="ascii") as file:
            file.write(PODMAN.format(base=BASE, podman=podman, dir=self._dir, driver=driver))
        os.chmod(path, 0o755)

    def _cannot_run(self):
        """Return the reason if podman can run no container here."""
        status, output = self._script(f"tar -C {self._root} -c . | podman import --quiet - {BASE}\n"
                                      f"podman run --rm --network none {BASE} true")
        return f"podman cannot run a container here: {' '.join(output.splitlines()[-1:])}" if status else None

    def _check_all(self, podman):
        """Where overlays cannot be mounted, podman copies the image for each container."""
        reason = None
        for driver in ("overlay", "vfs"):
            self._write_podman(podman, driver)
            reason = self._cannot_run()
            if not reason:
                break
            shutil.rmtree(os.path.join(self._dir, "images"), ignore_errors=True)
        if reason:
            self._report.skip("package: containers", reason)
            return
        for path in (self._debs.file("uroce"), os.path.join(TOP, "config", "container", "Containerfile")):
            shutil.copy(path, self._dir)
        if not self._report.require("package: containers: the image", self._run, self._blocks["image"]):
            return
        self._report.check("package: containers: alone", self._alone)
        self._report.check("package: containers: two and uroced", self._pair, "uroced")
        self._report.check("package: containers: two and a veth pair", self._pair, "veth")

    def _alone(self):
        """An ordinary user without a capability, and with podman's filter of system calls."""
        output = self._run(self._blocks["alone"].replace("ibv_devinfo", "ibv_devinfo -v"))
        if "198.18.0.1" not in output or "PORT_ACTIVE" not in output:
            raise CheckFailed("no device", output.splitlines())
        before, _, command = self._blocks["alone"].partition("uroce-run")
        output = self._run(f"{before} grep -E '^(Cap...|Seccomp):' /proc/self/status")
        if not command or len(re.findall(r"^Cap\w+:\s+0{16}$", output, re.M)) != 5 or not re.search(r"Seccomp:\s+2", output):
            raise CheckFailed("the container is not restricted", output.splitlines())

    def _pair(self, block):
        """ucmatose checks that each of its messages arrives; both sides tell their result."""
        try:
            output = self._run(self._blocks[block].replace("podman wait server", "podman wait server; podman logs server"))
        finally:
            self._end_containers()
        if output.count("return status 0") != 2:
            raise CheckFailed("not both sides end well", output.splitlines()[-30:])
