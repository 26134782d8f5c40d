# SPDX-License-Identifier: BSD-3-Clause
"""Files of uroce for the guest, appended to the guest's own initramfs."""

import os
import re
import shutil
import subprocess

from harness.tools import UROCE_RUN

GUEST_DIR = "/opt/uroce"
GUEST_UROCE_RUN = f"{GUEST_DIR}/app/uroce-run"
GUEST_UROCED = f"{GUEST_DIR}/app/uroced"
IGB_UIO = f"{GUEST_DIR}/igb_uio.ko"  # nic/make-igb-uio.sh makes it there
GUEST_STEERED = f"{GUEST_DIR}/app/examples/steered"
GUEST_REMOTE_WRITE = f"{GUEST_DIR}/app/examples/remote_write"
GUEST_POLLERS = f"{GUEST_DIR}/app/examples/pollers"
GUEST_CONNECT_RATE = f"{GUEST_DIR}/connect_rate"
GUEST_QP_CROWD = f"{GUEST_DIR}/qp_crowd"
CONNECT_RATE, QP_CROWD = (os.path.join(os.path.dirname(UROCE_RUN), "..", "test", *path)
                          for path in (("perf", "connect_rate"), ("programs", "qp_crowd")))
UROCED = os.path.join(os.path.dirname(UROCE_RUN), "uroced")
STEERED, REMOTE_WRITE, POLLERS = (os.path.join(os.path.dirname(UROCE_RUN), "examples", name)
                                  for name in ("steered", "remote_write", "pollers"))
LIBRARIES = [os.path.join(os.path.dirname(UROCE_RUN), "..", "lib", "verbs", name)
             for name in ("libibverbs.so.1", "librdmacm.so.1", "liburoce-attached.so", "liburoce.so.0")]
TESTPMD = "/usr/bin/dpdk-testpmd"
LIBRARIES_DIR = "/lib/x86_64-linux-gnu/"
DRIVERS_DIR = "/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0"
DRIVERS = ("bus_vdev", "bus_pci", "mempool_ring", "mempool_stack", "net_af_packet", "net_virtio",
           "net_e1000", "net_vmxnet3", "net_tap")


def _libraries(path):
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+)", listed)


def _install(source, tree, path):
    target = tree + path
    if not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(os.path.realpath(source), target)


def _install_testpmd(tree):
    _install(TESTPMD, tree, TESTPMD)
    for library in _libraries(TESTPMD):
        place = LIBRARIES_DIR + os.path.basename(library) if library.startswith(DRIVERS_DIR) else library
        _install(library, tree, place)


def add_uroce(image_dir, work_dir, testpmd=False):
    """Return a folder like image_dir whose guest also has uroce, and DPDK's testpmd if `testpmd` is true."""
    tree = os.path.join(work_dir, "tree")
    _install(UROCE_RUN, tree, GUEST_UROCE_RUN)
    _install(UROCED, tree, GUEST_UROCED)
    _install(STEERED, tree, GUEST_STEERED)
    _install(REMOTE_WRITE, tree, GUEST_REMOTE_WRITE)
    _install(POLLERS, tree, GUEST_POLLERS)
    _install(CONNECT_RATE, tree, GUEST_CONNECT_RATE)
    _install(QP_CROWD, tree, GUEST_QP_CROWD)
    for library in LIBRARIES:
        _install(library, tree, f"{GUEST_DIR}/lib/verbs/{os.path.basename(library)}")
    drivers = [f"{DRIVERS_DIR}/librte_{driver}.so.23" for driver in DRIVERS]
    for file in (UROCE_RUN, UROCED, STEERED, REMOTE_WRITE, POLLERS, CONNECT_RATE, *LIBRARIES, *drivers):
        for library in _libraries(file):
            _install(library, tree, library)
    if os.path.exists(f"{image_dir}/igb_uio.ko"):
        _install(f"{image_dir}/igb_uio.ko", tree, IGB_UIO)
    if testpmd:
        _install_testpmd(tree)
    os.makedirs(tree + DRIVERS_DIR)
    for driver in drivers:
        # Add each file once: a driver that is loaded under two names is two drivers.
        library = LIBRARIES_DIR + os.path.basename(driver)
        _install(driver, tree, library)
        os.symlink(library, tree + DRIVERS_DIR + "/" + os.path.basename(driver).removesuffix(".23"))
    os.makedirs(f"{tree}/var/run")
    with open(f"{work_dir}/initrd", "wb") as initrd:
        with open(f"{image_dir}/initrd", "rb") as own:
            shutil.copyfileobj(own, initrd)
        # the kernel expects each archive at a multiple of four bytes
        initrd.write(b"\0" * (-initrd.tell() % 4))
        initrd.flush()
        subprocess.run("find . | cpio --quiet -o -H newc -R 0:0", shell=True, cwd=tree, stdout=initrd, check=True)
    shutil.copy2(f"{image_dir}/vmlinuz", work_dir)
    return work_dir
