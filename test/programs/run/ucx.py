# SPDX-License-Identifier: BSD-3-Clause
"""UCX on each kind of port: ucx_info, ucx_perftest over the rc and ud transports of verbs. Open MPI and libfabric."""

import functools
import os
import re
import subprocess

from harness.process import LocalHost, Namespace
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN, Side, gid_index, gids, run_pair
from programs.run.libfabric import libfabric_programs
from programs.share.share import Uroced
from programs.run.wires import MemifWire, VethWire

FIRST_PORT = 30200
SECONDS = 60
MPI_SECONDS = 150  # its processes poll, and share the CPUs with others
MPI_CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpi_check.c")
ITERATIONS = 200
WIRES = ("veth", "memif", "attached", "isolated")
# By the layer that is measured: UCP, over the transports of its choice, and UCT, over one.
UCP_TESTS = (("tag_lat", 8), ("tag_bw", 65536), ("tag_sync_lat", 1024), ("ucp_put_bw", 65536), ("ucp_get", 4096),
             ("ucp_fadd", 8), ("ucp_cswap", 8), ("stream_bw", 4096), ("ucp_am_bw", 65536))
UCT_TESTS = (("am_lat", 8), ("put_bw", 4096, "-D", "zcopy"), ("get", 4096, "-D", "zcopy"), ("fadd", 8))


