#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Process 1 of a new PID namespace: starts uroce-run --local many times, and looks for what is left behind.

usage: unshare --fork --pid --mount-proc --mount --ipc --net local_starts.py UROCE_RUN STARTS AT_ONCE

Whoever loses its parent here becomes a child of this process. So when it has no child any more, no process is left. The
namespaces and the file systems are new, so all that is in them was left behind. Ends with 1 and a list of it.
"""

import ctypes
import os
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from harness.world import TOP_DIR, cover  # noqa: E402

SECONDS = 60  # for one start, and for the end of what the starts leave running
USER = 65534
RUNTIME_DIR = f"/run/user/{USER}"
FOLDERS = ("/dev/shm", "/run", "/tmp")
PRCTL_NO_NEW_PRIVS = 38
# Each way to show the device's files leaves something else behind if it does not clean up.
VIEWS = ("mount", "preload")


def become_user():
    """An ordinary user without capabilities."""
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    ctypes.CDLL(None).prctl(PRCTL_NO_NEW_PRIVS, 1, 0, 0, 0)


class Start:
    """A program that lists its devices."""

    def __init__(self, uroce_run, number):
        self._begin = time.monotonic()
        self._process = subprocess.Popen(
            [uroce_run, "--local", "--view", VIEWS[number % len(VIEWS)], "--", "ibv_devices"], text=True, cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "XDG_RUNTIME_DIR": RUNTIME_DIR}, start_new_session=True)

    def finish(self):
        """Return the seconds from the start to the first device."""
        output, seconds = [], None
        for line in self._process.stdout:
            output.append(line)
            if line.split()[:1] == ["uroce0"] and seconds is None:
                seconds = time.monotonic() - self._begin
        if self._process.wait() != 0 or seconds is None:
            sys.exit(f"exit {self._process.returncode}: {''.join(output)}")
        return seconds


def run_starts(uroce_run, starts, at_once):
    become_user()
    seconds = []
    for first in range(0, starts, at_once):
        # A start that hangs ends the check.
        signal.alarm(SECONDS)
        begun = [Start(uroce_run, number) for number in range(first, min(first + at_once, starts))]
        seconds += [start.finish() for start in begun]
    print(f"{starts} starts, {at_once} at once: from the start to the first device {statistics.median(seconds):.2f} s (median), "
          f"{max(seconds):.2f} s (longest)", flush=True)


def wait_for_all(worker):
    """Wait for all processes of the namespace. Return the worker's status; None: some do not end."""
    end = time.monotonic() + SECONDS
    status = None
    while True:
        try:
            # Wait for the worker as long as it takes: it has a limit of its own.
            pid, result = os.waitpid(-1, os.WNOHANG if status is not None else 0)
        except ChildProcessError:
            return status
        if pid == worker:
            status = os.waitstatus_to_exitcode(result)
            end = time.monotonic() + SECONDS
        if pid == 0:
            if time.monotonic() > end:
                return None
            time.sleep(0.02)


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def remains(kept):
    """All that outlives processes, and all processes but this one. What is kept may be below such a folder, and others may
    write there."""
    for folder in FOLDERS:
        for parent, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if os.path.join(parent, name) not in kept]
            yield from (os.path.join(parent, name) for name in (*folders, *files))
    for table in ("/proc/net/unix", "/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg"):
        yield from (f"{table}: {line}" for line in read_lines(table)[1:])
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) != os.getpid():
            yield f"process {pid}: {read_lines(f'/proc/{pid}/comm')[0]}"
    yield from (f"mount {line}" for line in read_lines("/proc/self/mountinfo"))


def main():
    uroce_run, starts, at_once = os.path.realpath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    kept = cover(FOLDERS, {TOP_DIR, os.path.dirname(os.path.dirname(uroce_run))})
    os.makedirs(RUNTIME_DIR)
    os.chown(RUNTIME_DIR, USER, USER)
    before = set(remains(kept))
    worker = os.fork()
    if worker == 0:
        run_starts(uroce_run, starts, at_once)
        sys.exit(0)
    status = wait_for_all(worker)
    left = sorted(set(remains(kept)) - before)
    for line in left:
        print(f"left behind: {line}")
    return 1 if status != 0 or left else 0


if __name__ == "__main__":
    sys.exit(main())
