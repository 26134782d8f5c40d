# SPDX-License-Identifier: BSD-3-Clause
"""A case of interop_peer, as a program that both sides run."""

from harness.report import CheckFailed
from harness.tools import START_SECONDS, Side

LACKS = 77  # peer.c's exit status if the device lacks the operations


class PeerCase:
    """A case of peer.c, the program that runs on both sides."""

    def __init__(self, case):
        self.name = case
        self._done = f"{case}: done"

    def argv(self, side, port, peer=None):
        argv = [side.host.peer_program, "-d", side.device, "-g", str(side.gid_index), "-p", str(port), self.name]
        return argv + ([peer] if peer else [])

    def judge(self, server, client):
        if self._done not in server or self._done not in client:
            raise CheckFailed("a side did not report its end")

    def is_possible(self, host, role):
        """Return True if the device of a host supports what a role needs ("?" the client's, "!" the server's)."""
        process = host.start(self.argv(Side(host, host.device, None, 0), 0, role))
        try:
            status = process.wait(START_SECONDS)
            if status not in (0, LACKS):
                raise CheckFailed("the peer did not say if the device supports the case", process.story(host.name))
        finally:
            process.kill()
        return status == 0
