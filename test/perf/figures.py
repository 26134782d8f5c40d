# SPDX-License-Identifier: BSD-3-Clause
"""Figures, measured in groups: all figures of a group in turn, several times. They are compared only within one
placement of the CPUs."""

import statistics
import time

from machine import NEAR_NS, Failed

FAILURES_MAX = 3  # after so many failures of a figure, give it up


class Figure:
    """One measurement; `measure` returns a number, or several numbers of one run, one for each of `keys`."""

    def __init__(self, keys, title, unit, measure):
        self.keys = keys.split()
        self.title = title
        self.unit = unit
        self.measure = measure
        self.samples = []  # (state, distance in ns, numbers)
        self.failed = 0
        self.failure = None  # the reason why it was given up
        self.steal = 0.0

    def of(self, state):
        return [numbers for where, _, numbers in self.samples if where == state]


    def fail(self, why, tell):
        """A sample was lost. The next round replaces it, unless too many were lost."""
        self.failed += 1
        if self.failed == FAILURES_MAX:
            self.failure = why
        tell(f"   {self.title}: {'given up' if self.failure else 'failed, and is tried again'}: {why}")


class Group:
    """Figures that are compared with each other."""

    def __init__(self, name, figures):
        self.name = name
        self.figures = figures
        self.state = None


def _take(machine, figure):
    """Take one sample, unless the CPUs moved meanwhile."""
    stolen, total = machine.stolen()
    before = machine.distance_ns()
    numbers = figure.measure()
    after = machine.distance_ns()
    stolen_after, total_after = machine.stolen()
    if (before < NEAR_NS) != (after < NEAR_NS):
        return
    figure.steal = max(figure.steal, 100.0 * (stolen_after - stolen) / max(1, total_after - total))
    figure.samples.append(("near" if before < NEAR_NS else "far", (before + after) / 2,
                           numbers if isinstance(numbers, tuple) else (numbers,)))


def _choose_state(group):
    """Choose the placement in which the figure with the fewest samples has the most. Prefer near."""
    alive = [figure for figure in group.figures if not figure.failure]
    return max(("near", "far"), key=lambda state: min((len(figure.of(state)) for figure in alive), default=0))


def measure_group(machine, group, repeat, tell, schedule):
    """Run as many rounds as wanted, and then rounds in place of those that failures and moves of the CPUs have
    cost."""
    started = time.monotonic()
    tell(f"\n== {group.name}")
    for round_number in range(3 * repeat):
        group.state = _choose_state(group)
        for figure in group.figures:
            wanted = round_number < repeat or len(figure.of(group.state)) < repeat
            if figure.failure or not wanted:
                continue
            schedule.show(f"{figure.title}, round {round_number + 1} of {max(repeat, round_number + 1)}")
            try:
                _take(machine, figure)
            except Failed as failure:
                figure.fail(str(failure), tell)
            except Exception as failure:  # whatever fails, measure the other figures
                figure.fail(f"{type(failure).__name__}: {failure}", tell)
    group.state = _choose_state(group)
    schedule.clear()
    for figure in group.figures:
        tell(_line(group, figure))
    tell(f"   ({time.monotonic() - started:.0f} s)")


def medians(group, figure):
    """Return the medians of the samples in the group's placement; None where there are none."""
    samples = figure.of(group.state)
    if not samples:
        return None
    return [statistics.median(numbers[i] for numbers in samples) for i in range(len(figure.keys))]


def number_text(value):
    if value != value:
        return "-"
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def _line(group, figure):
    values = medians(group, figure)
    if figure.failure or not values:
        return f"   {figure.title:<44} {figure.failure or 'the CPUs moved all the time'}"
    samples = figure.of(group.state)
    distance = statistics.median(ns for state, ns, _ in figure.samples if state == group.state)
    spread = "  ".join(f"{min(n[i] for n in samples):.4g}..{max(n[i] for n in samples):.4g}"
                       for i in range(len(figure.keys)))
    text = " / ".join(number_text(value) for value in values)
    return (f"   {figure.title:<44} {text:>16} {figure.unit:<6} {group.state} {distance:.0f} ns, of {len(samples)}: "
            f"{spread}, steal {figure.steal:.0f}%")


def records(groups):
    """Return all that was measured, by key, for JSON."""
    result = {}
    for group in groups:
        for figure in group.figures:
            values = None if figure.failure else medians(group, figure)
            for i, key in enumerate(figure.keys):
                samples = figure.of(group.state) if values else []
                result[key] = {
                    "group": group.name, "title": figure.title, "unit": figure.unit,
                    "median": values[i] if values else None, "values": [numbers[i] for numbers in samples],
                    "state": group.state,
                    "distance_ns": [ns for state, ns, _ in figure.samples if state == group.state],
                    "steal_percent": round(figure.steal, 1), "failure": figure.failure}
    return result
