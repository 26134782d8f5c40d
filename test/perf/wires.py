# SPDX-License-Identifier: BSD-3-Clause
"""The links between two processes, and the programs that run on them."""

import contextlib
import json
import os
import re
import select
import signal
import statistics
import subprocess
import time

from machine import CPUS, TIMEOUT_S, Failed


def _last_row(program, out, columns):
    """Return columns of the last row that a program of perftest has printed."""
    rows = [line.split() for line in out.splitlines() if re.match(r"^\s*\d+\s+\d+\s", line)]
    if not rows:
        raise Failed(f"{program}: no table")
    return tuple(float(rows[-1][column]) for column in columns)


class Wire:
    """Options of uroce-run and testroce for side 0, the passive one, and for side 1, the active one."""

    spaces = (None, None)
    address = "127.0.0.1"
    server_ip = "10.99.1.1"  # the server's RDMA address
    limits = {"no protocol": ()}  # the options of limit(), by what the limit does without

    def __init__(self, machine, name):
        self.machine = machine
        self.name = name

    def options(self, side):
        raise NotImplementedError

    # ---- programs ----
    def testroce(self, *options, progress=None, seconds=1.0):
        """Return a test's result, as testroce writes it."""
        machine = self.machine
        port, path = machine.next_port(), os.path.join(machine.dir, "result.json")
        program = os.path.join(machine.build, "app", "testroce")
        how = ["--progress", progress] if progress else []
        machine.pair([program, *self.options(0), *how, "--listen", str(port), "--once"],
                     [program, *self.options(1), *how, "--connect", f"{self.address}:{port}", "--path-mtu", "4096",
                      *options, "--seconds", str(seconds), "--json", path], self.spaces, port)
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def perftest(self, argv, columns):
        """Return columns of perftest's last row."""
        port = self.machine.next_port()
        argv = [*argv, "-F", "-p", str(port)]
        out, _ = self.machine.pair(self.run(0, argv), self.run(1, [*argv, self.address]), self.spaces, port)
        return _last_row(argv[0], out, columns)

    def pairs(self, count, argv, column):
        """Run `count` pairs of a program of perftest at the same time, each pair on a CPU of its own. Return the sum of a
        column of their last rows."""
        machine, clients = self.machine, []
        with contextlib.ExitStack() as stack:
            for cpu in CPUS[:count]:
                port = machine.next_port()
                both = [*argv, "-F", "-p", str(port)]
                stack.callback(machine.end, machine.start_server(self.run(0, both), self.spaces[0], port, cpu))
                clients.append((self.run(1, [*both, self.address]), cpu))
            started = [machine.start(client, cpu, self.spaces[1]) for client, cpu in clients]
            for client in started:
                stack.callback(machine.end, client)
            return sum(_last_row(argv[0], machine.finish(client, argv[0]), [column])[0] for client in started)

    def connections(self, *options):
        """Set up and tear down connections by rdma_cm. Return how many a second, and the median and the longest
        time of rdma_connect, in us."""
        port = self.machine.next_port()
        argv = [self.machine.tool("connect_rate"), "-p", str(port), "-a", self.server_ip]
        out, _ = self.machine.pair(self.run(0, argv), self.run(1, [*argv, *options, self.address]), self.spaces, port)
        return tuple(map(float, out.split()))

    def run(self, side, argv):
        return [self.machine.uroce_run, *self.options(side), "--", *argv]

    def idle(self, seconds):
        """Return the CPU use of an idle program in per cent, and the median and the longest time until it answers,
        in us."""
        tool, socket = self.machine.tool("idle"), os.path.join(self.machine.dir, f"idle{self.machine.next_port()}")
        out, served = self.machine.pair(self.run(0, [tool, "-s", socket, str(seconds)]),
                                        self.run(1, [tool, socket, str(seconds)]), self.spaces, kill_server=True)
        return (float(served), *map(float, out.split()))


class Prompt:
    """Two testroce on a wire. They stay connected, and the active one runs one test after the other."""

    def __init__(self, wire):
        machine, port = wire.machine, wire.machine.next_port()
        argv = [os.path.join(machine.build, "app", "testroce")]
        self._machine = machine
        self._name = wire.name
        self._passive = machine.start_server([*argv, *wire.options(0), "--listen", str(port), "--once"], wire.spaces[0], port)
        self._active = machine.start([*argv, *wire.options(1), "--connect", f"{wire.address}:{port}", "--path-mtu", "4096",
                                      "--interactive"], CPUS[1], wire.spaces[1], stdin=subprocess.PIPE)

    def test(self, plan):
        """Run the test of a plan: pairs of a name and a value. Return what testroce prints."""
        commands = [*(f"set {name} {value}" for name, value in plan), "start", "wait", "show device"]
        self._active.stdin.write("\n".join(commands) + "\n")
        self._active.stdin.flush()
        out, until = "", time.monotonic() + TIMEOUT_S
        while ", progress " not in out:  # of "show device"
            if not select.select([self._active.stdout], [], [], max(0, until - time.monotonic()))[0]:
                raise Failed(f"{self._name}: no result after {TIMEOUT_S} s")
            data = os.read(self._active.stdout.fileno(), 65536)
            if not data:
                raise Failed(f"{self._name}: testroce has ended: {self._active.stderr.read().strip()}")
            out += data.decode()
        return out

    def close(self):
        self._machine.end(self._active)
        self._machine.end(self._passive)


