# SPDX-License-Identifier: BSD-3-Clause
"""Checks of uroce-run: its refusals, and the effects that a program must not notice."""

import os
import re
import signal
import sys

from harness.process import LocalHost, Namespace, ask, wait_until
from harness.report import CheckFailed
from harness.tools import UROCE_RUN

SECONDS = 30
PORT = 21000
# A program that opens the device; the test appends further actions.
OPEN_DEVICE = """
import ctypes, os, sys, time
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_open_device.argtypes, verbs.ibv_open_device.restype = [ctypes.c_void_p], ctypes.c_void_p
if not verbs.ibv_open_device(verbs.ibv_get_device_list(None)[0]):
    sys.exit("no device")
"""
HUGE_PAGES = os.path.join(os.path.dirname(UROCE_RUN), "..", "test", "programs", "libhuge_pages.so")
ENDPOINTS = os.path.join(os.path.dirname(UROCE_RUN), "..", "test", "programs", "endpoints")
NULL_PORT = ["--port", "net_null0", "--ip", "10.9.3.1/24"]


class UroceRunTest:
    """The checks run in a namespace, so that a wrong uroce-run cannot reach the machine's interfaces."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._namespace = Namespace("tool")

    def run_all(self):
        self._make_interfaces()
        own = ["--ip", "10.9.3.1/24"]
        refusals = {
            "no such interface": (["--netdev", "nosuch0"], "no interface 'nosuch0'"),
            "interface without address": (["--netdev", "bare0"], "bare0 has no address"),
            "interface of a tiny MTU": (["--netdev", "tiny0"], "an MTU of 300 bytes is too small"),
            "MTU beyond the interface's": (["--netdev", "tiny0", "--mtu", "1500"], "an MTU of 300, less than the 1500"),
            "no right to packets": (["--netdev", "tiny0"], "CAP_NET_RAW"),
            "unknown driver": (["--port", "net_nosuch0", *own], "no DPDK driver for 'net_nosuch0'"),
            "unknown argument": (["--port", "net_null0,foo=1", *own], "takes no argument 'foo'"),
            "argument of a wrong kind": (["--port", "net_null0,size=abc", *own], "not 'size=abc'"),
            "missing argument": (["--port", "net_vhost0", *own], "net_vhost0 needs iface=PATH"),
            "role that there is not": (["--port", "net_memif0,role=nobody", *own], "nobody"),
            "argument of DPDK's memif": (["--port", "net_memif0,zero-copy=yes", *own], "zero-copy=yes"),
            "interface as port": (["--port", "tiny0", *own], "use --netdev"),
            "port without address": (["--port", "net_null0"], "port needs an address"),
            "malformed address": (["--port", "net_null0", "--ip", "10.9.3.300/24"], "10.9.3.300"),
            "malformed prefix length": (["--port", "net_null0", "--ip", "10.9.3.1/33"], "10.9.3.1/33"),
            "no port at all": ([], "--netdev"),
            "unknown option": ([*NULL_PORT, "--nosuch"], "nosuch"),
            "missing configuration file": (["--config", "/nosuch/uroce.conf"], "/nosuch/uroce.conf"),
        }
        for name, (options, text) in refusals.items():
            before = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-all"] if "CAP" in text else []
            self._check(f"refuses: {name}", self._refuses, options, text, before)
        self._check("exit status is the program's", self._exit_status)
        self._check("a signal's exit status is the program's", self._signal_status)
        self._check("without huge pages it runs, and says so once", self._no_huge_pages)
        self._check("huge pages that are taken meanwhile: one line", self._lost_huge_pages)
        self._check("nothing of its own on stdout", self._stdout)
        self._check("--name names the device", self._device_name)
        self._check("CPU affinity is untouched", self._affinity)
        endpoints = {
            "connected": "both sides of a connection by rdma_verbs.h, on an address that the device does not have",
            "datagrams": "the same of a datagram service",
        }
        for name, text in endpoints.items():
            self._check(text, self._expectation, ENDPOINTS, name)

    def _make_interfaces(self):
        self._namespace.run("ip", "link", "add", "tiny0", "mtu", "300", "type", "veth", "peer", "name", "bare0")
        for name in ("tiny0", "bare0"):
            self._namespace.run("sh", "-c", f"echo 1 >/proc/sys/net/ipv6/conf/{name}/disable_ipv6 || true")
            self._namespace.run("ip", "link", "set", name, "up")
        self._namespace.run("ip", "addr", "add", "10.9.8.1/24", "dev", "tiny0")

    def _check(self, name, function, *args):
        self._report.check(f"uroce-run: {name}", function, *args)

    def _run(self, options, *program, before=()):
        argv = [*self._namespace.prefix, *before, UROCE_RUN, *options, "--", *program]
        return ask(argv, SECONDS)

    @staticmethod
    def _expect(condition, reason, done):
        if not condition:
            raise CheckFailed(reason, [" ".join(done.args), f"exit {done.returncode}",
                                       *done.stdout.splitlines(), *done.stderr.splitlines()])

    def _refuses(self, options, text, before):
        """Expect one clear line and exit code 1, before the program starts or when it asks for a device."""
        done = self._run(options, "ibv_devinfo", before=before)
        self._expect(done.returncode == 1, "exit status is not 1", done)
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        self._expect(len(lines) == 1, "not one line on stderr", done)
        self._expect(text in lines[0], f"stderr does not say: {text}", done)

    def _exit_status(self):
        done = self._run(NULL_PORT, sys.executable, "-c", OPEN_DEVICE + "sys.exit(42)")
        self._expect(done.returncode == 42, "exit status is not 42", done)

    def _signal_status(self):
        for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGRTMAX):
            done = self._run(NULL_PORT, sys.executable, "-c",
                             OPEN_DEVICE + f"os.kill(os.getpid(), {int(number)}); time.sleep(60)")
            self._expect(done.returncode in (-number, 128 + number), f"not ended by {number.name}", done)

    @staticmethod
    def _huge_page_mappings(count):
        """Return a command prefix that simulates a machine with huge pages for that many mappings."""
        return ["env", f"LD_PRELOAD={HUGE_PAGES}", f"HUGE_PAGE_MAPPINGS={count}"]

    def _no_huge_pages(self):
        done = self._run(NULL_PORT, *self._huge_page_mappings(0), "ibv_devices")
        self._expect(done.returncode == 0 and "uroce0" in done.stdout, "it does not run", done)
        lines = done.stderr.splitlines()
        self._expect(len(lines) == 1 and "no huge pages are free" in lines[0], "not said once", done)

    def _lost_huge_pages(self):
        """The library finds free huge pages, of 2 MiB or 1 GiB, but DPDK gets none."""
        done = self._run(NULL_PORT, *self._huge_page_mappings(1), "ibv_devices")
        lines = done.stderr.splitlines()
        self._expect(len(lines) == 1, "not one line on stderr", done)
        if "no huge pages are free" not in lines[0]:  # this machine has free huge pages
            self._expect(done.returncode == 1 and "has just taken the huge pages" in lines[0], "not refused", done)

    def _stdout(self):
        done = self._run(NULL_PORT, "ibv_devices")
        self._expect(done.returncode == 0, "exit status is not 0", done)
        lines = done.stdout.splitlines()
        self._expect(len(lines) == 3 and "uroce0" in lines[2], "stdout is not ibv_devices'", done)
        self._expect("EAL" not in done.stderr, "EAL talks on stderr", done)

    def _expectation(self, program, name):
        done = self._run(NULL_PORT, program, name)
        self._expect(done.returncode == 0, "it is not so", done)

    def _device_name(self):
        done = self._run([*NULL_PORT, "--name", "other7"], "ibv_devices")
        self._expect("other7" in done.stdout, "the name is not other7", done)

    def _affinity(self):
        """EAL pins the thread that starts it. A server that listens has finished its start."""
        host = LocalHost("affinity", self._work_dir,
                         [*self._namespace.prefix, UROCE_RUN, *NULL_PORT, "--"])
        server = host.start(["ib_write_bw", "-F", "-d", "uroce0", "-p", str(PORT)])
        try:
            if not wait_until(lambda: server.listens(PORT) or server.poll() is not None, SECONDS) \
                    or server.poll() is not None:
                raise CheckFailed("the server does not listen", server.story("server"))
            allowed = self._allowed_cpus(server.pid)
            if allowed != self._allowed_cpus("self"):
                raise CheckFailed(f"the first thread may run on {allowed} only")
        finally:
            server.kill()

    @staticmethod
    def _allowed_cpus(pid):
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return re.search(r"Cpus_allowed_list:\s*(\S+)", file.read()).group(1)


def huge_files():
    """Return files in hugetlbfs that no process maps: a dead process left them."""
    try:
        files = {os.path.join("/dev/hugepages", name) for name in os.listdir("/dev/hugepages")}
    except OSError:
        return set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
                files -= {line.split()[-1] for line in maps if "/dev/hugepages/" in line}
        except OSError:
            pass
    return files
