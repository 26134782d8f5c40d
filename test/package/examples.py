# SPDX-License-Identifier: BSD-3-Clause
"""The examples of README.md, doc/user/ci.md and doc/operator/uroced.md, run as they are written."""

import os
import re

from debs import TOP
from harness.report import CheckFailed

LANGUAGES = {  # folders of config/ci: packages, what the output says
    "c": ("gcc libc6-dev libibverbs-dev librdmacm-dev", "received what was sent"),
    "rust": ("cargo gcc libc6-dev libibverbs-dev librdmacm-dev", "test result: ok. 2 passed"),
    "go": ("golang-go gcc libc6-dev libibverbs-dev librdmacm-dev", "--- PASS: TestSend"),
    "python": ("python3-pyverbs", "OK"),
}


def read(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as file:
        return file.read()


def readme_commands():
    """Return the first lines of commands in README: build dependencies, the build, the installation, and two lines that run
    programs."""
    return re.findall(r"^    (.*)$", read("README.md"), re.M)[:5]


def ci_blocks(section):
    """Return the blocks of a section of doc/user/ci.md: {second word of the block: text}."""
    text = read("doc/user/ci.md").split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    return {name: body for name, body in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", text, re.M | re.S)}


def operator_page():
    """Return the commands of doc/operator/uroced.md: {section: script}, and its files: {language: text}."""
    text = read("doc/operator/uroced.md")
    files = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
    sections = {part.split("\n", 1)[0]: "\n".join(re.findall(r"^    (\S.*)$", part, re.M))
                for part in files.sub("", text).split("\n## ")[1:]}
    return {name: script for name, script in sections.items() if script}, dict(files.findall(text))


class ExamplesTest:
    """Each example of doc/user/ci.md, in a place that has the package, by an ordinary user."""

    def __init__(self, report, place, debs):
        self._report = report
        self._place = place
        self._debs = debs

    def run_all(self):
        self._place.add_user()
        self._place.copy(self._debs.file("uroce"), "/tmp")
        self._place.install("/tmp/uroce_*.deb ibverbs-utils")
        self._report.check("package: doc/user/ci.md: one line", self._one_line)
        for language in LANGUAGES if self._report.complete else ("c",):
            self._report.check(f"package: doc/user/ci.md: {language}", self._language, language)
        self._report.check("package: doc/user/ci.md: TSan", self._tsan)
        self._report.check("package: doc/user/ci.md: a step in a shell", self._step)
        self._report.check("package: doc/user/ci.md: a step that cannot start", self._step_fails)

    def _one_line(self):
        """What it says about devices and addresses is true."""
        self._place.run("uroce-run --local -- sh -c 'exit 3'", user=True, status=3)
        output = self._place.run("uroce-run --local=2 -- ibv_devinfo -v", user=True)
        for expected in ("uroce0", "uroce1", "198.18.0.1", "fd75:726f:6365::1"):
            if expected not in output:
                raise CheckFailed(f"no {expected}", output.splitlines())

    def _language(self, language):
        packages, expected = LANGUAGES[language]
        command = ci_blocks("Languages")[language]
        self._place.install(packages)
        output = self._place.run(f"cp -r /usr/share/uroce/ci/{language} ~/{language}\ncd ~/{language}\n{command}",
                                 user=True, seconds=300)
        if expected not in output:
            raise CheckFailed(f"no '{expected}'", output.splitlines()[-30:])

    def _tsan(self):
        """In the folder of the check before."""
        output = self._place.run(f"cd ~/c\n{ci_blocks('Sanitizers')['tsan']}", user=True)
        if LANGUAGES["c"][1] not in output:
            raise CheckFailed("no result", output.splitlines())

    @staticmethod
    def _step_lines():
        """Return the lines but for the installation, which was done."""
        return [line for line in ci_blocks("A step of a workflow")["step"].splitlines() if not line.startswith("sudo ")]

    def _step(self):
        script = "\n".join([*self._step_lines(), "ls /sys/class/infiniband", "kill $UROCE_CI_PID"])
        output = self._place.run(f"set -e\n{script}", user=True)
        if output.split()[-1] != "uroce0" or not re.search(r"^\s*uroce0\s+[0-9a-f]{16}$", output, re.M):
            raise CheckFailed("no device", output.splitlines())

    def _step_fails(self):
        """The job ends with the reason, and its environment, which may have secrets, is not printed."""
        script = "\n".join(self._step_lines()).replace("ci/start", "ci/start 99")
        output = self._place.run(f"set -e\n{script}", user=True, status=1, environment=["SECRET=hidden"])
        if "hidden" in output or "99" not in output:
            raise CheckFailed("not the reason alone", output.splitlines())
