# SPDX-License-Identifier: BSD-3-Clause
"""Which options of uroce's programs were tried: a log of the command lines that checks start, and of the settings in the files
that these name, compared with the programs' options (test/documents/check.py compares those with the manual pages)."""

import contextlib
import json
import os
import re
import shlex
import subprocess

from .world import TOP_DIR

PROGRAMS = ("uroce-run", "uroced", "uroce-ctl", "testroce")
SETTINGS_PAGE = os.path.join(TOP_DIR, "doc", "man", "uroce.conf.5")

_log = None


def log_to(file):
    """Log the command lines of this process, and of those that it forks, to a binary file."""
    global _log
    _log = file


def log(argv):
    """Note a command line, and the names of the settings in its configuration file."""
    if _log:
        line = json.dumps([list(argv), [name for path in _files(argv) for name in _settings(path)]])
        os.write(_log.fileno(), f"{line}\n".encode())


def _files(words):
    return [after for word, after in zip(words, words[1:]) if word == "--config"]


def _settings(path):
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        return re.findall(r"^([a-z-]+) *=", file.read(), re.M)
    return []


def _words(argv):
    """Return the words of a command line, also those of a script in it."""
    for word in argv:
        try:
            yield from shlex.split(word, comments=True) if re.search(r"\s", word) else [word]
        except ValueError:
            yield word


def _options(argv):
    """Return pairs of a program and an option that it was given. The options of uroce-run end at its PROGRAM, which may be a
    program of ours; those of testroce also follow EAL's."""
    program = None
    for word in _words(argv):
        if os.path.basename(word) in PROGRAMS:
            program = os.path.basename(word)
        elif word == "--" and program != "testroce" or re.fullmatch(r"[;|&]+", word):
            program = None
        elif program and word.startswith("-"):
            yield program, word.split("=", 1)[0]


def _known(folder):
    """Return the options of all programs: pairs of a program and an option, and the long name of each short one."""
    known, long_of = set(), {}
    for program in PROGRAMS:
        usage = subprocess.run([os.path.join(folder, program), "--help"], check=True, text=True, stdout=subprocess.PIPE).stdout
        for short, long in re.findall(r"(?:^  |, )(?:(-\w), )?(--[a-z][a-z-]*)", usage, re.M):
            known.add((program, long))
            long_of[program, short] = long
    return known, long_of


def untried(folder):
    """Return the options of the programs in a folder, and the settings of the manual page, that no line of the log has."""
    known, long_of = _known(folder)
    settings = set()
    _log.seek(0)
    for line in _log:
        argv, names = json.loads(line)
        tried = {(program, long_of.get((program, option), option)) for program, option in _options(argv)}
        settings |= {*names, *(option[2:] for _, option in tried)}
        known -= tried
    with open(SETTINGS_PAGE, encoding="utf-8") as page:
        heads = " ".join(re.findall(r"^\.TP\n\.BR? (.*)$", page.read().replace("\\-", "-"), re.M))
    return sorted(f"{program} {option}" for program, option in known) + \
        sorted(f"{name} of uroce.conf" for name in set(re.findall(r"[a-z-]+", heads)) - settings)
