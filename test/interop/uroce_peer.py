# SPDX-License-Identifier: BSD-3-Clause
"""uroce on this machine, as the peer of a guest."""

import contextlib
import os

from guest import MTU, PEER_PROGRAM, VLAN
from harness.process import LocalHost, Namespace
from harness.tools import DEVICE, UROCE_RUN
from programs.share.share import Uroced


class UrocePeer:
    """uroce on a veth pair whose other end is in the bridge, as in a container. It uses one CPU: it polls, and the
    emulation needs the other CPU."""

    name = "uroce"
    device = DEVICE
    address = "10.9.0.254"
    address6 = "fd09::254"
    vlan_address = "10.9.5.254"
    peer_program = PEER_PROGRAM

    def __init__(self, network, work_dir, options=()):
        """All its programs get these options."""
        namespace = self.namespace = Namespace("peer")
        network.run("ip", "link", "add", "peer1", "mtu", str(MTU), "type", "veth", "peer",
                    "name", "peer0", "mtu", str(MTU), "netns", namespace.name)
        network.run("ip", "link", "set", "peer1", "master", "br0", "up")
        namespace.run("sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/peer0/accept_dad")
        namespace.run("ip", "link", "set", "peer0", "up")
        namespace.run("ip", "addr", "add", f"{self.address}/24", "dev", "peer0")
        namespace.run("ip", "addr", "add", f"{self.address6}/64", "dev", "peer0")
        self._work_dir = work_dir
        self._run = [*namespace.prefix, UROCE_RUN, *options]
        self.set_options([])
        self.vlan_host = LocalHost(f"{self.name}-vlan", work_dir, [
            *self._run, "--port", "net_af_packet0,iface=peer0",
            "--ip", f"{self.vlan_address}/24@{VLAN}", "--"], os.cpu_count() - 1)

    def set_options(self, more):
        """Set options of uroce-run, in addition to the port."""
        self._host = LocalHost(self.name, self._work_dir, [
            *self._run, "--netdev", "peer0", *more, "--"], os.cpu_count() - 1)

    @contextlib.contextmanager
    def shared(self, place):
        """Run programs as processes of an uroced, attached or isolated."""
        isolated = f"{self._work_dir}/peer-isolated.sock"
        owner = Uroced(self.namespace, self._work_dir, "peer0", f"--isolated={isolated}", "--file-prefix",
                       f"uroce-peer-{os.getpid()}", name="peer")
        how = f"--isolated={isolated}" if place == "isolated" else f"--socket={owner.socket}"
        owner.run()
        self._host = LocalHost(self.name, self._work_dir, [*self._run, how, "--"], os.cpu_count() - 1)
        try:
            yield
        finally:
            owner.process.kill()
            self.set_options([])

    def start(self, argv):
        return self._host.start(argv)
