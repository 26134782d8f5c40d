#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the network simulator, and what the transport does in it: check.py NET. All times are virtual, so no check depends on
the machine."""

import sys
import unittest

from experiments import (CLOS, ECN, FAT_TREE, GO_BACK_N, IRN, LATE, LEAF_SPINE, LOSS_LINK, MANY, PAIR, PFC, ROCE, between, incast, mean,
                         poisson, run, share, stream, swift_queue_us)

NET = ""
FLOWS = 600


def without_cpu(result):
    return {name: value for name, value in result.items() if "cpu" not in name}


class Simulator(unittest.TestCase):
    def test_a_lone_flow_takes_the_ideal_time(self):
        for shape, far in ((PAIR, 2), (FAT_TREE, 6), (LEAF_SPINE, 4)):
            result = run(NET, *shape, *stream(1000000, 3))
            with self.subTest(shape=shape, far=far):
                self.assertEqual(result["retransmitted"], 0)
                self.assertAlmostEqual(result["slowdown"]["max"], 1.0, delta=0.01)

    def test_a_run_repeats(self):
        results = [without_cpu(run(NET, *FAT_TREE, *IRN, *poisson(FLOWS, seed=5))) for _ in range(2)]
        self.assertEqual(results[0], results[1])
        self.assertNotEqual(results[0], without_cpu(run(NET, *FAT_TREE, *IRN, *poisson(FLOWS, seed=6))))

    def test_all_senders_of_an_incast_share_the_link(self):
        result = run(NET, *FAT_TREE, *ROCE, *PFC, *incast(30, 60000000))
        # A packet of 1,024 bytes takes 1,106 on the link.
        self.assertGreater(result["goodput_gbps"], 40 * 1024 / 1106 * 0.97)

    def test_pauses_prevent_every_drop(self):
        for traffic in (poisson(FLOWS), incast(30, 15000000), ("--traffic", "permutation")):
            result = run(NET, *FAT_TREE, *ROCE, *PFC, *traffic)
            with self.subTest(traffic=traffic):
                self.assertEqual(result["dropped"], 0)
                self.assertGreaterEqual(result["flows_ended"], 1)
        self.assertGreater(run(NET, *FAT_TREE, *ROCE, *PFC, *incast(30, 15000000))["pauses"], 0)

    def test_a_shared_buffer_drops_less_than_a_divided_one(self):
        divided = run(NET, *FAT_TREE, *GO_BACK_N, *incast(20, 15000000))
        shared = run(NET, *FAT_TREE, *GO_BACK_N, "--alpha", 800, *incast(20, 15000000))
        self.assertLess(shared["dropped"], divided["dropped"])

    def test_loses_what_it_is_told_to(self):
        result = run(NET, *PAIR, *stream(4 << 20, 5), "--lose-every", 256)
        self.assertAlmostEqual(result["lost"] / result["packets"], 1 / 256, delta=0.0001)
        result = run(NET, *PAIR, *stream(4 << 20, 20), "--loss-ppm", 10000)
        self.assertAlmostEqual(result["lost"] / result["packets"], 0.01, delta=0.002)


class Congestion(unittest.TestCase):
    def test_costs_nothing_on_an_idle_link(self):
        """No algorithm slows a lone flow down by 2 %."""
        for shape in (PAIR, FAT_TREE, LEAF_SPINE):
            without = run(NET, *shape, *stream(1 << 20, 50))["goodput_gbps"]
            for cc in ("dcqcn", "swift"):
                with self.subTest(shape=shape, cc=cc):
                    self.assertGreater(run(NET, *shape, *ECN, *stream(1 << 20, 50), "--cc", cc)["goodput_gbps"], 0.98 * without)

    def test_dcqcn_shares_a_link_fairly(self):
        """Two long flows, then eight more."""
        result = run(NET, *share(10, 800000000, 10000, 40000, "dcqcn"))
        two, ten = between(result, 15000, 20000, 2), between(result, 30000, 40000, 10)
        self.assertGreater(mean(two, "fairness"), 0.99)
        self.assertGreater(mean(ten, "fairness"), 0.95)
        self.assertGreater(mean(ten, "gbps"), 30)
        # At most what the switch marks up to, and what is in flight meanwhile.
        self.assertLess(mean(ten, "queue_us"), 60)
        self.assertEqual(result["dropped"], 0)
        self.assertGreater(result["cnp_handled"], 100)
        self.assertEqual(result["cnp_handled"], result["cnp_sent"])

    def test_nobody_notifies_without_marks_or_dcqcn(self):
        for options in (("--cc", "dcqcn"), ("--cc", "none", *ECN), ("--cc", "swift", *ECN)):
            result = run(NET, *CLOS, *incast(10, 20000000), *options)
            with self.subTest(options=options):
                self.assertEqual((result["marked"], result["cnp_sent"]), (0, 0))

    def _expect_swift_shares(self, greet, two_fairly, ten_fairly):
        result = run(NET, *share(10, 800000000, 5000, 20000, "swift", greet))
        two, ten = between(result, 7500, 10000, 2), between(result, 14000, 20000, 10)
        self.assertGreater(mean(two, "fairness"), two_fairly)
        self.assertGreater(mean(ten, "fairness"), ten_fairly)
        self.assertGreater(mean(ten, "gbps"), 36.5)
        self.assertLess(mean(ten, "queue_us"), 40)
        self.assertEqual(result["retransmitted"], 0)

    def test_swift_shares_a_link_fairly(self):
        self._expect_swift_shares(greet=True, two_fairly=0.99, ten_fairly=0.98)

    def test_swift_shares_with_hosts_that_begin_in_a_full_network(self):
        """Such a host finds out by slowing down for a moment that its shortest round trip was not short."""
        self._expect_swift_shares(greet=False, two_fairly=0.95, ten_fairly=0.96)

    def test_swift_keeps_the_queue_of_an_incast_near_its_target(self):
        senders = 1000
        result = run(NET, *MANY, *incast(senders, 200000000), "--cc", "swift", "--sample-us", 50)
        steady = between(result, 5000, 16000, senders)
        self.assertGreater(len(steady), 50)
        self.assertAlmostEqual(mean(steady, "queue_us"), swift_queue_us(senders), delta=0.25 * swift_queue_us(senders))
        self.assertGreater(mean(steady, "gbps"), 92)
        self.assertEqual(result["dropped"], 0)


    def test_swift_goes_on_towards_hosts_that_answer_late(self):
        """Hosts that wake up late, and of which some also need long for each packet. The share is that of a flow without congestion
        control, with the time that it takes to find out."""
        for late, share_ in (("300,0", 0.2), ("1500,0", 0.3), ("1500,50", 0.4), ("3000,100", 0.4)):
            rates = [run(NET, *LATE, "--late-us", late, *stream(65536, 200), "--cc", cc)["goodput_gbps"]
                     for cc in ("none", "swift")]
            with self.subTest(late=late):
                self.assertGreater(rates[1], share_ * rates[0])


class Transport(unittest.TestCase):
    def test_goes_on_where_every_256th_packet_is_lost(self):
        """A message of 4,096 packets never arrives at a go-back-0 receiver; ours makes progress with each kind of peer."""
        for peer in ("keeps", "drops", "uroce"):
            result = run(NET, *PAIR, *stream(4 << 20, 10), "--lose-every", 256, "--peer", peer)
            with self.subTest(peer=peer):
                self.assertGreater(result["goodput_gbps"], 15)

    def test_selective_acknowledgements_keep_most_of_the_goodput(self):
        def goodput(ppm):
            return run(NET, *LOSS_LINK, *stream(1 << 20, 60), "--loss-ppm", ppm, "--peer", "uroce")["goodput_gbps"]

        lossless = goodput(0)
        for ppm, part in ((10000, 0.9), (30000, 0.85), (100000, 0.6)):
            with self.subTest(ppm=ppm):
                self.assertGreater(goodput(ppm), part * lossless)

    def test_needs_no_lossless_network(self):
        """IRN's claim: a receiver that keeps packets and a window of the bandwidth-delay product do better without PFC than
        go-back-N with it."""
        irn = run(NET, *FAT_TREE, *IRN, *poisson(FLOWS))
        roce = run(NET, *FAT_TREE, *ROCE, *PFC, *poisson(FLOWS))
        self.assertLess(irn["slowdown"]["mean"], roce["slowdown"]["mean"])
        self.assertLess(irn["time_us"]["mean"], roce["time_us"]["mean"])

    def test_every_flow_ends_in_a_crowded_network(self):
        result = run(NET, *LEAF_SPINE, *incast(128, 64000000, rounds=2))
        self.assertEqual(result["flows_ended"], 256)


if __name__ == "__main__":
    NET = sys.argv.pop(1)
    unittest.main()
