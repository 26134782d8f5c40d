#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check that the documents agree with the programs.

usage: check.py ROOT TOOL...

Each option that a tool parses is in its --help and in its manual page, and neither has an option that the tool does not
parse. Each setting is in uroce.conf(5) and in the example file. Each file that a document links or names exists, each heading
that it links, each file of doc and config that a source names, and each test that the pages security and conformance name. What the glossary and the page conformance quote
from the code is in the code. The tables of doc/user/like.md are those of the code. Dated measurements are in doc/results and doc/performance.md only. The README shows first how to reach
another host without root.
"""

import glob
import os
import re
import subprocess
import sys

import like

OPTION_TABLES = {
    "uroce-run": ("app/uroce-run/run_options.c", "doc/man/uroce-run.1"),
    "uroced": ("app/uroced/uroced_options.c", "doc/man/uroced.8"),
    "uroce-ctl": ("app/uroce-ctl/command.c", "doc/man/uroce-ctl.1"),
    "testroce": ("app/testroce/testroce_options.c", "doc/man/testroce.1"),
}
SETTINGS = {"pmd/config/settings.c": "SETTINGS", "pmd/config/file.c": "TENANTS"}  # and the section in the manual page
SETTINGS_MANUAL = "doc/man/uroce.conf.5"
SETTINGS_EXAMPLE = "config/uroce.conf.example"
DOCUMENTS = ("*.md", "doc/*.md", "doc/*/*.md", "test/*/README.md", "test/data/wire/README.md")
SOURCE_FOLDERS = ("app", "config", "doc", "lib", "pmd", "test", ".ci")
# Files of other programs, and results of ours.
OTHERS = re.compile(r"^(build/|/|linux/|results\.|verbs\.h$|rdma_verbs\.h$|dpdk-)")
NAMED = re.compile(r"`([\w./-]+\.(?:c|h|def|py|md|sh|conf|example|build))`")
SECURITY = "doc/operator/security.md"
GLOSSARY = "doc/developer/glossary.md"
CONFORMANCE = "doc/developer/conformance.md"
UNIT_FILE = re.compile(r"(?:unit:(\w+)/)?(test_\w+\.c)")
QUOTED = re.compile(r"`(\w+)`")
UNIT_TEST = re.compile(r"`([a-z]+)/(\w+)`")
UNIT_CASE = re.compile(r"`([a-z]\w+__\w+)`")
PROGRAM_TEST = re.compile(r"`([a-z]+): ?([^`]*)`")
PLACED = re.compile(r"(?<![\w./-])((?:doc|config)/[\w./-]+\.(?:c|h|py|md|sh|conf|example|build|supp|[1-8]))\b")
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")  # of a measurement: figures are in doc/results
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def differences(what, expected, found):
    """Return a line for each name that only one of two places has."""
    return [f"{what} lacks {name}" for name in sorted(expected - found)] + \
           [f"{what} has {name}, which does not exist" for name in sorted(found - expected)]


def manual_options(text):
    """Return the long options in the part OPTIONS of a manual page."""
    part = text.split(".SH OPTIONS", 1)[1].split("\n.SH ", 1)[0]
    return set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", part.replace("\\-", "-")))


def check_options(root, tool):
    name = os.path.basename(tool)
    source, manual = OPTION_TABLES[name]
    parsed = set(re.findall(r'\{"([a-z-]+)", (?:no|required|optional)_argument', read(root, source)))
    if not parsed:
        return [f"{source} has no table of options"]
    usage = subprocess.run([tool, "--help"], check=True, text=True, stdout=subprocess.PIPE).stdout
    shown = set(re.findall(r"(?:^  |, )(?:-\w, )?--([a-z][a-z-]*)", usage, re.M))
    described = manual_options(read(root, manual))
    # A manual page may name options of other programs in its text, but it must not introduce them.
    introduced = set(re.findall(r"^\.(?:TP|TQ)\n\.B[RI]* .*?--([a-z][a-z-]*)",
                                read(root, manual).replace("\\-", "-"), re.M))
    return differences(f"{name} --help", parsed, shown) + \
        differences(manual, parsed, (described & parsed) | introduced)


def check_settings(root):
    wrong, all_known = [], set()
    for source, section in SETTINGS.items():
        known = set(re.findall(r'SETTING\("([a-z-]+)"|\.name = "([a-z-]+)"', read(root, source)))
        known = {first or second for first, second in known}
        manual = read(root, SETTINGS_MANUAL).split(f".SH {section}", 1)[1].split("\n.SH ", 1)[0].replace("\\-", "-")
        heads = " ".join(re.findall(r"^\.TP\n\.BR? (.*)$", manual, re.M))
        wrong += differences(SETTINGS_MANUAL, known, set(re.findall(r"[a-z-]+", heads)))
        all_known |= known
    example = set(re.findall(r"^#? ?([a-z-]+) = ", read(root, SETTINGS_EXAMPLE), re.M))
    return wrong + differences(SETTINGS_EXAMPLE, all_known, example)


def check_readme(root):
    """Check that the first command of the README that names another host is the one that any user can run."""
    ways = re.findall(r"^ .*uroce-run (--\w+).* PEER$", read(root, "README.md"), re.M)
    return [] if ways[:1] == ["--udp"] else ["README.md does not show --udp first for two hosts"]


def source_files(root):
    found = []
    for folder in SOURCE_FOLDERS:
        for at, _, names in os.walk(os.path.join(root, folder)):
            found += [os.path.join(os.path.relpath(at, root), name) for name in names]
    return found + [name for name in os.listdir(root) if os.path.isfile(os.path.join(root, name))]


def anchors(document):
    """Return the names by which a link reaches the headings of a document."""
    with open(document, encoding="utf-8") as file:
        headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", file.read(), flags=re.S), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_files(root):
    files = source_files(root)
    ends = {"/".join(path.split("/")[from_part:]) for path in files for from_part in range(path.count("/") + 1)}
    wrong = []
    for pattern in DOCUMENTS:
        for document in sorted(glob.glob(os.path.join(root, pattern))):
            name = os.path.relpath(document, root)
            text = read(root, name)
            for target, heading in LINK.findall(text):
                linked = os.path.join(os.path.dirname(document), target) if target else document
                if not os.path.exists(linked):
                    wrong.append(f"{name} links {target}, which does not exist")
                elif heading and heading not in anchors(linked):
                    wrong.append(f"{name} links {target}#{heading}, a heading that does not exist")
            if re.match(r"doc/(user|operator|developer|architecture)", name):
                wrong += [f"{name} has a measurement of {date}: figures belong into doc/results" for date in DATE.findall(text)]
            for path in NAMED.findall(text):
                if path not in ends and not OTHERS.search(path):
                    wrong.append(f"{name} names {path}, which does not exist")
    return wrong


def check_sources(root):
    """Check that the files of doc and config exist which sources name, also relative to the folder of a room."""
    files = source_files(root)
    ends = {"/".join(path.split("/")[from_part:]) for path in files for from_part in range(path.count("/") + 1)}
    return [f"{name} names {path}, which does not exist" for name in sorted(files)
            if re.search(r"\.(c|h|py|sh|build|yml)$|^(Makefile|meson_options\.txt)$", name)
            for path in PLACED.findall(read(root, name)) if path not in ends]


def check_tests(root):
    """Check that the tests exist which the last column of a table names. A check of a program test is named by its group and by
    words of its name."""
    cells = [line.rsplit("|", 2)[1] for line in read(root, SECURITY).splitlines() if line.startswith("| ")]
    files = source_files(root)
    programs = "".join(read(root, path) for path in files if path.startswith("test/programs/") and path.endswith(".py"))
    units = {path: read(root, path) for path in files if path.startswith("test/unit/") and path.endswith(".c")}
    names = {(path.split("/")[2], os.path.basename(path)) for path in units}
    wrong = []
    for cell in cells:
        wrong += [f"{room}/{name}" for room, name in UNIT_TEST.findall(cell)
                  if (room, f"test_{name}.c") not in names and not os.path.isdir(os.path.join(root, room, name))]
        wrong += [case for case in UNIT_CASE.findall(cell) if not any(f"({case})" in text for text in units.values())]
        wrong += [f"{group}: {name}" for group, name in PROGRAM_TEST.findall(cell)
                  if f'"{group}: ' not in programs and f'"{group}"' not in programs or name not in programs]
    return [f"{SECURITY} names the test {name}, which does not exist" for name in wrong]


def check_quotes(root):
    """Check that the sources have each word of code that the glossary quotes, and the functions and unit tests of each rule."""
    code = "".join(read(root, path) for path in source_files(root) if re.match(r"(app|lib|pmd)/.*\.(c|h)$", path))
    words = set(re.findall(r"\w+", code))
    wrong = [f"{GLOSSARY} quotes {word}, which is not in the code" for word in QUOTED.findall(read(root, GLOSSARY))
             if word not in words]
    for line in read(root, CONFORMANCE).splitlines():
        cells = line.strip("|").split(" | ")
        if len(cells) != 4:
            continue
        wrong += [f"{CONFORMANCE} names {word}, which is not in the code" for word in QUOTED.findall(cells[2]) if word not in words]
        room = None
        for named, file in UNIT_FILE.findall(cells[3]):
            room = named or room
            if not os.path.exists(os.path.join(root, "test/unit", room or "", file)):
                wrong.append(f"{CONFORMANCE} names unit:{room}/{file}, which does not exist")
    return wrong


def main():
    root, *tools = sys.argv[1:]
    wrong = check_settings(root) + check_files(root) + check_sources(root) + check_tests(root) + check_quotes(root) + check_readme(root)
    now, made = like.page(root)
    wrong += [] if now == made else [f"{like.PAGE} lacks what {like.TABLE} has: test/documents/like.py . writes it"]
    for tool in tools:
        wrong += check_options(root, tool)
    print("\n".join(wrong) or "The documents agree with the programs.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
