# SPDX-License-Identifier: BSD-3-Clause
"""fio's engine `rdma`: a server and a client, with each verb of the engine."""

import contextlib
import json
import re
import shutil

from sides import StorageRunning

SECONDS = 60
PORT = 7788
MIB = 32
SMALL_MIB = 4  # for requests of 4 KiB
VERBS = ("write", "read", "send")


class FioTest:
    """All checks of one kind of link."""

    def __init__(self, report, sides):
        self._report = report
        self._sides = sides

    def run_all(self):
        for verb in VERBS:
            for threads in ([], ["--thread"]):
                self._check(f"{verb}{' by threads' if threads else ''}", self._run, verb, 65536, MIB, threads)
            self._check(f"{verb} of 4 KiB", self._run, verb, 4096, SMALL_MIB, [])

    def _check(self, name, function, *args):
        name = f"fio: {self._sides.wire}: {name}"
        if self._report.only and self._report.only not in name:
            return
        if not shutil.which("fio"):
            self._report.skip(name, "fio is not installed")
            return
        self._report.check(name, function, *args)

    def _run(self, verb, size, mib, threads):
        """fio asks for no RNR retry, so its server needs many more receive requests than its client has messages. Its
        limit is 512."""
        common = ["--ioengine=rdma", f"--port={PORT}", f"--bs={size}", f"--size={mib}m", "--output-format=json", *threads]
        with StorageRunning() as running, contextlib.ExitStack() as at_end:
            server = running.add(self._sides.target.start(
                ["fio", "--name=server", *common, "--rw=read", f"--iodepth={512 if verb == 'send' else 64}"]))
            at_end.callback(server.kill_descendants)  # fio's jobs have sessions of their own
            running.wait_for_output(server, "waiting for connection")
            client = running.add(self._sides.initiator.start(
                ["fio", "--name=client", *common, "--rw=write", f"--iodepth={1 if verb == 'send' else 16}", "--iodepth_batch_complete_min=1",
                 f"--verb={verb}", f"--hostname={self._sides.address}"]))
            at_end.callback(client.kill_descendants)
            output = running.expect(client, SECONDS, "client")
            running.expect(server, SECONDS, "server")
            job = json.loads(output[output.index("{\n"):])["jobs"][0]
            if job["error"] or job["write"]["io_bytes"] != mib << 20:
                running.fail("not all bytes were moved")
            if re.search("^fio: ", output, re.M):
                running.fail("the client reports an error")
