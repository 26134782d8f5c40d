# SPDX-License-Identifier: BSD-3-Clause
"""The commands of doc/user/storage.md, as they are written there: the blocks of a section, run by the shells of two containers."""

import os
import re
import shutil

from harness.process import LocalHost, Namespace
from harness.tools import UROCE_RUN
from nvme import SECONDS, find_program, lacks
from sides import StorageRunning

DOCUMENT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../doc/user/storage.md"))
PROGRAMS = os.path.dirname(UROCE_RUN)
IMAGE_BYTES = 4 << 20
POLLERS_PAGES = 60  # pollers, and the initiator's port
# The disks and images are in memory, and go with the shell. The huge pages are the machine's: they stay as they are.
SHELL = "mount -t tmpfs -o size=2g none /srv && mount -t tmpfs none /var/tmp && cd /srv && truncate -s {} my.img && set -x\n"
NOT_HERE = re.compile(r"^echo \d+ > /sys/kernel/mm/hugepages.*\n", re.M)


def text_of(title):
    """Return the text of a section."""
    with open(DOCUMENT, encoding="utf-8") as file:
        sections = re.split(r"^#+ (.*)\n", file.read(), flags=re.M)
    return sections[sections.index(title) + 1]


def blocks_of(title):
    """Return the blocks of commands (indented by four columns) of a section."""
    return [re.sub(r"^    ", "", block, flags=re.M) for block in re.findall(r"(?:^    .*\n)+", text_of(title), re.M)]


class DocumentTest:
    """All sections. The document's addresses are 10.0.0.1 and 10.0.0.2, both on an interface eth1."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._sides = None
        self._path = [PROGRAMS, os.path.join(PROGRAMS, "examples")]

    def run_all(self):
        self._check("document: tgt", [shutil.which("tgtd") or "tgt: tgtd", shutil.which("qemu-io") or "qemu-utils: qemu-io"],
                    self._tgt)
        self._check("document: fio", [shutil.which("fio") or "fio: fio"], self._fio)
        self._check("document: spdk", [], self._spdk, lacks(["nvmf_tgt", "spdk_nvme_identify", "bdevperf", "spdk_dd"]))
        self._check("document: spdk, a target that owns its NIC", [], self._embedded, lacks([], POLLERS_PAGES))

    def _check(self, name, programs, function, lack=None):
        if self._report.only and self._report.only not in name:
            return
        lack = lack or next((f"{each} is not installed" for each in programs if not each.startswith("/")), None)
        if lack:
            self._report.skip(name, lack)
        else:
            self._report.check(name, function)

    def _make_sides(self):
        if self._sides:
            return
        names = [Namespace("stdoc0"), Namespace("stdoc1")]
        names[0].run("ip", "link", "add", "eth1", "type", "veth", "peer", "name", "eth1", "netns", names[1].name)
        self._sides = []
        for number, namespace in enumerate(names):
            namespace.run("ip", "address", "add", f"10.0.0.{number + 1}/24", "dev", "eth1")
            namespace.run("ip", "link", "set", "eth1", "up")
            self._sides.append(namespace)

    def _start(self, running, side, name, script):
        """Start a shell in one of the containers. It has the document's names of programs."""
        self._make_sides()
        path = ":".join([*self._path, os.environ["PATH"]])
        host = LocalHost(f"document-{name}", self._work_dir, [*self._sides[side].prefix, "env", f"PATH={path}"], side)
        return running.add(host.start(["bash", "-euc", SHELL.format(IMAGE_BYTES) + NOT_HERE.sub("", script)]))

    def _tgt(self):
        target, *initiator = blocks_of("iSER: a disk from tgt")
        with StorageRunning() as running:
            server = self._start(running, 0, "tgtd", target + "echo served\nwait\n")
            running.wait_for_output(server, "\nserved\n")
            output = running.expect(self._start(running, 1, "initiator", "\n".join(initiator)), SECONDS, "the initiator")
            if "VIRTUAL-DISK" not in output or "iops average" not in output or "read 512/512 bytes" not in output:
                running.fail("the disk is not read")

    def _fio(self):
        server, client = blocks_of("fio")[0].replace("\\\n", "").splitlines()
        with StorageRunning() as running:
            serving = self._start(running, 0, "server", server + "\n")
            running.wait_for_output(serving, "waiting for connection")
            for what, process in (("client", self._start(running, 1, "client", client + "\n")), ("server", serving)):
                if "err= 0" not in running.expect(process, SECONDS, what):
                    running.fail(f"the {what} does not say that there was no error")

    def _spdk(self):
        blocks = blocks_of("NVMe over Fabrics: SPDK as it is")
        target_config, initiator_config = [block for block in blocks if block.startswith("{")]
        target, *initiator = [block for block in blocks if not block.startswith("{")]
        self._path += sorted({os.path.dirname(find_program(each)) for each in ("nvmf_tgt", "bdevperf")})
        with StorageRunning() as running:
            server = self._start(running, 0, "nvmf_tgt", f"cat >target.json <<'EOF'\n{target_config}EOF\n{target}")
            running.wait_for_output(server, "Listening on 10.0.0.1 port 4420", SECONDS)
            script = f"cat >initiator.json <<'EOF'\n{initiator_config}EOF\ncp my.img disk.img\n" + "\n".join(initiator)
            output = running.expect(self._start(running, 1, "spdk", script), SECONDS, "the initiator")
            if "UROCE0001" not in output or not re.search(r"^ *Total +: +[1-9]", output, re.M):
                running.fail("the disk is not read")

    def _embedded(self):
        target, initiator = blocks_of("SPDK embedded: a target that owns its NIC")[-2:]
        with StorageRunning() as running:
            server = self._start(running, 0, "pollers", target)
            running.wait_for_output(server, "serving")
            running.expect(self._start(running, 1, "rping", initiator), SECONDS, "the initiator")
