# SPDX-License-Identifier: BSD-3-Clause
"""Isolated programs of an uroced: between each other, with attached programs, and with a remote peer."""

import json
import os
import re
import signal
import sys
import time

from harness.process import NOBODY, LocalHost, Namespace, ask, need_users, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN, PerfTest, PingPong, Side, gid_index, gids, run_pair
from programs.share.operate import ctl, expect
from programs.share.share import END_SECONDS, SECONDS, Uroced

HOSTILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile_isolated.py")
HOSTILE_PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile_peer.py")
GREEDY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "greedy.py")
FIRST_PORT = 27000
GREEDY_SECONDS = 3
PAUSE_SECONDS = 1  # retries of perftest take half a second
HOSTILE_SECONDS = 120
DESCRIPTORS = 1024  # limit of this uroced, the usual one of services
SLEEPING = ("doorbells", "hold")  # attacks on a server that sleeps
KILLS = 4
DIRECT_KILLS, FEW_DIRECT_KILLS = 12, 6
ADDRESSES = {"beyond": "10.9.7.2"}


class IsolatedTest:
    """All checks, with an uroced on a veth, and a namespace that has no network at all."""

    def __init__(self, report, work_dir, rng):
        self._report = report
        self._rng = rng
        self._work_dir = os.path.join(work_dir, "isolated")
        os.mkdir(self._work_dir)
        for path in (work_dir, self._work_dir):
            os.chmod(path, 0o755)
        self._here, self._there, self._bare = (Namespace(f"isolated{number}") for number in range(3))
        veth_pair(self._here, self._there, ("10.9.7.1", ADDRESSES["beyond"]))
        self._socket = f"{self._work_dir}/isolated.sock"
        self._owner = Uroced(self._here, self._work_dir, "veth0", f"--isolated={self._socket}",
                             "--file-prefix", f"uroce-isolated-{os.getpid()}")
        self._owner.argv = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", *self._owner.argv]
        self._names = 0
        self._port = FIRST_PORT
        self._indices = {}

    def _host(self, place, *options):
        self._names += 1
        isolated = [UROCE_RUN, f"--isolated={self._socket}", *options, "--"]
        prefix = {
            "isolated": [*self._here.prefix, *isolated],
            "engines": [*self._here.prefix, UROCE_RUN, f"--isolated={self._socket}", "--engines", "2", *options, "--"],
            "indirect": [*self._here.prefix, UROCE_RUN, f"--isolated={self._socket}", "--without=direct", "--"],
            "nobody": [*self._bare.prefix, *NOBODY, *isolated],
            "attached": [*self._here.prefix, UROCE_RUN, "--socket", self._owner.socket, *options, "--"],
            "beyond": [*self._there.prefix, UROCE_RUN, "--netdev", "veth1", "--"],
        }[place]
        return LocalHost(f"isolated-{self._names}", self._work_dir, prefix)

    def _next_port(self):
        self._port += 1
        return self._port

    def _check(self, name, function, *args):
        self._report.check(f"isolated: {name}", function, *args)

    def run_all(self):
        if not self._report.require("isolated: uroced starts", self._owner.run):
            return
        pingpong = PingPong([], 300, 65536)
        for server, client in (("isolated", "isolated"), ("isolated", "attached"), ("attached", "isolated"),
                               ("isolated", "beyond"), ("beyond", "isolated")):
            self._check(f"{server} to {client}: {pingpong.name}", self._run, pingpong, server, client)
        self._check("nobody, without a network: ibv_rc_pingpong -c", self._run, pingpong, "nobody", "nobody")
        self._check("sleeping", self._run, PingPong(["-e"], 300, 16384), "isolated", "attached")
        self._check("ibv_ud_pingpong -c", self._run, PingPong([], 300, 2048, "ud"), "isolated", "isolated")
        self._check("ib_read_bw", self._run, PerfTest("ib_read_bw", [], 200), "attached", "isolated")
        for server, client in (("isolated", "isolated"), ("isolated", "indirect"), ("nobody", "nobody")):
            self._check(f"{server} to {client}: past uroced, or not", self._past, server, client)
        for server, client in (("attached", "isolated"), ("isolated", "attached")):
            self._check(f"{server} to {client}: the server pauses", self._pauses, server, client)
        self._check("nothing was refused", self._nothing_refused)
        self._check("uroce-ctl", self._shown)
        self._check("who may", self._rights)
        self._check(f"{KILLS} kills", self._kills)
        kills = DIRECT_KILLS if self._report.complete else FEW_DIRECT_KILLS
        self._check(f"{kills} kills of programs with a direct channel", self._direct_kills, kills)
        for attack in ("lie", "words", "rubbish", "holes", "doorbells", "hold", "stay"):
            self._check(f"a hostile peer: {attack}", self._hostile_peer, attack)
        self._check("a hostile client", self._hostile)
        self._check("a user takes all descriptors", self._greedy, "descriptors")
        self._check("a user takes all numbers", self._greedy, "numbers")
        self._check("everything comes back", self._comes_back)
        self._check("uroced is killed", self._owner_killed)
        for place in ("isolated", "engines"):
            self._check(f"uroced is killed: {place}: an event tells", self._owner_killed_event, place)

    def _side(self, place):
        address = ADDRESSES.get(place, "10.9.7.1")
        if place not in self._indices:
            self._indices[place] = gid_index(gids(self._host(place), DEVICE), address)
        return Side(self._host(place), DEVICE, "127.0.0.1" if place == "nobody" else address, self._indices[place])

    def _run(self, program, server, client):
        run_pair(program, self._side(server), self._side(client), self._next_port())

    def _pauses(self, server, client):
        """A server gets no CPU for longer than all retries take. Packets wait for it in its ring, so nothing fails."""
        program = PerfTest("ib_write_bw", ["-s", "64", "-t", "4", "-D", str(PAUSE_SECONDS + 1)])
        sides, port = (self._side(server), self._side(client)), self._next_port()
        before = self._owner.status()["handed_over"]
        processes = [sides[0].host.start(program.argv(sides[0], port))]
        try:
            expect(wait_until(lambda: processes[0].listens(port), SECONDS), "the server does not listen", *processes[0].story("server"))
            processes.append(sides[1].host.start(program.argv(sides[1], port, sides[0].address)))
            expect(wait_until(lambda: self._owner.status()["handed_over"] > before + 1000, SECONDS), "no traffic",
                   *processes[1].story("client"))
            os.killpg(processes[0].pid, signal.SIGSTOP)
            time.sleep(PAUSE_SECONDS)
            os.killpg(processes[0].pid, signal.SIGCONT)
            for process in reversed(processes):
                expect(process.wait(SECONDS) == 0, "it fails", *process.story("program"))
        finally:
            for process in processes:
                process.kill()

    def _past(self, server, client):
        """Only the first packets between two isolated programs pass through uroced, unless one wants that."""
        before = self._owner.status()
        self._run(PerfTest("ib_write_bw", ["-s", "65536"], 2000), server, client)
        self._run(PingPong([], 2000, 16384), server, client)
        after = self._owner.status()
        # 2,000 messages of 64 KiB have at least 16 packets each.
        handed_over = after["handed_over"] - before["handed_over"]
        expect(after["direct_channels"] > before["direct_channels"], "no direct channel", before, after)
        expect((handed_over > 32000) == (client == "indirect"), "the wrong way", before, after)

    def _nothing_refused(self):
        """Check, before any hostile client runs, that uroced has refused nothing."""
        status = self._owner.status()
        expect(status["refused"] == 0, "uroced has refused what is right", status)
        expect(status["handed_over"] and status["rx_packets"] and status["tx_packets"], "a way was not used", status)

    def _comes_back(self):
        expect(wait_until(self._owner.is_clean, SECONDS), "something does not come back", self._owner.status())

    def _start_pair(self, server, client, *options):
        """Start two programs that send until they are stopped."""
        port = self._next_port()
        argv = ["ib_send_bw", "-F", "-d", DEVICE, "-x", str(self._side(server).gid_index), *options, "-p", str(port)]
        processes = [self._host(server).start(argv)]
        try:
            if not wait_until(lambda: processes[0].listens(port), SECONDS):
                raise CheckFailed("the server does not listen", processes[0].story("server"))
            processes.append(self._host(client).start([*argv, "10.9.7.1"]))
        except CheckFailed:
            processes[0].kill()
            raise
        return processes

    def _is_under_way(self, processes):
        """Return True if uroced has counted packets of all programs. It sees only the first ones between two isolated
        programs, and of a receiver perhaps one."""
        using = {slot["pid"] for slot in self._owner.status()["slots"] if slot["tx_packets"] > 0}
        return all(process.pid in using for process in processes)

    def _shown(self):
        """Isolated programs show the same state of themselves as others."""
        processes = self._start_pair("isolated", "isolated", "-D", "60")
        try:
            expect(wait_until(lambda: self._is_under_way(processes), SECONDS), "no packets",
                   *processes[1].story("client"))

            def shown():
                return {qp["pid"] for qp in ctl("resource", "show", "qp")}
            expect(wait_until(lambda: {process.pid for process in processes} <= shown(), SECONDS),
                   "the queue pairs are not shown", shown())
        finally:
            for process in processes:
                process.kill()

    def _rights(self):
        """No user reaches the socket that shares memory. The mode of the other socket says who reaches that."""
        need_users()
        done = ask([*NOBODY, UROCE_RUN, "--socket", self._owner.socket, "--", "ibv_devinfo"], SECONDS)
        expect(done.returncode == 1, "nobody may attach", done.stdout, done.stderr)
        os.chmod(self._socket, 0o600)
        try:
            done = ask([*NOBODY, UROCE_RUN, f"--isolated={self._socket}", "--", "ibv_devinfo"], SECONDS)
            expect(done.returncode == 1, "the mode is not looked at", done.stdout, done.stderr)
        finally:
            os.chmod(self._socket, 0o666)

    def _kills(self):
        """The peer of a killed program gets an error; two other programs continue."""
        program = PingPong([], 2000, 16384)
        port = self._next_port()
        watchers = [self._host("isolated").start(program.argv(self._side("isolated"), port))]
        victims = []
        try:
            expect(wait_until(lambda: watchers[0].listens(port), SECONDS), "no server", *watchers[0].story("server"))
            watchers.append(self._host("attached").start(program.argv(self._side("attached"), port, "10.9.7.1")))
            for number in range(KILLS):
                victims = self._start_pair("isolated", ("isolated", "attached")[number % 2], "-D", "60")
                expect(wait_until(lambda: self._is_under_way(victims), SECONDS), "no packets",
                       *victims[1].story("client"))
                wait_until(lambda: False, self._rng.uniform(0, 0.1))
                victims[0].kill()
                expect(victims[1].wait(SECONDS) not in (None, 0), "its peer notices nothing",
                       *victims[1].story("client"))
            for process in watchers:
                expect(process.wait(SECONDS) == 0, "who watched is disturbed", *watchers[0].story("server"),
                       *watchers[1].story("client"))
            program.judge(watchers[0].output(), watchers[1].output())
        finally:
            for process in (*watchers, *victims):
                process.kill()

    def _direct_kills(self, kills):
        """Kill one of two programs at any moment around the beginning of their direct channel."""
        expect(wait_until(self._owner.is_clean, SECONDS), "something is left of earlier checks")
        before = self._owner.descriptors()
        for number in range(kills):
            made = self._owner.status()["direct_channels"]
            processes = self._start_pair("isolated", "isolated", "-D", "60", *(["-b"] * (number % 2)))
            try:
                if number % 3:
                    expect(wait_until(lambda: self._owner.status()["direct_channels"] > made, SECONDS),
                           "no direct channel", *processes[1].story("client"))
                wait_until(lambda: False, self._rng.uniform(0, 0.1))
                victim = self._rng.randrange(2)
                processes[victim].kill()
                if victim == 0:
                    expect(processes[1].wait(SECONDS) not in (None, 0), "its peer notices nothing",
                           *processes[1].story("client"))
            finally:
                for process in processes:
                    process.kill()
        expect(wait_until(self._owner.is_clean, SECONDS), "something does not come back", self._owner.status())
        expect(wait_until(lambda: self._owner.descriptors() <= before, SECONDS), "descriptors do not come back",
               self._owner.descriptors(), before)
        self._run(PingPong([], 100, 16384), "isolated", "isolated")

    def _hostile_peer(self, attack):
        """A program abuses its direct channel. The other one drops what is wrong, and goes on."""
        need_users()
        port = self._next_port()
        index = self._side("isolated").gid_index
        server = self._host("isolated").start(["ibv_ud_pingpong", "-d", DEVICE, "-g", str(index), "-p", str(port),
                                               "-s", "256", "-n", "100000000", *(["-e"] * (attack in SLEEPING))])
        try:
            expect(wait_until(lambda: server.listens(port), SECONDS), "no server", *server.story("server"))
            seed = self._rng.getrandbits(32)
            done = ask([*self._here.prefix, sys.executable, HOSTILE_PEER, self._socket, str(port), attack, str(seed)],
                       HOSTILE_SECONDS, nice=0)
            expect(done.returncode == 0, f"seed {seed}: it is not kept to its place", done.stderr,
                   *server.story("server"))
            expect(server.poll() is None, "the server has ended", *server.story("server"))
            if attack == "lie":
                counters = {item["pid"]: item for item in ctl("statistic", "show")}[server.pid]
                expect(counters["rx_refused"] == int(done.stdout), "not all is counted", counters, done.stdout)
        finally:
            server.kill()
        expect(wait_until(self._owner.is_clean, SECONDS), "something does not come back", self._owner.status())

    def _hostile(self):
        """A client that breaks every rule disturbs no other program, and leaves nothing behind."""
        need_users()
        expect(wait_until(self._owner.is_clean, SECONDS), "something is left of earlier checks")
        before = self._owner.descriptors()
        seed = self._rng.getrandbits(32)
        done = ask([sys.executable, HOSTILE, self._socket, str(seed)], HOSTILE_SECONDS, nice=0)
        expect(done.returncode == 0, f"seed {seed}: it is not kept to its place", done.stderr,
               *self._owner.process.story("uroced"))
        expect(self._owner.process.poll() is None, f"seed {seed}: uroced has ended",
               *self._owner.process.story("uroced"))
        expect(wait_until(self._owner.is_clean, SECONDS), f"seed {seed}: something does not come back",
               json.dumps(self._owner.status()))
        expect(wait_until(lambda: self._owner.descriptors() == before, SECONDS),
               f"seed {seed}: {self._owner.descriptors()} descriptors, not {before}")
        self._run(PingPong([], 100, 16384), "isolated", "isolated")

    def _greedy(self, what):
        """Let one user take as much as possible. Others still attach, and uroced has descriptors left."""
        need_users()
        expect(wait_until(self._owner.is_clean, SECONDS), "something is left of earlier checks")
        before = self._owner.descriptors()
        other = ["setpriv", "--reuid", "daemon", "--regid", "nogroup", "--clear-groups"]
        greedy = LocalHost(f"isolated-{what}", self._work_dir, []).start(
            [sys.executable, GREEDY, self._socket, str(self._owner.process.pid), what, str(2 * SECONDS)])
        try:
            expect(wait_until(lambda: "ready" in greedy.output(), SECONDS), "it gets nothing", *greedy.story("greedy"))
            expect(not wait_until(lambda: self._owner.descriptors() > DESCRIPTORS * 3 // 4, GREEDY_SECONDS),
                   "it has most descriptors", self._owner.descriptors())
            for host in [["--socket", self._owner.socket]] * 3 + [[f"--isolated={self._socket}"]] * (what == "numbers"):
                user = other if host[0].startswith("--isolated") else []
                done = ask([*self._here.prefix, *user, UROCE_RUN, *host, "--", "ibv_devinfo"], SECONDS)
                expect(done.returncode == 0, f"{host[0]}: nobody else can attach", done.stderr,
                       f"{self._owner.descriptors()} descriptors")
        finally:
            greedy.kill()
        expect(wait_until(self._owner.is_clean, SECONDS), "something does not come back", self._owner.status())
        expect(wait_until(lambda: self._owner.descriptors() <= before, SECONDS), "descriptors do not come back",
               self._owner.descriptors(), before)

    def _owner_killed_event(self, place):
        """A program that does nothing is told that its device has failed. The check before has killed uroced."""
        if self._owner.process.poll() is not None:
            self._owner.run()
        watch = self._host(place, "--explain").start(["stdbuf", "-oL", "ibv_asyncwatch", "-d", DEVICE])
        try:
            expect(wait_until(lambda: "async event FD" in watch.output(), SECONDS), "ibv_asyncwatch does not start",
                   *watch.story("ibv_asyncwatch"))
            self._owner.process.kill()
            expect(wait_until(lambda: "IBV_EVENT_DEVICE_FATAL" in watch.output(), END_SECONDS), "no event",
                   *watch.story("ibv_asyncwatch"))
            for why in (r"IBV_EVENT_DEVICE_FATAL of \w+: uroced, which owns its port, has ended",
                        r"IBV_EVENT_PORT_ERR of \w+: its port has no link"):
                expect(wait_until(lambda why=why: re.search(why, watch.output()), SECONDS), "no reason", why,
                       *watch.story("ibv_asyncwatch"))
        finally:
            watch.kill()
            self._owner.process.kill()

    def _owner_killed(self):
        """The programs get an error, and do not hang."""
        processes = self._start_pair("isolated", "isolated", "-n", "100000000")
        try:
            expect(wait_until(lambda: self._is_under_way(processes), SECONDS), "no packets",
                   *processes[1].story("client"))
            self._owner.process.kill()
            for process in processes:
                expect(process.wait(END_SECONDS) not in (None, 0), "a program does not notice",
                       *process.story("program"))
        finally:
            for process in processes:
                process.kill()
            self._owner.process.kill()
