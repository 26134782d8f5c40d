# SPDX-License-Identifier: BSD-3-Clause
"""The units of systemd in a Debian that systemd has booted: a container of this test's own."""

import contextlib
import os
import re
import shlex
import subprocess

from examples import operator_page
from harness.process import Namespace, Process, wait_until
from harness.report import CheckFailed
from harness.tcx import may_attach
from booted_restart import TIMES, RestartedService

SECONDS = 120
# In a place's mount namespace; the process becomes process 1 of a new PID namespace.
BOOT = """mount -t tmpfs -o mode=755 tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec env -i container=uroce PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=console --show-status=0"""
NEW_NAMESPACES = "unshare --mount --propagation private --pid --mount-proc --cgroup --uts --fork --kill-child"
CONFIG = """[uroce]
[port uroce0]
port = local0
ip = 198.18.0.1/24
"""
# Its other end may come later; the kernel has an interface at once.
KERNEL_CONFIG = """[uroce]
[port uroce0]
port = net_memif0,role=server,socket=/run/uroce/wire.sock
kernel = shared
"""
TUN = "mkdir -p /dev/net; test -e /dev/net/tun || mknod -m 666 /dev/net/tun c 10 200"
# A service of the user's, which knows nothing of uroce, and does not run as root.
SERVICE = """[Service]
DynamicUser=yes
ExecStart=/usr/bin/ibv_rc_pingpong -c -d uroce0 -g 1
"""
DROP_IN = "install -D -m 644 /usr/share/uroce/systemd/on-uroce.conf /etc/systemd/system/pong.service.d/on-uroce.conf"
# What the kernel shows of a process that the unit restricts: none of the unit's three capabilities, as local0 needs none; no new
# ones, a filter of system calls.
DROP_INS = "/usr/share/uroce/systemd"
INSTANCES = ("one", "two")
RESTRICTED = {"CapEff": "0000000000000000", "CapBnd": "0000008000003000", "NoNewPrivs": "1", "Seccomp": "2"}


# A peer that sends to RoCE's port; and what is true after the commands of a section of doc/operator/uroced.md.
SEND = """import socket, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    sender.sendto(bytes(64), ("10.9.1.1", 4791))
    time.sleep(0.1)"""
AFTER = {
    "Start": "systemctl is-active uroced@eth1 uroced",
    "Watch": "until curl -s http://127.0.0.1:9471/metrics | grep uroce_device_info; do sleep 0.1; done",
    "Restart and upgrade": "uroced --version; uroce-run -- ibv_devinfo; uroce-run --socket /run/uroce/eth1.sock -- ibv_devinfo",
    "Capture": "test -s roce.pcapng",
    "Core": 'test "$(systemctl show -P LimitCORE uroced@eth1)" = infinity',
    "Remove": "! test -e /usr/bin/uroce-run; ! systemctl is-active uroced.socket",
}


def make_group():
    """Return a new control group in the machine's cgroup2, for process 1 of the container; None: there is no cgroup2."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line.split(" - ") for line in file]
    for mount, kind in mounts:
        if kind.split()[0] == "cgroup2":
            path = os.path.join(mount.split()[4], f"uroce-booted-{os.getpid()}")
            with contextlib.suppress(OSError):
                os.mkdir(path)
                return path
    return None


def remove_group(path):
    """Remove a control group without processes, and those below it."""
    for folder, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def children(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]
    return []


def find_process(pid, name):
    """Return the process of that name among `pid` and what it has started, or None."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        if file.read().strip() == name:
            return pid
    return next(filter(None, (find_process(child, name) for child in children(pid))), None)


