# SPDX-License-Identifier: BSD-3-Clause
"""Programs run through restarts, reloads and an upgrade of the package's uroced, under systemd."""

import json
import os
import re

from harness.process import Namespace, Process, ask, run, wait_until
from harness.report import CheckFailed
from harness.tools import UROCE_CTL, UROCE_RUN
from harness.waits import Waits

SECONDS = 60
TIMES = 10
NICE = 0  # of the programs, as of uroced: systemd starts it
HERE, THERE = "10.9.5.1", "10.9.5.2"
CONFIG = """[uroce]
isolated = /run/uroce/isolated.sock
log-level = info
[port uroce0]
netdev = wire0
"""
RPING = "stdbuf -oL rping -v -a {} -S 32 "
BW = "stdbuf -oL ib_write_bw -F -d uroce0 -x 1 -D 1 --run_infinitely -p 18800 "
UNIT = "uroced.service"
STAYS = "stays at version"
# The service of one port, by its instance. systemd divides arguments in quotes as a shell does.
OTHERS = {"quoted": '--port local1 --ip "198.18.9.1/24"', "null": "--config /etc/uroce/uroce.conf --port net_null0 --ip 198.18.10.1/24"}
POLICY = "/usr/sbin/policy-rc.d"
SLOWER = "/run/systemd/system/uroced@null.service.d"


