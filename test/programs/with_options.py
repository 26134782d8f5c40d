#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run the program tests with other options: every uroce-run of run.py gets them, before the test's own.

usage: with_options.py OPTIONS [option of run.py...]

    with_options.py '--engines 2' --only memif:
    with_options.py '--cc swift' --only veth:
"""

import os
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.tools import UROCE_RUN  # noqa: E402


def build_folder(folder, options):
    """Make a build folder that is the real one, but for its uroce-run. Return the path of that."""
    os.chmod(folder, 0o755)  # some tests run uroce-run as a user without rights
    app = os.path.dirname(UROCE_RUN)
    build = os.path.dirname(app)
    os.mkdir(os.path.join(folder, "app"))
    for name in os.listdir(app):
        os.symlink(os.path.join(app, name), os.path.join(folder, "app", name))
    for name in os.listdir(build):
        if name != "app":
            os.symlink(os.path.join(build, name), os.path.join(folder, name))
    tool = os.path.join(folder, "app", "uroce-run")
    os.unlink(tool)
    with open(tool, "w", encoding="utf-8") as script:
        script.write(f'#!/bin/sh\nexec {shlex.quote(UROCE_RUN)} {shlex.join(options)} "$@"\n')
    os.chmod(tool, 0o755)
    return tool


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="uroce-options-") as folder:
        tool = build_folder(folder, shlex.split(sys.argv[1]))
        run = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
        env = {**os.environ, "UROCE_RUN": tool, "UROCE_RUN_FILE": UROCE_RUN}
        return subprocess.run([sys.executable, run, *sys.argv[2:]], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
