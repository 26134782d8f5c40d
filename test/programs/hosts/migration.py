# SPDX-License-Identifier: BSD-3-Clause
"""QEMU's live migration over RDMA, of a guest whose memory checks itself while it counts (counting.S)."""

import json
import os
import shutil
import socket
import subprocess

from harness.process import LocalHost, Namespace, ask, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import UROCE_CTL, UROCE_RUN
from programs.share.share import Uroced

GUEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "counting.S")
QEMU = "qemu-system-x86_64"
FLOPPY_BYTES = 1474560
SECONDS = 90
FIRST_PORT = 30400
LINE = 9       # bytes of a count, with its newline
COUNTS = 20    # before the migration, and after it
MEMORY = 32 << 20  # bytes that the guest fills


class Machine:
    """A guest; it writes its counts to a file."""

    def __init__(self, host, folder, name, image, *options):
        self.counts_path = os.path.join(folder, f"{name}.counts")
        self._socket = os.path.join(folder, f"{name}.qmp")
        for path in (self.counts_path, self._socket):
            if os.path.exists(path):
                os.remove(path)
        self.process = host.start([
            QEMU, "-machine", "pc,accel=tcg", "-m", "64", "-nodefaults", "-display", "none", "-drive",
            f"if=floppy,format=raw,readonly=on,file={image}", "-serial", f"file:{self.counts_path}", "-qmp",
            f"unix:{self._socket},server=on,wait=off", *options])
        self._qmp = None

    def connect(self):
        """Connect to the monitor."""
        if not wait_until(lambda: os.path.exists(self._socket) or self.process.poll() is not None, SECONDS):
            raise CheckFailed("QEMU has no monitor", self.process.story(QEMU))
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(SECONDS)
        if not wait_until(lambda: connection.connect_ex(self._socket) == 0 or self.process.poll() is not None, SECONDS) \
                or self.process.poll() is not None:
            raise CheckFailed("QEMU does not start", self.process.story(QEMU))
        self._qmp = connection.makefile("rw", encoding="utf-8")
        self._qmp.readline()
        self.command("qmp_capabilities")

    def command(self, name, **arguments):
        """Return the answer to a command; events are skipped."""
        self._qmp.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self._qmp.flush()
        while True:
            line = self._qmp.readline()
            if not line:
                raise CheckFailed(f"QEMU ends at {name}", self.process.story(QEMU))
            answer = json.loads(line)
            if "error" in answer:
                raise CheckFailed(f"{name}: {answer['error']['desc']}", self.process.story(QEMU))
            if "return" in answer:
                return answer["return"]

    def counts(self):
        with open(self.counts_path, encoding="ascii") as file:
            return file.read()

    def has_counted(self, lines):
        """Return True if the guest has counted so far, and has ended otherwise."""
        return os.path.exists(self.counts_path) and len(self.counts()) >= lines * LINE

    def kill(self):
        if self._qmp:
            self._qmp.close()
        self.process.kill()


