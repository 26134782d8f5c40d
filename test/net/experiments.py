# SPDX-License-Identifier: BSD-3-Clause
"""The experiments of the network simulator by name: their options, and how to run them."""

import json
import subprocess

SECONDS = 580  # at most, of one experiment

# IRN (arXiv 1806.08159, 4.1): 54 hosts in a fat tree of 6-port switches, links of 40 Gb/s and 2 us, packets of 1 KB, switches
# with 240 KB a port, and a window of the bandwidth-delay product: 110 packets. PFC keeps what the upstream link can still
# deliver after a pause as headroom. RoCE as NICs have it: no window, go-back-N, and a long timeout, as nothing is lost.
FAT_TREE = ("--shape", "fat-tree", "--arity", "6", "--gbps", "40", "--latency-ns", "2000", "--buffer", "240000")
PFC = ("--pfc", "24000")
IRN = ("--window", "110", "--peer", "keeps", "--timeout", "6")
ROCE = ("--window", "4096", "--peer", "drops", "--timeout", "12")
GO_BACK_N = ("--window", "110", "--peer", "drops", "--timeout", "6")
# Guo et al. (SIGCOMM 2016, 4.1): two hosts at one switch, one of 256 packets lost, messages of 4 MB.
PAIR = ("--shape", "star", "--hosts", "2", "--gbps", "40", "--latency-ns", "500", "--buffer", "4000000")
# 128 hosts at eight leaves, which 16 spines connect without oversubscription.
LEAF_SPINE = ("--shape", "leaf-spine", "--leaves", "8", "--spines", "16", "--leaf-hosts", "16", "--gbps", "100",
              "--latency-ns", "500", "--buffer", "300000", "--alpha", "100")


def run(program, *options):
    """Return what an experiment prints, as a dictionary. An experiment that needs more than ten seconds of virtual time is cut:
    fewer flows have ended than there are."""
    done = subprocess.run([program, *map(str, options)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          timeout=SECONDS, check=False)
    if done.returncode not in (0, 1):
        raise subprocess.CalledProcessError(done.returncode, done.args)
    return json.loads(done.stdout)


def poisson(flows, seed=1):
    """Flows of heavy tail between random hosts, at 70 % load."""
    return ("--traffic", "poisson", "--load", "70", "--flows", flows, "--seed", seed)


def incast(senders, bytes_, rounds=1, seed=1):
    """So many senders send these bytes together to one host."""
    return ("--traffic", "incast", "--senders", senders, "--bytes", bytes_, "--rounds", rounds, "--seed", seed)


def stream(bytes_, rounds):
    """Messages from one host to another, one after the other."""
    return ("--traffic", "stream", "--bytes", bytes_, "--rounds", rounds)
