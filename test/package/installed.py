# SPDX-License-Identifier: BSD-3-Clause
"""The packages in a clean Debian: installed, used, upgraded while uroced runs, and purged."""

import os
import re
import shlex
import signal

from examples import readme_commands
from harness.process import wait_until
from harness.report import CheckFailed

# What changes without uroce: files of apt and dpkg themselves, and what they keep of every package.
NOT_OURS = r"/(proc|sys|dev|run|tmp|var/lib/dpkg|var/lib/apt|var/cache|var/log|root|home)(/|$)|/etc/(ld\.so\.cache|.*-)$"
NEEDED = r"uroce$|librte-|libisal2|libjson-c5|libbsd0|libmd0|libpcap0|libdbus|libelf1|libfdt1|libnuma1|libarchive13|libxml2|libbpf1"
PROGRAMS = "ibverbs-utils perftest rdmacm-utils ucx-utils bash-completion systemd-standalone-sysusers"
# The client tries again until the server listens.
PAIR = """ib_send_bw -d uroce0 & server=$!
until ib_send_bw -d uroce0 localhost; do sleep 0.2; kill -0 $server || exit 9; done; wait"""
# A connection that lives as long as the test wants it to.
LONG_PAIR = """uroce-run --socket /tmp/uroced.sock -- ib_write_bw -d uroce0 --run_infinitely -D 1 >/tmp/server.log 2>&1 &
until uroce-run --socket /tmp/uroced.sock -- ib_write_bw -d uroce0 --run_infinitely -D 1 localhost >/tmp/client.log 2>&1
do sleep 0.2; done"""
SHORT_PAIR = """uroce-run --socket /tmp/uroced.sock -- ib_write_bw -p 18600 -d uroce0 >/dev/null 2>&1 &
for try in $(seq 50); do
uroce-run --socket /tmp/uroced.sock -- ib_write_bw -p 18600 -d uroce0 localhost && exit; sleep 0.2; done; exit 1"""


