/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/ethdev_plan.c: ports as drivers describe them. */
#include <stdint.h>
#include <string.h>

#include "port/ethdev_plan.h"
#include "test.h"

#define RX_SUMS (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM)

static struct rte_eth_dev_info info;
static struct ethdev_plan_wish wish;
static struct ethdev_plan plan;

static int setup(TEST_STATE)
{
	memset(&info, 0, sizeof(info));
	memset(&plan, 0xff, sizeof(plan));
	info.min_mtu = 68;
	info.max_mtu = UINT16_MAX;
	wish = (struct ethdev_plan_wish){.mbuf_bytes = 4352};
	return 0;
}

TEST_FIXTURE(setup, NULL);

TEST(plan_make__uses_no_offload_that_is_not_there)
{
	wish.dma = true;
	ethdev_plan_make(&info, &wish, &plan);
	assert_int_equal(plan.conf.rxmode.offloads, 0);
	assert_int_equal(plan.conf.txmode.offloads, 0);
	assert_false(plan.checks_sums);
	assert_false(plan.sums_udp);
	assert_false(plan.gathers);
}

TEST(plan_make__believes_checksums_only_if_both_are_checked)
{
	info.rx_offload_capa = RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
	ethdev_plan_make(&info, &wish, &plan);
	assert_false(plan.checks_sums);
	assert_int_equal(plan.conf.rxmode.offloads, 0);
	info.rx_offload_capa = RX_SUMS;
	ethdev_plan_make(&info, &wish, &plan);
	assert_true(plan.checks_sums);
	assert_int_equal(plan.conf.rxmode.offloads, RX_SUMS);
}

