# SPDX-License-Identifier: BSD-3-Clause
"""Management datagrams of the connection manager from an isolated client of uroced, and its ports."""

import errno
import struct

from hostile import HELLO

CLAIM, LISTEN, RELEASE = HELLO + 11, HELLO + 12, HELLO + 13
CLAIM_FROM_END = 40   # of a message (message.h)
QPN_FIRST_AT, ID_VALUE_AT, MAC_AT = 24, 36, 52
MAPPED = bytes(10) + b"\xff\xff"
TCP = 0x0106
REQ, REJ, REP, DREQ, DREP, SIDR_REQ = 0x10, 0x12, 0x13, 0x15, 0x16, 0x17
CM, SEND, GET = 0x07, 3, 1
QKEY, GSI = 0x80010000, 1
UD_SEND_ONLY = 0x64
ROCE = 4791
HEADERS = 14 + 20 + 8 + 12 + 8


class Identity:
    """What a welcome gives a client: queue pair numbers, communication ids, the port's addresses."""

    def __init__(self, welcome):
        self.qpn = struct.unpack_from("<I", welcome, QPN_FIRST_AT)[0]
        self.id = struct.unpack_from("<I", welcome, ID_VALUE_AT)[0]
        self.mac = welcome[MAC_AT:MAC_AT + 6]
        at = welcome.find(MAPPED)
        self.gid = welcome[at:at + 16]


def mad(attribute, data, kind=CM, method=SEND, version=2):
    """A MAD of 256 bytes."""
    return struct.pack(">4B2HQHHI", 1, kind, version, method, 0, 0, 0x4242, attribute, 0, 0) + data.ljust(232, b"\0")


def req(me, local_id, port, qpn=None, gid=None, private=b""):
    """A REQ to the port's own address."""
    data = bytearray(140)
    struct.pack_into(">I4xQ", data, 0, local_id, TCP << 16 | port)
    data[32:35] = (me.qpn if qpn is None else qpn).to_bytes(3, "big")
    struct.pack_into(">HBB", data, 48, 0xffff, 0x50, 0xf0)
    data[56:72] = me.gid if gid is None else gid
    data[72:88] = me.gid
    return mad(REQ, bytes(data) + private)


def ip_header(source, destination, port=7000):
    """In front of a REQ's private data."""
    return struct.pack(">BBH", 0, 0x40, port) + bytes(12) + source[12:] + bytes(12) + destination[12:]


def rep(local_id, remote_id, qpn):
    return mad(REP, struct.pack(">III", local_id, remote_id, 0) + qpn.to_bytes(3, "big"))


def dreq(local_id, remote_id, qpn):
    return mad(DREQ, struct.pack(">II", local_id, remote_id) + qpn.to_bytes(3, "big"))


def _checksum(header):
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff


def frame(me, datagram, src_qpn=GSI, dest_qpn=GSI, qkey=QKEY, source=None, opcode=UD_SEND_ONLY):
    """A packet to the port's own address; uroced leaves the ICRC to who gets it."""
    deth = struct.pack(">II", qkey, src_qpn)
    bth = struct.pack(">BBHII", opcode, 0x40, 0xffff, dest_qpn, 0)
    payload = bth + deth + datagram + bytes(4)
    udp = struct.pack(">4H", 0xc000, ROCE, 8 + len(payload), 0)
    address = me.gid[12:]
    ip = bytearray(struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(payload), 0, 0x4000, 64, 17, 0) +
                   (source or address) + address)
    struct.pack_into(">H", ip, 10, _checksum(bytes(ip)))
    return me.mac + me.mac + b"\x08\x00" + bytes(ip) + udp + payload


def claim(space=TCP, port=0, number=0, vlan=-1, version=0, any_address=1, reuse=0, address=bytes(16)):
    """The part of a message that is a claim."""
    return struct.pack("<IIiHBBB16s", space, number, vlan, port, version, any_address, reuse, address)


def with_claim(message, part):
    at = len(message) - CLAIM_FROM_END
    return message[:at] + part + message[at + len(part):]