class MigrationTest:
    """Between two programs of one uroced, and between two hosts."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "migration")
        os.mkdir(self._work_dir)
        self._port = FIRST_PORT
        self._image = os.path.join(self._work_dir, "counting.img")

    def _missing(self):
        if shutil.which(QEMU) is None:
            return f"no {QEMU}; config/setup.sh interop"
        done = subprocess.run(["ldd", shutil.which(QEMU)], capture_output=True, text=True, check=False)
        if "librdmacm" not in done.stdout:
            return f"{QEMU} is built without RDMA"
        return None

    def run_all(self):
        if self._report.only and "migration" not in self._report.only:
            return
        missing = self._missing()
        if missing:
            self._report.skip("migration: a guest that counts", missing)
            return
        if not self._report.require("migration: the guest is built", self._build):
            return
        here, there = Namespace("migration0"), Namespace("migration1")
        veth_pair(here, there, ("10.9.33.1", "10.9.33.2"))
        self._hosts_apart(here, there)
        self._hosts_together(here)

    def _hosts_apart(self, here, there):
        hosts = [LocalHost(f"migration-apart-{number}", self._work_dir,
                           [*namespace.prefix, UROCE_RUN, "--netdev", f"veth{number}", "--"])
                 for number, namespace in enumerate((here, there))]
        for pin in (False, True):
            self._report.check(f"migration: between two hosts{', all memory registered' if pin else ''}", self._migrate,
                               hosts, "10.9.33.2", pin)

    def _hosts_together(self, here):
        owner = Uroced(here, self._work_dir, "veth0", "--file-prefix", f"uroce-migration-{os.getpid()}")
        if not self._report.require("migration: uroced starts", owner.run):
            return
        hosts = [LocalHost(f"migration-attached-{number}", self._work_dir,
                           [*here.prefix, UROCE_RUN, "--socket", owner.socket, "--"]) for number in range(2)]
        self._report.check("migration: between two programs of one uroced", self._migrate, hosts, "10.9.33.1", False)
        owner.process.kill()

    def _build(self):
        done = subprocess.run(["cc", "-m32", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none",
                               "-Wl,-Ttext=0x7c00", "-Wl,--oformat=binary", "-o", self._image, GUEST],
                              capture_output=True, text=True, check=False)
        if done.returncode or os.path.getsize(self._image) != 512:
            raise CheckFailed("not a boot sector", done.stderr.splitlines())
        os.truncate(self._image, FLOPPY_BYTES)

    def _migrate(self, hosts, address, pin):
        self._port += 1
        uri = f"rdma:{address}:{self._port}"
        machines = []
        try:
            target = Machine(hosts[1], self._work_dir, "target", self._image, "-incoming", "defer")
            machines.append(target)
            source = Machine(hosts[0], self._work_dir, "source", self._image)
            machines.append(source)
            for machine in machines:
                machine.connect()
                machine.command("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": pin}])
            target.command("migrate-incoming", uri=uri)
            if not wait_until(lambda: source.has_counted(COUNTS), SECONDS):
                raise CheckFailed("the guest does not count", [source.counts(), *source.process.story(QEMU)])
            source.command("migrate-set-parameters", **{"downtime-limit": 3000, "max-bandwidth": 1 << 34})
            source.command("migrate", uri=uri)
            self._follow(source, target)
            self._judge(source, target)
        finally:
            for machine in machines:
                machine.kill()

    def _follow(self, source, target):
        """Wait until the migration is complete; some of its bytes must have gone by the device."""
        state = {}

        def ended():
            state.update(source.command("query-migrate"))
            return state.get("status") in ("completed", "failed", "cancelled")
        if not wait_until(ended, SECONDS, 0.2) or state["status"] != "completed":
            raise CheckFailed("the migration does not complete", [json.dumps(state), *source.process.story("source"),
                                                                  *target.process.story("target")])
        shown = json.loads(ask([UROCE_CTL, "-j", "statistic", "show", "pid", str(source.process.pid)], SECONDS).stdout)
        if not shown or shown[0]["tx_payload_bytes_read"] < MEMORY:
            raise CheckFailed("the guest's memory did not go by the device", [json.dumps(shown), json.dumps(state)])

    @staticmethod
    def _judge(source, target):
        """Both files together are one list of counts, to which the target goes on adding."""
        moved = len(source.counts())
        if not wait_until(lambda: target.has_counted(COUNTS), SECONDS):
            raise CheckFailed("the guest does not go on", [target.counts(), *target.process.story(QEMU)])
        if len(source.counts()) != moved:
            raise CheckFailed("the source goes on, too")
        text = source.counts() + target.counts()
        lines = text.split("\n")[:-1]
        wrong = [line for number, line in enumerate(lines, 1) if line != f"{number:08x}"]
        if wrong:
            raise CheckFailed("the guest lost or changed memory", [str(wrong[:5]), source.counts()[-50:],
                                                                  target.counts()[:50]])
