# SPDX-License-Identifier: BSD-3-Clause
"""Operation of uroced: the output of uroce-ctl and telemetry, the permissions to attach, and hostile clients."""

import grp
import json
import os
import pwd
import re
import shutil
import signal
import socket
import sys

from harness.process import LocalHost, Namespace, Process, ask, need_users, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN
from programs.share.share import SECONDS, UROCED, Uroced

FORK = os.path.join(os.path.dirname(UROCE_RUN), "examples", "fork")
TELEMETRY = "dpdk-telemetry.py"
UROCE_CTL = os.path.join(os.path.dirname(UROCE_RUN), "uroce-ctl")
HOSTILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "isolated", "hostile.py")
FIRST_PORT = 25000
STARTS_AT_ONCE = 8
HUGE_PAGES = 64  # for an uroced and the capturing programs
CAPTURED = 30  # messages: they and their answers, 1,200 packets, have room in the 2,048 of the tool's ring
WAITING = 6  # programs that wait for a peer; 8 with the pair that sends


def expect(condition, reason, *details):
    """Check a condition; a failure shows the observed value."""
    if not condition:
        raise CheckFailed(reason, [str(detail) for detail in details])


def ctl(*argv):
    """Return the JSON output of uroce-ctl."""
    done = ask([UROCE_CTL, "-j", *argv], SECONDS)
    expect(done.returncode == 0, "uroce-ctl fails", argv, done.stderr)
    return json.loads(done.stdout)


