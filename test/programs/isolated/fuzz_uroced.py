# SPDX-License-Identifier: BSD-3-Clause
"""Send random messages and descriptors to a socket of uroced. The arguments are the socket, "isolated" or
"trusted", and the seed. It runs until it is killed. Seed and answers determine its actions, but not their times."""

import contextlib
import os
import random
import select
import socket
import struct
import sys
import tempfile
import time

import mads
from hostile import HELLO, Client
from hostile_isolated import (FDS_MAX, MESSAGE_BYTES, REGION_BYTES, RING, RING_BYTES, MEMIF, AttachedProcess, Broken,
                              Deaf, sealed)

KINDS = 16             # kinds of messages, from HELLO on
WAIT_SECONDS = 0.3     # timeout of an answer
CONNECTIONS = 24       # connections at one time
ADDRESS_BYTES = 28
FROM_AT = 128 * ADDRESS_BYTES + 12  # behind the start of the addresses (message.h; test_message.c compares it)
MAPPED = bytes(10) + b"\xff\xff"
LINGER_SECONDS = 2     # sockets to close here, in case our descriptor of them is the last one


def quietly(act):
    """Do something that uroced may interrupt by ending the connection."""
    with contextlib.suppress(OSError, Broken, AssertionError, struct.error, ValueError, IndexError):
        act()


class Files:
    """Descriptors of every kind of file."""

    def __init__(self, rng, trusted):
        self._rng = rng
        self._deaf = Deaf(0)
        self._makes = [self._memory, self._sealed, self._pipe, self._pair, self._eventfd, self._epoll, self._pidfd,
                       lambda: [os.open("/dev/null", os.O_RDWR)], lambda: [os.open("/", os.O_RDONLY)],
                       lambda: [os.open("/", os.O_PATH)], lambda: [os.open("/proc/self/status", os.O_RDONLY)],
                       lambda: [os.open("/proc/self/ns/user", os.O_RDONLY)], lambda: list(os.openpty()),
                       self._deleted, self._listener, self._datagram, self._inotify]
        if not trusted:  # a trusted program is trusted not to send such descriptors
            self._makes += [self._lingering, self._nested]

    def make(self):
        """Return some descriptors of one kind; the caller closes them."""
        try:
            return self._rng.choice(self._makes)()
        except OSError:
            return []

    def _memory(self):
        fd = os.memfd_create(self._rng.choice(("hostile", "uroce-report")), os.MFD_ALLOW_SEALING)
        os.truncate(fd, self._rng.choice((0, 1, 4096, REGION_BYTES, 1 << 40)))
        return [fd]

    def _sealed(self):
        return [sealed(self._rng.choice((0, 4096, REGION_BYTES, 1 << 21)))]

    @staticmethod
    def _pipe():
        return list(os.pipe())

    @staticmethod
    def _pair():
        return [end.detach() for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)]

    @staticmethod
    def _eventfd():
        return [os.eventfd(0)]

    @staticmethod
    def _epoll():
        epoll, event = select.epoll(), os.eventfd(0)
        epoll.register(event)
        fds = [os.dup(epoll.fileno()), event]
        epoll.close()
        return fds

    @staticmethod
    def _pidfd():
        return [os.pidfd_open(os.getpid())]

    @staticmethod
    def _deleted():
        with tempfile.TemporaryFile() as file:
            return [os.dup(file.fileno())]

    @staticmethod
    def _listener():
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind("")
        listener.listen()
        return [listener.detach()]

    @staticmethod
    def _datagram():
        return [end.detach() for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)]

    @staticmethod
    def _inotify():
        return [os.open("/proc/self/mountinfo", os.O_RDONLY)]

    def _lingering(self):
        made = self._deaf.lingering()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_SECONDS))
        return [made.detach()]

    def _nested(self):
        outer, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fds = self.make()
        quietly(lambda: socket.send_fds(outer, [b"x"], fds))
        for fd in fds:
            os.close(fd)
        outer.close()
        return [inner.detach()]


