# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's iSER initiator, ib_iser, with open-iscsi's programs."""

import contextlib
import os

import tgt

LUN_BYTES = 256 << 20
INITIATOR = "iqn.2026-11.test.uroce:guest"
LOGIN_SECONDS = 60
# iscsiadm may miss a response on a slow machine, wait for 30 s, and sometimes crash. On the wire the target answers within 2 ms,
# and the guest acknowledges that.
DISCOVERIES = 3
# tgt pings each connection every 5 s. ib_iser has no receive request for that until it has logged in, which iscsid does in
# more than 5 s on a busy machine; then the connection fails, for ib_iser allows six retries.
NO_PING = ",nop=off"
# iscsid looks for sessions when it starts, and would disturb one that iscsiadm makes in that moment.
ISCSID_SECONDS = 3
FIND = "for i in $(seq 100); do ls /dev/sd? 2>/dev/null && exit; usleep 100000; done; exit 1"


def prepare(initiator):
    """Return what Debian's package open-iscsi does when it is installed and when the machine boots."""
    return ("modprobe -a ib_iser sd_mod && mkdir -p /etc/iscsi /run/lock && "
            f"echo InitiatorName={initiator} >/etc/iscsi/initiatorname.iscsi && "
            "echo node.startup = manual >/etc/iscsi/iscsid.conf && "
            f"{{ pidof iscsid >/dev/null || {{ iscsid 3>&- && sleep {ISCSID_SECONDS}; }}; }}")


class IserDisk:
    """A LUN of tgt on uroce."""

    name = "iser"
    statistics = "/sys/block/sd*/stat"
    errors = "I/O error"

    def __init__(self, sides):
        self._sides = sides
        self._node = f"iscsiadm -m node -T {tgt.TARGET} -p {sides.address}"
        self._file = os.path.join(sides.work_dir, "iser.lun")
        with open(self._file, "wb") as file:
            file.truncate(LUN_BYTES)

    def prepare(self, running):
        """tgt needs nothing else."""

    def watch(self, _running):
        """tgt's packets have nothing that the other checks do not look at."""
        return contextlib.nullcontext()

    def serve(self, running):
        return tgt.Target(running, self._sides, self._file, INITIATOR, NO_PING).process

    def connect(self, running):
        running.shell(prepare(INITIATOR))
        discover = f"iscsiadm -m discovery -t sendtargets -p {self._sides.address} -I iser"
        running.shell(f"for i in $(seq {DISCOVERIES}); do {discover} && exit; done; exit 1", DISCOVERIES * LOGIN_SECONDS)
        running.shell(f"{self._node} --login", LOGIN_SECONDS)
        if not running.shell("iscsiadm -m session").startswith("iser: "):
            running.fail("the session is not one of iSER")
        return running.shell(FIND).split()[0]

    def disconnect(self, running):
        running.shell(f"{self._node} --logout", LOGIN_SECONDS)
