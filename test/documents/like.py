#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make the tables of doc/user/like.md from the code's: like.py ROOT writes the page. check.py compares it."""

import os
import re
import sys

TABLE = "lib/like/include/like/like.def"
PAGE = "doc/user/like.md"
MARKS = {"SEEN": "s", "DRIVER": "d", "PROVIDER": "p", "NOT_TAKEN": "not taken"}
BEGIN, END = "<!-- made by test/documents/like.py -->\n", "<!-- end -->\n"


def rows(root, kind):
    """Return the arguments of each line of a kind; texts are without their quotation marks."""
    with open(os.path.join(root, TABLE), encoding="utf-8") as file:
        lines = re.findall(rf"^LIKE_{kind}\((.*)\)$", file.read(), re.M)
    return [[word.strip('"') for word in re.findall(r'("[^"]*"|[^,\s][^,]*)', line)] for line in lines]


def devices(root):
    return [option for option, _ in rows(root, "DEVICE")]


def value(cell):
    """Return a cell's number, or None if it is unknown."""
    found = re.fullmatch(r"(?!NOT_TAKEN)\w+\((\w+)\)", cell)
    return int(found[1], 0) if found else None


def shown(cell):
    found = re.fullmatch(r"(\w+)\((\w+)\)", cell)
    return f"{found[2]} {MARKS[found[1]]}" if found else {"UNKNOWN": "unknown", "HAS": "-"}.get(cell, cell)


def table(first, options, lines):
    return [f"| {first} | {' | '.join(options)} |", f"|---{'|---' * len(options)}|"] + \
           [f"| {name} | {' | '.join(shown(cell) for cell in cells)} |" for name, cells in lines]


def tables(root):
    """Return the part of the page that is made."""
    options = devices(root)
    figures = [(f"`{row[0]}`", row[2:]) for row in rows(root, "FIGURE") + rows(root, "FLAGS")]
    refused = [(row[1], row[2:]) for row in rows(root, "LACK")] + \
              [(f"the call `{row[0].rsplit('.', 1)[-1]}`", row[1:]) for row in rows(root, "CALL")]
    sources = [f"- {option}, {MARKS[mark]}: {text}" for option, mark, text in rows(root, "SOURCE")]
    return "\n".join(table("figure", options, figures) + [""] + table("refused", options, refused) + [""] + sources) + "\n"


def page(root):
    """Return the page as it is, and as it should be."""
    with open(os.path.join(root, PAGE), encoding="utf-8") as file:
        now = file.read()
    return now, now.split(BEGIN)[0] + BEGIN + tables(root) + END + now.split(END)[1]


def main():
    with open(os.path.join(sys.argv[1], PAGE), "r+", encoding="utf-8") as file:
        file.write(page(sys.argv[1])[1])
        file.truncate()


if __name__ == "__main__":
    main()
