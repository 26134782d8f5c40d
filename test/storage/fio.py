# SPDX-License-Identifier: BSD-3-Clause
"""fio's engine `rdma`: a server and a client, with each verb of the engine, in memory of several kinds."""

import contextlib
import json
import mmap
import os
import re
import shutil

from harness.report import CheckFailed
from sides import StorageRunning, lacks_pages

SECONDS = 60
PORT = 7788
MIB = 32
SMALL_MIB = 4  # for requests of 4 KiB
VERBS = ("write", "read", "send")
HUGE_PAGES = 8
# fio asks for no RNR retry, so its server needs many more receive requests than its client has messages. Its limit is 512.
SERVER_DEPTH = {"write": 64, "read": 64, "send": 512}
CLIENT_DEPTH = {"write": 16, "read": 16, "send": 1}
# Only the receiver of messages verifies: the engine completes nothing at the server of WRITEs and READs (doc/user/storage.md).
VERIFY = ["--verify=crc32c", "--verify_state_save=0"]


class SharedBuffers:
    """A side's buffers, in a file that this test has open, too: fio unlinks it."""

    def __init__(self, path, size):
        self.option = f"--iomem=mmapshared:{path}"
        with open(path, "w+b") as file:
            file.write(os.urandom(size))
            file.flush()
            self._memory = mmap.mmap(file.fileno(), size)

    def split(self, size):
        """Return the bytes of each buffer."""
        return [self._memory[at:at + size] for at in range(0, len(self._memory), size)]


class FioTest:
    """All checks of one kind of link."""

    def __init__(self, report, sides):
        self._report = report
        self._sides = sides

    def run_all(self):
        complete, memif = self._report.complete, self._sides.wire == "memif"
        for verb in VERBS:
            if complete or not memif:
                self._check(verb, self._run, verb, 65536, MIB)
            if complete or memif:
                self._check(f"{verb} by threads, in SysV segments", self._run, verb, 65536, MIB, ["--thread", "--iomem=shm"])
            if memif and not complete:
                continue
            if verb == "send":
                self._check(f"{verb} of 4 KiB", self._run, verb, 4096, SMALL_MIB)
            else:
                self._check(f"{verb} of 4 KiB, in shared files", self._run_shared, verb, 4096, SMALL_MIB)
        if memif:
            self._check("write, in SysV segments of huge pages", self._run, "write", 65536, MIB, ["--iomem=shmhuge"],
                        lack=lacks_pages(HUGE_PAGES))

    def _check(self, name, function, *args, lack=None):
        name = f"fio: {self._sides.wire}: {name}"
        if self._report.only and self._report.only not in name:
            return
        if not shutil.which("fio"):
            lack = "fio is not installed"
        if lack:
            self._report.skip(name, lack)
            return
        self._report.check(name, function, *args)

    def _run_shared(self, verb, size, mib):
        """
        Check that each buffer that is written has the bytes of one of those that are sent. fio 3.33 chooses the server's
        buffer by random for each request. The sent buffers stay as they are.
        """
        server, client = (SharedBuffers(os.path.join(self._sides.work_dir, f"fio-{side}"), size * depth[verb])
                          for side, depth in (("server", SERVER_DEPTH), ("client", CLIENT_DEPTH)))
        self._run(verb, size, mib, [server.option], [client.option, "--scramble_buffers=0"])
        source, written = (client, server) if verb == "write" else (server, client)
        sent = set(source.split(size))
        wrong = sum(buffer not in sent for buffer in written.split(size))
        if wrong or len(sent) < 2:
            raise CheckFailed(f"{wrong} buffers have other bytes than were sent")

    def _run(self, verb, size, mib, options=(), client_options=None):
        common = ["--ioengine=rdma", f"--port={PORT}", f"--bs={size}", f"--size={mib}m", "--output-format=json"]
        checks = VERIFY if verb == "send" else []
        with StorageRunning() as running, contextlib.ExitStack() as at_end:
            server = running.add(self._sides.target.start(
                ["fio", "--name=server", *common, "--rw=read", f"--iodepth={SERVER_DEPTH[verb]}", *checks, *options]))
            at_end.callback(server.kill_descendants)  # fio's jobs have sessions of their own
            running.wait_for_output(server, "waiting for connection")
            client = running.add(self._sides.initiator.start(
                ["fio", "--name=client", *common, "--rw=write", f"--iodepth={CLIENT_DEPTH[verb]}",
                 "--iodepth_batch_complete_min=1", f"--verb={verb}", f"--hostname={self._sides.address}",
                 *checks, *(options if client_options is None else client_options)]))
            at_end.callback(client.kill_descendants)
            output = running.expect(client, SECONDS, "client")
            running.expect(server, SECONDS, "server")
            job = json.loads(output[output.index("{\n"):])["jobs"][0]
            if job["error"] or job["write"]["io_bytes"] != mib << 20:
                running.fail("not all bytes were moved")
            if re.search("^fio: ", output, re.M):
                running.fail("the client reports an error")
