# SPDX-License-Identifier: BSD-3-Clause
"""virtio-user at one end and vhost at the other, as between a container and a switch in user space."""

import os

from harness.process import LocalHost, Namespace, Process, Running, wait_until
from harness.tools import DEVICE, UROCE_RUN, PerfTest, PingPong, Side, run_pair
from programs.hosts.guests import EAL

FIRST_PORT = 23000
REMOTE_WRITE = os.path.join(os.path.dirname(UROCE_RUN), "examples", "remote_write")
SECONDS = 60
ADDRESSES = ("10.9.6.1", "10.9.6.2")


class VhostTest:
    """The vhost side is the server, as DPDK's default is: it makes the socket, and waits until the other end connects. In the
    check of a switch it is the client, as OVS's dpdkvhostuserclient is, and starts first."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
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
        self._report.check("vhost: two programs behind a switch that connects to them", self._switch)

    def _switch(self):
        """Let stock testpmd forward between two programs, twice: the second ones find the switch that was there."""
        sockets = [f"{self._work_dir}/switch-{end}.sock" for end in range(2)]
        vdevs = [word for end, path in enumerate(sockets)
                 for word in ("--vdev", f"net_vhost{end},iface={path},queues=1,client=1")]
        with Running() as running:
            switch = running.add(Process(["dpdk-testpmd", "-l", "0,1", *EAL, *vdevs, "--", "--total-num-mbufs=4096",
                                          "--forward-mode=io", "--auto-start", "--stats-period=1"],
                                         f"{self._work_dir}/switch.log"))
            if not wait_until(lambda: "NIC statistics" in switch.output(), SECONDS):
                running.fail("the switch does not forward")
            for turn in range(2):
                meet = f"{self._work_dir}/switch-{turn}.meet"
                ends = [running.add(Process(
                    [UROCE_RUN, "--port", f"net_virtio_user0,path={path},queues=1,server=1", "--ip", f"{address}/24", "--",
                     REMOTE_WRITE, *options], f"{self._work_dir}/switch-{turn}-{address}.log"))
                    for path, address, options in zip(sockets, ADDRESSES, (["-s", meet], [meet]))]
                if any(end.wait(SECONDS) != 0 for end in ends):
                    running.fail("an end fails")
