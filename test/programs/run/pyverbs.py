# SPDX-License-Identifier: BSD-3-Clause
"""Debian's conformance suite of verbs (package python3-pyverbs), unmodified. A test may skip only if the table of
doc/developer/conformance.md names it, with its reason."""

import fnmatch
import glob
import gzip
import os
import re
import shutil
import subprocess

from harness.process import LocalHost, Namespace, ask
from harness.report import CheckFailed
from harness.tools import DEVICE, UROCE_RUN, gid_index, gids
from programs.share.share import Uroced

PACKAGE = "python3-pyverbs"
SUITE = "/usr/share/doc/rdma-core/tests"
EXAMPLE = "/usr/share/doc/python3-pyverbs/examples/ib_devices.py"  # the only one of the package
CONFORMANCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "doc", "developer", "conformance.md")
ADDRESS = "10.9.4.1"
SECONDS = 300
VENDORS = ("mlx5", "efa", "cuda")
# The tests of test_rdmacm look in /sys for the interface whose address they use; this file is in their own view of
# /sys.
NETDEV = "veth0"
SHOW_NETDEV = f"""mount -t tmpfs none /sys/class && mkdir -p /sys/class/infiniband/{DEVICE}/device/net/{NETDEV} &&
exec "$@" """
# By release of rdma-core: the number of tests, and how many generic ones must pass, whatever the table allows.
RELEASES = {44: (273, 145), 56: (321, 156)}
# All tests of these files must pass, except those that need a GPU.
MUST_PASS = ("test_mr", "test_odp", "test_parent_domain", "test_pd", "test_relaxed_ordering", "test_shared_pd",
             "test_device", "test_addr", "test_atomic", "test_cq", "test_cq_events", "test_cqex", "test_qp", "test_qpex",
             "test_fork", "test_rdmacm")
# tests that need a GPU, and tests that do not use RDMA
MAY_SKIP = ("test_mr.DmaBuf*", "test_qp.*raw_qp*")

# The format is "test_x (tests.test_y.Class.test_x)", an optional line with a description, " ... " and the verdict.
# Output of the programs may be in between.
HEADER = re.compile(r"^test_\w+ \(tests\.([\w.]+)\)", re.M)
VERDICT = re.compile(r"(?:^| \.\.\. )(ok|FAIL|ERROR|skipped (['\"])(.*)\2)$", re.M)
RAN = re.compile(r"^Ran (\d+) tests? in ", re.M)
ROW = re.compile(r"^\| `(test_[^|]*)` \| (.*) \|$", re.M)


def allowed_skips():
    """Return the rows of the table: {pattern of tests: reason}."""
    with open(CONFORMANCE, encoding="utf-8") as file:
        return {pattern: reason for cell, reason in ROW.findall(file.read()) for pattern in cell.split("`, `")}


def parse_verdicts(text):
    """Parse the verbose output of unittest. Return {test: (verdict, reason)}."""
    verdicts = {}
    end = text.find("\n" + "=" * 70)
    end = end if end >= 0 else text.find("\n" + "-" * 70)
    headers = list(HEADER.finditer(text, 0, end if end >= 0 else len(text)))
    for header, following in zip(headers, headers[1:] + [None]):
        said = text[header.end():following.start() if following else end]
        found = VERDICT.findall(said)
        verdict, _, reason = found[-1] if found else ("no verdict", "", "")
        verdicts[header.group(1)] = (verdict.split()[0], reason)
    return verdicts


