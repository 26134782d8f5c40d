# SPDX-License-Identifier: BSD-3-Clause
"""The Linux peer: boot it in QEMU, and run commands in it over a virtio-serial port."""

import contextlib
import os
import re
import shlex
import socket
import subprocess
import time

from harness.process import (ESTABLISHED, LISTEN, TAIL_LINES, Namespace, Process, tcp_tables_show,
                             wait_until)

INTEROP_DIR = os.path.dirname(os.path.abspath(__file__))
TOP_DIR = os.path.dirname(os.path.dirname(INTEROP_DIR))
IMAGE_DIR = os.path.join(TOP_DIR, "build-interop")
PEER_PROGRAM = os.path.join(TOP_DIR, "build", "test", "interop", "interop_peer")
BOOT_SECONDS = 180   # an idle machine needs 6 s
KVM_SECONDS = 30
COMMAND_SECONDS = 60
PRECEDENCE = -18     # a nice value
MTU = 9000
VLAN = 5  # guest-init makes an interface in this VLAN
END_OF_ANSWER = re.compile(rb"\x1bexit (\d+)\n")


class GuestError(Exception):
    """The guest does not boot, or does not answer."""


def kvm_usable():
    """Return False for kvm_pvm, which runs only kernels that were made for it; Debian's is not."""
    hardware = any(os.path.exists(f"/sys/module/{m}") for m in ("kvm_intel", "kvm_amd"))
    return hardware and os.access("/dev/kvm", os.R_OK | os.W_OK)


def make_image(backports=False):
    """Make the guests' kernel and initramfs if they are not current. Return their folder."""
    image_dir = IMAGE_DIR + ("-backports" if backports else "")
    subprocess.run([os.path.join(INTEROP_DIR, "make-guest.sh"), image_dir, PEER_PROGRAM,
                    *(["backports"] if backports else [])], check=True)
    return image_dir


def bridged_network():
    """Return a network namespace with the bridge that connects the guests."""
    network = Namespace("net")
    network.run("ip", "link", "add", "br0", "type", "bridge", "stp_state", "0", "mcast_snooping",
                "0")
    network.run("ip", "link", "set", "br0", "mtu", str(MTU), "up")
    return network


class Hardware:
    """The hardware of a guest in addition to its ordinary NIC, and arguments for QEMU and for the kernel."""

    def __init__(self, devices=(), kernel="", machine="q35", cpus=2, memory_mib=512):
        self.devices = list(devices)
        self.kernel = kernel
        self.machine = machine
        self.cpus = cpus
        self.memory_mib = memory_mib


