# SPDX-License-Identifier: BSD-3-Clause
"""SPDK's programs for NVMe over Fabrics: where they are, how they are configured, and how they start on a pair of sides.

SPDK is no package of Debian: the environment variable SPDK names the folder of its programs. It runs DPDK itself, in
huge pages, so a port of ours is in its EAL, or the process is attached to uroced."""

import json
import os

from sides import lacks_pages

SECONDS = 60
PORT = 4420
NQN = "nqn.2026-11.test.uroce:disk"
SERIAL = "UROCE0001"
LUN_BYTES = 32 << 20
SECTOR = 512
HUGE_PAGES = 200  # of 2 MiB: a target has 70, an initiator 60, and a port a few
PROGRAMS = {"nvmf_tgt": "bin", "spdk_nvme_perf": "bin", "spdk_nvme_identify": "bin", "spdk_dd": "bin",
            "bdevperf": "examples"}
# The applications' pools, smaller than they are by default; no network card of the machine is touched.
SMALL = ["-u", "--disable-cpumask-locks", "--msg-mempool-size", "8191", "--num-trace-entries", "0"]
POOLS = [("iobuf", [("iobuf_set_options", {"small_pool_count": 1024, "large_pool_count": 128})]),
         ("bdev", [("bdev_set_options", {"bdev_io_pool_size": 2048, "bdev_io_cache_size": 64,
                                         "iobuf_small_cache_size": 64, "iobuf_large_cache_size": 8})])]


def find_program(name):
    """Its path in the folder that SPDK names: SPDK's own layout of a build, or all in one."""
    folder = os.environ.get("SPDK", "")
    for part in (PROGRAMS[name], f"build/{PROGRAMS[name]}", "."):
        path = os.path.join(folder, part, name)
        if folder and os.access(path, os.X_OK):
            return os.path.abspath(path)
    return None


def lacks(programs, pages=HUGE_PAGES):
    """Why these programs cannot run here; None if they can. `pages` are what they take."""
    missing = [each for each in programs if not find_program(each)]
    if missing:
        return f"SPDK={os.environ.get('SPDK', '')} has no {missing[0]}"
    return lacks_pages(pages)


def config_text(*parts):
    """SPDK's configuration: subsystems with calls, made in this order."""
    subsystems = {}
    for name, calls in [*POOLS, *parts]:
        subsystems.setdefault(name, []).extend({"method": method, "params": params} for method, params in calls)
    subsystems["bdev"].append({"method": "bdev_wait_for_examine"})
    return json.dumps({"subsystems": [{"subsystem": name, "config": calls} for name, calls in subsystems.items()]})


class Nvme:
    """A target and initiators on a pair of sides, by one of SPDK's transports."""

    def __init__(self, sides, transport="RDMA"):
        self._sides = sides
        self._transport = transport
        self._listener = {"trtype": transport, "adrfam": "IPv4", "traddr": sides.address, "trsvcid": str(PORT)}
        self.lun = os.path.join(sides.work_dir, f"{sides.wire}.nvme")

    def _write_config(self, name, *parts):
        path = os.path.join(self._sides.work_dir, f"{self._sides.wire}-{name}.json")
        with open(path, "w", encoding="ascii") as file:
            file.write(config_text(*parts))
        return path

    def _start(self, running, side, argv, impair=""):
        """Starts a program on the side's device, or beside it: TCP is the kernel's."""
        if self._transport != "RDMA":
            return running.add(side.start_beside(argv))
        return running.add(side.start(argv, ["--impair", impair] if impair else []))

    def _start_application(self, running, side, program, *options, impair=""):
        """Starts an application, pinned to its side's CPU as SPDK does it."""
        argv = [find_program(program), "-m", hex(1 << side.cpu), *SMALL, *options]
        if program != "spdk_dd":
            argv += ["-r", os.path.join(self._sides.work_dir, f"{program}.rpc")]
        return self._start(running, side, argv, impair)

    def start_target(self, running, transport=None, options=(), file=False, impair=""):
        """A target with one namespace: a disk in memory, or the file of the LUN, which outlives the target."""
        disk = ("bdev_aio_create", {"name": "Disk0", "filename": self.lun, "block_size": SECTOR}) if file else \
            ("bdev_malloc_create", {"name": "Disk0", "num_blocks": LUN_BYTES // SECTOR, "block_size": SECTOR})
        config = self._write_config("target", ("bdev", [disk]), ("nvmf", [
            ("nvmf_create_transport", {"trtype": self._transport, "num_shared_buffers": 512, "buf_cache_size": 32,
                                       **(transport or {})}),
            ("nvmf_create_subsystem", {"nqn": NQN, "allow_any_host": True, "serial_number": SERIAL}),
            ("nvmf_subsystem_add_ns", {"nqn": NQN, "namespace": {"nsid": 1, "bdev_name": "Disk0"}}),
            ("nvmf_subsystem_add_listener", {"nqn": NQN, "listen_address": self._listener})]))
        target = self._start_application(running, self._sides.target, "nvmf_tgt", "-c", config, *options, impair=impair)
        running.wait_for_output(target, "Target Listening on", SECONDS)
        return target

    @staticmethod
    def end_target(running, target):
        """The target ends by itself when asked to, cleanly."""
        target.terminate()
        running.expect(target, SECONDS, "target")

    def start_client(self, running, program, *options):
        """Starts an initiator that is given the target's address: perf, identify."""
        name = f"trtype:{self._transport} adrfam:IPv4 traddr:{self._sides.address} trsvcid:{PORT} subnqn:{NQN}"
        return self._start(running, self._sides.initiator, [find_program(program), *options, "-r", name])

    def start_perf(self, running, pattern, size, depth, seconds, *options):
        return self.start_client(running, "spdk_nvme_perf", "-c", hex(1 << self._sides.initiator.cpu), "-q", str(depth),
                                 "-o", str(size), "-w", pattern, "-M", "50", "-t", str(seconds), *options)

    def start_user(self, running, program, *options):
        """Starts an application with the disk as a block device, which connects again for ever."""
        config = self._write_config("initiator", ("bdev", [("bdev_nvme_attach_controller", {
            "name": "Nvme0", **self._listener, "subnqn": NQN, "ctrlr_loss_timeout_sec": -1,
            "reconnect_delay_sec": 1})]))
        return self._start_application(running, self._sides.initiator, program, "-c", config, *options)
