# SPDX-License-Identifier: BSD-3-Clause
"""MADs of the connection manager, and claims of ports, from an isolated client of uroced."""

import errno
import struct

from hostile import HELLO

CLAIM, LISTEN, RELEASE, CHANGE = HELLO + 11, HELLO + 12, HELLO + 13, HELLO + 14
# Offsets in a message, and one from its end. test/unit/share/test_message.c has them, too.
QPN_FIRST_AT, ID_VALUE_AT, MAC_AT = 24, 36, 56
CLAIM_FROM_END = 40
MAPPED = bytes(10) + b"\xff\xff"
TCP = 0x0106
REQ, REJ, REP, DREQ, DREP, SIDR_REQ = 0x10, 0x12, 0x13, 0x15, 0x16, 0x17
CM, SEND, GET = 0x07, 3, 1
QKEY, GSI = 0x80010000, 1
UD_SEND_ONLY = 0x64
ROCE = 4791
HEADERS = 14 + 20 + 8 + 12 + 8


class Identity:
    """The values that a welcome gives a client: queue pair numbers, communication ids, the port's addresses."""

    def __init__(self, welcome):
        self.qpn = struct.unpack_from("<I", welcome, QPN_FIRST_AT)[0]
        self.id = struct.unpack_from("<I", welcome, ID_VALUE_AT)[0]
        self.mac = welcome[MAC_AT:MAC_AT + 6]
        at = welcome.find(MAPPED)
        self.gid = welcome[at:at + 16]


def mad(attribute, data, kind=CM, method=SEND, version=2):
    """Return a MAD of 256 bytes."""
    return struct.pack(">4B2HQHHI", 1, kind, version, method, 0, 0, 0x4242, attribute, 0, 0) + data.ljust(232, b"\0")


def req(me, local_id, port, qpn=None, gid=None, private=b""):
    """Return a REQ to the port's own address."""
    data = bytearray(140)
    struct.pack_into(">I4xQ", data, 0, local_id, TCP << 16 | port)
    data[32:35] = (me.qpn if qpn is None else qpn).to_bytes(3, "big")
    struct.pack_into(">HBB", data, 48, 0xffff, 0x50, 0xf0)
    data[56:72] = me.gid if gid is None else gid
    data[72:88] = me.gid
    return mad(REQ, bytes(data) + private)


def ip_header(source, destination, port=7000):
    """Return the IP header that precedes a REQ's private data."""
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
    """Return a packet to the port's own address. Its ICRC is 0: uroced computes the ICRC of an isolated process's
    packets."""
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
    """Return the part of a message that is a claim."""
    return struct.pack("<IIiHBBB16s", space, number, vlan, port, version, any_address, reuse, address)


def with_claim(message, part):
    at = len(message) - CLAIM_FROM_END
    return message[:at] + part + message[at + len(part):]


class Hostile:
    """Attempts of an isolated client to get another's connections, ports or ids."""

    def __init__(self, process, message):
        self._process = process
        self._message = message
        self._me = Identity(process.welcome)
        self._number = 0
        process.offer()

    def ask(self, kind, part):
        """Ask for a port. Return the result, the port and its id."""
        self._process.client.send(with_claim(self._message(kind), part))
        answer, _ = self._process.client.receive()
        assert answer, "it has let go"
        _, number, _, port = struct.unpack_from("<IIiH", answer, len(answer) - CLAIM_FROM_END)
        return struct.unpack_from("<i", answer, 8)[0], port, number

    def _next_id(self):
        self._number += 1
        return self._me.id | self._number

    def _received(self):
        """Return the attribute and the ids of the next MAD."""
        datagram = self._process.take()[HEADERS:]
        return struct.unpack_from(">H", datagram, 16)[0], *struct.unpack_from(">II", datagram, 24)

    def forge(self):
        """Send MADs that only another process may send. uroced must drop them; an answer would show that it did
        not."""
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
            frame(me, rep(me.id | 5, 0x12345678, me.qpn)),   # answers a request that this process did not get
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
            self._process.send([packet, frame(me, req(me, honest, 5000, private=ip_header(me.gid, me.gid)))])
            answer = self._received()
            assert answer == (REJ, 0, honest), (number, answer)
        # uroced answers a valid MAD itself, because it is for no process.
        mine = self._next_id()
        self._process.send([frame(me, dreq(mine, 0x12345678, 77))])
        assert self._received() == (DREP, 0x12345678, mine)

    def ports(self):
        """Make claims that are invalid, that collide with another process, or that are too many."""
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
            for kind in (LISTEN, CHANGE):
                assert self.ask(kind, claim(number=wrong))[0] == -errno.EINVAL, (kind, wrong)
        assert self.ask(CHANGE, claim(number=number, version=5))[0] == -errno.EINVAL
        assert self.ask(CHANGE, claim(number=number, version=6))[0] == 0
        assert self.ask(CHANGE, claim(number=number))[0] == 0
        assert self.ask(LISTEN, claim(number=number))[0] == 0
        assert self.ask(CHANGE, claim(number=number))[0] == -errno.EINVAL
        # The client connects to itself.
        mine = self._next_id()
        self._process.send([frame(self._me, req(self._me, mine, port))])
        assert self._received() == (REQ, mine, 0)
        self._process.client.send(with_claim(self._message(RELEASE), claim(number=number)))
        assert self.ask(CLAIM, claim(port=port))[0] == 0
        count = 2
        while (rc := self.ask(CLAIM, claim())[0]) == 0:
            count += 1
        assert rc == -errno.ENOSPC and count < 9000, (rc, count)
        return port


def random_frame(rng, me):
    """Return a valid MAD in which some values are random."""
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
    """Return a claim of one of few ports, so that claims collide."""
    if rng.random() < 0.2:
        return rng.randbytes(36)
    return claim(rng.choice((TCP, 0x111, 2, 0x13f)), rng.choice((0, 7000, 7001, 7002)), rng.randrange(64), -1,
                 rng.choice((0, 4, 6)), rng.getrandbits(1), rng.getrandbits(1), me.gid if me else bytes(16))
