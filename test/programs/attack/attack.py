# SPDX-License-Identifier: BSD-3-Clause
"""An uroced on a veth: what it keeps of root's rights, whether it still serves, and mutated frames from the other end."""

import ctypes
import os
import re
import shutil
import signal
import sys

from harness.process import NOBODY, LocalHost, Namespace, Process, Running, ask, need_users, veth_pair, wait_until
from harness.report import CannotRun, CheckFailed
from harness.tools import DEVICE, UROCE_RUN, PingPong, Side, gid_index, gids, run_pair
from harness.world import is_roots
from programs.share.operate import ctl
from programs.share.share import SECONDS, Uroced

FRAMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frames.py")
DATAGRAMS = os.path.join(os.path.dirname(FRAMES), "datagrams.py")
RULE = ["iptables", "-A", "OUTPUT", "-p", "udp", "--dport", "4791", "-j", "DROP"]
FIRST_PORT = 28000
SOME_FRAMES, MANY_FRAMES = 10000, 500000
FLOWS_MAX = 300
MESSAGE = 1000  # bytes, one packet
FORGED = 100  # datagrams
BEHIND = 1 << 20  # PSNs
DAC_OVERRIDE, DAC_READ_SEARCH, NET_ADMIN, NET_RAW, SYS_PTRACE, SYS_RESOURCE = 1, 2, 12, 13, 19, 24  # <linux/capability.h>
NAMED = sum(1 << bit for bit in (DAC_OVERRIDE, DAC_READ_SEARCH, NET_ADMIN, NET_RAW, SYS_PTRACE, SYS_RESOURCE))
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
FILTER = "2"  # SECCOMP_MODE_FILTER
NOBODY_ID = 65534
LANDLOCK_CREATE_RULESET, LANDLOCK_VERSION = 444, 1
HERE, THERE, LATER = "10.9.21.1", "10.9.21.2", "10.9.22.1"


