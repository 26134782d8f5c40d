# SPDX-License-Identifier: BSD-3-Clause
"""What jobs of CI do and what their machines refuse: each with a small program of rdma_cm under uroce-run --local."""

import os
import re
import shutil
import signal
import tempfile

from harness.process import ask, need_own_tmp
from harness.report import CannotRun, CheckFailed
from harness.tools import UROCE_RUN

SECONDS = 60
TOP_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
SOURCE = os.path.join(TOP_DIR, "config", "ci", "c", "send_test.c")
START = os.path.join(TOP_DIR, "config", "ci", "start.sh")
TSAN_FILE = os.path.join(TOP_DIR, "config", "ci", "tsan.supp")
PROGRAMS = os.path.join(os.path.dirname(UROCE_RUN), "..", "test", "programs")
SEND_TEST, NO_PIDFD = (os.path.abspath(os.path.join(PROGRAMS, name)) for name in ("send_test", "no_pidfd"))
TSAN_EXIT = 66  # of a program with a report
RESULT = "received what was sent"
WAYS = ("mount", "preload")
# Both threads write without an order: a race of the program's own. TSan may miss one of two single accesses.
OWN_RACE = """
#include <pthread.h>
int n;
void *add(void *x) { for (int i = 0; i < 10000; i++) n++; return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, add, 0); add(0); return pthread_join(t, 0); }
"""


def expect(argv, expected=RESULT, status=0, **env):
    """Run a command with these variables. Fail unless it ends with the status and prints what is expected."""
    done = ask(argv, SECONDS, env={**os.environ, **env})
    if done.returncode != status or not re.search(expected, done.stdout):
        raise CheckFailed(f"exit {done.returncode}", [*done.stdout.splitlines(), *done.stderr.splitlines()])