class InstalledTest:
    """All checks, one after the other in one place."""

    def __init__(self, report, place, debs):
        self._report = report
        self._place = place
        self._debs = debs
        self._before = None

    def run_all(self):
        if not self._report.require("package: apt installs it, and only what it needs", self._install):
            return
        self._check("README's first lines", self._readme)
        self._check("nothing of the system's libibverbs is replaced", self._system_library)
        self._check("a container's user: uroce-run --local", self._local)
        self._check("a container's user without memory to lock", self._local, "prlimit --memlock=0 ")
        self._check("manual pages and completion", self._completion)
        self._check("an application with liburoce-dev", self._develop)
        self._check("upgrade while uroced runs", self._upgrade)
        self._check("purge leaves nothing", self._purge)

    def _check(self, name, function, *args):
        self._report.check(f"package: {name}", function, *args)

    def _snapshot(self):
        found = self._place.run("find / -xdev -printf '%p\\n' 2>/dev/null; getent passwd; getent group")
        return {line for line in found.splitlines() if not re.match(NOT_OURS, line)}

    def _install(self):
        """Install the programs that use uroce first, so that the difference is what uroce itself brings. Then remove uroce, but
        not the packages that it needs, and take a snapshot, to see later what a purge leaves."""
        place = self._place
        place.add_user()
        place.install(PROGRAMS)
        before = self._installed()
        for package in ("uroce", "liburoce-dev"):
            place.copy(self._debs.file(package), "/tmp")
        place.install("/tmp/uroce_*.deb")
        brought = self._installed() - before
        unexpected = sorted(name for name in brought if not re.match(NEEDED, name))
        if unexpected:
            raise CheckFailed("uroce brings packages that it should not need", unexpected)
        place.install("/tmp/liburoce-dev_*.deb gcc libc6-dev pkgconf")
        place.run("dpkg -P liburoce-dev uroce")
        self._before = self._snapshot()
        place.run("dpkg -i /tmp/uroce_*.deb /tmp/liburoce-dev_*.deb && getent passwd uroce")

    def _installed(self):
        return set(self._place.run("dpkg-query -Wf '${Package}\\n'").split())

    def _readme(self):
        """Run README's first commands as they are written, without sudo. The build has been run; the packages are installed
        already, so apt needs no network."""
        _, _, install, *commands = readme_commands()
        self._place.run(f"mkdir -p /tmp/tree && cd /tmp/tree && {install.removeprefix('sudo ')} </dev/null")
        output = "".join(self._place.run(command, user=True, seconds=180) for command in commands)
        for pattern in (r"1000 iters in", r"65536 +5000 +\d", r"ping data: rdma-ping-4", r"\[thread 0\]|Final: +\d+"):
            if not re.search(pattern, output):
                raise CheckFailed(f"nothing matches {pattern}", output.splitlines()[-40:])

    def _system_library(self):
        self._place.run("dpkg --verify libibverbs1 librdmacm1 && test -z \"$(dpkg-divert --list '*ibverbs*')\"")
        output = self._place.run("ldd /usr/bin/ib_write_bw; ibv_devices || true")
        if "/uroce/" in output or "uroce0" in output:
            raise CheckFailed("programs find uroce by themselves", output.splitlines())
        output = self._place.run("uroce-run --local -- ldd /usr/bin/ib_write_bw", user=True)
        if not re.search(r"libibverbs\.so\.1 => /usr/lib/[^/]+/uroce/libibverbs\.so\.1", output):
            raise CheckFailed("uroce-run does not find its library", output.splitlines())

    def _local(self, limit=""):
        """Run a pair as a container's user: without capabilities, with a /dev/shm of 64 MiB, and with little or no memory that
        may be locked."""
        place = self._place
        output = place.run("grep -E 'Cap(Eff|Prm|Bnd)|NoNewPrivs' /proc/self/status; df -m /dev/shm", user=True)
        if len(re.findall(r"Cap\w+:\s+0000000000000000", output)) != 3 or " 64 " not in output:
            raise CheckFailed("this place is not restricted", output.splitlines())
        output = place.run(f"{limit}uroce-run --local -- sh -c '{PAIR}; cat /sys/class/infiniband/uroce0/node_type; rdma link'",
                           user=True)
        if "1: CA" not in output:
            raise CheckFailed("no view of the device", output.splitlines())
        if "link uroce0/1 state" not in output:
            raise CheckFailed("no rdma(8) of the view", output.splitlines())
        if not wait_until(lambda: not place.run("ls -d /tmp/uroce-* /dev/shm/uroce-* 2>/dev/null || true"), 20, 0.5):
            raise CheckFailed("files are left", place.run("ls -d /tmp/uroce-* /dev/shm/uroce-*").splitlines())

    def _completion(self):
        for page in ("1 uroce-run", "1 uroce-ctl", "1 testroce", "8 uroced", "5 uroce.conf"):
            section, name = page.split()
            self._place.run(f"zcat /usr/share/man/man{section}/{name}.{section}.gz | grep -q ^.TH")
        for words, expected in (("uroce-run --lo", "--local --log-level"), ("uroce-run --progress d", "dedicated"),
                                ("uroce-run --local -- ibv_devi", "ibv_devices ibv_devinfo"),
                                ("uroced --hand-over ch", "checked"), ("uroce-ctl reso", "resource"),
                                ("uroce-ctl resource show q", "qp"), ("uroce-ctl top s", ""), ("uroce-ctl monitor p", "pid"),
                                ("uroce-ctl capture q", "qp"), ("uroce-ctl congestion s", "set show"),
                                ("uroce-ctl metrics s", "show"), ("uroce-ctl cdi s", "socket"), ("uroce-ctl doctor d", ""),
                                ("uroce-run --sack a", "auto"), ("uroce-run --sack auto -- ibv_devi", "ibv_devices ibv_devinfo"),
                                ("uroce-run --sack auto ibv_devi", "ibv_devices ibv_devinfo"),
                                ("testroce --mode st", "storage"),
                                ("uroce-run --netdev l", "lo")):
            found = " ".join(sorted(set(self._complete(words.split()))))
            if found != expected:
                raise CheckFailed(f"'{words}' is completed by '{found}', not by '{expected}'")

    def _complete(self, words):
        """Call the completion function. compopt, which it calls for commands, complains outside of a real completion."""
        array = " ".join(shlex.quote(word) for word in words)
        script = f""". /usr/share/bash-completion/bash_completion
COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; COMP_LINE="{' '.join(words)}"; COMP_POINT=${{#COMP_LINE}}
_completion_loader {words[0]}; _uroce {words[0]} {shlex.quote(words[-1])} {shlex.quote(words[-2])} 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}\""""
        return self._place.run(f"bash -c {shlex.quote(script)}", user=True).split()

    def _develop(self):
        """Debian's compiler builds the example as a user would, and it finds its library by itself."""
        place = self._place
        place.run("cp -r /usr/share/doc/liburoce-dev/examples /tmp/app && cd /tmp/app && gunzip -f *.gz 2>/dev/null; "
                  "cc -o embedded embedded.c two_ports.c meet.c meet_socket.c rc.c $(pkg-config --cflags --libs uroce libdpdk) -lpthread")
        output = place.run("ldd /tmp/app/embedded")
        if not re.search(r"libibverbs\.so\.1 => /usr/lib/[^/]+/uroce/", output):
            raise CheckFailed("it finds another library", output.splitlines())
        if place.run("pkg-config --modversion uroce").strip() not in place.run("uroce-run --version"):
            raise CheckFailed("pkg-config and uroce-run name different versions")

    def _upgrade(self):
        """Upgrade while a connection is busy. It goes on, uroced is not restarted, and new programs run with both."""
        place = self._place
        place.copy(self._debs.file("uroce", self._debs.later), "/tmp")
        uroced = place.start("exec uroced --port local0 --ip 198.18.9.1/24 --socket /tmp/uroced.sock --socket-mode 0666")
        place.run("until [ -S /tmp/uroced.sock ]; do sleep 0.1; done")
        pair = place.start(LONG_PAIR)
        try:
            if not wait_until(lambda: "MB/sec" in place.run("cat /tmp/client.log 2>/dev/null || true"), 60, 0.5):
                raise CheckFailed("the pair does not start", place.run("cat /tmp/*.log").splitlines())
            before = place.run("pidof uroced ib_write_bw")
            place.run("dpkg -i /tmp/uroce_*+later_*.deb")
            lines = place.run("wc -l </tmp/client.log")
            if not wait_until(lambda: place.run("wc -l </tmp/client.log") != lines, 20, 0.5):
                raise CheckFailed("the pair does not go on", place.run("cat /tmp/client.log").splitlines())
            if place.run("pidof uroced ib_write_bw") != before:
                raise CheckFailed("other processes run", [before, place.run("pidof uroced ib_write_bw")])
            place.run(SHORT_PAIR)
        finally:
            for process in (pair, uroced):
                os.killpg(process.pid, signal.SIGTERM)
            place.run("pkill -x ib_write_bw; pkill -x uroced; true")
            pair.wait()
            uroced.wait()

    def _purge(self):
        self._place.run("dpkg -P liburoce-dev uroce")
        left = self._snapshot() ^ self._before
        if left:
            raise CheckFailed("these differ from before", sorted(left))