class AttackTest:
    """All checks. Attached and isolated programs are at one end of the veth, and a program with its own port at the other."""

    def __init__(self, report, work_dir, rng):
        self._report = report
        self._rng = rng
        self._work_dir = os.path.join(work_dir, "attack")
        os.mkdir(self._work_dir)
        for path in (work_dir, self._work_dir):
            os.chmod(path, 0o755)
        self._here, self._there = Namespace("attack0"), Namespace("attack1")
        veth_pair(self._here, self._there, (HERE, THERE), mtu=1500)
        sockets = os.path.join(self._work_dir, "sockets")
        os.mkdir(sockets)
        if is_roots():
            os.chown(sockets, NOBODY_ID, -1)
        self._isolated = f"{sockets}/isolated.sock"
        self._metrics = f"{sockets}/metrics.sock"
        self._owner = Uroced(self._here, self._work_dir, "veth0", f"--isolated={self._isolated}", f"--metrics={self._metrics}",
                             "--file-prefix", f"uroce-attack-{os.getpid()}")
        self._names = 0
        self._port = FIRST_PORT

    def run_all(self):
        if not self._report.require("attack: uroced starts", self._owner.run):
            return
        self._check("uroced has given up what it does not need", self._given_up)
        for place in ("attached", "isolated"):
            self._check(f"a confined uroced serves: {place}", self._serves, place)
        self._check("a confined uroced follows its interface", self._follows)
        self._check("a confined uroced sees programs of other users", self._sees)
        count = MANY_FRAMES if self._report.complete else SOME_FRAMES
        for place in ("attached", "isolated") if self._report.complete else ("attached",):
            self._check(f"{count} mutated frames to a running flow: {place}", self._flood, place, count)
        self._check("a UDP socket of the peer's host", self._datagrams)
        self._check("everything comes back", self._comes_back)
        self._check("a confined uroced ends and leaves nothing", self._ends)
        self._check("a confined uroced removes nothing elsewhere", self._ends_elsewhere)

    def _check(self, name, function, *args):
        self._report.check(f"attack: {name}", function, *args)

    def _host(self, place, *prefix):
        self._names += 1
        commands = {
            "attached": [*self._here.prefix, *prefix, UROCE_RUN, "--socket", self._owner.socket, "--"],
            "isolated": [*self._here.prefix, *prefix, UROCE_RUN, f"--isolated={self._isolated}", "--"],
            "beyond": [*self._there.prefix, UROCE_RUN, "--netdev", "veth1", "--"],
        }
        return LocalHost(f"attack-{self._names}", self._work_dir, commands[place])

    def _side(self, place, peer_address):
        host = self._host(place)
        return Side(host, DEVICE, peer_address, gid_index(gids(host, DEVICE), THERE if place == "beyond" else HERE))

    def _run(self, program, place):
        """Run a pair: the server is a program of uroced, the client is at the other end."""
        self._port += 1
        run_pair(program, self._side(place, HERE), self._side("beyond", HERE), self._port)

    def _given_up(self):
        """Capabilities and filters are a thread's: DPDK's threads count, too."""
        folder = f"/proc/{self._owner.process.pid}/task"
        threads = {}
        for task in os.listdir(folder):
            with open(f"{folder}/{task}/status", encoding="ascii") as status:
                threads[task] = dict(re.findall(r"^(\w+):\s*(.*)$", status.read(), re.M))
        for fields in threads.values():
            capabilities = [int(fields[name], 16) for name in SETS]
            if any(found & ~NAMED for found in capabilities) or fields["NoNewPrivs"] != "1" or fields["Seccomp"] != FILTER:
                shown = {name: fields[name] for name in (*SETS, "NoNewPrivs", "Seccomp")}
                raise CheckFailed(f"the thread {fields['Name']} may do too much", [str(shown)])
        if len(threads) < 3:
            raise CheckFailed("it has fewer threads than expected", [str(threads)])

    def _serves(self, place):
        """A program that attaches now gets a packet socket, which needs CAP_NET_RAW."""
        before = self._owner.status()
        self._run(PingPong([], 300, 16384), place)
        after = self._owner.status()
        if place == "attached" and after["rx_packets"] - before["rx_packets"] > 1000:
            raise CheckFailed("the program had no packet socket", [str(before), str(after)])

    def _follows(self):
        """It takes over an address, and programs that attach have it."""
        self._here.run("ip", "addr", "add", f"{LATER}/24", "dev", "veth0")
        found = wait_until(lambda: LATER in map(str, gids(self._host("attached"), DEVICE).values()), SECONDS)
        self._here.run("ip", "addr", "del", f"{LATER}/24", "dev", "veth0")
        if not found:
            raise CheckFailed("a new program does not see the new address", self._owner.process.story("uroced"))

    def _sees(self):
        """Metrics of a program of another user."""
        need_users()
        program = self._host("isolated", *NOBODY).start(["ibv_rc_pingpong", "-d", DEVICE, "-g", "1", "-p", str(FIRST_PORT)])
        ask_metrics = ["curl", "-s", "--unix-socket", self._metrics, "http://localhost/metrics"]
        try:
            if not wait_until(lambda: f'pid="{program.pid}"' in ask(ask_metrics, SECONDS).stdout, SECONDS):
                raise CheckFailed("the program has no metrics", [*program.story("program")])
        finally:
            program.kill()

    def _flood(self, place, count):
        """Run checked ping-pongs, one after the other, until all frames are sent. Each must do its work."""
        seed = self._rng.getrandbits(32)
        attacker = Process([*self._here.prefix, sys.executable, FRAMES, "veth0", self._there.name, "veth1", str(count),
                            str(seed)], os.path.join(self._work_dir, "frames.log"), nice=0)
        try:
            flows = 0
            while attacker.poll() is None or flows == 0:
                self._run(PingPong([], 3000, MESSAGE), place)
                flows += 1
                if flows > FLOWS_MAX:
                    raise CheckFailed("the attacker does not end", attacker.story("attacker"))
            if attacker.wait(0) != 0:
                raise CheckFailed("the attacker fails", attacker.story("attacker"))
        except CheckFailed as failure:
            raise CheckFailed(f"seed {seed}: {failure}", [*failure.details, *attacker.story("attacker")]) from failure
        finally:
            attacker.kill()
        if self._owner.process.poll() is not None:
            raise CheckFailed(f"seed {seed}: uroced has ended", self._owner.process.story("uroced"))

    def _datagrams(self):
        """A program takes a datagram of any user of its peer's host for its peer's packet, here for a duplicate. A rule of that
        host's firewall keeps such datagrams back, and not the peer's own packets."""
        need_users()
        with Running() as running:
            server, client = self._long_flow(running)
            before = self._duplicates(server)
            self._forge(server, FORGED)
            if not wait_until(lambda: self._duplicates(server) >= before + FORGED, SECONDS):
                running.fail(f"{self._duplicates(server) - before} of {FORGED} datagrams were taken for the peer's")
            if not shutil.which(RULE[0]):
                raise CannotRun("iptables is missing")
            self._there.run(*RULE)
            try:
                self._refused(running, server)
            finally:
                self._there.run(RULE[0], "-F", "OUTPUT")
            for process in (server, client):
                if process.poll() is not None:
                    running.fail("a side of the flow has ended")

    def _refused(self, running, server):
        """The rule is there: the kernel takes no datagram."""
        received = self._statistic(server, "rx_packets")
        self._forge(server, 0)
        if not wait_until(lambda: self._statistic(server, "rx_packets") > received + FORGED, SECONDS):
            running.fail("the rule keeps the peer's own packets back")

    def _long_flow(self, running):
        self._port += 1
        program = PingPong(["-e"], 1 << 30, 64)
        sides = self._side("attached", HERE), self._side("beyond", HERE)
        server = running.add(sides[0].host.start(program.argv(sides[0], self._port)))
        if not wait_until(lambda: server.listens(self._port), SECONDS):
            running.fail("the server does not listen")
        client = running.add(sides[1].host.start(program.argv(sides[1], self._port, HERE)))
        if not wait_until(lambda: self._statistic(server, "rx_packets") > 0, SECONDS):
            running.fail("nothing flows")
        return server, client

    @staticmethod
    def _statistic(process, name):
        found = ctl("statistic", "show", "pid", str(process.pid))
        return found[0][name] if found else 0

    def _duplicates(self, process):
        return self._statistic(process, "duplicate_request")

    def _forge(self, process, taken):
        """Let an ordinary user of the other host send. The kernel must take so many."""
        pair = ctl("resource", "show", "qp", "pid", str(process.pid))[0]
        psn = (pair["rq-psn"] - BEHIND) % (1 << 24)
        done = ask([*self._there.prefix, *NOBODY, "/usr/bin/python3", DATAGRAMS, THERE, HERE, str(pair["lqpn"]), str(psn),
                    str(FORGED)], SECONDS)
        if done.returncode != 0 or int(done.stdout) != taken:
            raise CheckFailed(f"the kernel took {done.stdout.strip()} datagrams, not {taken}", done.stderr.splitlines())

    def _comes_back(self):
        if not wait_until(self._owner.is_clean, SECONDS):
            raise CheckFailed("something does not come back", [str(self._owner.status())])

    def _ends(self):
        """Its sockets are in a directory of another user, if there is one."""
        os.killpg(self._owner.process.pid, signal.SIGTERM)
        status = self._owner.process.wait(SECONDS)
        left = os.listdir(os.path.dirname(self._isolated))
        if status != 0 or left:
            raise CheckFailed(f"exit {status}, sockets left: {left}", self._owner.process.story("uroced"))

    def _ends_elsewhere(self):
        """At its end it removes its socket by its path. Meanwhile that leads to a folder of somebody else."""
        if ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_VERSION) < 1:
            raise CannotRun("this kernel has no Landlock")
        own, other = (f"{self._work_dir}/{name}" for name in ("own", "other"))
        os.mkdir(own)
        os.mkdir(other)
        owner = Uroced(self._here, self._work_dir, None, "--port", "local0", "--ip", f"{HERE}/24", name="own/uroced")
        owner.run()
        os.rename(own, f"{own}-moved")
        os.symlink(other, own)
        with open(owner.socket, "w", encoding="ascii"):
            pass
        os.killpg(owner.process.pid, signal.SIGTERM)
        status = owner.process.wait(SECONDS)
        if status != 0 or not os.path.exists(owner.socket):
            raise CheckFailed(f"exit {status}, or a file of another folder is removed", owner.process.story("uroced"))
