# SPDX-License-Identifier: BSD-3-Clause
"""uroce-run --local within the limits of CI machines and containers: a small program of rdma_cm works in each."""

import os
import re
import tempfile

from harness.process import ask, need_own_tmp, wait_until
from harness.report import CannotRun, CheckFailed
from harness.tools import UROCE_RUN
from programs.tools.ci import SECONDS, SEND_TEST, expect
from programs.tools.local import UNPRIVILEGED

MEMORY_BYTES, PROCESSES, FILES = 64 << 20, 16, 32
# The file of a control group that limits it, in both versions.
MEMORY_FILES, PIDS_FILES = ("memory.limit_in_bytes", "memory.max"), ("pids.max", "pids.max")
MOUNTS = {
    "/dev/shm of 4 KiB": "-o mode=1777,size=4k tmpfs /dev/shm",
    "/tmp without execution": "-o mode=1777,noexec tmpfs /tmp",
    "no /proc/sys": "-o ro tmpfs /proc/sys",
}


class LimitsTest:
    """All checks, as an ordinary user without capabilities."""

    def __init__(self, report, _work_dir):
        self._report = report

    def run_all(self):
        self._check("64 MiB of memory", self._in_group, "memory", MEMORY_FILES, MEMORY_BYTES)
        self._check("16 processes and threads", self._in_group, "pids", PIDS_FILES, PROCESSES)
        self._check("32 descriptors", self._send, "prlimit", f"--nofile={FILES}:{FILES}")
        for name, mount in MOUNTS.items():
            self._check(name, self._send, "unshare", "--mount", "--propagation", "private", "sh", "-c",
                        f'mount -t tmpfs {mount} && exec "$@"', "sh")

    def _check(self, name, function, *args):
        self._report.check(f"limits: {name}", function, *args)

    @staticmethod
    def _send(*limited):
        if "tmpfs /tmp" in " ".join(limited):
            need_own_tmp()
        expect([*limited, *UNPRIVILEGED, UROCE_RUN, "--local", "--", SEND_TEST])

    def _in_group(self, controller, files, limit):
        group = self._make_group(controller, files, limit)
        try:
            self._send("sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh")
        finally:
            if not wait_until(lambda: self._is_removed(group), SECONDS):
                raise CheckFailed(f"{group} still has processes")

    @staticmethod
    def _is_removed(group):
        try:
            os.rmdir(group)
        except OSError:
            return False
        return True

    def _make_group(self, controller, files, limit):
        """Return a new control group with this limit, in the hierarchy that the machine uses for it."""
        with open("/proc/cgroups", encoding="ascii") as file:
            first = re.search(rf"^{controller}\t[1-9]", file.read(), re.M)
        options = ["-t", "cgroup", "-o", controller] if first else ["-t", "cgroup2"]
        folder = tempfile.mkdtemp()
        group = os.path.join(folder, f"uroce-limits-{os.getpid()}")
        if ask(["mount", *options, "cgroup", folder], SECONDS).returncode:
            raise CannotRun(f"no control groups of {controller} can be mounted")
        try:
            os.mkdir(group)
            with open(os.path.join(group, files[0 if first else 1]), "w", encoding="ascii") as file:
                file.write(str(limit))
        except OSError as reason:
            self._is_removed(group)
            raise CannotRun(f"no control group with a limit of {controller}: {reason}") from None
        return group