class OperateTest:
    """All checks, with one uroced on a veth whose other end no program uses."""

    def __init__(self, report, work_dir, rng, starts):
        self._report = report
        self._rng = rng
        self._starts = starts
        self._work_dir = os.path.join(work_dir, "operate")
        os.mkdir(self._work_dir)
        self._here = Namespace("operate")
        self._here.run("ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1")
        for number in range(2):
            self._here.run("ip", "link", "set", f"veth{number}", "up")
        self._here.run("ip", "addr", "add", "10.9.8.1/24", "dev", "veth0")
        self._prefix = f"uroce-test-{os.getpid()}"
        self._owner = Uroced(self._here, self._work_dir, "veth0", "--file-prefix", self._prefix,
                             "--max-qp", "4", "--max-memory", "1M", "--max-buffers", "768")
        self._names = 0

    def run_all(self):
        if not self._report.require("operate: uroced starts", self._owner.run):
            return
        self._check("8 programs are shown", self._shown)
        self._check("telemetry", self._telemetry)
        self._check("a program with a port of its own is shown", self._shown_alone)
        self._check("limits", self._limits)
        self._check("fork and exec", self._forked)
        self._check("a hostile client", self._hostile)
        self._check("socket, rights and readiness", self._rights)
        self._check("several ports", self._ports)
        self._check("a memif wire", self._memif)
        self._check("without DPDK", self._without_dpdk)
        self._check("SIGHUP and uroce-ctl log", self._read_again)
        self._check("SIGHUP without a file", self._hung_up)
        self._check("what the log says", self._told)
        self._check("a core has no packets", self._dumps_no_packets)
        self._capture_if_possible()
        self._check(f"{self._starts} starts", self._many_starts)
        self._check("killed, and started again", self._again)
        self._check("SIGTERM leaves nothing", self._terminated)

    def _check(self, name, function, *args):
        self._report.check(f"operate: {name}", function, *args)

    def _host(self, *options):
        self._names += 1
        options = options or ("--socket", self._owner.socket)
        return LocalHost(f"operate-{self._names}", self._work_dir,
                         [*self._here.prefix, UROCE_RUN, *options, "--"])

    def _shown(self):
        programs = {}
        try:
            for number in range(WAITING):
                process = self._host().start(["ibv_rc_pingpong", "-d", DEVICE, "-g", "1", "-p",
                                              str(FIRST_PORT + number)])
                programs[process.pid] = process
            argv = ["ib_send_bw", "-F", "-d", DEVICE, "-x", "1", "-D", "60", "-p", str(FIRST_PORT + WAITING)]
            server = self._host().start(argv)
            programs[server.pid] = server
            expect(wait_until(lambda: server.listens(FIRST_PORT + WAITING), SECONDS), "no server",
                   *server.story("server"))
            client = self._host().start([*argv, "10.9.8.1"])
            programs[client.pid] = client
            expect(wait_until(lambda: self._is_shown(programs, server, client), SECONDS),
                   "uroce-ctl does not show what runs", *ctl("resource", "show", "qp"),
                   *client.story("client"))
            self._other_objects(programs, client)
        finally:
            for process in programs.values():
                process.kill()
        expect(wait_until(self._owner.is_clean, SECONDS), "something does not come back")
        expect(not ctl("resource", "show", "qp"), "queue pairs of programs that have ended are shown")

    def _ours(self, items, programs):
        """Select the devices of this test by pid: other tests may run on this machine."""
        return {item["pid"]: item for item in items if item["pid"] in programs}

    def _is_shown(self, programs, server, client):
        qps = self._ours(ctl("resource", "show", "qp"), programs)
        if len(qps) != len(programs):
            return False
        states = {pid: (qp["comm"], qp["type"], qp["state"]) for pid, qp in qps.items()}
        waiting = [states.pop(pid) for pid in programs if pid not in (server.pid, client.pid)]
        return set(waiting) == {("ibv_rc_pingpong", "RC", "INIT")} and \
            states[client.pid] == ("ib_send_bw", "RC", "RTS") and \
            qps[client.pid]["rqpn"] == qps[server.pid]["lqpn"] and qps[client.pid]["sq-psn"] > 0

    def _other_objects(self, programs, client):
        pid = str(client.pid)
        for kind in ("cq", "mr", "pd"):
            shown = self._ours(ctl("resource", "show", kind), programs)
            expect(len(shown) == len(programs), f"{len(shown)} programs have a {kind}", shown)
        mine = ctl("resource", "show", "mr", "pid", pid)
        expect(len(mine) == 1 and mine[0]["mrlen"] >= 65536, "not the client's region", *mine)
        counters = ctl("statistic", "show", "pid", pid)[0]
        expect(counters["tx_packets"] > 0 and counters["out_of_sequence"] == 0, "counters", counters)
        owner = [dev for dev in ctl("dev") if dev.get("pid") == self._owner.process.pid]
        expect(len(owner) == 1 and owner[0]["processes"] == len(programs), "the device", *ctl("dev"))
        link = [link for link in ctl("link") if link["ifindex"] == owner[0]["ifindex"]]
        expect(link[0]["state"] == "ACTIVE" and link[0]["netdev"] == "veth0", "the link", *link)
        total = [item for item in ctl("resource") if item["ifindex"] == owner[0]["ifindex"]]
        expect(total[0]["qp"] == len(programs), "the number of queue pairs", *total)
        top = ask([UROCE_CTL, "-n", "2", "-d", "0.2", "top"], SECONDS).stdout
        for word in (pid, "ib_send_bw", "RTS", "INIT", "RETX/s"):
            expect(word in top, f"top does not show {word}", *top.splitlines())

    def _ask(self, prefix, *commands):
        """Ask DPDK's telemetry by DPDK's own tool. DPDK starts after uroced serves programs."""
        def answered():
            nonlocal done
            done = ask([TELEMETRY, "-f", prefix], SECONDS, "\n".join([*commands, "quit", ""]))
            return "Error connecting" not in done.stdout
        done, answers = None, {}
        wait_until(answered, SECONDS, 0.1)
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                answers.update(json.loads(line))
        expect(set(command.split(",")[0] for command in commands) <= set(answers), "telemetry does not answer",
               done.stdout, done.stderr)
        return answers

    def _telemetry(self):
        program = self._host().start(["ibv_rc_pingpong", "-d", DEVICE, "-g", "1", "-p", str(FIRST_PORT)])
        try:
            expect(wait_until(lambda: self._ask(self._prefix, "/uroce/resource/qp")["/uroce/resource/qp"], SECONDS),
                   "no queue pair", *program.story("program"))
            every = [f"/uroce/resource/{kind}" for kind in ("qp", "cq", "mr", "pd")]
            lists = self._ask(self._prefix, "/uroce/dev", "/uroce/processes", "/uroce/statistic", *every)
            expect(lists["/uroce/dev"] == [DEVICE], "the device", lists)
            expect(lists["/uroce/processes"].get(str(program.pid)) == "ibv_rc_pingpong", "the program", lists)
            expect("local_ack_timeout_err" in lists["/uroce/statistic"], "the counters", lists)
            shown = self._ask(self._prefix, f"/uroce/dev,{DEVICE}", f"/uroce/link,{DEVICE}",
                              f"/uroce/statistic,{self._owner.process.pid}",
                              *(f"{command},{lists[command][0]}" for command in every))
            expect(shown["/uroce/dev"]["node_type"] == "ca" and shown["/uroce/link"]["netdev"] == "veth0",
                   "device and link", shown)
            expect(shown["/uroce/statistic"]["processes"] == 1, "the owner's counters", shown)
            expect(shown["/uroce/resource/qp"]["state"] == "INIT" and all(
                shown[command]["pid"] == program.pid for command in every), "the objects", shown)
        finally:
            program.kill()

    def _limits(self):
        """A process can use all that its limits allow, and gets ENOMEM beyond."""
        said = self._pyverbs("""
import errno
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.pyverbs_error import PyverbsRDMAError
import pyverbs.enums as e
ctx = Context(name="%s")
pd, cq, kept = PD(ctx), CQ(ctx, 8), []
def fill(make):
    try:
        while len(kept) < 100:
            kept.append(make())
    except PyverbsRDMAError as error:
        print(len(kept), errno.errorcode[error.error_code])
    kept.clear()
fill(lambda: QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(1, 1, 1, 1))))
fill(lambda: MR(pd, 1 << 18, e.IBV_ACCESS_LOCAL_WRITE))
fill(lambda: MR(pd, 1 << 18, e.IBV_ACCESS_LOCAL_WRITE))
mr = MR(pd, 1 << 20, e.IBV_ACCESS_LOCAL_WRITE)
""" % DEVICE)
        expect(said.split("\n")[:3] == ["4 ENOMEM", "4 ENOMEM", "4 ENOMEM"], "not the limits", said)
        port = str(FIRST_PORT)
        argv = ["ib_write_bw", "-F", "-d", DEVICE, "-x", "1", "-q", "2", "-n", "2000", "-p", port]
        server = self._host().start(argv)
        try:
            expect(wait_until(lambda: server.listens(FIRST_PORT), SECONDS), "no server", *server.story("server"))
            client = self._host().start([*argv, "10.9.8.1"])
            expect(client.wait(SECONDS) == 0 and server.wait(SECONDS) == 0, "what is in the limits does not work",
                   *client.story("client"), *server.story("server"))
        finally:
            server.kill()

    def _pyverbs(self, script):
        process = self._host().start(["/usr/bin/python3", "-c", script])
        status = process.wait(SECONDS)
        process.kill()
        expect(status == 0, "the script fails", *process.story("python3"))
        return process.output()

    def _hostile(self):
        """A hostile client disturbs only itself: traffic of others continues, and nothing of the client is left."""
        expect(wait_until(self._owner.is_clean, SECONDS), "something is left of earlier checks")
        before = self._owner.descriptors()
        sides = [["ibv_rc_pingpong", "-c", "-d", DEVICE, "-g", "1", "-n", "4000", "-p", str(FIRST_PORT)]]
        sides.append([*sides[0], "10.9.8.1"])
        seed = str(self._rng.getrandbits(32))
        server = self._host().start(sides[0])
        processes = [server]
        try:
            expect(wait_until(lambda: server.listens(FIRST_PORT), SECONDS), "no server", *server.story("server"))
            processes.append(self._host().start(sides[1]))
            hostile = Process([*self._here.prefix, sys.executable, HOSTILE, self._owner.socket, seed],
                              os.path.join(self._work_dir, "hostile.log"), nice=0)
            processes.append(hostile)
            expect(hostile.wait(SECONDS) == 0, f"seed {seed}", *hostile.story("hostile"),
                   *self._owner.process.story("uroced"))
            for process in processes[:2]:
                expect(process.wait(SECONDS) == 0, f"seed {seed}: who is beside it suffers",
                       *process.story("program"))
        finally:
            for process in processes:
                process.kill()
        expect(self._owner.process.poll() is None, f"seed {seed}: uroced has ended",
               *self._owner.process.story("uroced"))
        expect(wait_until(self._owner.is_clean, SECONDS), f"seed {seed}: something does not come back",
               self._owner.status())
        expect(self._owner.status()["refused"] > 0, "nothing was refused", self._owner.status())
        expect(wait_until(lambda: self._owner.descriptors() == before, SECONDS),
               f"seed {seed}: {self._owner.descriptors()} descriptors, not {before}")

    def _rights(self):
        """Start an uroced as a service manager does, and check which users its socket admits."""
        need_users()
        folder = os.path.join(self._work_dir, "rights")
        os.makedirs(folder, exist_ok=True)
        for path in (os.path.dirname(self._work_dir), self._work_dir, folder):
            os.chmod(path, 0o755)
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.bind(os.path.join(folder, f"notify-{self._rng.getrandbits(32)}"))
        manager.settimeout(SECONDS)
        second = Uroced(self._here, folder, "veth1", "--file-prefix", self._prefix + "-rights", "--socket-owner",
                        "nobody", "--socket-group", "daemon", "--socket-mode", "0620")
        second.argv[0:0] = ["env", f"NOTIFY_SOCKET={manager.getsockname()}"]
        second.process = second.start()
        try:
            expect(manager.recv(64) == b"READY=1", "it does not say that it is ready")
            found = os.stat(second.socket)
            expect((found.st_uid, found.st_gid, found.st_mode & 0o777) ==
                   (pwd.getpwnam("nobody").pw_uid, grp.getgrnam("daemon").gr_gid, 0o620), "the socket", found)
            for user, may in (("nobody", True), ("daemon", True), ("bin", False)):
                account = pwd.getpwnam(user)
                status = self._attach_as(account.pw_uid, account.pw_gid, second.socket)
                expect((status == 0) == may, f"{user} {'may not' if may else 'may'} attach", status)
            os.killpg(second.process.pid, signal.SIGTERM)
            expect(manager.recv(64) == b"STOPPING=1", "it does not say that it stops")
            expect(second.process.wait(SECONDS) == 0, "it does not end with 0")
        finally:
            second.process.kill()
            manager.close()
            shutil.rmtree(f"/var/run/dpdk/{self._prefix}-rights", ignore_errors=True)

    def _ports(self):
        """Two ports of one uroced are two devices in each program, and both work."""
        folder = os.path.join(self._work_dir, "ports")
        os.makedirs(folder, exist_ok=True)
        self._here.run("ip", "link", "add", "veth2", "type", "veth", "peer", "name", "veth3")
        for number in (2, 3):
            self._here.run("ip", "link", "set", f"veth{number}", "up")
            self._here.run("ip", "addr", "add", f"10.9.{number}.1/24", "dev", f"veth{number}")
        config = os.path.join(folder, "uroce.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write(f"[uroce]\nsocket = {folder}/uroced.sock\nfile-prefix = {self._prefix}-ports\n"
                       f"isolated = {folder}/isolated.sock\n[port roce2]\nnetdev = veth2\n[port roce3]\nnetdev = veth3\n")
        owner = Uroced(self._here, folder, "veth2")
        owner.argv = [*self._here.prefix, UROCED, "--config", config]
        owner.run()
        processes = [owner.process]
        try:
            for number in (2, 3):
                argv = ["ibv_rc_pingpong", "-c", "-d", f"roce{number}", "-g", "1", "-n", "500", "-p", str(FIRST_PORT)]
                server = self._host("--socket", owner.socket).start(argv)
                processes.append(server)
                expect(wait_until(lambda: server.listens(FIRST_PORT), SECONDS), "no server", *server.story("server"))
                client = self._host("--socket", owner.socket).start([*argv, f"10.9.{number}.1"])
                processes.append(client)
                for process in (server, client):
                    expect(process.wait(SECONDS) == 0, f"port {number}", *process.story("program"))
            for number, suffix in enumerate(("", ".1"), 2):
                isolated = self._host(f"--isolated={folder}/isolated.sock{suffix}").start(["ibv_devices"])
                processes.append(isolated)
                expect(isolated.wait(SECONDS) == 0 and re.findall(r"roce\d", isolated.output()) == [f"roce{number}"],
                       f"isolated port {number}", *isolated.story("ibv_devices"))
            names = [dev["ifname"] for dev in ctl("dev") if dev.get("pid") == owner.process.pid]
            expect(names == ["roce2", "roce3"], "uroce-ctl shows others", names)
            answer = self._ask(f"{self._prefix}-ports", "/uroce/dev")
            expect(sorted(answer["/uroce/dev"]) == names, "telemetry shows others", answer)
            os.killpg(owner.process.pid, signal.SIGTERM)
            expect(owner.process.wait(SECONDS) == 0, "it does not end with 0", *owner.process.story("uroced"))
            left = [name for name in os.listdir(folder) if ".sock" in name]
            expect(not left, "sockets are left", left)
        finally:
            for process in processes:
                process.kill()
            self._here.run("ip", "link", "del", "veth2")
            shutil.rmtree(f"/var/run/dpdk/{self._prefix}-ports", ignore_errors=True)

    def _read_again(self):
        """On SIGHUP uroced takes limits, addresses and the log level of its file, and its programs go on."""
        folder = os.path.join(self._work_dir, "again")
        os.makedirs(folder, exist_ok=True)
        config = os.path.join(folder, "uroce.conf")

        def write(common, ips):
            with open(config, "w", encoding="ascii") as file:
                file.write(f"[uroce]\nsocket = {folder}/uroced.sock\n{common}\n[port again0]\nport = local0\nip = {ips}\n")

        def hang_up(words):
            said = len(owner.process.output())
            os.kill(owner.process.pid, signal.SIGHUP)
            expect(wait_until(lambda: words in owner.process.output()[said:], SECONDS), f"it does not say: {words}",
                   *owner.process.story("uroced"))

        one, two = "10.9.60.1/24", "10.9.60.2/24"
        write("", f"{one}, {two}")
        owner = Uroced(self._here, folder, None)
        owner.argv = [*self._here.prefix, UROCED, "--config", config]
        owner.run()
        here = ("--socket", owner.socket)
        argv = ["ibv_rc_pingpong", "-c", "-g", "1", "-n", "100", "-p", str(FIRST_PORT)]
        server = self._host(*here).start(argv)
        try:
            expect(wait_until(lambda: server.listens(FIRST_PORT), SECONDS), "no server", *server.story("server"))
            write("max-qp = 1\nlog-level = info", f"{one}, 10.9.60.3/24")
            hang_up("settings are read again")
            client = self._host(*here).start(["ibv_devinfo", "-v"])
            expect(client.wait(SECONDS) == 0 and ":10.9.60.3," in client.output() and ":10.9.60.2," not in client.output()
                   and re.search(r"max_qp:\s+1\n", client.output()), "not the new settings", *client.story("ibv_devinfo"))
            write("max-qp = none", two)
            hang_up("the settings stay as they are")
            write("hand-over = owner\nlog-level = info", one)
            hang_up("hand-over: these settings change only when")
            self._log_level(owner, server)
            client = self._host(*here).start([*argv, "127.0.0.1"])
            for process in (client, server):
                expect(process.wait(SECONDS) == 0, "the program that was there does not go on", *process.story("program"))
        finally:
            server.kill()
            owner.process.kill()

    def _hung_up(self):
        """uroced ends with its terminal, but under nohup. A service, and one without a terminal, goes on, and says that
        it has read nothing."""
        folder = os.path.join(self._work_dir, "hung")
        os.makedirs(folder, exist_ok=True)
        terminal = (sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])")
        for before, says in ((terminal, None), (("nohup",), ""), ((), "no file was read"),
                             (("env", "NOTIFY_SOCKET=@uroce-test-hung"), "no file was read")):
            owner = Uroced(self._here, folder, None, "--port", "local0", "--ip", "10.9.62.1/24")
            owner.argv[0:0] = before
            owner.run()
            try:
                if says is None:
                    os.kill(owner.process.pid, signal.SIGKILL)  # the terminal goes
                    expect(wait_until(lambda: owner.status() is None, SECONDS), "it does not end")
                    continue
                os.kill(owner.process.pid, signal.SIGHUP)
                expect(wait_until(lambda: says in owner.process.output(), SECONDS), f"it does not say: {says}",
                       *owner.process.story("uroced"))
                expect(owner.status() is not None, "it ends", *owner.process.story("uroced"))
            finally:
                owner.process.kill()

    @staticmethod
    def _log_level(owner, server):
        def log(*words):
            done = ask([UROCE_CTL, "log", "level", *words], SECONDS)
            expect(done.returncode == 0, "uroce-ctl fails", words, done.stderr)

        log("error", "pid", str(owner.process.pid))
        said = len(owner.process.output())
        os.kill(owner.process.pid, signal.SIGHUP)  # the file's level counts from then on
        expect(wait_until(lambda: "read again" in owner.process.output()[said:], SECONDS), "not the file's level")
        log("debug", "net", f"local0@{owner.process.pid}")
        log("warn", "pid", str(server.pid))

    def _told(self):
        """What happens to the interface and to programs is in the log, by names that the operator knows."""
        folder = os.path.join(self._work_dir, "told")
        os.makedirs(folder, exist_ok=True)
        self._here.run("ip", "link", "add", "veth4", "mtu", "4200", "type", "veth", "peer", "name", "veth5")
        for number in (4, 5):
            self._here.run("ip", "link", "set", f"veth{number}", "up")
        owner = Uroced(self._here, folder, "veth4", "--file-prefix", f"{self._prefix}-told", "--log-level", "info")
        owner.run()
        try:
            for command, words in (("addr add 10.9.61.1/24 dev veth4", "veth4: address 10.9.61.1 is new"),
                                   ("link set veth5 down", "veth4: the link is down"),
                                   ("link set veth5 up", "veth4: the link is up again"),
                                   ("link set veth4 mtu 1500", "veth4: the MTU is now 1500; the port keeps 4200"),
                                   ("addr del 10.9.61.1/24 dev veth4", "veth4: address 10.9.61.1 has gone"),
                                   ("link set veth4 address 02:00:00:00:61:01", "the MAC address is now 02:00:00:00:61:01")):
                self._here.run("ip", *command.split())
                self._expect_told(owner, words)
            program = self._host("--socket", owner.socket).start(["ibv_devinfo"])
            expect(program.wait(SECONDS) == 0, "ibv_devinfo", *program.story("ibv_devinfo"))
            self._expect_told(owner, f"process {program.pid} (ibv_devinfo) attaches")
            self._expect_told(owner, f"process {program.pid} has ended")
            self._here.run("ip", "link", "del", "veth4")
            self._expect_told(owner, "veth4 was removed: attached programs get a fatal event")
        finally:
            owner.process.kill()
            shutil.rmtree(f"/var/run/dpdk/{self._prefix}-told", ignore_errors=True)

    @staticmethod
    def _expect_told(owner, words):
        expect(wait_until(lambda: re.search(re.escape(words), owner.process.output(), re.I), SECONDS),
               f"it does not say: {words}", *owner.process.story("uroced"))

    def _dumps_no_packets(self):
        """Memory that programs and the network write is not part of a core file (VmFlags dd)."""
        program = self._host().start(["ibv_rc_pingpong", "-d", DEVICE, "-g", "1", "-p", str(FIRST_PORT)])
        try:
            expect(wait_until(lambda: program.listens(FIRST_PORT), SECONDS), "no server", *program.story("server"))
            for pid in (self._owner.process.pid, program.pid):
                with open(f"/proc/{pid}/smaps", encoding="ascii") as file:
                    maps = re.findall(r"^[0-9a-f]+-[0-9a-f]+ rw-s \S+ \S+ \S+ +(.*)$(?:\n[A-Z].*)*?\nVmFlags: (.*)$", file.read(),
                                      re.M)
                # DPDK's own memory is memfd:seg_N.
                dumped = [name for name, flags in maps if "dd" not in flags.split()
                          and not re.match("/memfd:(uroce-report|uroce-view|seg_)", name)]
                expect(len(maps) > 1 and not dumped, "a core has these", pid, dumped)
        finally:
            program.kill()

    def _memif(self):
        """Programs share a memif link, whose other end comes, goes, and comes again."""
        folder = os.path.join(self._work_dir, "memif")
        os.makedirs(folder, exist_ok=True)
        wire = f"net_memif0,socket={folder}/wire.sock"
        owner = Uroced(self._here, folder, "veth1", "--file-prefix", self._prefix + "-memif")
        owner.argv = [*self._here.prefix, UROCED, "--port", f"{wire},role=server", "--ip", "10.9.20.1/24", "--socket",
                      owner.socket, "--file-prefix", self._prefix + "-memif"]
        owner.run()
        processes = [owner.process]
        other = ("--port", f"{wire},role=client", "--ip", "10.9.20.2/24")
        here = ("--socket", owner.socket)
        try:
            for first, second in ((here, other), (other, here), (here, here), (here, other)):
                argv = ["ibv_rc_pingpong", "-c", "-d", DEVICE, "-g", "1", "-n", "300", "-s", "16384", "-p",
                        str(FIRST_PORT)]
                server = self._host(*first).start(argv)
                processes.append(server)
                expect(wait_until(lambda: server.listens(FIRST_PORT), SECONDS), "no server", *server.story("server"))
                client = self._host(*second).start([*argv, "127.0.0.1"])
                processes.append(client)
                for process in (server, client):
                    expect(process.wait(SECONDS) == 0, f"{first} {second}", *process.story("program"))
            os.killpg(owner.process.pid, signal.SIGTERM)
            expect(owner.process.wait(SECONDS) == 0, "uroced does not end with 0", *owner.process.story("uroced"))
        finally:
            for process in processes:
                process.kill()
            shutil.rmtree(f"/var/run/dpdk/{self._prefix}-memif", ignore_errors=True)

    def _without_dpdk(self):
        """A kernel interface needs no DPDK: if that cannot start, only its telemetry is missing."""
        folder = os.path.join(self._work_dir, "without")
        os.makedirs(folder, exist_ok=True)
        owner = Uroced(self._here, folder, "veth1", "--file-prefix", self._prefix + "-without")
        in_the_way = f"/var/run/dpdk/{self._prefix}-without"  # DPDK makes a directory here
        with open(in_the_way, "w", encoding="ascii"):
            owner.run()
        try:
            said = ask([*self._here.prefix, UROCE_RUN, "--socket", owner.socket, "--", "ibv_devinfo"], SECONDS)
            expect("PORT_ACTIVE" in said.stdout, "no device", said.stdout, said.stderr)
            expect(wait_until(lambda: "telemetry does not answer" in owner.process.output(), SECONDS), "it does not say so",
                   *owner.process.story("uroced"))
        finally:
            owner.process.kill()
            os.unlink(in_the_way)

    def _capture_if_possible(self):
        if shutil.which("tshark") is None:
            self._report.skip("operate: capture", "there is no tshark; config/setup.sh test")
            return
        with open("/proc/meminfo", encoding="ascii") as file:
            free = next(int(line.split()[1]) for line in file if line.startswith("HugePages_Free"))
        if free < HUGE_PAGES:
            self._report.skip("operate: capture", f"only {free} huge pages are free")
            return
        self._check("capture", self._capture)
        self._check("capture of a memif wire", self._capture_memif)

    def _capture(self):
        """DPDK's tool captures packets through the port, and packets between programs. They are fewer than its ring
        holds, because it may get no CPU meanwhile."""
        folder = os.path.join(self._work_dir, "capture")
        os.makedirs(folder, exist_ok=True)
        prefix = self._prefix + "-capture"
        owner = Uroced(self._here, folder, "veth1", "--capture", "all", "--file-prefix", prefix)
        owner.run()
        # Capture one port at a time: with several, the tool of DPDK 22.11 captures only the last one.
        files = [os.path.join(folder, f"{interface}.pcapng") for interface in range(2)]
        processes = [owner.process]
        try:
            captures = [self._dumpcap(prefix, interface, file) for interface, file in enumerate(files)]
            processes += captures
            argv = ["ibv_rc_pingpong", "-c", "-d", DEVICE, "-g", "0", "-n", str(CAPTURED), "-s", "20000", "-p", str(FIRST_PORT)]
            for options in (("--socket", owner.socket), ("--socket", self._owner.socket)):
                server = self._host("--socket", owner.socket).start(argv)
                processes.append(server)
                expect(wait_until(lambda: server.listens(FIRST_PORT), SECONDS), "no server", *server.story("server"))
                client = self._host(*options).start([*argv, "127.0.0.1"])
                processes.append(client)
                for process in (server, client):
                    expect(process.wait(SECONDS) == 0, f"{options}", *process.story("program"))
            for capture in captures:
                os.killpg(capture.pid, signal.SIGINT)
                expect(capture.wait(SECONDS) == 0, "dpdk-dumpcap fails", *capture.story("dpdk-dumpcap"))
            os.killpg(owner.process.pid, signal.SIGTERM)
            expect(owner.process.wait(SECONDS) == 0, "uroced does not end with 0", *owner.process.story("uroced"))
        finally:
            for process in processes:
                process.kill()
            shutil.rmtree(f"/var/run/dpdk/{prefix}", ignore_errors=True)
        for file in files:
            self._judge_capture(file, CAPTURED * 2 * 20)
        left = [name for name in os.listdir("/dev/hugepages") if name.startswith(prefix)]
        expect(not left, "files are left", left)

    def _capture_memif(self):
        """DPDK's tool captures a memif link, which is not a DPDK port."""
        folder = os.path.join(self._work_dir, "capture-memif")
        os.makedirs(folder, exist_ok=True)
        prefix = self._prefix + "-capture-memif"
        wire = f"net_memif0,socket={folder}/wire.sock"
        file = os.path.join(folder, "wire.pcapng")
        owner = Uroced(self._here, folder, "veth1")
        owner.argv = [*self._here.prefix, UROCED, "--port", f"{wire},role=server", "--ip", "10.9.20.1/24", "--socket",
                      owner.socket, "--file-prefix", prefix, "--capture", "port"]
        owner.run()
        processes = [owner.process]
        try:
            capture = self._dumpcap(prefix, 0, file)
            processes.append(capture)
            argv = ["ibv_rc_pingpong", "-c", "-d", DEVICE, "-g", "1", "-n", "60", "-s", "8000", "-p", str(FIRST_PORT)]
            server = self._host("--socket", owner.socket).start(argv)
            processes.append(server)
            expect(wait_until(lambda: server.listens(FIRST_PORT), SECONDS), "no server", *server.story("server"))
            client = self._host("--port", f"{wire},role=client", "--ip", "10.9.20.2/24").start([*argv, "127.0.0.1"])
            processes.append(client)
            for process in (server, client):
                expect(process.wait(SECONDS) == 0, "a program fails", *process.story("program"))
            os.killpg(capture.pid, signal.SIGINT)
            expect(capture.wait(SECONDS) == 0, "dpdk-dumpcap fails", *capture.story("dpdk-dumpcap"))
        finally:
            for process in processes:
                process.kill()
            shutil.rmtree(f"/var/run/dpdk/{prefix}", ignore_errors=True)
        self._judge_capture(file, 60 * 2 * 8)
        os.remove(file)

    def _dumpcap(self, prefix, interface, file):
        """Run dpdk-dumpcap with the same precedence as the captured programs: otherwise its ring overflows. It does
        not truncate an existing file."""
        if os.path.exists(file):
            os.remove(file)
        process = LocalHost(os.path.basename(file), os.path.dirname(file)).start(
            ["dpdk-dumpcap", f"--file-prefix={prefix}", "-p", "-i", str(interface), "-w", file])
        if not wait_until(lambda: "Packets captured" in process.output() or process.poll() is not None, SECONDS) or \
                process.poll() is not None:
            process.kill()
            raise CheckFailed("dpdk-dumpcap does not start", process.story("dpdk-dumpcap"))
        return process

    def _judge_capture(self, file, packets):
        """Expect at least so many packets, in both directions."""
        queues = self._tshark(file, "-Y", "infiniband", "-T", "fields", "-e", "infiniband.bth.destqp")
        expect(len(queues) >= packets, f"{len(queues)} packets in {file}", *queues[:20])
        expect(len(set(queues)) == 2, "not both ways", *set(queues))
        malformed = self._tshark(file, "-Y", "_ws.malformed")
        expect(not malformed, "malformed packets", *malformed[:20])

    def _tshark(self, *argv):
        done = ask(["tshark", "-n", "-r", *argv], SECONDS)
        expect(done.returncode == 0, "tshark", done.stderr)
        return done.stdout.splitlines()

    def _attach_as(self, uid, gid, path):
        process = Process([*self._here.prefix, "setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups",
                           UROCE_RUN, "--socket", path, "--", "ibv_devinfo"],
                          os.path.join(self._work_dir, "attach.log"))
        status = process.wait(SECONDS)
        process.kill()
        return status

    def _many_starts(self):
        """Address randomisation differs at each start: programs find their memory at any address."""
        waiting = []
        try:
            for number in range(self._starts):
                options = () if number % 4 else ("--port", "net_null0", "--ip", "10.0.0.1/24")
                waiting.append(self._host(*options).start(["ibv_devinfo", "-d", DEVICE]))
                if len(waiting) == STARTS_AT_ONCE or number + 1 == self._starts:
                    for process in waiting:
                        expect(process.wait(SECONDS) == 0, f"start {number}", *process.story("ibv_devinfo"))
                        os.unlink(process.log_path)
                        process.kill()
                    waiting.clear()
        finally:
            for process in waiting:
                process.kill()
        expect(wait_until(self._owner.is_clean, SECONDS), "something does not come back")

    def _forked(self):
        """A child of an attached program attaches by itself, and both continue to work."""
        process = self._host().start([FORK])
        status = process.wait(SECONDS)
        process.kill()
        expect(status == 0, "it fails", *process.story("fork"))
        left = self._pyverbs("""
import os
from pyverbs.device import Context
ctx = Context(name="%s")
os.execv("/bin/ls", ["ls", "/proc/self/fd"])
""" % DEVICE)
        expect(left.split() == ["0", "1", "2", "3"], "a program that it executes has descriptors of it", left)
        expect(wait_until(self._owner.is_clean, SECONDS), "something does not come back")

    def _again(self):
        """State that a killed uroced left does not disturb the next one."""
        self._owner.process.kill()
        self._owner.run()
        expect(wait_until(lambda: self._ask(self._prefix, "/uroce/dev")["/uroce/dev"] == [DEVICE], SECONDS),
               "no telemetry of the second", *self._owner.process.story("uroced"))

    def _terminated(self):
        os.killpg(self._owner.process.pid, signal.SIGTERM)
        expect(self._owner.process.wait(SECONDS) == 0, "it does not end with 0",
               *self._owner.process.story("uroced"))
        runtime = f"/var/run/dpdk/{self._prefix}"
        left = os.listdir(runtime)
        expect(not left, "files of DPDK's are left", left)
        os.rmdir(runtime)
        expect(not os.path.exists(self._owner.socket), "its socket is left")

    def _shown_alone(self):
        process = self._host("--netdev", "veth1", "--name", "alone0", "--telemetry", "yes", "--file-prefix",
                             self._prefix + "-alone").start(
            ["ibv_rc_pingpong", "-d", "alone0", "-g", "0", "-p", str(FIRST_PORT)])
        try:
            expect(wait_until(lambda: process.pid in [qp["pid"] for qp in ctl("resource", "show", "qp")], SECONDS),
                   "it is not shown", *process.story("program"))
            shown = ctl("resource", "show", "qp", "dev", "alone0")
            expect([qp["pid"] for qp in shown] == [process.pid], "the filter", *shown)
            answer = self._ask(self._prefix + "-alone", "/uroce/resource/qp")
            expect(f"{process.pid}/" in str(answer), "its telemetry", answer)
            link = [link for link in ctl("link") if link["ifname"] == "alone0"]
            expect(link and link[0]["netdev"] == "veth1", "its link", *link)
        finally:
            process.kill()
            shutil.rmtree(f"/var/run/dpdk/{self._prefix}-alone", ignore_errors=True)
