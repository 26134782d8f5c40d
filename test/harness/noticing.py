# SPDX-License-Identifier: BSD-3-Clause
"""What crosses the wire while something runs (notice.py)."""

import json
import os
import sys

from harness.process import LocalHost, wait_until
from harness.report import CheckFailed

NOTICE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "notice.py")
START_SECONDS = 10


class Notice:
    """Counts what crosses an interface. At the bridge of the interop tests uroce's packets are marked already, and rxe's not yet."""

    def __init__(self, network, work_dir, interface):
        host = LocalHost(f"notice-{interface}", work_dir, network.prefix)
        self._process = host.start([sys.executable, NOTICE, interface])
        if not wait_until(lambda: "ready" in self._process.output(), START_SECONDS):
            raise CheckFailed("the capture does not start", self._process.story("capture"))

    def end(self):
        self._process.terminate()
        if self._process.wait(START_SECONDS) != 0:
            raise CheckFailed("the capture does not end", self._process.story("capture"))
        return json.loads(self._process.output().splitlines()[-1])

    def kill(self):
        self._process.kill()