class RestartedService:
    """Attached and isolated programs in the booted machine, of which some talk to a host beside it."""

    def __init__(self, machine, place, debs, work_dir):
        self._machine = machine
        self._place = place
        self._debs = debs
        self._work_dir = work_dir
        self._programs = {}
        self._beyond = None

    def close(self):
        for program in self._programs.values():
            program.kill()
        if self._beyond:
            self._machine.try_("systemctl stop uroced.socket uroced.service")
            self._beyond.remove()

    def _start(self, name, argv):
        self._programs[name] = Process(argv, os.path.join(self._work_dir, f"{name.replace(' ', '-')}.log"), NICE)
        return self._programs[name]

    def _within(self, name, command):
        return self._start(name, [*self._machine.prefix, *command.split()])

    def begin(self):
        """uroced gets a kernel interface, and programs begin to work."""
        net = ["nsenter", "--target", str(self._machine.pid), "--net"]
        self._beyond = Namespace("beyond")
        run(*net, "ip", "link", "add", "wire0", "type", "veth", "peer", "name", "wire1", "netns", self._beyond.name)
        run(*net, "ip", "address", "add", f"{HERE}/24", "dev", "wire0")
        run(*net, "ip", "link", "set", "wire0", "up")
        self._beyond.run("ip", "address", "add", f"{THERE}/24", "dev", "wire1")
        self._beyond.run("ip", "link", "set", "wire1", "up")
        self._machine.write("/etc/uroce/uroce.conf", CONFIG)
        self._machine.run("systemctl stop uroced.socket uroced.service; systemctl start uroced.socket uroced.service")
        self._start("server there", [*self._beyond.prefix, UROCE_RUN, "--netdev", "wire1", "--", *RPING.format(THERE).split(), "-s", "-P"])
        server = self._within("server", f"uroce-run -- {BW}")
        if not wait_until(lambda: server.listens(18800), SECONDS):
            raise CheckFailed("the server does not listen", server.story("server"))
        self._within("attached", f"uroce-run -- {BW} {HERE}")
        if not wait_until(self._listens, SECONDS, 0.2):
            raise CheckFailed("rping does not listen", self._programs["server there"].story("server"))
        # The server of rdma-core 44 forgets one of two clients that ask at the same time.
        for name, option in (("attached, another host", ""), ("isolated, another host", "--isolated")):
            client = self._within(name, f"uroce-run {option} -- {RPING.format(THERE)} -c")
            wait_until(lambda p=client: p.poll() is not None or "ping data" in p.output(), SECONDS)
        self._all_go_on()

    def _listens(self):
        """rping prints nothing when it listens."""
        ids = json.loads(ask([UROCE_CTL, "-j", "resource", "show", "cm_id"], SECONDS).stdout or "[]")
        return any(entry["pid"] == self._programs["server there"].pid and entry["state"] == "LISTEN" for entry in ids)

    def _status(self):
        status, text = self._machine.try_("uroced --status")
        return json.loads(text) if status == 0 else {}

    def _all_go_on(self):
        """Each program still runs, and the output of each client becomes longer."""
        clients = {name: program for name, program in self._programs.items() if "server" not in name}
        lengths = {name: len(client.output()) for name, client in clients.items()}
        for name, client in clients.items():
            wait_until(lambda p=client, n=lengths[name]: p.poll() is not None or len(p.output()) > n, SECONDS)
            if len(client.output()) == lengths[name]:
                raise CheckFailed(f"a program does not go on: {name}", [*client.story("client"), *self._journal()])
        for name, program in self._programs.items():
            if program.poll() is not None:
                raise CheckFailed(f"a program has ended: {name}", [*program.story("program"), *self._journal()])

    def _journal(self):
        return self._machine.try_(f"journalctl --no-pager -u {UNIT} -n 30 -o cat")[1].splitlines()

    def _kept(self):
        """How many descriptors of the service systemd keeps: the table, and what it closes later."""
        found = []

        def is_settled():
            found.append(self._machine.run(f"systemctl show -P NFileDescriptorStore {UNIT}").strip())
            return found[-3:].count(found[-1]) == 3
        wait_until(is_settled, SECONDS, 0.1)
        return found[-1]

    def _clients(self):
        return {name: program for name, program in self._programs.items() if "another host" in name}

    def _judge(self):
        """All four programs are back."""
        if not wait_until(lambda: self._status().get("returned") == 4, SECONDS, 0.1):
            raise CheckFailed("a program did not return", [str(self._status()), *self._journal()])
        self._all_go_on()

    def restart(self):
        kept = self._kept()
        with Waits(self._clients()):
            for _ in range(TIMES):
                self._machine.run(f"systemctl restart {UNIT}")
                self._judge()
        if self._kept() != kept:
            raise CheckFailed(f"systemd keeps {self._kept()} descriptors, and kept {kept} before")

    def reload(self):
        """The same process goes on."""
        before = self._machine.main_pid(UNIT)
        self._machine.run(f"systemctl reload {UNIT}")
        if self._machine.main_pid(UNIT) != before or \
                not wait_until(lambda: "settings are read again" in "\n".join(self._journal()), SECONDS):
            raise CheckFailed("it is not the same process that reads again", self._journal())
        self._all_go_on()

    def upgrade(self):
        """The new uroced takes the place of the running one, and is then the service's main process."""
        before = self._machine.main_pid(UNIT)
        self._place.copy(self._debs.file("uroce", self._debs.later), "/tmp")
        self._start_other("quoted")
        with Waits(self._clients()):
            output = self._install_later()
            self._judge()
        pid = self._machine.main_pid(UNIT)
        if pid == before or STAYS in output or not self._is_new(UNIT) or not self._is_new("uroced@quoted"):
            raise CheckFailed("the earlier uroced goes on", [*output.splitlines(), *self._journal()])
        self._machine.run("systemctl stop uroced@quoted.socket uroced@quoted.service")
        found = self._machine.run(f"systemctl show -p ActiveState -p SubState -p NRestarts -p Result {UNIT}; pidof uroced")
        if not re.search(rf"^{pid}$", found, re.M) or {"ActiveState=active", "SubState=running", "Result=success",
                                                        "NRestarts=0"} - set(found.split()):
            raise CheckFailed("the service is not as it was", [*found.splitlines(), *self._journal()])

    def _start_other(self, instance):
        self._machine.write(f"/etc/default/uroced-{instance}", f"UROCED_ARGS='{OTHERS[instance]} --isolated=/run/uroce/{instance}-isolated.sock'\n")
        self._machine.run(f"systemctl start uroced@{instance}.service")

    def _install_later(self):
        return self._machine.run("dpkg -i /tmp/uroce_*+later_*.deb")

    def _is_new(self, unit):
        return self._machine.try_(f"[ /proc/{self._machine.main_pid(unit)}/exe -ef /usr/sbin/uroced ]")[0] == 0

    def refused(self):
        """A port that starts anew with uroced: the earlier one goes on, reads its settings again, and the package says so."""
        self._start_other("null")
        before = self._machine.main_pid("uroced@null")
        output = self._install_later()
        said = self._machine.run("journalctl --no-pager -u uroced@null -o cat")
        if STAYS not in output or "settings are read again" not in said or self._machine.main_pid("uroced@null") != before:
            raise CheckFailed("it is not as it was", [*output.splitlines(), *said.splitlines()])
        self._machine.run("systemctl stop uroced@null.socket uroced@null.service")
        self._all_go_on()

    def held_back(self):
        """The administrator forbids that packages restart services: the package says that the earlier uroced goes on."""
        before = self._machine.main_pid(UNIT)
        self._machine.write(POLICY, "#!/bin/sh\nexit 101\n")
        try:
            self._machine.run(f"chmod 755 {POLICY}")
            output = self._install_later()
        finally:
            self._machine.run(f"rm {POLICY}")
        if STAYS not in output or self._machine.main_pid(UNIT) != before or self._is_new(UNIT):
            raise CheckFailed("the package does not say it", output.splitlines())
        self._machine.run(f"systemctl reload {UNIT}")
        self._judge()

    def loops(self):
        """systemd gives up a service that ends at once each time."""
        self._machine.write("/etc/default/uroced-null", "UROCED_ARGS=--no-such-option\n")
        # A busy machine takes more than the unit's 30 s for 30 starts.
        self._machine.run(f"mkdir -p {SLOWER}; printf '[Unit]\\nStartLimitIntervalSec=600\\n' >{SLOWER}/slower.conf; systemctl daemon-reload")
        self._machine.try_("systemctl restart uroced@null.service")
        if not wait_until(lambda: "failed" in self._machine.run("systemctl show -P ActiveState uroced@null.service"), SECONDS, 0.2):
            raise CheckFailed("it is started for ever", self._machine.try_("systemctl status uroced@null")[1].splitlines())
        self._machine.run(f"systemctl stop uroced@null.socket uroced@null.service; systemctl reset-failed; rm -r {SLOWER}; systemctl daemon-reload")
        self._all_go_on()

    def killed(self):
        """systemd starts the service again, and has the table of the uroced that took over."""
        before = self._machine.main_pid(UNIT)
        with Waits(self._clients()):
            self._machine.run(f"kill -9 {before}")
            if not wait_until(lambda: self._machine.main_pid(UNIT) not in (before, "0"), SECONDS, 0.1):
                raise CheckFailed("it does not come again", self._journal())
            self._judge()
