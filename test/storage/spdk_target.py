# SPDX-License-Identifier: BSD-3-Clause
"""SPDK's programs, which run DPDK themselves, as clients of uroced. nvme.py says where they are."""

import contextlib
import json
import os

from harness.process import LocalHost, Process
from harness.tools import UROCE_RUN
from nvme import SMALL, config_text, find_program, lacks

UROCED = os.path.join(os.path.dirname(UROCE_RUN), "uroced")
TARGET = "nqn.2026-11.test.uroce:spdk"
PORT = 4420
# By these an initiator knows the disk again when the target starts anew: Linux removes a disk that has others.
UUID = "00000000-0000-4000-8000-000000000001"
NGUID = UUID.replace("-", "")
HUGE_PAGES = 80  # the target has 70


def missing():
    """Why SPDK's programs cannot run here, or None."""
    return lacks(("nvmf_tgt", "spdk_nvme_perf", "spdk_nvme_identify", "bdevperf"), HUGE_PAGES)


def _config(address, file):
    """A namespace on a file. The pools are small, for a default target takes 490 MiB of huge pages."""
    def method(called, /, **parameters):
        return {"method": called, "params": parameters}
    return {"subsystems": [
        {"subsystem": "iobuf", "config": [method("iobuf_set_options", small_pool_count=1024, large_pool_count=128,
                                                 small_bufsize=8192, large_bufsize=135168)]},
        {"subsystem": "bdev", "config": [
            method("bdev_set_options", bdev_io_pool_size=2048, bdev_io_cache_size=64, iobuf_small_cache_size=64,
                   iobuf_large_cache_size=8),
            method("bdev_aio_create", name="disk", filename=file, block_size=512), {"method": "bdev_wait_for_examine"}]},
        {"subsystem": "nvmf", "config": [
            method("nvmf_create_transport", trtype="RDMA", num_shared_buffers=512, buf_cache_size=32),
            method("nvmf_create_subsystem", nqn=TARGET, allow_any_host=True, serial_number="1", model_number="disk"),
            method("nvmf_subsystem_add_ns", nqn=TARGET, namespace={
                "nsid": 1, "bdev_name": "disk", "uuid": UUID, "nguid": NGUID}),
            method("nvmf_subsystem_add_listener", nqn=TARGET, listen_address={
                "trtype": "RDMA", "adrfam": "IPv4", "traddr": address, "trsvcid": str(PORT)})]}]}


class Spdk:
    """
    uroced on a kernel interface, and programs of SPDK that attach to it. They poll without an end, so they get no more of
    a busy machine than others.
    """

    def __init__(self, work_dir, namespace, netdev, address):
        self._work_dir = work_dir
        self._address = address
        self._socket = os.path.join(work_dir, "spdk.sock")
        self._uroced = LocalHost("uroced", work_dir, [*namespace.prefix, UROCED, "--netdev", netdev], 0)
        self._prefix = [*namespace.prefix, UROCE_RUN, "--socket", self._socket, "--"]
        self._cpu = os.cpu_count() - 1
        self._started = 0

    def start_uroced(self, running):
        """Starts the port's owner. One that was killed has left its socket."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._socket)
        uroced = running.add(self._uroced.start(["--socket", self._socket]))
        running.wait_for(uroced, lambda: os.path.exists(self._socket), f"{self._socket} does not appear")

    def start(self, running, name, *arguments):
        """Starts one of the programs."""
        self._started += 1
        log = os.path.join(self._work_dir, f"spdk-{self._started}.log")
        return running.add(Process([*self._prefix, find_program(name), *arguments], log))

    def serve(self, running, file):
        """Starts nvmf_tgt with a namespace on a file; returns its process."""
        path = os.path.join(self._work_dir, "spdk.json")
        with open(path, "w", encoding="utf-8") as config:
            json.dump(_config(self._address, file), config)
        target = self._start_application(running, "nvmf_tgt", path)
        running.wait_for_output(target, f"Listening on {self._address} port {PORT}")
        return target

    def _start_application(self, running, name, config, *arguments):
        return self.start(running, name, "-m", hex(1 << self._cpu), *SMALL, "-r",
                          os.path.join(self._work_dir, f"{name}.rpc"), "-c", config, *arguments)

    def verify(self, running, address, target, *arguments):
        """
        Starts bdevperf on a target's disk: it reads each block that it has written. SPDK closes a queue before it begins, and
        opens one with the same number; Linux may still have the first ("qid 1 has already been created"), and refuses that. So
        SPDK has to connect again.
        """
        path = os.path.join(self._work_dir, "bdevperf.json")
        with open(path, "w", encoding="utf-8") as config:
            config.write(config_text(("bdev", [("bdev_nvme_attach_controller", {
                "name": "Nvme0", "trtype": "RDMA", "adrfam": "IPv4", "traddr": address, "trsvcid": str(PORT),
                "subnqn": target, "ctrlr_loss_timeout_sec": -1, "reconnect_delay_sec": 1})])))
        return self._start_application(running, "bdevperf", path, "-w", "verify", *arguments)
