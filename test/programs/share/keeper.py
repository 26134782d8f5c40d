# SPDX-License-Identifier: BSD-3-Clause
"""A service manager that runs one uroced, and keeps its descriptors from one process to the next, as systemd does."""

import array
import fcntl
import os
import socket
import subprocess
import threading

from harness.process import start

FIRST_FD = 3  # sd_listen_fds(3)
STATE_BYTES = 4096


class Keeper:
    """Runs a command again and again. The command notifies it, and may let it keep descriptors by name."""

    def __init__(self, argv, work_dir, name="keeper"):
        self._argv = argv
        self._log = os.path.join(work_dir, f"{name}.log")
        self._path = os.path.join(work_dir, f"{name}.notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self._path)
        self._ready = threading.Event()
        self.kept = {}
        self.process = None
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            state, control, _, _ = self._socket.recvmsg(STATE_BYTES, socket.CMSG_SPACE(16 * 4))
            fds = array.array("i")
            for level, kind, data in control:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    fds.frombytes(data)
            fields = dict(line.split("=", 1) for line in state.decode().splitlines() if "=" in line)
            if fields.get("FDSTOREREMOVE") == "1" and fields["FDNAME"] in self.kept:
                os.close(self.kept.pop(fields["FDNAME"]))
            if fields.get("FDSTORE") == "1":
                self.kept[fields["FDNAME"]] = fds.pop()
            for fd in fds:
                os.close(fd)
            if fields.get("READY") == "1":
                self._ready.set()

    def start(self, seconds, *more):
        """Start the command, also while the last one runs, and give it what is kept. Return True once it says that it is
        ready."""
        names, fds = list(self.kept), list(self.kept.values())
        env = dict(os.environ, NOTIFY_SOCKET=self._path, FDSTORE="8", LISTEN_FDS=str(len(fds)),
                   LISTEN_FDNAMES=":".join(names))

        def pass_fds():
            # The numbers below may be those of other descriptors that are passed.
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, FIRST_FD + len(fds)) for fd in fds]
            for number, fd in enumerate(high):
                os.dup2(fd, FIRST_FD + number)
                os.close(fd)

        self._ready.clear()
        with open(self._log, "ab") as log:
            self.process = start(["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", *self._argv, *more], env=env,
                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=pass_fds, close_fds=False)
        return self._ready.wait(seconds)

    def end(self, number):
        """End the command by a signal, and wait for its end."""
        self.process.send_signal(number)
        return self.process.wait()

    def log(self):
        """Return what the command has written so far."""
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return log.read()
