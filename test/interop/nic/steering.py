# SPDX-License-Identifier: BSD-3-Clause
"""Flow rules that direct RoCE to uroce's queue, on net_tap, whose rules are those of the guest's kernel. Linux's
rxe is at the other end."""

import re

from harness.report import CheckFailed
from overlay import GUEST_REMOTE_WRITE, GUEST_STEERED

import events

END_SECONDS = 180
PORT, OTHER = "rules", "beside"  # the example needs two ports
SOCKET = "/tmp/steered.sock"
EAL = ["-l", "0", "--no-huge", "--no-shconf", "-m", "128", "--no-pci", "--iova-mode=va", "--no-telemetry"]
# The driver's port has the address of its interface, and rxe would keep the frames for that address.
MAC = "02:00:00:09:00:40"
ADDRESSES = ("10.9.64.1", "10.9.64.2")
# The kernel chooses a queue for each flow that no rule names, by a hash. The secret of the hash is another at each start
# of the guest. So some flows of this many arrive at the application's queue.
OTHER_FLOWS = "for port in $(seq 9001 9024); do nc -w 1 %s $port & done; wait"


def _run_all(guest, commands):
    for command in commands:
        status, output = guest.run(command)
        if status:
            raise CheckFailed(f"{command}: {output}")


def _steered(guest):
    _run_all(guest, ["modprobe -a tun cls_flower act_skbedit sch_multiq sch_ingress", "rdma link del rxe0"])
    application = guest.start([GUEST_STEERED, *EAL, "--vdev", f"net_tap0,iface={OTHER}", "--vdev",
                               f"net_tap1,iface={PORT}", "--", f"{ADDRESSES[0]}/24", SOCKET])
    try:
        events.wait_for(application, "queue 1 is uroce's")
        _run_all(guest, [f"ip link set {PORT} address {MAC}", f"ip addr add {ADDRESSES[1]}/24 dev {PORT}",
                         f"ip link set {PORT} up", f"rdma link add rxe0 type rxe netdev {PORT}",
                         f"ping -c 1 -w 60 {ADDRESSES[0]}", OTHER_FLOWS % ADDRESSES[0]])
        peer = guest.start([GUEST_REMOTE_WRITE, SOCKET, "1"])
        try:
            if peer.wait(END_SECONDS) != 0:
                raise CheckFailed("the peer failed", peer.story("peer") + application.story("application"))
        finally:
            peer.kill()
        application.terminate()
        application.wait(END_SECONDS)
        counted = re.search(r"queue 0 had (\d+) frames, (\d+) of them RoCE", application.output())
        if not counted or counted[1] == "0" or counted[2] != "0":
            raise CheckFailed("RoCE packets arrive at the application's queue, or nothing else does", application.story("application"))
    finally:
        application.kill()


def run(report, guest):
    """Run this last in a guest: its rxe is gone afterwards."""
    report.require("net_tap: rules steer all RoCE to its queue", _steered, guest)
