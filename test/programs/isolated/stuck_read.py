# SPDX-License-Identifier: BSD-3-Clause
"""Reads of sockets that never end (userfaultfd(2); needs root)."""

import contextlib
import ctypes
import fcntl
import mmap
import os
import select
import struct
import threading

SYSCALL = {"x86_64": 323}.get(os.uname().machine, 282)
UFFD_API, UFFDIO_API, UFFDIO_REGISTER, REGISTER_MODE_MISSING = 0xaa, 0xc018aa3f, 0xc020aa00, 1
WAIT_MS = 20000

libc = ctypes.CDLL(None, use_errno=True)


def missing_page():
    """Return a page, its address, and a descriptor. Who accesses the page waits until the descriptor is closed, and
    makes the descriptor readable."""
    fd = libc.syscall(SYSCALL, os.O_CLOEXEC | os.O_NONBLOCK)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "userfaultfd")
    page = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    fcntl.ioctl(fd, UFFDIO_API, struct.pack("QQQ", UFFD_API, 0, 0))
    fcntl.ioctl(fd, UFFDIO_REGISTER, struct.pack("QQQQ", address, mmap.PAGESIZE, REGISTER_MODE_MISSING, 0))
    return page, address, fd


@contextlib.contextmanager
def stuck_read(sock):
    """Read a message that waits in a socket into a page that never comes. The kernel lets one thread at a time read a
    socket, so nobody else can read this one meanwhile, through whatever descriptor."""
    # The socket does not block, so the message must be there.
    waits = select.poll()
    waits.register(sock, select.POLLIN)
    assert waits.poll(WAIT_MS), "no message comes"
    page, address, fd = missing_page()
    reader = threading.Thread(target=libc.recv, args=(sock.fileno(), ctypes.c_void_p(address), 1, 0), daemon=True)
    reader.start()
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        assert poll.poll(WAIT_MS), "there was nothing to read: the other end has gone"
        yield
    finally:
        os.close(fd)
        reader.join()
        del page
