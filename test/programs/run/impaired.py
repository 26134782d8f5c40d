# SPDX-License-Identifier: BSD-3-Clause
"""Ports with a bad network in front (--impair): every kind of damage, with verified data, over memif and veth, and
under programs of an impaired uroced."""

import itertools
import json
import os
import subprocess

from harness.noticing import Notice
from harness.process import LocalHost, Namespace, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN, PerfTest, PingPong, Side, gid_index, gids, run_pair
from programs.share.share import Uroced

TESTROCE = os.path.join(os.path.dirname(UROCE_RUN), "testroce")
PORT = 28000
SECONDS = 60
MESSAGES = 400  # of each mode: some 3,000 packets
ALL_MESSAGES = 1500  # for complete runs

# Each kind of damage, and the counters that must then be more than 0.
DAMAGES = {
    "loss=0.01": ["lost"],
    "loss=0.02,burst=8": ["lost"],
    "corrupt=0.01": ["corrupted"],
    "dup=0.02": ["duplicated"],
    "reorder=0.02,depth=50": ["reordered"],
    "ce=0.2": ["marked"],
    "delay=50us": [],
    "rate=500M,limit=16": ["overflowed"],
    "loss=0.005,corrupt=0.002,dup=0.01,reorder=0.01,ce=0.1,delay=20us,seed=7":
        ["lost", "corrupted", "duplicated", "reordered", "marked"],
}
# Retries last 4 s instead of half a second. Other groups of checks use the CPUs, and a peer may get none for longer than that.
PATIENT = ["-u", "17"]
LOSSY = (PerfTest("ib_send_bw", ["-e", *PATIENT], 500), PerfTest("ib_write_lat", PATIENT, 1000),
         PerfTest("ib_read_bw", PATIENT, 500), PerfTest("ib_send_bw", PATIENT, 1000))
# A READ asks for many packets with one, so it takes many READs until some requests are lost.
LONG = (PerfTest("ib_write_bw", ["-s", "65536", *PATIENT], 500), PerfTest("ib_read_bw", ["-s", "4096", *PATIENT], 5000),
        PerfTest("ib_send_bw", ["-s", "65536", *PATIENT], 500))
ALGORITHMS = tuple(itertools.product(("none", "dcqcn", "swift"), ("no", "yes")))
FEW_ALGORITHMS = (("none", "yes"), ("dcqcn", "no"), ("swift", "yes"))
WIRES = ("memif", "veth")
DIRECT_DAMAGES = ("loss=0.01", "corrupt=0.01", "dup=0.02", "reorder=0.02,depth=50")
MODES = (["--mode", "write", "--size", "30000", "--depth", "8"],
         ["--mode", "read", "--size", "30000", "--depth", "8"],
         ["--mode", "send", "--size", "5000", "--depth", "16", "--qps", "3"],
         ["--mode", "atomic"])
WRONG = ("loss=2", "los=0.1", "delay=5", "burst=3", "loss=0.1,loss=0.1", "")


