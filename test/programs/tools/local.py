# SPDX-License-Identifier: BSD-3-Clause
"""uroce-run --local: a private network for the programs of one command, without root."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from harness.process import ask, need_users, start, wait_until
from harness.report import CheckFailed
from harness.tools import UROCE_RUN
from harness.world import is_roots
from programs.cm.rdmacm import LATE

SECONDS = 60
AT_ONCE, FEW_AT_ONCE = 50, 20
IN_A_ROW, FEW_IN_A_ROW = 100, 20
USER = 65534
OTHER_USER = ["--reuid", str(USER), "--regid", str(USER), "--clear-groups"] if is_roots() else []  # or ourselves
UNPRIVILEGED = ["setpriv", *OTHER_USER, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]

# The server listens as soon as its port is open; the client tries again until then.
WRITE_BW = """ib_write_bw -d uroce0 -n 500 -p {port} & server=$!
until ib_write_bw -d uroce0 -n 500 -p {port} 127.0.0.1; do sleep 0.2; kill -0 $server || exit 9; done
wait $server"""
# An rping of rdma-core before 58 exits with 255 if it reads its events once more while it ends (rping_is_late in cm/rdmacm.py).
RPING = """rping -s -a {address} -p {port} -C 10 -v & server=$!
until rping -c -a {address} -p {port} -C 10 -v; do sleep 0.2; kill -0 $server || break; done
wait $server || [ $? = 255 ]"""
# Debian's qperf 0.4.11 tells its client a port before it listens there (fixed in its commit 118a571): the client has to be
# late (late.c). Some of its tests end by time alone, whatever -n says. The server serves until it is killed.
QPERF_TESTS = ("rc_lat", "rc_bw", "rc_rdma_write_bw", "rc_rdma_read_lat", "rc_fetch_add_mr")
QPERF = """qperf -lp {port} & server=$!
LD_PRELOAD={late}:$LD_PRELOAD qperf -lp {port} -cm1 -t 1 -to 30 127.0.0.1 {tests}; status=$?
kill $server; exit $status"""
STARTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "local_starts.py")
NEW_NAMESPACES = ["unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--mount", "--ipc", "--net"]
CI_START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "config", "ci", "start.sh")
# In the place of env(1): note who may read the file that it writes, and who may enter the file's directory.
SPY = """#!/bin/sh
file=$(readlink /proc/$$/fd/1)
stat -c %a "$file" "$(dirname "$file")" >{modes}
exec /usr/bin/env "$@"
"""
# Print the device's state, then tell that it is there, and stay.
STAY = "ibv_devinfo >/dev/null && touch {mark} && exec sleep 60"


class LocalTest:
    """All checks, as an ordinary user without capabilities. The user has a runtime directory, in which nothing may
    remain."""

    def __init__(self, report, in_a_row):
        self._report = report
        self._at_once, self._in_a_row = (AT_ONCE, IN_A_ROW) if report.complete else (FEW_AT_ONCE, FEW_IN_A_ROW)
        self._in_a_row = in_a_row or self._in_a_row
        self._port = 26000
        self._dir = tempfile.mkdtemp(prefix="uroce-local-test-")

    def run_all(self):
        if is_roots():
            os.chown(self._dir, USER, USER)
        try:
            self._check("ib_write_bw between two processes", self._pair, WRITE_BW, r"65536\s+500\s+\d")
            self._check("rping by 127.0.0.1", self._pair, RPING, "ping data: rdma-ping-9:", "127.0.0.1")
            self._check("rping by the device's address", self._pair, RPING, "ping data: rdma-ping-9:", "198.18.0.1")
            if shutil.which("qperf"):
                self._check("qperf", self._qperf)
            else:
                self._report.skip("local: qperf", "qperf is not installed")
            self._check("exit status", self._exit_status)
            self._check("death by a signal", self._signal)
            self._check("a command that does not exist", self._no_command)
            self._check("two devices", self._two_devices)
            self._check("SIGKILL leaves nothing", self._sigkill)
            self._check("Ctrl-C is the command's", self._interrupt)
            self._check("signals of the guard are the command's", self._guard_signals)
            self._check("SIGKILL of the guard ends uroced", self._guard_killed)
            self._check("uroced loads no driver of DPDK", self._no_driver)
            self._check("the output ends with the command", self._output_ends)
            self._check("process 1 of a container", self._process_1)
            self._check("a bad network", self._impaired)
            self._check("no child and no descriptor for the command", self._inherits_nothing)
            self._check("without a runtime directory", self._in_tmp)
            self._check("the environment of a CI job", self._ci_start)
        finally:
            shutil.rmtree(self._dir)

    def run_crowds(self):
        """Start many programs. They need the machine for themselves."""
        for count, at_once in ((self._at_once, self._at_once), (self._in_a_row, 1)):
            how = "at once" if at_once > 1 else "in a row"
            self._check(f"{count} {how} leave nothing behind", self._starts, count, at_once)

    def _check(self, name, function, *args):
        self._report.check(f"local: {name}", function, *args)

    def _start(self, *command, options=("--local",), **more):
        environment = {**os.environ, "XDG_RUNTIME_DIR": self._dir}
        return start([*UNPRIVILEGED, UROCE_RUN, *options, "--", *command], stdout=subprocess.PIPE, text=True, cwd="/",
                     **{"env": environment, "stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, **more})

    def _end(self, process):
        """Return status and output. uroced has the output too, so that has ended as well."""
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise CheckFailed("hangs", process.communicate()[0].splitlines()) from None
        return process.returncode, output

    def _run(self, *command, status=0, **more):
        found, output = self._end(self._start(*command, **more))
        if found != status:
            raise CheckFailed(f"exit {found}, not {status}", output.splitlines())
        self._expect_nothing_left()
        return output

    def _expect_nothing_left(self):
        if not wait_until(lambda: not os.listdir(self._dir), SECONDS):
            raise CheckFailed("files are left", os.listdir(self._dir))

    def _pair(self, script, expected, address=None):
        """Both ends print what they have sent or received."""
        self._port += 1
        output = self._run("sh", "-c", script.format(port=self._port, address=address))
        if len(re.findall(expected, output)) < 2:
            raise CheckFailed(f"not both ends print {expected}", output.splitlines())

    def _qperf(self):
        """Each test has a result, under its name."""
        self._port += 1
        output = self._run("sh", "-c", QPERF.format(port=self._port, late=LATE, tests=" ".join(QPERF_TESTS)))
        for test in QPERF_TESTS:
            if not re.search(rf"^{test}:\n +\w+ += ", output, re.M):
                raise CheckFailed(f"{test} has no result", output.splitlines())

    def _exit_status(self):
        for status in (0, 1, 7, 255):
            if self._run("sh", "-c", f"exit {status}", status=status):
                raise CheckFailed("it prints something")

    def _signal(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGABRT):
            self._run("sh", "-c", f"ulimit -c 0; kill -{int(number)} $$", status=-number)

    def _no_command(self):
        output = self._run("/nonexistent/program", status=127)
        if "No such file" not in output:
            raise CheckFailed("no reason", output.splitlines())

    def _two_devices(self):
        output = self._run("sh", "-c", "ibv_devinfo -v -d uroce0 && ibv_devinfo -v -d uroce1", options=["--local=2"])
        for pattern in (r"hca_id:\s+uroce0\s", r"hca_id:\s+uroce1\s", r":198\.18\.0\.1,", r":198\.18\.1\.1,"):
            if not re.search(pattern, output):
                raise CheckFailed(f"nothing matches {pattern}", output.splitlines())
        if output.count("PORT_ACTIVE (4)") != 2:
            raise CheckFailed("not both are active", output.splitlines())
        guids = re.findall(r"node_guid:\s+(\S+)", output + self._run("ibv_devinfo"))
        if len(guids) != 3 or len(set(guids)) != 3:
            raise CheckFailed("devices or networks have the same GUID", guids)

    def _ci_start(self):
        """The script prints what later commands need. Nobody else can read the job's environment at any time."""
        modes = os.path.join(self._dir, "modes")
        tools = os.path.join(self._dir, "tools")
        os.mkdir(tools)
        os.symlink(os.path.abspath(UROCE_RUN), os.path.join(tools, "uroce-run"))
        with open(os.path.join(tools, "env"), "w", encoding="ascii") as file:
            file.write(SPY.format(modes=modes))
        os.chmod(file.name, 0o755)
        script = subprocess.run([*UNPRIVILEGED, "/bin/sh", os.path.abspath(CI_START)], stdout=subprocess.PIPE, text=True, cwd="/",
                                stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
                                env={**os.environ, "XDG_RUNTIME_DIR": self._dir, "PATH": f"{tools}:{os.environ['PATH']}",
                                     "SECRET": "of the job"})
        network = re.search(r"^UROCE_CI_PID=(\d+)$", script.stdout, re.M)
        if network:
            os.kill(int(network[1]), signal.SIGTERM)
            wait_until(lambda: not os.path.exists(f"/proc/{network[1]}"), SECONDS)
        if not network or "LD_LIBRARY_PATH=" not in script.stdout or "SECRET" in script.stdout:
            raise CheckFailed("it prints something else", script.stdout.splitlines())
        with open(modes, encoding="ascii") as file:
            seen = file.read().split()
        if all(int(mode, 8) & 0o077 for mode in seen):
            raise CheckFailed("others can read the environment", seen)
        shutil.rmtree(tools)
        os.unlink(modes)

    @contextlib.contextmanager
    def _staying(self):
        """Run a command that has had its device and sleeps."""
        mark = os.path.join(self._dir, "mark")
        process = self._start("sh", "-c", STAY.format(mark=mark))
        try:
            if not wait_until(lambda: os.path.exists(mark), SECONDS):
                raise CheckFailed("no device")
            os.unlink(mark)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            self._end(process)

    def _sigkill(self):
        with self._staying() as process:
            process.kill()
            status, output = self._end(process)
            if status != -signal.SIGKILL or output:
                raise CheckFailed(f"exit {status}", output.splitlines())
            self._expect_nothing_left()

    def _interrupt(self):
        """A terminal sends SIGINT to the whole process group: uroced must outlive the command."""
        with self._staying() as process:
            os.killpg(process.pid, signal.SIGINT)
            status, output = self._end(process)
            if status != -signal.SIGINT or output:
                raise CheckFailed(f"exit {status}", output.splitlines())
            self._expect_nothing_left()

    def _uroced(self):
        """Process ids of the uroced in our directory, and of its guard."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                    words = file.read().split("\0")
                if words[0] == "uroced" and words[2].startswith(self._dir):
                    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                        return int(pid), int(file.read().rsplit(")", 1)[1].split()[1])
        raise CheckFailed("no uroced")

    def _guard_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self._staying() as process:
                os.kill(self._uroced()[1], number)
                status, output = self._end(process)
                if status != -number or output:
                    raise CheckFailed(f"exit {status}", output.splitlines())
                self._expect_nothing_left()

    def _guard_killed(self):
        """Only the directory can then be left."""
        with self._staying():
            uroced, guard = self._uroced()
            os.kill(guard, signal.SIGKILL)
            if not wait_until(lambda: not os.path.exists(f"/proc/{uroced}"), SECONDS):
                raise CheckFailed("uroced goes on")
        for name in os.listdir(self._dir):
            shutil.rmtree(os.path.join(self._dir, name))

    def _no_driver(self):
        """The start of EAL loads them all, which takes longer than all that a short command does."""
        with self._staying():
            with open(f"/proc/{self._uroced()[0]}/maps", encoding="utf-8") as maps:
                drivers = [line.split()[-1] for line in maps if "/librte_net_" in line]
            if drivers:
                raise CheckFailed("it has drivers", drivers[:3])

    def _output_ends(self):
        """A reader of the command's output does not wait for the guard."""
        mark = os.path.join(self._dir, "mark")
        process = self._start("sh", "-c", f"echo text; touch {mark}; read line", stdin=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        if not wait_until(lambda: os.path.exists(mark), SECONDS):
            raise CheckFailed("it does not start")
        guard = self._uroced()[1]
        os.kill(guard, signal.SIGSTOP)
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise CheckFailed("the output does not end") from None
        finally:
            os.kill(guard, signal.SIGCONT)
        os.unlink(mark)
        if output != "text\n":
            raise CheckFailed("another output", [output])
        self._expect_nothing_left()

    def _process_1(self):
        """The command has no child that it did not start, and its end is told."""
        space = ["unshare", "--user", "--pid", "--fork", "--kill-child"]
        for script, expected in (("import os\ntry: os.wait()\nexcept ChildProcessError: os._exit(7)", 7),
                                 ("import os; os.kill(os.getpid(), 15)", 128 + 15), ("", 0)):
            process = start([*UNPRIVILEGED, *space, UROCE_RUN, "--local", "--", "python3", "-c", script],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/",
                            env={**os.environ, "XDG_RUNTIME_DIR": self._dir})
            status, output = self._end(process)
            if status != expected:
                raise CheckFailed(f"exit {status}, not {expected}", output.splitlines())
            self._expect_nothing_left()

    def _impaired(self):
        self._port += 1
        output = self._run("sh", "-c", WRITE_BW.format(port=self._port, address=None),
                           options=["--local", "--impair", "loss=0.02,delay=100us"])
        if len(re.findall(r"65536\s+500\s+\d", output)) < 2:
            raise CheckFailed("not both ends print their result", output.splitlines())

    def _inherits_nothing(self):
        output = self._run("python3", "-c", "import os\n"
                           "print(sorted(os.listdir('/proc/self/fd'))[:4])\n"
                           "try: os.wait()\n"
                           "except ChildProcessError: print('no child')\n")
        if output.splitlines() != ["['0', '1', '2', '3']", "no child"]:
            raise CheckFailed("unexpected", output.splitlines())

    def _in_tmp(self):
        environment = {**os.environ, "XDG_RUNTIME_DIR": "/nonexistent"}
        output = self._run("sh", "-c", "stat -c %a,%n $(dirname $UROCE_SOCKET)", env=environment)
        if not output.startswith("700,/tmp/uroce-local-"):
            raise CheckFailed("another directory", output.splitlines())
        path = output.strip().split(",")[1]
        if not wait_until(lambda: not os.path.exists(path), SECONDS):
            raise CheckFailed("files are left", [path])

    def _starts(self, count, at_once):
        """All have the same addresses and names, and do not meet."""
        need_users()
        # A start takes 0.3 s on an idle machine, and the last processes up to a minute more.
        done = ask([*NEW_NAMESPACES, sys.executable, STARTS, UROCE_RUN, str(count), str(at_once)], 2 * SECONDS + 10 * count)
        if done.returncode:
            raise CheckFailed(f"exit {done.returncode}", [*done.stdout.splitlines(), *done.stderr.splitlines()])
        print(done.stdout, end="", flush=True)
