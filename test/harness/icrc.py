# SPDX-License-Identifier: BSD-3-Clause
"""The checksum of RoCEv2 packets."""

import struct
import zlib

ETHERNET, IPV4, UDP, BTH, ICRC = 14, 20, 8, 12, 4
# What may change on the way, behind eight bytes that stand for the local route header (A17.3.3.2, 7.8.1): the type of service,
# the time to live and the checksum of the IP header, the checksum of UDP, and the BTH's reserved byte.
CHANGES = (1, 8, 10, 11, IPV4 + 6, IPV4 + 7, IPV4 + UDP + 4)


def icrc(frame):
    """Return the ICRC of an Ethernet frame with an IPv4 header without options. Its last bytes are the ICRC's place."""
    masked = bytearray(b"\xff" * 8 + frame[ETHERNET:-ICRC])
    for at in CHANGES:
        masked[8 + at] = 0xff
    return struct.pack("<I", zlib.crc32(masked))
