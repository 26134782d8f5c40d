# SPDX-License-Identifier: BSD-3-Clause
"""One port for many programs: an uroced on a veth, programs that attach to it, and a peer at the other end."""

import json
import os
import signal
import threading

from harness.process import LocalHost, Namespace, Process, ask, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN, PerfTest, PingPong, Side, gid_index, gids, run_pair
from programs.run.wires import VERBS

UROCED = os.path.join(os.path.dirname(UROCE_RUN), "uroced")
FIRST_PORT = 24000
SECONDS = 30
LOCK_PROTOCOL = "88b5"
CROWD, SMALL_CROWD = 200, 40  # programs that wait, more than have packet sockets
KILLS_AT_ONCE = 4
VLAN = 5
KILL_SPAN_SECONDS = 0.6
CROWD_SECONDS = 60
SOCKETS = 32  # programs that have a packet socket
END_SECONDS = 20  # for programs to notice the end of uroced


class Uroced:
    """A running uroced, or one that is expected to end by itself. Without `netdev` the options name the port."""

    def __init__(self, namespace, work_dir, netdev, *options, name="uroced"):
        self.socket = f"{work_dir}/{name}.sock"
        self._work_dir = work_dir
        self.argv = [*namespace.prefix, UROCED, *(["--netdev", netdev] if netdev else []), "--socket",
                     self.socket, *options]
        self.process = None

    def start(self):
        """Start another uroced."""
        return Process(self.argv, os.path.join(self._work_dir, "uroced.log"))

    def run(self):
        """Start it, and wait until it answers."""
        self.process = self.start()
        if not wait_until(lambda: self.status() is not None or self.process.poll() is not None, SECONDS) \
                or self.process.poll() is not None:
            raise CheckFailed("uroced does not start", self.process.story("uroced"))

    def status(self):
        """Return its status, or None."""
        done = ask([UROCED, "--status", "--socket", self.socket], SECONDS)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def _has_started_dpdk(self):
        prefix = self.argv[self.argv.index("--file-prefix") + 1]
        with open(f"/proc/{self.process.pid}/net/unix", encoding="utf-8") as file:
            return any(line.endswith(f"/{prefix}/dpdk_telemetry.v2\n") for line in file)

    def descriptors(self):
        """Return how many descriptors it has. DPDK opens some after uroced serves programs: wait for them."""
        if not wait_until(self._has_started_dpdk, SECONDS):
            raise CheckFailed("DPDK does not start", self.process.story("uroced"))
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def is_clean(self):
        """Return True if everything that processes had has come back."""
        status = self.status()
        return status and not status["slots"] and not status["blocks_used"] and not status["groups"] \
            and not status["cm_ports"] \
            and not status["buffers_held"] and status["buffers_free"] == status["buffers"]


