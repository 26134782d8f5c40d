# SPDX-License-Identifier: BSD-3-Clause
"""The files of a device in /sys/class/infiniband and /dev/infiniband: in each way, and as verbs tell the same."""

import json
import os
import re
import subprocess
import tempfile

from harness.process import NOBODY, LocalHost, Namespace, ask, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_CTL, UROCE_RUN, UROCE_RUN_FILE, PerfTest, Side, run_pair

SECONDS = 60
FIRST_PORT = 30100
# Debian's own, which has pyverbs; without the directory of this test, where another pyverbs.py is.
PYTHON = ["/usr/bin/python3", "-P"]
LOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "view_look.py")
UNPRIVILEGED = [*NOBODY, "--inh-caps=-all", "--bounding-set=-all"]
NO_MOUNT = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all"]
SHOWN = ("/sys/class/infiniband", "/sys/class/infiniband_verbs", "/dev/infiniband")
NULL_PORT = ["--port", "net_null0", "--ip", "10.9.14.1/24"]

RPING = """rping -s -a 198.18.0.1 -C 10 -v & server=$!
until rping -c -a 198.18.0.1 -C 10 -v; do sleep 0.2; kill -0 $server || exit 9; done
wait $server"""

# A host with a device of another provider, as far as its list of devices goes. Write what programs outside of a view see:
# before, while and after one has a device of ours.
OTHER_HOST = """set -e
mkdir old
mount --rbind /dev old
mount -t tmpfs -o mode=755 tmpfs /dev
for node in null zero full random urandom; do : >/dev/$node; mount --bind old/$node /dev/$node; done
mkdir -m 1777 /dev/shm
[ ! -d old/hugepages ] || {{ mkdir /dev/hugepages; mount --bind old/hugepages /dev/hugepages; }}
mkdir /dev/infiniband
: >/dev/infiniband/uverbs0
mount -t tmpfs -o mode=755 tmpfs /sys/class
mkdir -p /sys/class/infiniband_verbs/uverbs0 /sys/class/infiniband/rxe_other/device
cd /sys/class/infiniband_verbs
echo 6 >abi_version
echo rxe_other >uverbs0/ibdev
echo 231:192 >uverbs0/dev
echo 1 >uverbs0/abi_version
cd /sys/class/infiniband/rxe_other
echo "1: CA" >node_type
echo 0200:00ff:fe00:0001 >node_guid
cd {work}
look() {{ ibv_devices; find /sys/class /dev/infiniband -type f -exec head {{}} +; find /sys/class /dev/infiniband | sort; }}
look >before
{run} {way} {options} -- sh -c 'ibv_devices >inside; ls /sys/class/infiniband /dev/infiniband >>inside; : >ready
until [ -e seen ]; do sleep 0.1; done' &
until [ -e ready ]; do kill -0 $!; sleep 0.1; done
look >meanwhile
: >seen
wait $!
look >after
"""


# Ask rdma(8) as the tests of newest rdma-core do, in a process that has a device, and for all that it can show.
ASK_RDMA = """import json, os, subprocess
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr
import pyverbs.enums as e
def rdma(*words): return subprocess.run(['rdma', *words], capture_output=True, text=True)
def ask(*words): return json.loads(subprocess.check_output(['rdma', *words]).decode())
before = rdma('resource', 'show')
with Context(name='{device}') as context, PD(context) as pd, CQ(context, 10) as cq, \\
        QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap())) as qp:
    guid = open('/sys/class/infiniband/{device}/node_guid').read().strip()
    said = {{'before': before.stdout, 'pid': os.getpid(), 'qpn': qp.qp_num, 'guid': guid,
             'index': int(open('/sys/class/net/veth0/ifindex').read()),
             'json': {{words: ask(*words.split()) for words in {json}}},
             'text': {{words: rdma(*words.split()).stdout for words in {text}}},
             'wrong': {{words: [rdma(*words.split()).returncode, rdma(*words.split()).stderr] for words in {wrong}}}}}
print(json.dumps(said))
"""
RDMA_JSON = ("link show -j", "dev show -jp", "resource show -j", "resource show qp -j", "res -j show qp link uroce0/1",
             "res -j show qp link uroce0/-", "res -j show cq dev uroce0 pid 1", "statistic show -j")
