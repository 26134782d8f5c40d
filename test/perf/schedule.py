# SPDX-License-Identifier: BSD-3-Clause
"""Tells how long a run will take, what is being measured, and how much is left."""

import sys
import time

# For each row: its samples in a round, and the seconds of a round beyond the time that is asked for (programs start and
# end). Only the estimate depends on them; the rows that have ended correct it.
ROUNDS = {"memif": (14, 13), "vhost": (7, 12), "hand-over": (18, 6), "isolated": (3, 4), "tenants": (8, 22), "programs": (6, 7), "threads": (6, 4),
          "cold": (4, 8), "qps": (5, 6), "connections": (0, 12), "idle": (4, 2), "veth": (33, 26), "registration": (0, 8)}


def minutes(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


class Schedule:
    """The rows of a run, and the time that each is expected to take."""

    def __init__(self, rows, repeat, seconds):
        self._expected = {row: repeat * (ROUNDS[row][0] * seconds + ROUNDS[row][1]) for row in rows}
        self._waiting = list(rows)
        self._started = time.monotonic()
        self._on_terminal = sys.stdout.isatty()

    def _sum(self, rows):
        return sum(self._expected[row] for row in rows)

    def whole(self):
        return minutes(self._sum(self._expected))

    def left(self):
        """Return the time until the end, on the assumption that the other rows are as late as those that ended."""
        ended = [row for row in self._expected if row not in self._waiting]
        late = (time.monotonic() - self._started) / self._sum(ended) if ended else 1
        return minutes(late * self._sum(self._waiting))

    def end_row(self, row):
        self._waiting.remove(row)

    def show(self, what):
        """Show what is being measured, on a terminal: the next line replaces it."""
        if self._on_terminal:
            print(f"\r\033[K   {what}"[:110], end="", flush=True)

    def clear(self):
        if self._on_terminal:
            print("\r\033[K", end="", flush=True)