class Hostile:
    """What an isolated client tries that would have another's connections, ports or ids."""

    def __init__(self, wire, message):
        self._wire = wire
        self._message = message
        self._me = Identity(wire.welcome)
        self._number = 0
        wire.offer()

    def ask(self, kind, part):
        """A request for a port; the result, the port and its id."""
        self._wire.client.send(with_claim(self._message(kind), part))
        answer, _ = self._wire.client.receive()
        assert answer, "it has let go"
        _, number, _, port = struct.unpack_from("<IIiH", answer, len(answer) - CLAIM_FROM_END)
        return struct.unpack_from("<i", answer, 8)[0], port, number

    def _next_id(self):
        self._number += 1
        return self._me.id | self._number

    def _received(self):
        """Attribute and ids of the next MAD."""
        datagram = self._wire.take()[HEADERS:]
        return struct.unpack_from(">H", datagram, 16)[0], *struct.unpack_from(">II", datagram, 24)

    def forge(self):
        """Nothing but what is our own comes through: an answer would tell."""
        me, other = self._me, self._me.id ^ 1 << 31
        strange = bytes(10) + b"\xff\xff" + bytes((10, 77, 77, 77))
        forged = [
            frame(me, req(me, other | 5, 5000)),
            frame(me, req(me, 0, 5000)),
            frame(me, req(me, me.id | 5, 5000, qpn=me.qpn ^ 1 << 20)),
            frame(me, req(me, me.id | 5, 5000, gid=strange)),
            frame(me, req(me, me.id | 5, 5000, private=ip_header(strange, me.gid))),
            frame(me, rep(other | 5, 0x12345678, me.qpn)),
            frame(me, rep(me.id | 5, 0x12345678, me.qpn ^ 1 << 20)),
            frame(me, rep(me.id | 5, 0x12345678, me.qpn)),   # to a request that it did not get
            frame(me, dreq(other | 5, 0x12345678, 77)),
            frame(me, mad(1, b"", method=GET)),
            frame(me, mad(1, b"", kind=0x04, method=GET)),
            frame(me, mad(0x35, b"", kind=0x03, method=GET)),
            frame(me, mad(0x15, b"", kind=0x81, method=GET)),
            frame(me, req(me, me.id | 5, 5000)[:-4]),
            frame(me, req(me, me.id | 5, 5000) + bytes(4)),
            frame(me, req(me, me.id | 5, 5000), src_qpn=me.qpn),
            frame(me, req(me, me.id | 5, 5000), dest_qpn=0),
            frame(me, req(me, me.id | 5, 5000), qkey=0x11111111),
            frame(me, req(me, me.id | 5, 5000), source=bytes((10, 77, 77, 77))),
            frame(me, req(me, me.id | 5, 5000), opcode=0x04),
        ]
        for number, packet in enumerate(forged):
            honest = self._next_id()
            self._wire.send([packet, frame(me, req(me, honest, 5000, private=ip_header(me.gid, me.gid)))])
            answer = self._received()
            assert answer == (REJ, 0, honest), (number, answer)
        # What is right is answered, by uroced and for nobody.
        mine = self._next_id()
        self._wire.send([frame(me, dreq(mine, 0x12345678, 77))])
        assert self._received() == (DREP, 0x12345678, mine)

    def ports(self):
        """Claims that cannot be, are others', or are too many."""
        rc, port, number = self.ask(CLAIM, claim())
        assert rc == 0 and port >= 32768, (rc, port)
        assert self.ask(CLAIM, claim(port=port))[0] == -errno.EADDRINUSE
        assert self.ask(CLAIM, claim(port=port, reuse=255))[0] == -errno.EADDRINUSE
        strange = bytes(10) + b"\xff\xff" + bytes((10, 77, 77, 77))
        for wrong in (claim(space=0x107), claim(space=0xffffffff), claim(version=5), claim(version=77, any_address=255)):
            assert self.ask(CLAIM, wrong)[0] == -errno.EINVAL, wrong
        for wrong in (claim(any_address=0, address=strange, version=4), claim(any_address=0),
                      claim(any_address=0, address=self._me.gid, version=4, vlan=5)):
            assert self.ask(CLAIM, wrong)[0] == -errno.EADDRNOTAVAIL, wrong
        for wrong in (0, number + 1, 0xffffffff):
            assert self.ask(LISTEN, claim(number=wrong))[0] == -errno.EINVAL, wrong
        assert self.ask(LISTEN, claim(number=number))[0] == 0
        # It connects to itself.
        mine = self._next_id()
        self._wire.send([frame(self._me, req(self._me, mine, port))])
        assert self._received() == (REQ, mine, 0)
        self._wire.client.send(with_claim(self._message(RELEASE), claim(number=number)))
        assert self.ask(CLAIM, claim(port=port))[0] == 0
        count = 2
        while (rc := self.ask(CLAIM, claim())[0]) == 0:
            count += 1
        assert rc == -errno.ENOSPC and count < 9000, (rc, count)
        return port


def random_frame(rng, me):
    """A MAD that is right but for what chance has changed, or says."""
    own = me.id | rng.getrandbits(20)
    made = rng.choice((req(me, own, rng.randrange(1 << 16)), rep(own, rng.getrandbits(32), me.qpn),
                       dreq(own, rng.getrandbits(32), me.qpn),
                       mad(rng.randrange(0x10, 0x1b), struct.pack(">II", own, rng.getrandbits(32)) + rng.randbytes(224)),
                       mad(rng.getrandbits(16), rng.randbytes(232), rng.getrandbits(8), rng.getrandbits(8))))
    packet = bytearray(frame(me, made))
    for _ in range(rng.choice((0, 0, 1, 3))):
        packet[rng.randrange(HEADERS, len(packet))] = rng.getrandbits(8)
    return bytes(packet)


def random_claim(rng, me):
    """A claim of few ports, so that they collide."""
    if rng.random() < 0.2:
        return rng.randbytes(36)
    return claim(rng.choice((TCP, 0x111, 2, 0x13f)), rng.choice((0, 7000, 7001, 7002)), rng.randrange(64), -1,
                 rng.choice((0, 4, 6)), rng.getrandbits(1), rng.getrandbits(1), me.gid if me else bytes(16))
