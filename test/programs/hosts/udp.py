# SPDX-License-Identifier: BSD-3-Clause
"""RoCE by an ordinary UDP socket (--udp), as a user without any right: on one network and through a router, among each other and
with a packet socket, which sees and checks what a NIC would. And an endpoint by libroce, among its like and with uroce."""

import os
import shutil

from harness.process import NOBODY, LocalHost, Namespace, ask, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_CTL, UROCE_RUN, PerfTest, PingPong, Side, gid_index, gids, run_pair
from programs.cm.rdmacm import CmRunning
from programs.share.operate import expect
from programs.share.share import Uroced

FIRST_PORT = 31200
SECONDS = 40
END_SECONDS = 20
MTU = 9000
TESTROCE = os.path.join(os.path.dirname(UROCE_RUN), "testroce")
EXAMPLES = os.path.join(os.path.dirname(UROCE_RUN), "examples")
# Each host's interface and addresses. The router has two; a packet between the others passes through it.
NEAR = {"ipv4": "10.9.41.1", "ipv6": "fd09:41::1"}
ROUTER = {"ipv4": "10.9.41.2", "ipv6": "fd09:41::2"}
BEHIND = {"ipv4": "10.9.42.2", "ipv6": "fd09:42::2"}
FAR = {"ipv4": "10.9.42.1", "ipv6": "fd09:42::1"}
GROUPS = {"ipv4": "239.9.41.1", "ipv6": "ff15::941"}
PLACES = {"near": ("near0", NEAR), "router": ("near1", ROUTER), "far": ("far0", FAR)}


