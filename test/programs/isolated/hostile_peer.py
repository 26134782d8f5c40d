# SPDX-License-Identifier: BSD-3-Clause
"""An isolated client of uroced that gets a direct channel with another isolated program, an ibv_ud_pingpong server, and
abuses it. The arguments are the socket of uroced, the TCP port of the server, what to do, and a seed. The exit status
is 0 if the server and uroced keep it to its place. "lie" prints how many frames the server must have refused."""

import mmap
import os
import random
import select
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import mads  # noqa: E402
from harness.icrc import ICRC, icrc  # noqa: E402
from hostile import HELLO, WAIT_SECONDS, Client  # noqa: E402
from hostile_isolated import AttachedProcess  # noqa: E402
from stuck_read import stuck_read  # noqa: E402

DIRECT = HELLO + 9
QKEY = 0x11111111        # of ibv_ud_pingpong
EXCHANGE_BYTES = 52      # its message over TCP
PACKETS_MAX = 4000       # until uroced makes a direct channel, and both ends have it
QP = 5                   # of the numbers that uroced gave us
DATA = bytes(range(16))


# The memory of a direct channel (share/direct.h): what the two sides say, then a ring from each side.
OFFER_AT = -184          # of the offer in its message, from the end
SIDE_BYTES, READY, SLEEPS = 128, 0, 64
SLOTS, SLOT_BYTES, BUFFER_BYTES, SHORT = 256, 128, 4608, 120
SLOTS_AT, BUFFERS_AT = 128, 128 + SLOTS * SLOT_BYTES
RING_BYTES = BUFFERS_AT + SLOTS * BUFFER_BYTES
MEMORY_BYTES = 2 * SIDE_BYTES + 2 * RING_BYTES
FLAG_SHORT, FLAG_ROUND = 0x40, 0x80


