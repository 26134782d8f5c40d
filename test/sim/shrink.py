#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Let the simulator find a simulated fault, and run the smallest program that it prints.

usage: shrink.py SIM
"""

import os
import re
import subprocess
import sys


def run(sim, arguments, **environment):
    done = subprocess.run([sim, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout + done.stderr


def works(arguments):
    """Return the largest number of requests of a flow."""
    return int(arguments[arguments.index("--first") + 1]) if "--first" in arguments else 2000


def check(sim, breaks, message):
    status, text = run(sim, ["--start-seed", "1", "--seconds", "20", "--vary"], SIM_BREAK=breaks)
    found = re.search(r"^sim: repeat it with: sim (.*?) \(\d+ smaller ones were tried\)$", text, re.M)
    assert status != 0 and found, f"{breaks}: exit {status}\n{text}"
    smallest = found.group(1).split()
    # one READ, and the requests before it; a flow had up to 2,000
    assert works(smallest) <= 20, f"{breaks}: not small: {smallest}"
    status, text = run(sim, smallest, SIM_BREAK=breaks)
    assert status != 0 and re.search(message, text), f"{breaks}: {smallest}: exit {status}\n{text}"
    status, text = run(sim, smallest)
    assert status == 0, f"{smallest}: exit {status} without a fault\n{text}"
    print(f"{breaks}: {' '.join(smallest)}")
    return smallest


def soak(sim):
    """Check that a soak continues after a failure, and counts it. A soak on busy CPUs may get through one program only, which
    says nothing: then take a longer one."""
    for hours in ("0.0006", "0.006", "0.03"):
        status, text = run(sim, ["--hours", hours, "--jobs", "2"], SIM_BREAK="crash")
        found = re.search(r"^soak: (\d+) programs, (\d+) work requests, \d+ packets, (\d+) violations$", text, re.M)
        assert status != 0 and found, f"exit {status}\n{text}"
        if int(found.group(1)) > 1:
            break
    assert int(found.group(1)) > 1 and int(found.group(3)) > 1, found.group(0)
    print(found.group(0))


def main():
    sim = sys.argv[1]
    check(sim, "read", r"landing of work \d+")
    check(sim, "crash", r"seed \d+ crashed")
    # with one engine, no frame crosses
    smallest = check(sim, "cross", r"counter rx_wrong_qpn is \d+")
    assert "--engines" in smallest and smallest[smallest.index("--engines") + 1] != "1", smallest
    soak(sim)


if __name__ == "__main__":
    main()
