# SPDX-License-Identifier: BSD-3-Clause
"""A clean Debian 12 to install packages in: a root directory made of Debian's packages, and places that run on it."""

import glob
import os
import re
import shutil
import signal
import subprocess

from harness.process import wait_until
from harness.report import CheckFailed

HERE = os.path.dirname(os.path.abspath(__file__))
USER = 1000
SECONDS = 120
# What an ordinary user in a container has: no capability, no way to get one, and little memory that may be locked.
RESTRICTED = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--inh-caps=-all",
              "--bounding-set=-all", "--no-new-privs"]
LIMITS = ["prlimit", "--memlock=65536:65536", "--nofile=1024:4096", "--core=0:0"]


def sources():
    """Return the files that lead apt to the packages of this machine."""
    return [path for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.sources"),
                              *glob.glob("/etc/apt/sources.list.d/*.list")] if os.path.exists(path)]


def apt_settings():
    """Return the files that say how apt reaches the packages, such as by a proxy."""
    found = []
    for path in sorted(glob.glob("/etc/apt/apt.conf.d/*")):
        with open(path, encoding="utf-8") as file:
            if "Acquire::" in file.read():
                found.append(path)
    return found


def make_root(directory):
    """Make a root with Debian's essential packages and apt, unless it is there. Return the reason if it cannot be made."""
    if os.path.exists(os.path.join(directory, "made")):
        return None
    if not shutil.which("mmdebstrap"):
        return "mmdebstrap is missing"
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    argv = ["mmdebstrap", "--mode=root", "--variant=apt", "--include=ca-certificates", "--skip=cleanup/apt",
            *(f"--aptopt={path}" for path in apt_settings()),
            "bookworm", os.path.join(directory, "root"), *sources()]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode:
        return "mmdebstrap: " + " ".join(done.stdout.splitlines()[-3:])
    with open(os.path.join(directory, "made"), "w", encoding="ascii"):
        return None


class Unreachable(Exception):
    """No package can be had here now."""


class Place:
    """A system of its own on a root: what is written there goes into a layer of this place, and ends with it."""

    def __init__(self, lower, work_dir, keep=False):
        self._work_dir = work_dir
        self._keep = keep
        os.makedirs(work_dir)
        self.log = os.path.join(work_dir, "log")
        with open(self.log, "wb") as log:
            self._holder = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork",
                 "--kill-child", "--propagation", "private", os.path.join(HERE, "enter-root.sh"), lower, work_dir],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        self.root = os.path.join(work_dir, "root")
        self.pid = None
        if not wait_until(self._is_ready, SECONDS):
            self.close()
            raise CheckFailed("no place can be made", self._words())

    def _words(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()

    def _is_ready(self):
        if self._holder.poll() is not None:
            raise CheckFailed("no place can be made", self._words())
        path = f"/proc/{self._holder.pid}/task/{self._holder.pid}/children"
        with open(path, encoding="ascii") as file:
            children = file.read().split()
        if not children:
            return False
        try:
            with open(f"/proc/{children[0]}/comm", encoding="ascii") as file:
                ready = file.read().strip() == "perl"
        except OSError:
            return False
        self.pid = int(children[0])
        return ready

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End all processes of the place, and remove its layer."""
        try:
            os.killpg(self._holder.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._holder.wait()
        if not self._keep:
            shutil.rmtree(self._work_dir, ignore_errors=True)

    def argv(self, script, user=False, network=False, environment=()):
        """Return the command that runs a shell script in the place: as root, or as an ordinary user in what a container
        allows; in the place's network, or in that of this machine, which leads to packages."""
        enter = ["nsenter", "--target", str(self.pid), "--mount", "--pid", "--ipc", "--uts", "--root", "--wdns=/"]
        if not network:
            enter.append("--net")
        home = "/home/user" if user else "/root"
        variables = [f"HOME={home}", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
                     "DEBIAN_FRONTEND=noninteractive", *environment]
        return [*(LIMITS if user else []), *enter, *(RESTRICTED if user else []), "env", "-i", *variables,
                "sh", "-c", f"cd {home} && {{ {script}\n}}"]

    def start(self, script, **options):
        """Start a script, and return its Popen."""
        return subprocess.Popen(self.argv(script, **options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)

    def run(self, script, seconds=SECONDS, status=0, network=False, **options):
        """Run a script, and return its output. The check fails if it ends with another status."""
        process = self.start(script, network=network, **options)
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise CheckFailed(f"hangs (after {seconds} s): {script}", process.communicate()[0].splitlines()[-20:]) from None
        if network and re.search("Failed to fetch|Unable to fetch|Could not resolve|Temporary failure resolving", output):
            raise Unreachable(output.splitlines()[-1])
        if process.returncode != status:
            raise CheckFailed(f"exit {process.returncode}, not {status}: {script}", output.splitlines()[-20:])
        return output

    def copy(self, path, directory):
        """Copy a file into a directory of the place."""
        shutil.copy(path, os.path.join(f"/proc/{self.pid}/root", directory.lstrip("/")))

    def add_user(self):
        self.run(f"useradd --uid {USER} --create-home user")

    def install(self, *packages, recommends=False):
        """Install packages of Debian, and files of packages."""
        options = "" if recommends else "--no-install-recommends"
        return self.run(f"apt-get install -y {options} {' '.join(packages)}", seconds=600, network=True)
