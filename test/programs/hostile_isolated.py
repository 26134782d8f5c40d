# SPDX-License-Identifier: BSD-3-Clause
"""An isolated client of uroced that keeps no rule, over memif: argv are the socket and a seed. Ends with 0 whatever
uroced answers, but where it believes what it must not."""

import contextlib
import fcntl
import mmap
import os
import random
import signal
import socket
import struct
import sys
import time

import mads
from hostile import HELLO, ROUTE, WAIT_SECONDS, WELCOME, Client

MEMIF = HELLO + 10
ACK, MEMIF_HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED = range(1, 8)
MESSAGE_BYTES = 128
VERSION, COOKIE = 0x200, 0x3e31f20
LOG2, BUFFER = 4, 2048
RING = 1 << LOG2
RING_BYTES = 128 + 16 * RING
BUFFERS_AT = 4096
REGION_BYTES = BUFFERS_AT + 2 * RING * BUFFER
HEAD, TAIL = 6, 64  # in a ring
DESCRIPTORS = 128
ROUNDS = 30
SO_PASSPIDFD = 76
FDS_MAX = 253      # of a message


class Broken(Exception):
    """uroced has let go of us."""


def sealed(size):
    fd = os.memfd_create("hostile", os.MFD_ALLOW_SEALING)
    os.truncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return fd


def is_still(pid):
    """Whether all threads are stopped."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as stat:
            if stat.read().rpartition(")")[2].split()[0] != "T":
                return False
    return True


@contextlib.contextmanager
def standing_still(pid):
    """Stops uroced for a moment."""
    os.kill(pid, signal.SIGSTOP)
    try:
        while not is_still(pid):
            time.sleep(0.001)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Deaf:
    """Who listens, and never reads: to close what is connected there, and has things to send, takes hours."""

    def __init__(self, pid):
        self._pid = pid
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(128)

    def lingering(self):
        """A socket whose last descriptor should be closed by others."""
        made = socket.socket()
        made.connect(self._listener.getsockname())
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 65535))
        made.setblocking(False)
        try:
            while made.send(bytes(4096)):
                pass
        except BlockingIOError:
            pass
        return made

    def give(self, to, data, fds=(), ahead=None):
        """Sends such a socket behind other descriptors, and maybe behind another message, while uroced stands still:
        so the one in the message is the last."""
        made = self.lingering()
        with standing_still(self._pid):
            try:
                if ahead:
                    to.send(ahead)
                socket.send_fds(to, [data], [*fds, made.fileno()])
            finally:
                made.close()

    def close(self):
        self._listener.close()


class Wire:
    """An attached process, and the client's end of its memif connection; correct unless told otherwise."""

    def __init__(self, path, message):
        self.client = Client(path)
        self.client.send(message(HELLO))
        answer, fds = self.client.receive()
        self.welcome = answer
        self._sent = self._taken = 0
        assert struct.unpack_from("<I", answer)[0] == WELCOME and not fds, "it shares memory"
        if struct.unpack_from("<4Ii", answer)[2]:
            raise Broken
        self.socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(WAIT_SECONDS)
        self.client.send(message(MEMIF), [other.fileno()])
        other.close()
        assert struct.unpack_from("<H", self.answer())[0] == MEMIF_HELLO
        self.memory_fd = sealed(REGION_BYTES)
        self.memory = mmap.mmap(self.memory_fd, REGION_BYTES)
        self.bell = os.eventfd(0, os.EFD_NONBLOCK)
        for number in range(2):
            struct.pack_into("<I", self.memory, number * RING_BYTES, COOKIE)
            for index in range(RING):
                self.descriptor(number, index, 0, 0, BUFFER, BUFFERS_AT + (number * RING + index) * BUFFER)

    def answer(self):
        try:
            data = self.socket.recv(2 * MESSAGE_BYTES)
        except ConnectionResetError as error:
            raise Broken from error
        if not data:
            raise Broken
        return data

    def descriptor(self, ring, index, flags, region, length, offset):
        struct.pack_into("<HHII", self.memory, ring * RING_BYTES + DESCRIPTORS + 16 * index, flags, region, length,
                         offset)

    def head(self, ring, value):
        struct.pack_into("<H", self.memory, ring * RING_BYTES + HEAD, value & 0xffff)

    def say(self, kind, body=b"", fds=()):
        data = (struct.pack("<H", kind) + body).ljust(MESSAGE_BYTES, b"\0")
        try:
            socket.send_fds(self.socket, [data], fds)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Broken from error
        return self.answer()

    def begin(self):
        self.say(INIT, struct.pack("<HIB", VERSION, 0, 0))

    def region(self, fd=None, size=REGION_BYTES, index=0):
        self.say(ADD_REGION, struct.pack("<HQ", index, size), [self.memory_fd if fd is None else fd])

    def ring(self, to_server, log2=LOG2, offset=None, region=0, fd=None):
        if offset is None:
            offset = 0 if to_server else RING_BYTES
        self.say(ADD_RING, struct.pack("<HHHIBH", int(to_server), 0, region, offset, log2, 0),
                 [self.bell if fd is None else fd])

    def connect(self):
        self.begin()
        self.region()
        self.ring(True)
        self.ring(False)
        assert struct.unpack_from("<H", self.say(CONNECT))[0] == CONNECTED
        return self

    def offer(self):
        """Gives uroced room for what comes."""
        self.head(1, self._taken + RING)

    def send(self, frames):
        """Sends whole frames, and waits until they are taken."""
        for frame in frames:
            at = BUFFERS_AT + self._sent % RING * BUFFER
            self.memory[at:at + len(frame)] = frame
            self.descriptor(0, self._sent % RING, 0, 0, len(frame), at)
            self._sent += 1
        self.head(0, self._sent)
        self.ring_bell()
        self._wait(0, self._sent)

    def take(self):
        """The next frame that has come."""
        self._wait(1, self._taken + 1)
        index = self._taken % RING
        _, _, length, at = struct.unpack_from("<HHII", self.memory, RING_BYTES + DESCRIPTORS + 16 * index)
        frame = self.memory[at:at + length]
        self._taken += 1
        self.descriptor(1, index, 0, 0, BUFFER, BUFFERS_AT + (RING + index) * BUFFER)
        self.offer()
        return frame

    def _wait(self, ring, tail):
        for _ in range(WAIT_SECONDS * 1000):
            reached = struct.unpack_from("<H", self.memory, ring * RING_BYTES + TAIL)[0]
            if (reached - tail) & 0xffff < 0x8000:
                return
            time.sleep(0.001)
        raise AssertionError(f"ring {ring} stays at {reached}, not {tail}")

    def ring_bell(self):
        os.write(self.bell, struct.pack("<Q", 1))

    def is_let_go(self):
        """Whether uroced has closed both sockets; waits for it."""
        try:
            while self.client.socket.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass
        except TimeoutError:
            return False
        return True

    def close(self):
        self.client.socket.close()
        self.socket.close()
        self.memory.close()
        os.close(self.memory_fd)
        os.close(self.bell)


