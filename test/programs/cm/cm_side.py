#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One side of a connection by pyverbs, for cases that no program of rdmacm-utils covers.

cm_side.py listen ADDRESS PORT BACKLOG   listens, and answers no request
cm_side.py stay ADDRESS PORT [COUNT]     connects COUNT times, and waits
cm_side.py leave ADDRESS PORT            connects, and ends without a disconnect
"""

import ctypes
import signal
import sys

from pyverbs import cm_enums, enums
from pyverbs.cmid import CMID, AddrInfo, ConnParam
from pyverbs.qp import QPCap, QPInitAttr


def endpoint(address, port, passive):
    if passive:
        info = AddrInfo(src=address, src_service=port, port_space=cm_enums.RDMA_PS_TCP, flags=cm_enums.RAI_PASSIVE)
    else:
        info = AddrInfo(dst=address, dst_service=port, port_space=cm_enums.RDMA_PS_TCP)
    return CMID(creator=info, qp_init_attr=QPInitAttr(qp_type=enums.IBV_QPT_RC, cap=QPCap()))


def main():
    action, address, port, *more = sys.argv[1:]
    cmid = endpoint(address, port, action == "listen")
    if action == "listen":
        cmid.listen(int(more[0]))
        print("listens", flush=True)
    else:
        cmids = [cmid, *(endpoint(address, port, False) for _ in range(1, int(*more or [1])))]
        for cmid in cmids:
            cmid.connect(ConnParam())
        print("connected", flush=True)
    if action == "leave":
        # Without this, Python would destroy the id.
        ctypes.CDLL(None).exit(0)
    signal.pause()


if __name__ == "__main__":
    main()
