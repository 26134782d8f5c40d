# SPDX-License-Identifier: BSD-3-Clause
"""Podman with images and containers in a directory of a test's own."""

import os
import shutil
import subprocess

from .report import CheckFailed

SECONDS = 300
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # of images
# Stands for podman in scripts. Images are made without a registry. Containers of a test that may itself be in a container get
# no control groups and only limits that any host allows.
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


class Podman:
    """Podman in a directory, which ends with its containers and images."""

    def __init__(self, directory, path=""):
        self.dir = directory
        self._path = path

    def __enter__(self):
        self._clean_up()
        os.makedirs(os.path.join(self.dir, "bin"))
        return self

    def __exit__(self, *_):
        self._clean_up()

    def _clean_up(self):
        if os.path.exists(os.path.join(self.dir, "bin", "podman")):
            self.end_containers()
        shutil.rmtree(self.dir, ignore_errors=True)

    def end_containers(self):
        """Containers are processes outside of ours, so podman has to end them."""
        self.script("podman pod rm --all --force --time 0; podman rm --all --force --time 0; podman volume rm --all --force")

    def script(self, script):
        """Run a shell script in the directory, with our podman. Return status and output."""
        environment = {**os.environ, "PATH": f"{self.dir}/bin:{self._path}{os.environ['PATH']}"}
        try:
            done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", PRIVATE, "sh",
                                   "sh", "-ec", script], cwd=self.dir, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired as late:
            raise CheckFailed(f"hangs (after {SECONDS} s): {script}", str(late.output).splitlines()[-20:]) from late
        return done.returncode, done.stdout

    def run(self, script):
        status, output = self.script(script)
        if status:
            raise CheckFailed(f"exit {status}: {script}", output.splitlines()[-20:])
        return output

    def _write(self, podman, driver, base):
        path = os.path.join(self.dir, "bin", "podman")
        with open(path, "w", encoding="ascii") as file:
            file.write(PODMAN.format(base=base, podman=podman, dir=self.dir, driver=driver))
        os.chmod(path, 0o755)

    def begin(self, root, image):
        """Make an image of a root directory. Return the reason if podman can run no container here. Where overlays cannot be
        mounted, podman copies the image for each container."""
        podman = shutil.which("podman")
        if not podman:
            return "podman is missing"
        for driver in ("overlay", "vfs"):
            self._write(podman, driver, image)
            status, output = self.script(f"tar -C {root} -c . | podman import --quiet --change 'ENV PATH={PATH}' - {image}\n"
                                         f"podman run --rm --network none {image} true")
            if status == 0:
                return None
            shutil.rmtree(os.path.join(self.dir, "images"), ignore_errors=True)
        return f"podman cannot run a container here: {' '.join(output.splitlines()[-1:])}"
