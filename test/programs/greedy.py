# SPDX-License-Identifier: BSD-3-Clause
"""A user of uroced's isolated socket who takes all that there is: argv are the socket, what to take, and for how many
seconds. Prints "ready" when it has what it gets, and ends with 0."""

import os
import resource
import socket
import struct
import sys
import time

from hostile import HELLO, Client
from hostile_isolated import FDS_MAX, Deaf

LINGERING = 100      # more than are closed at one time, should we close the half of them ourselves
CONNECTIONS = 1500   # more than a process has descriptors, as a rule
PAUSE_SECONDS = 0.005


def connect(path):
    """A connection that says nothing, or None where nobody lets us in."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    try:
        client.connect(path)
        return client
    except OSError:
        client.close()
        return None


def lingering(path, deaf):
    """Has uroced close a socket, in whose queue is another one, in whose queue is one that takes hours. In a child:
    should ours be the last that is closed, it is we who wait."""
    if os.fork():
        return
    outer, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made = deaf.lingering()
    socket.send_fds(outer, [b"x"], [made.fileno()])
    made.close()
    outer.close()
    client = connect(path)
    if client:
        socket.send_fds(client, [b"?"], [inner.fileno()])
    os._exit(0)


def descriptors(path, seconds):
    """Sockets that cannot be closed, many descriptors with a message, and connections."""
    deaf = Deaf(0)
    end = time.monotonic() + seconds
    for _ in range(LINGERING):
        lingering(path, deaf)
    null = os.open("/dev/null", os.O_RDONLY)
    for _ in range(3):
        client = connect(path)
        if client:
            socket.send_fds(client, [b"?"], [null] * FDS_MAX)
    kept = []
    print("ready", flush=True)
    while time.monotonic() < end:
        client = connect(path) if len(kept) < CONNECTIONS else None
        if client:
            kept.append(client)
        else:
            time.sleep(PAUSE_SECONDS)


def numbers(path, seconds):
    """A slot, over and over."""
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
    path, what, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    os.setgid(65534)
    os.setuid(65534)
    {"descriptors": descriptors, "numbers": numbers}[what](path, seconds)


if __name__ == "__main__":
    main()
