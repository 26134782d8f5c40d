# SPDX-License-Identifier: BSD-3-Clause
"""virtio-user at one end and vhost at the other, as between a container and a switch in user space."""

import os

from harness.process import LocalHost, Namespace
from harness.tools import DEVICE, UROCE_RUN, PerfTest, PingPong, Side, run_pair

FIRST_PORT = 23000
ADDRESSES = ("10.9.6.1", "10.9.6.2")


class VhostTest:
    """The vhost side is the server: it makes the socket, and waits until the other end connects."""

    def __init__(self, report, work_dir):
        self._report = report
        self._socket = f"{work_dir}/vhost.sock"
        namespace = Namespace("vhost")
        ports = (f"net_vhost0,iface={self._socket},queues=1",
                 f"net_virtio_user0,path={self._socket},queues=1,queue_size=1024,packed_vq=1")
        self._hosts = [
            LocalHost(f"vhost-{cpu}", work_dir, [
                *namespace.prefix, UROCE_RUN, "--port", port, "--mtu", "4200", "--ip", f"{address}/24", "--"],
                cpu % os.cpu_count())
            for cpu, (port, address) in enumerate(zip(ports, ADDRESSES))]

    def _pair(self, program, port):
        if os.path.exists(self._socket):
            os.unlink(self._socket)
        sides = [Side(host, DEVICE, "127.0.0.1", 1) for host in self._hosts]
        run_pair(program, *sides, port)

    def run_all(self):
        programs = [PingPong(["-m", "4096"], 1000, 65536), PingPong(["-e"], 1000, 4096), PerfTest("ib_write_bw"),
                    PerfTest("ib_read_bw"), PerfTest("ib_send_lat")]
        for number, program in enumerate(programs):
            self._report.check(f"vhost: {program.name}", self._pair, program, FIRST_PORT + number)