TEST(plan_make__has_udp_checksums_made_where_the_port_can)
{
	info.tx_offload_capa = RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	ethdev_plan_make(&info, &wish, &plan);
	assert_true(plan.sums_udp);
	assert_int_equal(plan.conf.txmode.offloads, RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
}

/* Buffers of the application are nobody's to be freed fast. */
TEST(plan_make__frees_fast_unless_it_gathers)
{
	info.tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	ethdev_plan_make(&info, &wish, &plan);
	assert_false(plan.gathers);
	assert_int_equal(plan.conf.txmode.offloads, RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE);
	wish.dma = true;
	ethdev_plan_make(&info, &wish, &plan);
	assert_true(plan.gathers);
	assert_int_equal(plan.conf.txmode.offloads, RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
}

TEST(plan_make__gathers_no_more_parts_than_the_port_takes)
{
	wish.dma = true;
	info.tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	info.tx_desc_lim.nb_mtu_seg_max = ETHDEV_PLAN_GATHER_PARTS - 1;
	ethdev_plan_make(&info, &wish, &plan);
	assert_false(plan.gathers);
	info.tx_desc_lim.nb_mtu_seg_max = ETHDEV_PLAN_GATHER_PARTS;
	ethdev_plan_make(&info, &wish, &plan);
	assert_true(plan.gathers);
}

TEST(plan_make__cuts_the_mtu_to_what_the_port_takes)
{
	info.max_mtu = 1500;
	wish.mtu_bytes = 9000;
	ethdev_plan_make(&info, &wish, &plan);
	assert_int_equal(plan.mtu_bytes, 1500);
	assert_int_equal(plan.conf.rxmode.mtu, 1500);
	wish.mtu_bytes = 20;
	ethdev_plan_make(&info, &wish, &plan);
	assert_int_equal(plan.mtu_bytes, 68);
}

TEST(plan_make__leaves_the_mtu_to_drivers_that_know_none)
{
	wish.mtu_bytes = 9000;
	wish.keeps_mtu = true;
	info.max_mtu = 1500;
	ethdev_plan_make(&info, &wish, &plan);
	assert_int_equal(plan.conf.rxmode.mtu, 0);
	assert_int_equal(plan.mbuf_bytes, 4352);
}

TEST(plan_make__scatters_jumbo_frames_where_the_port_can)
{
	wish.mtu_bytes = 9000;
	wish.mbuf_bytes = 2048;
	info.rx_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER;
	ethdev_plan_make(&info, &wish, &plan);
	assert_int_equal(plan.conf.rxmode.offloads, RTE_ETH_RX_OFFLOAD_SCATTER);
	assert_int_equal(plan.mbuf_bytes, 2048);
}

TEST(plan_make__makes_longer_buffers_where_it_cannot_scatter)
{
	wish.mtu_bytes = 9000;
	wish.mbuf_bytes = 2048;
	ethdev_plan_make(&info, &wish, &plan);
	assert_int_equal(plan.conf.rxmode.offloads, 0);
	assert_true(plan.mbuf_bytes >= 9000 + 18);
	/* the port's own overhead: two tags more */
	info.max_mtu = 9600;
	info.max_rx_pktlen = 9626;
	ethdev_plan_make(&info, &wish, &plan);
	assert_true(plan.mbuf_bytes >= 9000 + 26);
}

/* Hardware whose buffers are powers of two fills only 4096 of 4352 bytes. */
TEST(plan_make__scatters_what_a_power_of_two_does_not_hold)
{
	wish.mtu_bytes = 4200;
	info.rx_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER;
	ethdev_plan_make(&info, &wish, &plan);
	assert_int_equal(plan.conf.rxmode.offloads, RTE_ETH_RX_OFFLOAD_SCATTER);
	wish.mtu_bytes = 1500;
	ethdev_plan_make(&info, &wish, &plan);
	assert_int_equal(plan.conf.rxmode.offloads, 0);
}

TEST(plan_make__gives_buffers_that_the_port_accepts)
{
	info.min_rx_bufsize = 5000;
	ethdev_plan_make(&info, &wish, &plan);
	assert_in_range(plan.mbuf_bytes, 5000, UINT16_MAX - RTE_PKTMBUF_HEADROOM);
	info.min_rx_bufsize = 100000;
	ethdev_plan_make(&info, &wish, &plan);
	assert_int_equal(plan.mbuf_bytes, UINT16_MAX - RTE_PKTMBUF_HEADROOM);
}

/* One engine: the port is set up without a word of queues, whatever it can do. */
TEST(plan_make__one_queue_unless_more_are_wanted)
{
	info.max_rx_queues = info.max_tx_queues = 8;
	for (wish.queues = 0; wish.queues < 2; wish.queues++) {
		ethdev_plan_make(&info, &wish, &plan);
		assert_int_equal(plan.queues, 1);
		assert_int_equal(plan.conf.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
		assert_false(ethdev_plan_reduce(&info, &plan));
	}
}

/* Each engine has one, or the device has one engine. */
TEST(plan_make__has_all_queues_or_one)
{
	static const struct {
		uint16_t max_rx, max_tx, queues;
	} cases[] = {{4, 4, 4}, {8, 5, 4}, {1, 4, 1}, {3, 4, 1}, {4, 3, 1}, {0, 0, 1}};

	wish.queues = 4;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		info.max_rx_queues = cases[i].max_rx;
		info.max_tx_queues = cases[i].max_tx;
		ethdev_plan_make(&info, &wish, &plan);
		assert_int_equal(plan.queues, cases[i].queues);
		/* Flow rules divide the packets. */
		assert_int_equal(plan.conf.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
	}
}

TEST(plan_reduce__gives_up_queues_before_the_long_mtu)
{
	wish.mtu_bytes = 9000;
	wish.interrupts = true;
	wish.queues = 2;
	info.max_rx_queues = info.max_tx_queues = 2;
	ethdev_plan_make(&info, &wish, &plan);
	assert_true(ethdev_plan_reduce(&info, &plan));
	assert_int_equal(plan.conf.intr_conf.rxq, 0);
	assert_int_equal(plan.queues, 2);
	assert_true(ethdev_plan_reduce(&info, &plan));
	assert_int_equal(plan.queues, 1);
	assert_int_equal(plan.conf.rxmode.mtu, 9000);
	assert_true(ethdev_plan_reduce(&info, &plan));
	assert_int_equal(plan.conf.rxmode.mtu, 1500);
	assert_false(ethdev_plan_reduce(&info, &plan));
}

TEST(plan_reduce__gives_up_interrupts_then_the_long_mtu)
{
	wish.mtu_bytes = 9000;
	wish.interrupts = true;
	ethdev_plan_make(&info, &wish, &plan);
	assert_int_equal(plan.conf.intr_conf.rxq, 1);
	assert_true(ethdev_plan_reduce(&info, &plan));
	assert_int_equal(plan.conf.intr_conf.rxq, 0);
	assert_int_equal(plan.conf.rxmode.mtu, 9000);
	assert_true(ethdev_plan_reduce(&info, &plan));
	assert_int_equal(plan.conf.rxmode.mtu, 1500);
	assert_false(ethdev_plan_reduce(&info, &plan));
}