class Guest:
    """One guest on a tap device of the network namespace's bridge br0."""

    device = "rxe0"
    peer_program = "/usr/bin/interop_peer"

    def __init__(self, name, number, namespace, image_dir, work_dir, hardware=None):
        self.name = name
        self._hardware = hardware or Hardware()
        self.address = f"10.9.0.{number}"
        self.address6 = f"fd09::{number}"
        self.vlan_address = f"10.9.{VLAN}.{number}"
        self.vlan_host = self
        self._mac = f"52:54:00:09:00:{number:02x}"
        self._tap = f"tap{number}"
        self._namespace = namespace
        self._image_dir = image_dir
        self._socket_path = os.path.join(work_dir, f"{name}.sock")
        self._monitor_path = os.path.join(work_dir, f"{name}.monitor")
        self._log_path = os.path.join(work_dir, f"{name}.qemu")
        self._console_path = os.path.join(work_dir, f"{name}.console")
        self._socket = None
        self._programs = 0
        namespace.run("ip", "tuntap", "add", "dev", self._tap, "mode", "tap")
        namespace.run("ip", "link", "set", self._tap, "mtu", str(MTU), "master", "br0", "up")
        self._boot()

    def _boot(self):
        """Try KVM first if the machine seems to have it. Emulation always works."""
        if kvm_usable():
            try:
                self._boot_with("kvm", "host", KVM_SECONDS)
                return
            except GuestError as error:
                print(f"{self.name}: no boot with KVM ({error}); emulating")
                self._qemu.kill()
        # rxe's CRC in table form is faster under emulation than carry-less multiplication
        self._boot_with("tcg,thread=multi", "max,pclmulqdq=off", BOOT_SECONDS)

    def _boot_with(self, accel, cpu, seconds):
        start = time.monotonic()
        if os.path.exists(self._socket_path):
            os.unlink(self._socket_path)
        self._qemu = Process([*self._namespace.prefix, *self._qemu_argv(accel, cpu)],
                             self._log_path)
        self._socket = socket.socket(socket.AF_UNIX)
        if not wait_until(self._connect, KVM_SECONDS):
            raise GuestError(f"QEMU does not start: {self._qemu.output()}")
        self.run("true", seconds)
        address_ready = "test -e /sys/class/infiniband/rxe0 && ! ip addr | grep -q tentative"
        if not wait_until(lambda: self.run(address_ready)[0] == 0, BOOT_SECONDS, 0.2):
            raise GuestError("rxe0 does not come up")
        print(f"{self.name}: booted in {time.monotonic() - start:.1f} s ({accel.split(',')[0]}), "
              f"Linux {self.run('uname -r')[1].strip()}")

    def _qemu_argv(self, accel, cpu):
        return [
            "qemu-system-x86_64", "-machine", self._hardware.machine, "-accel", accel, "-cpu", cpu,
            "-smp", str(self._hardware.cpus), "-m", str(self._hardware.memory_mib), "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot", "-kernel", f"{self._image_dir}/vmlinuz",
            "-initrd", f"{self._image_dir}/initrd", "-serial", f"file:{self._console_path}",
            "-append", "console=ttyS0 quiet panic=-1 nokaslr mitigations=off no_timer_check "
                       f"random.trust_cpu=on peer_ip={self.address}/24 "
                       f"peer_ip6={self.address6}/64 peer_mtu={MTU} "
                       f"peer_vlan={VLAN} peer_vlan_ip={self.vlan_address}/24 {self._hardware.kernel}",
            *self._hardware.devices,
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=control,path={self._socket_path},server=on,wait=off",
            "-device", "virtserialport,chardev=control,name=control",
            # Without vnet_hdr nothing is offloaded: checksums are complete, and segments are not longer than the MTU.
            "-chardev", f"socket,id=monitor,path={self._monitor_path},server=on,wait=off",
            "-mon", "chardev=monitor,mode=readline",
            "-netdev", f"tap,id=net,ifname={self._tap},script=no,downscript=no,vnet_hdr=off",
            "-device", f"virtio-net-pci,netdev=net,mac={self._mac},host_mtu={MTU},romfile=",
        ]

    def _connect(self):
        if self._qemu.poll() is not None:
            raise GuestError(f"QEMU ended: {self._qemu.output()}")
        return self._socket.connect_ex(self._socket_path) == 0

    def run(self, command, seconds=COMMAND_SECONDS):
        """Run a shell command; return its exit status and its output."""
        self._socket.settimeout(seconds)
        self._socket.sendall(command.encode() + b"\n")
        answer = b""
        while not (end := END_OF_ANSWER.search(answer)):
            try:
                received = self._socket.recv(65536)
            except TimeoutError as error:
                raise GuestError(f"no answer in {seconds} s to: {command}") from error
            if not received:
                raise GuestError(f"QEMU ended: {self._qemu.output()}")
            answer += received.replace(b"\r\n", b"\n")
        return int(end.group(1)), answer[:end.start()].decode(errors="replace")

    def monitor(self, command):
        """Give a command to QEMU's monitor; return its output."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(COMMAND_SECONDS)
            monitor.connect(self._monitor_path)
            answer = self._monitor_answer(monitor)
            monitor.sendall(command.encode() + b"\n")
            answer = self._monitor_answer(monitor)
        return answer.decode(errors="replace")

    @staticmethod
    def _monitor_answer(monitor):
        answer = b""
        while not answer.endswith(b"(qemu) "):
            answer += monitor.recv(65536)
        return answer

    def qemu_output(self):
        """Return the output of QEMU's standard streams."""
        return self._qemu.output()

    def come_first(self):
        """Give the guest precedence over other load of the machine. If each session gets its own share of the CPUs,
        the nice value of a thread is not enough."""
        self._each_thread(lambda thread: os.setpriority(os.PRIO_PROCESS, thread, PRECEDENCE))
        if os.path.exists("/proc/self/autogroup"):
            with open(f"/proc/{self._qemu.pid}/autogroup", "w", encoding="ascii") as file:
                file.write(str(PRECEDENCE))

    def spread(self, first, cpus):
        """Pin each processor of the guest to its own CPU, from cpus[first] on, and QEMU's other threads to the
        other CPUs. If the scheduler chooses, the threads that carry the packets may wait for one CPU while
        another is idle."""
        processors = [int(thread) for thread in re.findall(r"thread_id=(\d+)", self.monitor("info cpus"))]
        own = {thread: cpus[(first + n) % len(cpus)] for n, thread in enumerate(processors)}
        others = set(cpus) - set(own.values()) or set(cpus)
        self._each_thread(lambda thread: os.sched_setaffinity(thread, {own[thread]} if thread in own else others))

    def _each_thread(self, change):
        """QEMU's threads for files and blocks end when they are idle, even between the listing and the change."""
        for thread in os.listdir(f"/proc/{self._qemu.pid}/task"):
            with contextlib.suppress(ProcessLookupError):
                change(int(thread))

    def start(self, argv):
        self._programs += 1
        return GuestProcess(self, argv, f"/tmp/{self._programs}")

    def cm_ids(self):
        """Return rdma_cm's ids of all programs, one for each line."""
        return self.run("rdma resource show cm_id")[1]

    def stop(self):
        """End the guest, as a machine that loses its power."""
        self._qemu.kill()

    def boot_again(self):
        """Boot the guest again after stop. Nothing that it stored is left."""
        self._boot()

    def console(self):
        """Return the text that the guest has written to its serial port (/dev/ttyS0) since it booted, also after stop."""
        with open(self._console_path, encoding="utf-8", errors="replace") as file:
            return file.read()


