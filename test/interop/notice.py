#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Count the marks and congestion notifications of each host on an interface until SIGTERM: notice.py INTERFACE. Prints, by the
sender's IPv4 address, the number of frames with each value of the ECN bits, and of congestion notifications (opcode 0x81)."""

import json
import signal
import socket
import sys

ETH_P_IP = 0x0800
ETH_P_ALL = 3
UDP = 17
ROCE_PORT = 4791
CNP = 0x81
BECN = 0x40
RESERVED = 16  # zeros behind the BTH


def notice(seen, frame):
    ip = frame[14:]
    header = (ip[0] & 15) * 4
    if ip[9] != UDP or int.from_bytes(ip[header + 2:header + 4], "big") != ROCE_PORT:
        return
    bth = ip[header + 8:]
    host = seen.setdefault(socket.inet_ntoa(ip[12:16]), {"ecn": [0, 0, 0, 0], "cnp": 0, "bad": 0})
    host["ecn"][ip[1] & 3] += 1
    if bth[0] == CNP:
        host["cnp"] += 1
        # The length tells nothing: a kernel interface sends it in one piece with later packets that are not longer.
        host["bad"] += not bth[4] & BECN or any(bth[12:12 + RESERVED])


def main():
    seen = {}
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as port:
        port.bind((sys.argv[1], ETH_P_ALL))
        port.settimeout(0.1)
        print("ready", flush=True)
        while not stop:
            try:
                frame, address = port.recvfrom(200)
            except TimeoutError:
                continue
            if address[1] == ETH_P_IP and len(frame) >= 14 + 20 + 8 + 12 + 4:
                notice(seen, frame)
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