RESULT = {"gbps": r"([\d.]+) Gb/s", "p50": r"p50 ([\d.]+) us"}


def by_turns(wires, plans, result, turns):
    """Run the tests of all plans on all wires, by turns. Return the median of each: first those of the first wire."""
    with contextlib.ExitStack() as stack:
        prompts = []
        for wire in wires:
            prompts.append(Prompt(wire))
            stack.callback(prompts[-1].close)
        samples = {}
        for turn in range(turns + 1):
            for number, plan in enumerate(plans):
                for prompt in prompts if turn % 2 else reversed(prompts):
                    out = prompt.test(plan)
                    found = re.search(RESULT[result], out)
                    if not found:
                        raise Failed(f"testroce printed no result: {out.strip()}")
                    samples.setdefault((prompt, number), []).append(float(found.group(1)))
        # The first turn only brings memory and caches into their usual state.
        return tuple(statistics.median(samples[(prompt, number)][1:]) for prompt in prompts for number in range(len(plans)))


class Memif(Wire):
    """Shared memory, by memif."""

    def __init__(self, machine):
        super().__init__(machine, "memif")

    def options(self, side):
        return ["--port", f"net_memif0,socket={self.machine.dir}/memif.sock,role={('server', 'client')[side]},id=0",
                "--ip", f"10.99.1.{side + 1}/24"]

    def limit(self, seconds, *options):
        """Return Gb/s, million packets a second, p50 and p99 in us without a protocol."""
        tool = self.machine.tool("bench_limit")
        port = f"net_memif0,socket={self.machine.dir}/limit.sock,id=0,role="
        out, _ = self.machine.pair([tool, *options, port + "server"],
                                   [tool, "-c", "-s", str(seconds), *options, port + "client"])
        return tuple(map(float, out.split()))


class Vhost(Wire):
    """A virtio link in shared memory: vhost, which makes the socket, and virtio-user."""

    def __init__(self, machine):
        super().__init__(machine, "vhost")

    def _port(self, side):
        """Return a side's port. The vhost side makes the socket, so the file of an earlier one must not be there."""
        socket = f"{self.machine.dir}/vhost.sock"
        if side == 0:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(socket)
            return f"net_vhost0,iface={socket},queues=1"
        return f"net_virtio_user0,path={socket},queues=1,queue_size=1024,packed_vq=1"

    def options(self, side):
        return ["--port", self._port(side), "--mtu", "4200", "--ip", f"10.99.1.{side + 1}/24"]

    def limit(self, seconds, *options):
        """Start both sides as Memif does. The active side starts when the socket exists."""
        tool = self.machine.tool("bench_limit")
        wait = ["sh", "-c", 'until [ -S "$0" ]; do sleep 0.05; done; sleep 0.5; exec "$@"',
                f"{self.machine.dir}/vhost.sock"]
        out, _ = self.machine.pair([tool, *options, self._port(0)],
                                   [*wait, tool, "-c", "-s", str(seconds), *options, self._port(1)])
        return tuple(map(float, out.split()))


class Attached(Wire):
    """Two programs that are attached to one uroced; with `netdev`, the active one is remote, on that interface."""

    limits = {"no protocol": (), "no protocol, no CRC": ("-n",)}

    def __init__(self, machine, name, socket, spaces=(None, None), netdev=None, address="127.0.0.1"):
        super().__init__(machine, name)
        self._socket = socket
        self._netdev = netdev
        self.spaces = spaces
        self.address = address

    def options(self, side):
        return ["--netdev", self._netdev] if side and self._netdev else ["--socket", self._socket]

    def limit(self, seconds, *options):
        """Measure what Memif.limit measures, through a ring in shared memory."""
        return tuple(map(float, self.machine.output([self.machine.tool("bench_ring"), "-s", str(seconds), *options, "0",
                                                     "1"]).split()))


class Isolated(Wire):
    """Two isolated programs of one uroced, with a memif connection between the two."""

    def __init__(self, machine, socket):
        super().__init__(machine, "isolated")
        self._socket = socket

    def options(self, side):
        return [f"--isolated={self._socket}"]