class Peer:
    """One end of a direct channel. It follows the rules in what it sends."""

    def __init__(self, side, memory_fd, doorbell_fd):
        self._side = side
        self.memory = mmap.mmap(memory_fd, MEMORY_BYTES)
        self.memory_fd = memory_fd
        self.woken = socket.socket(fileno=doorbell_fd)
        self.woken.setblocking(False)
        self.sent = self._taken = 0
        self._store(SIDE_BYTES * side + SLEEPS, "I", 0)
        self._store(SIDE_BYTES * side + READY, "I", 1)

    def _store(self, at, kind, value):
        """Write by one store."""
        size = struct.calcsize(kind)
        memoryview(self.memory)[at:at + size].cast(kind)[0] = value

    def _load(self, at, kind):
        return struct.unpack_from("<" + kind, self.memory, at)[0]

    def ring(self, ours):
        """Return where the ring to the other end begins, or that to us."""
        return 2 * SIDE_BYTES + RING_BYTES * (self._side ^ (not ours))

    def put(self, frame, length=None, flags=None):
        """Put a frame into the next slot."""
        slot, short = self.sent % SLOTS, len(frame) <= SHORT
        at = self.ring(True) + (SLOTS_AT + slot * SLOT_BYTES + 8 if short else BUFFERS_AT + slot * BUFFER_BYTES)
        self.memory[at:at + len(frame)] = frame
        if flags is None:
            flags = FLAG_SHORT if short else 0
        flags |= FLAG_ROUND if self.sent // SLOTS % 2 == 0 else 0
        self._store(self.ring(True) + SLOTS_AT + slot * SLOT_BYTES, "Q",
                    flags << 32 | (len(frame) if length is None else length))
        self.sent += 1

    def given_back(self):
        """Return how many frames the other end has given back."""
        return self._load(self.ring(True), "I")

    def wait_taken(self):
        """Wait until the other end has taken all frames."""
        self.ring_doorbell()
        self._wait(lambda: self.given_back() == self.sent, "not all is taken")

    def send(self, frames):
        """Send whole frames, and wait until they have been taken."""
        for frame in frames:
            self.put(frame)
        self.wait_taken()

    def take(self):
        """Return the next received frame."""
        self._wait(lambda: self.received() > 0, "nothing comes")
        slot = self._taken % SLOTS
        word = self._load(self.ring(False) + SLOTS_AT + slot * SLOT_BYTES, "Q")
        at = self.ring(False) + (SLOTS_AT + slot * SLOT_BYTES + 8 if word >> 32 & FLAG_SHORT
                                 else BUFFERS_AT + slot * BUFFER_BYTES)
        frame = self.memory[at:at + (word & 0xffff)]
        self._taken += 1
        self.give_back(self._taken)
        return frame

    def give_back(self, index):
        """Write the index up to which we have taken frames."""
        self._store(self.ring(False), "I", index & 0xffffffff)

    def received(self):
        """Return 1 if a received frame has not been taken, else 0."""
        word = self._load(self.ring(False) + SLOTS_AT + self._taken % SLOTS * SLOT_BYTES, "Q")
        return int(bool(word >> 32 & FLAG_ROUND) == (self._taken // SLOTS % 2 == 0))

    @staticmethod
    def _wait(reached, story):
        for _ in range(WAIT_SECONDS * 1000):
            if reached():
                return
            time.sleep(0.001)
        raise AssertionError(story)

    def sleep(self):
        """Say that we sleep: the server rings our end for its next packet."""
        self._store(SIDE_BYTES * self._side + SLEEPS, "I", 1)

    def wait_rung(self):
        """Wait until the server has seen that we sleep. Then it rings our end, and sets the flag to 0 before."""
        self._wait(lambda: self._load(SIDE_BYTES * self._side + SLEEPS, "I") == 0, "the server does not ring")

    def ring_doorbell(self):
        try:
            self.woken.send(b"!")
        except (BlockingIOError, BrokenPipeError):
            pass

    def is_over(self):
        """Return True if the doorbells are shut down within the time limit."""
        poll = select.poll()
        poll.register(self.woken, select.POLLRDHUP)
        return bool(poll.poll(WAIT_SECONDS * 1000))


def sealed(packet):
    """Return the packet with its ICRC."""
    return packet[:-ICRC] + icrc(packet)


class Hostile:
    """A client of the server, over uroced at first."""

    def __init__(self, path, port):
        client = Client(path)
        client.send(b"?")
        self._answer, _ = client.receive()
        client.socket.close()
        self.process = AttachedProcess(path, self._message).connect()
        self.process.offer()
        self.me = mads.Identity(self.process.welcome)
        self._server_qpn = self._exchange(port)
        self.peer = None

    def _message(self, kind):
        head = struct.pack("<4I", kind, 1, 0, struct.unpack_from("<4I", self._answer)[3])
        return head + bytes(len(self._answer) - len(head))

    def _exchange(self, port):
        """Tell the server our queue pair, and return its number."""
        with socket.create_connection(("127.0.0.1", port), WAIT_SECONDS) as tcp:
            tcp.sendall(f"0000:{self.me.qpn + QP:06x}:000000:{self.me.gid.hex()}".encode() + b"\0")
            answer = tcp.recv(EXCHANGE_BYTES, socket.MSG_WAITALL)
            tcp.sendall(b"done\0")
        return int(answer.split(b":")[1], 16)

    def frame(self, **wrong):
        """Return a datagram to the server, with some fields wrong."""
        fields = {"src_qpn": self.me.qpn + QP, "dest_qpn": self._server_qpn, "qkey": QKEY, **wrong}
        return sealed(mads.frame(self.me, DATA, **fields))

    def ask(self, way):
        """Send the server a datagram by a way, and wait for its answer there."""
        way.send([self.frame()])
        way.take()

    def ask_asleep(self):
        """Send the server a datagram, and sleep: the server rings our end for its answer."""
        self.peer.sleep()
        self.ask(self.peer)
        self.peer.wait_rung()

    def _asks_uroced(self):
        """Send the server a datagram by uroced. Return True if it is answered there. It may be answered by a channel that
        the server then ends, with the answer in it."""
        self.process.send([self.frame()])
        for _ in range(1000):
            if self.process.received():
                return True
            time.sleep(0.001)
        return False

    def _offered(self):
        """Return our side and the descriptors of the direct channel if uroced has offered one."""
        self.process.client.socket.setblocking(False)
        try:
            message, fds = self.process.client.receive()
        except BlockingIOError:
            return None
        finally:
            self.process.client.socket.settimeout(WAIT_SECONDS)
        assert message, "uroced has let go"
        if struct.unpack_from("<I", message)[0] != DIRECT:
            return None
        return struct.unpack_from("<H", message, len(message) + OFFER_AT + 6)[0], *fds

    def _meet(self):
        """Talk to the server until uroced offers a direct channel. Return it."""
        for _ in range(PACKETS_MAX):
            offered = self._offered()
            if offered:
                return offered
            self.ask(self.process)
        raise AssertionError("there is no direct channel")

    def connect(self):
        """Set up a direct channel: the server answers there."""
        self.peer = Peer(*self._meet())
        self.ask(self.peer)
        return self

    def lie(self):
        """Send what this process may not send. None of it is answered: each honest datagram behind it gets one
        answer, and nothing is left in the ring."""
        strange = bytes((10, 77, 77, 77))
        mac = self.frame()
        lies = [self.frame(src_qpn=self.me.qpn ^ 1 << 20), self.frame(source=strange),
                self.frame(dest_qpn=mads.GSI, src_qpn=mads.GSI, qkey=mads.QKEY), self.frame(dest_qpn=0),
                mac[:6] + bytes((2, 0, 0, 7, 7, 7)) + mac[12:], b"\x08" * 60, self.frame()[:50]]
        for lie in lies:
            self.peer.send([lie])
            self.ask(self.peer)
        assert self.peer.received() == 0, "a lie was answered"
        print(len(lies))

    def words(self, rng):
        """Put words that describe nothing, or more than there is: the server goes on behind them."""
        for _ in range(3 * SLOTS):
            self.peer.put(rng.randbytes(rng.randrange(64)), rng.randrange(1 << 16), rng.randrange(1 << 6) | rng.choice((0, FLAG_SHORT)))
            if self.peer.sent % 64 == 0:
                self.peer.wait_taken()
        self.peer.wait_taken()
        self.ask(self.peer)

    def rubbish(self, rng):
        """Write anywhere, and give back what was not sent: the server ends the channel, and goes on through uroced."""
        for _ in range(1000):
            where = rng.randrange(0, MEMORY_BYTES - 8)
            self.peer.memory[where:where + 8] = rng.randbytes(8)
        self.peer.give_back(1 << 20)
        assert self.peer.is_over(), "rubbish is taken"
        self.ask(self.process)

    def holes(self):
        """Take the memory's pages away, and try to take the memory away: the server reads zeros, ends the channel, and goes on
        through uroced."""
        for _ in range(1000):
            self.peer.put(self.frame())
            self.peer.memory.madvise(mmap.MADV_REMOVE)
        try:
            os.ftruncate(self.peer.memory_fd, 0)
            raise AssertionError("the memory can shrink")
        except PermissionError:
            pass
        self.peer.give_back(1 << 20)
        assert self.peer.is_over(), "holes are taken"
        self.ask(self.process)

    def doorbells(self):
        """Abuse the doorbell of a server that sleeps: the server still notices packets, and rings our end, which nobody
        reads. The end of the doorbells is that of the channel."""
        event = os.eventfd(0)
        for abuse in (lambda: self.peer.woken.send(bytes(1 << 20)),
                      lambda: socket.send_fds(self.peer.woken, [b"!"], [event])):
            abuse()
            for _ in range(3):
                self.ask_asleep()
        os.close(event)
        self.peer.woken.shutdown(socket.SHUT_RDWR)
        assert any(self._asks_uroced() for _ in range(WAIT_SECONDS)), "the server does not answer by uroced"
        self.process.take()
        self.ask(self.process)

    def hold(self):
        """Read our own end of the doorbells without end: a server that sleeps still wakes, rings our end, and answers."""
        with stuck_read(self.peer.woken):
            for _ in range(3):
                self.ask_asleep()

    def stay(self):
        """Leave uroced, and keep the direct channel: uroced shuts it down."""
        self.process.close()
        assert self.peer.is_over(), "it outlives its numbers"


if __name__ == "__main__":
    hostile = Hostile(sys.argv[1], int(sys.argv[2]))
    {"lie": lambda: hostile.connect().lie(), "words": lambda: hostile.connect().words(random.Random(int(sys.argv[4]))),
     "rubbish": lambda: hostile.connect().rubbish(random.Random(int(sys.argv[4]))),
     "holes": lambda: hostile.connect().holes(), "doorbells": lambda: hostile.connect().doorbells(), "hold": lambda: hostile.connect().hold(),
     "stay": lambda: hostile.connect().stay()}[sys.argv[3]]()
