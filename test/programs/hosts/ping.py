# SPDX-License-Identifier: BSD-3-Clause
"""Ask an address for an echo from the kernel's side of a link: ping.py ADDRESS BYTES. The exit status is 1 if no
answer comes."""

import ipaddress
import socket
import struct
import sys
import time

SECONDS = 20
ECHO, ECHO_REPLY = {4: 8, 6: 128}, {4: 0, 6: 129}
IDENTIFIER = 7


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff


def main(address, length):
    version = ipaddress.ip_address(address).version
    family, protocol = ((socket.AF_INET, socket.IPPROTO_ICMP) if version == 4
                        else (socket.AF_INET6, socket.IPPROTO_ICMPV6))
    wire = socket.socket(family, socket.SOCK_RAW, protocol)
    wire.settimeout(0.2)
    payload = bytes(index & 0xff for index in range(int(length)))
    deadline = time.monotonic() + SECONDS
    sequence = 0
    while time.monotonic() < deadline:
        sequence += 1
        sent = struct.pack("!BBHHH", ECHO[version], 0, 0, IDENTIFIER, sequence) + payload
        if version == 4:  # over IPv6 the kernel computes it
            sent = sent[:2] + struct.pack("!H", checksum(sent)) + sent[4:]
        try:
            wire.sendto(sent, (address, 0))
            while True:
                answer, sender = wire.recvfrom(65536)
                if version == 4:
                    answer = answer[(answer[0] & 0xf) * 4:]
                if sender[0] == address and answer[0] == ECHO_REPLY[version] and answer[4:] == sent[4:]:
                    return 0
        except OSError:
            continue  # no answer, or no neighbour: try again
    print(f"no echo of {length} bytes from {address}")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
