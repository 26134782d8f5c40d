# SPDX-License-Identifier: BSD-3-Clause
"""A user of uroced's isolated socket who takes all that there is: argv are the socket, uroced's number, what to take,
and for how many seconds. Begun by root, who stops uroced for a moment. Prints "ready" when it has what it gets."""

import os
import resource
import socket
import struct
import sys
import time

from hostile import HELLO, Client
from hostile_isolated import FDS_MAX, Deaf, standing_still

NOBODY = 65534
LINGERING = 60       # more than are closed at one time, and fewer than wait to be let in
CONNECTIONS = 1500   # more than a process has descriptors, as a rule
REFUSED = 100        # one after the other: nobody is let in any more
PAUSE_SECONDS = 0.005


def become_nobody():
    os.setresuid(NOBODY, NOBODY, NOBODY)


def connect(path):
    """A connection that says nothing, or None where nobody lets us in."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    try:
        client.connect(path)
        return client
    except OSError:
        client.close()
        return None


def lingering(path, pid, deaf):
    """Has uroced close sockets, in the queue of each another one, in whose queue is one that takes hours. It stands
    still meanwhile: else ours might be the last that are closed, and it is we who wait."""
    ends = []
    with standing_still(pid):
        os.seteuid(NOBODY)  # whose the connections are
        for _ in range(LINGERING):
            outer, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            made = deaf.lingering()
            socket.send_fds(outer, [b"x"], [made.fileno()])
            made.close()
            client = connect(path)
            socket.send_fds(client, [b"?"], [inner.fileno()])
            ends += [outer, inner, client]
        for end in ends:
            end.close()
        os.seteuid(0)


def descriptors(path, pid, seconds):
    """Sockets that cannot be closed, many descriptors with a message, and connections."""
    end = time.monotonic() + seconds
    deaf = Deaf(pid)  # as long as it listens
    lingering(path, pid, deaf)
    become_nobody()
    null = os.open("/dev/null", os.O_RDONLY)
    for _ in range(3):
        client = connect(path)
        if client:
            socket.send_fds(client, [b"?"], [null] * FDS_MAX)
    kept, refused = [], 0
    while time.monotonic() < end:
        client = connect(path) if len(kept) < CONNECTIONS else None
        if client:
            kept.append(client)
            refused = 0
            continue
        refused += 1
        if refused == REFUSED:
            print("ready", flush=True)
        time.sleep(PAUSE_SECONDS)


def numbers(path, _, seconds):
    """A slot, over and over."""
    become_nobody()
    client = Client(path)
    client.send(b"?")
    answer, _ = client.receive()
    hello = struct.pack("<4I", HELLO, 1, 0, struct.unpack_from("<4I", answer)[3]).ljust(len(answer), b"\0")
    end = time.monotonic() + seconds
    refused = False
    while time.monotonic() < end:
        client = Client(path)
        client.send(hello)
        answer, _ = client.receive()
        client.socket.close()
        if answer and struct.unpack_from("<4Ii", answer)[2] and not refused:
            refused = True
            print("ready", flush=True)


def main():
    path, pid, what, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    os.setgroups([])
    os.setgid(NOBODY)
    {"descriptors": descriptors, "numbers": numbers}[what](path, pid, seconds)


if __name__ == "__main__":
    main()
