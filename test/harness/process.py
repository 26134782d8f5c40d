# SPDX-License-Identifier: BSD-3-Clause
"""Programs and network namespaces on this machine. When the test ends, programs are killed and namespaces removed."""

import atexit
import contextlib
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time

from . import tried
from .report import CannotRun, CheckFailed
from .world import TOP_DIR, closed_folder, is_roots

# lines of a program's output that a failed check shows
HEAD_LINES = 5
TAIL_LINES = 15

# The nice value of all programs of a check. They have precedence over other load of the machine, because their timeouts
# are short. They all have the same value: if an uroced had a lower one than the programs that poll beside it, their
# packets would wait longer in uroced than a queue pair retries.
PRECEDENCE = -15

# Run a program as another user.
NOBODY = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]

# states in /proc/net/tcp
ESTABLISHED = "01"
LISTEN = "0A"
LOCKED_BYTES = 64 << 20
# Those that share huge pages with other processes: captures, DPDK's own programs, System V's segments.
HUGE_PAGES_USERS = r"--capture (all|port)|dpdk-testpmd|--huge-unlink|shmhuge|--use_hugepages"


def run(*argv):
    """Run a command of the test itself (ip, ethtool, ...); its failure ends the test."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def exit_on_signals():
    """Turn a request to end into SystemExit, so that everything that was started is stopped again."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit("interrupted"))


def need_users():
    """Skip the check that calls this if it cannot have programs of other users."""
    if not is_roots():
        raise CannotRun("not root: it needs programs of other users")
    closed = closed_folder(os.environ.get("UROCE_RUN", os.path.join(TOP_DIR, "build", "app", "uroce-run")))
    if closed:
        raise CannotRun(f"other users may not execute what is below {closed}")


def need_own_tmp():
    """Skip the check that calls this, and mounts something at /tmp, if the programs are there."""
    if TOP_DIR.startswith("/tmp/"):
        raise CannotRun("the checkout is below /tmp")


def _need_memory(argv):
    """Skip a check whose program takes memory that only root may have: locked, or in files of huge pages."""
    if is_roots():
        return
    words = " ".join(argv)
    if "net_af_packet" in words and "blocksz=" not in words and 0 <= resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] < LOCKED_BYTES:
        raise CannotRun("not root: net_af_packet locks more memory than this user may")
    if re.search(HUGE_PAGES_USERS, words) and not os.access("/dev/hugepages", os.W_OK):
        raise CannotRun("not root: this user may have no huge pages")


def start(argv, nice=PRECEDENCE, **options):
    """Start a program in a session of its own, and return its Popen. It ends with the test. Linux compares nice values
    only between the threads of one session, and sessions by a value of their own, so both are set."""
    if any(word.startswith("--reuid") for word in argv):
        need_users()
    _need_memory(argv)
    tried.log(argv)
    precedence = ["nice", "-n", str(nice)] if is_roots() else []  # nobody else may have one
    popen = subprocess.Popen([*precedence, "setpriv", "--pdeathsig", "KILL", *argv], start_new_session=True, **options)
    with contextlib.suppress(OSError):  # the kernel does not group sessions, or the program has ended
        with open(f"/proc/{popen.pid}/autogroup", "w", encoding="ascii") as group:
            group.write(str(nice))
    return popen


def ask(argv, seconds, text="", nice=PRECEDENCE, **options):
    """Run a command, such as uroce-ctl, that gets the text as its input; return its exit status and output as
    subprocess.run does. It has the same precedence as the programs of the check that it looks at. If it does not end in
    that time, the check fails."""
    with start(argv, nice, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
               **options) as popen:
        try:
            out, err = popen.communicate(text, seconds)
        except BaseException as reason:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(popen.pid, signal.SIGKILL)
            if isinstance(reason, subprocess.TimeoutExpired):
                raise CheckFailed(f"hangs (after {seconds} s): {' '.join(argv)}") from reason
            raise
    return subprocess.CompletedProcess(argv, popen.returncode, out, err)


