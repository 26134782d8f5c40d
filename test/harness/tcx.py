# SPDX-License-Identifier: BSD-3-Clause
"""eBPF programs at the ingress of an interface (tcx)."""

import contextlib
import os
import re

CAP_BPF = 39


def may_attach():
    """Return true if the kernel has tcx, and lets this process attach programs."""
    with open("/proc/self/status", encoding="ascii") as status, open("/proc/self/uid_map", encoding="ascii") as uid_map:
        fields = dict(line.split(":", 1) for line in status)
        is_first = uid_map.read().split()[2] == str(2 ** 32 - 1)
    version = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups()))
    capable = int(fields["CapEff"], 16) >> CAP_BPF & 1 == 1
    return version >= (6, 6) and is_first and capable and int(fields["Seccomp"]) == 0


def has_attached(pid):
    """Return true if a process holds the link of such a program."""
    folder = f"/proc/{pid}/fdinfo"
    for name in os.listdir(folder):
        # the process may close descriptors meanwhile
        with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, name), encoding="ascii") as file:
            if re.search(r"^link_type:\s*tcx$", file.read(), re.M):
                return True
    return False
