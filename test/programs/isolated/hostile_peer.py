# SPDX-License-Identifier: BSD-3-Clause
"""An isolated client of uroced that gets a direct memif with another isolated program, an ibv_ud_pingpong server, and
abuses it. The arguments are the socket of uroced, the TCP port of the server, what to do, and a seed. The exit status
is 0 if the server and uroced keep it to its place. "lie" prints how many frames the server must have refused."""

import os
import random
import socket
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import mads  # noqa: E402
from harness.icrc import ICRC, icrc  # noqa: E402
from hostile import HELLO, WAIT_SECONDS, Client  # noqa: E402
from hostile_isolated import AttachedProcess, Broken  # noqa: E402
from stuck_read import stuck_read  # noqa: E402

DIRECT = HELLO + 16
QKEY = 0x11111111        # of ibv_ud_pingpong
EXCHANGE_BYTES = 52      # its message over TCP
PACKETS_MAX = 4000       # until uroced makes a direct memif, and both ends have it
QP = 5                   # of the numbers that uroced gave us
DATA = bytes(range(16))


class Peer(AttachedProcess):
    """The memif client's end of a direct memif, in place of the one to uroced."""

    def __init__(self, fds, doorbell=None):  # pylint: disable=super-init-not-called
        self.begin_rings(*fds)
        # One socket is the doorbell of both rings, so no message brings one.
        os.close(self.doorbell)
        self.doorbell = doorbell
        self.woken.setblocking(False)
        self.connect()
        self.offer()

    def ring_doorbell(self):
        try:
            self.woken.send(b"!")
        except (BlockingIOError, BrokenPipeError):
            pass

    def is_over(self):
        """Return True if the other end shuts the socket down within the time limit."""
        try:
            while self.socket.recv(256):
                pass
        except ConnectionResetError:
            pass
        except TimeoutError:
            return False
        return True


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

    def _offered(self):
        """Return the descriptors of the direct memif if uroced has offered one."""
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
        return fds

    def _meet(self):
        """Talk to the server until uroced offers a direct memif. Return its descriptors."""
        for _ in range(PACKETS_MAX):
            offered = self._offered()
            if offered:
                return offered
            self.ask(self.process)
        raise AssertionError("there is no direct memif")

    def connect(self):
        """Set up a direct memif: the server answers there."""
        self.peer = Peer(self._meet())
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

    def rubbish(self, rng):
        """Break the rings: the server ends the direct memif, and goes on through uroced."""
        for _ in range(100):
            where = rng.randrange(0, 64)
            self.peer.memory[where:where + 8] = rng.randbytes(8)
        self.peer.head(0, self.peer.sent + (1 << 15))
        assert self.peer.is_over(), "rubbish is taken"
        self.ask(self.process)

    def odd(self):
        """Send a message that breaks the protocol."""
        try:
            self.peer.say(2)
        except Broken:
            pass
        assert self.peer.is_over(), "a wrong message is taken"
        self.ask(self.process)

    def doorbells(self):
        """Abuse the doorbell of a server that sleeps: the server still notices packets."""
        event = os.eventfd(0)
        for abuse in (lambda: self.peer.woken.send(bytes(1 << 20)),
                      lambda: socket.send_fds(self.peer.woken, [b"!"], [event]),
                      lambda: self.peer.woken.shutdown(socket.SHUT_RDWR)):
            abuse()
            for _ in range(3):
                self.ask(self.peer)
        os.close(event)

    def hold(self):
        """Read our own end of the doorbells without end: a server that sleeps still wakes, and answers."""
        with stuck_read(self.peer.woken):
            for _ in range(3):
                self.ask(self.peer)

    def keep(self):
        """Bring the server's end of a doorbell, keep a copy, and read it without end. The server must not read it: it
        ends the direct memif, and goes on through uroced."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.send(b"!")
        with stuck_read(theirs):
            try:
                Peer(self._meet(), theirs.fileno())
                raise AssertionError("a doorbell of a client is taken")
            except Broken:
                pass
            for _ in range(3):
                self.ask(self.process)

    def stay(self):
        """Leave uroced, and keep the direct memif: uroced shuts it down."""
        self.process.close()
        assert self.peer.is_over(), "it outlives its numbers"


if __name__ == "__main__":
    hostile = Hostile(sys.argv[1], int(sys.argv[2]))
    {"lie": lambda: hostile.connect().lie(), "odd": lambda: hostile.connect().odd(),
     "rubbish": lambda: hostile.connect().rubbish(random.Random(int(sys.argv[4]))),
     "doorbells": lambda: hostile.connect().doorbells(), "hold": lambda: hostile.connect().hold(), "keep": hostile.keep,
     "stay": lambda: hostile.connect().stay()}[sys.argv[3]]()
