# SPDX-License-Identifier: BSD-3-Clause
"""libfabric's own ping-pong over its provider for verbs."""

import re

from harness.report import CheckFailed

ITERATIONS = 20
# The provider's names, and the kind of endpoint.
ENDPOINTS = (("verbs", "msg"), ("verbs;ofi_rxm", "rdm"))


class FiPingPong:
    """fi_pingpong with checked data."""

    def __init__(self, provider, endpoint, size, mode="msg"):
        self.name = f"fi_pingpong -p {provider} -e {endpoint} -m {mode} -S {size} -c"
        self._argv = ["fi_pingpong", "-p", provider, "-e", endpoint, "-m", mode, "-S", str(size), "-c", "-I", str(ITERATIONS)]

    def argv(self, _side, port, peer=None):
        return self._argv + (["-P", str(port), peer] if peer else ["-B", str(port)])

    @staticmethod
    def judge(server, client):
        """Each side's row has every iteration: sent, and acknowledged."""
        for output in (server, client):
            if not re.search(rf"^\S+ +{ITERATIONS} +={ITERATIONS} ", output, re.M):
                raise CheckFailed("a side does not report its iterations")


def libfabric_programs():
    """Short messages and those that rxm sends by a READ of the receiver."""
    for provider, endpoint in ENDPOINTS:
        for size in (64, 65536):
            yield FiPingPong(provider, endpoint, size)
    yield FiPingPong("verbs;ofi_rxm", "rdm", 4096, "tagged")
