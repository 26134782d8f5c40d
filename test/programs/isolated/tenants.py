# SPDX-License-Identifier: BSD-3-Clause
"""Limits of tenants, from uroce.conf to the packets of isolated programs."""

import os
import time

from harness.process import NOBODY, LocalHost, Namespace, ask, need_users, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN, PerfTest, Side, run_pair
from programs.share.operate import expect
from programs.share.share import SECONDS, Uroced

ADDRESS = "10.9.8.1"
PORT = 27500
RATE = 4 << 20
MESSAGES, BYTES = 192, 65536
SETTINGS = f"""[tenant 0]
rate = {RATE}
connection-rate = 1
weight = 3
[tenants]
max-qp = 8
"""


class TenantsTest:
    """An uroced without a network, in whose file each tenant has limits."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "tenants")
        os.mkdir(self._work_dir)
        for path in (work_dir, self._work_dir):
            os.chmod(path, 0o755)
        self._here = Namespace("tenants0")
        self._here.run("ip", "link", "set", "lo", "up")
        self._socket = f"{self._work_dir}/isolated.sock"
        path = f"{self._work_dir}/uroce.conf"
        with open(path, "w", encoding="ascii") as file:
            file.write(SETTINGS)
        self._owner = Uroced(self._here, self._work_dir, None, "--config", path, "--port", "net_null0", "--ip", f"{ADDRESS}/24",
                             f"--isolated={self._socket}", "--file-prefix", f"uroce-tenants-{os.getpid()}", "--log-level", "info")
        self._names = 0

    def run_all(self):
        if not self._report.require("tenants: uroced starts", self._owner.run):
            return
        for times in ("at first", "attached anew"):
            self._report.check(f"tenants: a rate, {times}", self._rate)
        self._report.check("tenants: a rate of connections", self._connection_rate)
        self._report.check("tenants: queue pairs", self._queue_pairs)

    def _side(self):
        self._names += 1
        host = LocalHost(f"tenants-{self._names}", self._work_dir,
                         [*self._here.prefix, UROCE_RUN, f"--isolated={self._socket}", "--"])
        return Side(host, DEVICE, "127.0.0.1", 1)

    def _rate(self):
        """A program may send no faster than its rate. It may be slower, on a busy machine."""
        begin = time.monotonic()
        run_pair(PerfTest("ib_write_bw", ["-s", str(BYTES)], MESSAGES), self._side(), self._side(), PORT)
        took = time.monotonic() - begin
        expect(took > 0.95 * MESSAGES * BYTES / RATE, f"{MESSAGES * BYTES} bytes in {took:.2f} s", self._owner.status())
        expect(self._owner.status()["direct_channels"] == 0, "packets pass uroced by", self._owner.status())

    def _connection_rate(self):
        """A second request in a second is dropped, and asked again, so connections succeed later."""
        server, client = self._side().host, self._side().host
        listener = server.start(["rping", "-s", "-P", "-a", ADDRESS, "-p", str(PORT)])
        connect = ["rping", "-c", "-a", ADDRESS, "-p", str(PORT), "-C", "1"]
        try:
            expect(wait_until(lambda: client.start(connect).wait(SECONDS) == 0, SECONDS), "the server does not listen",
                   *listener.story("server"))
            begin = time.monotonic()
            for _ in range(2):
                done = client.start(connect)
                expect(done.wait(SECONDS) == 0, "a connection fails", *done.story("client"), *listener.story("server"))
            took = time.monotonic() - begin
            expect(took > 1, f"2 more connections in {took:.2f} s", self._owner.status())
        finally:
            listener.kill()

    def _queue_pairs(self):
        """The first program of a user gets all that the tenant may have, and the next none, until that has ended."""
        need_users()
        attach = [*self._here.prefix, *NOBODY, UROCE_RUN, f"--isolated={self._socket}", "--"]
        holder = LocalHost("tenants-holder", self._work_dir, attach).start(["ibv_rc_pingpong", "-d", DEVICE, "-p", str(PORT)])
        try:
            if not wait_until(lambda: holder.listens(PORT), SECONDS):
                raise CheckFailed("the server does not listen", holder.story("server"))
            done = ask([*attach, "ibv_devinfo"], SECONDS)
            expect(done.returncode != 0 and "have all the queue pairs" in done.stderr, "a second program attaches", done.stdout,
                   done.stderr)
            expect(wait_until(lambda: "(ibv_devinfo) of user" in self._owner.process.output(), SECONDS), "uroced does not say it",
                   *self._owner.process.story("uroced"))
        finally:
            holder.kill()
        expect(wait_until(lambda: ask([*attach, "ibv_devinfo"], SECONDS).returncode == 0, SECONDS), "none is given again",
               self._owner.status())