class PyverbsTest:
    """Run the suite once, in one process, as its authors do. It is a program of an uroced, because the tests of
    rdma_cm make two processes that use one device and one address."""

    def __init__(self, report, work_dir):
        self._report = report
        self._work_dir = work_dir
        self._text = ""
        self._verdicts = {}
        self._tried = set()

    def run_all(self):
        if self._report.only and self._report.only not in "pyverbs":
            return
        there = os.path.isdir(SUITE) and os.path.isfile(EXAMPLE)
        self._root = "" if there else self._fetch()
        suite = self._root + SUITE
        if not os.path.isdir(suite):
            self._report.fail("pyverbs", f"{SUITE} does not exist: it is a part of the package {PACKAGE}, which was not "
                              "installed with its documentation; `apt-get download` does not have it either")
            return
        release = self._release()
        if release not in RELEASES:
            self._report.skip("pyverbs", f"nobody has looked at the suite of rdma-core {release}")
            return
        self._tests, self._passes = RELEASES[release]
        self._unpack(suite)
        owner = self._owner()
        if not self._report.require("pyverbs: uroced starts", owner.run):
            return
        try:
            self._report.check("pyverbs: its example", self._run_example, owner)
            if self._report.require("pyverbs: the suite runs to its end", self._run_suite, owner):
                self._judge()
        finally:
            owner.process.kill()

    def _fetch(self):
        """If apt is configured to install no documentation, as in small images, get the tests from the package
        itself."""
        folder = os.path.join(self._work_dir, "package")
        os.mkdir(folder)
        subprocess.run(["apt-get", "download", PACKAGE], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True)
        for name in glob.glob(os.path.join(folder, "*.deb")):
            subprocess.run(["dpkg-deb", "--extract", name, folder], stdin=subprocess.DEVNULL)
        return folder

    @staticmethod
    def _release():
        """Return the first part of rdma-core's version; 0 without the package."""
        done = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", PACKAGE], capture_output=True, text=True,
                              check=False)
        version = re.match(r"\d+", done.stdout)
        return int(version.group()) if version else 0

    def _unpack(self, suite):
        self._folder = os.path.join(self._work_dir, "tests")
        os.mkdir(self._folder)
        for name in os.listdir(suite):
            source, target = os.path.join(suite, name), os.path.join(self._folder, name)
            if name.endswith(".gz"):
                with gzip.open(source) as packed, open(target[:-len(".gz")], "wb") as file:
                    shutil.copyfileobj(packed, file)
            else:
                shutil.copy(source, target)

    def _owner(self):
        self._namespace = Namespace("pyverbs")
        self._namespace.run("ip", "link", "add", NETDEV, "type", "veth", "peer", "name", "veth1")
        for netdev in (NETDEV, "veth1"):
            self._namespace.run("ip", "link", "set", netdev, "up")
        self._namespace.run("ip", "addr", "add", f"{ADDRESS}/24", "dev", NETDEV)
        return Uroced(self._namespace, self._work_dir, NETDEV, "--file-prefix", f"uroce-pyverbs-{os.getpid()}",
                      name="uroced-pyverbs")

    def _run_example(self, owner):
        """It prints a row for each device."""
        done = ask([UROCE_RUN, "--socket", owner.socket, "--", "/usr/bin/python3", "-P", self._root + EXAMPLE], SECONDS)
        if done.returncode or not re.search(rf"^ *{DEVICE} +CA +IB +[0-9a-f]+ *$", done.stdout, re.M):
            raise CheckFailed(f"exit {done.returncode}, no device", [*done.stdout.splitlines(), *done.stderr.splitlines()])

    def _run_suite(self, owner):
        self._host = LocalHost("pyverbs", self._work_dir,
                               [*self._namespace.prefix, "unshare", "--mount", "sh", "-c", SHOW_NETDEV, "sh", UROCE_RUN,
                                "--socket", owner.socket, "--"])
        self._gid = gid_index(gids(self._host, DEVICE), ADDRESS)
        self._text = self._run()
        self._verdicts = parse_verdicts(self._text)
        ran = RAN.search(self._text)
        if not ran or int(ran.group(1)) != len(self._verdicts) or len(self._verdicts) != self._tests:
            raise CheckFailed(f"{len(self._verdicts)} verdicts of {self._tests}, and unittest says: {ran and ran.group(0)}",
                              self._text.splitlines()[-40:])

    def _run(self, *tests):
        process = self._host.start(["/usr/bin/python3", os.path.join(self._folder, "run_tests.py"), "--dev", DEVICE,
                                    "--port", "1", "--gid", str(self._gid), "-v", *tests])
        status = process.wait(SECONDS)
        story = process.story("pyverbs")
        process.kill()
        if status not in (0, 1):
            raise CheckFailed(f"hangs (after {SECONDS} s)" if status is None else f"exit {status}", story)
        return process.output()

    def _judge(self):
        rows = allowed_skips()
        skips = {pattern: [] for pattern in rows}
        for test, (verdict, reason) in self._verdicts.items():
            patterns = [pattern for pattern in rows if fnmatch.fnmatchcase(test, pattern)]
            if verdict == "ok":
                self._report.passed += 1
                if patterns and not self._is_vendors(test):
                    print(f"note  pyverbs: {test} passes, and the table of doc/developer/conformance.md says that it skips")
            elif verdict == "skipped" and patterns:
                self._report.skipped += 1
                skips[patterns[0]].append(test)
            elif verdict == "skipped":
                self._report.fail(f"pyverbs: {test}", f"skips, and does not stand in doc/developer/conformance.md: {reason}")
            else:
                self._report.check(f"pyverbs: {test}", self._failed, test)
        for pattern, tests in skips.items():
            if tests:
                print(f"skip  pyverbs: {pattern}: {len(tests)} tests: {rows[pattern]}")
        generic = [test for test in self._verdicts if not self._is_vendors(test)]
        passed = [test for test in self._verdicts if self._verdicts[test][0] == "ok"]
        generic_passed = [test for test in passed if test in generic]
        print(f"note  pyverbs: {len(passed)} of {len(self._verdicts)} tests pass; "
              f"{len(generic_passed)} of {len(generic)} generic ones")
        self._report.require(f"pyverbs: {self._passes} generic tests pass", self._has_passed, len(generic_passed))
        for file in MUST_PASS:
            self._report.require(f"pyverbs: all of {file}", self._has_passed_all, file)

    def _has_passed(self, count):
        if count < self._passes:
            raise CheckFailed(f"only {count} tests pass", [])

    def _has_passed_all(self, file):
        tests = [test for test in self._verdicts
                 if test.split(".")[0] == file
                 and not any(fnmatch.fnmatchcase(test, pattern) for pattern in MAY_SKIP)]
        others = [test for test in tests if self._verdicts[test][0] != "ok"]
        if not tests or others:
            raise CheckFailed(f"{len(others)} of {len(tests)} do not pass", others)

    @staticmethod
    def _is_vendors(test):
        return any(vendor in test.split(".")[0] for vendor in VENDORS)

    def _failed(self, test):
        """Report a failed test. The second try runs the test alone."""
        if test not in self._tried:
            self._tried.add(test)
            raise CheckFailed(self._verdicts[test][0], self._story(test))
        self._text = self._run(f"tests.{test}")
        self._verdicts.update(parse_verdicts(self._text))
        if self._verdicts[test][0] != "ok":
            raise CheckFailed(self._verdicts[test][0], self._story(test))

    def _story(self, test):
        """Return the report of unittest about a failed test, which follows the verdicts."""
        at = re.search(rf"^(?:ERROR|FAIL): test_\w+ \(tests\.{re.escape(test)}\)$", self._text, re.M)
        if not at:
            return []
        return self._text[at.start():].split("\n" + "=" * 70)[0].splitlines()[-20:]
