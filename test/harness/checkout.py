# SPDX-License-Identifier: BSD-3-Clause
"""The files of this checkout, and its builds."""

import json
import os
import shlex
import subprocess

from .world import TOP_DIR


def output(*command):
    """Return what a command prints that runs at the top."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=TOP_DIR).stdout


def checked_in(*patterns):
    """Return the paths, from the top, of the files that git knows and that are there; none outside a checkout."""
    done = subprocess.run(["git", "ls-files", "--", *patterns], capture_output=True, text=True, cwd=TOP_DIR, check=False)
    return [path for path in done.stdout.split() if os.path.isfile(os.path.join(TOP_DIR, path))]


def changed_since(commit):
    """Return the paths, from the top, of what differs from a commit, also if it is not committed."""
    differ = output("git", "diff", "--name-only", "--no-renames", commit, "--")
    new = output("git", "ls-files", "--others", "--exclude-standard")
    return set(differ.splitlines()) | set(new.splitlines())


def configure(build, *options, source=TOP_DIR, compiler=None):
    """Let Meson make a build folder if it is not there, with MESONFLAGS and `options`. Print what it says if it cannot, and
    raise CalledProcessError."""
    if os.path.exists(os.path.join(build, "build.ninja")):
        return
    flags = shlex.split(os.environ.get("MESONFLAGS", ""))
    done = subprocess.run(["meson", "setup", build, source, *flags, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, **({"CC": compiler} if compiler else {})}, check=False)
    if done.returncode:
        print(done.stdout[-4000:])
    done.check_returncode()


def introspect(build, what):
    """Return what Meson has written about the targets or tests of a build."""
    with open(os.path.join(build, "meson-info", f"intro-{what}.json"), encoding="utf-8") as file:
        return json.load(file)