class ImpairedTest:
    """All checks; each damage is at one end's port, in both directions."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "impaired")
        os.mkdir(self._work_dir)
        os.chmod(self._work_dir, 0o755)
        self._spaces = [Namespace(f"impaired{number}") for number in range(2)]
        veth_pair(*self._spaces, ("10.9.8.1", "10.9.8.2"))
        self._port = PORT
        self._names = 0
        self._messages = ALL_MESSAGES if report.complete else MESSAGES
        self._socket = None

    def _check(self, name, function, *args):
        self._report.check(f"impaired: {name}", function, *args)

    def run_all(self):
        for wire in WIRES:
            self._measure_all(wire, DAMAGES)
        # The last acknowledgement of ibv_rc_pingpong may get lost after its sender has ended, and then the other side
        # fails. perftest's sides wait for each other.
        for algorithm, sack in (ALGORITHMS if self._report.complete else FEW_ALGORITHMS):
            self._check(f"memif: --cc {algorithm} --sack {sack}", self._algorithm, algorithm, sack)
        for program in LOSSY if self._report.complete else LOSSY[::2]:
            self._check(f"veth: loss=0.01 at both ends: {program.name}", self._programs, program, "loss=0.01")
        for program in LONG if self._report.complete else LONG[1:]:
            self._check(f"veth: selective acknowledgements: {program.name}", self._told, program)
        self._check("veth: no selective acknowledgements", self._untold)
        self._check("veth: delay=2ms,reorder=0.05, asleep", self._programs, PingPong(["-e"], 50, 16384),
                    "delay=2ms,reorder=0.05")
        self._shared()
        self._check("wrong arguments", self._wrong)

    @staticmethod
    def _server(wire):
        """The server's address. Of an attached client the server is beyond the veth."""
        return "10.9.8.2" if wire == "attached" else "10.9.8.1"

    def _measure_all(self, wire, damages):
        server = self._testroce(wire, 0, ["--listen", f"{self._server(wire)}:{PORT}"])
        try:
            if not wait_until(lambda: server.listens(PORT), SECONDS):
                self._report.fail(f"impaired: {wire}: a server", server.output())
                return
            for number, (damage, counters) in enumerate(damages.items()):
                if not self._report.complete and wire in WIRES and (number + WIRES.index(wire)) % 2 and "," not in damage:
                    continue
                self._check(f"{wire}: {damage or 'through uroced'}", self._damage, wire, damage, counters)
        finally:
            server.kill()

    def _wire(self, wire, number, damage):
        """Options of a port; the damage in the two ways to say it."""
        option = ["--impair", damage] if damage else []
        if wire == "veth":
            return ["--netdev", f"veth{number}", *option]
        if wire == "direct" or (wire == "attached" and number == 1):
            return ["--socket", self._socket, *option]
        if wire == "attached":
            return ["--netdev", "veth1"]
        role = ("server", "client")[number]
        port = f"net_memif0,socket={self._work_dir}/memif.sock,role={role},id=0"
        return ["--port", f"impair,{damage},next={port}" if damage else port, "--ip", f"10.9.9.{number + 1}/24"]

    def _host(self, number, *more):
        self._names += 1
        return LocalHost(f"impaired-{self._names}", self._work_dir, [*self._spaces[number].prefix, *more],
                         number % os.cpu_count())

    def _testroce(self, wire, number, options, damage=None):
        host = self._host({"direct": 0, "attached": 1 - number}.get(wire, number))
        return host.start([TESTROCE, *self._wire(wire, number, damage), *options])

    def _measure(self, wire, damage, options):
        """Return what a client prints about one test."""
        path = os.path.join(self._work_dir, "result.json")
        client = self._testroce(wire, 1, ["--connect", f"{self._server(wire)}:{PORT}", *options, "--verify", "--messages",
                                          str(self._messages), "--json", path], damage)
        status = client.wait(SECONDS)
        story = client.story("testroce")
        client.kill()
        if status != 0:
            raise CheckFailed("testroce hangs" if status is None else f"exit {status}", story)
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def _damage(self, wire, damage, counters):
        seen = {}
        for options in MODES:
            result = self._measure(wire, damage, options)
            if result["wrong"] or result["messages"] < self._messages:
                raise CheckFailed(f"messages are wrong or missing: {options}", [str(result)])
            for name, value in result.items():
                if name.startswith("impair_"):
                    seen[name] = seen.get(name, 0) + value
        if set(seen) != {f"impair_{name}" for name in counters}:
            raise CheckFailed("the damage differs from the setting", [str(seen)])

    def _algorithm(self, algorithm, sack):
        """Each congestion control, with and without selective acknowledgements, where packets are marked, lost and late."""
        both = ["--cc", algorithm, "--sack", sack]
        server = self._testroce("memif", 0, ["--listen", f"{self._server('memif')}:{PORT}", *both])
        try:
            if not wait_until(lambda: server.listens(PORT), SECONDS):
                raise CheckFailed("no server", server.story("testroce"))
            for options in MODES[:3]:
                result = self._measure("memif", "loss=0.005,ce=0.1,reorder=0.01,delay=20us", [*options, *both])
                if result["wrong"] or result["messages"] < self._messages:
                    raise CheckFailed(f"messages are wrong or missing: {options}", [str(result)])
        finally:
            server.kill()

    def _programs(self, program, damage, *options):
        self._port += 1
        run_pair(program, *(self._side(number, [UROCE_RUN, *self._wire("veth", number, damage), *options, "--"])
                            for number in range(2)), self._port)

    def _notice(self, run):
        """Return what each end has sent meanwhile, by its address. Each end's interface shows what the other end sends."""
        notices = [Notice(space, self._work_dir, f"veth{number}") for number, space in enumerate(self._spaces)]
        try:
            run()
            return {address: host for notice in notices for address, host in notice.end().items()}
        finally:
            for notice in notices:
                notice.kill()

    def _told(self, program):
        """By default the ends learn from each other's first answers that they are uroce: then requests and answers have signs,
        and the side that lacks packets tells of others."""
        # swift holds the next long READ back where packets get lost: then nothing comes behind a lost request.
        self._must_tell(self._notice(lambda: self._programs(program, "loss=0.02", "--cc", "none")))

    def _untold(self):
        """No end says anything if it shall not."""
        seen = self._notice(lambda: self._programs(LONG[0], "loss=0.02", "--sack", "no"))
        if len(seen) != 2 or any(host["signed"] or host["manufacturer"] for host in seen.values()):
            raise CheckFailed("a sign although it is switched off", [str(seen)])

    @staticmethod
    def _must_tell(seen):
        if len(seen) != 2 or any(host["signed"] == 0 for host in seen.values()):
            raise CheckFailed("an end does not say that it takes part", [str(seen)])
        if sum(host["manufacturer"] for host in seen.values()) == 0:
            raise CheckFailed("no selective acknowledgement was sent", [str(seen)])

    def _side(self, number, prefix):
        address = f"10.9.8.{number + 1}"
        index = gid_index(gids(self._host(number, *prefix), DEVICE), address)
        return Side(self._host(number, *prefix), DEVICE, address, index)

    def _shared(self):
        """The port of uroced is impaired, and its programs know nothing of it."""
        isolated = f"{self._work_dir}/isolated.sock"
        owner = Uroced(self._spaces[0], self._work_dir, "veth0", f"--isolated={isolated}", "--impair",
                       "loss=0.01,dup=0.01,reorder=0.01,corrupt=0.005,delay=30us", "--file-prefix",
                       f"uroce-impaired-{os.getpid()}", name="impaired")
        if not self._report.require("impaired: uroced starts", owner.run):
            return
        self._socket = owner.socket
        ways = {"attached": ["--socket", owner.socket], "isolated": [f"--isolated={isolated}"]}
        try:
            programs = (PerfTest("ib_write_lat", PATIENT, 500), PerfTest("ib_send_bw", PATIENT, 200),
                        PerfTest("ib_read_bw", PATIENT, 200))
            for number, (way, options) in enumerate(ways.items()):
                for program in programs if self._report.complete else programs[number + 1:number + 2]:
                    self._check(f"under uroced: {way}: {program.name}", self._beyond, program, options)
            self._measure_all("attached", {"": []})
            # Between two programs of uroced packets do not pass its port. These have no ICRC.
            self._measure_all("direct", {damage: DAMAGES[damage] for damage in DIRECT_DAMAGES})
            self._check("uroced counts the damage", self._counted, owner)
            self._check("uroced gets all buffers back", self._clean, owner)
        finally:
            owner.process.kill()

    def _beyond(self, program, options):
        self._port += 1
        run_pair(program, self._side(0, [UROCE_RUN, *options, "--"]),
                 self._side(1, [UROCE_RUN, "--netdev", "veth1", "--"]), self._port)

    @staticmethod
    def _counted(owner):
        status = owner.status()
        missing = [name for name in ("lost", "duplicated", "reordered", "corrupted") if not status[f"impair_{name}"]]
        if missing:
            raise CheckFailed(f"there are no counters for {missing}", [str(status)])

    @staticmethod
    def _clean(owner):
        if not wait_until(owner.is_clean, SECONDS):
            raise CheckFailed("uroced did not get everything back", [str(owner.status())])

    @staticmethod
    def _wrong():
        for damage in WRONG:
            done = subprocess.run([UROCE_RUN, "--netdev", "lo", "--impair", damage, "true"], capture_output=True,
                                  text=True, timeout=SECONDS, check=False)
            if done.returncode == 0 or done.stderr.count("\n") != 1 or "impair" not in done.stderr:
                raise CheckFailed(f"'{damage}' is not refused in one line", [str(done.returncode), done.stderr])
