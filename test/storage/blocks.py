# SPDX-License-Identifier: BSD-3-Clause
"""Blocks that QEMU's block layer writes until it is killed, and what they must be afterwards."""

import re

BLOCK = 65536
PLACES = 64
PATTERNS = 251  # no two successive writes of a place have the same pattern
# A writer that nothing kills ends by itself.
COMMANDS = ("for ((n = {first}; SECONDS < {seconds}; n++)); do "
            "echo write -P $((n % {patterns})) $((n % {places} * {block})) {block}; done")
DONE = re.compile(rf"wrote {BLOCK}/{BLOCK} bytes at offset (\d+)|^.*(write failed): ", re.M)


class Blocks:
    """
    All blocks that one writer after the other has written. The writers count blocks on. Block n has the pattern n % PATTERNS,
    at place n % PLACES. A writer has one request in flight.
    """

    def __init__(self):
        self._first = 0      # of the next writer
        self._patterns = {}  # of the places at which an acknowledged block is the last one

    def writer(self, seconds, disk):
        """Return the command of the next writer, which needs a shell."""
        commands = COMMANDS.format(first=self._first, seconds=seconds, patterns=PATTERNS, places=PLACES, block=BLOCK)
        return ["bash", "-c", f"({commands}) | stdbuf -oL qemu-io --image-opts {disk}"]

    @staticmethod
    def acknowledged(output):
        """Return how many blocks a writer's output reports as written."""
        return sum(bool(place) for place, _ in DONE.findall(output))

    @staticmethod
    def failed(output):
        """Return how many blocks a writer's output reports as failed."""
        return sum(bool(failed) for _, failed in DONE.findall(output))

    def add(self, output):
        """
        Add the blocks of a writer that was killed; return None, or what is wrong with its output. A block that failed, or was
        in flight, may be there or not, or in part.
        """
        number = self._first
        for place, failed in DONE.findall(output):
            if failed:
                self._patterns.pop(number % PLACES, None)
            elif int(place) != number % PLACES * BLOCK:
                return f"block {number} is reported at {place}"
            else:
                self._patterns[number % PLACES] = number % PATTERNS
            number += 1
        self._patterns.pop(number % PLACES, None)
        self._first = number + 1
        return None

    def reads(self):
        """Return qemu-io's commands that verify each acknowledged block."""
        return [f"read -P {pattern} {place * BLOCK} {BLOCK}" for place, pattern in sorted(self._patterns.items())]
