# SPDX-License-Identifier: BSD-3-Clause
"""Several engines of a device on ports of DPDK's drivers that have several queues: vhost with virtio-user, packet
sockets of DPDK's driver on a veth pair, and net_tap with its kernel interface."""

import os
import re
import time

from programs.run.engine_ports import counter, judge_relays, run_crowd
from harness.process import LocalHost, Namespace, veth_pair, wait_until
from harness.report import CheckFailed
from harness.tools import DEVICE, MULTICAST_GIDS, UROCE_RUN, PerfTest, PingPong, Side, gid_index, gids, kill_pair, run_pair

FIRST_PORT = 23500
KILL_SECONDS = 1.0
START_SECONDS = 30
IDLE_RATE = 150  # wake-ups a second: a helper that sleeps for 20 ms at a time has 50 to 100, one that sleeps for 1 ms 900
# Give the kernel's end of a tap another MAC address than the driver's, when the first program has made it and listens.
TAP_END = ('until [ -S "$0" ]; do sleep 0.05; done; echo 0 >/proc/sys/net/ipv6/conf/utap0/accept_dad && '
           'ip link set utap0 down && ip link set utap0 address 02:00:00:00:00:99 up && exec "$@"')
RARE = 0.05  # share of the packets that may leave by another engine while the other end waits for a CPU
PROGRAMS = (PerfTest("ib_write_bw", ["-q", "16"], 1000), PerfTest("ib_read_bw", ["-q", "7"], 500),
            PerfTest("ib_send_lat", ["-e"], 300), PingPong(["-e", "-m", "1024"], 300, 32768))
FEW_PROGRAMS = {"vhost": (PROGRAMS[0], PROGRAMS[3]), "packet sockets": PROGRAMS[1:3]}


def wake_ups(pid):
    """Return how often the helper of a process has woken so far."""
    counts = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as file:
            status = file.read()
        if status.startswith("Name:\turoce\n"):
            counts.append(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)$", status, re.M).group(1)))
    if not counts:
        raise CheckFailed("the process has no helper", [])
    return sum(counts)


def queues_of(engines, queues):
    """Return a judge of ports that have `queues` queues in each direction for so many engines."""
    def judge(output, stories):
        if f"has {queues} receive and {queues} transmit queues for {engines} engines" not in output:
            raise CheckFailed(f"a port has not {queues} queues", stories)
        packets = counter(output, "tx_packets")
        if packets == 0 or counter(output, "tx_crossed") > RARE * packets:
            raise CheckFailed("packets of one engine leave by another", stories)
    return judge


def judge_passed_by(output, stories):
    """Check that the first engine sends what the queue of another engine does not take."""
    if "has 2 receive and 2 transmit queues" not in output or counter(output, "tx_crossed") == 0:
        raise CheckFailed("no packet passes by the queue that nobody serves", stories)


def judge_one_engine(output, stories):
    if counter(output, "rx_crossed") > 0 or counter(output, "tx_crossed") > 0 or "transmit queues" in output:
        raise CheckFailed("packets cross in a device of one engine", stories)