class CiTest:
    """All checks."""

    def __init__(self, report, _work_dir):
        self._report = report
        self._dir = tempfile.mkdtemp(prefix="uroce-ci-test-")

    def run_all(self):
        try:
            self._check("gcc's ASan, with its search for leaks, preloaded view", self._asan)
            self._check("TSan has nothing to say", self._tsan)
            self._check("TSan tells of the program's own races", self._tsan_own)
            for outer in WAYS:
                for inner in WAYS:
                    self._check(f"--view {inner} in --view {outer}", self._nested, outer, inner)
            self._check("what the user preloads comes before the view", self._preloaded)
            for way in (*WAYS, "no"):
                self._check(f"no pidfd, --view {way}", self._no_pidfd, way)
            self._check("no pidfd: the parent has no descriptor of the command", self._keeps_nothing)
            self._check("read-only /tmp", self._read_only_tmp)
            self._check("TMPDIR", self._tmpdir)
            self._check("sudo: uroce-run inside", self._sudo)
            self._check("start.sh: only its user can read the environment", self._start)
        finally:
            shutil.rmtree(self._dir)

    def _check(self, name, function, *args):
        self._report.check(f"ci: {name}", function, *args)

    def _compile(self, name, source, *options):
        program = os.path.join(self._dir, name)
        built = ask(["gcc", "-g", "-o", program, *options, source, "-lrdmacm", "-libverbs", "-pthread"], SECONDS)
        if built.returncode:
            raise CannotRun(f"gcc {' '.join(options)} fails: {built.stderr.splitlines()[-1]}")
        return program

    def _asan(self):
        program = self._compile("send_asan", SOURCE, "-fsanitize=address")
        expect([UROCE_RUN, "--local", "--view", "preload", "--", program])

    def _tsan(self):
        program = self._compile("send_tsan", SOURCE, "-fsanitize=thread")
        expect([UROCE_RUN, "--local", "--", program], TSAN_OPTIONS=f"suppressions={TSAN_FILE}")

    def _tsan_own(self):
        source = os.path.join(self._dir, "own_race.c")
        with open(source, "w", encoding="ascii") as file:
            file.write(OWN_RACE)
        program = self._compile("own_race", source, "-fsanitize=thread")
        expect([UROCE_RUN, "--local", "--", program], "", TSAN_EXIT, TSAN_OPTIONS=f"suppressions={TSAN_FILE}")

    def _nested(self, outer, inner):
        """The inner program has the inner network's device, and its files."""
        script = f"{SEND_TEST} && cat /sys/class/infiniband/uroce0/ports/1/state"
        expect([UROCE_RUN, "--local", "--view", outer, "--", UROCE_RUN, "--local", "--view", inner, "--", "sh", "-c", script],
               f"{RESULT}\n4: ACTIVE")

    def _preloaded(self):
        expect([UROCE_RUN, "--local", "--view", "preload", "--", "sh", "-c", "echo $LD_PRELOAD"],
               r"^libm.so.6:\S+/liburoce-view.so$", LD_PRELOAD="libm.so.6")

    def _no_pidfd(self, way):
        """The exit status is still the command's, and the view's server works."""
        script = f"{SEND_TEST} && ls /sys/class/infiniband; exit 7"
        expect([NO_PIDFD, UROCE_RUN, "--local", "--view", way, "--", "sh", "-c", script],
               RESULT if way == "no" else f"{RESULT}\nuroce0", 7)

    def _keeps_nothing(self):
        script = 'exec 9</dev/null; exec "$@"'
        expect(["sh", "-c", script, "sh", NO_PIDFD, UROCE_RUN, "--local", "--view", "no", "--", "sh", "-c",
                "test -e /proc/self/fd/9 && ! test -e /proc/$PPID/fd/9"], "")

    def _read_only_tmp(self):
        need_own_tmp()
        script = 'mount -t tmpfs -o ro none /tmp && exec "$@"'
        expect(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", UROCE_RUN, "--local", "--",
                SEND_TEST])

    def _tmpdir(self):
        """Files are there while the command runs, and a directory that others may write is not used."""
        own = os.path.join(self._dir, "tmp")
        os.mkdir(own)
        for mode, expected in ((0o755, own), (0o1777, own), (0o777, "/tmp")):
            os.chmod(own, mode)
            expect([UROCE_RUN, "--local", "--", "sh", "-c", "echo $UROCE_SOCKET"], f"^{expected}/uroce-local-", TMPDIR=own)

    def _sudo(self):
        """sudo removes the environment of uroce-run, so the command below it attaches by the socket."""
        if not shutil.which("sudo") or ask(["sudo", "-n", "true"], SECONDS).returncode:
            raise CannotRun("no sudo without a password")
        script = f'sudo -n {UROCE_RUN} --socket "$UROCE_SOCKET" -- {SEND_TEST}'
        expect([UROCE_RUN, "--local", "--view", "preload", "--", "sh", "-c", script])

    def _start(self):
        """The job's environment is in a file until start.sh has read it. A command before uroce-run looks who can get there."""
        work = tempfile.mkdtemp(dir=self._dir)
        shim = os.path.join(self._dir, "uroce-run")
        with open(shim, "w", encoding="ascii") as file:
            file.write('#!/bin/sh\nfor last; do :; done\nstat -c %A "$last" >"$0.seen"\n'
                       f'exec {os.path.abspath(UROCE_RUN)} "$@"\n')
        os.chmod(shim, 0o755)
        done = ask(["sh", "-c", 'umask 0; exec sh "$0"', START], SECONDS,
                   env={**os.environ, "TMPDIR": work, "PATH": f"{self._dir}:{os.environ['PATH']}"})
        found = dict(line.split("=", 1) for line in done.stdout.splitlines())
        try:
            with open(f"{shim}.seen", encoding="ascii") as file:
                mode = file.read().strip()
            left = [name for name in os.listdir(work) if not name.startswith("uroce-local-")]
            if done.returncode or mode != "drwx------" or left or "UROCE_SOCKET" not in found:
                raise CheckFailed(f"exit {done.returncode}, mode {mode}, left {left}",
                                  [*done.stdout.splitlines(), *done.stderr.splitlines()])
        finally:
            if "UROCE_CI_PID" in found:
                os.kill(int(found["UROCE_CI_PID"]), signal.SIGTERM)
