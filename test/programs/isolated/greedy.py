# SPDX-License-Identifier: BSD-3-Clause
"""A user of uroced's isolated socket who takes all that uroced gives. The arguments are the socket, uroced's pid,
what to take, and for how many seconds. It starts as root, so that it can stop uroced for a moment. It prints
"ready" when it holds all that it can get."""

import os
import resource
import socket
import struct
import sys
import time

from hostile import HELLO, Client
from hostile_isolated import FDS_MAX, Deaf, standing_still

NOBODY = 65534
LINGERING = 60       # more than uroced closes at one time, and fewer than may wait for acceptance
CONNECTIONS = 1500   # usually more than a process may have
REFUSED = 100        # one after the other, until uroced accepts no more clients
PAUSE_SECONDS = 0.005


def become_nobody():
    os.setresuid(NOBODY, NOBODY, NOBODY)


def connect(path):
    """Return a connection that has sent nothing, or None if uroced accepts none."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    try:
        client.connect(path)
        return client
    except OSError:
        client.close()
        return None


def lingering(path, pid, deaf):
    """Make uroced close sockets that take hours to close: the queue of each holds a socket, whose queue holds
    another one. uroced is stopped meanwhile. Otherwise our descriptor might be closed last, and this process
    would wait."""
    ends = []
    with standing_still(pid):
        os.seteuid(NOBODY)  # the user of the connections
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
    """Take descriptors: sockets that cannot be closed, messages with many descriptors, and connections."""
    end = time.monotonic() + seconds
    deaf = Deaf(pid)  # while uroced accepts clients
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
    """Take a slot again and again."""
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
