# SPDX-License-Identifier: BSD-3-Clause
"""A client of uroced that keeps no rule: argv are its socket and a seed. Ends with 0 whatever uroced answers."""

import array
import mmap
import os
import random
import socket
import struct
import sys
import time

HELLO, WELCOME, ROUTE, LEAVE = 0x75726f63, 0x75726f64, 0x75726f67, 0x75726f6a
PAGE_BYTES, RING_BYTES, WORDS = 320, 128, (512, 1024, 512)  # of a slot's page: its begin, a ring's, rings (layout.h)
BUFFERS_MAX = 768  # that uroced was told to let a process have
BEFORE_MAX = 4     # slots that a process may have had before
FDS = 4          # that come with a welcome: buffers, rings, and what wakes whom
ROUNDS = 40
WAIT_SECONDS = 20


class Client:
    """A connection."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(WAIT_SECONDS)
        self.socket.connect(path)

    def send(self, data, fds=()):
        """Sends a datagram, with descriptors; whether there was anybody to take it."""
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self.socket.sendmsg([data], control)
            return True
        except (BrokenPipeError, ConnectionResetError, BlockingIOError):
            return False

    def receive(self):
        """An answer and its descriptors; no bytes where the other end has gone."""
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
    """All that it does."""

    def __init__(self, path, rng):
        self._path = path
        self._rng = rng
        # Whoever says nothing that is understood is told so, in a message of the right length and version.
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

    def run(self):
        """Everything once, in any order, beside connections that say nothing."""
        self._half()
        acts = [self._noise, self._descriptors, self._bad_reports, self._requests, self._rings, self._slots,
                self._buffers]
        self._rng.shuffle(acts)
        for act in acts:
            self._in_child(act)

    def _in_child(self, act, *args):
        """A process has one slot."""
        child = os.fork()
        if child == 0:
            try:
                act(*args)
                os._exit(0)
            except BaseException:  # the parent's own code must not run here
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
        """More than anybody asked for."""
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
        """What shows nothing is of no use, and no harm."""
        soft = os.memfd_create("uroce-report")
        os.truncate(soft, 1 << 21)
        for fd in (os.open("/dev/null", os.O_RDWR), os.pipe()[0], soft, os.open("/", os.O_RDONLY)):
            self._in_child(self._bad_report, fd)

    def _bad_report(self, fd):
        assert len(self._attach([fd])[1]) == FDS

    def _slots(self):
        """As many as it asks for."""
        for _ in range(BEFORE_MAX):
            client, got = self._attach()
            assert len(got) == FDS
            assert not self._attach()[1]
            client.socket.close()
        assert not self._attach()[1]

    def _buffers(self):
        """All that it gets, and none given back."""
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
        """Any number, any argument, answers unread."""
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
        """Buffers that it does not have, indices that cannot be."""
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
        """Comes, and says nothing; says half a word, and goes."""
        silent = [Client(self._path) for _ in range(8)]
        for client in silent[:4]:
            client.send(b"")
            client.socket.close()
        self._kept = silent


if __name__ == "__main__":
    Hostile(sys.argv[1], random.Random(int(sys.argv[2]))).run()
