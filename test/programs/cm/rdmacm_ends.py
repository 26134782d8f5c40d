# SPDX-License-Identifier: BSD-3-Clause
"""Processes that end with connections and listeners: their peers are told, and their ports become free."""

import os

from harness.process import wait_until
from programs.cm.rdmacm import SECONDS, CmRunning, has_our_threads, wait_until_quiet

# Remove the folder of the script, which has a module named pyverbs.
SIDE = ["/usr/bin/python3", "-P", os.path.join(os.path.dirname(os.path.abspath(__file__)), "cm_side.py")]
TOLD_SECONDS = 2  # much less time than the retries take
GONE = "DISCONNECT EVENT"
MANY = 8


class EndsTest:
    """All checks between two places; the server is the first host."""

    def __init__(self, report, pair):
        self._report = report
        self._pair = pair
        self._server, self._client = pair.hosts
        self._address = pair.addresses.of["ipv4"][0]

    def check(self, name, function):
        self._report.check(f"rdmacm: {self._pair.name}: {name}", function)

    def run_kills(self):
        self.check("a killed client's server is told", self.client_killed)
        self.check(f"a killed client's server is told of {MANY} connections", self.clients_killed)
        self.check("a killed server's client is told", self.server_killed)

    def run_ports(self):
        self.check("a port has one listener", self.one_listener)
        self.check("a killed listener's clients are told", self.listener_killed)

    def run_leave(self):
        self.check("a client ends without a word", self.leave)

    @staticmethod
    def _says(running, process, words, seconds, what):
        wait_until(lambda: words in process.output() or process.poll() is not None, seconds)
        if words not in process.output():
            running.fail(f"{what}: no '{words}' in {seconds} s")

    def _connect(self, running, action, count=1):
        server = running.serve(self._server, ["rping", "-s", "-v", "-a", self._address, *(["-P"] if count > 1 else [])])
        client = running.start(self._client, [*SIDE, action, self._address, "7174", str(count)])
        self._says(running, client, "connected", SECONDS, "the client")
        return server, client

    def client_killed(self):
        with CmRunning() as running:
            server, client = self._connect(running, "stay")
            client.kill()
            self._says(running, server, GONE, TOLD_SECONDS, "the server")

    def clients_killed(self):
        """A program with several connections."""
        with CmRunning() as running:
            server, client = self._connect(running, "stay", MANY)
            client.kill()
            if not wait_until(lambda: server.output().count(GONE) == MANY, TOLD_SECONDS):
                running.fail(f"{server.output().count(GONE)} of {MANY} connections are ended in {TOLD_SECONDS} s")

    def server_killed(self):
        """The client sends pings, so it would notice the end by its retries, later."""
        with CmRunning() as running:
            server = running.serve(self._server, ["rping", "-s", "-a", self._address])
            client = running.start(self._client, ["rping", "-c", "-v", "-a", self._address])
            self._says(running, client, "rdma-ping-10: ", SECONDS, "the client")
            server.kill()
            self._says(running, client, GONE, TOLD_SECONDS, "the client")

    def leave(self):
        with CmRunning() as running:
            server, _ = self._connect(running, "leave")
            self._says(running, server, GONE, TOLD_SECONDS, "the server")

    def run_alone(self):
        self.check("an interface has one program with rdma_cm", self.one_manager)

    def run_changes(self, namespace, netdev):
        self.check("a listener's address goes and comes back", lambda: self.address_goes(namespace, netdev))
        self.check("the interface is removed", lambda: self.interface_removed(namespace, netdev))

    def address_goes(self, namespace, netdev):
        """The listener is told, goes on, and takes requests as soon as the address is there again."""
        with CmRunning() as running:
            server = running.serve(self._server, ["rping", "-s", "-v", "-a", self._address])
            namespace.run("ip", "addr", "del", f"{self._address}/24", "dev", netdev)
            self._says(running, server, "RDMA_CM_EVENT_ADDR_CHANGE", TOLD_SECONDS, "the listener")
            namespace.run("ip", "addr", "add", f"{self._address}/24", "dev", netdev)
            ping = running.start(self._client, ["rping", "-c", "-C", "3", "-a", self._address])
            running.expect(ping, SECONDS, "client")

    def interface_removed(self, namespace, netdev):
        """The last check of a wire: it is gone then."""
        with CmRunning() as running:
            server = running.serve(self._server, ["rping", "-s", "-a", self._address])
            namespace.run("ip", "link", "del", netdev)
            self._says(running, server, "device removal", TOLD_SECONDS, "the listener")

    def owner_killed(self, owner):
        """The program that waits for an event gets one."""
        if owner.process.poll() is not None:  # killed by the first try
            owner.run()
        with CmRunning() as running:
            server = running.serve(self._server, ["rping", "-s", "-a", self._address])
            if not wait_until(lambda: (owner.status() or {}).get("cm_ports"), SECONDS):
                running.fail("the server has no port")
            owner.process.kill()
            self._says(running, server, "device removal", TOLD_SECONDS, "the listener")

    def one_manager(self):
        """Both programs open the interface themselves. Programs without rdma_cm are not affected."""
        argv = ["rping", "-s", "-a", self._address]
        with CmRunning() as running:
            first = running.serve(self._server, argv)
            second = running.start(self._pair.more(), argv)
            if second.wait(SECONDS) in (None, 0) or "run uroced on it" not in second.output():
                running.fail("a second program is not told of uroced")
            verbs = running.start(self._pair.more(), ["ibv_devinfo"])
            running.expect(verbs, SECONDS, "program without rdma_cm")
            first.kill()
            third = running.serve(self._pair.more(), argv)
            ping = running.start(self._client, ["rping", "-c", "-C", "3", "-a", self._address])
            running.expect(ping, SECONDS, "client")
            running.expect(third, SECONDS, "third program")

    def one_listener(self):
        """The second host shares the first one's device."""
        argv = ["rping", "-s", "-a", self._address]
        with CmRunning() as running:
            first = running.serve(self._server, argv)
            second = running.start(self._client, argv)
            if second.wait(SECONDS) in (None, 0) or "Address already in use" not in second.output():
                running.fail("a second program gets the port")
            first.kill()
            third = running.serve(self._client, argv)
            ping = running.start(self._server, ["rping", "-c", "-C", "3", "-a", self._address])
            running.expect(ping, SECONDS, "client")
            running.expect(third, SECONDS, "third program")

    def listener_killed(self):
        """Requests that nobody has answered are rejected at once."""
        argv = ["rping", "-c", "-C", "1", "-a", self._address]
        with CmRunning() as running:
            listener = running.start(self._server, [*SIDE, "listen", self._address, "7174", "8"])
            self._says(running, listener, "listens", SECONDS, "the listener")
            clients = [running.start(host, argv) for host in (self._client, self._pair.more())]
            for client in clients:
                if not wait_until(lambda: has_our_threads(client.pid), SECONDS):
                    running.fail("a client does not start")
            for client in clients:
                wait_until_quiet(client.pid, SECONDS)
            listener.kill()
            for client in clients:
                self._says(running, client, "RDMA_CM_EVENT_REJECTED, error 28", TOLD_SECONDS, "a client")
