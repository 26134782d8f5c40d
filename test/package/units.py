# SPDX-License-Identifier: BSD-3-Clause
"""The units of systemd: what systemd's own tools say of them, a socket that is passed to uroced, and uroced with the
rights that they leave it."""

import json
import os
import re
import shutil
import signal
import tempfile

from debs import tell
from harness.process import LocalHost, Namespace, Process, ask, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tcx import has_attached, may_attach
from harness.tools import UROCE_CTL, UROCE_RUN

UROCED = os.path.join(os.path.dirname(UROCE_RUN), "uroced")
UNITS = ("uroced.service", "uroced.socket", "uroced@.service", "uroced@.socket")
EXPOSURE = 20  # of 100, as systemd-analyze counts; up to 40 its word is "OK"
NO_NETWORK = 9  # the same, with the drop-in of that name
SECONDS = 60
# As the units run it: a user of its own with three capabilities.
RIGHTS = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs",
          "--inh-caps=-all,+net_raw,+net_admin,+bpf", "--ambient-caps=-all,+net_raw,+net_admin,+bpf",
          "--bounding-set=-all,+net_raw,+net_admin,+bpf"]


class UnitsTest:
    """All checks. They need no running systemd."""

    def __init__(self, report, debs):
        self._report = report
        self._debs = debs
        self._dir = tempfile.mkdtemp(prefix="uroce-units-")

    def run_all(self):
        try:
            os.chmod(self._dir, 0o755)
            if shutil.which("systemd-analyze"):
                self._report.check("package: systemd-analyze verify", self._verify)
                self._report.check("package: systemd-analyze security", self._security)
            else:
                self._report.skip("package: systemd-analyze", "systemd-analyze is missing")
            if shutil.which("systemd-socket-activate"):
                self._report.check("package: a passed socket", self._passed)
            else:
                self._report.skip("package: a passed socket", "systemd-socket-activate is missing")
            self._report.check("package: uroced with the rights of its unit", self._rights)
        finally:
            shutil.rmtree(self._dir)

    def _tree(self):
        """The package's files, and the units that ours refer to."""
        tree = os.path.join(self._dir, "tree")
        if not os.path.exists(tree):
            tell(["dpkg-deb", "--extract", self._debs.file("uroce"), tree])
        return tree

    def _verify(self):
        tree = self._tree()
        units = os.path.join(tree, "lib", "systemd", "system")
        os.makedirs(os.path.join(tree, "bin"), exist_ok=True)
        shutil.copy("/bin/sh", os.path.join(tree, "bin"))  # of another package; ExecReload= calls it
        # A unit with "@" is verified as one of its instances.
        for name in UNITS:
            if "@" in name:
                shutil.copy(os.path.join(units, name), os.path.join(units, name.replace("@", "@eth1")))
        # What a system has, and the package's files alone have not.
        for name in ("sysinit", "basic", "network", "sockets", "shutdown", "multi-user"):
            with open(os.path.join(units, f"{name}.target"), "w", encoding="ascii") as file:
                file.write(f"[Unit]\nDescription={name}\nDefaultDependencies=no\n")
        said = tell(["systemd-analyze", f"--root={tree}", "--man=no", "--recursive-errors=no", "verify",
                     *(os.path.join("/lib/systemd/system", name.replace("@", "@eth1")) for name in UNITS)])
        if said.strip():
            raise CheckFailed("it complains", said.splitlines())

    def _security(self):
        for name in UNITS:
            if name.endswith(".service"):
                path = os.path.join(self._tree(), "lib", "systemd", "system", name)
                self._expose(path, EXPOSURE)
                self._expose(self._with_drop_in(path, "own-user"), EXPOSURE)
                self._expose(self._with_drop_in(path, "no-network"), NO_NETWORK)

    @staticmethod
    def _expose(path, threshold):
        tell(["systemd-analyze", "security", "--offline=yes", "--no-pager", f"--threshold={threshold}", path])

    def _with_drop_in(self, path, drop_in):
        """A unit as it is with a drop-in."""
        merged = os.path.join(self._dir, drop_in, os.path.basename(path))
        os.makedirs(os.path.dirname(merged), exist_ok=True)
        with open(merged, "wb") as file:
            for part in (path, os.path.join(self._tree(), "usr", "share", "uroce", "systemd", f"{drop_in}.conf")):
                with open(part, "rb") as source:
                    file.write(source.read())
        return merged

    def _attached(self, path):
        """A program that waits for a peer."""
        return LocalHost("attached", self._dir, [UROCE_RUN, "--socket", path, "--"]).start(
            ["ibv_rc_pingpong", "-d", "uroce0", "-g", "1", "-p", "18700"])

    def _passed(self):
        """The first program starts uroced by its connection, and knows its owner; the socket outlives uroced."""
        path = os.path.join(self._dir, "passed.sock")
        manager = Process(["systemd-socket-activate", "--seqpacket", "-l", path, UROCED, "--port", "local0", "--ip",
                           "198.18.7.1/24", "--socket", path, "--file-prefix", f"passed-{os.getpid()}"],
                          os.path.join(self._dir, "passed.log"))
        program = None
        try:
            if not wait_until(lambda: os.path.exists(path), SECONDS):
                raise CheckFailed("no socket", manager.story("systemd-socket-activate"))
            with open(f"/proc/{manager.pid}/comm", encoding="ascii") as file:
                if "uroced" in file.read():
                    raise CheckFailed("uroced runs before it is needed")
            program = self._attached(path)
            if not wait_until(lambda: self._shows(program.pid, manager.pid), SECONDS):
                raise CheckFailed("uroce-ctl does not show the program as one of uroced's",
                                  [*program.story("program"), *manager.story("uroced"),
                                   *ask([UROCE_CTL, "-j", "dev"], SECONDS).stdout.splitlines()])
            program.kill()
            os.kill(manager.pid, signal.SIGTERM)
            if manager.wait(SECONDS) != 0:
                raise CheckFailed("uroced does not end well", manager.story("uroced"))
            if not os.path.exists(path):
                raise CheckFailed("uroced has removed the socket of the service manager")
        finally:
            if program:
                program.kill()
            manager.kill()
        self._refused(path)

    def _shows(self, program, owner):
        devices = json.loads(ask([UROCE_CTL, "-j", "dev"], SECONDS).stdout or "[]")
        queue_pairs = json.loads(ask([UROCE_CTL, "-j", "resource", "show", "qp"], SECONDS).stdout or "[]")
        return any(device.get("pid") == owner and device.get("processes") == 1 for device in devices) and \
            any(qp["pid"] == program for qp in queue_pairs)

    def _refused(self, path):
        """A socket that no setting names would make programs wait for ever."""
        os.unlink(path)
        wrong = Process(["systemd-socket-activate", "--seqpacket", "-l", path, UROCED, "--port", "local0", "--ip",
                         "198.18.7.1/24", "--socket", path + ".other", "--file-prefix", f"passed-{os.getpid()}"],
                        os.path.join(self._dir, "wrong.log"))
        try:
            if not wait_until(lambda: os.path.exists(path), SECONDS):
                raise CheckFailed("no socket", wrong.story("systemd-socket-activate"))
            ask([UROCE_RUN, "--socket", path, "--", "ibv_devinfo"], SECONDS)
            if wrong.wait(SECONDS) != 1 or "no setting has this path" not in wrong.output():
                raise CheckFailed("it does not refuse the socket", wrong.story("uroced"))
        finally:
            wrong.kill()

    def _rights(self):
        """Both ends of a veth; one uroced is an ordinary user with the capabilities of the unit."""
        here, there = Namespace("rights"), Namespace("beyond")
        veth_pair(here, there, ("10.9.7.1", "10.9.7.2"), mtu=1500)
        processes = []
        try:
            path = os.path.join(self._dir, "run", "rights.sock")
            os.mkdir(os.path.dirname(path))
            os.chown(os.path.dirname(path), 65534, 65534)
            uroced = Process([*here.prefix, *RIGHTS, "env", f"RUNTIME_DIRECTORY={os.path.dirname(path)}", UROCED, "--netdev", "veth0",
                              "--socket", path, "--socket-mode", "0666", "--isolated=" + path + "2", "--file-prefix", "rights"],
                             os.path.join(self._dir, "rights.log"))
            processes.append(uroced)
            if not wait_until(lambda: uroced.poll() is not None or os.path.exists(path + "2"), SECONDS) or \
                    uroced.poll() is not None:
                raise CheckFailed("uroced does not start", uroced.story("uroced"))
            # CAP_BPF goes when it is ready.
            if not wait_until(lambda: self._capabilities(uroced.pid) == ("0000000000003000", "0000008000003000"), SECONDS):
                raise CheckFailed("it has other capabilities", [str(self._capabilities(uroced.pid)), *uroced.story("uroced")])
            if "no system call is forbidden" in uroced.output():
                raise CheckFailed("it may make any system call", uroced.story("uroced"))
            if may_attach() and not has_attached(uroced.pid):
                raise CheckFailed("it attaches no eBPF program", uroced.story("uroced"))
            for number, options in enumerate((["--socket", path], ["--isolated=" + path + "2"])):
                self._pair(here, there, options, 18710 + number, processes)
        finally:
            for process in processes:
                process.kill()
            here.remove()
            there.remove()

    def _capabilities(self, pid):
        """The effective and the bounding set."""
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return tuple(re.findall(r"^Cap(?:Eff|Bnd):\s+(\S+)$", file.read(), re.M))

    def _pair(self, here, there, options, port, processes):
        argv = ["ibv_rc_pingpong", "-c", "-d", "uroce0", "-g", "1", "-p", str(port)]
        server = LocalHost(f"server-{port}", self._dir, [*here.prefix, UROCE_RUN, *options, "--"]).start(argv)
        processes.append(server)
        if not wait_until(lambda: server.poll() is not None or server.listens(port), SECONDS):
            raise CheckFailed("no server", server.story("server"))
        client = LocalHost(f"client-{port}", self._dir, [*there.prefix, UROCE_RUN, "--netdev", "veth1", "--"]).start(
            [*argv, "10.9.7.1"])
        processes.append(client)
        if client.wait(SECONDS) != 0 or server.wait(SECONDS) != 0:
            raise CheckFailed("no ping-pong", [*server.story("server"), *client.story("client")])
