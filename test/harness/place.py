# SPDX-License-Identifier: BSD-3-Clause
"""A clean Debian to install packages in: a root directory made of Debian's packages, and places that run on it."""

import glob
import os
import platform
import re
import shutil
import signal
import subprocess

from .checkout import TOP_DIR, checked_in
from .process import wait_until
from .report import CannotRun, CheckFailed

HERE = os.path.dirname(os.path.abspath(__file__))
USER = 1000
SECONDS = 120
# What an ordinary user in a container has: no capability, no way to get one, and little memory that may be locked.
RESTRICTED = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--inh-caps=-all",
              "--bounding-set=-all", "--no-new-privs"]
LIMITS = ["prlimit", "--memlock=65536:65536", "--nofile=1024:4096", "--core=0:0"]


def sources(release, directory):
    """Return the files that lead apt to the packages of a release: those of this machine. For another release than the
    machine's write Debian's own entries in these files to a directory, with that release in them."""
    found = [path for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.sources"),
                               *glob.glob("/etc/apt/sources.list.d/*.list")] if os.path.exists(path)]
    own = platform.freedesktop_os_release().get("VERSION_CODENAME", release)
    if own == release:
        return found
    written = []
    for path in found:
        with open(path, encoding="utf-8") as file:
            entries = file.read().split("\n\n" if path.endswith(".sources") else "\n")
        name = re.compile(rf"(?<=\s){own}\b")  # the security archive's too, and not another archive's own releases
        entries = [name.sub(release, entry) for entry in entries if name.search(entry)]
        if entries:
            written.append(os.path.join(directory, os.path.basename(path)))
            with open(written[-1], "w", encoding="utf-8") as file:
                file.write("\n\n".join(entries) + "\n")
    return written


def apt_settings():
    """Return the files that say how apt reaches the packages, such as by a proxy."""
    found = []
    for path in sorted(glob.glob("/etc/apt/apt.conf.d/*")):
        with open(path, encoding="utf-8") as file:
            if "Acquire::" in file.read():
                found.append(path)
    return found


def make_root(directory, release):
    """Make a root with the essential packages and apt of a release of Debian, unless it is there. Return the reason if it
    cannot be made."""
    if os.path.exists(os.path.join(directory, "made")):
        return None
    if not shutil.which("mmdebstrap"):
        return "mmdebstrap is missing"
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    argv = ["mmdebstrap", "--mode=root", "--variant=apt", "--include=ca-certificates", "--skip=cleanup/apt",
            *(f"--aptopt={path}" for path in apt_settings()),
            release, os.path.join(directory, "root"), *sources(release, directory)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode:
        return "mmdebstrap: " + " ".join(done.stdout.splitlines()[-3:])
    with open(os.path.join(directory, "made"), "w", encoding="ascii"):
        return None


class Unreachable(CannotRun):
    """No package can be had here now."""


class Place:
    """A system of its own on a root: what is written there goes into a layer of this place. The layer ends with the place,
    or is kept for the next place in this directory."""

    def __init__(self, lower, work_dir, keep=False):
        self._work_dir = work_dir
        self._keep = keep
        os.makedirs(work_dir, exist_ok=keep)
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
        """End all processes of the place, and remove its layer unless it is kept."""
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

    def copy_checkout(self):
        """Copy the files that git knows to /src of the place. What has been built there stays."""
        self.run("mkdir -p /src && find /src -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +")
        with subprocess.Popen(["tar", "--create", *checked_in()], cwd=TOP_DIR, stdout=subprocess.PIPE) as packed:
            subprocess.run(["tar", "--extract", "--no-same-owner", "--directory", f"/proc/{self.pid}/root/src"],
                           stdin=packed.stdout, check=True)

    def add_user(self):
        self.run(f"useradd --uid {USER} --create-home user")

    def install(self, *packages, recommends=False):
        """Install packages of Debian, and files of packages."""
        options = "" if recommends else "--no-install-recommends"
        return self.run(f"apt-get install -y {options} {' '.join(packages)}", seconds=600, network=True)


def in_place(report, name, root, work_dir, run, keep=False):
    """Run checks in a place; if it cannot be made, skip them."""
    try:
        place = Place(root, work_dir, keep)
    except CheckFailed as failure:
        report.skip(name, "; ".join([str(failure), *failure.details]))
        return
    with place:
        try:
            run(place)
        except Unreachable as reason:
            report.skip(f"{name}, the rest", str(reason))
        except CheckFailed as failure:
            report.fail(name, " | ".join([str(failure), *failure.details]))