RDMA_TEXT = ("link show uroce0/1", "link -d", "dev", "resource show uroce0", "resource show qp", "statistic show link uroce0/1")
RDMA_WRONG = {"link show nope/1": "Wrong device name", "link show uroce0/2": "Wrong device name",
              "dev show nope": "Wrong device name - nope", "resource show nope": "Unknown parameter 'nope'.",
              "res show cq dev nope": "Wrong device name - nope", "statistic show link nope/1": "Wrong device name",
              "dev set uroce0 name other": "rdma: dev set: not for the devices of uroce; see 'rdma help'"}


def lines_value(text, name):
    """Return what follows a name."""
    words = text.split()
    return words[words.index(name) + 1]


class ViewsTest:
    """A veth pair with an address at each end; nothing but the programs' own view shows a device."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._namespaces = [Namespace(f"views{number}") for number in range(2)]
        veth_pair(*self._namespaces, ("10.9.13.1", "10.9.13.2"))

    def _check(self, name, function, *args):
        self._report.check(f"views: {name}", function, *args)

    def run_all(self):
        netdev = ["--netdev", "veth0"]
        self._check("mounted: files and verbs agree", self._agree, netdev, "mount", [])
        self._check("preloaded: files and verbs agree", self._agree, netdev, "preload", [])
        self._check("an ordinary user: files and verbs agree", self._agree, NULL_PORT, "mount", UNPRIVILEGED)
        self._check("an ordinary user, preloaded", self._agree, NULL_PORT, "preload", UNPRIVILEGED)
        self._check("an ordinary user stays itself", self._same_user)
        self._check("without the right to mount it is preloaded", self._falls_back)
        self._check("--view mount without that right: one line", self._refuses)
        self._check("--view no shows nothing", self._none)
        for way in ("mount", "preload"):
            self._check(f"{way}: counters move, for other processes too", self._counters, way)
            self._check(f"{way}: counters move in files that stay open (perftest -W)", self._open_counters, way)
            self._check(f"{way}: rdma(8) shows the device", self._rdma, way)
            self._check(f"{way}: rdma(8) shows nothing of another program", self._rdma_of_another, way)
            self._check(f"{way}: a GID that comes later is there", self._later_gid, way)
            self._check(f"{way}: nothing is left behind, also after a kill", self._leaves_nothing, way)
            self._check(f"{way}: a device of another provider is not disturbed", self._undisturbed, f"--view {way}", [DEVICE],
                        [DEVICE])
        self._check("mounted: the rest of /sys/class and /dev is there", self._rest)

    def _run(self, options, way, before, *program, env=None):
        view = ["--view", way] if way else []
        argv = [*self._namespaces[0].prefix, *before, UROCE_RUN, *view, *options, "--", *program]
        return ask(argv, SECONDS, env={**os.environ, **(env or {})})

    def _output(self, *args, **named):
        done = self._run(*args, **named)
        if done.returncode:
            raise CheckFailed(f"exit {done.returncode}", [*done.stdout.splitlines(), *done.stderr.splitlines()])
        return done.stdout

    def _agree(self, options, way, before):
        """view_look.py compares every file that verbs have an answer for."""
        self._output(options, way, before, *PYTHON, LOOK, DEVICE)
        here = [path for path in SHOWN if os.path.exists(path)]
        if here:
            raise CheckFailed("the host has files of a device", here)

    def _same_user(self):
        lines = self._output(NULL_PORT, "mount", UNPRIVILEGED, "sh", "-c", "id -u; id -g; echo $PPID; cat /proc/self/status") \
            .splitlines()
        status = dict(line.split(":\t", 1) for line in lines[3:] if ":\t" in line)
        nobody = subprocess.run(["id", "-u", "nobody"], capture_output=True, text=True, check=True).stdout.strip()
        if lines[0] != nobody or int(status["CapEff"], 16) or int(status["CapPrm"], 16):
            raise CheckFailed("it is another user, or has capabilities", lines)

    def _falls_back(self):
        output = self._output(NULL_PORT, "yes", NO_MOUNT, "sh", "-c", f"echo $LD_PRELOAD; ls /sys/class/infiniband/{DEVICE}")
        if "liburoce-view.so" not in output or "node_guid" not in output:
            raise CheckFailed("no files, or not preloaded", output.splitlines())

    def _refuses(self):
        done = self._run(NULL_PORT, "mount", NO_MOUNT, "true")
        if done.returncode != 1 or len(done.stderr.splitlines()) != 1 or "mount namespace" not in done.stderr:
            raise CheckFailed(f"exit {done.returncode}", done.stderr.splitlines())

    def _none(self):
        # A name that cannot be a kernel device's, and no file.
        program = f"import os,sys; sys.exit(any(map(os.path.exists, {SHOWN!r})) or 'UROCE_VIEW' in os.environ)"
        self._output(NULL_PORT, "no", [], *PYTHON, "-c", program)

    def _sides(self, way):
        hosts = [LocalHost(f"views-{number}", self._work_dir,
                           [*namespace.prefix, UROCE_RUN, "--view", way, "--netdev", f"veth{number}", "--"], number % os.cpu_count())
                 for number, namespace in enumerate(self._namespaces)]
        return [Side(host, DEVICE, "10.9.13.1") for host in hosts]

    def _counters(self, way):
        """One process sends, and a later one in the same view reads the sum."""
        class Counted(PerfTest):
            """Each side prints its packets afterwards."""

            def argv(self, side, port, peer=None):
                read = f"/sys/class/infiniband/{DEVICE}/ports/1"
                return ["sh", "-c", '"$@" && sleep 0.5 && ' +
                        f"grep . {read}/counters/port_*_packets {read}/hw_counters/tx_packets", "sh",
                        *super().argv(side, port, peer)]

            def judge(self, server, client):
                for output in (server, client):
                    counts = [int(line.rsplit(":", 1)[1]) for line in output.splitlines() if "packets:" in line]
                    if len(counts) != 3 or min(counts) < 100:
                        raise CheckFailed(f"counters are {counts}")
                super().judge(server, client)
        run_pair(Counted("ib_send_bw", [], 1000), *self._sides(way), FIRST_PORT + len(way))

    def _open_counters(self, way):
        """perftest opens the files before the test, and reads them before and after it."""
        names = ("counters/port_xmit_packets", "hw_counters/tx_packets")

        class Counting(PerfTest):
            """The client has sent at least a packet for each message."""

            def judge(self, server, client):
                counts = [int(count) for name in names for count in re.findall(rf"^\s*{name}=(\d+)$", client, re.M)]
                if len(counts) != len(names) or min(counts) < 100:
                    raise CheckFailed(f"counters are {counts}", client.splitlines())
                super().judge(server, client)
        run_pair(Counting("ib_write_bw", ["-D", "2", "-W", ",".join(names)]), *self._sides(way), FIRST_PORT + 100 + len(way))

    def _later_gid(self, way):
        address = "10.9.14.7"
        program = ["import sys, time", "import pyverbs.device as d",
                   f"context = d.Context(name='{DEVICE}')", "print('open', flush=True)",
                   f"path = '/sys/class/infiniband/{DEVICE}/ports/1/gids/%d'",
                   "end = time.monotonic() + 20",
                   "while not any('ffff:0a09:0e07' in open(path % i).read() for i in range(8)):",
                   "    time.sleep(0.05)", "    assert time.monotonic() < end"]
        host = LocalHost(f"views-gid-{way}", self._work_dir,
                         [*self._namespaces[0].prefix, UROCE_RUN, "--view", way, "--netdev", "veth0", "--"])
        process = host.start([*PYTHON, "-c", "\n".join(program)])
        try:
            wait_until(lambda: "open" in process.output() or process.poll() is not None, SECONDS)
            self._namespaces[0].run("ip", "addr", "add", f"{address}/24", "dev", "veth0")
            if process.wait(SECONDS) != 0:
                raise CheckFailed("it does not come", process.story("program"))
        finally:
            process.kill()
            self._namespaces[0].run("ip", "addr", "flush", "to", address, "dev", "veth0")

    def _rdma(self, way):
        program = ASK_RDMA.format(device=DEVICE, json=RDMA_JSON, text=RDMA_TEXT, wrong=list(RDMA_WRONG))
        said = json.loads(self._output(["--netdev", "veth0"], way, [], *PYTHON, "-c", program))
        link = {"ifindex": 0, "ifname": DEVICE, "port": 1, "state": "ACTIVE", "physical_state": "LINK_UP", "netdev": "veth0",
                "netdev_index": said["index"]}
        device = {"ifindex": 0, "ifname": DEVICE, "node_type": "ca", "protocol": "roce", "node_guid": said["guid"],
                  "sys_image_guid": said["guid"]}
        counts = {"pd": 1, "cq": 1, "qp": 1, "cm_id": 0, "mr": 0, "ctx": 1, "srq": 0}
        qp = {"ifindex": 0, "ifname": DEVICE, "lqpn": said["qpn"], "type": "RC", "state": "RESET", "rq-psn": 0, "sq-psn": 0,
              "path-mig-state": "MIGRATED", "pdn": 1, "pid": said["pid"], "comm": "python3"}
        answers, lines = said["json"], said["text"]
        version = answers["dev show -jp"][0].pop("fw")
        statistic = answers.pop("statistic show -j")[0]
        summary = " ".join(f"{name} {count}" for name, count in counts.items())
        guids = f"node_guid {said['guid']} sys_image_guid {said['guid']}"
        head = f"link {DEVICE}/1 state ACTIVE physical_state LINK_UP netdev veth0 "
        counters = "".join(f"\n    {name} {lines_value(lines['statistic show link uroce0/1'], name)} " for name in statistic
                           if name not in ("ifname", "port"))
        for what, found, wanted in (
                ("before it opens the device", said["before"], f"0: {DEVICE}: pd 0 cq 0 qp 0 cm_id 0 mr 0 ctx 0 srq 0 \n"),
                ("JSON", answers, dict(zip(RDMA_JSON, ([link], [device], [{"ifindex": 0, "ifname": DEVICE, **counts}], [qp], [],
                                                       [qp], [])))),
                ("what is wrong", said["wrong"], {words: [1, f"{error}\n"] for words, error in RDMA_WRONG.items()}),
                ("lines", lines, dict(zip(RDMA_TEXT, (
                    f"{head}\n", f"{head}netdev_index {said['index']} \n",
                    f"0: {DEVICE}: node_type ca protocol roce fw {version} {guids} \n", f"0: {DEVICE}: {summary} \n",
                    f"link {DEVICE}/- lqpn {said['qpn']} type RC state RESET rq-psn 0 sq-psn 0 path-mig-state MIGRATED "
                    f"pdn 1 pid {said['pid']} comm python3 \n", f"link {DEVICE}/1 {counters}\n"))))):
            if found != wanted:
                raise CheckFailed(what, [f"found  {found}", f"wanted {wanted}"])
        if "tx_packets" not in statistic or statistic["port"] != 1:
            raise CheckFailed("no counters", [str(statistic)])

    def _rdma_of_another(self, way):
        """Another program has a device of the same name; uroce-ctl shows both."""
        host = LocalHost(f"views-other-{way}", self._work_dir, [UROCE_RUN, "--view", way, *NULL_PORT, "--"])
        port = FIRST_PORT + 200 + len(way)
        other = host.start(["ibv_rc_pingpong", "-g", "1", "-p", str(port)])
        try:
            if not wait_until(lambda: other.listens(port), SECONDS):
                raise CheckFailed("it does not start", other.story("the other"))
            shown = self._output(NULL_PORT, way, [], "sh", "-c", f"rdma -j resource show qp; {UROCE_CTL} resource show qp")
        finally:
            other.kill()
        mine, every = shown.split("\n", 1)
        if mine != "[]" or f"pid {other.pid} " not in every:
            raise CheckFailed("other objects", shown.splitlines())

    @staticmethod
    def _remains(pid):
        """Directories of views, and processes of this uroce-run that serve one and began after `pid`."""
        dirs = [os.path.join(parent, name) for parent in ("/dev/shm", "/tmp") for name in os.listdir(parent)
                if name.startswith("uroce-view-")]
        servers = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/stat", encoding="ascii") as file:
                    name, rest = file.read().rsplit(")", 1)
                if name.endswith("(uroce-view") and rest.split()[0] != "Z" and int(process) > pid and \
                        os.path.samefile(f"/proc/{process}/exe", UROCE_RUN_FILE):
                    servers.append(process)
            except OSError:
                continue
        return dirs, servers

    def _leaves_nothing(self, way):
        before, _ = self._remains(0)
        host = LocalHost(f"views-left-{way}", self._work_dir,
                         [*self._namespaces[0].prefix, UROCE_RUN, "--view", way, *NULL_PORT, "--"])
        process = host.start(["sh", "-c", f"ibv_devices; cat /sys/class/infiniband/{DEVICE}/ports/1/state; echo ready; sleep 60"])
        wait_until(lambda: "ready" in process.output() or process.poll() is not None, SECONDS)
        if "ready" not in process.output() or not self._remains(process.pid)[1]:
            story = process.story("program")
            process.kill()
            raise CheckFailed("it does not run", story)
        pid = process.pid
        process.kill()

        def is_clean():
            dirs, servers = self._remains(pid)
            return not set(dirs) - set(before) and not servers
        if not wait_until(is_clean, SECONDS):
            raise CheckFailed("left behind", [str(self._remains(pid))])

    def _undisturbed(self, way, names_listed, names_shown):
        """The program sees these devices; the system's own library sees what it saw before."""
        work = tempfile.mkdtemp(dir=self._work_dir)
        script = OTHER_HOST.format(work=work, run=os.path.abspath(UROCE_RUN), way=way, options=" ".join(NULL_PORT))
        done = ask(["unshare", "--mount", "--propagation", "private", "sh", "-c", f"cd {work} && {script}"], SECONDS)
        if done.returncode:
            raise CheckFailed(f"exit {done.returncode}", [*done.stdout.splitlines(), *done.stderr.splitlines()])
        seen = {}
        for name in ("inside", "before", "meanwhile", "after"):
            with open(os.path.join(work, name), encoding="utf-8") as file:
                seen[name] = file.read()
        # In the list of ibv_devices, and in that of the files.
        listed, shown = seen["inside"].split("/dev/infiniband:", 1)
        for what, text, names in (("its library", listed, names_listed), ("its files", shown, names_shown)):
            found = [name for name in (DEVICE, "rxe_other") if name in text]
            if found != names:
                raise CheckFailed(f"by {what} the program sees {found}, not {names}", seen["inside"].splitlines())
        if DEVICE in listed and "rxe_other" in listed and listed.index(DEVICE) > listed.index("rxe_other"):
            raise CheckFailed("uroce's device is not the first", listed.splitlines())
        if not re.search(r"rxe_other\s+020000fffe000001", seen["before"]):
            raise CheckFailed("the host has no device", seen["before"].splitlines())
        for name in ("meanwhile", "after"):
            if seen[name] != seen["before"]:
                raise CheckFailed(f"the host sees something else {name}", seen[name].splitlines())

    def _rest(self):
        """Only the view's entries are new, and device nodes work."""
        program = "import json,os; print(json.dumps([sorted(os.listdir(p)) for p in ('/sys/class', '/sys/class/misc', '/dev')]))"
        plain = [*PYTHON, "-c", program]
        before = json.loads(subprocess.run([*self._namespaces[0].prefix, *plain], capture_output=True, text=True, check=True).stdout)
        after = json.loads(self._output(NULL_PORT, "mount", [], *plain))
        new = [sorted(set(now) - set(then)) for then, now in zip(before, after)]
        lost = [sorted(set(then) - set(now)) for then, now in zip(before, after)]
        if any(lost) or new != [["infiniband", "infiniband_mad", "infiniband_verbs"], ["rdma_cm"], ["infiniband"]]:
            raise CheckFailed("other entries", [f"new {new}", f"lost {lost}"])
        self._output(NULL_PORT, "mount", [], "sh", "-c",
                     "head -c 8 /dev/zero >/dev/shm/uroce-view-test.$$ && rm /dev/shm/uroce-view-test.$$ && "
                     "test -d /sys/class/net/veth0/queues && test -c /dev/null && ls /dev/hugepages >/dev/null")
