# SPDX-License-Identifier: BSD-3-Clause
"""The experiments of the network simulator by name: their options, and how to run them."""

import json
import subprocess

SECONDS = 580  # at most, of one experiment

# IRN (arXiv 1806.08159, 4.1): 54 hosts in a fat tree of 6-port switches, links of 40 Gb/s and 2 us, packets of 1 KB, switches
# with 240 KB a port, and a window of the bandwidth-delay product: 110 packets. PFC keeps what the upstream link can still
# deliver after a pause as headroom. RoCE as NICs have it: no window, go-back-N, and a long timeout, because no packet is lost.
FAT_TREE = ("--shape", "fat-tree", "--arity", "6", "--gbps", "40", "--latency-ns", "2000", "--buffer", "240000")
PFC = ("--pfc", "24000")
IRN = ("--window", "110", "--peer", "keeps", "--timeout", "6")
ROCE = ("--window", "4096", "--peer", "drops", "--timeout", "12")
GO_BACK_N = ("--window", "110", "--peer", "drops", "--timeout", "6")
# Guo et al. (SIGCOMM 2016, 4.1): two hosts at one switch, one of 256 packets lost, messages of 4 MB.
PAIR = ("--shape", "star", "--hosts", "2", "--gbps", "40", "--latency-ns", "500", "--buffer", "4000000")
# Two hosts of 100 Gb/s with a round trip of 10 us, whose acknowledgement timers are short.
LOSS_LINK = (*PAIR[:4], "--gbps", "100", "--latency-ns", "2500", "--buffer", "4000000", "--timeout", "8")
# 128 hosts at eight leaves, which 16 spines connect without oversubscription.
LEAF_SPINE = ("--shape", "leaf-spine", "--leaves", "8", "--spines", "16", "--leaf-hosts", "16", "--gbps", "100",
              "--latency-ns", "500", "--buffer", "300000", "--alpha", "100")


# DCQCN (Zhu et al., SIGCOMM 2015): hosts at one switch of 40 Gb/s, which marks between 5 and 200 KB, at most 1 %.
ECN = ("--ecn", "5000,200000,1")
CLOS = ("--shape", "star", "--hosts", "12", "--gbps", "40", "--latency-ns", "1000", "--buffer", "4000000", "--window", "512")
# Swift (Kumar et al., SIGCOMM 2020): one host of 100 Gb/s, to which 100 others send. No packet is lost, so no timer is needed.
MANY = ("--shape", "star", "--hosts", "101", "--gbps", "100", "--latency-ns", "1000", "--buffer", "600000", "--alpha", "800",
        "--timeout", "14")
# Two hosts that answer late, as emulated machines do, at one switch.
LATE = ("--shape", "star", "--hosts", "2", "--gbps", "10", "--latency-ns", "20000", "--buffer", "4000000", "--timeout", "16")
# Our target: 25 us for queues, and flow scaling up to 100 us between windows of 100 and 0.1 packets (transport/swift.h).
SWIFT_QUEUE_US, SWIFT_RANGE_US, SWIFT_MIN, SWIFT_MAX = 25, 100, 0.1, 100


def run(program, *options):
    """Run an experiment, and return what it prints as a dictionary. It stops after ten seconds of virtual time at the latest, and
    then some flows may not have ended."""
    done = subprocess.run([program, *map(str, options)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          timeout=SECONDS, check=False)
    if done.returncode not in (0, 1):
        raise subprocess.CalledProcessError(done.returncode, done.args)
    return json.loads(done.stdout)


def poisson(flows, seed=1):
    """Return options for flows of heavy-tailed sizes between random hosts, at 70 % load."""
    return ("--traffic", "poisson", "--load", "70", "--flows", flows, "--seed", seed)


def incast(senders, bytes_, rounds=1, seed=1):
    """Return options for an incast: all senders send `bytes_` bytes to one host at the same time."""
    return ("--traffic", "incast", "--senders", senders, "--bytes", bytes_, "--rounds", rounds, "--seed", seed)


def share(senders, bytes_, stagger_us, until_us, cc, greet=True):
    """Return options for flows to one host: one flow, then a second one, then the others; each step stagger_us after the one
    before. Without a greeting, the hosts of the later flows have not seen the network without a queue."""
    return (*CLOS, *ECN, "--cc", cc, "--traffic", "incast", "--senders", senders, "--bytes", bytes_, "--stagger-us", stagger_us,
            "--until-us", until_us, "--sample-us", 1000, *(["--greet"] if greet else []))


def between(result, from_us, to_us, flows):
    """Return the samples between two times in which exactly `flows` flows ran."""
    return [sample for sample in result["samples"] if from_us <= sample["us"] < to_us and sample["flows"] == flows]


def mean(samples, name):
    return sum(sample[name] for sample in samples) / len(samples)


def swift_queue_us(senders, mbps=100000, base_us=4.2, wire_bytes=1106):
    """Return the queueing delay at which flows that share a link equally are at Swift's target."""
    queue_us = SWIFT_QUEUE_US
    for _ in range(100):
        window = (queue_us + base_us) * mbps / 8 / wire_bytes / senders
        scale = (max(window, SWIFT_MIN) ** -0.5 - SWIFT_MAX ** -0.5) / (SWIFT_MIN ** -0.5 - SWIFT_MAX ** -0.5)
        queue_us = SWIFT_QUEUE_US + SWIFT_RANGE_US * max(0, scale)
    return queue_us


def stream(bytes_, rounds):
    """Return options for messages from one host to another, one after the other."""
    return ("--traffic", "stream", "--bytes", bytes_, "--rounds", rounds)