class Fuzzer:
    """Connections to uroced, and the actions on them."""

    def __init__(self, path, trusted, rng):
        self._path = path
        self._rng = rng
        self._files = Files(rng, trusted)
        self._clients = []
        self._attached = None
        self._from = None
        self._acts = [self._connect, self._connect, self._say, self._say, self._hello, self._drop, self._request, self._request,
                      self._claims]
        if not trusted:
            self._acts += [self._memif_noise, self._plug, self._mads]
        self._bytes = self._version = 0
        while not self._bytes:
            quietly(self._learn)

    def _learn(self):
        """Learn the length and the version of a message. Other programs may have taken all places."""
        client = self._client()
        client.send(b"?")
        answer, _ = client.receive()
        self._version = struct.unpack_from("<4I", answer)[3]
        self._bytes = len(answer)
        client.socket.close()

    def _client(self):
        client = Client(self._path)
        client.socket.settimeout(WAIT_SECONDS)
        return client

    def _plain(self, kind):
        return struct.pack("<4I", kind, 0, 0, self._version).ljust(self._bytes, b"\0")

    def _message(self, kind):
        """Return a message that usually has the right length and version, with random bytes in the rest."""
        head = struct.pack("<4I", kind, self._rng.getrandbits(32), 0, self._version)
        noise = self._rng.randbytes if self._rng.random() < 0.5 else bytes
        message = head + noise(self._bytes - len(head))
        if self._rng.random() < 0.1:
            at = self._rng.randrange(len(message))
            message = message[:at] + self._rng.randbytes(1) + message[at + 1:]
        if self._rng.random() < 0.1:
            message = message[:self._rng.randrange(len(message))]
        return message

    def _with_files(self, to, data):
        """Send a message with random descriptors."""
        fds = self._files.make() if self._rng.random() < 0.5 else []
        if fds and self._rng.random() < 0.1:
            count = self._rng.choice((2, FDS_MAX))
            fds += [os.dup(fds[0]) for _ in range(count - len(fds))]
        try:
            quietly(lambda: socket.send_fds(to, [data], fds))
        finally:
            for fd in fds:
                os.close(fd)

    def _some(self):
        return self._rng.choice(self._clients)

    def _attached_or_some(self):
        return self._attached if self._attached and self._rng.random() < 0.9 else self._some()

    def _connect(self):
        if len(self._clients) == CONNECTIONS:
            self._drop()
        self._clients.append(self._client())

    def _drop(self):
        self._clients.pop(self._rng.randrange(len(self._clients))).socket.close()

    def _say(self):
        self._with_files(self._some().socket, self._message(HELLO + self._rng.randrange(KINDS)))

    def _hello(self):
        client = self._some()
        client.send(self._plain(HELLO))
        answer, fds = client.receive()
        for fd in fds:
            os.close(fd)
        # The second address of the port is the first one of IPv4.
        at = answer.find(MAPPED)
        if struct.unpack_from("<4Ii", answer)[2] == 0 and at > ADDRESS_BYTES:
            self._attached = client
            self._from = at - ADDRESS_BYTES + FROM_AT, answer[at:at + ADDRESS_BYTES]

    def _right_request(self):
        """Return a valid request for a route or a neighbour, from an address of the port."""
        at, address = self._from
        head = struct.pack("<4I", HELLO + self._rng.choice((4, 5)), 0, 0, self._version).ljust(at, b"\0")
        gid = address[:15] + self._rng.randbytes(1)
        return (head + address + gid).ljust(self._bytes, b"\0")

    def _request(self):
        """Send many requests, as fast as uroced answers."""
        client = self._attached_or_some()
        for _ in range(self._rng.randrange(100)):
            right = self._from and self._rng.random() < 0.8
            client.send(self._right_request() if right else self._message(HELLO + self._rng.randrange(4, 8)))
            if not client.receive()[0]:
                self._attached = None
                break

    def _ask_for_port(self, client, me=None):
        """Ask for few ports and ids, so that some belong to another process. This also shows if uroced still
        accepts clients."""
        kind = self._rng.choice((mads.CLAIM, mads.CLAIM, mads.LISTEN, mads.CHANGE, mads.RELEASE))
        client.send(mads.with_claim(self._plain(kind), mads.random_claim(self._rng, me)))
        return kind == mads.RELEASE or client.receive()[0]

    def _claims(self):
        client = self._attached_or_some()
        for _ in range(self._rng.randrange(50)):
            if not self._ask_for_port(client):
                self._attached = None
                break

    def _attach(self):
        """Make a correct memif connection. A process has one slot."""
        if self._attached in self._clients:
            self._clients.remove(self._attached)
            self._attached.socket.close()
        self._attached = None
        process = AttachedProcess(self._path, self._plain)
        process.socket.settimeout(WAIT_SECONDS)
        process.client.socket.settimeout(WAIT_SECONDS)
        return process

    def _mads(self):
        """Send almost correct MADs between claims of ports, and take the answers or leave them."""
        process = self._attach()
        try:
            process.connect()
            me = mads.Identity(process.welcome)
            for _ in range(self._rng.randrange(40)):
                if self._rng.random() < 0.3:
                    self._ask_for_port(process.client, me)
                if self._rng.random() < 0.3:
                    process.offer()
                process.send([mads.random_frame(self._rng, me) for _ in range(self._rng.randrange(1, 5))])
        finally:
            process.close()

    def _plug(self):
        client = self._attached_or_some()
        if self._rng.random() < 0.1:
            self._with_files(client.socket, self._plain(MEMIF))
        client.send(self._plain(MEMIF))
        fds = client.receive()[1]
        if not fds:
            return
        ours = socket.socket(fileno=fds[0])
        for _ in range(self._rng.randrange(8)):
            kind = struct.pack("<H", self._rng.randrange(10))
            self._with_files(ours, kind + self._rng.randbytes(MESSAGE_BYTES - 2))
        ours.close()
        for fd in fds[1:]:
            os.close(fd)

    def _memif_noise(self):
        """Make a correct memif connection, then fill its rings with random bytes."""
        process = self._attach()
        try:
            process.connect()
            for _ in range(self._rng.randrange(60)):
                where = self._rng.randrange(0, 2 * RING_BYTES - 8)
                process.memory[where:where + 8] = self._rng.randbytes(8)
                process.head(0, self._rng.randrange(RING + 1))
                process.ring_doorbell()
        finally:
            process.close()

    def run(self):
        """Run without end."""
        while True:
            quietly(self._rng.choice(self._acts))
            if self._rng.random() < 0.05:
                time.sleep(self._rng.random() / 100)


def main():
    path, who, seed = sys.argv[1:4]
    Fuzzer(path, who == "trusted", random.Random(seed)).run()


if __name__ == "__main__":
    main()
