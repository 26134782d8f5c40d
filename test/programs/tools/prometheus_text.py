# SPDX-License-Identifier: BSD-3-Clause
"""A strict parser of Prometheus' text format, version 0.0.4."""

import re

from harness.report import CheckFailed

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)')
SERIES = re.compile(rf"({NAME})\{{(.*)\}} (\d+)$")
HELP = re.compile(rf"# HELP ({NAME}) (.+)$")
TYPE = re.compile(rf"# TYPE ({NAME}) (counter|gauge)$")


def _labels(text, line):
    labels, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        if not found or found[1] in labels:
            raise CheckFailed("labels are not valid", [line])
        labels[found[1]] = re.sub(r"\\(.)", lambda escape: {"n": "\n"}.get(escape[1], escape[1]), found[2])
        at = found.end()
    return labels


def parse(text):
    """Return {metric: (type, [(labels, value)])}. Each metric has HELP, TYPE and then all its series, each once."""
    metrics, name = {}, None
    if text and not text.endswith("\n"):
        raise CheckFailed("the last line does not end", [text[-200:]])
    lines = iter(text.splitlines())
    for line in lines:
        head = HELP.match(line)
        if head:
            kind = TYPE.match(next(lines, ""))
            name = head[1]
            if not kind or kind[1] != name or name in metrics:
                raise CheckFailed("no TYPE after HELP, or the metric is there twice", [line])
            if (kind[2] == "counter") != name.endswith("_total"):
                raise CheckFailed("a counter's name ends with _total, and no other", [line])
            metrics[name] = (kind[2], [])
            continue
        series = SERIES.match(line)
        if not series or series[1] != name:
            raise CheckFailed("a line is no series of the metric before it", [line])
        found = (_labels(series[2], line), int(series[3]))
        if any(found[0] == labels for labels, _ in metrics[name][1]):
            raise CheckFailed("a series is there twice", [line])
        metrics[name][1].append(found)
    return metrics
