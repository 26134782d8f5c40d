#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare devices that resemble others with the table of lib/like: like.py UROCE_RUN LIKE. What ibv_devinfo says of each, what LIKE
is refused, and which limits hold."""

import errno
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "test", "documents"))
import like  # noqa: E402

PORT = ("--port", "net_null0", "--ip", "10.0.0.1/24")
SECONDS = 60
# What ibv_devinfo prints in another way.
OTHERS = {"completion_timestamp_mask": "completion timestamp_mask", "device_cap_flags": "device_cap_flags_ex",
          "max_dm_size": "maximum available device memory"}
LIMITS = ("max_inline_data", "max_inline_data_ud", "max_send_sge", "max_recv_sge", "max_qp_wr", "max_cqe", "max_srq_sge",
          "max_qp_init_rd_atom")
OURS = {"max_inline_data": 1024, "max_inline_data_ud": 1024, "max_send_sge": 32, "max_recv_sge": 32, "max_srq_sge": 32}


def run(uroce_run, *words):
    done = subprocess.run([uroce_run, *PORT, *words], capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        sys.exit(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def told(uroce_run, *options):
    """Return what ibv_devinfo says: numbers by name. ODP's are lists of names."""
    text = run(uroce_run, *options, "--", "ibv_devinfo", "-v")
    values = {name.strip(): int(number, 0) for name, number in re.findall(r"^\s*([\w ]+):\s+(0x[0-9A-Fa-f]+|[1-9]\d*|0)(?![\w:])", text, re.M)}
    values["atomic_cap"] = int(re.search(r"atomic_cap:\s+\w+ \((\d)\)", text)[1])
    for name in ("general", "rc", "uc", "ud", "xrc"):
        values[f"{name}_odp_caps"] = re.search(rf"{name}_odp_caps:\n((?:\s+[A-Z_ ]+\n)*)", text)[1].split()
    return values


def check_told(uroce_run, device, column, ours):
    theirs, compared = told(uroce_run, "--like", device), 0
    for kind in ("FIGURE", "FLAGS"):
        for name, _, *cells in like.rows(ROOT, kind):
            shown, number = OTHERS.get(name, name), like.value(cells[column])
            if name.endswith("odp_caps") and number == 0 and theirs[name] not in ([], ["NO", "SUPPORT"]):
                sys.exit(f"{device}: {name} is {theirs[name]}")
            if name.endswith("odp_caps") or shown not in ours:
                continue
            expected = ours[shown] if number is None else ours[shown] & number if kind == "FLAGS" else min(ours[shown], number)
            if theirs.get(shown, 0) != expected:
                sys.exit(f"{device}: {name} is {theirs.get(shown)}, and not {expected}")
            compared += 1
    if compared < 25:
        sys.exit(f"{device}: only {compared} figures were compared")


def check_refused(uroce_run, program, device, column):
    said = dict(line.rsplit(" ", 1) for line in run(uroce_run, "--like", device, "--", program).splitlines())
    table = {row[0]: row[2 + column] for row in like.rows(ROOT, "LACK")}
    table.update((row[0].rsplit(".", 1)[-1], row[1 + column]) for row in like.rows(ROOT, "CALL"))
    no_clock = like.value(next(row for row in like.rows(ROOT, "FLAGS") if row[0] == "completion_timestamp_mask")[2 + column]) == 0
    table["time stamps"] = "EOPNOTSUPP" if no_clock or table["create_cq_ex"] != "HAS" else "HAS"
    figures = {name: like.value(cells[column]) for name, _, *cells in like.rows(ROOT, "FIGURE")}
    no_rate = "EINVAL" if figures["qp_rate_limit_max"] == 0 else "HAS"
    table["a rate"] = no_rate
    table["a rate limit"] = table["modify_qp_rate_limit"] if table["modify_qp_rate_limit"] != "HAS" else no_rate
    table["a READ of two"] = "EINVAL" if figures["max_sge_rd"] == 1 else "HAS"
    table["flush of a queue pair"] = table["flush of a window"] = table["flush"]
    table["rereg for flush"] = table["rereg"] if table["rereg"] != "HAS" else table["flush"]
    table["query of comp_cntr"] = table["comp_cntr"]
    table["ibv_query_qp"] = table["ibv_query_srq"] = "HAS"  # no error: what was granted
    for name, error in said.items():
        expected = 0 if table[name] == "HAS" else getattr(errno, table[name])
        if int(error) != expected:
            sys.exit(f"{device}: {name}: errno {error}, and not {expected}")
    if len(said) < 30:
        sys.exit(f"{device}: {len(said)} things were tried")


def check_limits(uroce_run, program, device, column):
    table = {name: like.value(cells[column]) for name, _, *cells in like.rows(ROOT, "FIGURE")}
    words = []
    for name in LIMITS:
        # one more is refused only if ours is more
        if (device, name) != ("erdma", "max_inline_data_ud") and table[name] and table[name] < OURS.get(name, 32768):
            words += [name, str(table[name])]
    for line in run(uroce_run, "--like", device, "--", program, *words).splitlines():
        if not line.endswith(f" 0 {errno.EINVAL}"):
            sys.exit(f"{device}: {line}")


def main():
    uroce_run, program = sys.argv[1:3]
    ours = told(uroce_run)
    for column, device in enumerate(like.devices(ROOT)):
        check_told(uroce_run, device, column, ours)
        check_refused(uroce_run, program, device, column)
        check_limits(uroce_run, program, device, column)
    said = subprocess.run([uroce_run, *PORT, "--explain", "--like", "irdma", "--", program], capture_output=True, text=True,
                          timeout=SECONDS, check=False).stderr
    for line in ("uroce: ibv_create_srq: Intel E810 (irdma) does not have this: a shared receive queue",
                 "uroce: ibv_alloc_dm: the driver of Intel E810 (irdma) does not have this call"):
        if line not in said:
            sys.exit(f"--explain does not say: {line}\n{said}")
    done = subprocess.run([uroce_run, *PORT, "--like", "efa", "--", "true"], capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode == 0 or "like: 'efa' is not one of connectx-6, irdma, bnxt, erdma, rxe" not in done.stderr:
        sys.exit(f"--like efa: {done.stderr}")


if __name__ == "__main__":
    main()
