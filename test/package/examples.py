# SPDX-License-Identifier: BSD-3-Clause
"""The examples of README.md and doc/ci.md, run as they are written."""

import os
import re
import shlex

from debs import TOP
from harness.report import CheckFailed

SECTIONS = {  # of doc/ci.md: packages, what the output says
    "C": ("gcc libc6-dev libibverbs-dev librdmacm-dev", "received what was sent"),
    "Rust": ("cargo gcc libc6-dev libibverbs-dev librdmacm-dev", "test result: ok. 2 passed"),
    "Go": ("golang-go gcc libc6-dev libibverbs-dev librdmacm-dev", "--- PASS: TestSend"),
    "Python": ("python3-pyverbs", "OK"),
}


def read(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as file:
        return file.read()


def readme_commands():
    """Return the first lines of commands in README: the installation, and the line after it."""
    lines = re.findall(r"^    (.*)$", read("README.md"), re.M)
    return lines[0], lines[1]


def ci_blocks(section):
    """Return the blocks of a section of doc/ci.md: {second word: text}. The second word of a block is its file's name."""
    text = read("doc/ci.md").split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    return {name: body for name, body in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", text, re.M | re.S)}


class ExamplesTest:
    """Each example of doc/ci.md, in a place that has the package, by an ordinary user."""

    def __init__(self, report, place, debs):
        self._report = report
        self._place = place
        self._debs = debs

    def run_all(self):
        self._place.add_user()
        self._place.copy(self._debs.file("uroce"), "/tmp")
        self._place.install("/tmp/uroce_*.deb ibverbs-utils")
        self._report.check("package: doc/ci.md: one line", self._one_line)
        for language in SECTIONS if self._report.complete else ("C",):
            self._report.check(f"package: doc/ci.md: {language}", self._language, language)
        self._report.check("package: doc/ci.md: a step in a shell", self._step)
        self._report.check("package: the composite action", self._action)

    def _one_line(self):
        """What it says about devices and addresses is true."""
        self._place.run("uroce-run --local -- sh -c 'exit 3'", user=True, status=3)
        output = self._place.run("uroce-run --local=2 -- ibv_devinfo -v", user=True)
        for expected in ("uroce0", "uroce1", "198.18.0.1", "fd75:726f:6365::1"):
            if expected not in output:
                raise CheckFailed(f"no {expected}", output.splitlines())

    def _language(self, language):
        packages, expected = SECTIONS[language]
        blocks = ci_blocks(language)
        command = blocks.pop("run")
        self._place.install(packages)
        where = f"/home/user/{language}"
        for name, body in blocks.items():
            self._place.run(f"mkdir -p $(dirname {where}/{name}) && printf %s {shlex.quote(body)} >{where}/{name}", user=True)
        output = self._place.run(f"cd {where}\n{command}", user=True, seconds=300)
        if expected not in output:
            raise CheckFailed(f"no '{expected}'", output.splitlines()[-30:])

    def _step(self):
        """But for the installation, which was done."""
        lines = [line for line in ci_blocks("A step of a workflow")["step"].splitlines() if not line.startswith("sudo ")]
        script = "\n".join([*lines, "ls /sys/class/infiniband", "kill $UROCE_CI_PID"])
        output = self._place.run(f"set -e\n{script}", user=True)
        if output.split()[-1] != "uroce0" or not re.search(r"^\s*uroce0\s+[0-9a-f]{16}$", output, re.M):
            raise CheckFailed("no device", output.splitlines())

    def _action(self):
        """The steps, with what a runner puts into them."""
        steps = self._steps()
        values = {"inputs.package": "/tmp/uroce_*.deb", "inputs.devices": "2"}
        self._place.run("apt-get purge -y uroce", network=True)
        for step in steps:
            settings = "".join(
                f"{name}={shlex.quote(re.sub(r'[$]{{ *([a-z.]+) *}}', lambda found: values[found[1]], value))}\n"
                for name, value in step["env"].items())
            settings = settings.replace("'/tmp/uroce_*.deb'", "$(echo /tmp/uroce_*.deb)")
            names = " ".join(step["env"])
            self._place.run(f"export GITHUB_ENV=/tmp/github-env\n{settings}export {names}\n{step['run']}", network=True,
                            seconds=300)
        output = self._place.run("export $(cat /tmp/github-env); ibv_devices; kill $UROCE_CI_PID")
        if "uroce0" not in output or "uroce1" not in output:
            raise CheckFailed("no two devices", output.splitlines())

    @staticmethod
    def _steps():
        """Return the steps of config/ci/action.yml: `env` and `run` of each. It uses little of YAML, and so this reads it."""
        steps = []
        for text in read("config/ci/action.yml").split("    - shell: bash\n")[1:]:
            env = dict(re.findall(r"^        ([A-Z]+): (.*)$", text.split("      run:")[0], re.M))
            run = text.split("      run: ", 1)[1]
            run = re.sub(r"^ {8}", "", run.removeprefix("|\n"), flags=re.M)
            steps.append({"env": env, "run": run})
        if len(steps) != 2:
            raise CheckFailed(f"{len(steps)} steps")
        return steps
