# SPDX-License-Identifier: BSD-3-Clause
"""doc/user/containers.md, run by podman as it is written: containers of an image that has perftest and nothing of uroce's."""

import os
import re
import subprocess
import textwrap

from harness.checkout import TOP_DIR
from harness.podman import Podman
from harness.report import CannotRun, CheckFailed

IMAGE = "localhost/perftest"
# The directories that the page names, for this script alone. The uroced that it starts in the background ends with it.
PLACES = """trap '[ -z "$!" ] || kill $!' EXIT
mkdir -p /run/uroce /run/uroce-cdi /run/cdi
mount -t tmpfs tmpfs /run/uroce
mount -t tmpfs -o mode=755 tmpfs /run/uroce-cdi
mount -t tmpfs tmpfs /run/cdi
mount -t tmpfs tmpfs /opt
mkdir /opt/uroce
mount --bind {bundle} /opt/uroce
PATH=$PATH:/opt/uroce
"""
# Pods cannot be without control groups.
KUBE = """export CONTAINERS_CONF=$PWD/containers.conf
podman kube play --network none uroced.yaml
until [ -S /run/uroce/isolated.sock ]; do sleep 0.1; done
podman kube play --network none pod.yaml
podman wait test-server test-client
podman logs test-server
podman logs test-client
"""
LIMITS = """[containers]
default_ulimits = ["nofile=4096:4096", "nproc=1000:1000"]
"""
RESULT = re.compile(r"^ 65536 +5000 +\d", re.M)


def blocks():
    """Return the blocks of the page: {second word: text}."""
    with open(os.path.join(TOP_DIR, "doc", "user", "containers.md"), encoding="utf-8") as file:
        return dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", file.read(), re.M | re.S))


def as_pod(daemon_set):
    """Return the pod of a DaemonSet, which podman 4.3 does not know."""
    name = re.search(r"^  name: (\w+)$", daemon_set, re.M)[1]
    template = textwrap.dedent(daemon_set.split("  template:\n")[1])
    return "apiVersion: v1\nkind: Pod\n" + template.replace("metadata:\n", f"metadata:\n  name: {name}\n", 1)


class BundleContainersTest:
    """All checks, with the programs of a place as an image."""

    def __init__(self, report, place, bundle, directory):
        self._report = report
        self._place = place
        self._bundle = bundle
        self._podman = Podman(directory)
        self._blocks = blocks()

    def run_all(self):
        with self._podman:
            reason = self._podman.begin(f"/proc/{self._place.pid}/root --one-file-system --exclude=./home", IMAGE)
            if reason:
                self._report.skip("bundle: containers", reason)
                return
            directory = os.path.join(self._podman.dir, "bundle")
            os.mkdir(directory)
            subprocess.run(["tar", "-xf", self._bundle, "-C", directory, "--strip-components", "1"], check=True)
            self._report.check("bundle: containers: uroce-ctl cdi", self._cdi)
            self._report.check("bundle: containers: manifests", self._manifests)

    def _run(self, script):
        try:
            return self._podman.run(PLACES.format(bundle=os.path.join(self._podman.dir, "bundle")) + script)
        finally:
            self._podman.end_containers()

    def _cdi(self):
        """Two containers use the device, and see its files."""
        output = self._run(self._blocks["cdi"] + """podman logs server
podman run --rm --network none --user 1000 --cap-drop all --device uroce.io/nic=all perftest sh -c \\
'ibv_devinfo -v; cat /sys/class/infiniband/uroce0/ports/1/gids/1'
""")
        if len(RESULT.findall(output)) != 2:
            raise CheckFailed("not two results", output.splitlines()[-30:])
        if "198.18.0.1" not in output or output.split()[-1] != "0000:0000:0000:0000:0000:ffff:c612:0001":
            raise CheckFailed("no device, or not its files", output.splitlines()[-30:])

    def _manifests(self):
        files = {"uroced.yaml": as_pod(self._blocks["uroced.yaml"]), "pod.yaml": self._blocks["pod.yaml"],
                 "containers.conf": LIMITS}
        for name, text in files.items():
            with open(os.path.join(self._podman.dir, name), "w", encoding="utf-8") as file:
                file.write(text.replace("debian:bookworm-slim", "perftest"))
        try:
            output = self._run(KUBE)
        except CheckFailed as failure:
            reason = [line for line in failure.details if "cgroup" in line]
            if reason:
                raise CannotRun(f"no pods here: {reason[0]}") from failure
            raise
        if len(RESULT.findall(output)) != 2:
            raise CheckFailed("not two results", output.splitlines()[-30:])
