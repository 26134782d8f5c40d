# SPDX-License-Identifier: BSD-3-Clause
"""A client of uroced that breaks every rule. The arguments are the socket and a seed. The exit status is 0 whatever
uroced answers."""

import array
import mmap
import os
import random
import socket
import struct
import sys
import time

HELLO, WELCOME, ROUTE, LEAVE = 0x75726f63, 0x75726f64, 0x75726f67, 0x75726f6a
# bytes of a slot's page: of its head and of a ring's head; words of each ring (layout.h)
PAGE_BYTES, RING_BYTES, WORDS = 1216, 128, (512, 1024, 512)
BUFFERS_MAX = 768  # the limit that uroced was started with
BEFORE_MAX = 4     # earlier slots that may still count for a process
# Descriptors in a welcome: buffers, rings, the two eventfds, and a packet socket if the process gets one.
FDS = (4, 5)
TOKEN_FROM_END, TOKEN_BYTES = 204, 16  # where a message has the token of the last owner: zero in one of a new program
ENGINE_FROM_END = 88  # where the asking engine's number begins in a message: 0 is the first engine
ROUNDS = 40
WAIT_SECONDS = 20


class Client:
    """A connection to uroced."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(WAIT_SECONDS)
        self.socket.connect(path)

    def send(self, data, fds=()):
        """Send a datagram with descriptors. Return False if nobody could receive it."""
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self.socket.sendmsg([data], control)
            return True
        except (BrokenPipeError, ConnectionResetError, BlockingIOError):
            return False

    def receive(self):
        """Return an answer and its descriptors; no bytes if the other end has gone."""
        fds = array.array("i")
        try:
            data, control, _, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(16 * fds.itemsize))
        except ConnectionResetError:
            return b"", []
        for level, kind, piece in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(piece[:len(piece) - len(piece) % fds.itemsize])
        return data, list(fds)


class Hostile:
    """All attacks of a trusted program."""

    def __init__(self, path, rng):
        self._path = path
        self._rng = rng
        # uroced answers a message that it does not understand with one of the right length and version.
        client = Client(path)
        client.send(b"?")
        answer, _ = client.receive()
        self._bytes = len(answer)
        self._version = struct.unpack_from("<4I", answer)[3]
        assert struct.unpack_from("<I", answer)[0] == WELCOME

    def _message(self, kind, noise=False):
        head = struct.pack("<4I", kind, self._rng.getrandbits(32), 0, self._version)
        rest = self._bytes - len(head)
        return head + (self._rng.randbytes(rest) if noise else bytes(rest))

    def _hello(self, *engine):
        """Return a hello that is noise, but for the engine: its number, and more of what a further one says."""
        message = bytearray(self._message(HELLO, noise=True))
        token = self._bytes - TOKEN_FROM_END
        message[token:token + TOKEN_BYTES] = bytes(TOKEN_BYTES)
        struct.pack_into(f"<{len(engine)}I", message, self._bytes - ENGINE_FROM_END, *engine)
        return bytes(message)

    def run(self):
        """Run every attack once, in random order, beside connections that send nothing."""
        self._half()
        acts = [self._noise, self._descriptors, self._bad_reports, self._requests, self._rings, self._slots,
                self._lies, self._buffers, self._engines]
        self._rng.shuffle(acts)
        for act in acts:
            self._in_child(act)

    def _in_child(self, act, *args):
        """Attack in a child process, because a process has one slot."""
        child = os.fork()
        if child == 0:
            try:
                act(*args)
                os._exit(0)
            except BaseException:  # the child must not return into the parent's code
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0

    def _noise(self):
        for _ in range(ROUNDS):
            client = Client(self._path)
            client.send(self._rng.randbytes(self._rng.choice((1, 15, self._bytes - 1, self._bytes, self._bytes + 1,
                                                              60000))))
            client.receive()

    def _descriptors(self):
        """Send more descriptors than uroced expects."""
        null = os.open("/dev/null", os.O_RDWR)
        for count in (1, 3, 5, 60, 250):
            client = Client(self._path)
            client.send(self._message(self._rng.getrandbits(32)), [null] * count)
            client.receive()

    def _attach(self, fds=()):
        client = Client(self._path)
        client.send(self._message(HELLO), fds)
        answer, got = client.receive()
        assert len(answer) == self._bytes
        return client, got

    def _bad_reports(self):
        """Send reports that are not valid: they are useless, but harm nobody."""
        soft = os.memfd_create("uroce-report")
        os.truncate(soft, 1 << 21)
        for fd in (os.open("/dev/null", os.O_RDWR), os.pipe()[0], soft, os.open("/", os.O_RDONLY)):
            self._in_child(self._bad_report, fd)

    def _bad_report(self, fd):
        assert len(self._attach([fd])[1]) in FDS

    def _slots(self):
        """Ask for as many slots as possible."""
        for _ in range(BEFORE_MAX):
            client, got = self._attach()
            assert len(got) in FDS
            assert not self._attach()[1]
            client.socket.close()
        assert not self._attach()[1]

    def _lies(self):
        """Say that nothing of earlier slots is held, keep their memory, and write into it."""
        pages = []
        for _ in range(3 * BEFORE_MAX):
            client = Client(self._path)
            client.send(self._hello(0))
            got = client.receive()[1]
            assert len(got) in FDS
            pages.append(mmap.mmap(got[1], os.fstat(got[1]).st_size))
            for page in pages:
                page[:] = self._rng.randbytes(len(page))
            os.write(got[2], struct.pack("<Q", 1))
            client.socket.close()

    def _engines(self):
        """Ask for slots of engines that do not exist, or belong to other processes."""
        def refused(*engine):
            client = Client(self._path)
            client.send(self._hello(*engine))
            assert not client.receive()[1]
        for _ in range(ROUNDS):
            refused(self._rng.randrange(1, 1 << 32))
            for generation in range(1, 4):
                refused(1, self._rng.randrange(5), generation, self._rng.randrange(256))

    def _buffers(self):
        """Take all buffers, and return none."""
        _, got = self._attach()
        rings = mmap.mmap(got[1], os.fstat(got[1]).st_size)
        prod = PAGE_BYTES + sum(RING_BYTES + 8 * words for words in WORDS[:2])
        cons = prod + 64
        taken = 0
        for _ in range(ROUNDS):
            waiting = struct.unpack_from("<I", rings, prod)[0]
            assert 0 <= waiting - taken <= WORDS[2]
            taken = waiting
            struct.pack_into("<I", rings, cons, taken)
            os.write(got[2], struct.pack("<Q", 1))
            time.sleep(0.005)
        assert 0 < taken <= BUFFERS_MAX, taken

    def _requests(self):
        """Send random requests with random arguments, and read no answer."""
        client, _ = self._attach()
        for _ in range(ROUNDS * 20):
            if not client.send(self._message(self._rng.randint(HELLO - 2, LEAVE + 4), True)):
                break
        self._in_child(self._one_of_each)

    def _one_of_each(self):
        client, _ = self._attach()
        for kind in range(ROUTE, LEAVE + 1):
            client.send(self._message(kind, True))
            client.receive()

    def _rings(self):
        """Put buffers that the process does not hold, and impossible indices, into the rings."""
        for what in range(4):
            self._in_child(self._scribble, what)

    def _scribble(self, what):
        client, got = self._attach()
        rings = mmap.mmap(got[1], os.fstat(got[1]).st_size)
        self._rng.seed(self._rng.getrandbits(32) + what)
        for _ in range(ROUNDS):
            where = self._rng.randrange(64, len(rings) - 8)
            rings[where:where + 8] = self._rng.randbytes(8)
            if what % 2:
                os.write(got[2], struct.pack("<Q", 1))
        os.write(got[2], struct.pack("<Q", 1))
        for fd in got[:2]:
            try:
                os.ftruncate(fd, 0)
                raise AssertionError("memory of others can be taken away")
            except PermissionError:
                pass
        client.send(self._message(ROUTE))
        client.receive()

    def _half(self):
        """Connect and send nothing; send half a message and hang up."""
        silent = [Client(self._path) for _ in range(8)]
        for client in silent[:4]:
            client.send(b"")
            client.socket.close()
        self._kept = silent


if __name__ == "__main__":
    Hostile(sys.argv[1], random.Random(int(sys.argv[2]))).run()
