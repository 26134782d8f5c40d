# SPDX-License-Identifier: BSD-3-Clause
"""Send mutated RoCE frames to an interface, beside the genuine ones that it gets: frames.py IFACE NAMESPACE FROM COUNT SEED
sends them out of the interface FROM in another network namespace. The attacker knows addresses, queue pairs and PSNs. No frame is
one that RoCEv2 has to believe: it is wrong in one thing at least, its ICRC, lengths, addresses, queue pair or PSN. All else is
right where possible, also the PSN, which is one of those that come next. Prints how many of each kind were sent."""

import collections
import ctypes
import os
import random
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from harness.icrc import BTH, ETHERNET, ICRC, IPV4, UDP, icrc  # noqa: E402

ALL = 3  # ETH_P_ALL
AT_IP, AT_UDP, AT_BTH = ETHERNET, ETHERNET + IPV4, ETHERNET + IPV4 + UDP
ROCE = 4791
KEPT = 64  # the last genuine frames
LOOK = 64  # frames that one look takes
PSN_BITS = 24
SECONDS = 60
PAUSE_SECONDS = 0.001
AT_ONCE = 8  # frames between two looks
NEXT = 64   # PSNs that come next
HOST = 0  # PACKET_HOST
CLONE_NEWNET = 0x40000000
EXTRA = 64
FRAME_MAX = 1514


def is_roce(frame):
    """Return True for one packet; the kernel shows several that leave in one piece as a frame that is longer than the MTU."""
    return AT_BTH + BTH + ICRC <= len(frame) <= FRAME_MAX - EXTRA and frame[12:14] == b"\x08\x00" and frame[AT_IP] == 0x45 and \
        frame[AT_IP + 9] == socket.IPPROTO_UDP and frame[AT_UDP + 2:AT_UDP + 4] == ROCE.to_bytes(2, "big")


class Mutator:
    """Makes frames of genuine ones."""

    def __init__(self, rng):
        self._rng = rng
        self._genuine = collections.deque(maxlen=KEPT)
        self._queue_pairs = set()
        self._sent = set()  # frames of ours that were not seen yet

    def see(self, frame):
        if hash(frame) in self._sent:
            self._sent.discard(hash(frame))
        elif is_roce(frame):
            self._genuine.append(frame)
            self._queue_pairs.add(frame[AT_BTH + 5:AT_BTH + 8])

    def has_seen(self):
        return bool(self._genuine)

    def make(self):
        """Return the kind of a frame, and the frame."""
        kind = self._rng.choice((self.bits, self.length, self.far, self.stranger, self.lengths, self.flags))
        frame = bytearray(self._rng.choice(self._genuine) if self._rng.randrange(4) == 0 else self._genuine[-1])
        kind(frame)
        made = bytes(frame)
        self._sent.add(hash(made))
        return kind.__name__, made

    def _move_psn(self, frame, distance):
        psn = int.from_bytes(frame[AT_BTH + 9:AT_BTH + 12], "big") + distance
        frame[AT_BTH + 9:AT_BTH + 12] = (psn % (1 << PSN_BITS)).to_bytes(3, "big")

    def _near(self, frame):
        self._move_psn(frame, self._rng.randrange(NEXT))

    def _far(self, frame):
        """At least a quarter of all PSNs away, ahead or behind."""
        quarter = 1 << PSN_BITS - 2
        self._move_psn(frame, self._rng.randrange(quarter, 3 * quarter))

    def _sign(self, frame):
        frame[-ICRC:] = icrc(frame)

    def bits(self, frame):
        """Some bits differ, and the ICRC is wrong."""
        self._near(frame)
        frame[-ICRC] ^= 1
        for _ in range(self._rng.randrange(1, 9)):
            frame[self._rng.randrange(len(frame))] ^= 1 << self._rng.randrange(8)

    def length(self, frame):
        """It ends early, or has more bytes than its headers tell. The ICRC is right for neither."""
        self._near(frame)
        frame[-ICRC] ^= 1
        if self._rng.randrange(2):
            del frame[self._rng.randrange(ETHERNET, len(frame)):]
        else:
            frame += self._rng.randbytes(self._rng.randrange(1, EXTRA))

    def far(self, frame):
        """Any opcode and flags, also of acknowledgements and NAKs."""
        self._far(frame)
        frame[AT_BTH] = self._rng.randrange(256) if self._rng.randrange(2) else self._rng.randrange(32)
        frame[AT_BTH + 1] = self._rng.randrange(256)
        frame[AT_BTH + 8] = self._rng.randrange(256)
        if len(frame) > AT_BTH + BTH + 16 + ICRC and self._rng.randrange(2):
            frame[AT_BTH + BTH:AT_BTH + BTH + 16] = self._rng.randbytes(16)
        self._sign(frame)

    def stranger(self, frame):
        """For a queue pair that is not of the flow, or from an address that is not."""
        self._near(frame)
        if self._rng.randrange(2):
            number = self._rng.randbytes(3)
            if number in self._queue_pairs or number in (bytes(3), b"\0\0\1"):
                number = b"\xff\xff\xfe"
            frame[AT_BTH + 5:AT_BTH + 8] = number
        else:
            frame[AT_IP + 12 + self._rng.randrange(4)] ^= self._rng.randrange(1, 256)
        self._sign(frame)

    def lengths(self, frame):
        """A length that contradicts the others."""
        self._near(frame)
        at = self._rng.choice((AT_IP + 2, AT_UDP + 4))
        right = frame[at:at + 2]
        while frame[at:at + 2] == right:
            frame[at:at + 2] = self._rng.randbytes(2) if self._rng.randrange(2) else \
                ((int.from_bytes(right, "big") + self._rng.randrange(-8, 9)) % (1 << 16)).to_bytes(2, "big")
        self._sign(frame)

    def flags(self, frame):
        """Versions, fragments, pads."""
        self._far(frame)
        at, size = self._rng.choice(((AT_IP, 1), (AT_IP + 6, 2), (AT_BTH + 1, 1)))
        frame[at:at + size] = self._rng.randbytes(size)
        self._sign(frame)


def look(wire, mutator):
    """Take the frames that have come."""
    for _ in range(LOOK):
        try:
            frame, address = wire.recvfrom(1 << 16)
        except BlockingIOError:
            break
        if address[2] == HOST:
            mutator.see(frame)


def open_packets(name, protocol):
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    made.bind((name, protocol))
    return made


def enter(namespace):
    with open(f"/run/netns/{namespace}", encoding="ascii") as file:
        if ctypes.CDLL(None).setns(file.fileno(), CLONE_NEWNET):
            sys.exit(f"cannot enter {namespace}")


def main():
    name, namespace, sender, count, seed = sys.argv[1:4] + [int(word) for word in sys.argv[4:6]]
    mutator = Mutator(random.Random(seed))
    kinds = collections.Counter()
    with open_packets(name, ALL) as wire:
        enter(namespace)
        with open_packets(sender, 0) as out:
            wire.setblocking(False)
            deadline = time.monotonic() + SECONDS
            while not mutator.has_seen():
                look(wire, mutator)
                time.sleep(PAUSE_SECONDS)
                if time.monotonic() > deadline:
                    sys.exit("no genuine frame")
            while kinds.total() < count:
                look(wire, mutator)
                for _ in range(min(AT_ONCE, count - kinds.total())):
                    kind, frame = mutator.make()
                    out.send(frame)
                    kinds[kind] += 1
    print(*(f"{kind} {number}" for kind, number in sorted(kinds.items())))


if __name__ == "__main__":
    main()