class Tenant(Isolated):
    """Isolated programs of a user of their own. They may use both CPUs: there are more of them than CPUs. With `far`, their
    servers are programs of that wire."""

    def __init__(self, machine, socket, uid, space=None, far=None):
        super().__init__(machine, socket)
        self._uid = str(uid)
        self.spaces = (None, space)
        self._far = far

    def run(self, side, argv):
        # The kernel forgets the signal of Machine.start when the user changes.
        return ["setpriv", "--reuid", self._uid, "--regid", self._uid, "--clear-groups", "--pdeathsig", "KILL",
                *super().run(side, argv)]

    def poll(self):
        """Start a program that does nothing but poll."""
        return self.machine.start(self.run(0, [self.machine.tool("poller")]))

    def begin(self, argv):
        """Start a program of perftest. Return its server and its client."""
        port = self.machine.next_port()
        argv = [*argv, "-F", "-p", str(port)]
        near = self._far or self
        server = self.machine.start_server(near.run(0, argv), near.spaces[0], port, None)
        return server, self.machine.start(self.run(1, [*argv, near.address]), space=self.spaces[1])


def together(plans, column):
    """Run programs of perftest at the same time: pairs of a tenant and an argv. Return a column of each last row."""
    machine, clients = plans[0][0].machine, []
    with contextlib.ExitStack() as stack:
        for tenant, argv in plans:
            for child in tenant.begin(argv):
                stack.callback(machine.end, child)
            clients.append(child)
        return tuple(_last_row(argv[0], machine.finish(client, argv[0]), [column])[0]
                     for client, (_, argv) in zip(clients, plans))


def sent_packets(machine, socket, pids):
    """Return how many packets an uroced has taken from each of these processes."""
    status = machine.output([os.path.join(machine.build, "app", "uroced"), "--socket", socket, "--status"])
    sent = {slot["pid"]: slot["tx_packets"] for slot in json.loads(status)["slots"]}
    if not set(pids) <= set(sent):
        raise Failed("a program has ended")
    return [sent[pid] for pid in pids]


class Veth(Wire):
    """A kernel interface on each side."""

    def __init__(self, machine, spaces, addresses, impair=None, sack=None, name="veth", option="--netdev=veth0"):
        super().__init__(machine, name)
        self._option = option
        self.spaces = spaces
        self.address = addresses[0]
        self._impair = ["--impair", impair] if impair else []
        self._sack = ["--sack", sack] if sack else []

    def options(self, side):
        """Return a side's options. The active side impairs both directions."""
        return [self._option, *self._sack, *(self._impair if side else [])]

    def limit(self, seconds, *options):
        tool = self.machine.tool("bench_limit")
        out, _ = self.machine.pair([tool, "-n", "veth0"], [tool, "-n", "-c", "-s", str(seconds), *options, "veth0"],
                                   self.spaces)
        return tuple(map(float, out.split()))

    def iperf(self, seconds, *options):
        """Return Gb/s of kernel TCP. iperf3 takes whole seconds."""
        out, _ = self.machine.pair(["iperf3", "-s", "-1"],
                                   ["iperf3", "-c", self.address, "-t", str(seconds), "-f", "m", *options],
                                   self.spaces, 5201)
        found = re.findall(r"([\d.]+) Mbits/sec.*receiver", out)
        if not found:
            raise Failed("iperf3 printed no receiver line")
        return float(found[-1]) / 1000

    def tcp_pingpong(self, *options):
        """Return p50 and p99 of half a round trip in us."""
        tool, port = self.machine.tool("tcp_pingpong"), str(self.machine.next_port())
        out, _ = self.machine.pair([tool, *options, port], [tool, *options, port, self.address], self.spaces, int(port))
        return tuple(map(float, out.split()))


@contextlib.contextmanager
def uroced(machine, *options, space=None):
    """Start an uroced, wait until it answers, and return its socket."""
    socket = os.path.join(machine.dir, f"uroced{machine.next_port()}.sock")
    argv = [os.path.join(machine.build, "app", "uroced"), "--socket", socket]
    # uroced is not pinned: it sleeps, or uses a CPU that is free.
    owner = machine.start([*argv, *options], space=space)
    try:
        until = time.monotonic() + TIMEOUT_S
        while subprocess.run([*argv, "--status"], capture_output=True).returncode != 0:
            if owner.poll() is not None or time.monotonic() > until:
                raise Failed(f"uroced: {owner.communicate()[1].strip()}")
            time.sleep(0.1)
        yield socket
    finally:
        if owner.poll() is None:
            owner.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                owner.wait(10)
        else:
            print(f"uroced has ended: exit {owner.returncode}: {owner.communicate()[1].strip()}", flush=True)
        machine.end(owner)