class ShareTest:
    """All checks of sharing. Programs are servers and clients, attached or at the other end of the veth."""

    name = "share"
    kills, few_kills = 200, 24

    def __init__(self, report, work_dir, rng, owner_options=()):
        self._report = report
        if not report.complete:
            self.kills = self.few_kills
        self._work_dir = work_dir
        self._rng = rng
        self._port = FIRST_PORT
        self._lock = threading.Lock()
        self._options = []
        self._indices = {}  # by place
        here, there = Namespace(f"{self.name}0"), Namespace(f"{self.name}1")
        veth_pair(here, there, ("10.9.6.1", "10.9.6.2"))
        self._here = here
        self._owner = Uroced(here, work_dir, "veth0", *owner_options)
        self._names = 0
        self._there = there

    def _host(self, place, *more):
        """Return a place that runs programs: attached ("here"), or at the veth's other end; each has its own log. `more`
        is a command that executes the program."""
        with self._lock:
            self._names += 1
            name = f"{self.name}-{self._names}"
        prefix = [*self._here.prefix, UROCE_RUN, "--socket", self._owner.socket, *self._options, "--"]
        if place == "beyond":
            prefix = [*self._there.prefix, UROCE_RUN, "--netdev", "veth1", *self._options, "--"]
        return LocalHost(name, self._work_dir, [*prefix, *more])

    def _next_port(self):
        with self._lock:
            self._port += 1
            return self._port

    def _check(self, name, function, *args):
        self._report.check(f"{self.name}: {name}", function, *args)

    def run_all(self):
        if not self._report.require("share: uroced starts", self._owner.run):
            return
        complete = self._report.complete
        for service in ("rc", "uc", "ud", "srq"):
            program = PingPong([], 500, 2048 if service == "ud" else 16384, service)
            self._check(f"hand-over: {program.name}", self._run, program, "here", "here")
        self._check("hand-over: sleeping", self._run, PingPong(["-e"], 500, 16384), "here", "here")
        for verb in VERBS:
            for form in ("bw", "lat") if complete else ("bw",):
                self._check(f"hand-over: ib_{verb}_{form}", self._run, PerfTest(f"ib_{verb}_{form}", [], 500),
                            "here", "here")
        for number, (server, client) in enumerate((("here", "beyond"), ("beyond", "here"))):
            way = f"{server} to {client}"
            self._check(f"{way}: ibv_rc_pingpong -c", self._run, PingPong([], 500, 65536), server, client)
            self._check(f"{way}: sleeping", self._run, PingPong(["-e"], 500, 16384), server, client)
            for verb in VERBS if complete else VERBS[number::2]:
                self._check(f"{way}: ib_{verb}_bw", self._run, PerfTest(f"ib_{verb}_bw", [], 200), server,
                            client)
        self._check("packets were handed over", self._all_ways)
        self._check_ways()
        self._check("a VLAN", self._vlan)
        self._check("everything comes back", self._comes_back)
        self._check("16 programs at once", self._many)
        crowd = CROWD if complete else SMALL_CROWD
        self._check(f"{crowd} programs at once", self._crowd, crowd)
        self._check("kills", self._kills)
        for place in ("here", "beyond"):
            self._check(f"a stopped program, its peer {place}", self._stopped, place)
        self._check("a second uroced is refused", self._second)
        for options, place in (([], "here"), ([], "beyond"), (["-e"], "here"), (["-e"], "beyond")):
            if complete or bool(options) == (place == "here"):
                self._check(f"uroced is killed, ib_send_bw {' '.join(options)}, its peer {place}", self._owner_killed,
                            options, place)
        self._check("SIGTERM", self._terminated)

    def _hosts(self, *where):
        return [self._host(place) for place in where]

    def _run(self, program, server, client):
        port = self._next_port()
        hosts = self._hosts(server, client)
        address = "10.9.6.1" if server == "here" else "10.9.6.2"
        sides = []
        for host, place in zip(hosts, (server, client)):
            if place not in self._indices:
                self._indices[place] = gid_index(gids(host, DEVICE), "10.9.6.1" if place == "here" else "10.9.6.2")
            sides.append(Side(host, DEVICE, address, self._indices[place]))
        run_pair(program, sides[0], sides[1], port)

    def _all_ways(self):
        status = self._owner.status()
        if not all(status[way] for way in ("handed_over", "direct_channels")):
            raise CheckFailed("a path was not used", [str(status)])
        if status["refused"]:
            raise CheckFailed("uroced refused a request", [str(status)])

    def _past_uroced(self):
        """Only the first packets between two programs pass through uroced."""
        before = self._owner.status()
        self._run(PerfTest("ib_write_bw", ["-s", "65536"], 2000), "here", "here")
        after = self._owner.status()
        # 2,000 messages have at least 16 packets each, and each lost packet is retransmitted once.
        if after["direct_channels"] == before["direct_channels"] or after["handed_over"] - before["handed_over"] > 16000:
            raise CheckFailed("packets go through uroced", [str(before), str(after)])

    def _packet_sockets(self):
        """Programs with a packet socket send and receive by themselves, and leave nothing behind."""
        before = self._owner.status()
        for server, client in (("here", "beyond"), ("beyond", "here")):
            self._run(PerfTest("ib_write_bw", ["-s", "65536"], 1000), server, client)
            self._run(PingPong([], 200, 4096, "ud"), server, client)
        after = self._owner.status()
        # Each message has at least 16 packets. uroced still gets answers to address resolution.
        if any(after[way] - before[way] > 1000 for way in ("rx_packets", "tx_packets")):
            raise CheckFailed("packets of the network go through uroced", [str(before), str(after)])
        self._no_sockets_left(self._owner)

    def _no_sockets_left(self, owner):
        """The only packet socket in uroced's network namespace is its own, beside the one that is its lock (pmd/netdev/manager.c)."""
        def count():
            protocols = [line.split()[3] for line in self._here.run("cat", "/proc/net/packet").splitlines()[1:]]
            return sum(protocol != LOCK_PROTOCOL for protocol in protocols)
        if not wait_until(lambda: count() == 1, SECONDS):
            raise CheckFailed("packet sockets are left", [str(owner.status()), self._here.run("cat", "/proc/net/packet")])

    def _uplink(self, options, uplink):
        """Programs get their packets whether they have packet sockets or not, and uroced tells which they have."""
        owner = self._owner
        self._owner = Uroced(self._here, self._work_dir, "veth0", *options, "--file-prefix", "uroced4",
                             name="uroced-uplink")
        try:
            self._owner.run()
            port = self._next_port()
            server = self._host("here").start(["ibv_rc_pingpong", "-d", DEVICE, "-p", str(port)])
            try:
                if not wait_until(lambda: server.listens(port), SECONDS):
                    raise CheckFailed("the server does not listen", server.story("server"))
                found = {slot["uplink"] for slot in self._owner.status()["slots"]}
            finally:
                server.kill()
            if found != {uplink}:
                raise CheckFailed("the program has another uplink", [str(found)])
            before = self._owner.status()["rx_packets"]
            self._run(PingPong([], 200, 16384), "here", "beyond")
            self._run(PerfTest("ib_send_bw", ["-s", "65536"], 200), "beyond", "here")
            if (self._owner.status()["rx_packets"] - before > 100) != (uplink == "ring"):
                raise CheckFailed("the packets took another path", [str(self._owner.status())])
            self._comes_back()
        finally:
            self._owner.process.kill()
            self._owner = owner

    def _hand_over(self, how):
        """Check the other values of the setting."""
        owner = self._owner
        self._owner = Uroced(self._here, self._work_dir, "veth0", "--hand-over", how, "--file-prefix", "uroced2",
                             name=f"uroced-{how}")
        try:
            self._owner.run()
            self._run(PingPong([], 500, 16384), "here", "here")
            if bool(self._owner.status()["direct_channels"]) != (how == "checked"):
                raise CheckFailed("the packets took another path", [str(self._owner.status())])
            self._comes_back()
        finally:
            self._owner.process.kill()
            self._owner = owner

    def _vlan(self):
        """The kernel removes tags, and the driver cannot insert them again into shared buffers."""
        owner = Uroced(self._here, self._work_dir, None, "--port", "net_af_packet0,iface=veth0", "--ip",
                       f"10.9.5.1/24@{VLAN}", "--file-prefix", "uroced3", name="uroced-vlan")
        attached = LocalHost("share-vlan-here", self._work_dir,
                             [*self._here.prefix, UROCE_RUN, "--socket", owner.socket, "--"])
        beyond = LocalHost("share-vlan-beyond", self._work_dir,
                           [*self._there.prefix, UROCE_RUN, "--port", "net_af_packet0,iface=veth1", "--ip",
                            f"10.9.5.2/24@{VLAN}", "--"])
        owner.run()
        try:
            sides = [Side(host, DEVICE, "10.9.6.1", gid_index(gids(host, DEVICE), f"10.9.5.{number}"))
                     for number, host in enumerate((attached, beyond), 1)]
            run_pair(PingPong([], 200, 16384), *sides, self._next_port())
        finally:
            owner.process.kill()

    def _comes_back(self):
        if not wait_until(self._owner.is_clean, SECONDS):
            raise CheckFailed("uroced did not get everything back", [str(self._owner.status())])

    def _many(self):
        """Run eight pairs, half of them across the veth."""
        program = PingPong([], 300, 16384)
        failures = []

        def run(server):
            try:
                self._run(program, server, "here")
            except CheckFailed as failure:
                failures.append(failure)
        threads = [threading.Thread(target=run, args=("beyond" if i % 2 else "here",)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def _crowd(self, crowd):
        """Programs that are attached and wait disturb no others, and nothing of them is left."""
        waiting = [self._host("here").start(["ibv_rc_pingpong", "-d", DEVICE, "-p", str(self._next_port())])
                   for _ in range(crowd)]
        try:
            if not wait_until(lambda: self._owner.status()["processes"] == crowd, CROWD_SECONDS):
                raise CheckFailed("not all programs attach", [str(self._owner.status()), *waiting[-1].story("last")])
            if self._owner.status()["packet_sockets"] != SOCKETS:
                raise CheckFailed("other programs have packet sockets", [str(self._owner.status())])
            self._many()
            # These are attached after the others, so they may hold few buffers: a receiver must return what it empties.
            for verb in ("write", "send"):
                self._run(PerfTest(f"ib_{verb}_bw", ["-s", "65536"], 1000), "here", "here")
        finally:
            for process in waiting:
                process.kill()
        self._comes_back()
        self._no_sockets_left(self._owner)

    def _check_ways(self):
        """Check by which ways packets leave, as uroced is told."""
        self._check("packets go past uroced", self._past_uroced)
        self._check("packets of the network go past uroced", self._packet_sockets)
        for options, uplink in ((("--uplink", "ring"), "ring"), (("--impair", "delay=1us"), "ring"),
                                (("--uplink", "socket"), "socket")):
            self._check(f"uplink: {' '.join(options)}", self._uplink, options, uplink)
        for how in ("checked", "owner"):
            self._check(f"hand-over: {how}", self._hand_over, how)

    def _bystanders(self, action):
        """Run verified traffic, by hand-over and across the veth, again and again during the action."""
        over = threading.Event()
        failures, rounds = [], [0, 0]

        def run(number, server):
            while not over.is_set() and not failures:
                try:
                    self._run(PingPong([], 200, 16384), server, "here")
                    rounds[number] += 1
                except CheckFailed as failure:
                    failures.append(failure)
        threads = [threading.Thread(target=run, args=(number, server))
                   for number, server in enumerate(("here", "beyond"))]
        for thread in threads:
            thread.start()
        try:
            action()
        finally:
            over.set()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]
        if not all(rounds):
            raise CheckFailed("other programs make no progress", [str(rounds)])

    def _victims(self):
        """Kill servers and clients at any moment, from their start to the middle of their traffic."""
        processes = []
        for number in range(KILLS_AT_ONCE // 2):
            port = self._next_port()
            verb = self._rng.choice(VERBS)
            options = ["-F", "-d", DEVICE, "-D", "60", "-p", str(port)]
            hosts = self._hosts("here", "here" if number else self._rng.choice(("here", "beyond")))
            processes.append((hosts[0], [f"ib_{verb}_bw", *options]))
            processes.append((hosts[1], [f"ib_{verb}_bw", *options, "10.9.6.1"]))
        return processes

    def _kill_some(self):
        killed = 0
        while killed < self.kills:
            processes = [host.start(argv) for host, argv in self._victims()]
            for process in self._rng.sample(processes, len(processes)):
                wait_until(lambda: False, self._rng.uniform(0, KILL_SPAN_SECONDS / 2))
                process.kill()
                killed += 1

    def _kills(self):
        made = self._owner.status()["direct_channels"]
        self._bystanders(self._kill_some)
        self._comes_back()
        self._no_sockets_left(self._owner)
        status = self._owner.status()
        if status["direct_channels"] - made < self.kills // 8:
            raise CheckFailed("too few programs with a direct channel were killed", [str(status)])
        if status["attached"] < self.kills // 2:
            raise CheckFailed("too few attached programs were killed", [str(status)])
        if status["attached"] != status["ended"] or status["refused"]:
            raise CheckFailed("uroced's counts are wrong", [str(status)])

    def _stopped(self, place):
        """A stopped program loses only its own packets."""
        port = self._next_port()
        hosts = self._hosts("here", place)
        argv = ["ib_send_bw", "-F", "-d", DEVICE, "-D", "60", "-p", str(port)]
        server = hosts[0].start(argv)
        try:
            if not wait_until(lambda: server.listens(port), SECONDS):
                raise CheckFailed("the server does not listen", server.story("server"))
            client = hosts[1].start([*argv, "10.9.6.1"])
            try:
                self._wait_for_traffic(client, place)
                os.killpg(server.pid, signal.SIGSTOP)
                self._bystanders(lambda: client.wait(SECONDS))
                if client.poll() in (None, 0):
                    raise CheckFailed("the peer of a stopped program got no error", client.story("client"))
            finally:
                client.kill()
        finally:
            server.kill()
        self._comes_back()

    def _traffic(self, place):
        """Return how many packets direct channels have carried; or the interface, for a peer at the veth's other end."""
        if place == "here":
            return self._owner.status()["direct_packets"]
        return int(self._here.run("cat", "/sys/class/net/veth0/statistics/rx_packets"))

    def _wait_for_traffic(self, client, place):
        """Wait until this client has certainly sent packets."""
        before = self._traffic(place)
        if not wait_until(lambda: self._traffic(place) > before + 1000, SECONDS):
            raise CheckFailed("the client got no packets", client.story("client"))

    def _second(self):
        second = self._owner.start()
        if second.wait(SECONDS) in (None, 0):
            second.kill()
            raise CheckFailed("the second uroced runs")
        if not self._owner.status():
            raise CheckFailed("the first uroced is disturbed")

    def _owner_killed(self, options, place):
        """Programs end with an error and do not hang. The next uroced works as the first one did."""
        port = self._next_port()
        hosts = self._hosts("here", place)
        argv = ["ib_send_bw", *options, "-F", "-d", DEVICE, "-n", "100000000", "-p", str(port)]
        processes = [hosts[0].start(argv)]
        try:
            if not wait_until(lambda: processes[0].listens(port), SECONDS):
                raise CheckFailed("the server does not listen", processes[0].story("server"))
            processes.append(hosts[1].start([*argv, "10.9.6.1"]))
            self._wait_for_traffic(processes[1], place)
            self._owner.process.kill()
            for process in processes:
                if process.wait(END_SECONDS) in (None, 0):
                    raise CheckFailed("a program did not notice that uroced ended", process.story("program"))
        finally:
            for process in processes:
                process.kill()
            self._owner.process.kill()
            self._owner.run()
        self._run(PingPong([], 200, 16384), "here", "beyond")
        self._comes_back()

    def _terminated(self):
        if self._owner.process.poll() is not None:
            raise CheckFailed("uroced does not run", self._owner.process.story("uroced"))
        os.killpg(self._owner.process.pid, signal.SIGTERM)
        if self._owner.process.wait(SECONDS) != 0:
            raise CheckFailed("uroced did not exit with 0", self._owner.process.story("uroced"))
        if os.path.exists(self._owner.socket):
            raise CheckFailed("uroced left its socket")