class Machine:
    """What systemd has booted."""

    def __init__(self, pid):
        self.pid = pid
        self.prefix = ["nsenter", "--target", str(pid), "--mount", "--pid", "--ipc", "--uts", "--net", "--cgroup", "--root", "--wdns=/",
                       "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]

    def try_(self, script):
        """Run a script there; return its status and output."""
        done = subprocess.run([*self.prefix, "sh", "-ec", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS, check=False)
        return done.returncode, done.stdout

    def run(self, script):
        status, output = self.try_(script)
        if status:
            raise CheckFailed(f"exit {status}: {script}",
                              [*output.splitlines(), *self.try_("journalctl --no-pager -n 20")[1].splitlines()])
        return output

    def main_pid(self, unit):
        return self.run(f"systemctl show -p MainPID --value {unit}").strip()

    def write(self, path, text):
        with open(f"/proc/{self.pid}/root{path}", "w", encoding="ascii") as file:
            file.write(text)


class BootedTest:
    """Boots systemd in a place that has it, and uses the package's units as their documentation says."""

    def __init__(self, report, place, debs):
        self._report = report
        self._place = place
        self._debs = debs
        self._machine = None

    def run_all(self):
        group = make_group()
        if not group:
            self._report.skip("package: booted", "no control group can be made in a cgroup2")
            return
        self._place.install("systemd dbus ibverbs-utils perftest rdmacm-utils curl prometheus socat tcpdump")
        self._place.copy(self._debs.file("uroce"), "/tmp")
        self._place.install("/tmp/uroce_*.deb")
        argv = self._place.argv(f"exec {NEW_NAMESPACES} sh -ec {shlex.quote(BOOT)}")
        log_path = os.path.join(self._place.root, "..", "booted.log")
        with open(log_path, "wb") as log:
            holder = subprocess.Popen(["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh", *argv],
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            if self._report.require("package: systemd boots", self._boot, holder, log_path):
                self._check("the socket unit starts uroced by a connection", self._socket)
                self._check("the service is as restricted as its unit says", self._restricted)
                if may_attach():
                    self._check("the service of a kernel interface attaches an eBPF program", self._early_drop)
                else:
                    self._report.skip("package: booted: an eBPF program", "needs Linux 6.6, and root that may load eBPF programs")
                self._check("the service makes a kernel interface", self._kernel)
                self._check("a drop-in makes a service run on uroce", self._drop_in)
                self._check("instances with drop-ins have users of their own, and no network", self._own_users)
                self._check("a killed uroced starts again", self._restart)
                self._check("the socket's group is the administrator's choice", self._socket_group)
                self._check("stopped units leave no socket", self._stop)
                self._restarts()
                self._check("doc/operator/uroced.md: all commands", self._page)
        finally:
            if self._machine:
                os.kill(self._machine.pid, 9)
            holder.kill()
            holder.wait()
            wait_until(lambda: not self._in_group(group), SECONDS)
            remove_group(group)

    @staticmethod
    def _in_group(group):
        with open(os.path.join(group, "cgroup.events"), encoding="ascii") as file:
            return "populated 1" in file.read()

    def _check(self, name, function):
        self._report.check(f"package: booted: {name}", function)

    def _boot(self, holder, log_path):
        def is_up():
            systemd = find_process(holder.pid, "systemd")
            self._machine = Machine(systemd) if systemd else None
            return holder.poll() is not None or \
                self._machine and self._machine.try_("systemctl is-system-running")[1].strip() in ("running", "degraded")
        if not wait_until(is_up, SECONDS, 0.5) or holder.poll() is not None:
            with open(log_path, encoding="utf-8", errors="replace") as file:
                raise CheckFailed("it does not boot", file.read().splitlines()[-20:])
        self._machine.write("/etc/uroce/uroce.conf", CONFIG)


    def _state(self, unit):
        return self._machine.try_(f"systemctl is-active {unit}")[1].strip()

    def _socket(self):
        """An ordinary user attaches, and nobody has started the service."""
        self._machine.run("id someone || useradd --groups uroce someone; systemctl start uroced.socket")
        if self._state("uroced.service") != "inactive":
            raise CheckFailed("uroced runs before it is needed")
        output = self._machine.run("setpriv --reuid someone --regid someone --init-groups uroce-run -- ibv_devinfo")
        if "PORT_ACTIVE" not in output or self._state("uroced.service") != "active":
            raise CheckFailed("no device, or no service", output.splitlines())
        if self._machine.try_("setpriv --reuid nobody --regid nogroup --clear-groups uroce-run -- ibv_devinfo")[0] == 0:
            raise CheckFailed("a user who is not in the group attaches")

    def _early_drop(self):
        ip = ["nsenter", "--target", str(self._machine.pid), "--net", "ip"]
        try:
            for argv in (["link", "add", "early", "type", "veth", "peer", "name", "late"],
                         ["addr", "add", "10.9.8.1/24", "dev", "early"], ["link", "set", "early", "up"]):
                if subprocess.run([*ip, *argv], check=False).returncode:
                    raise CheckFailed(f"ip {' '.join(argv)} fails")
            self._machine.run("systemctl start uroced@early.service")
            pid = self._machine.main_pid("uroced@early.service")
            self._machine.run(f"grep -q 'link_type:.*tcx' /proc/{pid}/fdinfo/*")
        finally:
            self._machine.try_("systemctl stop uroced@early.service uroced@early.socket")
            subprocess.run([*ip, "link", "del", "early"], check=False)

    def _restricted(self):
        pid = self._machine.main_pid("uroced.service")
        status = dict(re.findall(r"^(\w+):\s+(\S+)", self._machine.run(f"cat /proc/{pid}/status"), re.M))
        found = {name: status.get(name) for name in RESTRICTED}
        user = self._machine.run("id -u uroce").strip()
        if found != RESTRICTED or status["Uid"] != user:
            raise CheckFailed("it has other rights", [f"{found}, user {status['Uid']}"])
        mount = re.search(r" / / (\S+) ", self._machine.run(f"cat /proc/{pid}/mountinfo")).group(1)
        if "ro" not in mount.split(","):
            raise CheckFailed(f"its root is mounted {mount}")
        self._machine.run(f"mknod /dev/other c 1 3; test -e /proc/{pid}/root/dev/null; ! test -e /proc/{pid}/root/dev/other")

    def _kernel(self):
        """It opens /dev/net/tun, the only device that its unit leaves it."""
        self._machine.write("/etc/uroce/uroce.conf", KERNEL_CONFIG)
        try:
            self._machine.run(f"{TUN}; systemctl stop uroced.socket uroced.service; systemctl start uroced.service")
            if subprocess.run(["nsenter", "--target", str(self._machine.pid), "--net", "ip", "link", "show", "shared"],
                              stdout=subprocess.DEVNULL, check=False).returncode:
                raise CheckFailed("there is no interface", self._machine.try_("systemctl status uroced.service")[1].splitlines())
        finally:
            self._machine.try_("systemctl stop uroced.service")
            self._machine.write("/etc/uroce/uroce.conf", CONFIG)
            self._machine.run("systemctl start uroced.socket uroced.service")

    def _drop_in(self):
        self._machine.write("/etc/systemd/system/pong.service", SERVICE)
        self._machine.run(f"{DROP_IN}; systemctl daemon-reload; systemctl start pong.service")
        client = "uroce-run -- ibv_rc_pingpong -c -d uroce0 -g 1 127.0.0.1"
        output = self._machine.run(f"until {client}; do sleep 0.5; systemctl is-active pong.service; done")
        if not wait_until(lambda: self._state("pong.service") != "active", SECONDS, 0.2):
            raise CheckFailed("the service does not end")
        said = self._machine.run("journalctl --no-pager -u pong.service -o cat; systemctl show -p Result pong.service")
        if "8192000 bytes in" not in said or "Result=success" not in said or "8192000 bytes in" not in output:
            raise CheckFailed("not both ends have all", [*output.splitlines(), *said.splitlines()])

    def _own_users(self):
        users = {self._machine.run("id -u uroce").strip()}
        try:
            for number, name in enumerate(INSTANCES):
                self._machine.write(f"/etc/default/uroced-{name}",
                                    f"UROCED_ARGS='--port local0 --ip 198.18.{20 + number}.1/24 --isolated=/run/uroce/{name}/isolated.sock'\n")
                self._machine.run(f"for name in own-user no-network; do install -D -m 644 {DROP_INS}/$name.conf "
                                  f"/etc/systemd/system/uroced@{name}.service.d/$name.conf; done")
            self._machine.run("systemctl daemon-reload")
            for name in INSTANCES:
                self._machine.run(f"systemctl start uroced@{name}.service")
                users.add(self._confined_user(name))
                attach = f"uroce-run --socket /run/uroce/{name}.sock -- ibv_devinfo; uroce-run --isolated=/run/uroce/{name}/isolated.sock -- ibv_devinfo"
                self._machine.run(f"{attach}; systemctl restart uroced@{name}.service; {attach}")
            if len(users) != 1 + len(INSTANCES):
                raise CheckFailed("some have the same user", sorted(users))
        finally:
            for name in INSTANCES:
                self._machine.try_(f"systemctl stop uroced@{name}.socket uroced@{name}.service; rm -r /etc/systemd/system/uroced@{name}.service.d")
            self._machine.run("systemctl daemon-reload")

    def _confined_user(self, instance):
        """Return the user of an instance that must have no capability, and no interface but lo."""
        pid = self._machine.main_pid(f"uroced@{instance}.service")
        status = dict(re.findall(r"^(\w+):\s+(\S+)", self._machine.run(f"cat /proc/{pid}/status"), re.M))
        interfaces = re.findall(r"^\s*(\S+):", self._machine.run(f"cat /proc/{pid}/net/dev"), re.M)
        if int(status["CapBnd"], 16) != 0 or interfaces != ["lo"]:
            raise CheckFailed("it has a network", [f"CapBnd {status['CapBnd']}", *interfaces])
        return status["Uid"]

    def _restart(self):
        before = self._machine.main_pid("uroced.service")
        self._machine.run(f"kill -9 {before}")
        if not wait_until(lambda: self._state("uroced.service") == "active" and self._machine.main_pid("uroced.service") not in (before, "0"), SECONDS, 0.5):
            raise CheckFailed("it does not come again", self._machine.try_("systemctl status uroced.service")[1].splitlines())
        self._machine.run("uroce-run -- ibv_devinfo")

    def _socket_group(self):
        """The group of the socket unit stays when the service starts. uroce is in it, so that a new version reaches the socket."""
        drop_in = "/etc/systemd/system/uroced.socket.d"
        self._machine.run(f"systemctl stop uroced.socket uroced.service; mkdir -p {drop_in}; usermod -aG users uroce; "
                  f"printf '[Socket]\\nSocketGroup=users\\n' >{drop_in}/group.conf; systemctl daemon-reload; "
                  "systemctl start uroced.socket; uroce-run -- ibv_devinfo")
        owner = self._machine.run("stat -c %U:%G:%a /run/uroce/uroced.sock").strip()
        if owner != "root:users:660":
            raise CheckFailed(f"the socket belongs to {owner}")

    def _page(self):
        """Run the commands in the order of the page. The package that it installs again is of a later version."""
        commands, files = operator_page()
        self._machine.run("dpkg --purge uroce")
        self._machine.write("/etc/prometheus/prometheus.yml", files["yaml"])
        self._machine.write("/etc/apt/apt.conf.d/99page", 'APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\n')
        self._place.copy(self._debs.file("uroce"), "/root")
        peer = Namespace("operator")
        enter = ["nsenter", "--target", str(self._machine.pid), "--net"]
        for number in (1, 2):
            for argv in (["link", "add", f"eth{number}", "type", "veth", "peer", "name", f"eth{number}", "netns", peer.name],
                         ["addr", "add", f"10.9.{number}.1/24", "dev", f"eth{number}"], ["link", "set", f"eth{number}", "up"]):
                subprocess.run([*enter, "ip", *argv], check=True)
            peer.run("ip", "link", "set", f"eth{number}", "up")
        peer.run("ip", "addr", "add", "10.9.1.2/24", "dev", "eth1")
        sender = Process([*peer.prefix, "python3", "-c", SEND], os.path.join(self._place.root, "..", "sender.log"))
        try:
            for section, script in commands.items():
                if section == "Restart and upgrade":
                    self._machine.run("rm /root/uroce_*.deb")
                    self._place.copy(self._debs.file("uroce", self._debs.later), "/root")
                self._machine.run(f"cd /root\n{script}\n{AFTER.get(section, '')}")
                if section == "Install":
                    self._machine.write("/etc/uroce/uroce.conf", files["ini"])
        finally:
            sender.kill()
            peer.remove()

    def _stop(self):
        self._machine.run("systemctl stop uroced.socket uroced.service")
        left = self._machine.run("find /run/uroce -type s").splitlines()
        if left or self._state("uroced.service") != "inactive":
            raise CheckFailed("sockets are left", left)

    def _restarts(self):
        service = RestartedService(self._machine, self._place, self._debs, os.path.dirname(self._place.root))
        try:
            if self._report.require("package: booted: programs begin", service.begin):
                self._check(f"programs run through {TIMES} restarts", service.restart)
                self._check("a reload reads the settings again", service.reload)
                self._check("programs run through an upgrade", service.upgrade)
                self._check("an uroced that cannot be replaced reads its settings again", service.refused)
                self._check("a package that may restart nothing says so", service.held_back)
                self._check("programs run through the end of the upgraded uroced", service.killed)
                self._check("a service that ends at once is not started for ever", service.loops)
        finally:
            service.close()