class UdpTest:
    """Three hosts in a row."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "udp")
        os.mkdir(self._work_dir)
        os.chmod(work_dir, 0o755)
        os.chmod(self._work_dir, 0o777)
        self._port = FIRST_PORT
        self._names = 0
        self._namespaces = {place: Namespace(f"udp-{place}") for place in PLACES}
        self._connect()
        self._owner = Uroced(self._namespaces["near"], self._work_dir, None, "--udp")
        self._owner.argv = [*self._namespaces["near"].prefix, *self._nobody(),
                            *self._owner.argv[len(self._namespaces["near"].prefix):]]

    def _connect(self):
        near, router, far = self._namespaces.values()
        for host, name, end in ((near, "near0", "near1"), (far, "far0", "far1")):
            host.run("ip", "link", "add", name, "mtu", str(MTU), "type", "veth", "peer", "name", end, "mtu", str(MTU), "netns",
                     router.name)
        for host, name, addresses in ((near, "near0", NEAR), (router, "near1", ROUTER), (router, "far1", BEHIND),
                                      (far, "far0", FAR)):
            host.run("ip", "link", "set", name, "up")
            host.run("ip", "addr", "add", f"{addresses['ipv4']}/24", "dev", name)
            host.run("ip", "-6", "addr", "add", f"{addresses['ipv6']}/64", "dev", name, "nodad")
        router.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
        for host, gateway in ((near, ROUTER), (far, BEHIND)):
            for address in gateway.values():
                host.run("ip", "route", "add", "default", "via", address)

    @staticmethod
    def _nobody():
        return NOBODY if os.geteuid() == 0 else []

    def _host(self, place, way="udp", *options):
        self._names += 1
        name = PLACES[place][0]
        how = {"udp": [*self._nobody(), UROCE_RUN, f"--udp={name}"], "default": [*self._nobody(), UROCE_RUN, "--udp"],
               "attached": [*self._nobody(), UROCE_RUN, "--socket", self._owner.socket],
               "netdev": [UROCE_RUN, "--netdev", name]}[way]
        return LocalHost(f"udp-{self._names}", self._work_dir, [*self._namespaces[place].prefix, *how, *options, "--"])

    def _side(self, place, way, family, *options):
        """Return a side. The programs find each other over IPv4 in any case."""
        host = self._host(place, way, *options)
        addresses = PLACES[place][1]
        return Side(host, DEVICE, addresses["ipv4"], gid_index(gids(host, DEVICE), addresses[family]))

    def _next_port(self):
        self._port += 1
        return self._port

    def _check(self, name, function, *args):
        self._report.check(f"udp: {name}", function, *args)

    def run_all(self):
        rc, ud = PingPong([], 300, 65536), PingPong([], 300, 2048, "ud")
        for family in ("ipv4", "ipv6"):
            for place in ("router", "far"):
                self._check(f"{rc.name}, {family}, to {place}", self._run, rc, "near", "udp", place, "udp", family)
            # It sends datagrams with a hop limit of 1.
            self._check(f"{ud.name}, {family}", self._run, ud, "near", "udp", "router", "udp", family)
            # Each checks the ICRCs of all that the other one sends.
            for server, client in (("udp", "netdev"), ("netdev", "udp")):
                self._check(f"{rc.name}, {family}, {server} to {client}", self._run, rc, "near", server, "far", client, family)
            self._check(f"rping, {family}", self._connect_by_cm, ["rping", "-s", "-C", "20", "-a", FAR[family]],
                        ["rping", "-c", "-C", "20", "-a", FAR[family]], "far", None)
            self._check(f"mckey, {family}", self._connect_by_cm, ["mckey", "-m", GROUPS[family], "-b", ROUTER[family]],
                        ["mckey", "-m", GROUPS[family], "-b", NEAR[family], "-s"], "router", "return status 0")
        for program, options in (("ib_write_bw", ["-s", "65536"]), ("ib_read_bw", ["-s", "65536"]), ("ib_send_lat", []),
                                 ("ib_atomic_bw", [])):
            self._check(program, self._run, PerfTest(program, options, 500), "near", "default", "far", "udp", "ipv4")
        for server, client in (("roce", "roce"), ("roce", "udp"), ("udp", "roce"), ("roce", "netdev")):
            self._check(f"WRITEs and READs, {server} to {client}", self._meet, server, client)
        self._check("testroce", self._testroce)
        self._check("a path with a smaller MTU than the interface's", self._small_path)
        self._check("one packet of a hundred is lost", self._lossy)
        self._check("the port is taken", self._taken)
        if shutil.which("tshark") is None:
            self._report.skip("udp: capture", "no tshark; config/setup.sh test")
        else:
            self._check("capture", self._capture)
        if not self._report.require("udp: uroced --udp", self._owner.run):
            return
        for server, client in (("attached", "udp"), ("attached", "attached")):
            self._check(f"uroced: {server} to {client}: {rc.name}", self._run, rc, "near", server,
                        "far" if client == "udp" else "near", client, "ipv4")
        self._check("uroced: everything comes back", self._comes_back)

    def _run(self, program, server, server_way, client, client_way, family):
        run_pair(program, self._side(server, server_way, family), self._side(client, client_way, family), self._next_port(),
                 SECONDS)

    def _connect_by_cm(self, server_argv, client_argv, server_place, words):
        with CmRunning() as running:
            server = running.serve(self._host(server_place), server_argv)
            client = running.start(self._host("near"), client_argv)
            running.expect(client, SECONDS, "client")
            running.expect(server, END_SECONDS, "server")
            if words and any(words not in process.output() for process in (server, client)):
                running.fail(f"a side does not say '{words}'")

    def _start_end(self, running, place, way, *options):
        """Start a program that meets another one: on uroce, or by libroce."""
        if way != "roce":
            return running.start(self._host(place, way), [os.path.join(EXAMPLES, "remote_write"), *options])
        self._names += 1
        host = LocalHost(f"udp-{self._names}", self._work_dir, [*self._namespaces[place].prefix, *self._nobody()])
        return running.start(host, [os.path.join(EXAMPLES, "roce_over_udp"), *options, PLACES[place][1]["ipv4"]])

    def _testroce(self):
        """The server by the interface that is named, the client by the one that leads to a default gateway."""
        port = self._next_port()
        with CmRunning() as running:
            far, near = (LocalHost(f"udp-testroce-{place}", self._work_dir,
                                   [*self._namespaces[place].prefix, *self._nobody(), TESTROCE]) for place in ("far", "near"))
            server = running.start(far, ["--udp=far0", "--listen", str(port), "--once"])
            if not wait_until(lambda: server.listens(port), SECONDS):
                running.fail("the server does not listen")
            client = running.start(near, ["--udp", "--connect", f"{FAR['ipv4']}:{port}", "--messages", "100", "--verify"])
            running.expect(client, SECONDS, "client")
            running.expect(server, END_SECONDS, "server")

    def _meet(self, server_way, client_way):
        """A program writes a megabyte into another one's memory and reads it back, and both verify it."""
        socket = os.path.join(self._work_dir, f"meet-{server_way}-{client_way}.sock")
        with CmRunning() as running:
            server = self._start_end(running, "near", server_way, "-s", socket)
            client = self._start_end(running, "far", client_way, socket)
            running.expect(client, SECONDS, "client")
            running.expect(server, END_SECONDS, "server")

    def _small_path(self):
        """The kernel drops what is too long for the path, and says so. --mtu helps."""
        router = self._namespaces["router"]
        router.run("ip", "link", "set", "far1", "mtu", "1500")
        try:
            program = PingPong([], 50, 16384)
            options = ["--mtu", "1500"]
            run_pair(program, self._side("near", "udp", "ipv4", *options), self._side("far", "udp", "ipv4", *options),
                     self._next_port(), SECONDS)
        finally:
            router.run("ip", "link", "set", "far1", "mtu", str(MTU))

    def _lossy(self):
        options = ["--impair", "loss=0.01"]
        run_pair(PingPong([], 200, 65536), self._side("near", "udp", "ipv4", *options),
                 self._side("far", "udp", "ipv4", *options), self._next_port(), SECONDS)

    def _taken(self):
        """The second program on a host is told that another one has the port."""
        with CmRunning() as running:
            running.serve(self._host("near"), ["rping", "-s", "-a", NEAR["ipv4"]])
            second = running.start(self._host("near"), ["ibv_devinfo"])
            if second.wait(SECONDS) == 0:
                running.fail("the second program has a device")
            if "UDP port 4791 is taken by" not in second.output():
                running.fail("it is not said that another program has the port")

    def _capture(self):
        """Packets of both directions are seen."""
        file = os.path.join(self._work_dir, "udp.pcapng")
        with CmRunning() as running:
            server = running.serve(self._host("near"), ["rping", "-s", "-a", NEAR["ipv4"]])
            running.start(self._host("far"), ["rping", "-c", "-a", NEAR["ipv4"], "-C", "1000000"])
            done = ask([UROCE_CTL, "-w", file, "-n", "50", "capture", "pid", str(server.pid)], SECONDS)
            if done.returncode != 0 or "only received" in done.stderr:
                running.fail(f"uroce-ctl fails, or says what is not true: {done.stderr}")
        done = ask(["tshark", "-n", "-r", file, "-T", "fields", "-e", "ip.src", "-Y", "infiniband"], SECONDS)
        expect(set(done.stdout.split()) == {NEAR["ipv4"], FAR["ipv4"]}, "not both directions", done.stdout, done.stderr)

    def _comes_back(self):
        status = self._owner.status()
        expect(status["rx_packets"] and status["tx_packets"], "uroced has moved no packets", status)
        if not self._owner.is_clean():
            raise CheckFailed("something does not come back", [str(status)])