@functools.cache
def without_mpi():
    """Return the options that make ucx_perftest a program of its own. Where it was built with MPI it takes itself for one of
    MPI's processes if its standard input is no terminal."""
    told = subprocess.run(["ucx_perftest", "-h"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False).stdout
    return ["-P", "0"] if re.search(r"^ +-P <0\|1>", told, re.M) else []


class UcxPerf:
    """ucx_perftest; its messages go by the device alone, and not by shared memory or TCP."""

    def __init__(self, test, size, *options, tls, layer="ucp", wait="poll"):
        self.name = f"ucx_perftest -t {test} -s {size}, {tls}" + (" (uct)" if layer == "uct" else "") + \
            (f", -E {wait}" if wait != "poll" else "")
        self._tls = tls
        self._wait = wait
        self._test = ["-t", test, "-s", str(size), "-n", str(ITERATIONS), "-w", "10", *options]
        self._uct = ["-d", f"{DEVICE}:1", "-x", f"{tls}_verbs"] if layer == "uct" else []

    def argv(self, side, port, peer=None):
        """The strong fence, which UCX 1.18 may choose, is in its transports for mlx5 alone."""
        settings = {"UCX_TLS": self._tls, "UCX_NET_DEVICES": f"{DEVICE}:1", "UCX_IB_GID_INDEX": side.gid_index,
                    "UCX_FENCE_MODE": "weak", "UCX_WARN_UNUSED_ENV_VARS": "n", "UCX_HANDLE_ERRORS": "bt"}
        argv = ["env", *[f"{name}={value}" for name, value in settings.items()], "ucx_perftest",
                *without_mpi(), "-p", str(port), "-E", self._wait, *self._uct]
        return argv + ([peer, *self._test] if peer else [])

    @staticmethod
    def judge(server, client):
        """The last row has every iteration."""
        rows = re.findall(r"^Final: +(\d+) ", client, re.M)
        if rows != [str(ITERATIONS)]:
            raise CheckFailed(f"the client's last rows are {rows}")
        for output in (server, client):
            errors = re.findall(r"^.*UCX +(?:ERROR|FATAL).*$", output, re.M)
            if errors:
                raise CheckFailed(errors[0])


class UcxTest:
    """The wires of the other programs, and two programs of one uroced, attached and isolated."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "ucx")
        os.mkdir(self._work_dir)
        self._port = FIRST_PORT
        self._namespace = Namespace("ucx")
        self._namespace.run("ip", "link", "add", "ucx0", "mtu", "9000", "type", "veth", "peer", "name", "ucx1")
        for name in ("ucx0", "ucx1"):
            self._namespace.run("ip", "link", "set", name, "up")
        self._namespace.run("ip", "addr", "add", "10.9.15.1/24", "dev", "ucx0")
        self._isolated = f"{self._work_dir}/isolated.sock"
        self._owner = Uroced(self._namespace, self._work_dir, "ucx0", f"--isolated={self._isolated}",
                             "--file-prefix", f"uroce-ucx-{os.getpid()}")

    def _check(self, name, function, *args):
        self._report.check(f"ucx: {name}", function, *args)

    def run_all(self):
        for wire in (VethWire(self._work_dir, "ucx-veth"), MemifWire(self._work_dir, "ucx-memif")):
            self._wire(wire.name, wire.hosts, wire.addresses, wire.tcp_address, isinstance(wire, VethWire))
        if not self._report.require("ucx: uroced starts", self._owner.run):
            return
        try:
            for way in ("socket", "isolated"):
                socket = self._owner.socket if way == "socket" else self._isolated
                hosts = [LocalHost(f"ucx-{way}-{number}", self._work_dir,
                                   [*self._namespace.prefix, UROCE_RUN, f"--{way}={socket}", "--"]) for number in range(2)]
                self._wire("attached" if way == "socket" else way, hosts, ["10.9.15.1"] * 2, "127.0.0.1", False)
                if way == "socket":
                    self._libfabric(hosts)
            for tls in ("rc", "ud"):
                self._check(f"attached: mpirun -np 2, {tls}: checked ping-pong and allreduce", self._mpi, tls)
        finally:
            self._owner.process.kill()

    def _libfabric(self, hosts):
        """Run both sides on this host, because the server of fi_pingpong listens on 127.0.0.1 alone."""
        for program in libfabric_programs():
            self._port += 1
            self._check(f"attached: {program.name}", run_pair, program,
                        *[Side(host, DEVICE, "127.0.0.1") for host in hosts], self._port)

    def _wire(self, name, hosts, addresses, tcp_address, all_tests):
        self._check(f"{name}: ucx_info", self._info, hosts[0])
        programs = [(UcxPerf(test, size, tls=tls), family) for tls in ("rc", "ud") for family in ("ipv4", "ipv6")
                    for test, size in (UCP_TESTS if all_tests or family == "ipv4" else UCP_TESTS[:1])]
        programs += [(UcxPerf(*test, tls="rc", layer="uct"), "ipv4") for test in UCT_TESTS]
        programs.append((UcxPerf("am_lat", 8, tls="ud", layer="uct"), "ipv4"))
        # It polls, arms, and sleeps: several times, because a completion must come after its last poll.
        # ucp_get needs -o: without it the responder sleeps as many times as the requester reads. Nothing wakes it
        # with rc, and with ud one wake-up may serve two requests.
        programs += [(UcxPerf(*test, tls=tls, wait="sleep"), "ipv4") for tls in ("rc", "ud")
                     for test in (("tag_lat", 8), ("stream_bw", 8), ("ucp_get", 8, "-o"))]
        if not self._report.complete:  # each test by one transport and with one kind of address, other ones on each wire
            programs = programs[WIRES.index(name)::len(WIRES)]
        tables = []
        for program, family in programs:
            self._check(f"{name}: {family} {program.name}", self._run, hosts, addresses, tcp_address, program, family, tables)

    def _info(self, host):
        process = host.start(["ucx_info", "-d"])
        status = process.wait(SECONDS)
        story = process.story("ucx_info")
        process.kill()
        for transport in ("rc_verbs", "ud_verbs"):
            if status != 0 or not re.search(rf"Transport: {transport}\n#\s+Device: {DEVICE}:1", process.output()):
                raise CheckFailed(f"no {transport}, or exit {status}", story)

    def _mpi(self, tls):
        """mpirun starts both processes in one view; their messages go by UCX alone, and that by the device alone."""
        program = os.path.join(self._work_dir, "mpi_check")
        done = subprocess.run(["mpicc", "-O1", "-o", program, MPI_CHECK], capture_output=True, text=True)
        if done.returncode:
            raise CheckFailed("mpicc fails", done.stderr.splitlines())
        host = LocalHost("ucx-mpi", self._work_dir, [*self._namespace.prefix, UROCE_RUN, "--socket", self._owner.socket, "--"])
        process = host.start(["env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun", "--oversubscribe",
                              "-np", "2", "--mca", "pml", "ucx", "-x", f"UCX_TLS={tls},self", "-x",
                              f"UCX_NET_DEVICES={DEVICE}:1", program])
        status = process.wait(MPI_SECONDS)
        story = process.story("mpirun")
        process.kill()
        if status != 0 or process.output().count("of 2: all right") != 2:
            raise CheckFailed("hangs" if status is None else f"exit {status}", story)

    def _run(self, hosts, addresses, tcp_address, program, family, tables):
        if not tables:
            tables.extend(gids(host, DEVICE) for host in hosts)
        self._port += 1
        sides = [Side(host, DEVICE, tcp_address, gid_index(table, address if family == "ipv4" else "link-local"))
                 for host, table, address in zip(hosts, tables, addresses)]
        run_pair(program, *sides, self._port)