class Process:
    """A program in a session of its own, with its output in a file. It cannot outlive the test."""

    def __init__(self, argv, log_path, nice=PRECEDENCE):
        self.argv = argv
        self.log_path = log_path
        with open(log_path, "wb") as log:
            self._popen = start(argv, nice, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self.pid = self._popen.pid
        atexit.register(self.kill)

    def poll(self):
        """Return the exit status, negative for a signal; None while it runs."""
        return self._popen.poll()

    def wait(self, seconds):
        """Return the exit status, or None if it still runs after that time. Popen.wait with a timeout looks only each
        50 ms whether the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # another thread has waited for it meanwhile
                pidfd = os.pidfd_open(self.pid)
                try:
                    end = select.poll()
                    end.register(pidfd, select.POLLIN)
                    if not end.poll(max(seconds, 0) * 1000):  # a negative time would be endless
                        return None
                finally:
                    os.close(pidfd)
        return self._popen.wait()

    def kill(self):
        """Send SIGKILL to the program and to what it started."""
        atexit.unregister(self.kill)
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._popen.wait()

    def kill_descendants(self):
        """Send SIGKILL to what the program started, also to what has a session of its own and would outlive kill."""
        for pid in descendants(self.pid) if self.poll() is None else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def terminate(self):
        """Send SIGTERM to the program and to what it started."""
        try:
            os.killpg(self.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass

    def listens(self, port):
        """Return True if its network namespace has a TCP listener on that port."""
        return tcp_tables_show(tcp_tables(self.pid), LISTEN, port)

    def connected(self, port):
        """Return True if its network namespace has an established TCP connection to that port."""
        return tcp_tables_show(tcp_tables(self.pid), ESTABLISHED, port)

    def output(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def story(self, title):
        """Describe the program for a failed check: command, state, first and last lines of output. Both are needed: a
        program prints errors at once, but may print its buffered output only at its end."""
        status = self.poll()
        state = "still running" if status is None else f"exit {status}"
        lines = [f"{title}: {' '.join(self.argv)}: {state}"]
        words = self.output().splitlines()
        if len(words) > HEAD_LINES + TAIL_LINES:
            words[HEAD_LINES:-TAIL_LINES] = ["..."]
        return lines + ["| " + line for line in words]


def descendants(pid):
    """Return the processes that a process has started, and what these have started, as far as their parents still run."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                children.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(entry))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found[1:]


def tcp_tables(pid):
    """Return the text of /proc/net/tcp and tcp6 in a process's network namespace; "" if the process has ended."""
    text = ""
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:
                text += file.read()
        except OSError:
            pass
    return text


def tcp_tables_show(text, state, port):
    """Return True if the text of /proc/net/tcp and tcp6 has a socket of that state with that port."""
    for fields in (line.split() for line in text.splitlines()):
        if len(fields) > 3 and fields[3] == state:
            if f"{port:04X}" in (fields[1].split(":")[-1], fields[2].split(":")[-1]):
                return True
    return False


class LocalHost:
    """This machine as the place of a side's program, with a prefix for its commands."""

    def __init__(self, name, log_dir, prefix=(), cpu=None):
        self.name = name
        self._log_dir = log_dir
        self._prefix = list(prefix)
        if cpu is not None:
            self._prefix = ["taskset", "-c", str(cpu), *self._prefix]

    def start(self, argv, nice=PRECEDENCE):
        return Process([*self._prefix, *argv], os.path.join(self._log_dir, f"{self.name}.log"), nice)


class Namespace:
    """A network namespace with loopback up, and with IPv6 whatever the machine's own is. Its addresses are valid at once:
    nobody looks for duplicates. Its name contains our pid, so that runs do not collide where they have no world of their own
    (world.py)."""

    PREFIX = "uroce-test-"
    SETTINGS = {"disable_ipv6": 0, "accept_dad": 0}

    def __init__(self, role):
        self.remove_abandoned()
        self.name = f"{self.PREFIX}{os.getpid()}-{role}"
        run("ip", "netns", "add", self.name)
        atexit.register(self.remove)
        self.run("sh", "-c", "cd /proc/sys/net/ipv6/conf 2>/dev/null || exit 0; " +
                 "; ".join(f"echo {value} >{which}/{name}" for which in ("all", "default")
                           for name, value in self.SETTINGS.items()))
        self.run("ip", "link", "set", "lo", "up")

    @property
    def prefix(self):
        return ["ip", "netns", "exec", self.name]

    def run(self, *argv):
        return run(*self.prefix, *argv)

    def remove(self):
        atexit.unregister(self.remove)
        run("ip", "netns", "del", self.name)

    @classmethod
    def remove_abandoned(cls):
        """Remove what a killed test has left."""
        for line in run("ip", "netns", "list").splitlines():
            name = line.split()[0]
            if name.startswith(cls.PREFIX):
                pid = name[len(cls.PREFIX):].split("-")[0]
                if not os.path.exists(f"/proc/{pid}"):
                    run("ip", "netns", "del", name)


def veth_pair(here, there, addresses, mtu=9000):
    """Join two namespaces by interfaces, veth0 in the first one and veth1 in the second one. Each has one of these IPv4
    addresses."""
    here.run("ip", "link", "add", "veth0", "mtu", str(mtu), "type", "veth", "peer", "name", "veth1", "mtu", str(mtu), "netns",
             there.name)
    for number, (namespace, address) in enumerate(zip((here, there), addresses)):
        namespace.run("ip", "link", "set", f"veth{number}", "up")
        namespace.run("ip", "addr", "add", f"{address}/24", "dev", f"veth{number}")


def wait_until(condition, seconds, pause=0.02):
    """Return True as soon as condition() is true, False when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


class Running:
    """The running programs of a check. All are killed at its end."""

    def __init__(self):
        self._processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.kill()

    def add(self, process):
        self._processes.append(process)
        return process

    def fail(self, reason):
        """Raise CheckFailed with the output of all programs of the check."""
        raise CheckFailed(reason, [line for process in self._processes for line in process.story(process.argv[-1])])
