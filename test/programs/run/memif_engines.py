# SPDX-License-Identifier: BSD-3-Clause
"""Several engines of a device over memif, each with rings of its own; with DPDK's own driver at the other end, too."""

import contextlib
import os

from programs.run.engine_ports import EnginePortsTest, counter
from programs.hosts.guests import remove_primary
from harness.process import LocalHost, Process, wait_until
from harness.report import CheckFailed
from harness.tools import PerfTest, PingPong
from programs.run.wires import COMMAND_SECONDS, FIRST_PORT, TESTROCE

LISTEN_PORT = FIRST_PORT - 1
FEW_RINGS = "the other end has fewer rings than this program has engines"


class MemifEnginesTest(EnginePortsTest):
    """Both ends may have several engines, and other numbers of them."""

    def run_all(self):
        self._check_counts()
        self._check("a server outlives its clients", self._lives_on)
        # A bad network stands before the whole port, so that end has one engine and one pair of rings.
        self._use("1", "2", "--impair", "loss=0.0001")
        self._check("a client with one ring", self._pingpong, PingPong([], 300, 4096), "ipv4")
        self._use("2", "2", "--impair", "loss=0.0001")
        self._check("a client with too few rings", self._refused)
        self._wire.set_options([])

    def _refused(self):
        """A server with two engines does not take a client with one pair of rings, and says why."""
        server = self._testroce(0, "2", "--listen", str(LISTEN_PORT))
        client = None
        try:
            if not wait_until(lambda: server.listens(LISTEN_PORT), COMMAND_SECONDS):
                raise CheckFailed("testroce does not listen", server.story("server"))
            client = self._testroce(1, "2", "--impair", "loss=0.0001", "--connect", f"127.0.0.1:{LISTEN_PORT}")
            if not wait_until(lambda: FEW_RINGS in server.output(), COMMAND_SECONDS):
                raise CheckFailed("the client is not refused", server.story("server") + client.story("client"))
        finally:
            server.kill()
            if client:
                client.kill()

    def _lives_on(self):
        """The server's engines run while connections come and go; each client has another number of engines, and some
        are killed."""
        engines = ("2", "1", "4", "3", "2")
        server = self._testroce(0, "2", "--listen", str(LISTEN_PORT))
        try:
            if not wait_until(lambda: server.listens(LISTEN_PORT), COMMAND_SECONDS):
                raise CheckFailed("testroce does not listen", server.story("server"))
            for number, count in enumerate(engines):
                self._client(server, count, number == 2)
        finally:
            server.kill()

    def _testroce(self, end, engines, *options):
        """Start testroce, which takes the port's options itself."""
        host = LocalHost(f"testroce-{end}", self._wire.work_dir, self._wire.namespace.prefix)
        return host.start([TESTROCE, *self._wire.port_options(end), "--engines", engines, *options])

    def _client(self, server, engines, dies):
        client = self._testroce(1, engines, "--connect", f"127.0.0.1:{LISTEN_PORT}", "--qps", "8", "--size", "3000",
                                "--seconds", "30" if dies else "0.2", "--verify")
        status = client.wait(1 if dies else COMMAND_SECONDS)
        story = client.story("client") + server.story("server")
        client.kill()
        if status != (None if dies else 0):
            raise CheckFailed(f"exit {status}", story)


class ForeignTest(EnginePortsTest):
    """DPDK's own memif driver between two uroce: dpdk-testpmd is the client of one and the server of the other, and
    passes packets on. It knows nothing of our engines."""

    def run_all(self):
        programs = (PerfTest("ib_write_bw", ["-q", "4"], 500), PerfTest("ib_read_bw", [], 500), PerfTest("ib_send_bw", ["-e"], 500))
        for number, (engines, queues) in enumerate((("1", "1"), ("2", "2"))):
            self._engines = engines
            self._wire.separate(["--engines", engines, "--log-level", "info"])
            self._check(f"DPDK's driver with {queues} queues: many queue pairs", self._through, queues, self._crowd,
                        self._judge_nothing if engines == "1" else self._judge_strays)
            for program in programs if self._report.complete else programs[number::2]:
                self._check(f"DPDK's driver with {queues} queues: {program.name}", self._through, queues, self._run_default_gid,
                            program)
        self._wire.set_options([])

    @staticmethod
    def _judge_nothing(_output, _stories):
        pass

    @staticmethod
    def _judge_strays(output, stories):
        """DPDK's driver puts each packet into the ring by whose number it came: some are another engine's."""
        if counter(output, "rx_crossed") == 0:
            raise CheckFailed("no packet crosses", stories)

    def _through(self, queues, function, *args):
        """Its client starts only when the server is there, so it is told again and again to start. Packets are lost
        meanwhile, so the programs must not end with one that matters."""
        name = f"uroce-test-{os.getpid()}"
        vdevs = [f"net_memif{end},role={role},socket={path},socket-abstract=no,bsize=4608,rsize=10"
                 for end, (role, path) in enumerate(zip(("server", "client"), reversed(self._wire.sockets)))]
        testpmd = ["dpdk-testpmd", "--no-huge", "-m", "512", "-l", "0,1", f"--file-prefix={name}", "--no-pci",
                   "--no-telemetry", "--vdev", vdevs[0], "--vdev", vdevs[1], "--", "-i", f"--rxq={queues}", f"--txq={queues}",
                   "--nb-cores=1", "--forward-mode=io", "--total-num-mbufs=16384", "--mbuf-size=5000"]
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._wire.sockets[1])  # a killed testpmd leaves it
        feeder = "while :; do echo stop; echo port start 1; echo start; sleep 0.5; done"
        middle = Process(["sh", "-c", f"{{ {feeder}; }} | timeout --foreground 120 {' '.join(testpmd)}"],
                         os.path.join(self._wire.work_dir, "testpmd.log"))
        try:
            if not wait_until(lambda: os.path.exists(self._wire.sockets[1]), COMMAND_SECONDS):
                raise CheckFailed("testpmd does not run", middle.story("testpmd"))
            function(*args)
        except CheckFailed as failed:
            failed.details += middle.story("testpmd")
            raise
        finally:
            middle.kill()
            remove_primary(name)
