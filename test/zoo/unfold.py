#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run programs that count on what the specification leaves open with several seeds: unfold.py UROCE_RUN UNFOLD. Each wrong one works
without --unfold, and fails with a seed; the right ones work with each."""

import os
import re
import subprocess
import sys
import tempfile

PORT = ("--port", "net_null0", "--ip", "10.0.0.1/24")
SEEDS = 50
WRONG_SEEDS = 6
SECONDS = 280
WRONG = {
    "polls_once": "a poll returned fewer than 4",
    "by_order": "the first completion is of the second queue pair",
    "other_queue": "the older one is not there",
    "event_is_completion": "an event without a completion",
    "event_for_each": "no event came",
    "no_retries": "a completion",
    "last_byte": "the last byte is there, and another is not",
}


def run(folder, *argv):
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)


def expect(good, what, done):
    if not good:
        sys.exit(f"{what}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    uroce_run, program = (os.path.abspath(path) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        for name, said in WRONG.items():
            port = ("--local",) if name == "last_byte" else PORT
            done = run(folder, uroce_run, *port, "--", program, name)
            # an engine that gets no CPU for a while also merges events
            expect(done.returncode == 0 or name == "event_for_each", f"{name} without --unfold", done)
            done = run(folder, uroce_run, *port, "--unfold", f"1..{WRONG_SEEDS}", "--", program, name)
            failed = re.findall(r"seed (\d+) \((unfold-\d+.log)\): exit status 1", done.stderr)
            count = int(re.search(rf"(\d+) of {WRONG_SEEDS} seeds failed\n$", done.stderr)[1])
            # a reader of the last byte may also wait for ever
            expect(done.returncode == 1 and 0 < len(failed) and (len(failed) == count or name == "last_byte"), name, done)
            with open(os.path.join(folder, failed[0][1]), encoding="utf-8") as file:
                text = file.read()
            expect(f"unfold: {said}\n" in text, f"{name}, seed {failed[0][0]}: {text}", done)
            kept = os.listdir(folder)
            expect(len(kept) == count, f"{name} left {kept}", done)
            for path in kept:
                os.unlink(os.path.join(folder, path))
        done = run(folder, uroce_run, *PORT, "--unfold", f"1..{SEEDS}", "--", program)
        expect(done.returncode == 0 and f"0 of {SEEDS} seeds failed" in done.stderr, "the right ones", done)
        for seeds in ("x", "5..4", "1..", "-1", "1..2x"):
            done = run(folder, uroce_run, *PORT, "--unfold", seeds, "--", "true")
            expect(done.returncode == 1 and f"unfold: '{seeds}' is not a number, or two as in 1..500" in done.stderr, seeds, done)


if __name__ == "__main__":
    main()