class GuestProcess:
    """A program in the guest, with the interface of harness.process.Process."""

    def __init__(self, guest, argv, base):
        self._guest = guest
        self._base = base
        self.argv = argv
        command = f"echo $$ >{base}.pid; exec {shlex.join(argv)}"
        guest.run(f"(setsid sh -c {shlex.quote(command)} >{base}.log 2>&1 3>&-; "
                  f"echo $? >{base}.exit) >/dev/null 2>&1 3>&- &")

    def poll(self):
        text = self._guest.run(f"cat {self._base}.exit 2>/dev/null")[1].strip()
        return int(text) if text else None

    def wait(self, seconds):
        wait_until(lambda: self.poll() is not None, seconds, 0.1)
        return self.poll()

    def kill(self):
        if self.poll() is None:
            self._guest.run(f"kill -9 -$(cat {self._base}.pid)")
            self.wait(COMMAND_SECONDS)
        self._guest.run(f"rm -f {self._base}.log {self._base}.pid")

    def terminate(self):
        self._guest.run(f"kill -TERM -$(cat {self._base}.pid)")

    def listens(self, port):
        return tcp_tables_show(self._tcp_tables(), LISTEN, port)

    def connected(self, port):
        return tcp_tables_show(self._tcp_tables(), ESTABLISHED, port)

    def _tcp_tables(self):
        return self._guest.run("cat /proc/net/tcp /proc/net/tcp6")[1]

    def output(self):
        return self._guest.run(f"cat {self._base}.log")[1]

    def story(self, title):
        status = self.poll()
        state = "still running" if status is None else f"exit {status}"
        lines = [f"{title} (in {self._guest.name}): {' '.join(self.argv)}: {state}"]
        return lines + ["| " + line for line in self.output().splitlines()[-TAIL_LINES:]]