class Hostile:
    """All that it does."""

    def __init__(self, path, rng):
        self._path = path
        self._rng = rng
        client = Client(path)
        # Of who listens.
        self._pid = struct.unpack("3i", client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        client.send(b"?")
        answer, _ = client.receive()
        self._bytes = len(answer)
        self._version = struct.unpack_from("<4I", answer)[3]

    def _message(self, kind):
        head = struct.pack("<4I", kind, self._rng.getrandbits(32), 0, self._version)
        return head + bytes(self._bytes - len(head))

    def _wire(self):
        return Wire(self._path, self._message)

    def run(self):
        """Everything once, in any order."""
        acts = [self._descriptors, self._lingers, self._unread, self._pidfds, self._setups,
                self._no_wires, self._rings, self._noise, self._frames, self._many, self._mads]
        self._rng.shuffle(acts)
        for act in acts:
            act()

    def _refused(self, act):
        """What breaks a rule ends the connection."""
        wire = self._wire()
        try:
            act(wire)
        except Broken:
            pass
        assert wire.is_let_go(), act
        wire.close()

    def _setups(self):
        """One thing wrong each."""
        soft = os.memfd_create("hostile", os.MFD_ALLOW_SEALING)
        os.truncate(soft, REGION_BYTES)
        pipe = os.pipe()

        def after(*steps):
            def act(wire):
                wire.begin()
                for step in steps:
                    step(wire)
            return act
        whole = [lambda wire: wire.region(), lambda wire: wire.ring(True)]
        for act in (
                lambda wire: wire.say(INIT, struct.pack("<HIB", 0x300, 0, 0)),
                lambda wire: wire.region(),
                lambda wire: wire.say(self._rng.randrange(9, 1 << 16)),
                after(lambda wire: wire.region(fd=soft)),
                after(lambda wire: wire.region(fd=pipe[0])),
                after(lambda wire: wire.region(fd=wire.socket.fileno())),
                after(lambda wire: wire.region(size=REGION_BYTES + 1)),
                after(lambda wire: wire.region(size=REGION_BYTES - 4096)),
                after(whole[0], lambda wire: wire.ring(False, fd=pipe[1])),
                lambda wire: wire.say(INIT, struct.pack("<HIB", VERSION, 0, 0), [wire.bell]),
                after(lambda wire: wire.region(size=0)),
                after(lambda wire: wire.region(size=1 << 63)),
                after(lambda wire: wire.region(index=7)),
                after(whole[0], lambda wire: wire.ring(True, log2=40)),
                after(whole[0], lambda wire: wire.ring(True, offset=REGION_BYTES)),
                after(whole[0], lambda wire: wire.ring(True, offset=(1 << 32) - 16)),
                after(whole[0], lambda wire: wire.ring(True, region=9)),
                after(whole[0], lambda wire: wire.ring(True, fd=pipe[1])),
                after(*whole, whole[1]),
                after(*whole, lambda wire: wire.say(CONNECT)),
        ):
            self._refused(act)
        for fd in (soft, *pipe):
            os.close(fd)

    def _serves_others(self):
        """Somebody else is answered, by whom nothing keeps waiting."""
        self._wire().connect().close()

    def _attached(self):
        client = Client(self._path)
        client.send(self._message(HELLO))
        assert struct.unpack_from("<4Ii", client.receive()[0])[2] == 0
        return client

    def _descriptors(self):
        """With messages that take none, or not so many, or that are empty."""
        bell = os.eventfd(0)
        for data, count in ((self._message(ROUTE), 1), (self._message(MEMIF), 2), (self._message(ROUTE), FDS_MAX),
                            (b"", 1), (b"", FDS_MAX)):
            client = self._attached()
            client.send(data, [bell] * count)
            assert client.receive()[0] == b"", count
            client.socket.close()
            wire = self._wire()
            wire.begin()
            socket.send_fds(wire.socket, [data[:MESSAGE_BYTES]], [bell] * count)
            assert wire.is_let_go(), count
            wire.close()
        os.close(bell)

    def _lingers(self):
        """With a message comes what is not wanted, and takes its time."""
        deaf = Deaf(self._pid)
        for after in ([], [os.eventfd(0)]):
            wire = self._wire()
            wire.begin()
            deaf.give(wire.socket, bytes(MESSAGE_BYTES), after)
            assert wire.is_let_go(), after
            wire.close()
            client = self._attached()
            deaf.give(client.socket, self._message(MEMIF), after)
            assert client.receive()[0] == b"", after
            client.socket.close()
            client = Client(self._path)
            deaf.give(client.socket, self._message(HELLO), after)
            client.socket.close()
            for fd in after:
                os.close(fd)
            self._serves_others()
        deaf.close()

    def _unread(self):
        """What takes its time is behind what ends the connection, and is never read."""
        deaf = Deaf(self._pid)
        wire = self._wire()
        deaf.give(wire.socket, bytes(MESSAGE_BYTES), ahead=b"?")
        assert wire.is_let_go(), "a message of one byte is taken"
        wire.close()
        self._serves_others()
        for make in (self._attached, lambda: Client(self._path)):
            client = make()
            deaf.give(client.socket, self._message(MEMIF), ahead=b"?")
            client.socket.close()
            self._serves_others()
        deaf.close()

    def _pidfds(self):
        """The end that is passed is asked to bring one with each message: before it is passed, which does not count,
        and behind that, which is a broken rule."""
        for late in (False, True):
            client = self._attached()
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.settimeout(WAIT_SECONDS)
            try:
                theirs.setsockopt(socket.SOL_SOCKET, SO_PASSPIDFD, 1)
            except OSError:
                return  # the kernel has none
            client.send(self._message(MEMIF), [theirs.fileno()])
            assert struct.unpack_from("<H", ours.recv(MESSAGE_BYTES))[0] == MEMIF_HELLO
            if late:
                theirs.setsockopt(socket.SOL_SOCKET, SO_PASSPIDFD, 1)
            ours.send(struct.pack("<HHIB", INIT, VERSION, 0, 0).ljust(MESSAGE_BYTES, b"\0"))
            if late:
                assert client.receive()[0] == b"", "a pidfd is taken"
            else:
                assert struct.unpack_from("<H", ours.recv(MESSAGE_BYTES))[0] == ACK
            for end in (ours, theirs, client.socket):
                end.close()

    def _no_wires(self):
        """Descriptors that are no wire of ours."""
        listener = socket.socket(socket.AF_INET)
        datagram = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        null = os.open("/dev/null", os.O_RDWR)
        for fds in ([], [null], [listener.fileno()], [datagram[0].fileno()], [null] * 100):
            client = Client(self._path)
            client.send(self._message(HELLO))
            client.receive()
            client.send(self._message(MEMIF), fds)
            assert client.receive()[0] == b"", fds
            client.socket.close()
        listener.close()
        os.close(null)

    def _rings(self):
        """Descriptors that lead outside, chains without end, indices that cannot be."""
        for descriptor in ((0, 1, 64, BUFFERS_AT), (0, 0, 64, REGION_BYTES - 63), (0, 0, 1 << 31, BUFFERS_AT),
                           (0, 0, (1 << 32) - 1, (1 << 32) - 1), (1, 0, 64, BUFFERS_AT), (0, 0, 0, BUFFERS_AT),
                           (0, 0, BUFFER * RING, BUFFERS_AT)):
            wire = self._wire().connect()
            wire.descriptor(0, 0, *descriptor)
            wire.head(0, 1)
            wire.ring_bell()
            assert wire.is_let_go(), descriptor
            wire.close()
        for head in (RING + 1, 0xffff):
            wire = self._wire().connect()
            wire.head(0, head)
            wire.ring_bell()
            assert wire.is_let_go(), head
            wire.close()

        # It hangs up: what it left is checked before its connection ends.
        for _ in range(3):
            wire = self._wire().connect()
            wire.descriptor(0, 0, 0, 0, 64, REGION_BYTES - 63)
            wire.head(0, 1)
            wire.socket.close()
            assert wire.is_let_go(), "what it left behind"
            wire.close()

    def _noise(self):
        """Anything anywhere, all the time."""
        for _ in range(ROUNDS):
            wire = self._wire().connect()
            for _ in range(ROUNDS):
                where = self._rng.randrange(0, 2 * RING_BYTES - 8)
                wire.memory[where:where + 8] = self._rng.randbytes(8)
            wire.ring_bell()
            wire.close()

    def _frames(self):
        """Frames that are not RoCE, or not ours to send: they are refused, and we stay."""
        wire = self._wire().connect()
        for index in range(RING):
            at = BUFFERS_AT + index * BUFFER
            wire.memory[at:at + 64] = self._rng.randbytes(64)
            # ARP, IPv4 to RoCE's port, and what is neither.
            wire.memory[at + 12:at + 14] = self._rng.choice((b"\x08\x06", b"\x08\x00", b"\x88\xb5"))
            wire.descriptor(0, index, 0, 0, self._rng.randrange(1, 64), at)
        wire.head(0, RING)
        wire.ring_bell()
        # The tail is theirs to write.
        for _ in range(WAIT_SECONDS * 100):
            if struct.unpack_from("<H", wire.memory, 64)[0] == RING:
                break
            wire.client.socket.settimeout(0.01)
            try:
                assert wire.client.socket.recv(1), "it has let go"
            except TimeoutError:
                pass
        else:
            raise AssertionError("frames are not taken")
        wire.close()

    def _mads(self):
        """What is another's of the connection manager; and what is ours is free when we have gone."""
        wire = self._wire().connect()
        hostile = mads.Hostile(wire, self._message)
        hostile.forge()
        port = hostile.ports()
        wire.close()
        wire = self._wire().connect()
        assert mads.Hostile(wire, self._message).ask(mads.CLAIM, mads.claim(port=port))[0] == 0
        wire.close()

    def _many(self):
        """Who says nothing, and who wants a second place."""
        silent = [Client(self._path) for _ in range(40)]
        wire = self._wire()
        try:
            self._wire()
            raise AssertionError("there is a second place")
        except Broken:
            pass
        wire.close()
        for client in silent:
            client.socket.close()


if __name__ == "__main__":
    Hostile(sys.argv[1], random.Random(int(sys.argv[2]))).run()