class PortQueuesTest:
    """The first side of each pair opens its device before the second one."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._port = FIRST_PORT
        self._socket = os.path.join(work_dir, "queues.sock")
        self._meeting = os.path.join(work_dir, "queues-crowd.sock")
        self._space = Namespace("queues")
        self._spaces = [Namespace("queues0"), Namespace("queues1")]
        veth_pair(*self._spaces, ("10.9.8.101", "10.9.8.102"), mtu=4200)

    def _host(self, space, side, engines, options):
        return LocalHost(f"queues-{side}", self._work_dir, [
            *space.prefix, UROCE_RUN, "--engines", str(engines), "--log-level", "info", "--mtu", "4200", "--ip",
            f"10.9.8.{side + 1}/24", "--ip", f"fd09:8::{side + 1}/64", *options, "--"])

    def _vhost(self, engines=(2, 2), queues=(2, 2), more=()):
        """Return a vhost and a virtio-user port with so many queues."""
        if os.path.exists(self._socket):
            os.unlink(self._socket)
        ports = (f"net_vhost0,iface={self._socket},queues={queues[0]}",
                 f"net_virtio_user0,path={self._socket},queues={queues[1]},queue_size=1024,packed_vq=1")
        return [self._host(self._space, side, engines[side], ["--port", port, *more])
                for side, port in enumerate(ports)]

    def _sockets(self, engines=(2, 2)):
        """Return packet sockets of DPDK's driver with a pair of queues for each engine."""
        return [self._host(space, side, engines[side], [
            "--port", f"net_af_packet0,iface=veth{side},qpairs={engines[side]}"])
            for side, space in enumerate(self._spaces)]

    def _tap(self):
        """Return a tap with two queues, and uroce on the kernel interface that is its other end."""
        netdev = LocalHost("queues-1", self._work_dir, [
            *self._space.prefix, "sh", "-c", TAP_END, self._meeting, UROCE_RUN, "--engines", "2", "--log-level", "info",
            "--netdev", "utap0", "--without", "runs", "--"])
        return [self._host(self._space, 0, 2, ["--port", "net_tap0,iface=utap0", "--mtu", "1500"]), netdev]

    def _crowd(self, make_hosts, judges, *args):
        run_crowd(make_hosts(*args), self._meeting, judges)

    def _sides(self, make_hosts, address, indices):
        self._port += 1
        return [Side(host, DEVICE, address, index) for host, index in zip(make_hosts(), indices)]

    def _pair(self, make_hosts, address, program, indices=(None, None)):
        run_pair(program, *self._sides(make_hosts, address, indices), self._port)

    def _group(self, program):
        """The packets to a group arrive by the queue of any engine, and reach the members of all."""
        indices = [gid_index(gids(host, DEVICE), f"10.9.8.{side + 1}") for side, host in enumerate(self._sockets())]
        self._pair(self._sockets, "10.9.8.101", program, indices)

    def _kill(self, make_hosts, address, program, victim):
        kill_pair(program, *self._sides(make_hosts, address, (None, None)), self._port, victim, KILL_SECONDS)

    def _idle(self):
        """The helper of an idle vhost without a peer hardly wakes, although frames do not wake it."""
        self._port += 1
        program = self._vhost()[0].start(["ibv_rc_pingpong", "-d", DEVICE, "-p", str(self._port)])
        try:
            if not wait_until(lambda: program.listens(self._port), START_SECONDS):
                raise CheckFailed("the program does not listen", program.story("the program"))
            time.sleep(1)
            before, begun = wake_ups(program.pid), time.monotonic()
            time.sleep(3)
            rate = (wake_ups(program.pid) - before) / (time.monotonic() - begun)
            if rate > IDLE_RATE:
                raise CheckFailed(f"the helper wakes {rate:.0f} times a second", program.story("the program"))
        finally:
            program.kill()

    def run_all(self):
        check, two, complete = self._report.check, queues_of(2, 2), self._report.complete
        if complete:
            check("queues: vhost and virtio-user, 2 engines", self._crowd, self._vhost, [two, two])
            check("queues: packet sockets, 2 engines", self._crowd, self._sockets, [two, two])
        check("queues: vhost and virtio-user, 4 engines", self._crowd, self._vhost, [queues_of(4, 4), queues_of(4, 4)],
              (4, 4), (4, 4))
        check("queues: an idle vhost without a peer sleeps", self._idle)
        check("queues: vhost whose other end uses one queue of two", self._crowd, self._vhost,
              [judge_passed_by, judge_one_engine], (2, 1))
        check("queues: vhost with one queue", self._crowd, self._vhost, [judge_relays, judge_relays], (2, 2), (1, 1))
        check("queues: an impaired port has one", self._crowd, self._vhost, [judge_relays, judge_relays], (2, 2), (2, 2),
              ("--impair", "loss=0.0001"))
        check("queues: packet sockets, 3 engines", self._crowd, self._sockets, [queues_of(3, 3), queues_of(3, 3)], (3, 3))
        check("queues: tap, 2 engines", self._crowd, self._tap, [two, lambda *_: None])
        for name, make_hosts, address in (("vhost", self._vhost, "127.0.0.1"),
                                          ("packet sockets", self._sockets, "10.9.8.101")):
            for program in PROGRAMS if complete else FEW_PROGRAMS[name]:
                check(f"queues: {name}: {program.name}", self._pair, make_hosts, address, program)
            for victim in ("server", "client") if complete else ("server",):
                check(f"queues: {name}: {victim} killed", self._kill, make_hosts, address,
                      PerfTest("ib_write_bw", ["-D", "60", "-q", "4"]), victim)
        program = PerfTest("ib_send_bw", ["-c", "UD", "-s", "1024", "-g", "-M", MULTICAST_GIDS["ipv4"]], 400)
        check(f"queues: packet sockets: {program.name}", self._group, program)
