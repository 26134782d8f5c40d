# SPDX-License-Identifier: BSD-3-Clause
"""Measures how long programs wait while something happens to what they use."""

import os
import threading
import time

LOOK_SECONDS = 0.002


class Waits(threading.Thread):
    """Measures for how long no program's output grows, at most. Each program writes all the time."""

    def __init__(self, programs):
        super().__init__(daemon=True)
        self._programs = programs
        self._end = threading.Event()
        self.longest = dict.fromkeys(programs, 0.0)

    def run(self):
        seen = {name: (0, time.monotonic()) for name in self._programs}
        while not self._end.wait(LOOK_SECONDS):
            for name, program in self._programs.items():
                now, length = time.monotonic(), os.path.getsize(program.log_path)
                self.longest[name] = max(self.longest[name], now - seen[name][1])
                if length != seen[name][0]:
                    seen[name] = (length, now)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self.join()
        print("    longest wait:", ", ".join(f"{name} {wait * 1000:.0f} ms" for name, wait in self.longest.items()))
