# SPDX-License-Identifier: BSD-3-Clause
"""A small world for checks: namespaces that contain nothing but what the checks have made.

Files below /tmp, /run and /dev/shm, huge pages with a name, processes, interfaces, ports and System V objects are those of
the world alone, so a check may count them, and two test runs of one machine do not meet. What a world cannot have for itself
is the machine's: CPUs, memory, and the number of free huge pages.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG = 1
TOP_DIR = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HIDDEN = ("/tmp", "/run", "/dev/shm")  # folders that the world has for itself
HUGE_PAGES = "/dev/hugepages"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HOME = "/tmp/home"
# Variables that say what is tested, and how the sanitizers report; all others are the user's own affair.
TOOLS = ("UROCE_RUN", "UROCE_RUN_FILE")
KEPT = (*TOOLS, "SPDK", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS")

_libc = ctypes.CDLL(None, use_errno=True)
_is_roots = os.geteuid() == 0  # whether root made the world, or a user who plays root in it


def is_roots():
    """Return True if the checks have root's rights over the machine, and not only over a user namespace."""
    return _is_roots


def set_environment():
    """Give the checks the same environment, whoever runs them, wherever."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    path = os.environ.get("PATH", "")
    os.environ.clear()
    os.environ.update(kept, PATH=f"{PATH}:{path}" if path else PATH, HOME=HOME, LC_ALL="C.UTF-8", TERM="dumb")
    os.umask(0o022)
    os.chdir(TOP_DIR)


def enter():
    """Run the rest of this process's program in a world of its own. It ends as soon as the program does, with all
    processes that are still in it, and also when the process that called this is killed."""
    user, group = os.geteuid(), os.getegid()
    flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
    if _libc.unshare(flags if _is_roots else flags | CLONE_NEWUSER):
        sys.exit(f"no namespaces: {os.strerror(ctypes.get_errno())}")
    if not _is_roots:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    end_with_parent()  # a change of user ends this, too
    first = _fork()
    if first:
        _be_outside(first)
    _furnish()
    program = _fork()
    if program:
        _be_process_1(program)


def end_with_parent():
    """Let the kernel kill this process when its parent ends."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _fork():
    """Fork; the child does not outlive the parent."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        end_with_parent()
    return pid


def _be_outside(first):
    """Wait for the world's end; end it if this process is told to end."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: os.kill(first, signal.SIGKILL))
    _exit(os.waitpid(first, 0)[1])


def _be_process_1(program):
    """Wait for all processes that have lost their parents, so that none stays as a zombie, until the program ends."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pid, status = os.wait()
        if pid == program:
            _exit(status)


def _exit(status):
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _mount(*argv):
    done = subprocess.run(["mount", *argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"mount {' '.join(argv)}: {done.stderr.strip()}")


def _furnish():
    """Mount what the world has for itself."""
    _mount("--make-rprivate", "/")
    _mount("-t", "proc", "proc", "/proc")
    tested = _tested()
    closed = {folder for folder in map(closed_folder, tested) if folder and folder not in tested}
    cover([*HIDDEN, *sorted(closed)], {*tested, sys.prefix, sys.base_prefix})
    os.mkdir(HOME, 0o777)
    os.mkdir("/run/lock", 0o1777)
    _mount("-t", "sysfs", "sysfs", "/sys")
    if _is_roots and os.path.ismount(HUGE_PAGES):
        _mount("-t", "hugetlbfs", "-o", "pagesize=2M", "hugetlbfs", HUGE_PAGES)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def _tested():
    """Return the folders of what is tested: the checkout, and others that the environment names (build/app/uroce-run)."""
    tools = [os.path.dirname(os.path.dirname(os.environ[name])) for name in TOOLS if name in os.environ]
    return {TOP_DIR, *tools, *filter(None, [os.environ.get("SPDK")])}


def closed_folder(path):
    """Return the first folder on the way to a file, or the file, that other users may not enter or execute; None if they may
    all. Many a checkout is below /root."""
    path = os.path.realpath(path)
    for end in (*(at for at, letter in enumerate(path) if letter == "/" and at), len(path)):
        if not os.stat(path[:end]).st_mode & 0o001:
            return path[:end]
    return None


def cover(folders, kept):
    """Cover folders with empty ones, in a private mount namespace. Folders that are kept stay where they are, also below one
    of these. Return those that are there."""
    opened = {path: os.open(path, os.O_PATH) for path in sorted(kept)
              if any(os.path.realpath(path).startswith(os.path.realpath(folder) + "/") for folder in folders)}
    for folder in folders:
        _mount("-t", "tmpfs", "-o", "mode=1777" if folder in ("/tmp", "/dev/shm") else "mode=755", "tmpfs", folder)
    for path, number in opened.items():
        os.makedirs(path, exist_ok=True)
        _mount("--no-canonicalize", "--bind", f"/proc/{os.getpid()}/fd/{number}", path)
        os.close(number)
    return list(opened)


def cpu_seconds():
    """Return the CPU time of all processes that the world has or had: each one's own, and that of the children it has
    waited for."""
    ticks = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            ticks += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
