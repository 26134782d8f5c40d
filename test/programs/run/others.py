# SPDX-License-Identifier: BSD-3-Clause
"""Programs of Debian 12 that few use with verbs: DAPL's tests, gloo, and a Ceph cluster, each in uroce-run --local."""

import os
import re
import shutil
import tempfile
import uuid

from harness.process import Namespace, ask
from harness.report import CheckFailed
from harness.tools import UROCE_CTL, UROCE_RUN

FOLDER = os.path.dirname(os.path.abspath(__file__))
SECONDS = 150  # Ceph's programs take a second and more each, and other checks may want the CPUs
ADDRESS = "198.18.0.1/24"  # the device's, for the programs' TCP

# The client tries again until the server listens.
DTEST = """dtest -P uroce-scm -b 65536 -B 50 & server=$!
until dtest -P uroce-scm -b 65536 -B 50 -h 127.0.0.1; do sleep 0.2; kill -0 $server || exit 9; done
wait $server"""
# The last test ends the server, and is tried again until the server listens. -V compares the data.
DAPLTEST = """dapltest -T S -D uroce-scm & server=$!
until ss -tln | grep -q 127.0.0.1:63000; do sleep 0.2; kill -0 $server || exit 9; done
with="-s 127.0.0.1 -D uroce-scm"
dapltest -T T $with -i 10 -t 2 -w 3 -V client RW 65536 server RR 65536 client SR 4096 server SR 4096
dapltest -T P $with -i 100 RW 65536 2
dapltest -T P $with -i 100 RR 65536 2
dapltest -T Q $with
wait $server"""
GLOO = """{program} 0 {work} 1 & other=$!
{program} 1 {work} 1 && wait $other"""


class OthersTest:
    """In a network namespace, because the programs listen on ports that others may have."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = os.path.join(work_dir, "others")
        os.mkdir(self._work_dir)
        self._here = Namespace("others")
        self._here.run("ip", "addr", "add", ADDRESS, "dev", "lo")

    def run_all(self):
        self._check("dtest", "dapl2-utils", shutil.which("dtest"), self._dtest)
        self._check("dapltest", "dapl2-utils", shutil.which("dapltest"), self._dapltest)
        self._check("gloo", "g++ and libgloo-dev", shutil.which("g++") and os.path.isdir("/usr/include/gloo"), self._gloo)
        programs = ("ceph-mon", "ceph-osd", "ceph", "rados")
        self._check("Ceph's messenger", "ceph-mon, ceph-osd and ceph-common", all(map(shutil.which, programs)), self._ceph)

    def _check(self, name, packages, is_there, function):
        if is_there:
            self._report.check(f"others: {name}", function)
        else:
            self._report.skip(f"others: {name}", f"{packages}: not installed")

    def _run(self, *command, env=None):
        done = ask([*self._here.prefix, UROCE_RUN, "--local", "--", *command], SECONDS, env={**os.environ, **(env or {})})
        if done.returncode:
            raise CheckFailed(f"exit {done.returncode}", [*done.stdout.splitlines()[-40:], *done.stderr.splitlines()[-40:]])
        return done.stdout

    def _dat(self):
        """DAPL's environment: a file that names our device, and the interface for its TCP."""
        path = os.path.join(self._work_dir, "dat.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write('uroce-scm u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "uroce0 1" ""\n')
        return {"DAT_OVERRIDE": path, "DAPL_SCM_NETDEV": "lo"}

    def _dtest(self):
        output = self._run("sh", "-c", DTEST, env=self._dat())
        if output.count("DAPL Test Complete. PASSED") != 2:
            raise CheckFailed("not both ends pass", output.splitlines()[-40:])

    def _dapltest(self):
        output = self._run("sh", "-ec", DAPLTEST, env=self._dat())
        if "Server: Transaction Test Finished for this client" not in output or \
                output.count("Server: Finished performance test.  Exiting.") != 2 or \
                len(re.findall(r"^raw: (?:RW|RR), 100, 65536, 2, ", output, re.M)) != 2:
            raise CheckFailed("not all tests have a result", output.splitlines()[-40:])

    def _gloo(self):
        program = os.path.join(self._work_dir, "gloo_check")
        built = ask(["g++", "-O1", "-o", program, os.path.join(FOLDER, "gloo_check.cc"), "-lgloo"], SECONDS)
        if built.returncode:
            raise CheckFailed("gloo_check.cc does not compile", built.stderr.splitlines())
        work = tempfile.mkdtemp(dir=self._work_dir)
        output = self._run("sh", "-c", GLOO.format(program=program, work=work))
        if output.count(": 50 sums are right") != 2:
            raise CheckFailed("not both ranks have their sums", output.splitlines())

    def _ceph(self):
        work = tempfile.mkdtemp(dir=self._work_dir)
        output = self._run(os.path.join(FOLDER, "ceph.sh"), work, str(uuid.uuid4()), UROCE_CTL)
        if set(re.findall(r"comm (ceph-\w+)", output)) != {"ceph-mon", "ceph-osd"}:
            raise CheckFailed("not both daemons have a connected queue pair", output.splitlines())
        # The object goes to the store and back.
        sent = int(re.search(r"^sent (\d+)$", output, re.M).group(1))
        if sent < 2 * 6000000:
            raise CheckFailed(f"the device has sent {sent} bytes alone", output.splitlines())
