#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Let faults happen that somebody asks for: inject.py UROCE_RUN INJECT ZOO. INJECT asks by itself; ZOO's programs get
theirs by uroce-run --inject; and Python asks by ctypes."""

import subprocess
import sys

PORT = ("--port", "net_null0", "--ip", "10.0.0.1/24")
SECONDS = 60

# Rules, a right program of the zoo, and what is then said.
ASKED = (
    ("op=write,status=rem_access_err", "beyond_the_end", "zoo: remote access error"),
    ("op=any,nth=1,status=retry_exc_err", "unknown_key", "zoo: transport retry counter exceeded"),
    ("op=send,p=1,seed=7,status=rnr_retry_exc_err", "no_receive", "zoo: RNR retry counter exceeded"),
    ("call=ibv_reg_mr,errno=ENOMEM,nth=2", "port_number", "zoo: ibv_reg_mr: Cannot allocate memory"),
    ("call=any,errno=EIO,nth=2", "port_number", "zoo: ibv_open_device: Input/output error"),
    ("call=ibv_modify_qp,errno=EIO,nth=3;call=ibv_alloc_pd,errno=ENOMEM,after=1s", "beyond_the_end", "zoo: RTS: "),
)
WRONG = (
    ("call=ibv_reg_mr", "errno= is missing"),
    ("call=ibv_no_such,errno=EIO", "call= needs a call of verbs or rdma_cm that can fail, or any"),
    ("call=ibv_get_device_name,errno=EIO", "call= needs a call of verbs or rdma_cm that can fail, or any"),
    ("call=any,errno=EIO,every=call", "call= has no meaning here"),
    ("call=ibv_ack_cq_events,errno=EIO", "call= needs a call of verbs or rdma_cm that can fail, or any"),
    ("op=write", "status= is missing"),
    ("op=write,status=success", "status= needs a status of a work request"),
    ("op=recv,status=rem_op_err", "a receive request can only fail with loc_prot_err"),
    ("op=write,status=rem_op_err,nth=0", "nth= needs a number from 1"),
    ("op=write,status=rem_op_err,p=2", "p= needs a probability from 0 to 1"),
    ("event=qp_fatal,after=2", "after= needs a time"),
    ("event=gid_change,qp=3", "the event is not of a queue pair"),
    ("event=gid_change,nth=3", "nth= has no meaning here"),
    ("nth=3", "a rule needs one of call=, op= and event="),
    ("op=write,op=read,status=rem_op_err", "op= is there twice"),
)
PYTHON = """
import ctypes
verbs = ctypes.CDLL("libibverbs.so.1")
rule = verbs.uroce_inject_add(b"call=ibv_fork_init,errno=EIO")
assert rule > 0 and verbs.ibv_fork_init() == 5 and verbs.uroce_inject_count(rule) == 1
"""
# It aborts if a call of its own fails; it waits for ever if another one does.
CRASHES = """
import ctypes, os, time
verbs = ctypes.CDLL("libibverbs.so.1")
if verbs.ibv_fork_init():
    os.abort()
if verbs.ibv_dontfork_range(None, 0):
    time.sleep(1000)
"""
EACH = """uroce-run: call 0, none: exit status 0
uroce-run: call 1, ibv_fork_init: CRASHES: Aborted
uroce-run: call 2, ibv_dontfork_range: HANGS
uroce-run: each of 2 calls has failed once: 2 runs crashed or hung
"""


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)


def expect(good, what, done):
    if not good:
        sys.exit(f"{what}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    uroce_run, inject, zoo = sys.argv[1:4]
    done = run(uroce_run, *PORT, "--inject", "none", "--", inject)
    expect(done.returncode == 0 and done.stdout == "inject: each fault came, and was counted\n", "inject", done)
    done = run(uroce_run, *PORT, "--", inject)
    expect(done.returncode == 0 and done.stdout == "inject: no rules without --inject\n", "without --inject", done)
    for rules, program, said in ASKED:
        done = run(uroce_run, *PORT, "--inject", rules, "--", zoo, program, "right")
        expect(done.returncode == 1 and said in done.stderr and "uroce: injected: " in done.stderr, rules, done)
    for rules, said in WRONG:
        done = run(uroce_run, *PORT, "--inject", rules, "--", "true")
        expect(done.returncode != 0 and said in done.stderr, rules, done)
    done = run(uroce_run, *PORT, "--inject", "every=call,errno=EIO", "--", sys.executable, "-c", CRASHES)
    told = "".join(line for line in done.stderr.splitlines(True) if line.startswith("uroce-run: "))
    expect(done.returncode == 1 and told == EACH, "every=call", done)
    done = run(uroce_run, *PORT, "--inject", "every=call,errno=ENOMEM", "--", zoo, "port_number", "right")
    expect(done.returncode == 0 and ", ibv_reg_mr: exit status 1" in done.stderr and
           ", ibv_alloc_pd: exit status 1" in done.stderr and ": 0 runs crashed or hung" in done.stderr, "every=call", done)
    done = run(uroce_run, *PORT, "--inject", "none", "--", sys.executable, "-c", PYTHON)
    expect(done.returncode == 0 and "injected: ibv_fork_init fails with EIO" in done.stderr, "Python", done)


if __name__ == "__main__":
    main()
