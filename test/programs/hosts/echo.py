# SPDX-License-Identifier: BSD-3-Clause
"""Exchange and verify data over TCP: echo.py ADDRESS PORT [PEER]. With PEER the program sends until it is stopped,
and prints a line for each round."""

import os
import random
import signal
import socket
import sys

BYTES = 65536
SECONDS = 60


def receive(connection, length):
    parts = []
    while length:
        parts.append(connection.recv(length))
        if not parts[-1]:
            raise EOFError("the other side has ended")
        length -= len(parts[-1])
    return b"".join(parts)


def serve(address, port):
    with socket.create_server((address, port)) as listener:
        listener.settimeout(SECONDS)
        connection, _ = listener.accept()
        with connection:
            while True:
                try:
                    connection.sendall(receive(connection, BYTES))
                except EOFError:
                    return 0


def ask(address, port, peer):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with socket.create_connection((peer, port), SECONDS, (address, 0)) as connection:
        generator = random.Random(os.getpid())
        rounds = 0
        while True:
            sent = generator.randbytes(BYTES)
            connection.sendall(sent)
            if receive(connection, BYTES) != sent:
                print("other bytes come back")
                return 1
            rounds += 1
            print(f"round {rounds}", flush=True)


if __name__ == "__main__":
    sys.exit(ask(sys.argv[1], int(sys.argv[2]), sys.argv[3]) if len(sys.argv) > 3
             else serve(sys.argv[1], int(sys.argv[2])))
