#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Count what each host sends on an interface until SIGTERM: notice.py INTERFACE. Prints, by the sender's IPv4 address, the
number of frames with each value of the ECN bits, and of packets: all, congestion notifications (opcode 0x81), those with an
opcode that IBTA leaves to manufacturers, those with uroce's sign in the reserved bits beside AckReq, and SENDs that invalidate
a key."""

import copy
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
INVALIDATES = (0x16, 0x17)  # RC SEND LAST and SEND ONLY with invalidate
RESERVED = 16  # zeros behind the BTH
BTH_BYTES = 12
MANUFACTURERS = 0xc0  # the lowest of their opcodes
SOL_PACKET = 263
PACKET_VNET_HDR = 15
VNET_BYTES = 10  # struct virtio_net_hdr: flags, gso_type, hdr_len, gso_size, csum_start, csum_offset
NOTHING = {"ecn": [0, 0, 0, 0], "packets": 0, "cnp": 0, "bad": 0, "manufacturer": 0, "signed": 0, "invalidates": 0}


def datagrams(payload, segment):
    """A kernel interface passes packets of the same length, and a last one that may be shorter, in one piece."""
    step = segment or len(payload)
    return (payload[at:at + step] for at in range(0, len(payload), step))


def notice(seen, frame, segment):
    ip = frame[14:]
    header = (ip[0] & 15) * 4
    if ip[9] != UDP or int.from_bytes(ip[header + 2:header + 4], "big") != ROCE_PORT:
        return
    host = seen.setdefault(socket.inet_ntoa(ip[12:16]), copy.deepcopy(NOTHING))
    host["ecn"][ip[1] & 3] += 1
    for bth in datagrams(ip[header + 8:], segment):
        if len(bth) < BTH_BYTES:
            continue
        host["packets"] += 1
        host["manufacturer"] += bth[0] >= MANUFACTURERS
        host["signed"] += bth[8] & 0x7f != 0
        host["invalidates"] += bth[0] in INVALIDATES
        if bth[0] == CNP:
            host["cnp"] += 1
            # Behind the reserved bytes there may be padding of the frame.
            host["bad"] += not bth[4] & BECN or any(bth[BTH_BYTES:BTH_BYTES + RESERVED])


def main():
    seen = {}
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as port:
        port.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        port.bind((sys.argv[1], ETH_P_ALL))
        port.settimeout(0.1)
        print("ready", flush=True)
        while not stop:
            try:
                data, address = port.recvfrom(1 << 17)
            except TimeoutError:
                continue
            frame = data[VNET_BYTES:]
            gso_type, segment = data[1], int.from_bytes(data[4:6], sys.byteorder)
            if address[1] == ETH_P_IP and len(frame) >= 14 + 20 + 8 + 12 + 4:
                notice(seen, frame, segment if gso_type else 0)
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
