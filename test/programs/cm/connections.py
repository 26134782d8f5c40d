# SPDX-License-Identifier: BSD-3-Clause
"""Many connections by rdma_cm. Afterwards no object, port or descriptor of them may be left."""

import json
import os
import re

from harness.process import Namespace, ask, wait_until
from harness.tools import START_SECONDS, UROCE_CTL, UROCE_RUN
from programs.cm.rdmacm import CmRunning
from programs.run.wires import uroce_host

CONNECT_RATE = os.path.join(os.path.dirname(UROCE_RUN), "..", "test", "perf", "connect_rate")
FIRST_PORT = 7500
SECONDS = 60
END_SECONDS = 20


def count(kind, pid):
    """Return how many objects of a kind a process has."""
    shown = ask([UROCE_CTL, "-j", "resource", "show", kind, "pid", str(pid)], SECONDS)
    return len(json.loads(shown.stdout)) if shown.returncode == 0 else None


class ConnectionsTest:
    """Two programs of ours over memif. Each fails if it ends with more descriptors than it had at its start."""

    def __init__(self, report, work_dir):
        self._report = report
        namespace = Namespace("connections")
        self._hosts = [uroce_host(f"connections-{role}", work_dir, cpu, namespace, [
            "--port", f"net_memif0,socket={work_dir}/connections.sock,role={role},id=0", "--ip", f"10.9.6.{cpu + 1}/24"])
                       for cpu, role in enumerate(("server", "client"))]
        self._port = FIRST_PORT

    def run_all(self):
        for title, options in (("10,000 connections, 64 at a time", ["-n", "10000"]),
                               ("5,000 connections open at once", ["-n", "5000", "-o"]),
                               ("5,000 connections asked for at once", ["-n", "5000", "-w", "5000", "-o"])):
            self._report.check(f"connections: {title}", self._connect, options)

    def _connect(self, options):
        """When the connections have ended, the client waits for a signal, so the test can inspect both processes."""
        self._port += 1
        argv = [CONNECT_RATE, "-p", str(self._port), "-a", "10.9.6.1"]
        with CmRunning() as running:
            server = running.start(self._hosts[0], argv)
            if not wait_until(lambda: server.listens(self._port), START_SECONDS):
                running.fail("the server does not listen")
            client = running.start(self._hosts[1], [*argv, *options, "-l", "127.0.0.1"])
            wait_until(lambda: "all are ended" in client.output() or client.poll() is not None, SECONDS)
            if client.poll() is not None or not re.search(r"^\d+ \d+ \d+\nall are ended$", client.output(), re.M):
                running.fail("the client does not end all connections")
            for process in (server, client):
                self._nothing_left(running, process)
            client.kill()
            running.expect(server, END_SECONDS, "server")

    @staticmethod
    def _nothing_left(running, process):
        """The server sends its last DREP before it destroys the queue pair, so this waits. The domains show that
        the report is the server's."""
        if not count("pd", process.pid):
            running.fail("uroce-ctl does not show the process")
        if not wait_until(lambda: count("qp", process.pid) == 0, END_SECONDS):
            running.fail(f"{count('qp', process.pid)} queue pairs are left")
