# SPDX-License-Identifier: BSD-3-Clause
"""An isolated client of uroced, over memif, that breaks every rule. The arguments are the socket and a seed. The
exit status is 0 whatever uroced answers, unless uroced accepts something that it must refuse."""

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
from stuck_read import stuck_read

MEMIF = HELLO + 10
ACK, MEMIF_HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED = range(1, 8)
MESSAGE_BYTES = 128
VERSION, COOKIE = 0x200, 0x3e31f20
LOG2, BUFFER = 4, 2048
RING = 1 << LOG2
RING_BYTES = 128 + 16 * RING
BUFFERS_AT = 4096
REGION_BYTES = BUFFERS_AT + 2 * RING * BUFFER
HEAD, TAIL = 6, 64  # offsets in a ring
DESCRIPTORS = 128
ROUNDS = 30
FDS_MAX = 253      # descriptors in a message


class Broken(Exception):
    """uroced has closed the connection."""


def sealed(size):
    fd = os.memfd_create("hostile", os.MFD_ALLOW_SEALING)
    os.truncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return fd


def is_still(pid):
    """Return True if all threads are stopped."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as stat:
            if stat.read().rpartition(")")[2].split()[0] != "T":
                return False
    return True


@contextlib.contextmanager
def standing_still(pid):
    """Stop uroced for a moment."""
    os.kill(pid, signal.SIGSTOP)
    try:
        while not is_still(pid):
            time.sleep(0.001)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Deaf:
    """A listening socket that is never read. A connection to it with unsent data takes hours to close."""

    def __init__(self, pid):
        self._pid = pid
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(128)

    def lingering(self):
        """Return a socket whose last descriptor another process should close."""
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
        """Send such a socket behind other descriptors, and perhaps behind another message. uroced is stopped
        meanwhile, so the descriptor in the message is the last one."""
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


class AttachedProcess:
    """An attached process and its end of the memif connection. It follows the rules unless an
    argument says otherwise."""

    def __init__(self, path, message):
        self.client = Client(path)
        self.client.send(message(HELLO))
        answer, fds = self.client.receive()
        self.welcome = answer
        assert struct.unpack_from("<I", answer)[0] == WELCOME and not fds, "it shares memory"
        if struct.unpack_from("<4Ii", answer)[2]:
            raise Broken
        self.client.send(message(MEMIF))
        answer, fds = self.client.receive()
        if not answer:
            raise Broken
        assert struct.unpack_from("<4Ii", answer)[0] == MEMIF
        if struct.unpack_from("<4Ii", answer)[2]:
            raise Broken
        self.begin_rings(*fds)

    def begin_rings(self, memif_fd, doorbell_fd):
        """Make memory with two rings for the server at the other end of the memif socket."""
        self.socket, self.woken = socket.socket(fileno=memif_fd), socket.socket(fileno=doorbell_fd)
        self.socket.settimeout(WAIT_SECONDS)
        self.sent = self._taken = 0
        assert struct.unpack_from("<H", self.answer())[0] == MEMIF_HELLO
        self.memory_fd = sealed(REGION_BYTES)
        self.memory = mmap.mmap(self.memory_fd, REGION_BYTES)
        # The doorbell of the ring to uroced is an eventfd. That of the other ring is a socket, which uroced has.
        self.doorbell = os.eventfd(0, os.EFD_NONBLOCK)
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
        """Set a ring's head by one store. struct.pack_into stores zero first, which a server that polls may see: it
        would be a head far ahead, and break the ring."""
        at = ring * RING_BYTES + HEAD
        memoryview(self.memory)[at:at + 2].cast("H")[0] = value & 0xffff

    def tell(self, kind, body=b"", fds=()):
        data = (struct.pack("<H", kind) + body).ljust(MESSAGE_BYTES, b"\0")
        try:
            socket.send_fds(self.socket, [data], fds)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Broken from error

    def say(self, kind, body=b"", fds=()):
        self.tell(kind, body, fds)
        return self.answer()

    def begin(self):
        self.say(INIT, struct.pack("<HIB", VERSION, 0, 0))

    def region(self, fd=None, size=REGION_BYTES, index=0):
        self.say(ADD_REGION, struct.pack("<HQ", index, size), [self.memory_fd if fd is None else fd])

    def ring(self, to_server, log2=LOG2, offset=None, region=0, fd=None):
        if offset is None:
            offset = 0 if to_server else RING_BYTES
        if fd is None and to_server:
            fd = self.doorbell
        self.say(ADD_RING, struct.pack("<HHHIBH", int(to_server), 0, region, offset, log2, 0),
                 [] if fd is None else [fd])

    def connect(self):
        self.begin()
        self.region()
        self.ring(True)
        self.ring(False)
        assert struct.unpack_from("<H", self.say(CONNECT))[0] == CONNECTED
        return self

    def offer(self):
        """Give uroced buffers for received packets."""
        self.head(1, self._taken + RING)

    def send(self, frames):
        """Send whole frames, and wait until uroced has taken them."""
        for frame in frames:
            at = BUFFERS_AT + self.sent % RING * BUFFER
            self.memory[at:at + len(frame)] = frame
            self.descriptor(0, self.sent % RING, 0, 0, len(frame), at)
            self.sent += 1
        self.head(0, self.sent)
        self.ring_doorbell()
        self._wait(0, self.sent)

    def take(self):
        """Return the next received frame."""
        self._wait(1, self._taken + 1)
        index = self._taken % RING
        _, _, length, at = struct.unpack_from("<HHII", self.memory, RING_BYTES + DESCRIPTORS + 16 * index)
        frame = self.memory[at:at + length]
        self._taken += 1
        self.descriptor(1, index, 0, 0, BUFFER, BUFFERS_AT + (RING + index) * BUFFER)
        self.offer()
        return frame

    def received(self):
        """Return how many received frames have not been taken."""
        return (struct.unpack_from("<H", self.memory, RING_BYTES + TAIL)[0] - self._taken) & 0xffff

    def _wait(self, ring, tail):
        for _ in range(WAIT_SECONDS * 1000):
            reached = struct.unpack_from("<H", self.memory, ring * RING_BYTES + TAIL)[0]
            if (reached - tail) & 0xffff < 0x8000:
                return
            time.sleep(0.001)
        raise AssertionError(f"ring {ring} stays at {reached}, not {tail}")

    def ring_doorbell(self):
        os.write(self.doorbell, struct.pack("<Q", 1))

    def is_let_go(self):
        """Return True if uroced closes both sockets within the time limit."""
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
        os.close(self.doorbell)
        self.woken.close()


class Hostile:
    """All attacks of an isolated program."""

    def __init__(self, path, rng):
        self._path = path
        self._rng = rng
        client = Client(path)
        # The pid of uroced, which listens.
        self._pid = struct.unpack("3i", client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        client.send(b"?")
        answer, _ = client.receive()
        self._bytes = len(answer)
        self._version = struct.unpack_from("<4I", answer)[3]

    def _message(self, kind):
        head = struct.pack("<4I", kind, self._rng.getrandbits(32), 0, self._version)
        return head + bytes(self._bytes - len(head))

    def _attach(self):
        return AttachedProcess(self._path, self._message)

    def run(self):
        """Run every attack once, in random order."""
        acts = [self._descriptors, self._lingers, self._unread, self._kept, self._holds, self._setups,
                self._no_sockets, self._rings, self._noise, self._frames, self._many, self._mads,
                self._sender]
        self._rng.shuffle(acts)
        for act in acts:
            act()

    def _refused(self, act):
        """Break a rule: uroced must end the connection."""
        process = self._attach()
        try:
            act(process)
        except Broken:
            pass
        assert process.is_let_go(), act
        process.close()

    def _setups(self):
        """Make connections with one mistake each."""
        soft = os.memfd_create("hostile", os.MFD_ALLOW_SEALING)
        os.truncate(soft, REGION_BYTES)
        pipe = os.pipe()

        def after(*steps):
            def act(process):
                process.begin()
                for step in steps:
                    step(process)
            return act
        whole = [lambda process: process.region(), lambda process: process.ring(True)]
        for act in (
                lambda process: process.say(INIT, struct.pack("<HIB", 0x300, 0, 0)),
                lambda process: process.region(),
                lambda process: process.say(self._rng.randrange(9, 1 << 16)),
                after(lambda process: process.region(fd=soft)),
                after(lambda process: process.region(fd=pipe[0])),
                after(lambda process: process.region(fd=process.socket.fileno())),
                after(lambda process: process.region(size=REGION_BYTES + 1)),
                after(lambda process: process.region(size=REGION_BYTES - 4096)),
                after(whole[0], lambda process: process.ring(False, fd=pipe[1])),
                after(whole[0], lambda process: process.ring(False, fd=process.doorbell)),
                after(whole[0], lambda process: process.ring(False, fd=process.woken.fileno())),
                after(whole[0], lambda process: process.ring(True, fd=process.woken.fileno())),
                lambda process: process.say(INIT, struct.pack("<HIB", VERSION, 0, 0), [process.doorbell]),
                after(lambda process: process.region(size=0)),
                after(lambda process: process.region(size=1 << 63)),
                after(lambda process: process.region(index=7)),
                after(whole[0], lambda process: process.ring(True, log2=40)),
                after(whole[0], lambda process: process.ring(True, offset=REGION_BYTES)),
                after(whole[0], lambda process: process.ring(True, offset=(1 << 32) - 16)),
                after(whole[0], lambda process: process.ring(True, region=9)),
                after(whole[0], lambda process: process.ring(True, fd=pipe[1])),
                after(*whole, whole[1]),
                after(*whole, lambda process: process.say(CONNECT)),
        ):
            self._refused(act)
        for fd in (soft, *pipe):
            os.close(fd)

    def _serves_others(self):
        """Check that uroced serves another client while this one waits."""
        self._attach().connect().close()

    def _serves_another_process(self):
        """Check the same while this process has a slot."""
        child = os.fork()
        if child == 0:
            try:
                self._serves_others()
                os._exit(0)
            except BaseException:  # the child must not return into the parent's code
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0

    def _attached(self):
        client = Client(self._path)
        client.send(self._message(HELLO))
        assert struct.unpack_from("<4Ii", client.receive()[0])[2] == 0
        return client

    def _descriptors(self):
        """Send descriptors with messages that take none or fewer, and with empty ones."""
        doorbell = os.eventfd(0)
        for data, count in ((self._message(ROUTE), 1), (self._message(MEMIF), 2), (self._message(ROUTE), FDS_MAX),
                            (b"", 1), (b"", FDS_MAX)):
            client = self._attached()
            client.send(data, [doorbell] * count)
            assert client.receive()[0] == b"", count
            client.socket.close()
            process = self._attach()
            process.begin()
            socket.send_fds(process.socket, [data[:MESSAGE_BYTES]], [doorbell] * count)
            assert process.is_let_go(), count
            process.close()
        os.close(doorbell)

    def _lingers(self):
        """Send descriptors that take long to close with messages that need none."""
        deaf = Deaf(self._pid)
        for after in ([], [os.eventfd(0)]):
            process = self._attach()
            process.begin()
            deaf.give(process.socket, bytes(MESSAGE_BYTES), after)
            assert process.is_let_go(), after
            process.close()
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
        """Send descriptors that take long to close behind a message that ends the connection. uroced never reads
        them."""
        deaf = Deaf(self._pid)
        process = self._attach()
        deaf.give(process.socket, bytes(MESSAGE_BYTES), ahead=b"?")
        assert process.is_let_go(), "a message of one byte is taken"
        process.close()
        self._serves_others()
        for make in (self._attached, lambda: Client(self._path)):
            client = make()
            deaf.give(client.socket, self._message(MEMIF), ahead=b"?")
            client.socket.close()
            self._serves_others()
        deaf.close()

    def _kept(self):
        """Bring a memif socket, keep a copy of uroced's end, and read it without end. uroced must not read it."""
        client = self._attached()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.send(b"x")
        with stuck_read(theirs):
            client.send(self._message(MEMIF), [theirs.fileno()])
            ours.send(bytes(MESSAGE_BYTES))
            self._serves_another_process()
        assert client.receive()[0] == b"", "a memif socket of a client is taken"
        for end in (ours, theirs, client.socket):
            end.close()

    def _holds(self):
        """Read our own ends without end. uroced still answers, takes frames, and makes another connection."""
        process = self._attach()
        process.begin()
        process.tell(ADD_REGION, struct.pack("<HQ", 0, REGION_BYTES), [process.memory_fd])
        process.say = process.tell  # uroced's answers stay unread
        with stuck_read(process.socket), stuck_read(process.woken):
            process.ring(True)
            process.ring(False)
            process.tell(CONNECT)
            process.send([b"\x08" * 60])
            process.client.send(self._message(MEMIF))
            answer, fds = process.client.receive()
            assert struct.unpack_from("<4Ii", answer)[2] == 0 and len(fds) == 2, "there is no other connection"
            self._serves_another_process()
        for fd in fds:
            os.close(fd)
        process.close()

    def _no_sockets(self):
        """Pass descriptors with a request for a memif connection."""
        listener = socket.socket(socket.AF_INET)
        datagram = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        null = os.open("/dev/null", os.O_RDWR)
        for fds in ([null], [listener.fileno()], [datagram[0].fileno()], [null] * 100):
            client = Client(self._path)
            client.send(self._message(HELLO))
            client.receive()
            client.send(self._message(MEMIF), fds)
            assert client.receive()[0] == b"", fds
            client.socket.close()
        listener.close()
        os.close(null)

    def _rings(self):
        """Put descriptors that lead outside of the memory, endless chains and impossible indices into the rings."""
        for descriptor in ((0, 1, 64, BUFFERS_AT), (0, 0, 64, REGION_BYTES - 63), (0, 0, 1 << 31, BUFFERS_AT),
                           (0, 0, (1 << 32) - 1, (1 << 32) - 1), (1, 0, 64, BUFFERS_AT), (0, 0, 0, BUFFERS_AT),
                           (0, 0, BUFFER * RING, BUFFERS_AT)):
            process = self._attach().connect()
            process.descriptor(0, 0, *descriptor)
            process.head(0, 1)
            process.ring_doorbell()
            assert process.is_let_go(), descriptor
            process.close()
        for head in (RING + 1, 0xffff):
            process = self._attach().connect()
            process.head(0, head)
            process.ring_doorbell()
            assert process.is_let_go(), head
            process.close()

        # The client hangs up: uroced checks what it left in the rings before it ends the connection.
        for _ in range(3):
            process = self._attach().connect()
            process.descriptor(0, 0, 0, 0, 64, REGION_BYTES - 63)
            process.head(0, 1)
            process.socket.close()
            assert process.is_let_go(), "what it left behind"
            process.close()

    def _noise(self):
        """Write random bytes anywhere, all the time."""
        for _ in range(ROUNDS):
            process = self._attach().connect()
            for _ in range(ROUNDS):
                where = self._rng.randrange(0, 2 * RING_BYTES - 8)
                process.memory[where:where + 8] = self._rng.randbytes(8)
            process.ring_doorbell()
            process.close()

    def _frames(self):
        """Send frames that are not RoCE, or that this process may not send: uroced drops them, and keeps the
        connection."""
        process = self._attach().connect()
        for index in range(RING):
            at = BUFFERS_AT + index * BUFFER
            process.memory[at:at + 64] = self._rng.randbytes(64)
            # ARP, IPv4 to RoCE's port, and other frames.
            process.memory[at + 12:at + 14] = self._rng.choice((b"\x08\x06", b"\x08\x00", b"\x88\xb5"))
            process.descriptor(0, index, 0, 0, self._rng.randrange(1, 64), at)
        process.head(0, RING)
        process.ring_doorbell()
        # uroced alone writes the tail.
        for _ in range(WAIT_SECONDS * 100):
            if struct.unpack_from("<H", process.memory, 64)[0] == RING:
                break
            process.client.socket.settimeout(0.01)
            try:
                assert process.client.socket.recv(1), "it has let go"
            except TimeoutError:
                pass
        else:
            raise AssertionError("frames are not taken")
        process.close()

    def _mads(self):
        """Send MADs with ids and ports of other processes. The ids and ports of this process are free after it
        ends."""
        process = self._attach().connect()
        hostile = mads.Hostile(process, self._message)
        hostile.forge()
        port = hostile.ports()
        process.close()
        process = self._attach().connect()
        assert mads.Hostile(process, self._message).ask(mads.CLAIM, mads.claim(port=port))[0] == 0
        process.close()

    def _sender(self):
        """uroced says in each packet which process sent it, so that the receiver can compare that with its peer."""
        process = self._attach().connect()
        process.offer()
        me = mads.Identity(process.welcome)
        process.send([mads.frame(me, bytes(4), src_qpn=me.qpn + 2, dest_qpn=me.qpn + 2)])
        assert process.take()[6:12] == b"\x02ur" + me.qpn.to_bytes(3, "big"), "it does not name the sender"
        process.close()

    def _many(self):
        """Connect without sending anything, and ask for a second slot."""
        silent = [Client(self._path) for _ in range(40)]
        process = self._attach()
        try:
            self._attach()
            raise AssertionError("there is a second place")
        except Broken:
            pass
        process.close()
        for client in silent:
            client.socket.close()


if __name__ == "__main__":
    Hostile(sys.argv[1], random.Random(int(sys.argv[2]))).run()
